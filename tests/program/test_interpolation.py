# ruff: noqa: F821 - names of axes
"""Tables in laws agree with plain torch on the untraced function, in values and slopes."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.catalog import Parameter
from ingot.codegen.source import write_source
from ingot.errors import IngotError
from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Axis,
    Builder,
    Newton,
    Program,
    Solve,
    Variable,
    compile_passes,
    freeze,
    trace,
    verify,
    with_adjoint,
    with_jacobian,
)
from ingot.program.implicit import close_solve, read_items
from ingot.types import SR2, Scalar, interpolate, tanh
from tests.execute.test_inductor import assert_agrees, printing
from tests.program.agreement import LOOPS, agree, every_executor, on_tensors
from tests.program.declared import declared, program_of

F64 = torch.float64


def Table(
    argument: Scalar,
    *,
    abscissa: Parameter[Scalar["knot"]],
    ordinate: Parameter[Scalar["knot"]],
) -> Scalar:
    """A table.

    abscissa: knots
    ordinate: values
    """
    return interpolate(argument, abscissa, ordinate, "knot")


def Tensors(
    argument: Scalar["slip"],
    *,
    abscissa: Parameter[Scalar["knot"]],
    ordinate: Parameter[SR2["slip", "knot"]],
) -> SR2["slip"]:
    """A table of tensors for each slip system.

    abscissa: knots
    ordinate: values
    """
    return interpolate(tanh(argument), abscissa, ordinate, "knot") * 2.0


def Plane(
    first: Scalar,
    second: Scalar,
    *,
    abscissa1: Parameter[Scalar["row"]],
    abscissa2: Parameter[Scalar["column"]],
    ordinate: Parameter[SR2["row", "column"]],
) -> SR2:
    """A bilinear table.

    abscissa1: rows
    abscissa2: columns
    ordinate: values
    """
    return interpolate((first, second), (abscissa1, abscissa2), ordinate, ("row", "column"))


def ascending(draw: torch.Generator, *shape: int) -> Tensor:
    """Random knots."""
    steps = 0.2 + torch.rand(*shape, generator=draw, dtype=F64)
    return steps.cumsum(-1) - 0.35 * shape[-1]


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_a_table_agrees_with_torch_by_argument_abscissas_and_ordinates(size: int) -> None:
    draw = torch.Generator().manual_seed(size)
    program = program_of(Table, shapes={"abscissa": (size,), "ordinate": (size,)})
    point = {
        "argument": torch.randn(7, generator=draw, dtype=F64) * size / 2,
        "abscissa": ascending(draw, 7, size),
        "ordinate": torch.randn(7, size, generator=draw, dtype=F64),
    }
    plain = on_tensors(Table, argument=Scalar, abscissa=Scalar, ordinate=Scalar)
    agree(program, plain, point)


def test_a_table_of_tensors_on_an_axis_agrees_with_torch() -> None:
    draw = torch.Generator().manual_seed(0)
    shapes = {"argument": (3,), "abscissa": (4,), "ordinate": (3, 4)}
    point = {
        "argument": torch.randn(5, 3, generator=draw, dtype=F64),
        "abscissa": ascending(draw, 5, 4),
        "ordinate": torch.randn(5, 3, 4, 6, generator=draw, dtype=F64),
    }
    plain = on_tensors(Tensors, argument=Scalar, abscissa=Scalar, ordinate=SR2)
    agree(program_of(Tensors, shapes=shapes), plain, point)


@pytest.mark.parametrize("sizes", [(4, 3), (1, 3), (2, 1)])
def test_a_bilinear_table_agrees_with_torch(sizes: tuple[int, int]) -> None:
    draw = torch.Generator().manual_seed(2)
    rows, columns = sizes
    shapes = {"abscissa1": (rows,), "abscissa2": (columns,), "ordinate": sizes}
    point = {
        "first": torch.randn(5, generator=draw, dtype=F64),
        "second": torch.randn(5, generator=draw, dtype=F64),
        "abscissa1": ascending(draw, 5, rows),
        "abscissa2": ascending(draw, 5, columns),
        "ordinate": torch.randn(5, rows, columns, 6, generator=draw, dtype=F64),
    }
    kinds = dict.fromkeys(("first", "second", "abscissa1", "abscissa2"), Scalar)
    agree(program_of(Plane, shapes=shapes), on_tensors(Plane, ordinate=SR2, **kinds), point)


def test_bilinear_numbers_are_those_of_its_formula() -> None:
    rng = np.random.default_rng(3)
    rows, columns, table = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.5]), rng.normal(size=(3, 2))
    for x, y in [(0.4, 0.1), (1.0, -2.0), (5.0, 3.0), (-1.0, 0.5)]:
        i = int(np.clip(np.searchsorted(rows, x, side="right"), 1, 2)) - 1
        xi, eta = (x - rows[i]) / (rows[i + 1] - rows[i]), (y + 1.0) / 1.5
        (a, c), (b, d) = table[i], table[i + 1]
        want = a + (b - a) * xi + (c - a) * eta + (d - b - c + a) * xi * eta
        found = interpolate(
            (Scalar(x), Scalar(y)),
            (Scalar(rows, sub_batch_ndim=1), Scalar(columns, sub_batch_ndim=1)),
            Scalar(table, sub_batch_ndim=2),
            ("row", "column"),
        )
        assert found.data.item() == pytest.approx(want, rel=1e-13)


KNOTS, VALUES = [0.0, 1.0, 2.0, 4.0], [1.0, 3.0, 2.0, 2.5]
FILE = """
[Tensors]
  [X]
    type = Python
    expr = 'Scalar(torch.tensor({knots}, dtype=torch.float64), sub_batch_ndim=1)'
  []
  [Y]
    type = Python
    expr = 'Scalar(torch.tensor({values}, dtype=torch.float64), sub_batch_ndim=1)'
  []
