"""Conditions may stand anywhere in a program: before a solve, inside it, in its derivatives."""

from collections.abc import Callable

import pytest
import torch

from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Choices, Program, along_direction, prepared
from ingot.types import Scalar, exp, where
from tests.laws.agreement import differences
from tests.program.declared import declared
from tests.systems import implicit

Residual = Callable[[list[Scalar], list[Scalar]], list[Scalar]]


def on_a_given(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    return [where(g[0] > 0.0, u[0], u[0] * 2.0 + exp(u[0])) - g[1]]


def on_several_givens(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    chosen = where((g[0] > 0.0) & ~(g[1] < 0.5), u[0], u[0] * 3.0)
    return [chosen + u[1] - g[1], where(g[0] > 0.0, u[1], exp(u[1])) - u[0]]


def on_an_unknown(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    return [where(u[0] > g[0], u[0] * 2.0, u[0] + g[0]) - g[1]]


def to_a_constant_power(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    return [u[0] + where(u[0] > 0.0, u[0], 1.0) ** (g[0] + 2.0) - g[1]]


SYSTEMS: list[tuple[Residual, int]] = [
    (on_a_given, 1),
    (on_several_givens, 2),
    (on_an_unknown, 1),
    (to_a_constant_power, 1),
]


@pytest.mark.parametrize(
    ("residual", "unknowns"), SYSTEMS, ids=lambda x: getattr(x, "__name__", "")
)
def test_condition_in_a_solve_is_the_same_natively(residual: Residual, unknowns: int) -> None:
    program: Program = along_direction(implicit(residual, unknowns, 2))
    inputs = {
        "g0": torch.tensor([1.0, -1.0, 0.0, 0.5, -0.5], dtype=torch.float64),
        "g1": torch.tensor([1.0, 2.0, 0.7, 0.2, 1.3], dtype=torch.float64),
    }
    inputs |= {f"u{i}": torch.full((5,), 0.3, dtype=torch.float64) for i in range(unknowns)}
    inputs |= {f"d.{name}": torch.linspace(0.1, 1.0, 5, dtype=torch.float64) for name in inputs}
    theirs, (status,) = Interpreter(program)(inputs)
    assert bool(status.converged.all())
    ours, _ = Kernel(program)(inputs)
    assert not differences(ours, theirs, 1e-8)


def switched(u: Scalar["cell"], v: Scalar["cell"]) -> Scalar["cell"]:  # type: ignore  # noqa: F821
    return where(v > 0.0, -u, u * u * 0.1)


CELLS = """
[Models]
  [rate]
    type = switched
    out = 'u_rate'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'u'
  []
  [residual]
    type = ComposedModel
    models = 'rate integrate'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'u'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
"""


@pytest.mark.parametrize("limit", [0, 10**6], ids=["loops", "written out"])
def test_condition_on_an_axis_in_a_solve_is_the_same_natively(limit: int) -> None:
    with declared(switched):
        model = build(read_text(CELLS), "update")
    program = prepared(model, {"u": (6,), "v": (6,)})
    source = torch.Generator().manual_seed(1)
    inputs = {
        "u": torch.rand(9, 6, generator=source, dtype=torch.float64),
        "u~1": torch.rand(9, 6, generator=source, dtype=torch.float64),
        "v": torch.rand(9, 6, generator=source, dtype=torch.float64) - 0.5,
        "t": torch.ones(9, dtype=torch.float64),
        "t~1": torch.zeros(9, dtype=torch.float64),
    }
    theirs, _ = Interpreter(program)(inputs)
    ours, (status,) = Kernel(program, choices=Choices(unroll_limit=limit))(inputs)
    assert bool(status.converged.all())
    assert not differences(ours, theirs, 1e-8)
