"""Adjoints are the transposes of forward derivatives, on every executor that has them."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ingot.drivers import TransientDriver, transient_driver
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read, read_text
from ingot.model import Factory
from ingot.program import (
    Axis,
    Builder,
    Choices,
    Program,
    Variable,
    freeze,
    prepared,
    trace,
    verify,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.types import Scalar
from tests.package.test_cases import CASES
from tests.packages import DIFFUSION
from tests.program.graphs import SHAPES, programs
from tests.systems import implicit

Arrays = Mapping[str, Tensor]
TOLERANCE = 1e-9
FEW = ("chemical_reactions/pyrolysis", "finite_volume/combined")
"""Published updates that are tested in every run: one on lines, one along an axis."""


def width(program: Program, v: Variable) -> tuple[int, int]:
    return program.size(v.axes), math.prod(v.kind.base)


def cotangents_for(program: Program, points: int) -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(points)
    return {
        f"a.{v.name}": torch.randn(
            points, *(program.extent(a) for a in v.axes), *v.kind.base, generator=source
        ).double()
        for v in program.outputs
    }  # fmt: skip


def transposed(program: Program, inputs: Arrays, cotangents: Arrays, by: list[str]) -> Arrays:
    """The adjoints that the blocks of forward mode give, by the interpreter."""
    gives = {v.name: v for v in program.outputs}
    known = {v.name: v for v in program.given}
    pairs = [(y, x) for y in gives for x in by]
    blocks, statuses = Interpreter(with_jacobian(program, pairs))(inputs)
    assert all(bool(s.converged.all()) for s in statuses)
    points = len(next(iter(cotangents.values())))
    found = {}
    for x in by:
        total = torch.zeros(points, *width(program, known[x]), dtype=torch.float64)
        for y, v in gives.items():
            entries, base = width(program, v)
            block = blocks[f"{y}:{x}"].reshape(points, entries, total.shape[1], base, -1)
            bar = cotangents[f"a.{y}"].reshape(points, entries, base)
            total += torch.einsum("nabcd,nac->nbd", block, bar)
        found[f"a.{x}"] = total
    return found


def assert_transposed(
    program: Program, run: Interpreter | Kernel, inputs: Arrays, by: list[str],
    tolerance: float = TOLERANCE,
) -> None:  # fmt: skip
    """Every adjoint within a part of its largest entry.

    Where it is zero but for rounding, that is a thousandth of the outputs over the input.
    """
    points = len(next(iter(inputs.values())))
    bars = cotangents_for(program, points)
    expected = transposed(program, inputs, bars, by)
    dtype = run.dtype if isinstance(run, Interpreter) else run.entry.dtype
    found, _ = run({n: x.to(dtype) for n, x in {**inputs, **bars}.items()})
    values = {**inputs, **{p.variable.name: p.value.data for p in program.parameters}}
    outputs = sum(float(found[v.name].abs().max()) for v in program.outputs)
    for name, wanted in expected.items():
        size = float(values[name[2:]].abs().max())
        usual = outputs / size if size else 0.0
        scale = max(float(wanted.abs().max()), 1e-3 * usual, 1e-30)
        off = float((found[name].reshape(wanted.shape) - wanted).abs().max()) / scale
        assert off <= tolerance, f"{name} is off by {off:.1e}"


# published updates


def published(cases: Path) -> list[Path]:
    folders = (cases / "regression", cases / "verification")
    return [
        file for folder in folders for file in sorted(folder.rglob("*.i"))
        if "ImplicitUpdate" in file.read_text()
    ]  # fmt: skip


def states(driver: TransientDriver, program: Program) -> Arrays:
    """Six steps of a driver; batched parameters are there for the whole batch."""
    result = driver.run("kernel")
    batched = any(p.batched for p in program.parameters)
    found = {}
    for v in program.inputs:
        shape = (*(program.extent(a) for a in v.axes), *v.kind.base)
        rows = []
        for i, step in enumerate(torch.linspace(2, result.steps - 1, 6).int().tolist()):
            x = result.flat.given(v.name, step)
            x = torch.zeros((), dtype=torch.float64) if x is None else x
            every = x.expand((*result.batch, *shape)).reshape(-1, *shape)
            rows.append(every if batched else every[i % len(every)])
        found[v.name] = rows[-1] if batched else torch.stack(rows)
    return found


def case(file: Path) -> tuple[Program, list[str], Arrays]:
    """The program of a driver's model with all parameters open, by what to differentiate, where."""
    factory = Factory(read(file))
    names = [n for n in factory.tree.names("Drivers") if n == "driver" or "driver" in n]
    driver = transient_driver(factory, names[0])
    traced = trace(driver.model, dict(driver.shapes))
    promoted = [p.variable.name for p in traced.parameters if not p.batched]
    program = freeze(traced, torch.finfo(torch.float64).eps, promoted)
    return program, [*(v.name for v in program.inputs), *promoted], states(driver, program)


