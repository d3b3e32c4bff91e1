"""Forward and reverse derivatives of any program agree with one another and with differences."""

import math

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ingot.program import Axis, Builder, Node, operation, sort_lines
from ingot.program.builder import Symbol
from ingot.program.differentiate import differentiate_along, gradient, jacobian
from ingot.types import R2, SR2, Scalar, Vec, exp, norm, sqrt, where
from ingot.types import abs as absolute
from ingot.types.elementwise import ELEMENTWISE
from tests.program.graphs import BINARY, OF_FIELDS, UNARY, Drawn, binary, programs, unary, values

often = settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
STEP = 1e-6


def reverse(drawn: Drawn) -> list[Tensor]:
    """The gradient by each input, in reverse."""
    found = drawn.run(gradient(drawn.builder, drawn.output, drawn.inputs))
    return [x.expand_as(p) for x, p in zip(found, drawn.point, strict=True)]


def forward(drawn: Drawn) -> list[Tensor]:
    """The same by columns, each entry of an axis a column."""
    (row,) = jacobian(drawn.builder, [drawn.output], drawn.inputs, dense=True)
    found = []
    for j, x in enumerate(drawn.point):
        entry = row.get((j, ()))
        found.append(torch.zeros_like(x) if entry is None else drawn.run([entry])[0].expand_as(x))
    return found


def differences(drawn: Drawn) -> list[Tensor]:
    """The same by central differences; examples that stand at a kink are passed over."""
    found = []
    for j, x in enumerate(drawn.point):
        unit = STEP * torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
        moved = torch.cat([x + unit, x[None], x - unit])
        point = [moved if k == j else p for k, p in enumerate(drawn.point)]
        (results,) = drawn.run([drawn.output], point)
        results = results.expand(len(moved))
        ahead, here, behind = results[: x.numel()], results[x.numel()], results[-x.numel() :]
        assume(float((ahead - 2 * here + behind).abs().max()) < 1e-8)
        found.append(((ahead - behind) / (2 * STEP)).reshape(x.shape))
    return found


def agree(ours: list[Tensor], theirs: list[Tensor], tolerance: float) -> None:
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@often
@given(drawn=programs(axes=False))
def test_forward_is_reverse(drawn: Drawn) -> None:
    agree(forward(drawn), reverse(drawn), 1e-11)


@often
@given(drawn=programs(axes=True))
def test_forward_is_reverse_along_axes(drawn: Drawn) -> None:
    agree(forward(drawn), reverse(drawn), 1e-11)


@often
@given(drawn=programs(axes=False))
def test_reverse_is_the_finite_difference(drawn: Drawn) -> None:
    agree(reverse(drawn), differences(drawn), 1e-6)


@often
@given(drawn=programs(axes=True))
def test_reverse_is_the_finite_difference_along_axes(drawn: Drawn) -> None:
    agree(reverse(drawn), differences(drawn), 1e-6)


@often
@given(drawn=programs(axes=True))
def test_slope_along_a_direction_is_the_gradient_times_it(drawn: Drawn) -> None:
    g = drawn.builder
    source = torch.Generator().manual_seed(3)
    along = [torch.rand(x.shape, generator=source, dtype=torch.float64) for x in drawn.point]
    nodes = [g.node("input", (), (f"d{i}", 0), n.axes) for i, n in enumerate(drawn.inputs)]
    (slope,) = differentiate_along(g, [drawn.output], drawn.inputs, nodes)
    (found,) = values(g, (*drawn.inputs, *nodes), [slope], (*drawn.point, *along))
    expected = sum(float((a * b).sum()) for a, b in zip(reverse(drawn), along, strict=True))
    assert float(found) == pytest.approx(expected, rel=1e-10, abs=1e-11)


