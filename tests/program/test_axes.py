"""Axes stay apart by name, and loops over them give what written-out lines give."""

import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.codegen import build as building
from ingot.codegen.cache import Cache
from ingot.drivers.transient import TransientDriver, transient_driver
from ingot.errors import IngotError
from ingot.execute import Transient
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read, read_text
from ingot.model import Factory, build
from ingot.program import (
    Axis,
    Builder,
    Choices,
    Newton,
    Node,
    Program,
    Solve,
    Variable,
    prepared,
    sort_lines,
    with_jacobian,
)  # fmt: skip
from ingot.program.band import Band
from ingot.program.builder import Symbol
from ingot.program.implicit import close_solve, read_items
from ingot.types import Scalar

Shape = tuple[int, ...]
CELL, SLIP = Axis("cell"), Axis("slip")

# twelve grains, twelve slip systems

CRYSTAL = """
[Tensors]
  [directions]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 0], dtype=torch.int64))'
  []
  [planes]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 1], dtype=torch.int64))'
  []
[]
[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 1.0
    slip_directions = 'directions'
    slip_planes = 'planes'
  []
[]
[Models]
  [shear]
    type = ResolvedShear
  []
  [strength]
    type = SingleSlipStrengthMap
    constant_strength = 40
  []
  [rule]
    type = PowerLawSlipRule
    gamma0 = 0.1
    n = 4.5
  []
  [total]
    type = SumSlipRates
  []
  [grains]
    type = ComposedModel
    models = 'shear strength rule total'
    additional_outputs = 'slip_rates resolved_shears'
  []
  [invariant]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'stress'
    invariant = 'size'
  []
  [total_of_grains]
    type = SumSlipRates
    slip_rates = 'size'
  []
  [grain_as_slip]
    type = ComposedModel
    models = 'shear invariant total_of_grains'
  []
  [gradient]
    type = FiniteVolumeGradient
    u = 'resolved_shears'
    dx = 1
  []
  [slip_as_cell]
    type = ComposedModel
    models = 'shear gradient'
  []
  [flux]
    type = FiniteVolumeGradient
    dx = 'dx'
    grad_u = 'flux'
  []
  [left]
    type = FiniteVolumeAppendBoundaryCondition
    input = 'flux'
    bc_value = 2.0
    side = 'left'
  []
  [right]
    type = FiniteVolumeAppendBoundaryCondition
    input = 'flux_with_bc_left'
    bc_value = 5.0
    side = 'right'
  []
  [divergence]
    type = FiniteVolumeGradient
    u = 'flux_with_bc_left_with_bc_right'
    dx = 0.5
    grad_u = 'rate'
  []
  [cells]
    type = ComposedModel
    models = 'flux left right divergence'
    additional_outputs = 'flux flux_with_bc_left flux_with_bc_left_with_bc_right'
  []
[]
""".replace("dx = 'dx'", "dx = 1.0")


def traced(model: str, **shapes: Shape) -> Program:
    return prepared(build(read_text(CRYSTAL), model), shapes)


def axes_of(program: Program) -> dict[str, tuple[Axis, ...]]:
    return {v.name: v.axes for v in (*program.inputs, *program.outputs)}


def polycrystal() -> dict[str, Tensor]:
    """Four points of twelve grains."""
    rng = np.random.default_rng(0)
    frames = np.linalg.qr(rng.standard_normal((4, 12, 3, 3)))[0]
    values = {
        "stress": 100 * rng.standard_normal((4, 12, 6)),
        "orientation_matrix": frames,
        "slip_hardening": rng.uniform(0, 30, (4, 12)),
    }
    return {name: torch.from_numpy(value) for name, value in values.items()}


GRAINS = {"stress": (12,), "orientation_matrix": (12,), "slip_hardening": (12,)}


@pytest.mark.parametrize(
    "run",
    (Interpreter, Kernel, lambda p: Kernel(p, choices=Choices(unroll_limit=0))),
    ids=("interpret", "lines", "loops"),
)
def test_twelve_grains_of_twelve_slip_systems_are_a_loop_over_grains(
    run: Callable[[Program], Interpreter],
) -> None:
    inputs = polycrystal()
    found, _ = run(traced("grains", **GRAINS))(inputs)
    assert found["slip_rates"].shape == (4, 12, 12) and found["sum_slip_rates"].shape == (4, 12)
    one = Interpreter(traced("grains"))
    for grain in range(12):
        expected, _ = one({name: x[:, grain] for name, x in inputs.items()})
        for name, x in expected.items():
            torch.testing.assert_close(found[name][:, grain], x, rtol=1e-12, atol=1e-14)


