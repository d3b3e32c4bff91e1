"""The Jacobian of an implicit update is the slope of its solution, and executors agree on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.codegen.source import OUTPUT_TILE
from ingot.drivers.transient import transient_driver
from ingot.execute import Transient
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read
from ingot.model import Factory
from ingot.program import Program, Variable, with_jacobian
from ingot.types import R2, inv, lag
from tests.program.declared import program_of

MECHANICS = "solid_mechanics"
# Folder, two steps, abs_tol, and the part of a value by which it is moved.
FILES = {
    "isoharden": (f"{MECHANICS}/rate_independent_plasticity/isoharden", (4, 30), 1e-12, 1e-3),
    "free_sintering": (f"{MECHANICS}/viscoplasticity/free_sintering", (6, 24), 1e-12, 1e-3),
    "pyrolysis": ("chemical_reactions/pyrolysis", (30, 70), 1e-12, 1e-3),
    "combined": ("finite_volume/combined", (2, 12), 1e-12, 1e-3),
    # Rounding of its stresses keeps residuals above 1e-12.
    "chaboche": (f"{MECHANICS}/viscoplasticity/chaboche", (2, 9), 1e-10, 1e-2),
    "crystal": (f"{MECHANICS}/crystal_plasticity/single_crystal_coupled", (2, 8), 1e-12, 1e-3),
}
SMALL = ("isoharden", "free_sintering", "pyrolysis")


@dataclass(frozen=True, eq=False)
class Case:
    """A published model, the inputs of two of its steps, and its program with all blocks."""

    program: Program
    states: tuple[dict[str, Tensor], ...]
    part: float

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(y.name, x.name) for y in self.program.outputs for x in self.program.inputs]


@cache
def case_of(folder: Path, name: str) -> Case:
    """The case solved tightly up to its second state."""
    file, steps, tolerance, part = FILES[name]
    overrides = [f"Solvers/newton/abs_tol={tolerance}", "Solvers/newton/rel_tol=1e-12"]
    tree = read(folder / "regression" / file / "model.i", overrides)
    driver = transient_driver(Factory(tree), "driver")
    count = max(steps) + 1
    few = slice(None, None, 6) if driver.batch == (20,) else slice(None)
    prescribed = {
        n: x[:count, few] if x.ndim > 1 else x[:count]
        for n, x in driver.transient.prescribed.items()
    }
    initial = {n: x[few] if x.ndim else x for n, x in driver.transient.initial.items()}
    transient = Transient(count, prescribed, initial)
    history = Interpreter(driver.program).transient(transient)
    assert all(s.converged.all() for s in history.statuses)
    known = {**prescribed, **history.outputs}
    states = []
    for k in steps:
        inputs = {}
        for v in driver.program.inputs:
            base, back = lag(v.name)
            inputs[v.name] = known[base][k - back]
        states.append(inputs)
    return Case(driver.program, tuple(states), part)


@pytest.fixture(params=FILES)
def case(request: pytest.FixtureRequest, cases: Path) -> Case:
    return case_of(cases, request.param)


@pytest.fixture(
    params=[n if n in SMALL else pytest.param(n, marks=pytest.mark.exhaustive) for n in FILES]
)
def compiled(request: pytest.FixtureRequest, cases: Path) -> Case:
    return case_of(cases, request.param)


def step_of(inputs: Mapping[str, Tensor], variable: Variable, part: float) -> Tensor:
    """How far to move each point: a part of the increment, where there is one, or of the value."""
    base, _ = lag(variable.name)
    moves = inputs[variable.name]
    if {base, f"{base}~1"} <= inputs.keys():
        moves = inputs[base] - inputs[f"{base}~1"]
    inner = len(variable.axes) + len(variable.kind.base)
    size = moves.abs().reshape((*moves.shape[: moves.ndim - inner], -1)).amax(dim=-1)
    return torch.where(size > 0, part * size, 1e-5).reshape((*size.shape, *(1,) * inner))


def differences(case: Case, inputs: Mapping[str, Tensor], by: Variable) -> dict[str, Tensor]:
    """Each output's slope by one input, from four points around every component."""
    x, h = inputs[by.name], step_of(inputs, by, case.part)
    inner = x.shape[x.ndim - len(by.axes) - len(by.kind.base) :]
    batch = x.ndim - len(inner)
    directions = torch.eye(inner.numel(), dtype=x.dtype).reshape(-1, *(1,) * batch, *inner)
    moved = torch.cat([x + k * h * directions for k in (-2, -1, 1, 2)])
    outputs, statuses = Interpreter(case.program)({**inputs, by.name: moved})
    assert all(s.converged.all() for s in statuses)
    found = {}
    for y, values in outputs.items():
        a, b, c, d = values.unflatten(0, (4, inner.numel()))
        width = h.reshape((*h.shape[:batch], *(1,) * (a.ndim - 1 - batch)))
        found[y] = (((a - d) / 12 + (c - b) * (2 / 3)) / width).movedim(0, -1)
    return found


def test_every_block_is_the_slope_of_solutions(case: Case) -> None:
    jacobian = Interpreter(with_jacobian(case.program, case.pairs))
    found = [jacobian(inputs)[0] for inputs in case.states]
    for inputs, blocks in zip(case.states, found, strict=True):
        for x in case.program.inputs:
            for y, slope in differences(case, inputs, x).items():
                block = blocks[f"{y}:{x.name}"].reshape(slope.shape)
                noise = 1e-11 * size_of(found, y) / float(step_of(inputs, x, case.part).min())
                assert_close(block, slope, 1e-6, noise, f"{y}:{x.name}")


def test_the_kernel_gives_the_jacobian_that_the_interpreter_gives(compiled: Case) -> None:
    program = with_jacobian(compiled.program, compiled.pairs)
    kernel, interpreter = Kernel(program), Interpreter(program)
    expected = [interpreter(inputs)[0] for inputs in compiled.states]
    for inputs, blocks in zip(compiled.states, expected, strict=True):
        found, _ = kernel(inputs)
        for x in compiled.program.inputs:
            for y in compiled.program.outputs:
                name = f"{y.name}:{x.name}"
                noise = 1e-15 * size_of(expected, y.name) / float(step_of(inputs, x, 1e-3).min())
                assert_close(found[name], blocks[name], 1e-9, noise, name)


def size_of(states: Sequence[Mapping[str, Tensor]], name: str) -> float:
    """The largest entry of a variable at any of the states."""
    return max(float(state[name].abs().max()) for state in states) or 1.0


def assert_close(block: Tensor, other: Tensor, part: float, noise: float, name: str) -> None:
    """Within a part of the largest entry, or of the noise where that drowns it."""
    largest = float(block.abs().max())
    allowed = part * largest if largest > noise else noise
    assert float((block - other).abs().max()) <= allowed, (name, largest, noise)


def Inverse(a: R2) -> R2:
    """A block of 81 entries, each of them a line."""
    return inv(a)


def test_a_block_of_many_entries_is_stored_whole() -> None:
    program = with_jacobian(program_of(Inverse), [("out", "a")])
    assert len(program.outputs[-1].nodes) > OUTPUT_TILE
    noise = torch.randn(11, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inputs = {"a": torch.eye(3, dtype=torch.float64) + 0.2 * noise}
    found, want = Kernel(program)(inputs)[0], Interpreter(program)(inputs)[0]
    for name, value in want.items():
        torch.testing.assert_close(found[name], value, rtol=1e-12, atol=1e-13)
