"""Graphs agree with the interpreter: as torch reads them for many models, compiled for a few."""

import logging
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor

from ingot.codegen.cache import Cache
from ingot.drivers import build_driver, self_checking
from ingot.errors import IngotError
from ingot.execute import Status, Transient, inductor_pool
from ingot.execute import inductor as backend
from ingot.execute.inductor import GraphPlan, lower, plan_graphs
from ingot.execute.inductor_run import InductorDescription, InductorProgram
from ingot.execute.inductor_trial import TRIAL_BATCHES, Trial
from ingot.execute.interpret import Interpreter
from ingot.execute.torch_source import PrintedGraph
from ingot.graphs.torch_private import load_graph
from ingot.hit import read, read_text
from ingot.model import build
from ingot.program import (
    Axis,
    Builder,
    Newton,
    Node,
    Operation,
    Program,
    Solve,
    Variable,
    freeze,
    is_batch_independent,
    prepared,
    trace,
    with_jacobian,
)
from ingot.program.builder import Symbol
from ingot.program.implicit import close_solve, read_items
from ingot.program.operations import Unstructured
from ingot.types import SR2, Scalar, sin
from tests.compositions import NESTED, TEXTS, TOGETHER
from tests.execute.test_newton import (
    BLOCKS,
    assert_judged_alike,
    by_oracle,
    cubes,
    draw,
    slanted,
    straight,
)
from tests.program.graphs import NEST_ON_AXES, SHAPES, Drawn, programs
from tests.program.oracle import evaluate_program
from tests.systems import implicit, overshooting, plasticity, program_of

Pair = tuple[str, str]
BATCHES = [(), (1,), (7,), (2, 3)]
SEVEN = [
    "models/solid_mechanics/elasticity/LinearIsotropicElasticity.i",
    "regression/solid_mechanics/viscoplasticity/chaboche/model.i",
    "regression/solid_mechanics/rate_independent_plasticity/isoharden/model.i",
    "regression/solid_mechanics/viscoplasticity/free_sintering/model.i",
    "regression/solid_mechanics/crystal_plasticity/single_crystal_coupled/model.i",
    "regression/finite_volume/combined/model.i",
    "regression/chemical_reactions/pyrolysis/model.i",
]


class Printing:
    """A printed graph that torch runs line by line."""

    def __init__(self, printed: PrintedGraph, dtype: torch.dtype) -> None:
        space: dict[str, Any] = {"torch": torch}
        exec(printed.source, space)
        self.graph = space["graph"]
        self.tables = torch.tensor(printed.tables, dtype=dtype)
        self.index = torch.tensor(printed.index, dtype=torch.int64)

    def boxed_run(self, given: list[Tensor]) -> list[Tensor]:
        assert all(x.is_contiguous() for x in given)
        results = list(self.graph(self.tables, self.index, *given))
        given.clear()
        return results


def printing(
    program: Program, pairs: Sequence[Pair] = (), dtype: torch.dtype = torch.float64, **more: Any
) -> InductorProgram:
    """A program run by its printed graphs, without a compiler."""
    plan = plan_graphs(program, pairs, "model", dtype=dtype)
    graphs = {g.file: Printing(g.printed, dtype) for g in plan.graphs}
    held = {p.variable.name: p.value.data for p in program.parameters}
    return InductorProgram(
        graphs.__getitem__, plan.description, parameters=held, load=lambda graph: graph, **more
    )


def every_pair(program: Program) -> list[Pair]:
    names = [v.name for v in program.inputs] + [p.variable.name for p in program.parameters]
    return [(y.name, x) for y in program.outputs for x in names]