def test_an_axis_of_the_file_keeps_apart_from_a_law_s_own_of_equal_extent() -> None:
    axes = axes_of(traced("grains", **GRAINS))
    assert axes["stress"] == axes["sum_slip_rates"] == (Axis("axis1"),)
    assert axes["slip_rates"] == (Axis("axis1"), SLIP)


def test_axes_that_no_law_names_are_counted_leftwards() -> None:
    axes = axes_of(traced("grains", stress=(3, 12), slip_hardening=(12,)))
    assert axes["stress"] == (Axis("axis2"), Axis("axis1"))
    assert axes["slip_hardening"] == (Axis("axis1"),)
    assert axes["slip_rates"] == (Axis("axis2"), Axis("axis1"), SLIP)


def test_an_unnamed_axis_takes_the_name_of_the_law_that_reads_it() -> None:
    axes = axes_of(traced("rule", resolved_shears=(5, 7), slip_strengths=(7,)))
    assert axes["resolved_shears"] == (Axis("axis2"), SLIP)
    assert axes["slip_strengths"] == (SLIP,)
    assert axes_of(traced("flux", u=(9,))) == {"u": (CELL,), "flux": (Axis("cell", -1),)}


def test_a_law_that_makes_grains_meet_slip_systems_names_both() -> None:
    with pytest.raises(IngotError, match=r"'slip' of 'stress' meets .* 'slip' in \[shear\]"):
        traced("grain_as_slip", stress=(12,))


def test_two_named_axes_that_meet_are_both_named() -> None:
    with pytest.raises(IngotError, match=r"'cell' and 'slip' meet in \[gradient\]"):
        traced("slip_as_cell")


DIFFERENT = (
    ("grains", {"stress": (12,), "slip_hardening": (10,)}, "'slip_hardening' with 10 .* with 12"),
    ("rule", {"resolved_shears": (12,), "slip_strengths": (11,)}, "'slip_strengths' with 11 .* 12"),
    ("grains", {"stress": (12,), "orientation_matrix": (4, 11)}, "with 1[12] .*with 1[12]"),
)


@pytest.mark.parametrize(("model", "shapes", "message"), DIFFERENT)
def test_extents_that_differ_are_both_named(
    model: str, shapes: dict[str, Shape], message: str
) -> None:
    with pytest.raises(IngotError, match=message):
        traced(model, **shapes)


def test_fluxes_with_both_boundaries_differenced_again_live_on_cells() -> None:
    program = traced("cells", u=(7,))
    axes = axes_of(program)
    assert axes["u"] == axes["rate"] == (CELL,)
    assert axes["flux"] == (Axis("cell", -1),)
    assert axes["flux_with_bc_left"] == (CELL,)
    assert axes["flux_with_bc_left_with_bc_right"] == (Axis("cell", 1),)
    u = torch.linspace(0, 1, 7, dtype=torch.float64).square()
    edges = torch.cat([torch.tensor([2.0]), -u.diff(), torch.tensor([5.0])])
    for run in (
        Interpreter(program),
        Kernel(program),
        Kernel(program, choices=Choices(unroll_limit=0)),
    ):
        found, _ = run({"u": u})
        torch.testing.assert_close(found["flux_with_bc_left_with_bc_right"], edges)
        torch.testing.assert_close(found["rate"], -2 * edges.diff())


# loops and lines


def driver(cases: Path, file: str, *overrides: str) -> TransientDriver:
    tree = read(cases / "regression" / file, overrides)
    return transient_driver(Factory(tree), "driver")


def state_at(driver: TransientDriver, step: int) -> dict[str, Tensor]:
    """The inputs of one step of a transient."""
    prescribed = {name: x[: step + 1] for name, x in driver.transient.prescribed.items()}
    transient = Transient(step + 1, prescribed, driver.transient.initial)
    history = Interpreter(driver.program).transient(transient)
    known = {**history.outputs, **prescribed}
    inputs = {}
    for v in driver.program.inputs:
        base, _, back = v.name.partition("~")
        inputs[v.name] = known[base][step - int(back or 0)]
    return inputs


