"""Tables: the segment of each abscissa, and entries picked by an index.

`interpolate` is no line of its own but these two and arithmetic, so that its derivatives by the
argument, the abscissas and the ordinates are theirs, to any order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.program.builder import Axis, Builder, Node, Slopes, Space
from ingot.program.operations import (
    Arrays,
    Axes,
    Bars,
    Known,
    LinearOperation,
    Nodes,
    Operation,
    Place,
    Tangent,
    keep_nonzero,
    reduce_to,
    require_axis,
    sum_over,
)  # fmt: skip

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__ = ["pick"]


class _Interpolate(Operation):
    """The multilinear interpolant of a table: never a line of its own.

    Operands are the arguments, as many abscissas, and the ordinates.
    """

    name = "interpolate"

    def build(
        self, b: Builder, args: Nodes, *, axis: Sequence[str], own: Axes = (), **_: Any
    ) -> Node:
        count = len(axis)
        ordinates = args[-1]
        sides: list[tuple[Axis, Node, Node, Node]] = []
        for name, x, knots in zip(axis, args[:count], args[count : 2 * count], strict=True):
            along = require_axis((knots, ordinates), name, own)
            b.union((knots, ordinates))
            _refuse_own_axis(x, along)
            if b.extent(along) == 1:
                ordinates = pick(b, ordinates, {along: b.zero})
                continue
            first = _locate(b, x, knots, along)
            last = b.emit("add", first, 1.0)
            start, end = (pick(b, knots, {along: i}) for i in (first, last))
            ratio = b.emit("div", b.emit("sub", x, start), b.emit("sub", end, start))
            sides.append((along, first, last, ratio))
        return _interpolate(b, ordinates, {}, sides)


def _interpolate(
    b: Builder, table: Node, at: dict[Axis, Node], sides: list[tuple[Axis, Node, Node, Node]]
) -> Node:
    """The interpolant along the axes that are left, at the entries of those before."""
    if not sides:
        return pick(b, table, at)
    (axis, first, last, ratio), *rest = sides
    start, end = (_interpolate(b, table, {**at, axis: i}, rest) for i in (first, last))
    return b.emit("add", start, b.emit("mul", b.emit("sub", end, start), ratio))


def _refuse_own_axis(x: Node, axis: Axis) -> None:
    if any(a.key == axis.key for a in x.axes):
        raise IngotError([Problem(
            "axes-differ", f"a table along '{axis}' is read at a value that lies on '{axis}' too",
            None, "give the knots of the table an axis of another name",
        )])  # fmt: skip


def _locate(b: Builder, x: Node, knots: Node, axis: Axis) -> Node:
    """The segment of a table in which a value lies, counted from 0."""
    count = b.extent(axis)
    if count == 2 or axis not in knots.axes:
        return b.zero
    if x.is_number and knots.is_number:
        inner = b.along("window", knots, axis=axis.name, first=1, last=1)
        reached = b.emit("where", b.emit("le", inner, x), 1.0, 0.0)
        return sum_over(b, reached, axis._replace(offset=axis.offset - 2))
    axes = tuple(a for a in b.union((x, knots)) if a != axis)
    return b.node("locate", (x, knots), axis, axes)


class _Locate(Operation):
    """How many knots but the first and the last a value has reached: the segment it lies in.

    A value at a knot lies in the segment that begins there, one outside in the first or last.
    Its attribute is the axis of the knots; None once each knot is an operand.
    """

    name = "locate"

    def verify(self, space: Space, node: Node) -> None:
        if node.attr is not None:
            _, knots = node.args
            axes = {a for arg in node.args for a in arg.axes} - {node.attr}
            along = node.attr in knots.axes and axes == set(node.axes)
            assert along, f"axes of locate {node}"

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        if node.attr is None:
            return b.node("locate", args)
        x, knots = args
        return _locate(b, x, knots, node.attr)

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        return {}

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        return []

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        x, knots = node.args
        axes = (*node.axes, node.attr)
        inner = range(1, to.space.extent(node.attr) - 1)
        args = (to.at(x, node.axes, entry), *(to.at(knots, axes, (*entry, i)) for i in inner))
        if all(a.op == "const" for a in args):
            return to.builder.const(sum(a.attr <= args[0].attr for a in args[1:]))
        return to.builder.node("locate", args)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        if node.attr is None:
            count = on.fill(0.0)
            for knot in args[1:]:
                spelled = "{0} + ({1} <= {2})"
                count = on.spell(spelled, lambda n, k, x: n + (k <= x), [count, knot, args[0]])
            return count
        size = space.extent(node.attr) - 2

        def count_reached(x: np.ndarray, knots: np.ndarray, dim: int) -> np.ndarray:
            inner = np.take(knots, range(1, 1 + size), axis=dim)
            return np.asarray(np.sum(inner <= x, axis=dim, keepdims=True, dtype=np.float64))

        inner = f"{{1}}.narrow({{dim}}, 1, {size})"
        return on.spell(f"({inner} <= {{0}}).to({{1}}.dtype).sum({{dim}}, keepdim=True)",
                        count_reached, args, node.attr)  # fmt: skip

    def write_cxx_line(self, lines: Any, node: Node, place: Place, name: str) -> str:
        x = lines.read(node.args[0], place)
        if node.attr is None:
            declared, read = _declare(lines, node.args[1:], f"{name}_knots")
            first, count = 0, len(node.args) - 1
        else:
            declared, first, count = "", 1, lines.space.extent(node.attr) - 1
            read = lambda k: lines.read(node.args[1], {**place, node.attr.key: k})  # noqa: E731
        return (
            f"{declared}V {name} = V{{}}; for (int k = {first}; k < {count}; ++k)"
            f" {name} += select({read('k')} <= {x}, splat(1), V{{}});"
        )

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"locate({args[0]} in {', '.join(args[1:])})"

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return 0.0

    def cost(self, space: Space, node: Node) -> int:
        if node.attr is None:
            return 2 * (len(node.args) - 1)
        return 2 * (space.extent(node.attr) - 2) * space.size(node.axes)


def pick(b: Builder, table: Node, at: Mapping[Axis, Node]) -> Node:
    """The entry of a line at an index along each of some axes; along others it is as it was."""
    held = {axis: i for axis, i in at.items() if axis in table.axes}
    if not held:
        return table
    indices = tuple(held.values())
    assert not any(a in held for i in indices for a in i.axes), "an index along what it picks"
    axes = tuple(a for a in b.union((table, *indices)) if a not in held)
    if table.is_number and all(i.op == "const" for i in indices):
        place = tuple(int(held[a].attr) if a in held else slice(None) for a in table.axes)
        return b.table(b.values(table)[place], tuple(a for a in table.axes if a not in held))
    return b.node("pick", (table, *indices), tuple(held), axes)


_GATHER = (
    "torch.gather(torch.broadcast_tensors({0}, {1})[0], {dim},"
    " torch.broadcast_tensors({1}, {0}.narrow({dim}, 0, 1))[0].long())"
)
"""`take_along_dim` would fix the batch of a graph, whose sizes are symbols."""
_LANES = "make<V>([&](int lane) INGOT_LAMBDA {{ return {}; }})"


class _Pick(LinearOperation):
    """The entry of its first operand at indices, its others, along the axes of its attribute."""

    name = "pick"

    def verify(self, space: Space, node: Node) -> None:
        table, *indices = node.args
        assert len(indices) == len(node.attr), f"pick {node} has {len(indices)} indices"
        axes = {a for arg in node.args for a in arg.axes} - {*node.attr}
        along = {*node.attr} <= {*table.axes} and axes == set(node.axes)
        assert along, f"axes of pick {node}"

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        return pick(b, args[0], dict(zip(node.attr, args[1:], strict=True)))

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        table, *indices = node.args
        term = bar
        for axis, index in zip(node.attr, indices, strict=True):
            entries = d.builder.table(np.arange(d.builder.extent(axis)), (axis,))
            term = d.emit("where", d.emit("eq", index, entries), term, 0.0)
        return [(table, reduce_to(d, term, node.axes, table))]

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        table, *indices = node.args
        flat = to.builder.zero
        for axis, index in zip(node.attr, indices, strict=True):
            at = to.at(index, node.axes, entry)
            whole = to.builder.emit("mul", flat, to.space.extent(axis))
            flat = to.builder.emit("add", whole, at)
        axes = (*node.axes, *node.attr)
        entries = [to.at(table, axes, (*entry, *e)) for e in to.space.entries(node.attr)]
        return _choose(to.builder, flat, entries)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        picked = args[0]
        for axis, index, value in zip(node.attr, node.args[1:], args[1:], strict=True):
            if index.op == "const":
                at = int(index.attr)
                picked = on.spell(f"{{0}}.narrow({{dim}}, {at}, 1)",
                                  lambda x, dim, at=at: np.take(x, [at], axis=dim),
                                  [picked], axis)  # fmt: skip
            else:
                picked = on.spell(_GATHER, _take, [picked, value], axis)
        return picked

    def write_cxx(self, lines: Any, node: Node, place: Place) -> str:
        table, *indices = node.args
        at = {
            axis.key: f"int(lane_of({lines.read(index, place)}, lane))"
            for axis, index in zip(node.attr, indices, strict=True)
        }
        return _LANES.format(f"lane_of({lines.read(table, {**place, **at})}, lane)")

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        places = [f"{axis} {index}" for axis, index in zip(node.attr, args[1:], strict=True)]
        return f"pick({args[0]} at {', '.join(places)})"

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return below[0]

    def cost(self, space: Space, node: Node) -> int:
        # entries that are no constants are copied together once the axis is written out
        each = 1 if node.args[0].is_number else space.size(node.attr)
        return each * space.size(node.axes)


def _take(x: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    return np.take_along_axis(x, index.astype(np.int64), axis=dim)


def _choose(b: Builder, index: Node, entries: Sequence[Node]) -> Node:
    if index.op == "const":
        return entries[int(index.attr)]
    if len(set(entries)) == 1:
        return entries[0]
    return b.node("choose", (index, *entries))


class _Choose(Operation):
    """The operand that the first, an index, counts to: what `pick` is once axes are gone."""

    name = "choose"

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        return _choose(b, args[0], args[1:])

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        index, *entries = node.args
        tangents = [known.get(e.id, {}) for e in entries]
        keys = dict.fromkeys(key for t in tangents for key in t)
        return keep_nonzero({
            key: _choose(d.builder, index, [t.get(key, d.zero) for t in tangents]) for key in keys
        })  # fmt: skip

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        index, *entries = node.args
        return [
            (entry, d.emit("where", d.emit("eq", index, float(i)), bar, 0.0))
            for i, entry in enumerate(entries)
        ]

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        index, *entries = (to.at(a, (), ()) for a in node.args)
        return _choose(to.builder, index, entries)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        chosen = args[1]
        for i, entry in enumerate(args[2:], 1):
            chosen = on.spell(f"torch.where({{0}} == {i}, {{1}}, {{2}})",
                              lambda n, x, y, i=i: np.where(n == i, x, y),
                              [args[0], entry, chosen])  # fmt: skip
        return chosen

    def write_cxx_line(self, lines: Any, node: Node, place: Place, name: str) -> str:
        declared, read = _declare(lines, node.args[1:], f"{name}_entries")
        index = f"int(lane_of({lines.read(node.args[0], place)}, lane))"
        return f"{declared}const V {name} = {_LANES.format(f'lane_of({read(index)}, lane)')};"

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"choose({', '.join(args[1:])} at {args[0]})"

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return min(below[1:])

    def cost(self, space: Space, node: Node) -> int:
        return 1 if all(a.is_number for a in node.args[1:]) else len(node.args)


def _declare(lines: Any, entries: Sequence[Node], name: str) -> tuple[str, Callable[[str], str]]:
    """The C++ array of some lines, and how its entry at an index is read; literals stay numbers."""
    numbers = lines.list_numbers(entries)
    if numbers is not None:
        return f"static constexpr real {name}[] = {{{numbers}}}; ", lambda i: f"splat({name}[{i}])"
    spelled = ", ".join(str(lines.read(e, {})) for e in entries)
    return f"const V {name}[] = {{{spelled}}}; ", lambda i: f"{name}[{i}]"
