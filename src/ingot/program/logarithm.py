"""The operation `log1p3`: a line of a tensor's logarithm that is told what its derivatives are.

Its first operand is its value, written out by `types.logarithm`; derivatives are those of the
tensor and the directions that are its last ones, whatever lines made the value.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ingot.program.builder import Builder, Node, Slopes, Space, Symbol
from ingot.program.operations import (
    Arrays,
    Bars,
    Known,
    Nodes,
    Operation,
    Place,
    Tangent,
    keep_nonzero,
    reduce_to,
)  # fmt: skip
from ingot.types import R2, SR2, Eigen, Vec
from ingot.types.logarithm import differentiate_log1p

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__: list[str] = []

FRAME = 12  # principal values and directions
SIZE = 6


class _Log1p3(Operation):
    """A component, its attribute, of the derivative along as many directions as there are."""

    name = "log1p3"
    is_free = True

    def build(self, b: Builder, args: Nodes, *, component: int, **_: Any) -> Node:
        return b.node(self.name, tuple(args), component, b.union(args))

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        # a number has no derivative
        return (
            args[0] if all(a.is_number for a in args) else self.build(b, args, component=node.attr)
        )

    def verify(self, space: Space, node: Node) -> None:
        assert len(node.args) > FRAME + SIZE, f"log1p3 {node} has {len(node.args)} operands"
        assert (len(node.args) - 1 - FRAME) % SIZE == 0, f"log1p3 {node}: a direction is cut short"

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        groups = _directions(node)
        keys = dict.fromkeys(k for g in groups for n in g for k in known.get(n.id, {}))
        result: Tangent = {}
        for key in keys:
            terms: list[Node] = []
            for place, group in enumerate(groups):
                tangent = [known.get(n.id, {}).get(key, d.zero) for n in group]
                if not all(t.is_constant(0.0) for t in tangent):
                    terms.append(_along(d, node, place, tangent)[node.attr])
            result[key] = d.builder.add_up(terms)
        return keep_nonzero(result)

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        direction = [bar if i == node.attr else d.zero for i in range(SIZE)]
        return [
            (arg, reduce_to(d, term, d.builder.union((term, *node.args)), arg))
            for place, group in enumerate(_directions(node))
            for arg, term in zip(group, _along(d, node, place, direction), strict=True)
        ]

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        args = tuple(to.at(a, node.axes, entry) for a in node.args)
        return self.rebuild(to.builder, node, args)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return args[0]

    def write_cxx(self, lines: Any, node: Node, place: Place) -> str:
        return lines.read(node.args[0], place)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        order = len(_directions(node)) - 1
        return f"log1p3<{order}>({args[0]})"


def _directions(node: Node) -> list[tuple[Node, ...]]:
    """The components of the tensor, then of each direction."""
    rest = node.args[1 + FRAME :]
    return [tuple(rest[i : i + SIZE]) for i in range(0, len(rest), SIZE)]


def _along(d: Slopes, node: Node, place: int, direction: Sequence[Node]) -> list[Node]:
    """One direction more where it is the tensor's; the place of another that it is linear in."""

    def value(kind: type[Any], nodes: Sequence[Node]) -> Any:
        # lines of derivatives, in which zeros of a direction are structural
        return kind(tuple(Symbol(cast(Builder, d), n) for n in nodes))

    tensor, *along = (value(SR2, g) for g in _directions(node))
    frame = Eigen(value(Vec, node.args[1:4]), value(R2, node.args[4 : 1 + FRAME]))
    more = value(SR2, direction)
    chosen = [*along, more] if place == 0 else [*along[: place - 1], more, *along[place:]]
    return [x.node for x in differentiate_log1p(tensor, frame, chosen).data]