def assert_loops_are_lines(program: Program, inputs: dict[str, Tensor]) -> None:
    """Relative to the largest entry of each output."""
    loops = Kernel(program, choices=Choices(unroll_limit=0))
    lines = Kernel(program, choices=Choices(unroll_limit=10**9))
    inside = [n for s in loops.compiled.solves for n in sort_lines(s.rows)]
    assert any(n.axes for n in inside), "nothing was left to loop over"
    assert not any(n.axes for s in lines.compiled.solves for n in sort_lines(s.rows))
    (found, statuses), (expected, others) = loops(inputs), lines(inputs)
    for a, b in zip(statuses, others, strict=True):
        assert a.converged.all() and torch.equal(a.iterations, b.iterations)
    for name, x in expected.items():
        scale = float(x.abs().max())
        torch.testing.assert_close(found[name], x, rtol=1e-12, atol=1e-12 * scale)


def cells(count: int) -> str:
    ends = "Scalar(0.0).sub_batch, Scalar(1.0).sub_batch"
    return f"Tensors/edges/expr:='linspace({ends}, {count + 1})'"


def test_loops_over_cells_are_lines(cases: Path) -> None:
    case = driver(cases, "finite_volume/combined/model.i", cells(12))
    blocks = [("concentration", x) for x in ("concentration~1", "t", "t~1")]
    assert_loops_are_lines(with_jacobian(case.program, blocks), state_at(case, 5))


CRYSTALS = "solid_mechanics/crystal_plasticity/single_crystal_coupled/model.i"


def test_loops_over_slip_systems_are_lines(cases: Path) -> None:
    case = driver(cases, CRYSTALS)
    assert_loops_are_lines(case.program, state_at(case, 6))


@pytest.mark.exhaustive
def test_jacobians_of_loops_over_slip_systems_are_those_of_lines(cases: Path) -> None:
    case = driver(cases, CRYSTALS)
    blocks = [(y.name, x.name) for y in case.program.outputs for x in case.program.inputs]
    assert_loops_are_lines(with_jacobian(case.program, blocks), state_at(case, 6))


