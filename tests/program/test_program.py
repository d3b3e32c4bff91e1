"""A program never changes, whatever is built from it, also by many threads at once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ingot.codegen.source import write_source
from ingot.execute.inductor import plan_graphs
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Builder,
    Choices,
    Program,
    Variable,
    along_direction,
    compile_passes,
    is_shift_invariant,
    prepared,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.program.eliminate import Attempt, eliminate, solve_again
from ingot.program.forms import choose_form
from ingot.program.partition import partition
from ingot.program.probe import Probes
from ingot.program.regions import format_regions
from ingot.types import Scalar
from tests.program.declared import program_of as law_of
from tests.program.graphs import CELL, update
from tests.systems import node_of, plasticity, program_of, viscoplasticity

THREADS = 8
EXAMPLE = Path(__file__).parents[2] / "examples" / "viscoplastic.i"


def chained(*, axes: bool) -> Program:
    """Two updates in series, the second with another inside its residuals."""
    g = Builder({"cell": 5})
    laid = (CELL,) if axes else ()
    x, y = (g.node("input", (), (n, 0), laid) for n in "xy")
    first, _ = update(g, "first", g.emit("mul", x, y), y)
    last, _ = update(g, "second", first, x, nested=not axes)
    given = tuple(Variable(n, Scalar, laid, (node,)) for n, node in (("x", x), ("y", y)))
    return Program(g.extents, given, (), (Variable("out", Scalar, laid, (last,)),))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "nest": lambda: chained(axes=False),
    "axes": lambda: chained(axes=True),
    "plastic": lambda: program_of(
        plasticity("FBComplementarity", isotropic=True, kinematic=False)
    ),
    "viscous": lambda: program_of(viscoplasticity()),
}  # fmt: skip


def names(program: Program) -> tuple[str, str]:
    return program.outputs[0].name, program.inputs[-1].name


def jacobian_digest(program: Program) -> str:
    return with_jacobian(program, [names(program)]).digest


def adjoint_digest(program: Program) -> str:
    y, x = names(program)
    return with_adjoint(program, [y], [x]).digest


def direction_digest(program: Program) -> str:
    return along_direction(program).digest


def compiled_digest(program: Program) -> str:
    return compile_passes(program).digest


def looped_source(program: Program) -> str:
    return write_source(compile_passes(program, Choices(unroll_limit=0)))


def sloped_source(program: Program) -> str:
    return write_source(compile_passes(with_jacobian(program, [names(program)])))


def graphs_of(program: Program) -> str:
    planned = plan_graphs(program, [names(program)], "model")
    return "\n".join(f"{g.file}: {g.printed.source}" for g in planned.graphs)


def interpreted(program: Program) -> list[float]:
    random = torch.Generator().manual_seed(1)
    inputs = {}
    for v in program.inputs:
        shape = (3, *(program.extent(a) for a in v.axes), *v.kind.base)
        inputs[v.name] = 1e-3 * torch.rand(shape, generator=random, dtype=torch.float64)
    if "t" in inputs:
        inputs["t"] = inputs["t~1"] + 1.0
    outputs, _ = Interpreter(program)(inputs)
    return [x for value in outputs.values() for x in value.flatten().tolist()]


def segments(program: Program) -> list[str]:
    return [s.program.digest for s in partition(program)]


def printed(program: Program) -> str:
    return str(program) + format_regions(program)


BUILDS: tuple[Callable[[Program], Any], ...] = (
    jacobian_digest, adjoint_digest, direction_digest, compiled_digest, looped_source,
    sloped_source, graphs_of, interpreted, segments, printed,
)  # fmt: skip


def contents(program: Program) -> list[Any]:
    """Every line of a program and of its solves, whatever a digest looks at."""
    found: list[Any] = [[(n.id, n.op, n.args, n.axes) for n in replace(program).lines]]
    for solve in program.solves:
        found.append([(n.id, n.op, n.args, n.axes) for n in (*solve.rows, *solve.given)])
    return found


@pytest.mark.parametrize("build", BUILDS, ids=lambda b: b.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_whatever_is_built_from_it(
    name: str, build: Callable[[Program], Any]
) -> None:
    if name == "axes" and build is graphs_of:
        pytest.skip("graphs of systems on axes are tried in tests/execute")
    program = PROGRAMS[name]()
    digest, before = program.digest, contents(program)
    first = build(program)
    assert replace(program).digest == program.digest == digest
    assert contents(program) == before
    assert build(program) == first


def test_a_program_is_the_same_whatever_is_eliminated() -> None:
    program = PROGRAMS["plastic"]()
    digest = program.digest
    node = node_of(program)
    attempt = Attempt(program, node.attr, Probes.of_program(program).enter(node, node.attr))
    choose_form(attempt)
    found = eliminate(attempt, "jacobian")
    sides = [found.builder.placeholder("unknown", ()) for _ in node.attr.columns]
    solve_again(attempt, found, sides, transposed=True)
    assert replace(program).digest == digest
    assert replace(node.attr).digest == node.attr.digest


@pytest.mark.parametrize("name", ["nest", "axes", "plastic"])
def test_eight_threads_build_from_one_program_what_one_builds(name: str) -> None:
    builds = [b for b in BUILDS if name != "axes" or b is not graphs_of]
    expected = [build(PROGRAMS[name]()) for build in builds]
    program = PROGRAMS[name]()
    together = threading.Barrier(THREADS)

    def build_all(k: int) -> list[Any]:
        together.wait()
        order = [(i + k) % len(builds) for i in range(len(builds))]
        found = {i: builds[i](program) for i in order}
        return [found[i] for i in range(len(builds))]

    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(build_all, range(THREADS)):
            assert found == expected
    assert replace(program).digest == PROGRAMS[name]().digest


def test_digests_tell_programs_apart_and_not_how_they_were_made() -> None:
    digests = {name: make().digest for name, make in PROGRAMS.items()}
    assert len(set(digests.values())) == len(PROGRAMS)
    assert digests == {name: make().digest for name, make in PROGRAMS.items()}
    g = Builder()
    x, y = (g.node("input", (), (n, 0)) for n in "xy")
    g.emit("exp", y)  # numbers what follows otherwise, and is read by nothing

    def program(*, swapped: bool) -> Program:
        out = g.emit("sub", y, x) if swapped else g.emit("sub", x, y)
        given = tuple(Variable(n, Scalar, (), (node,)) for n, node in (("x", x), ("y", y)))
        return Program({}, given, (), (Variable("out", Scalar, (), (out,)),))

    assert program(swapped=True).digest != program(swapped=False).digest

    def minus(x: Scalar, y: Scalar) -> Scalar:
        return x - y

    assert law_of(minus).digest == program(swapped=False).digest


def test_labels_are_the_users_words() -> None:
    g = Builder({"cell": 2})
    assert Variable("s", Scalar, (), (g.one,)).labels() == ["s"]
    assert Variable("s", Scalar, (CELL,), (g.one,)).labels() == ["s"]
    assert Variable("s", Scalar, (CELL,), (g.one, g.zero), (CELL,)).labels() == ["s[0]", "s[1]"]


def draw_program(seed: int) -> Program:
    """Sums, differences, products, choices and a solve of `x`, `x~1` and `y`, drawn at random."""
    random = np.random.default_rng(seed)
    g = Builder()
    x, old, y = (g.node("input", (), (n, 0)) for n in ("x", "x~1", "y"))
    lines = [x, old, y, g.emit("sub", x, old)]
    for _ in range(random.integers(1, 5)):
        a, b = (lines[i] for i in random.integers(0, len(lines), 2))
        match random.choice(["add", "sub", "sub", "mul", "neg", "tanh", "choose", "solve"]):
            case "neg" | "tanh" as op:
                lines.append(g.emit(str(op), a))
            case "choose":
                lines.append(g.emit("where", g.emit("lt", a, 3.0), b, y))
            case "solve":
                lines.append(update(g, f"solve{len(lines)}", g.emit("tanh", a), b)[0])
            case op:
                lines.append(g.emit(str(op), a, b))
    given = (("x", x), ("x~1", old), ("y", y))
    inputs = tuple(Variable(n, Scalar, (), (node,)) for n, node in given)
    return Program(g.extents, inputs, (), (Variable("out", Scalar, (), (lines[-1],)),))


def test_what_is_shift_invariant_stays_where_all_times_are_shifted() -> None:
    """Of `x` and its history; numbers are such that differences are exact."""
    values = torch.tensor([0.25, 1.5, -2.0], dtype=torch.float64)
    given = {"x": values, "x~1": values.flip(0) - 0.5, "y": values * 0.5}
    invariant = 0
    for seed in range(300):
        program = draw_program(seed)
        run = Interpreter(program)
        moved = {n: v if n == "y" else v + 16.0 for n, v in given.items()}
        before, after = (run(values)[0]["out"] for values in (given, moved))
        if is_shift_invariant(program, ("x",)):
            invariant += 1
            torch.testing.assert_close(before, after, rtol=0, atol=0, equal_nan=True)
    assert invariant > 60


@pytest.mark.parametrize("level", [0, 3])
def test_a_model_of_rates_reads_the_length_of_a_step_alone(level: int) -> None:
    text = EXAMPLE.read_text()
    guess = "predictor = 'predictor'"
    text = text.replace(guess, f"{guess}\n    max_substepping_level = {level}")
    assert is_shift_invariant(prepared(build(read_text(text), "model")), ("t", "time"))
    clock = "[clock]\n type = ScalarLinearCombination\n from = 't'\n to = 'phase'\n []\n [model]"
    aged = text.replace("[model]", clock).replace("return_map elastic", "clock return_map elastic")
    aged = aged.replace("additional_outputs = '", "additional_outputs = 'phase ")
    assert not is_shift_invariant(prepared(build(read_text(aged), "model")), ("t", "time"))


def test_what_moves_along_an_axis_is_not_known_to_be_shift_invariant() -> None:
    g = Builder({"cell": 5})
    x = g.node("input", (), ("x", 0), (CELL,))
    for op in ("window", "pad"):
        moved = g.along(op, x, axis="cell", first=1, last=0)
        out = Variable("out", Scalar, moved.axes, (moved,))
        program = Program(g.extents, (Variable("x", Scalar, (CELL,), (x,)),), (), (out,))
        assert not is_shift_invariant(program, ("x",))
        assert is_shift_invariant(program, ("y",))
