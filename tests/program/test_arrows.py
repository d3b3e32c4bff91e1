# ruff: noqa: F821 - names of axes
"""Systems on an axis whose entries meet in sums alone: grains that share a stress."""

from contextlib import ExitStack

import pytest
import torch
from torch import Tensor

from ingot.codegen.source import write_source
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Choices,
    Program,
    compile_passes,
    prepared,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.program.extended import is_arrow
from ingot.types import Scalar, total
from tests.program.declared import declared

F64 = torch.float64
LOOPS = Choices(unroll_limit=150)
"""The slips of one grain are written out, grains are not."""
NESTED = Choices(unroll_limit=20)
"""Both remain loops, one within the other."""

FILE = """
[Models]
  [slips]
    type = Slips
  []
  [grains]
    type = Grains
  []
  [mean]
    type = Mean
  []
  [aggregate]
    type = Aggregate
  []
  [residual]
    type = ComposedModel
    models = 'slips grains mean aggregate'
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
    unknowns = 'h s; E'
    residuals = 'r_h r_s; r_E'
    structure = 'block dense'
  []
[]
[Solvers]
  [newton]
    type = Newton
    rel_tol = 1e-13
    abs_tol = 1e-12
  []
[]
"""


def Slips(h: Scalar["slip"], s: Scalar, mean: Scalar) -> Scalar["slip"]:
    """Slips of a grain harden each other; the mean over grains is read by every one."""
    return h + 0.2 * h * h * h - 0.1 * total(h, "slip") - 0.3 * s * s - 0.1 * mean


def Grains(h: Scalar["slip"], s: Scalar, E: Scalar, x: Scalar) -> Scalar:
    """A grain under the strain of all."""
    return s + 0.1 * s * s * s + 0.2 * s * total(h, "slip") - E * x


def Mean(s: Scalar["grain"]) -> Scalar:
    """A sum over grains."""
    return 0.1 * total(s, "grain")


def Aggregate(E: Scalar, mean: Scalar, p: Scalar) -> Scalar:
    """The strain that all grains share."""
    return E + 0.05 * E * E * E + mean - p


def program_of(grains: int, slips: int = 3) -> Program:
    """Grains with some slips each, and one unknown that they share."""
    laws = {Slips: "r_h", Grains: "r_s", Mean: "mean", Aggregate: "r_E"}
    with ExitStack() as stack:
        for law, gives in laws.items():
            stack.enter_context(declared(law, gives=gives))
        shapes = {"h": (grains, slips), "s": (grains,), "x": (grains,)}
        return prepared(build(read_text(FILE), "update"), shapes)


def draw(program: Program, *batch: int) -> dict[str, Tensor]:
    """Random inputs."""
    random = torch.Generator().manual_seed(len(program.inputs))
    sizes = {v.name: [program.extent(a) for a in v.axes] for v in program.inputs}
    return {
        name: 0.2 + torch.rand(*batch, *shape, generator=random, dtype=F64)
        for name, shape in sizes.items()
    }


PAIRS = [("E", "p"), ("s", "p"), ("h", "p"), ("E", "x"), ("s", "x"), ("h", "x")]


@pytest.mark.parametrize(
    ("grains", "choices"),
    [(1, LOOPS), (70, LOOPS), (70, NESTED), pytest.param(4, NESTED, marks=pytest.mark.exhaustive)],
)
def test_values_and_derivatives_agree_with_torch(grains: int, choices: Choices) -> None:
    program = program_of(grains)
    changed = [
        with_jacobian(program, PAIRS),
        with_adjoint(program, ["E", "s", "h"], ["p", "x"]),
    ]  # fmt: skip
    for each in changed:
        kernel = Kernel(each, choices=choices)
        (solve,) = kernel.compiled.solves
        assert is_arrow(solve)
        assert any(c.axes for c in solve.columns) or grains == 1
        point = draw(each, 5)
        found, (status,) = kernel(point)
        want, _ = Interpreter(each)(point)
        assert status.converged.all()
        for name, value in want.items():
            torch.testing.assert_close(found[name], value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("grains", "slips"), [(20, 3), (3, 8)])
def test_what_a_grain_holds_is_written_out_where_it_is_short(grains: int, slips: int) -> None:
    for choices, axes in ((LOOPS, {"grain"}), (NESTED, {"grain", "slip"})):
        (solve,) = compile_passes(program_of(grains, slips), choices).solves
        assert {a.name for c in solve.columns for a in c.axes} == axes


@pytest.mark.parametrize("choices", [LOOPS, NESTED])
def test_the_source_does_not_grow_with_the_axis(choices: Choices) -> None:
    lengths = [
        len(write_source(compile_passes(with_jacobian(program_of(n), PAIRS), choices)).splitlines())
        for n in (20, 200)
    ]
    assert lengths[0] == lengths[1]


def test_many_unknowns_need_no_dense_matrix() -> None:
    program = with_jacobian(program_of(200), PAIRS[:2])
    kernel = Kernel(program, choices=LOOPS)
    assert "pivoted<" not in kernel.source
    point = draw(program, 2)
    found, (status,) = kernel(point)
    assert status.converged.all()
    step = 1e-4
    more, _ = kernel({**point, "p": point["p"] + step})
    less, _ = kernel({**point, "p": point["p"] - step})
    for name in ("E", "s"):
        slope = (more[name] - less[name]) / (2 * step)
        torch.testing.assert_close(found[f"{name}:p"], slope, rtol=1e-6, atol=1e-8)


def test_values_have_the_same_bits_with_derivatives_beside_them() -> None:
    program = program_of(20)
    alone = Kernel(program, choices=LOOPS)
    likes = Choices(
        unroll_limit=LOOPS.unroll_limit,
        like={s.factored.source: s for s in alone.compiled.solves if s.factored},
    )
    beside = Kernel(with_jacobian(program, PAIRS), choices=likes)
    point = draw(program, 9)
    for name, value in alone(point)[0].items():
        assert torch.equal(value, beside(point)[0][name])