def assert_case_is_transposed(file: Path) -> None:
    program, by, inputs = case(file)
    adjoint = with_adjoint(program, [v.name for v in program.outputs], by)
    assert_transposed(program, Interpreter(adjoint), inputs, by)
    assert_transposed(program, Kernel(adjoint), inputs, by)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_adjoints_of_a_published_update_are_its_transposed_blocks(name: str, cases: Path) -> None:
    assert_case_is_transposed(cases / "regression" / name / "model.i")


@pytest.mark.exhaustive
def test_adjoints_of_every_published_update_are_its_transposed_blocks(cases: Path) -> None:
    held = []
    for file in published(cases):
        try:
            assert_case_is_transposed(file)
        except IngotError as error:
            codes = {p.code for p in error.problems}
            assert codes <= {"unknown-type", "unknown-option", "missing-option"}, file
        except AssertionError as error:
            raise AssertionError(f"{file}: {error}") from error
        else:
            held.append(file)
    assert len(held) >= 16, "files that ran before are among those with unknown types"


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("forward")])
def test_adjoints_of_an_update_without_a_driver_are_its_transposed_blocks(
    name: str, cases: Path
) -> None:
    (file,) = (cases / "aoti" / name).glob("*.i")
    factory = Factory(read(file))
    model = factory.model("model")
    traced = trace(model, factory.settings.extents(model))
    promoted = [p.variable.name for p in traced.parameters]
    program = freeze(traced, torch.finfo(torch.float64).eps, promoted)
    by = [*(v.name for v in program.inputs), *promoted]
    source = torch.Generator().manual_seed(0)
    inputs = {}
    for v in program.inputs:
        low, high = CASES[name].ranges.get(v.name, (-1.0, 1.0))
        shape = (6, *(program.extent(a) for a in v.axes), *v.kind.base)
        inputs[v.name] = low + (high - low) * torch.rand(shape, generator=source).double()
    adjoint = with_adjoint(program, [v.name for v in program.outputs], by)
    assert_transposed(program, Interpreter(adjoint), inputs, by)
    assert_transposed(program, Kernel(adjoint), inputs, by)


# drawn programs

some = settings(
    max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 10**9])
@pytest.mark.parametrize("shape", [s for s in SHAPES if "solve" in s])
@some
@given(data=st.data())
def test_kernels_of_drawn_programs_pull_what_blocks_push(
    shape: str, limit: int, data: st.DataObject
) -> None:
    drawn = data.draw(programs(**SHAPES[shape]))
    program = drawn.program
    by = [v.name for v in program.inputs]
    kernel = Kernel(with_adjoint(program, ["out"], by), choices=Choices(unroll_limit=limit))
    inputs = {
        n: torch.from_numpy(x).repeat(9, *(1,) * (x.ndim - 1)) for n, x in drawn.numbers().items()
    }
    assert_transposed(program, kernel, inputs, by)


# corners


def seesaw(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    """Its first pivot is safe at every probe state, and zero where g0 is 500."""
    return [
        (g[0] - 500.0) * u[0] + g[1] * u[1] + g[1] * u[2] - g[2],
        g[1] * u[0] + g[3] * u[1] - g[1] * u[2] - g[4],
        g[3] * u[0] - g[1] * u[1] + (g[3] + g[1]) * u[2] - g[5],
    ]


@pytest.mark.slow
def test_an_adjoint_whose_pivot_vanishes_is_solved_again() -> None:
    program = implicit(seesaw, 3, 6)
    by = [v.name for v in program.inputs]
    kernel = Kernel(with_adjoint(program, ["u0", "u1", "u2"], by))
    source = np.random.default_rng(0)
    inputs = {n: torch.from_numpy(source.uniform(1.0, 2.0, 9)) for n in by}
    inputs["g0"] = torch.tensor([500.0, 1.0, 500.0, 500.0 + 1e-12, 2.0, 3.0, 4.0, 5.0, 500.0])
    inputs["g0"] = inputs["g0"].double()
    assert_transposed(program, kernel, inputs, by)
    assert int(kernel({**inputs, **cotangents_for(program, 9)})[1][0].pivoted.max()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 10**9])