@settings(often, max_examples=60)
@given(drawn=programs(axes=True, sums=False))
def test_rows_by_shifts_are_the_dense_rows(drawn: Drawn) -> None:
    """Entry i of a row reads entry i + shift of a column."""
    rows = [n for n in drawn.lines if n.axes][-4:]
    sparse, dense = (jacobian(drawn.builder, rows, drawn.inputs, dense=d) for d in (False, True))
    for row, by_shift, whole in zip(rows, sparse, dense, strict=True):
        length = drawn.builder.extent(row.axes[0])
        for j, x in enumerate(drawn.point):
            expected = torch.zeros(length, *x.shape, dtype=x.dtype)
            if (j, ()) in whole:
                expected = expected + drawn.run([whole[j, ()]])[0]
            found = torch.zeros_like(expected)
            for (column, shifts), node in by_shift.items():
                if column != j:
                    continue
                entries = drawn.run([node])[0].expand(length)
                for i, entry in enumerate(entries.tolist()):
                    at = (i, *(i + s for s in shifts))
                    if all(0 <= p < n for p, n in zip(at, found.shape, strict=True)):
                        found[at] += entry
                    else:
                        assert entry == 0.0, "a row reads past the end of a column"
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@settings(often, max_examples=40)
@given(drawn=programs(axes=False))
def test_second_derivatives_are_symmetric_and_those_of_the_first(drawn: Drawn) -> None:
    first = gradient(drawn.builder, drawn.output, drawn.inputs)
    rows = jacobian(drawn.builder, first, drawn.inputs)
    size = len(first)
    zero = drawn.builder.zero
    entries = [rows[i].get((j, ()), zero) for i in range(size) for j in range(size)]
    hessian = torch.stack(drawn.run(entries)).reshape(size, size)
    torch.testing.assert_close(hessian, hessian.T, rtol=1e-9, atol=1e-9)
    for j in range(size):
        again = drawn.run(gradient(drawn.builder, first[j], drawn.inputs))
        torch.testing.assert_close(torch.stack(again), hessian[j], rtol=1e-9, atol=1e-9)


def linear(g: Builder, op: str, x: Node, first: int, last: int) -> Node:
    """A linear operation along the axis of `x`."""
    if op in ("window", "pad"):
        return g.along(op, x, axis="cell", first=first, last=last)
    if op == "append":
        return g.along("append", x, 0.0, axis="cell", side="left" if first else "right")
    if op == "spread":
        return g.emit("add", x, g.node("input", (), ("unused", 0), (Axis("cell", 0),)))
    return g.along("sum", x, axis="cell")