[]
[Models]
  [law]
    type = Table
    abscissa = 'X'
    ordinate = 'Y'
  []
[]
"""


def program_of_file(
    knots: Any = KNOTS, values: Any = VALUES, keep: tuple[str, ...] = ()
) -> Program:
    """The table with parameters of a file, which are frozen but for some."""
    with declared(Table):
        model = build(read_text(FILE.format(knots=knots, values=values)), "law")
        return verify(freeze(trace(model), 2.0**-52, keep))


def test_slopes_are_those_to_the_right_of_a_knot_and_outside_those_of_the_end() -> None:
    argument = torch.tensor([-2.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 9.0], dtype=F64)
    slope = torch.tensor([2.0, 2.0, 2.0, -1.0, 0.25, 0.25, 0.25, 0.25], dtype=F64)
    value = torch.tensor([-3.0, 1.0, 2.0, 3.0, 2.0, 2.25, 2.5, 3.75], dtype=F64)
    for keep in ((), ("abscissa",), ("abscissa", "ordinate")):
        program = with_jacobian(program_of_file(keep=keep), [("out", "argument")])
        for found in every_executor(program, {"argument": argument}):
            assert torch.equal(found["out"], value)
            assert torch.equal(found["out:argument"], slope)


def test_a_knot_given_twice_is_a_jump() -> None:
    program = program_of_file([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0])
    argument = torch.tensor([0.5, 1.0, 1.5], dtype=F64)
    for found in every_executor(program, {"argument": argument}):
        assert found["out"].tolist() == [0.5, 5.0, 5.5]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_nan_and_infinity_are_those_of_torch(dtype: torch.dtype) -> None:
    argument = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.7], dtype=dtype)
    want = interpolate(
        Scalar(argument), *(Scalar(torch.tensor(t, dtype=dtype), sub_batch_ndim=1)
                            for t in (KNOTS, VALUES)), "knot",
    ).data  # fmt: skip
    for found in every_executor(program_of_file(), {"argument": argument}, dtype=dtype):
        assert found["out"].dtype == dtype
        torch.testing.assert_close(found["out"], want, equal_nan=True)


def test_batched_tables_are_read_point_by_point() -> None:
    program = program_of_file([KNOTS, [-1.0, 0.0, 0.5, 1.0]], [VALUES, [0.0, 1.0, 0.0, 7.0]])
    for found in every_executor(program, {"argument": torch.tensor([1.5, 0.75], dtype=F64)}):
        assert found["out"].tolist() == [2.5, 3.5]


def test_loops_over_long_tables_are_no_longer_than_over_short_ones() -> None:
    def lines(size: int) -> int:
        program = program_of(Table, shapes={"abscissa": (size,), "ordinate": (size,)})
        return len(write_source(compile_passes(program, LOOPS)).splitlines())

    assert lines(500) == lines(5)


def test_a_table_in_a_residual_is_solved_and_differentiated() -> None:
    """u + f(u) = x, f by parts linear and convex: the solution and its slope are known."""
    b = Builder({"knot": 4})
    knot = (Axis("knot"),)
    x, shift = (b.node("input", (), (name, 0)) for name in ("x", "shift"))
    u = b.placeholder("unknown", (), "u")
    table = b.along("interpolate", u, b.table(np.array(KNOTS), knot),
                    b.emit("add", b.table(np.array([0.0, 1.0, 3.0, 11.0]), knot), shift),
                    axis=("knot",))  # fmt: skip
    row = b.emit("sub", b.emit("add", u, table), x)
    solve = Solve("u", (Variable("u", Scalar, (), (u,)),), (Variable("r", Scalar, (), (row,)),),
                  (), Newton(abs_tol=1e-13, rel_tol=1e-14))  # fmt: skip
    (item,) = read_items(b, close_solve(b, solve, [b.const(0.3)]))
    given = tuple(Variable(n.attr[0], Scalar, (), (n,)) for n in (x, shift))
    program = verify(Program(b.extents, given, (), (Variable("u", Scalar, (), (item,)),)))
    slopes = with_jacobian(program, [("u", "x"), ("u", "shift")])
    adjoint = with_adjoint(program, ["u"], ["x", "shift"])
    want = torch.tensor([-1.0, 0.5, 1.5, 3.0], dtype=F64)
    rise = torch.tensor([1.0, 1.0, 2.0, 4.0], dtype=F64)
    start = torch.tensor([-1.0, 0.5, 2.0, 7.0], dtype=F64)
    point = {"x": want + start + 0.25, "shift": torch.full((4,), 0.25, dtype=F64)}
    assert_agrees(printing(program, pairs := [("u", "x"), ("u", "shift")]), program, point, pairs)
    for found in every_executor(slopes, point):
        torch.testing.assert_close(found["u"], want)
        torch.testing.assert_close(found["u:x"], 1 / (1 + rise))
        torch.testing.assert_close(found["u:shift"], -1 / (1 + rise))
    for found in every_executor(adjoint, {**point, "a.u": torch.ones(4, dtype=F64)}):
        torch.testing.assert_close(found["a.x"], 1 / (1 + rise))
        torch.testing.assert_close(found["a.shift"], -1 / (1 + rise))


def Own(argument: Scalar["knot"], *, ordinate: Parameter[Scalar["knot"]]) -> Scalar["knot"]:
    """A table read at values on its own axis.

    ordinate: values
    """
    return interpolate(argument, ordinate, ordinate, "knot")


def test_a_value_on_the_axis_of_the_knots_is_refused() -> None:
    with pytest.raises(IngotError, match="a table along 'knot' is read at a value that lies on"):
        program_of(Own, shapes={"argument": (3,), "ordinate": (3,)})
