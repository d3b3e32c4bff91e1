"""Structural operations along an axis: sum, window and its transpose pad, append, arange."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

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
    find_axis,
    keep_nonzero,
    operation,
    require_axis,
    sum_over,
)

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__: list[str] = []


class _Sum(LinearOperation):
    """The sum over an axis, which is gone afterwards; its attribute is that axis."""

    name = "sum"
    arity = 1
    reads_across = True

    def build(self, b: Builder, args: Nodes, *, axis: str, own: Axes = (), **_: Any) -> Node:
        (x,) = args
        return sum_over(b, x, require_axis(args, axis, own))

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        return sum_over(b, args[0], node.attr)

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        return [(node.args[0], bar)]

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        inner = node.args[0]
        axes = (*node.axes, node.attr)
        terms = [to.at(inner, axes, (*entry, i)) for i in range(to.space.extent(node.attr))]
        return to.builder.add_up(terms)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.spell("{0}.sum({dim}, keepdim=True)",
                        lambda x, dim: x.sum(axis=dim, keepdims=True), args, node.attr)  # fmt: skip

    def write_cxx_line(self, lines: Any, node: Node, place: Place, name: str) -> str:
        term = lines.read(node.args[0], {**place, node.attr.key: "k"})
        count = lines.space.extent(node.attr)
        return f"V {name} = V{{}}; for (int k = 0; k < {count}; ++k) {name} += {term};"

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"sum({args[0]} over {node.attr})"

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return below[0] if below[0] >= 0.0 else -math.inf

    def cost(self, space: Space, node: Node) -> int:
        return space.size(node.args[0].axes)


class _Shift(Operation):
    """Entries along an axis left out or added as zeros; its attribute is the operand's axis, and
    how many entries lead. `window` and `pad` are each other's transposes.
    """

    arity = 1
    reads_across = True
    transpose: ClassVar[str]
    sign: ClassVar[int]

    def find_ends(self, node: Node) -> tuple[Axis, int, int]:
        """The operand's axis, and the numbers of leading and trailing entries."""
        held, first = node.attr
        now = next(a for a in node.axes if a.key == held.key)
        return held, first, abs(now.offset - held.offset) - first

    def build(self, b: Builder, args: Nodes, *, axis: str, first: int, last: int, **_: Any) -> Node:
        (x,) = args
        held = find_axis(x, axis)
        return self.shift(b, x, held if held is not None else Axis(axis), first, last)

    def shift(self, b: Builder, x: Node, held: Axis, first: int, last: int) -> Node:
        raise NotImplementedError

    def move_axis(self, held: Axis, first: int, last: int) -> Axis:
        return held._replace(offset=held.offset + self.sign * (first + last))

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        return self.shift(b, args[0], *self.find_ends(node))

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        held, first, last = self.find_ends(node)
        result: Tangent = {}
        for (column, shifts), t in known.get(node.args[0].id, {}).items():
            moved = list(shifts)
            for i in range(len(shifts)):
                if columns[column].axes[i].key == held.key:
                    moved[i] -= self.sign * first
            result[column, tuple(moved)] = self.shift(d.builder, t, held, first, last)
        return keep_nonzero(result)

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        held, first, last = self.find_ends(node)
        back = operation(self.transpose)
        assert isinstance(back, _Shift)
        now = self.move_axis(held, first, last)
        return [(node.args[0], back.shift(d.builder, bar, now, first, last))]

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        held, first, _ = self.find_ends(node)
        at = [a.key for a in node.axes].index(held.key)
        inside = list(entry)
        inside[at] -= self.sign * first
        if not 0 <= inside[at] < to.space.extent(held):
            return to.builder.zero
        axes = tuple(held if a.key == held.key else a for a in node.axes)
        return to.at(node.args[0], axes, tuple(inside))

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        held, first = node.attr
        return f"{self.name}({args[0]}, {held} from {first})"