@pytest.mark.parametrize("op", ["sum", "window", "pad", "append", "spread"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    first=st.integers(0, 2), last=st.integers(0, 2), extent=st.integers(5, 8),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_reverse_of_a_linear_operation_is_its_adjoint(
    op: str, first: int, last: int, extent: int, seed: int
) -> None:
    """<A x, y> is <x, A* y>: the left by forward mode, the right by reverse mode."""
    g = Builder({"cell": extent})
    axes = () if op == "spread" else (Axis("cell"),)
    x, dx = (g.node("input", (), (name, 0), axes) for name in ("x", "dx"))
    image = linear(g, op, x, first, last)
    y = g.node("input", (), ("y", 0), image.axes)
    extra = [n for n in sort_lines([image]) if n.attr == ("unused", 0)]
    source = torch.Generator().manual_seed(seed)
    given_nodes = [x, dx, y, *extra]
    point = [
        torch.rand([g.extent(a) for a in n.axes], generator=source, dtype=torch.float64)
        for n in given_nodes
    ]
    (moved,) = differentiate_along(g, [image], [x], [dx])
    product = g.emit("mul", image, y)
    scalar = g.along("sum", product, axis="cell") if product.axes else product
    (adjoint,) = gradient(g, scalar, [x])
    forwards, backwards = values(g, given_nodes, [moved, adjoint], point)
    left = (forwards.expand_as(point[2]) * point[2]).sum()
    right = (backwards.expand_as(point[1]) * point[1]).sum()
    torch.testing.assert_close(left, right, rtol=1e-13, atol=1e-13)


def test_a_scalar_summed_with_others_counts_once_for_each_entry() -> None:
    g = Builder({"cell": 6})
    c, x = g.node("input", (), ("c", 0)), g.node("input", (), ("x", 0), (Axis("cell"),))
    total = g.along("sum", g.emit("add", c, x), axis="cell")
    point = [torch.tensor(1.0).double(), torch.ones(6).double()]
    by_c, by_x = values(g, [c, x], gradient(g, total, [c, x]), point)
    assert float(by_c) == 6.0
    assert by_x.expand(6).tolist() == [1.0] * 6


def scalars(count: int) -> tuple[Builder, list[Node]]:
    g = Builder()
    return g, [g.node("input", (), (f"x{i}", 0)) for i in range(count)]


def slopes_at(function: object, *numbers: float) -> list[float]:
    """Reverse derivatives of a function of scalars, which must equal the forward ones."""
    g, nodes = scalars(len(numbers))
    result = function(*(Scalar((Symbol(g, n),)) for n in nodes)).data[0].node  # type: ignore[operator]
    point = [torch.tensor(x, dtype=torch.float64) for x in numbers]
    backwards = values(g, nodes, gradient(g, result, nodes), point)
    (row,) = jacobian(g, [result], nodes)
    entries = [row.get((j, ()), g.zero) for j in range(len(nodes))]
    forwards = values(g, nodes, entries, point)
    assert [float(x) for x in forwards] == pytest.approx([float(x) for x in backwards], nan_ok=True)
    return [float(x) for x in backwards]


@pytest.mark.parametrize(
    ("name", "function", "point", "expected"),
    [
        ("power at zero", lambda x, n: x**n, (0.0, 2.5), [0.0, 0.0]),
        ("first power at zero", lambda x, n: x**n, (0.0, 1.0), [1.0, 0.0]),
        ("zeroth power at zero", lambda x, n: x**n, (0.0, 0.0), [0.0, 0.0]),
        ("power of an absolute", lambda x, n: absolute(x) ** n * x, (0.0, 0.0), [1.0, 0.0]),
        ("power of nearly nothing", lambda x: exp(-x) ** 2.5, (800.0,), [0.0]),
        ("power of a product", lambda x: (exp(-x) * exp(-x)) ** 1.5, (400.0,), [0.0]),
        ("absolute at zero", lambda x: absolute(x), (0.0,), [0.0]),
        ("norm at zero", lambda x: norm(Vec.of(x, x, x)), (0.0,), [0.0]),
        ("root of a guarded zero", lambda x: sqrt(where(x > 0.0, x, 1.0)), (0.0,), [0.0]),
        ("tie takes the second", lambda a, b: where(a < b, a, b), (1.0, 1.0), [0.0, 1.0]),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_slope_at_a_corner(
    name: str, function: object, point: tuple[float, ...], expected: list[float]
) -> None:
    assert slopes_at(function, *point) == pytest.approx(expected, abs=1e-300), name


def test_norm_of_every_kind_has_a_finite_second_slope_at_zero() -> None:
    for kind in (Vec, SR2, R2):
        g, nodes = scalars(math.prod(kind.base))
        size = norm(kind(tuple(Symbol(g, n) for n in nodes))).data[0].node
        first = gradient(g, size, nodes)
        rows = jacobian(g, first, nodes)
        entries = [t for row in rows for t in row.values()]
        found = values(g, nodes, entries, [torch.zeros((), dtype=torch.float64)] * len(nodes))
        assert all(bool(x.isfinite()) for x in found)


def test_every_operation_is_drawn_and_has_a_slope_or_is_constant_by_pieces() -> None:
    g, (a, b) = scalars(2)
    results = [*(unary(g, op, a) for op in UNARY), *(binary(g, op, a, b) for op in BINARY)]
    results += [g.emit(op, *(a, b)[: ELEMENTWISE[op].arity]) for op in OF_FIELDS]
    lines = sort_lines(results)
    drawn = {n.op for n in lines} - {"input", "const"}
    flat = {"sign", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "floor", "ceil",
            "trunc", "round"}  # fmt: skip
    assert drawn == set(ELEMENTWISE)
    sloped = {n.op for n in lines if n.args and ELEMENTWISE[n.op].slopes is not None}
    assert sloped == drawn - flat
    for node in (n for n in lines if n.args):
        seeds = {x.id: {(i, ()): g.one} for i, x in enumerate(node.args) if not x.is_number}
        tangent = operation(node.op).push(g.slopes, node, seeds, [a, b])
        assert bool(tangent) == (node.op in sloped), node.op


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda g, a: g.emit("cosh", a), True),
        (lambda g, a: g.emit("add", g.emit("mul", a, a), 1e-16), True),
        (lambda g, a: g.emit("mul", a, a), False),
        (lambda g, a: g.emit("abs", a), False),
        (lambda g, a: g.emit("add", a, 1.0), False),
        (lambda g, a: g.emit("where", g.emit("gt", a, 0.0), a, 1.0), False),
    ],
)
def test_only_what_cannot_vanish_is_positive(function: object, expected: bool) -> None:
    g, (a,) = scalars(1)
    assert g.is_positive(function(g, a)) is expected  # type: ignore[operator]