def sampled(
    program: Program, batch: tuple[int, ...], dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(1)
    found = {}
    for v in program.inputs:
        sizes = [program.extent(a) for a in v.axes]
        shape = (*batch, *sizes, *v.kind.base)
        found[v.name] = (0.1 * torch.rand(shape, generator=source)).to(dtype)
    if "t" in found:
        found["t"] = found["t~1"] + 0.1
    return found


def derivatives(
    program: Program, pairs: Sequence[Pair], inputs: Mapping[str, Tensor]
) -> dict[Pair, Tensor]:
    """By the interpreter, of the whole program; blocks that are the same everywhere unbatched."""
    wide = with_jacobian(program, pairs)
    outputs, _ = Interpreter(wide, dtype=next(iter(inputs.values())).dtype)(inputs)
    variables = {v.name: v for v in wide.outputs}
    found = {}
    for y, x in pairs:
        block = outputs[f"{y}:{x}"]
        if is_batch_independent(variables[f"{y}:{x}"]):
            rank = block.ndim - len(variables[f"{y}:{x}"].axes)
            rank -= len(variables[f"{y}:{x}"].kind.base)
            block = block[(0,) * rank]
        found[y, x] = block
    return found


def assert_agrees(
    run: InductorProgram, program: Program, inputs: Mapping[str, Tensor], pairs: Sequence[Pair]
) -> None:
    outputs, statuses, blocks = run.run(inputs, slopes=True)
    expected, told = Interpreter(program, dtype=run.dtype)(inputs)
    assert_close(outputs, expected)
    assert_same_status(statuses, told)
    alone, _ = run(inputs)
    for name, x in outputs.items():
        assert torch.equal(x.nan_to_num(), alone[name].nan_to_num()), f"other bits of {name}"
    assert_close(blocks, derivatives(program, pairs, inputs))


def assert_close(found: Mapping[Any, Tensor], expected: Mapping[Any, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for key, want in expected.items():
        near = 1e-9 if want.dtype == torch.float64 else 1e-4
        scale = float(want.nan_to_num().abs().max()) if want.numel() else 0.0
        torch.testing.assert_close(
            found[key],
            want,
            rtol=near,
            atol=near * scale,
            equal_nan=True,
            msg=lambda m, k=key: f"{k}: {m}",
        )


def assert_same_status(found: Sequence[Status], expected: Sequence[Status]) -> None:
    assert [s.solve for s in found] == [s.solve for s in expected]
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a.reason, b.reason)
        assert torch.equal(a.iterations, b.iterations)
        assert torch.equal(a.accepted, b.accepted)
        torch.testing.assert_close(a.residual, b.residual, rtol=1e-3, atol=1e-12, equal_nan=True)


# printed graphs


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("name", TEXTS)
def test_composition_agrees_with_the_interpreter(name: str, batch: tuple[int, ...]) -> None:
    program = program_of(TEXTS[name], "model")
    pairs = every_pair(program)
    assert_agrees(printing(program, pairs), program, sampled(program, batch), pairs)


def test_inputs_of_different_batches_broadcast() -> None:
    program = program_of(TEXTS["middle"], "model")
    pairs = every_pair(program)
    inputs = sampled(program, (2, 3))
    inputs["a"], inputs["b"] = inputs["a"][0], inputs["b"][:, :1]
    assert_agrees(printing(program, pairs), program, inputs, pairs)


@pytest.mark.parametrize("points", [(), (4,), (3, 4)], ids=str)
def test_promoted_parameter_inside_a_solve_varies_or_not(points: tuple[int, ...]) -> None:
    traced = trace(build(read_text(TEXTS["middle"]), "model"))
    names = [p.variable.name for p in traced.parameters]
    program = freeze(traced, 2.2e-16, keep=names)
    pairs = every_pair(program)
    run = printing(program, pairs)
    inputs = sampled(program, (3, 4))
    factor = 1.0 + 0.1 * torch.rand(points, generator=torch.Generator().manual_seed(5))
    given = {p.variable.name: p.value.data * factor.double() for p in program.parameters}
    opened = replace(
        program, inputs=(*program.inputs, *(p.variable for p in program.parameters)), parameters=()
    )
    assert_agrees(run, opened, {**inputs, **given}, pairs)


@pytest.mark.parametrize("linesearch", ["NONE", "BACKTRACKING", "STRONG_WOLFE"])
@pytest.mark.parametrize("stop", ["point", "batch"])
def test_every_rule_of_newton_is_kept(linesearch: Any, stop: Any) -> None:
    newton = Newton(linesearch=linesearch, stop=stop, max_its=12, linesearch_cutback=1.7)
    program = implicit(overshooting, 2, 3, newton)
    source = torch.Generator().manual_seed(3)
    inputs = {v.name: torch.rand(40, generator=source).double() * 3 - 1 for v in program.inputs}
    run = printing(program)
    outputs, statuses = run(inputs)
    expected, told = Interpreter(program)(inputs)
    assert_same_status(statuses, told)
    assert_close(outputs, expected)
    assert len(set(told[0].reason.tolist())) > 1, "no point fails, or all do"


def test_rules_can_be_replaced_at_load() -> None:
    program = implicit(overshooting, 2, 3, Newton(max_its=50))
    inputs = {v.name: torch.full((2,), 0.3, dtype=torch.float64) for v in program.inputs}
    _, (status,) = printing(program, rules={"update": Newton(max_its=2)})(inputs)
    assert int(status.iterations.max()) == 1


def test_a_bad_point_spoils_no_other() -> None:
    program = program_of(TEXTS["middle"], "model")
    inputs = sampled(program, (3,))
    inputs["x~1"][1] = math.inf
    outputs, (status,) = printing(program)(inputs)
    assert status.converged.tolist() == [True, False, True]
    assert outputs["y"].isfinite().tolist() == [True, False, True]


def test_plasticity_with_line_search_agrees() -> None:
    text = plasticity("FBComplementarity", isotropic=True, kinematic=False)
    program = program_of(text.replace("type = Newton\n", "type = NewtonWithLineSearch\n"))
    inputs = sampled(program, (5,))
    inputs = {n: x * (0.05 if n == "E" else 0.0) for n, x in inputs.items()} | {
        "t": torch.ones(5, dtype=torch.float64)
    }
    pairs = [("plastic_strain", "E"), ("flow_rate", "plastic_strain~1")]
    assert_agrees(printing(program, pairs), program, inputs, pairs)


# solves inside residuals


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_solve_inside_a_residual_agrees(batch: tuple[int, ...]) -> None:
    program, together = (program_of(text, "model") for text in (NESTED, TOGETHER))
    pairs = every_pair(program)
    run = printing(program, pairs)
    inputs = sampled(program, batch)
    inputs["f"] = inputs["f"] * 10
    assert_agrees(run, program, inputs, pairs)
    outputs, statuses, blocks = run.run(inputs, slopes=True)
    assert [s.solve for s in statuses] == ["solve_z", "solve_x"]
    expected, _ = Interpreter(together)(inputs)
    assert_close(outputs, {name: expected[name] for name in outputs})
    assert_close(blocks, derivatives(together, pairs, inputs))


def waves(seed: int, rows: int, reads: int) -> Any:
    """Functions of some scalars whose Jacobian is small, so that Newton's method converges."""
    weights = torch.rand(rows, reads, generator=torch.Generator().manual_seed(seed)).tolist()

    def values(x: list[Scalar]) -> list[Scalar]:
        return [
            0.3 * sin(sum((w * a for w, a in zip(row, x, strict=True)), x[0])) for row in weights
        ]

    return values


@pytest.mark.parametrize("seed", range(6))
def test_two_solves_inside_a_residual_agree_with_one_system(seed: int) -> None:
    first, second, last = (
        waves(3 * seed, 1, 6),
        waves(3 * seed + 1, 2, 8),
        waves(3 * seed + 2, 2, 8),
    )
    newton = Newton(abs_tol=1e-13, rel_tol=1e-15)

    def solve_inside(name: str, count: int, residual: Any, start: Scalar) -> list[Scalar]:
        builder = start.data[0].builder
        nodes = [builder.placeholder("unknown", (), name, i) for i in range(count)]
        unknowns = [Variable(f"{name}{i}", Scalar, (), (n,)) for i, n in enumerate(nodes)]
        rows = residual([Scalar((Symbol(builder, n),)) for n in nodes])
        residuals = [Variable(f"r{i}", Scalar, (), (x.data[0].node,)) for i, x in enumerate(rows)]
        solve = Solve(name, tuple(unknowns), tuple(residuals), (), newton)
        node = close_solve(builder, solve, [start.data[0].node] * count)
        return [Scalar((Symbol(builder, n),)) for n in read_items(builder, node)]

    def step(x: list[Scalar], change: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        return [a - b - h for a, b, h in zip(x, change, g, strict=False)]

    def inside(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        v = solve_inside("v", 1, lambda v: step(v, first([*v, *u, *g]), g), 0.5 * u[0])
        w = solve_inside("w", 2, lambda w: step(w, second([*w, *v, *u, *g]), g), v[0])
        return step(u, last([*w, *v, *u, *g]), g)

    def flat(x: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        u, v, w = x[:2], x[2:3], x[3:]
        return [
            *step(u, last([*w, *v, *u, *g]), g),
            *step(v, first([*v, *u, *g]), g),
            *step(w, second([*w, *v, *u, *g]), g),
        ]

    program, together = implicit(inside, 2, 3, newton), implicit(flat, 5, 3, newton)
    pairs = [(y, f"g{i}") for y in ("u0", "u1") for i in range(3)]
    run = printing(program, pairs)
    inputs = sampled(together, (5,))
    assert_agrees(run, program, inputs, pairs)
    outputs, statuses, blocks = run.run(inputs, slopes=True)
    assert [s.solve for s in statuses] == ["v", "w", "update"]
    expected, _ = Interpreter(together)(inputs)
    assert_close(outputs, {name: expected[name] for name in outputs})
    assert_close(blocks, derivatives(together, pairs, inputs))


def test_promoted_parameter_of_a_solve_inside_a_residual_has_slopes() -> None:
    traced = [trace(build(read_text(text), "model")) for text in (NESTED, TOGETHER)]
    names = [p.variable.name for p in traced[0].parameters]
    paths = {name.split(".")[-2]: name for name in names if "." in name}
    program = freeze(traced[0], 2.2e-16, keep=names)
    together = freeze(traced[1], 2.2e-16, keep=[p.variable.name for p in traced[1].parameters])
    theirs = {p.variable.name.split(".")[-2]: p.variable.name for p in together.parameters}
    inputs = sampled(program, (4,))
    inputs["f"] = inputs["f"] * 10
    pairs = [("y", paths[k]) for k in ("flow", "harden")]
    _, _, found = printing(program, pairs).run(inputs, slopes=True)
    wanted = derivatives(together, [("y", theirs[k]) for k in ("flow", "harden")], inputs)
    for (_, mine), (_, other) in zip(found, wanted, strict=True):
        assert_close({0: found["y", mine]}, {0: wanted["y", other]})


def test_failure_inside_a_residual_fails_the_solve_around_it() -> None:
    program = program_of(NESTED, "model")
    inputs = sampled(program, (3,))
    inputs["f"] = inputs["f"] * 10
    inputs["f"][1] = math.inf
    pairs = [("y", "f"), ("x", "x~1")]
    outputs, (inner, outer), blocks = printing(program, pairs).run(inputs, slopes=True)
    for status in (inner, outer):
        assert status.converged.tolist() == [True, False, True]
    for x in (*outputs.values(), *blocks.values()):
        assert x.isfinite().tolist() == [True, False, True]
    strict = printing(program, rules={"solve_z": Newton(max_its=2, abs_tol=0.0, rel_tol=0.0)})
    _, (inner, outer) = strict(inputs)
    assert not inner.converged.any() and not outer.converged.any()
    assert int(inner.iterations.max()) == 1


def test_no_points_give_nothing_of_the_right_shape() -> None:
    program = program_of(TEXTS["middle"], "model")
    run = printing(program, [("y", "a"), ("drive", "a")])
    inputs = sampled(program, (0, 3))
    outputs, (status,), blocks = run.run(inputs, slopes=True)
    assert outputs["y"].shape == (0, 3)
    assert status.reason.shape == (0,)
    assert blocks["y", "a"].shape == (0, 3)
    assert blocks["drive", "a"].shape == ()


def test_steps_agree_with_the_interpreter() -> None:
    program = program_of(TEXTS["no predictor"], "model")
    steps = torch.linspace(0.0, 1.0, 6, dtype=torch.float64)
    begun = torch.tensor([0.5, 0.7], dtype=torch.float64)
    prescribed = {"t": steps, "f": steps.square()[:, None].expand(6, 2)}
    transient = Transient(6, prescribed, {"x": begun})
    found = printing(program).arrange(transient)()
    expected = Interpreter(program).transient(transient)
    assert_close(found.outputs, expected.outputs)
    assert found.statuses[0].iterations.shape == (5, 2)


CELL, PART = Axis("cell"), Axis("part")


def spread(coupled: bool) -> Program:
    """Unknowns `c` on cells and a tensor `s` without: cells read neighbours, or a sum of all."""
    b = Builder({"part": 2, "cell": 5})
    c = Variable("c", Scalar, (PART, CELL), (b.node("unknown", (), ("c", 0), (PART, CELL)),))
    s = Variable("s", SR2, (), tuple(b.node("unknown", (), ("s", i)) for i in range(6)))
    f = Variable("f", Scalar, (CELL,), (b.node("input", (), ("f", 0), (CELL,)),))
    g = Variable("g", SR2, (CELL,), tuple(
        b.node("input", (), ("g", i), (CELL,)) for i in range(6)
    ))  # fmt: skip
    h = Variable("h", Scalar, (PART,), (b.node("input", (), ("h", 0), (PART,)),))
    u, e = c.nodes[0], b.emit
    ahead = b.along("window", u, axis="cell", first=1, last=0)
    near = b.along("pad", ahead, axis="cell", first=0, last=1)
    if coupled:
        near = b.along("sum", e("mul", u, u), axis="cell")
    weight = b.table(torch.linspace(0.1, 0.3, 5).double().numpy(), (CELL,))
    row = e(
        "sub", e("add", u, e("mul", 0.1, e("mul", near, weight))), e("mul", f.nodes[0], h.nodes[0])
    )
    row = e("add", row, e("mul", 0.01, s.nodes[2]))
    total = e("exp", b.along("sum", b.along("sum", u, axis="cell"), axis="part"))
    rows = [
        e("sub", e("add", x, e("mul", 0.1, e("mul", x, x))), b.along("sum", y, axis="cell"))
        for x, y in zip(s.nodes, g.nodes, strict=True)
    ]
    rows[0] = e("add", rows[0], e("mul", 0.01, total))
    residuals = (Variable("rc", Scalar, (PART, CELL), (row,)), Variable("rs", SR2, (), tuple(rows)))
    solve = Solve("cells", (c, s), residuals, (), Newton())
    items = read_items(b, close_solve(b, solve, (f.nodes[0], *([b.zero] * 6))))
    outputs = (
        replace(c, nodes=(items[0],)),
        replace(s, nodes=tuple(items[1:])),
        Variable(
            "d",
            SR2,
            (CELL,),
            tuple(e("mul", items[1 + i], f.nodes[0]) for i in range(6)),
        ),
        Variable("m", Scalar, (PART,), (b.along("sum", items[0], axis="cell"),)),
        Variable("k", Scalar, (CELL,), (weight,)),
    )
    return Program(b.extents, (f, g, h), (), outputs)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("batch", [(), (4,)], ids=str)
def test_axes_of_all_sorts_agree(coupled: bool, batch: tuple[int, ...]) -> None:
    program = spread(coupled)
    pairs = every_pair(program)
    assert_agrees(printing(program, pairs), program, sampled(program, batch), pairs)


@pytest.mark.parametrize("shape", [*SHAPES.values(), NEST_ON_AXES], ids=str)
def test_drawn_programs_agree_with_the_oracle(shape: dict[str, Any]) -> None:
    @settings(
        max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(programs(**shape))
    def agree(drawn: Drawn) -> None:
        program = drawn.program
        pairs = every_pair(program)
        inputs = {str(i): torch.stack([x, 0.7 * x, x - 0.1]) for i, x in enumerate(drawn.point)}
        outputs, _, blocks = printing(program, pairs).run(inputs, slopes=True)
        expected = evaluate_program(program, {name: x.numpy() for name, x in inputs.items()})
        assert_close(outputs, {name: torch.tensor(x) for name, x in expected.items()})
        assert_close(blocks, derivatives(program, pairs, inputs))

    agree()


class Mirror(Operation):
    """Entries along an axis in reverse; declared here alone."""

    name = "mirror"
    reads_across = True

    def build(self, b: Builder, args: tuple[Node, ...], *, axis: str, **_: Any) -> Node:
        (x,) = args
        (held,) = (a for a in x.axes if a.name == axis and not a.seed)
        return b.node(self.name, args, held, x.axes)

    def push(self, d: Any, node: Node, known: Any, columns: Sequence[Node]) -> Any:
        (x,) = node.args
        if any(shifts for _, shifts in known[x.id]):
            raise Unstructured(node.attr.name)
        return {k: d.along(self.name, t, axis=node.attr.name) for k, t in known[x.id].items()}

    def evaluate(self, on: Any, space: Any, node: Node, args: Sequence[Any]) -> Any:
        return on.spell("{0}.flip({dim})", lambda x, dim: np.flip(x, dim), args, node.attr)


def test_operation_declared_in_a_test_is_printed() -> None:
    b = Builder({"part": 2, "cell": 5})
    f = Variable("f", Scalar, (CELL,), (b.node("input", (), ("f", 0), (CELL,)),))
    c = Variable("c", Scalar, (CELL,), (b.node("unknown", (), ("c", 0), (CELL,)),))
    (u,), (x,), e = c.nodes, f.nodes, b.emit
    row = e("sub", e("add", u, e("mul", 0.2, b.along("mirror", e("sin", u), axis="cell"))), x)
    solve = Solve("cells", (c,), (Variable("r", Scalar, (CELL,), (row,)),), (), Newton())
    (item,) = read_items(b, close_solve(b, solve, (x,)))
    again = b.along("mirror", e("mul", item, x), axis="cell")
    outputs = (replace(c, nodes=(item,)), Variable("d", Scalar, (CELL,), (again,)))
    program = Program(b.extents, (f,), (), outputs)
    pairs = every_pair(program)
    inputs = sampled(program, (4,))
    assert_agrees(printing(program, pairs), program, inputs, pairs)
    found = printing(program)(inputs)[0]
    residual = found["c"] + 0.2 * found["c"].sin().flip(-1) - inputs["f"]
    assert float(residual.abs().max()) < 1e-8
    torch.testing.assert_close(found["d"], (found["c"] * inputs["f"]).flip(-1))


def test_single_precision_is_single_throughout() -> None:
    text = plasticity("FBComplementarity", isotropic=True, kinematic=False)
    program = prepared(build(read_text(text), "update"), dtype=torch.float32)
    plan = plan_graphs(program, [("plastic_strain", "E")], "model", dtype=torch.float32)
    for graph in plan.graphs:
        assert "float64" not in graph.printed.source
        trial = Trial(graph.segment, torch.float32)
        points = trial.draw_points(graph.printed, 3)
        gives = Printing(graph.printed, torch.float32).boxed_run(list(points))
        assert {x.dtype for x in gives} == {torch.float32}
        assert graph.judge(trial, points, gives) is None


@pytest.mark.parametrize("file", SEVEN)
def test_published_model_is_printed_right(file: str, cases: Path) -> None:
    program = published(cases / file)
    for graph in plan_graphs(program, every_pair(program), "model").graphs:
        trial = Trial(graph.segment, torch.float64)
        for size in TRIAL_BATCHES:
            points = trial.draw_points(graph.printed, size)
            gives = Printing(graph.printed, torch.float64).boxed_run(list(points))
            assert graph.judge(trial, points, gives) is None, graph.file


def published(file: Path) -> Program:
    tree = read(file)
    (name,) = self_checking(tree)
    driver = build_driver(tree, name)
    driver = getattr(driver, "driver", driver)
    return prepared(driver.model, driver.shapes)


# what is planned


def files(plan: GraphPlan) -> list[str]:
    return [g.file for g in plan.graphs]


def test_files_are_named_as_the_design_says() -> None:
    middle = program_of(TEXTS["middle"], "model")
    assert files(plan_graphs(middle, [], "m")) == [
        "m_seg0.pt2", "m_seg1_rhs.pt2", "m_seg1_step.pt2", "m_seg2.pt2",
    ]  # fmt: skip
    root = program_of(TEXTS["root"], "model")
    assert files(plan_graphs(root, [("x", "f")], "m")) == ["m_rhs.pt2", "m_step.pt2", "m_ift.pt2"]
    explicit = program_of(TEXTS["explicit"], "model")
    assert files(plan_graphs(explicit, [("drive", "a")], "m")) == ["m.pt2", "m_jvp.pt2"]


def test_only_what_a_pair_passes_through_has_derivatives() -> None:
    middle = program_of(TEXTS["middle"], "model")
    assert "m_seg1_ift.pt2" not in files(plan_graphs(middle, [("drive", "a")], "m"))
    assert "m_seg2_jvp.pt2" not in files(plan_graphs(middle, [("x", "a")], "m"))
    through = plan_graphs(middle, [("y", "b")], "m")
    assert {"m_seg0_jvp.pt2", "m_seg1_ift.pt2", "m_seg2_jvp.pt2"} <= set(files(through))


def test_computed_guess_is_a_graph_of_its_own(cases: Path) -> None:
    program = published(cases / SEVEN[4])
    assert "model_seg0_predictor.pt2" in files(plan_graphs(program, [], "model"))


@pytest.mark.parametrize("text", [TEXTS["chained"], NESTED], ids=["chained", "nested"])
def test_description_survives_json(text: str) -> None:
    program = program_of(text, "model")
    said = plan_graphs(program, every_pair(program), "m").description
    written = msgspec.json.encode(said)
    assert msgspec.json.decode(written, type=InductorDescription) == said
    assert msgspec.json.schema(InductorDescription)


def test_long_graph_is_told_and_too_long_a_one_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = program_of(TEXTS["middle"], "model")
    monkeypatch.setattr(backend, "SLOW_OPERATIONS", 5)
    with caplog.at_level(logging.WARNING, "ingot"):
        plan_graphs(program, [], "m")
    assert "m_seg1_step.pt2" in caplog.text
    monkeypatch.setattr(backend, "MAX_OPERATIONS", 20)
    with pytest.raises(
        IngotError, match=r"'m_seg1_step\.pt2' has \d+ operations(.|\n)*--backend kernel"
    ):
        plan_graphs(program, [], "m")


@pytest.mark.parametrize("which", ["value", "batch", "precision", "still", "update"])
def test_wrong_graph_is_seen(which: str) -> None:
    program = program_of(TEXTS["root"], "model")
    rhs, step = plan_graphs(program, [], "m").graphs
    trial = Trial(rhs.segment, torch.float64)
    graph = step if which in ("still", "update") else rhs
    points = trial.draw_points(graph.printed, 8)
    gives = Printing(graph.printed, torch.float64).boxed_run(list(points))
    assert graph.judge(trial, points, gives) is None
    if which == "value":
        gives[0][0, 3] *= 1 + 1e-6
    if which == "batch":
        gives[0] = gives[0][:, :1]
    if which == "precision":
        gives[0] = gives[0].float()
    if which == "still":
        gives[0] = gives[0] + 1e-9
    if which == "update":
        u, alpha, *_ = points
        gives[0] = u + alpha * 1.001 * (gives[0] - u)
    assert graph.judge(trial, points, gives) is not None


@pytest.fixture
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No graph was ever compiled; they would be kept in the folder `cache` of this one."""
    monkeypatch.setattr(inductor_pool, "open_cache", lambda: Cache(tmp_path / "cache"))
    return tmp_path


def test_crash_of_the_compiling_process_is_told(
    forgetful: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    program = program_of(TEXTS["explicit"], "model")
    with pytest.raises(
        IngotError, match=r"'m\.pt2': its process ended with 1(.|\n)*--backend kernel"
    ):
        lower(plan_graphs(program, [], "m"), forgetful)


class Pretended:
    """Stands for the compiler: graphs are run as torch reads them, some of them wrongly."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, wrong: str = "") -> None:
        self.asked: list[str] = []
        self.wrong = wrong
        monkeypatch.setattr(inductor_pool.CompilePool, "_ask", self.ask)

    def ask(self, folder: Path, name: str) -> tuple[float, float]:
        self.asked.append(name)
        job = torch.load(folder / "job.pt")
        space: dict[str, Any] = {"torch": torch}
        exec(job["source"], space)
        run = space["graph"]
        gives = [list(run(job["tables"], job["index"], *x)) for x in job["points"]]
        if name == self.wrong:
            gives[-1][0] = gives[-1][0].roll(1, -1)
        torch.save(gives, folder / "gives.pt")
        (folder / "graph.pt2").write_text(name)
        return 0.0, 0.0


def test_graph_that_differs_is_refused(forgetful: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(TEXTS["middle"], "model")
    Pretended(monkeypatch, wrong="m_seg2.pt2")
    with pytest.raises(IngotError, match=r"graph-differs.*'m_seg2\.pt2' at 8 points"):
        lower(plan_graphs(program, [], "m"), forgetful)


def test_graph_is_compiled_once_and_kept(forgetful: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(TEXTS["middle"], "model")
    compiler = Pretended(monkeypatch)
    said = lower(plan_graphs(program, [], "m"), forgetful)
    assert sorted(compiler.asked) == sorted(said.files)
    again = forgetful / "again"
    again.mkdir()
    lower(plan_graphs(program, [], "other"), again)
    assert len(compiler.asked) == len(said.files)
    assert (again / "other_seg2.pt2").read_text() == "m_seg2.pt2"
    lower(plan_graphs(program, [], "m", dtype=torch.float32), again)
    assert len(compiler.asked) == 2 * len(said.files)


def test_loading_imports_neither_programs_nor_compilers() -> None:
    code = (
        "import sys, ingot.execute.inductor_run;"
        "print([m for m in sys.modules if m.startswith(('ingot.program', 'ingot.catalog',"
        " 'ingot.model', 'torch._inductor', 'nmhit'))])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


# compiled graphs


def compiled(program: Program, pairs: Sequence[Pair], folder: Path, **more: Any) -> InductorProgram:
    precision = {"dtype": more.pop("dtype")} if "dtype" in more else {}
    said = lower(plan_graphs(program, pairs, "model", **precision), folder, **more)
    assert sorted(p.name for p in folder.glob("*.pt2")) == sorted(said.files)
    held = {p.variable.name: p.value.data for p in program.parameters}
    return InductorProgram(lambda name: (folder / name).read_bytes(), said, parameters=held)


@pytest.mark.exhaustive
def test_compiled_elasticity_agrees(cases: Path, tmp_path: Path) -> None:
    tree = read(cases / SEVEN[0])
    (name,) = self_checking(tree)
    program = prepared(build_driver(tree, name).model)
    pairs = every_pair(program)
    run = compiled(program, pairs, tmp_path)
    for batch in ((), (1,), (2,), (7,), (3, 2)):
        assert_agrees(run, program, sampled(program, batch), pairs)
    assert_graph_checks_nothing(tmp_path / "model.pt2")


def assert_graph_checks_nothing(file: Path) -> None:
    """Of torch (torch_private.load_graph): arguments are emptied, wrong ones are not refused."""
    graph = load_graph(file.read_bytes())
    given = [torch.ones(6, 4, dtype=torch.float64)]
    (right,) = graph.boxed_run(given)
    assert given == []
    (wrong,) = graph.boxed_run([torch.ones(6, 4, dtype=torch.float32)])
    assert wrong.shape == right.shape
    assert not torch.equal(wrong, right)


@pytest.mark.exhaustive
def test_compiled_update_agrees(tmp_path: Path) -> None:
    program = program_of(NESTED, "solve_x")
    pairs = every_pair(program)
    done: list[str] = []
    run = compiled(program, pairs, tmp_path, progress=done.append)
    inside = ["seg0_ift", "seg0_rhs", "seg0_step", "seg1", "seg1_jvp"]
    assert sorted(done) == [f"model_rhs_{name}.pt2" for name in inside]
    for batch in ((), (1,), (2,), (7,), (3, 2)):
        assert_agrees(run, program, sampled(program, batch), pairs)


@pytest.mark.exhaustive
def test_compiled_cells_agree(cases: Path, tmp_path: Path) -> None:
    tree = read(cases / SEVEN[5])
    (name,) = self_checking(tree)
    driver = build_driver(tree, name).driver
    program = prepared(driver.model, driver.shapes)
    run = compiled(program, [], tmp_path)
    for batch in ((), (2, 2)):
        assert_agrees(run, program, sampled(program, batch), [])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("seed", range(6))
def test_residuals_of_any_size_are_judged_by_their_true_norms(
    seed: int, dtype: torch.dtype
) -> None:
    rules, inputs = draw(seed, dtype)
    outputs, (status,) = printing(implicit(cubes, 2, 4, rules), dtype=dtype)(inputs)
    unknowns = torch.stack([outputs["u0"], outputs["u1"]], 1)
    assert_judged_alike(status, unknowns, by_oracle(rules, inputs))


@pytest.mark.parametrize("law", [straight, slanted])
def test_a_failed_point_has_nan_tangents(law: Any) -> None:
    run = printing(implicit(law, 2, 2, Newton(max_its=1)), BLOCKS)
    inputs = {n: torch.zeros(3, dtype=torch.float64) for n in ("u0", "u1", "g0", "g1")}
    inputs["g0"] = torch.tensor([0.0, 1.0, torch.nan], dtype=torch.float64)
    for block in run.run(inputs, slopes=True)[2].values():
        assert block.isnan().tolist() == [False, True, True]