def test_adjoints_of_neighbours_are_differences(limit: int) -> None:
    model = Factory(read_text(DIFFUSION)).model("diffusion")
    program = prepared(model, {"c": (5,)})
    by = [v.name for v in program.inputs if v.name != "c"]
    choices = Choices(unroll_limit=limit, band_from=3)
    adjoint = Kernel(with_adjoint(program, ["c"], by), choices=choices)
    values = Interpreter(program)
    source = torch.Generator().manual_seed(0)
    inputs = {
        v.name: 0.2 + 0.3 * torch.rand(2, *(program.extent(a) for a in v.axes), generator=source)
        .double() for v in program.inputs
    }  # fmt: skip
    inputs["t"] = inputs["t~1"] + 0.5
    bars = cotangents_for(program, 2)
    found, _ = adjoint({**inputs, **bars})
    step = 1e-6
    for x in by:
        for place in np.ndindex(tuple(inputs[x].shape[1:])):
            sides = []
            for sign in (1.0, -1.0):
                moved = inputs[x].clone()
                moved[(slice(None), *place)] += sign * step
                outputs, _ = values({**inputs, x: moved})
                sides.append((outputs["c"] * bars["a.c"]).sum(-1))
            slope = (sides[0] - sides[1]) / (2 * step)
            torch.testing.assert_close(
                found[f"a.{x}"][(slice(None), *place)], slope, rtol=1e-5, atol=1e-7
            )


@pytest.mark.slow
def test_adjoints_in_single_precision_are_those_of_double() -> None:
    program = implicit(lambda u, g: [u[0] + 0.2 * u[0] ** 3 - g[0], u[1] * g[1] - u[0]], 2, 2)
    by = ["g0", "g1"]
    adjoint = with_adjoint(program, ["u0", "u1"], by)
    single = Kernel(adjoint, dtype=torch.float32)
    inputs = {n: torch.linspace(0.5, 1.5, 9, dtype=torch.float64) for n in ("u0", "u1", *by)}
    assert_transposed(program, single, inputs, by, tolerance=1e-5)


def test_a_point_that_fails_has_no_adjoints() -> None:
    program = implicit(lambda u, g: [u[0] * u[0] - g[0]], 1, 1)
    adjoint = with_adjoint(program, ["u0"], ["g0"])
    inputs = {
        "u0": torch.ones(2, dtype=torch.float64),
        "g0": torch.tensor([4.0, -1.0], dtype=torch.float64),
        "a.u0": torch.ones(2, dtype=torch.float64),
    }
    for run in (Interpreter(adjoint), Kernel(adjoint)):
        found, (status,) = run(inputs)
        assert status.converged.tolist() == [True, False]
        assert found["a.g0"][0] == pytest.approx(0.25, rel=1e-9)
        assert bool(found["a.g0"][1].isnan())


def test_an_output_that_no_line_varies_along_its_axis_sums_its_cotangents() -> None:
    b = Builder({"cell": 4})
    x = b.node("input", (), ("x", 0))
    given = Variable("x", Scalar, (), (x,))
    gives = Variable("y", Scalar, (Axis("cell"),), (b.emit("mul", 3.0, x),))
    program = verify(with_adjoint(Program(b.extents, (given,), (), (gives,)), ["y"], ["x"]))
    bar = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    found, _ = Interpreter(program)({"x": torch.ones(1, dtype=torch.float64), "a.y": bar})
    assert found["a.x"].tolist() == [30.0]


def test_an_input_may_be_called_as_an_adjoint_is() -> None:
    b = Builder()
    x, other = (b.node("input", (), (name, 0)) for name in ("x", "a.y"))
    given = tuple(Variable(n, Scalar, (), (v,)) for n, v in (("x", x), ("a.y", other)))
    gives = Variable("y", Scalar, (), (b.emit("mul", x, other),))
    program = with_adjoint(Program({}, given, (), (gives,)), ["y"], ["x", "a.y"])
    inputs = [n for v in program.inputs for n in v.nodes]
    assert len({n.id for n in inputs}) == 3
