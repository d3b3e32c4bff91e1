"""Solves that read solves, in series and nested: as many systems as there are updates, and exact
derivatives in both modes.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Builder,
    Choices,
    Node,
    Program,
    Variable,
    compile_passes,
    prepared,
    verify,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.types import Scalar
from tests.program.graphs import CELL, closed, inside, update, update_once
from tests.program.oracle import evaluate_program

COUNTS = (1, 4, 16, 64)
POINTS = {"x": np.linspace(-0.8, 0.9, 5), "y": np.linspace(0.4, -0.3, 5)}


def program_in(g: Builder, inputs: dict[str, Node], outputs: dict[str, Node]) -> Program:
    given = tuple(Variable(n, Scalar, x.axes, (x,)) for n, x in inputs.items())
    gives = tuple(Variable(n, Scalar, x.axes, (x,)) for n, x in outputs.items())
    return verify(Program(g.extents, given, (), gives))


def series(count: int) -> Program:
    """Systems of two unknowns, each reading the one before and one shared input `y`."""
    g = Builder()
    x, y = (g.node("input", (), (n, 0)) for n in "xy")
    last = x
    for k in range(count):
        last, _ = update(g, f"solve {k}", g.emit("add", last, 0.01 * k), y)
    return program_in(g, {"x": x, "y": y}, {"out": last})


def nest() -> Program:
    """An update that another reads, which has a third inside its residuals."""
    g = Builder()
    x, y = (g.node("input", (), (n, 0)) for n in "xy")
    first, _ = update(g, "before", x, y)
    u, v = update(g, "outer", first, y, nested=True)
    return program_in(g, {"x": x, "y": y}, {"out": g.emit("mul", u, g.emit("add", v, x))})


def twins(count: int) -> Program:
    """An update of equal residuals, all of which read one update inside of them."""
    g = Builder()
    x, y = (g.node("input", (), (n, 0)) for n in "xy")
    columns = [g.placeholder("unknown", (), f"u{i}") for i in range(count)]
    (w,) = update_once(g, "inside", g.add_up(columns), y)
    rows = [
        g.emit("sub", g.emit("add", g.emit("mul", 3.0, u), g.emit("mul", 0.1 + 0.1 * i, w)),
               g.emit("mul", g.emit("tanh", g.emit("mul", 0.5 + i, u)), inside(g, x)))
        for i, u in enumerate(columns)
    ]  # fmt: skip
    found = closed(g, "outer", (), columns, rows)
    return program_in(g, {"x": x, "y": y}, {"out": g.add_up(found)})


def forward(program: Program) -> Program:
    return with_jacobian(program, [("out", "x"), ("out", "y")])


def adjoint(program: Program) -> Program:
    return with_adjoint(program, ["out"], ["x", "y"])


def differences(program: Program, name: str, step: float = 1e-6) -> np.ndarray:
    ahead, behind = (
        evaluate_program(program, {**POINTS, name: POINTS[name] + sign * step})["out"]
        for sign in (1, -1)
    )
    return (ahead - behind) / (2 * step)


def tensors(program: Program) -> dict[str, torch.Tensor]:
    ones = {v.name: np.ones(5) for v in program.inputs if v.name.startswith("a.")}
    return {n: torch.from_numpy(x) for n, x in {**POINTS, **ones}.items()}


def blocks(program: Program, op: str) -> list[Node]:
    return [n for n in program.lines if n.op == op]


# series


@pytest.mark.parametrize("count", COUNTS)
def test_a_series_has_as_many_systems_as_updates(count: int) -> None:
    program = series(count)
    for sloped, sides in ((forward(program), 2), (adjoint(program), 1)):
        for each in (sloped, compile_passes(sloped)):
            assert len(each.solves) == len(blocks(each, "solve")) == count
            systems = blocks(each, "linear")
            assert len(systems) == count
            assert all(n.attr.sides <= sides for n in systems)


def sizes(program: Program) -> int:
    lines = len(program.lines)
    return lines + sum(len(s.factored.system_roots()) + len(s.rows) for s in program.solves)


@pytest.mark.parametrize("mode", [forward, adjoint], ids=lambda m: m.__name__)
def test_a_series_grows_in_proportion(mode: Callable[[Program], Program]) -> None:
    counts = {n: mode(series(n)).count() for n in COUNTS}
    written = {n: sizes(compile_passes(mode(series(n)))) for n in COUNTS}
    for size in (counts, written):
        each = (size[16] - size[4]) / 12
        assert size[64] < 1.3 * (size[16] + 48 * each)
        assert size[64] < 1.3 * 64 / 16 * size[16]


@pytest.mark.parametrize("mode", [forward, adjoint], ids=lambda m: m.__name__)
def test_a_series_compiles_in_proportion(mode: Callable[[Program], Program]) -> None:
    def seconds(program: Program) -> float:
        begun = time.process_time()
        compile_passes(mode(program))
        return time.process_time() - begun

    few, many = series(16), series(64)
    seconds(few)
    ratios = [seconds(many) / seconds(few) for _ in range(7)]
    assert statistics.median(ratios) < 1.3 * 4, ratios


@pytest.mark.parametrize("count", COUNTS)
def test_derivatives_through_a_series_agree(count: int) -> None:
    program = series(count)
    found = evaluate_program(forward(program), POINTS)
    back = evaluate_program(adjoint(program), {**POINTS, "a.out": np.ones(5)})
    for name in POINTS:
        np.testing.assert_allclose(found[f"out:{name}"], back[f"a.{name}"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            found[f"out:{name}"], differences(program, name), rtol=1e-6, atol=1e-8
        )
    assert np.abs(found["out:y"]).min() > 1e-3, "the last does not read the shared input"


PROGRAMS = {"series": lambda: series(5), "nest": nest, "twins": lambda: twins(7)}


@pytest.mark.parametrize("mode", [forward, adjoint], ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_solves_series_and_nests(
    name: str, mode: Callable[[Program], Program]
) -> None:
    program = mode(PROGRAMS[name]())
    inputs = tensors(program)
    expected = evaluate_program(program, {n: x.numpy() for n, x in inputs.items()})
    found, statuses = Interpreter(program)(inputs)
    assert [s.solve for s in statuses] == [s.name for s in program.solves]
    assert all(bool(s.converged.all()) for s in statuses)
    for n, x in expected.items():
        np.testing.assert_allclose(found[n].numpy(), x, rtol=1e-9, atol=1e-11, err_msg=n)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [forward, adjoint], ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernel_solves_series_and_nests(name: str, mode: Callable[[Program], Program]) -> None:
    program = mode(PROGRAMS[name]())
    inputs = tensors(program)
    expected = evaluate_program(program, {n: x.numpy() for n, x in inputs.items()})
    found, statuses = Kernel(program)(inputs)
    assert [s.solve for s in statuses] == [s.name for s in program.solves]
    assert all(bool(s.converged.all()) for s in statuses)
    for n, x in expected.items():
        np.testing.assert_allclose(found[n].numpy(), x, rtol=1e-9, atol=1e-11, err_msg=n)


# nests


@pytest.mark.parametrize("name", ["nest", "twins"])
def test_derivatives_of_a_nest_agree(name: str) -> None:
    program = PROGRAMS[name]()
    found = evaluate_program(forward(program), POINTS)
    back = evaluate_program(adjoint(program), {**POINTS, "a.out": np.ones(5)})
    for x in POINTS:
        np.testing.assert_allclose(found[f"out:{x}"], back[f"a.{x}"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found[f"out:{x}"], differences(program, x), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["nest", "twins"])
def test_a_nest_after_all_passes_computes_the_same(name: str) -> None:
    for mode in (forward, adjoint):
        program = mode(PROGRAMS[name]())
        numbers = {n: x.numpy() for n, x in tensors(program).items()}
        expected = evaluate_program(program, numbers)
        found = evaluate_program(compile_passes(program), numbers, factored=True)
        for n, x in expected.items():
            np.testing.assert_allclose(found[n], x, rtol=1e-9, atol=1e-11, err_msg=n)


def test_solves_of_a_nest_are_listed_inner_first() -> None:
    assert [s.name for s in nest().solves] == ["before", "inside outer", "outer"]
    assert [s.name for s in compile_passes(nest()).solves] == ["before", "inside outer", "outer"]


def test_a_third_level_is_refused_by_name() -> None:
    g = Builder()
    x = g.node("input", (), ("x", 0))
    u = g.placeholder("unknown", (), "u")
    v = g.placeholder("unknown", (), "v")
    (w,) = update_once(g, "innermost", v, u)
    rows = [g.emit("sub", g.emit("add", v, g.emit("mul", 0.1, w)), inside(g, u))]
    (middle,) = closed(g, "middle", (), [v], rows)
    with pytest.raises(IngotError) as raised:
        closed(g, "outermost", (), [u], [g.emit("sub", g.emit("add", u, middle), x)])
    (problem,) = raised.value.problems
    assert problem.code == "nested-solves"
    for name in ("innermost", "middle", "outermost"):
        assert f"[{name}]" in problem.message
    assert problem.fix


def test_a_system_that_no_loop_solves_is_written_out_though_it_is_long() -> None:
    g = Builder({"cell": 40})
    x = g.node("input", (), ("x", 0), (CELL,))
    u = g.placeholder("unknown", (CELL,), "u")
    total = g.along("sum", u, axis="cell")
    flux = g.along("window", u, axis="cell", first=0, last=1)
    before = g.along("pad", flux, axis="cell", first=1, last=0)
    fed = g.emit("mul", 0.01, g.emit("mul", u, total))
    row = g.emit("sub", g.emit("add", g.emit("sub", u, g.emit("mul", 0.3, before)), fed), x)
    (out,) = closed(g, "meeting", (CELL,), [u], [row])
    program = program_in(g, {"x": x}, {"out": out})
    numbers = {"x": np.linspace(0.1, 1.0, 80).reshape(2, 40)}
    expected = evaluate_program(program, numbers)["out"]
    compiled = compile_passes(program, Choices(unroll_limit=10))
    assert not any(n.axes for n in compiled.lines)
    assert compiled.solves[0].factored.newton.form == "extended"
    again = evaluate_program(compiled, numbers, factored=True)["out"]
    np.testing.assert_allclose(again, expected, rtol=1e-9, atol=1e-11)
    with pytest.raises(IngotError, match="neither by neighbours nor by sums alone"):
        compile_passes(program, Choices(unroll_limit=0))


@pytest.mark.parametrize("cells", [5, 200])
def test_a_nest_on_an_axis_is_written_out_or_refused_by_name(cells: int) -> None:
    g = Builder({"cell": cells})
    x = g.node("input", (), ("x", 0), (CELL,))
    u, _ = update(g, "outer", x, x, nested=True)
    program = program_in(g, {"x": x}, {"out": u})
    numbers = {"x": np.linspace(-1.0, 1.0, 2 * cells).reshape(2, cells)}
    expected = evaluate_program(program, numbers)["out"]
    found, _ = Interpreter(program)({"x": torch.from_numpy(numbers["x"])})
    np.testing.assert_allclose(found["out"].numpy(), expected, rtol=1e-9, atol=1e-11)
    if cells == 5:
        compiled = compile_passes(program)
        assert not any(n.axes for n in compiled.lines)
        again = evaluate_program(compiled, numbers, factored=True)["out"]
        np.testing.assert_allclose(again, expected, rtol=1e-9, atol=1e-11)
        return
    with pytest.raises(IngotError) as raised:
        compile_passes(program)
    assert raised.value.problems[0].code == "program-too-long"
    assert "[outer]" in raised.value.problems[0].message


# from input files

LEVEL = """
  [r{k}]
    type = ScalarLinearCombination
    from = 'u{k} y {read}'
    weights = '3 -1 {weights}'
    to = 'u{k}_residual'
  []
  [all{k}]
    type = ComposedModel
    models = '{models}'
  []
  [solve{k}]
    type = ImplicitUpdate
    equation_system = 'system{k}'
    solver = 'newton'
  []
