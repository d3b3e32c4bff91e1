"""Solvers on a problem with a known solution: errors fall with the order that a scheme promises."""

import math
from collections.abc import Callable

import pytest

from ingot.fields import Result

Simulate = Callable[..., Result]

# u' = -0.5 u + (cos(t) + 0.5 sin(t)) is solved by u = sin(t) everywhere; the rest is explicit.
INPUT = """
[Domain]
  dim = 1
  nx = 4
[]
[Problem]
  marlin_compatible = false
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ConstantTensor
      buffer = u
    []
    [linear]
      type = ParsedCompute
      buffer = linear
      extra_symbols = true
      expression = '-0.5'
      expand = RECIPROCAL
    []
  []
  [Solve]
    [ubar]
      type = ForwardFFT
      buffer = ubar
      input = u
    []
    [rest]
      type = ParsedCompute
      buffer = rest
      inputs = u
      extra_symbols = true
      expression = 'cos(t) + 0.5*sin(t) + u^2 - sin(t)^2'
    []
    [restbar]
      type = ForwardFFT
      buffer = restbar
      input = rest
    []
  []
[]
[TensorSolver]
  type = AdamsBashforthMoulton
  buffer = u
  reciprocal_buffer = ubar
  linear_reciprocal = linear
  nonlinear_reciprocal = restbar
  substeps = 1
[]
[Postprocessors]
  [u]
    type = TensorAveragePostprocessor
    buffer = u
  []
[]
[Executioner]
  type = Transient
  end_time = 1
[]
"""
EXPLICIT = (
    "TensorSolver/linear_reciprocal=0",
    "TensorComputes/Solve/rest/expression='cos(t) + 0.5*sin(t) - 0.5*u + u^2 - sin(t)^2'",
)


def slope(simulate: Simulate, *overrides: str, fine: int = 80) -> float:
    """How fast the error falls with the step size."""
    errors = []
    for steps in (fine // 2, fine):
        sizes = (f"TensorSolver/substeps={steps}", "Executioner/dt=1")
        result = simulate(INPUT, *sizes, *overrides)
        errors.append(abs(result.values[-1]["u"] - math.sin(1)))
    return math.log2(errors[0] / errors[1])


@pytest.mark.parametrize("order", [1, 2])
def test_a_predictor_has_its_order(simulate: Simulate, order: int) -> None:
    found = slope(simulate, f"TensorSolver/predictor_order={order}", *EXPLICIT)
    assert found == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("order", [3, 4, 5])
def test_high_orders_are_at_least_of_second_order(simulate: Simulate, order: int) -> None:
    """Old rates are missing at the start, so the first substep is of first order."""
    assert slope(simulate, f"TensorSolver/predictor_order={order}", *EXPLICIT) > 1.8


def test_an_implicit_linear_part_is_of_first_order(simulate: Simulate) -> None:
    assert slope(simulate) == pytest.approx(1, abs=0.2)


def test_a_corrector_of_first_order_is_backward_euler(simulate: Simulate) -> None:
    corrected = ("TensorSolver/corrector_steps=1", "TensorSolver/corrector_order=1")
    found = slope(simulate, "TensorSolver/predictor_order=1", *corrected, *EXPLICIT)
    assert found == pytest.approx(1, abs=0.2)


def test_a_corrector_of_second_order_raises_a_first_order_predictor(simulate: Simulate) -> None:
    corrected = ("TensorSolver/corrector_steps=1", "TensorSolver/corrector_order=2")
    found = slope(simulate, "TensorSolver/predictor_order=1", *corrected, *EXPLICIT, fine=320)
    assert found == pytest.approx(2, abs=0.2)


def test_etdrk4_is_of_fourth_order(simulate: Simulate) -> None:
    assert slope(simulate, "TensorSolver/type=ETDRK4Solver") == pytest.approx(4, abs=0.3)


@pytest.mark.parametrize("kind", ["SecantSolver", "BroydenSolver"])
def test_an_implicit_solver_is_backward_euler(simulate: Simulate, kind: str) -> None:
    tight = ("relative_tolerance=1e-12", "absolute_tolerance=1e-12", "max_iterations=60")
    overrides = (f"TensorSolver/type={kind}", *(f"TensorSolver/{each}" for each in tight))
    assert slope(simulate, *overrides) == pytest.approx(1, abs=0.2)


def test_etdrk4_sees_an_operator_that_changes(simulate: Simulate) -> None:
    """An operator that [Solve] computes is not known before the first evaluation."""
    moving = (
        "TensorComputes/Initialize/linear/buffer=unused",
        "TensorComputes/Solve/L/type=ParsedCompute",
        "TensorComputes/Solve/L/buffer=linear", "TensorComputes/Solve/L/expression='-0.5'",
        "TensorComputes/Solve/L/expand=RECIPROCAL",
    )  # fmt: skip
    etdrk4 = ("TensorSolver/type=ETDRK4Solver", "TensorSolver/substeps=20")
    fixed, changed = simulate(INPUT, *etdrk4), simulate(INPUT, *etdrk4, *moving)
    assert changed.values[-1]["u"] == fixed.values[-1]["u"]
    assert changed.values[-1]["u"] == pytest.approx(math.sin(1), abs=1e-7)