def compile_seconds(program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Processor time of this process and of the compiler, with nothing cached."""
    monkeypatch.setattr(building, "open_cache", lambda _: Cache(folder))

    def spent() -> float:
        usage = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(u.ru_utime + u.ru_stime for u in usage)

    before = spent()
    Kernel(program)
    return spent() - before


def test_compile_time_does_not_grow_with_the_cells(
    cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (driver(cases, "finite_volume/combined/model.i", cells(n)) for n in (50, 800))
    took: dict[int, list[float]] = {50: [], 800: []}
    for i in range(3):
        for count, case in ((50, few), (800, many)):
            took[count].append(
                compile_seconds(case.program, tmp_path / f"{i}-{count}", monkeypatch)
            )
    assert median(took[800]) < 1.2 * median(took[50])


def test_eight_hundred_cells_agree_with_the_interpreter(cases: Path) -> None:
    case = driver(
        cases,
        "finite_volume/combined/model.i",
        cells(800),
        "Tensors/time/expr:='linspace(Scalar(0.0).dynamic_batch, Scalar(0.2).dynamic_batch, 4)'",
    )
    kernel, reference = Kernel(case.program), Interpreter(case.program)
    found, expected = kernel.transient(case.transient), reference.transient(case.transient)
    assert found.outputs["concentration"].shape == (4, 800)
    torch.testing.assert_close(
        found.outputs["concentration"], expected.outputs["concentration"], rtol=1e-10, atol=1e-12
    )


# bands

Field = Callable[[list[Node]], Node]


def banded(extent: int, newton: Newton) -> Program:
    """Two unknowns a cell that read two cells to either side; p and q scale the diagonal."""
    builder = Builder({"cell": extent})

    def field(op: str, name: str) -> Variable:
        return Variable(name, Scalar, (CELL,), (builder.node(op, (), (name, 0), (CELL,)),))

    def scalar(x: Node) -> Scalar:
        return Scalar((Symbol(builder, x),))

    def at(x: Node, shift: int) -> Scalar:
        """Entry i is entry i + shift, or zero beyond the ends."""
        ahead, behind = max(shift, 0), max(-shift, 0)
        kept = builder.along("window", x, axis="cell", first=ahead, last=behind)
        return scalar(builder.along("pad", kept, axis="cell", first=behind, last=ahead))

    given = [field("input", name) for name in ("a", "b", "p", "q", "f", "g")]
    p, q, f, g = (scalar(v.nodes[0]) for v in given[2:])
    unknowns = field("unknown", "a"), field("unknown", "b")
    a, b = (v.nodes[0] for v in unknowns)
    u, v = scalar(a), scalar(b)
    rows = (
        p * u + 0.02 * u * u * u + v + 1.3 * at(a, 1) - 0.7 * at(b, -2) + 0.02 * at(a, 2) * u - f,
        q * v + 0.9 * u + 0.6 * at(b, 1) * 0.5 + 1.1 * at(a, -1) + 0.25 * at(b, 2) - g,
    )
    residuals = tuple(
        Variable(f"{n}_residual", Scalar, (CELL,), (row.data[0].node,))
        for n, row in zip("ab", rows, strict=True)
    )
    solve = Solve("cells", unknowns, residuals, (), newton)
    node = close_solve(builder, solve, [v.nodes[0] for v in given[:2]])
    outputs = tuple(
        Variable(v.name, Scalar, (CELL,), (item,))
        for v, item in zip(unknowns, read_items(builder, node), strict=True)
    )
    return Program(builder.extents, tuple(given), (), outputs)


def fields(points: int, extent: int, diagonal: Sequence[float]) -> dict[str, Tensor]:
    """Right-hand sides at random, the diagonals as given for each point."""
    rng = np.random.default_rng(2)
    found = {name: torch.from_numpy(rng.standard_normal((points, extent))) for name in "abfg"}
    scale = torch.tensor(diagonal, dtype=torch.float64)[:, None].expand(points, extent)
    return {**found, "p": scale.clone(), "q": scale.clone()}


def band(newton: Newton) -> tuple[Kernel, Interpreter]:
    """Executors of the band with some of its tangents; the kernel keeps its axis a loop."""
    program = with_jacobian(banded(11, newton), [("a", "f"), ("b", "f"), ("b", "q")])
    return Kernel(program, choices=Choices(unroll_limit=0)), Interpreter(program)


def test_a_band_of_two_unknowns_a_cell_is_solved_as_a_dense_system_is() -> None:
    kernel, reference = band(Newton())
    (factored,) = (s.factored for s in kernel.compiled.solves)
    assert factored is not None and isinstance(factored.newton, Band)
    assert (factored.newton.reach, factored.newton.components, factored.newton.half) == (2, 2, 5)
    inputs = fields(5, 11, [6.0, 8.0, 10.0, 12.0, -9.0])
    assert assert_solved_alike(kernel, reference, inputs).tolist() == [0] * 5


def test_a_band_whose_pivots_vanish_is_solved_with_pivoting() -> None:
    one_update = Newton(max_its=2, abs_tol=0.0, rel_tol=1e300)
    inputs = fields(5, 11, [6.0, 8.0, 10.0, 12.0, -9.0])
    inputs["a"][1::2] = 0.0
    inputs["p"][1, 0], inputs["p"][3, 0] = 0.0, 1e-13
    assert assert_solved_alike(*band(one_update), inputs).tolist() == [0, 1, 0, 1, 0]


def assert_solved_alike(
    kernel: Kernel, reference: Interpreter, inputs: dict[str, Tensor]
) -> Tensor:
    """Values and tangents; how often each point was pivoted."""
    (found, (status,)), (expected, (other,)) = kernel(inputs), reference(inputs)
    assert status.converged.all() and other.converged.all()
    assert torch.equal(status.iterations, other.iterations)
    for name, x in expected.items():
        torch.testing.assert_close(found[name], x, rtol=1e-9, atol=1e-10)
    return status.pivoted


def test_constants_fold_in_whatever_order_their_axes_stand() -> None:
    builder = Builder({"cell": 2, "slip": 3})
    ours = np.arange(6.0).reshape(3, 2)
    first, second = builder.table(ours, (SLIP, CELL)), builder.table(ours.T**2, (CELL, SLIP))
    folded = builder.emit("add", first, second)
    assert folded.axes == (CELL, SLIP)
    assert np.array_equal(builder.values(folded), ours.T + ours.T**2)
