"""Solvers on a problem with a known solution: errors fall with the order that a scheme promises."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.orders import EXPLICIT, INPUT, changing_steps, error, measure_order
from ingot.fields import Result, build, run
from ingot.fields.jit import jit
from ingot.fields.solvers.multistep import adams_weights, past_nodes
from ingot.hit import read_text

Simulate = Callable[..., Result]


def slope(simulate: Simulate, *overrides: str, fine: int = 80) -> float:
    return measure_order(lambda *given: simulate(INPUT, *given), overrides, fine)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_a_predictor_has_its_order(simulate: Simulate, order: int) -> None:
    found = slope(simulate, f"TensorSolver/predictor_order={order}", *EXPLICIT)
    assert found == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_a_predictor_keeps_its_order_where_steps_change(simulate: Simulate, order: int) -> None:
    """Steps that grow and shrink by half, so that no two in a row are alike."""
    errors = []
    for steps in (40, 80):
        order_of = f"TensorSolver/predictor_order={order}"
        result = simulate(INPUT, *changing_steps(steps), order_of, *EXPLICIT)
        assert result.times[-1] == pytest.approx(1, rel=1e-12)
        errors.append(error(result))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.5)


@pytest.mark.parametrize("order", [3, 4, 5])
def test_the_reference_starts_high_orders_by_euler(simulate: Simulate, order: int) -> None:
    reference = ("Problem/marlin_compatible=true", f"TensorSolver/predictor_order={order}")
    assert slope(simulate, *reference, *EXPLICIT, fine=160) < 2.3


@pytest.mark.parametrize("order", [3, 4, 5])
def test_a_corrector_has_its_order(simulate: Simulate, order: int) -> None:
    corrected = ("TensorSolver/corrector_steps=1", f"TensorSolver/corrector_order={order}")
    predicted = f"TensorSolver/predictor_order={order - 1}"
    found = slope(simulate, predicted, *corrected, *EXPLICIT, fine=80)
    assert found == pytest.approx(order, abs=0.4)


def test_weights_of_equal_steps_are_the_published_ones() -> None:
    nodes = (0.0, -1.0, -2.0, -3.0, -4.0)
    published = {
        1: (1.0,),
        2: (3 / 2, -1 / 2),
        3: (23 / 12, -16 / 12, 5 / 12),
        4: (55 / 24, -59 / 24, 37 / 24, -9 / 24),
        5: (1901 / 720, -2774 / 720, 2616 / 720, -1274 / 720, 251 / 720),
    }
    for order, weights in published.items():
        assert adams_weights(nodes[:order]) == weights
    moulton = (251 / 720, 646 / 720, -264 / 720, 106 / 720, -19 / 720)
    assert adams_weights((1.0, *nodes[:4])) == moulton


@given(
    st.lists(st.floats(0.1, 10), min_size=0, max_size=4),
    st.lists(st.floats(-3, 3), min_size=5, max_size=5),
)
def test_weights_integrate_polynomials_exactly(sizes: list[float], terms: list[float]) -> None:
    nodes = past_nodes(sizes, 1.0)
    polynomial = np.polynomial.Polynomial(terms[: len(nodes)])
    mean = sum(w * polynomial(x) for w, x in zip(adams_weights(nodes), nodes, strict=True))
    largest = max(abs(w * polynomial(x)) for w, x in zip(adams_weights(nodes), nodes, strict=True))
    exact = polynomial.integ()(1.0)
    assert mean == pytest.approx(exact, abs=1e-10 * max(1.0, largest, abs(exact)))


@pytest.mark.parametrize("compatible", ["true", "false"])
def test_a_last_step_that_differs_by_rounding_keeps_the_history(
    simulate: Simulate, compatible: str
) -> None:
    """Ten steps of 0.1 are not 1: the last is shorter by a bit, and of full order all the same."""
    mode = f"Problem/marlin_compatible={compatible}"
    counted = simulate(INPUT, mode, "Executioner/end_time=1e30", "Executioner/num_steps=30",
                       "Executioner/dt=0.1", *EXPLICIT)  # fmt: skip
    ended = simulate(INPUT, mode, "Executioner/end_time=3", "Executioner/dt=0.1", *EXPLICIT)
    assert ended.steps == counted.steps == 30
    assert ended.times[-1] == pytest.approx(3, rel=1e-15)
    assert ended.values[-1]["u"] == pytest.approx(counted.values[-1]["u"], rel=1e-12)


def test_no_sequence_is_compiled_for_another_order(tmp_path: Path) -> None:
    """The reference begins at first order, and comes back to it where the step size changes."""
    growing = (
        "Executioner/TimeStepper/type=IterationAdaptiveDT", "Executioner/TimeStepper/dt=0.01",
        "Executioner/TimeStepper/growth_factor=1.1", "TensorSolver/substeps=8",
        "TensorSolver/predictor_order=4", "Problem/marlin_compatible=true",
    )  # fmt: skip
    grids = ("Domain/nx=8", "Executioner/end_time=0.5")
    overrides = (*growing, *grids, *EXPLICIT)
    simulation = build(read_text(INPUT, overrides=overrides, moose=True))
    executor = jit(simulation)
    run(simulation, tmp_path, executor=executor)
    assert executor.statistics.sequences == 1
    assert executor.statistics.fallbacks == 0


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
    etdrk4 = ("TensorSolver/type=ETDRK4Solver", "TensorSolver/substeps=60")
    fixed, changed = simulate(INPUT, *etdrk4), simulate(INPUT, *etdrk4, *moving)
    assert changed.values[-1]["u"] == fixed.values[-1]["u"]
    assert changed.values[-1]["u"] == pytest.approx(math.cos(1), abs=1e-7)
