# ruff: noqa: F821 - names of axes
"""Loops in laws agree with plain torch on the untraced function, in values and slopes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ingot.codegen.source import write_source
from ingot.errors import IngotError
from ingot.execute.inductor import plan_graphs
from ingot.program import (
    Axis,
    Builder,
    Newton,
    Node,
    Program,
    Solve,
    Variable,
    compile_passes,
    verify,
    with_adjoint,
    with_jacobian,
)
from ingot.program.implicit import close_solve, read_items
from ingot.program.repetition import repeat_lines
from ingot.types import SR2, Scalar, contract, interpolate, norm, repeat, tanh, total, where
from tests.execute.test_inductor import assert_agrees, compiled, printing
from tests.program.agreement import LOOPS, agree, every_executor, on_tensors
from tests.program.declared import program_of

F64 = torch.float64


def newton_steps(count: int) -> Callable[..., Scalar]:
    """The root of y + y^3 / 3 = x by some steps, and a counter that is carried along."""

    def Steps(x: Scalar, stiff: Scalar) -> Scalar:
        """Steps."""

        def step(y: Scalar, n: Scalar) -> tuple[Scalar, Scalar]:
            return y - (stiff * y + y * y * y / 3.0 - x) / (stiff + y * y), n + 1.0

        y, n = repeat(count, step, (x * 0.5, Scalar(0.0)))
        return y + n * x

    return Steps


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_a_loop_agrees_with_torch(count: int) -> None:
    law = newton_steps(count)
    draw = torch.Generator().manual_seed(count)
    point = {
        "x": torch.randn(5, generator=draw, dtype=F64),
        "stiff": 1.0 + torch.rand(5, generator=draw, dtype=F64),
    }
    agree(program_of(law), on_tensors(law, x=Scalar, stiff=Scalar), point)


def Sweep(x: Scalar["cell"], weights: Scalar["other", "cell"], rate: Scalar) -> Scalar["cell"]:
    """A body that sums over an axis, reads a matrix, and carries a scalar that becomes a field."""

    def step(u: Scalar, size: Scalar) -> tuple[Scalar, Scalar]:
        mean = total(u * rate, "cell") * 0.25
        return tanh(u + x * size) - rate * mean, size * 0.5 + norm(u) * 0.1

    u, size = repeat(4, step, (x * rate, Scalar(1.0)))
    return u * total(contract(weights, u, "cell"), "other") + size


def test_a_loop_along_axes_agrees_with_torch() -> None:
    draw = torch.Generator().manual_seed(3)
    shapes = {"x": (3,), "weights": (2, 3)}
    point = {
        "x": torch.randn(4, 3, generator=draw, dtype=F64),
        "weights": torch.randn(4, 2, 3, generator=draw, dtype=F64),
        "rate": torch.rand(4, generator=draw, dtype=F64),
    }
    agree(
        program_of(Sweep, shapes=shapes),
        on_tensors(Sweep, x=Scalar, weights=Scalar, rate=Scalar),
        point,
    )


def Inner(strain: SR2, knots: Scalar["knot"], values: Scalar["knot"]) -> SR2:
    """A loop inside a loop, tensors carried, a table read."""

    def outer(s: SR2) -> SR2:
        def inner(a: Scalar) -> Scalar:
            return a - 0.3 * (a * a + 0.1 * norm(s) - 1.0)

        found = repeat(3, inner, Scalar(0.4))
        return s * 0.5 + strain * found * interpolate(found, knots, values, "knot")

    return repeat(3, outer, strain * 0.1)


def test_a_loop_inside_a_loop_agrees_with_torch() -> None:
    draw = torch.Generator().manual_seed(4)
    point = {
        "strain": torch.randn(3, 6, generator=draw, dtype=F64),
        "knots": torch.rand(3, 5, generator=draw, dtype=F64).sort(-1).values,
        "values": torch.randn(3, 5, generator=draw, dtype=F64),
    }
    program = program_of(Inner, shapes={"knots": (5,), "values": (5,)})
    agree(program, on_tensors(Inner, strain=SR2, knots=Scalar, values=Scalar), point)


@pytest.mark.exhaustive
def test_compiled_graphs_of_loops_and_tables_hold_for_any_batch(tmp_path: Path) -> None:
    program = program_of(Inner, shapes={"knots": (5,), "values": (5,)})
    pairs = [("out", "strain")]
    run = compiled(program, pairs, tmp_path)
    draw = torch.Generator().manual_seed(8)
    for points in (1, 7):
        point = {
            "strain": torch.randn(points, 6, generator=draw, dtype=F64),
            "knots": torch.rand(points, 5, generator=draw, dtype=F64).sort(-1).values,
            "values": torch.randn(points, 5, generator=draw, dtype=F64),
        }
        assert_agrees(run, program, point, pairs)


def test_second_derivatives_by_any_two_modes_are_those_of_torch() -> None:
    law = newton_steps(3)
    program = program_of(law)
    draw = torch.Generator().manual_seed(5)
    names = ("x", "stiff")
    x, stiff = (
        torch.randn(4, generator=draw, dtype=F64),
        1.0 + torch.rand(4, generator=draw, dtype=F64),
    )
    plain = on_tensors(law, x=Scalar, stiff=Scalar)
    hessian = torch.func.hessian(lambda x, stiff: plain(x=x, stiff=stiff), argnums=(0, 1))
    want = torch.vmap(hessian)(x, stiff)
    one = torch.ones(4, dtype=F64)
    point = {"x": x, "stiff": stiff, "a.out": one, "a.slope": one}
    adjoint = with_adjoint(program, ["out"], names)
    forward = with_jacobian(program, [("out", n) for n in names])
    for i, a in enumerate(names):
        # one slope is all that is left to differentiate, as an output of its own name
        backward = renamed(adjoint, f"a.{a}", "slope")
        tried = [
            with_jacobian(renamed(forward, f"out:{a}", "slope"), [("slope", b) for b in names]),
            with_jacobian(backward, [("slope", b) for b in names]),
            with_adjoint(backward, ["slope"], names),
        ]
        for second in tried:
            for found in every_executor(verify(second), point):
                for j, b in enumerate(names):
                    told = found.get(f"slope:{b}", found.get(f"a.{b}"))
                    torch.testing.assert_close(told, want[i][j], rtol=1e-11, atol=1e-11)


def renamed(program: Program, old: str, new: str) -> Program:
    """One output alone, under another name."""
    outputs = [replace(v, name=new) for v in program.outputs if v.name == old]
    return replace(program, outputs=tuple(outputs))


def test_a_loop_is_never_written_out() -> None:
    def lengths(count: int) -> list[int]:
        program = program_of(newton_steps(count))
        adjoint = with_adjoint(program, ["out"], ["x", "stiff"])
        slopes = with_jacobian(program, [("out", "x")])
        sources = [write_source(compile_passes(p, LOOPS)) for p in (program, slopes, adjoint)]
        return [len(text.splitlines()) for text in sources]

    assert lengths(1000) == lengths(3)
    assert len(program_of(newton_steps(1000)).lines) == len(program_of(newton_steps(3)).lines)


def test_graphs_refuse_a_loop_too_long_to_write_out_before_they_write_it() -> None:
    program = program_of(newton_steps(10**9))
    with pytest.raises(IngotError, match="each of its 1000000000 steps") as raised:
        plan_graphs(program, (), "model")
    (problem,) = raised.value.problems
    assert problem.code == "program-too-long"
    assert "--backend kernel" in str(problem.fix)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_nan_passes_through_a_loop_as_through_torch(dtype: torch.dtype) -> None:
    law = newton_steps(5)
    x = torch.tensor([float("nan"), 0.5, float("inf")], dtype=dtype)
    stiff = torch.tensor([1.0, 1.5, 1.0], dtype=dtype)
    want = on_tensors(law, x=Scalar, stiff=Scalar)(x=x, stiff=stiff)
    for found in every_executor(program_of(law), {"x": x, "stiff": stiff}, dtype=dtype):
        assert found["out"].dtype == dtype
        torch.testing.assert_close(found["out"], want.to(dtype), equal_nan=True)


def Chosen(x: Scalar) -> Scalar:
    """A condition that is carried, and a value that is passed on as it was."""

    def step(low: Scalar, high: Scalar, is_even: Any) -> tuple[Any, ...]:
        middle = 0.5 * (low + high)
        above = middle * middle > x
        return where(above, low, middle), where(above, middle, high), ~is_even

    low, high, is_even = repeat(30, step, (Scalar(0.0), x + 1.0, x > 100.0))
    return where(is_even, low, low + high)


def test_a_bisection_agrees_with_torch() -> None:
    x = torch.tensor([0.25, 2.0, 9.0], dtype=F64)
    for found in every_executor(program_of(Chosen), {"x": x}):
        torch.testing.assert_close(found["out"], 2 * x.sqrt(), rtol=1e-7, atol=0)
        assert torch.equal(found["out"], Chosen(Scalar(x)).data)


def residual(b: Builder, *, nested: bool) -> Program:
    """2 u + v = x and v = 0.4 sin applied to u thrice, each by its own unknown if not nested."""
    x, rate = (b.node("input", (), (name, 0)) for name in ("x", "rate"))
    u = b.placeholder("unknown", (), "u")

    def body(columns: list[Node]) -> list[Node]:
        return [b.emit("mul", rate, b.emit("sin", columns[0]))]

    if nested:
        v = u
        for _ in range(3):
            (v,) = body([v])
    else:
        (v,) = repeat_lines(b, 3, body, [u])
    row = b.emit("sub", b.emit("add", b.emit("mul", 2.0, u), v), x)
    solve = Solve("u", (Variable("u", Scalar, (), (u,)),), (Variable("r", Scalar, (), (row,)),),
                  (), Newton(abs_tol=1e-13, rel_tol=1e-14))  # fmt: skip
    (item,) = read_items(b, close_solve(b, solve, [b.zero]))
    given = tuple(Variable(n.attr[0], Scalar, (), (n,)) for n in (x, rate))
    return verify(Program(b.extents, given, (), (Variable("u", Scalar, (), (item,)),)))


def test_a_loop_in_a_residual_is_solved_and_differentiated_as_its_steps_are() -> None:
    looped, straight = (residual(Builder(), nested=nested) for nested in (False, True))
    draw = torch.Generator().manual_seed(6)
    point = {n: torch.randn(5, generator=draw, dtype=F64) for n in ("x", "rate", "a.u")}
    pairs = [("u", "x"), ("u", "rate")]
    assert_agrees(printing(looped, pairs), looped, {n: point[n] for n in ("x", "rate")}, pairs)
    for each in (
        lambda p: with_jacobian(p, pairs),
        lambda p: with_adjoint(p, ["u"], ["x", "rate"]),
    ):
        (want, *_) = every_executor(each(straight), point)
        for found in every_executor(verify(each(looped)), point):
            for name, x in found.items():
                torch.testing.assert_close(x, want[name], rtol=1e-10, atol=1e-11)


def test_a_solve_inside_a_body_is_refused_by_name() -> None:
    b = Builder()

    def body(columns: list[Node]) -> list[Node]:
        u = b.placeholder("unknown", (), "u")
        row = b.emit("sub", b.emit("add", u, b.emit("tanh", u)), columns[0])
        one = (Variable("u", Scalar, (), (u,)),), (Variable("r", Scalar, (), (row,)),)
        return read_items(b, close_solve(b, Solve("inner", *one, (), Newton()), [b.zero]))

    with pytest.raises(IngotError, match=r"\[inner\] is solved inside the body of a repeat"):
        repeat_lines(b, 3, body, [b.node("input", (), ("x", 0))])


def wrong_kind(x: Scalar) -> Scalar:
    """A body that returns more than it was given."""
    return repeat(3, lambda y: (y, x), x)


def test_a_body_that_returns_other_kinds_is_refused() -> None:
    with pytest.raises(
        IngotError, match="repeat carries Scalar, and its body returns Scalar Scalar"
    ):
        program_of(wrong_kind)


def counting(change: Callable[[list[Any], Scalar], Any]) -> Callable[..., Scalar]:
    """A law whose body changes what it finds in Python."""

    def Counts(x: Scalar) -> Scalar:
        """Counts."""
        held: list[Any] = [1.0]

        def inner(a: Scalar) -> Scalar:
            held[0] = change(held, x)
            return tanh(a) * held[0]

        return repeat(4, lambda a: repeat(3, inner, a) + x, x)

    return Counts


def test_a_body_that_counts_in_python_is_refused() -> None:
    for change in (lambda held, _: held[0] + 1, lambda held, x: held[0] * x):
        with pytest.raises(IngotError, match=r"Counts.*body of repeat gives other lines"):
            program_of(counting(change))
    program_of(counting(lambda held, _: held[0]))
    program_of(counting(lambda _, x: x + 1.0))


def test_a_loop_is_shown_with_its_body() -> None:
    told = str(program_of(newton_steps(3)))
    assert "= repeat(3 steps from c0 = (0.5 * x), c1 = 0)" in told
    assert "    next c1 = 1 + c1" in told


def test_equal_loops_are_one_line_and_have_one_digest() -> None:
    def twice(x: Scalar) -> Scalar:
        """The same loop twice."""
        return repeat(4, lambda y: tanh(y) * x, x) + repeat(4, lambda y: tanh(y) * x, x)

    program = program_of(twice)
    assert sum(n.op == "repeat" for n in program.lines) == 1
    assert program.digest == program_of(twice).digest
    other = program_of(lambda_of(5))
    assert len({program_of(lambda_of(4)).digest, other.digest}) == 2


def lambda_of(count: int) -> Callable[..., Scalar]:
    """A loop of a number of steps."""

    def Counted(x: Scalar) -> Scalar:
        """Steps."""
        return repeat(count, lambda y: tanh(y) * x, x)

    return Counted


def test_networks_tables_and_loops_stand_in_one_residual() -> None:
    hidden, other = Axis("hidden"), Axis("other")
    b = Builder({"hidden": 4, "other": 3})
    e, draw = b.emit, torch.Generator().manual_seed(7)
    x, w = b.node("input", (), ("x", 0)), b.node("input", (), ("w", 0), (hidden,))
    u, v = (b.placeholder("unknown", (), name) for name in "uv")

    def body(columns: list[Node]) -> list[Node]:
        return [e("tanh", e("add", e("mul", 0.3, columns[0]), e("mul", w, v)))]

    (layer,) = repeat_lines(b, 3, body, [e("tanh", e("mul", w, u))])
    weights = b.table(torch.randn(3, 4, generator=draw, dtype=F64).numpy(), (other, hidden))
    mixed = b.along("contract", weights, layer, axis="hidden")
    knots = b.table(torch.tensor([-2.0, -0.3, 0.2, 1.0], dtype=F64).numpy(), (hidden,))
    height = b.along("interpolate", v, knots, w, axis=("hidden",))
    total = b.along("sum", e("sin", mixed), axis="other")
    first = e("sub", e("add", e("mul", 3.0, u), e("mul", 0.1, total)), x)
    second = e("sub", e("add", e("mul", 4.0, v), e("mul", 0.3, height)), u)

    def scalar(name: str, node: Node) -> Variable:
        return Variable(name, Scalar, (), (node,))

    rows = (scalar("first", first), scalar("second", second))
    newton = Newton(abs_tol=1e-13, rel_tol=1e-14)
    solve = Solve("both", (scalar("u", u), scalar("v", v)), rows, (), newton)
    items = read_items(b, close_solve(b, solve, [b.zero, b.zero]))
    given = (scalar("x", x), Variable("w", Scalar, (hidden,), (w,)))
    outputs = tuple(scalar(name, item) for name, item in zip("uv", items, strict=True))
    program = verify(Program(b.extents, given, (), outputs))
    point = {"x": torch.randn(5, generator=draw, dtype=F64),
             "w": torch.randn(5, 4, generator=draw, dtype=F64)}  # fmt: skip
    pairs = [("u", "x"), ("u", "w"), ("v", "w")]
    assert_agrees(printing(program, pairs), program, point, pairs)
    want, *others = every_executor(with_jacobian(program, pairs), point)
    bars = {"a.u": torch.randn(5, generator=draw, dtype=F64)}
    adjoints = every_executor(with_adjoint(program, ["u"], ["x", "w"]), {**point, **bars})
    for found in others:
        for name, t in found.items():
            torch.testing.assert_close(t, want[name], rtol=1e-10, atol=1e-12)
    for found in adjoints:
        told = want["u:w"] * bars["a.u"][:, None]
        torch.testing.assert_close(found["a.w"], told, rtol=1e-10, atol=1e-12)