"""
SYSTEM = """
  [system{k}]
    type = NonlinearSystem
    model = 'all{k}'
    unknowns = 'u{k}'
  []
"""


def nested_file(levels: int) -> str:
    """Linear updates, each inside the residual of the next, whose unknown it reads."""
    models, systems = "", ""
    for k in range(levels):
        read = [f"u{n}" for n in (k - 1, k + 1) if 0 <= n < levels]
        inner = f"solve{k - 1} r{k}" if k else f"r{k}"
        weights = " ".join("0.5" for _ in read)
        models += LEVEL.format(k=k, read=" ".join(read), weights=weights, models=inner)
        systems += SYSTEM.format(k=k)
    return (
        f"[Models]{models}[]\n[EquationSystems]{systems}[]\n[Solvers]\n[newton]\ntype = Newton\n"
        "[]\n[]\n"
    )


def test_an_update_inside_the_residual_of_another_is_solved() -> None:
    program = verify(prepared(build(read_text(nested_file(2)), "solve1")))
    assert [s.name for s in program.solves] == ["solve0", "solve1"]
    y = torch.linspace(0.5, 2.0, 4, dtype=torch.float64)
    zero = torch.zeros_like(y)
    sloped = with_jacobian(program, [("u1", "y")])
    found, statuses = Interpreter(sloped)({v.name: y if v.name == "y" else zero
                                           for v in program.inputs})  # fmt: skip
    assert all(bool(s.converged.all()) for s in statuses)
    # 3 u0 + u1 / 2 = y and 3 u1 + u0 / 2 = y
    slope = (1 - 0.5 / 3) / (3 - 0.25 / 3)
    torch.testing.assert_close(found["u1"], slope * y, rtol=1e-12, atol=0)
    torch.testing.assert_close(found["u1:y"], torch.full_like(y, slope), rtol=1e-12, atol=0)


def test_three_updates_inside_one_another_are_refused() -> None:
    with pytest.raises(IngotError) as raised:
        prepared(build(read_text(nested_file(3)), "solve2"))
    (problem,) = raised.value.problems
    assert problem.code == "nested-solves"
    assert all(f"[solve{k}]" in problem.message for k in range(3))


TWO_PLACES = """
[Models]
  [double]
    type = ScalarLinearCombination
    from = '{first}'
    weights = '2'
    to = 'drive'
  []
  [residual]
    type = ScalarMultiplication
    from = 'u u'
    to = 'square'
  []
  [row]
    type = ScalarLinearCombination
    from = 'square drive'
    weights = '1 -1'
    to = 'u_residual'
  []
  [both]
    type = ComposedModel
    models = 'residual row'
  []
  [root]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    guess = 'old'
  []
  [inside]
    type = ComposedModel
    models = 'double root copy'
  []
  [copy]
    type = ScalarLinearCombination
    from = 'u'
    to = 'inner'
  []
  [half]
    type = ScalarLinearCombination
    from = '{second}'
    weights = '0.5'
    to = 'drive'
  []
  [outside]
    type = ComposedModel
    models = 'inside half root'
    additional_outputs = 'inner u'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'both'
    unknowns = 'u'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
