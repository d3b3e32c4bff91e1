"""Matrix products along a named axis as one line, so that small dense layers are laws."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.program.builder import Axis, Builder, Node, Slopes, Space
from ingot.program.operations import (
    Arrays,
    Axes,
    Bars,
    Known,
    Nodes,
    Operation,
    Place,
    Tangent,
    keep_nonzero,
    reduce_to,
    refuse_shifts,
    require_axis,
    sum_over,
)  # fmt: skip

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__: list[str] = []


def _contract(to: Builder | Slopes, x: Node, y: Node, axis: Axis) -> Node:
    """The sum of products over an axis; made by slopes, a zero of an operand is structural."""
    b = to.builder if isinstance(to, Slopes) else to
    axes = tuple(a for a in b.union((x, y)) if a != axis)
    if axis not in x.axes or axis not in y.axes:
        if axis not in x.axes and axis not in y.axes:
            return sum_over(b, to.emit("mul", x, y), axis)
        x, y = (sum_over(b, a, axis) if axis in a.axes else a for a in (x, y))
        return to.emit("mul", x, y)
    if x.is_number and y.is_number:
        return sum_over(b, b.emit("mul", x, y), axis)
    if (y.is_number, -y.id) > (x.is_number, -x.id):
        x, y = y, x
    return b.node("contract", (x, y), (axis, to is not b), axes)


class _Contract(Operation):
    """The sum of products over an axis that both operands have, which is gone afterwards.

    Its attribute is that axis, and whether zeros of its operands are structural.
    """

    name = "contract"
    arity = 2

    def verify(self, space: Space, node: Node) -> None:
        axis, _ = node.attr
        both = all(axis in a.axes for a in node.args)
        axes = {a for arg in node.args for a in arg.axes} - {axis}
        assert both and axes == set(node.axes), f"axes of contract {node}"

    def build(self, b: Builder, args: Nodes, *, axis: str, own: Axes = (), **_: Any) -> Node:
        x, y = args
        return _contract(b, x, y, require_axis(args, axis, own))

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        (x, y), (axis, is_structural) = args, node.attr
        return _contract(b.slopes if is_structural else b, x, y, axis)

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        axis, _ = node.attr
        result: Tangent = {}
        for arg, other in zip(node.args, reversed(node.args), strict=True):
            for (column, shifts), t in known.get(arg.id, {}).items():
                refuse_shifts(shifts, columns, column, axis)
                term, key = _contract(d, other, t, axis), (column, shifts)
                result[key] = d.emit("add", result[key], term) if key in result else term
        return keep_nonzero(result)

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        found: Bars = []
        for arg, other in zip(node.args, reversed(node.args), strict=True):
            gone = [a for a in node.axes if a not in arg.axes and a in bar.axes]
            if gone and gone[0] in other.axes:
                # the transposed matrix times the adjoint, not a table of products to be summed
                term = _contract(d, other, bar, gone[0])
                rest = [a for a in node.axes if a != gone[0]]
                found.append((arg, reduce_to(d, term, rest, arg)))
            else:
                found.append((arg, reduce_to(d, d.emit("mul", bar, other), node.axes, arg)))
        return found

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        axis, is_structural = node.attr
        emit = (to.builder.slopes if is_structural else to.builder).emit
        axes = (*node.axes, axis)
        places = [(*entry, i) for i in range(to.space.extent(axis))]
        products = [emit("mul", *(to.at(a, axes, place) for a in node.args)) for place in places]
        return to.builder.add_up(products)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.spell("({0} * {1}).sum({dim}, keepdim=True)",
                        lambda x, y, dim: np.sum(x * y, axis=dim, keepdims=True),
                        args, node.attr[0])  # fmt: skip

    def write_cxx_line(self, lines: Any, node: Node, place: Place, name: str) -> str:
        axis, _ = node.attr
        x, y = (lines.read(a, {**place, axis.key: "k"}) for a in node.args)
        count = lines.space.extent(axis)
        return (
            f"V {name} = V{{}}; for (int k = 0; k < {count}; ++k) {name} = fma({x}, {y}, {name});"
        )

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"contract({args[0]}, {args[1]} over {node.attr[0]})"

    def cost(self, space: Space, node: Node) -> int:
        return 2 * space.size((*node.axes, node.attr[0]))