class _Window(_Shift):
    name = "window"
    transpose = "pad"
    sign = -1

    def shift(self, b: Builder, x: Node, held: Axis, first: int, last: int) -> Node:
        if held not in x.axes or first == last == 0:
            return x
        kept = self.move_axis(held, first, last)
        axes = tuple(kept if a == held else a for a in x.axes)
        if x.op == "table":
            at = x.axes.index(held)
            part = np.take(b.values(x), range(first, first + b.extent(kept)), axis=at)
            return b.table(part, axes)
        return b.node("window", (x,), (held, first), axes)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        held, first, last = self.find_ends(node)
        size = space.extent(self.move_axis(held, first, last))
        return on.spell(f"{{0}}.narrow({{dim}}, {first}, {size})",
                        lambda x, dim: np.take(x, range(first, first + size), axis=dim),
                        args, held)  # fmt: skip

    def write_cxx(self, lines: Any, node: Node, place: Place) -> str:
        held, first, _ = self.find_ends(node)
        return lines.read(node.args[0], {**place, held.key: f"{place[held.key]} + {first}"})


class _Pad(_Shift):
    name = "pad"
    transpose = "window"
    sign = 1

    def shift(self, b: Builder, x: Node, held: Axis, first: int, last: int) -> Node:
        if x.is_constant(0.0) or first == last == 0:
            return x
        if held not in x.axes:
            edge = mark_edges(b, held, first, last)
            return b.slopes.emit("mul", x, b.emit("sub", 1.0, edge))
        axes = tuple(self.move_axis(held, first, last) if a == held else a for a in x.axes)
        if x.op == "table":
            width = [(first, last) if a == held else (0, 0) for a in x.axes]
            return b.table(np.pad(b.values(x), width), axes)
        return b.node("pad", (x,), (held, first), axes)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        held, first, last = self.find_ends(node)

        def pad(x: np.ndarray, dim: int) -> np.ndarray:
            return np.pad(
                x, [(first, last) if i == dim % x.ndim else (0, 0) for i in range(x.ndim)]
            )

        return on.spell(
            f"torch.constant_pad_nd({{0}}, [0, 0] * (-{{dim}} - 1) + [{first}, {last}])",
            pad, args, held,
        )  # fmt: skip

    def write_cxx(self, lines: Any, node: Node, place: Place) -> str:
        held, first, _ = self.find_ends(node)
        i = place[held.key]
        inside = lines.read(node.args[0], {**place, held.key: f"{i} - {first}"})
        return f"{i} >= {first} && {i} < {first + lines.space.extent(held)} ? {inside} : V{{}}"


class _Append(Operation):
    """One more entry at an end of an axis: never a line of its own, but a pad and a sum."""

    name = "append"

    def build(
        self, b: Builder, args: Nodes, *, axis: str, side: str, own: Axes = (), **_: Any
    ) -> Node:
        x, extra = args
        held = require_axis((x,), axis, own)
        first, last = (1, 0) if side == "left" else (0, 1)
        pad = operation("pad")
        assert isinstance(pad, _Shift)
        edge = mark_edges(b, held, first, last)
        padded = pad.shift(b, x, held, first, last)
        return b.emit("add", padded, b.slopes.emit("mul", extra, edge))


class _Arange(Operation):
    """0, 1, 2, ... along an axis: a table, never a line of its own."""

    name = "arange"

    def build(self, b: Builder, args: Nodes, *, axis: str, own: Axes = (), **_: Any) -> Node:
        held = require_axis(args, axis, own)
        return b.table(np.arange(b.extent(held)), (held,))


def mark_edges(b: Builder, axis: Axis, first: int, last: int) -> Node:
    """One at the entries that `pad` adds to an axis, zero elsewhere."""
    values = np.pad(np.zeros(b.extent(axis)), (first, last), constant_values=1.0)
    return b.table(values, (axis._replace(offset=axis.offset + first + last),))