"""


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
@pytest.mark.parametrize("run", [Interpreter, Kernel])
def test_a_system_solved_in_two_places_fails_where_either_does(
    run: Callable[[Program], Interpreter], order: tuple[str, str]
) -> None:
    text = TWO_PLACES.format(first=order[0], second=order[1])
    program = prepared(build(read_text(text), "outside"))
    assert [s.name for s in program.solves] == ["root", "root (2)"]
    numbers = {"x": [8.0, -1.0, 8.0], "y": [2.0, 2.0, -1.0], "u~1": [1.0, 1.0, 1.0]}
    inputs = {n: torch.tensor(x, dtype=torch.float64) for n, x in numbers.items()}
    found, statuses = run(program)(inputs)
    first, second = (numbers[n][0] for n in order)
    assert float(found["inner"][0]) == pytest.approx((2 * first) ** 0.5, rel=1e-8)
    assert float(found["u"][0]) == pytest.approx((0.5 * second) ** 0.5, rel=1e-8)
    converged = {n: s.converged.tolist() for n, s in zip(order, statuses, strict=True)}
    assert converged == {"x": [True, False, True], "y": [True, True, False]}


def test_choices_of_an_elimination_are_taken_over() -> None:
    first = compile_passes(nest())
    like = {s.factored.source: s for s in first.solves if s.factored is not None}
    again = compile_passes(forward(nest()), Choices(like=like))
    for before, after in zip(first.solves, again.solves, strict=True):
        assert before.factored.newton.pivots == after.factored.newton.pivots
