"""by_entries: a captured graph -> the same, each component of a lattice's fields by itself.

Combinations of components are written out; layers at the ends of an axis are computed by
themselves, from memory, and chosen there. So a step of a lattice is one loop over its cells.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from ingot.fields.jit.capture import Captured
from ingot.fields.jit.operations import CONSTANTS, OPERATIONS, THROUGH, name_of
from ingot.fields.jit.schema import SMALLEST, TRACED
from ingot.graphs.torch_private import hint_of

__all__ = ["by_entries"]

MIX, PILE = "ingot.mix.default", "ingot.pile.default"
"""The operations of fields/lbm/operators.py."""

aten = torch.ops.aten


Entries = tuple[Node, ...]
"""The components of a field, each a field by itself; a single one is all of them."""

Given = Node | Entries


def by_entries(captured: Captured) -> Captured:
    """The graph, written out if it holds operations of a lattice."""
    if not any(name_of(node) in (MIX, PILE) for node in captured.module.graph.nodes):
        return captured
    made = Writer(captured)
    for node in captured.module.graph.nodes:
        made.write(node)
    made.graph.eliminate_dead_code()
    return replace(captured, module=GraphModule(captured.module, made.graph))


@dataclass(slots=True)
class Writer:
    """Writes a new graph.

    given: what each node of the old one has become
    layers: the fields that differ from another in a layer: that, the layer, the axis and its end
    picked: layers of fields that are known; entered: the components of fields that lie in memory
    """

    captured: Captured
    graph: Graph = field(default_factory=Graph)
    given: dict[Node, Given] = field(default_factory=dict)
    layers: dict[Node, tuple[Node, Node, int, int]] = field(default_factory=dict)
    picked: dict[tuple[Node, int, int], Node] = field(default_factory=dict)
    entered: dict[Node, Entries] = field(default_factory=dict)
    axes: list[Node] = field(default_factory=list)

    def write(self, node: Node) -> None:
        """Write what stands for a node."""
        if node.op != "call_function":
            self.given[node] = self.copy(node)
            if node.op == "placeholder" and len(self.axes) < 3:
                self.axes.append(self.whole(node))
            return
        name = name_of(node)
        found = RULES[name](self, node) if name in RULES else None
        if found is None and (name in OPERATIONS or name in CONSTANTS or name in THROUGH):
            found = self.pointwise(node)
        self.given[node] = self.copy(node) if found is None else found

    def copy(self, node: Node) -> Node:
        """A node as it is, of whole fields."""
        return self.graph.node_copy(node, self.whole)

    def whole(self, node: Node) -> Node:
        """What stands for a node as one value; components are put side by side in memory."""
        found = self.given[node]
        if isinstance(found, Node):
            return found
        value = node.meta["val"]
        parts = [self.spread(part, value.select(-1, 0)) for part in found]
        stack = self.make(aten.stack.default, value.movedim(-1, 0), parts)
        axes = [*range(1, value.dim()), 0]
        self.given[node] = made = self.make(aten.permute.default, value, stack, axes)
        self.entered[made] = found
        return made

    def spread(self, node: Node, wide: Tensor) -> Node:
        """A field with the sizes of another."""
        if node.meta["val"].shape == wide.shape:
            return node
        return self.make(aten.expand.default, wide, node, list(wide.shape))

    def make(self, target: Any, value: Any, *args: Any, **kwargs: Any) -> Node:
        """A new node whose value is like another."""
        made = self.graph.call_function(target, args, kwargs)
        made.meta["val"] = value
        return made

    def entries(self, node: Node) -> Entries:
        """The components of a field whose last axis they are."""
        found = self.given[node]
        if isinstance(found, tuple):
            return found
        if found not in self.entered:
            value = found.meta["val"]
            self.entered[found] = tuple(
                self.make(aten.select.int, value.select(-1, at), found, -1, at)
                for at in range(value.shape[-1])
            )
        return self.entered[found]

    def is_split(self, node: Any) -> bool:
        """Whether a node is known by its components."""
        return isinstance(node, Node) and (
            isinstance(self.given[node], tuple) or self.given[node] in self.entered
        )

    def pointwise(self, node: Any) -> Given | None:
        """An operation at every point, for each component; None where it has none."""
        inputs = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), Tensor)]
        if not any(map(self.is_split, inputs)):
            return None
        value, name = node.meta["val"], name_of(node)
        if name in THROUGH and name != "expand.default":
            return self.given[inputs[0]]
        rank = value.dim()
        # one field as the component of a layer may also be a layer, spread along the last axis
        if not isinstance(value.shape[-1], int):
            return None
        if any(0 < each.meta["val"].dim() < rank for each in inputs):
            return None
        fields = {each: self.entries(each) for each in inputs if each.meta["val"].dim() == rank}
        plain = value.select(-1, 0)
        made = []
        for at in range(value.shape[-1]):

            def entry(each: Node, at: int = at) -> Node:
                found = fields.get(each, ())
                return found[min(at, len(found) - 1)] if found else self.whole(each)

            args, kwargs = map_arg((node.args, node.kwargs), entry)
            if name == "expand.default":
                args = (args[0], list(args[1])[:-1])
            made.append(self.make(node.target, plain, *args, **kwargs))
        return tuple(made)

    def mix(self, node: Any) -> Given:
        """Combinations of components, written out."""
        source, matrix, rows = node.args
        fields, plain = self.entries(source), node.meta["val"].select(-1, 0)
        count = len(matrix) // rows
        return tuple(
            self.sum_of(fields, matrix[row * count : (row + 1) * count], plain)
            for row in range(rows)
        )

    def sum_of(self, fields: Entries, weights: list[float], plain: Tensor) -> Node:
        """A weighted sum of components, those with no weight left out."""
        total = None
        for at, weight in enumerate(weights):
            if weight == 0:
                continue
            part = fields[min(at, len(fields) - 1)]
            if abs(weight) != 1:
                part = self.make(aten.mul.Tensor, plain, part, abs(weight))
            if total is None:
                total = part if weight > 0 else self.make(aten.neg.default, plain, part)
            else:
                join = aten.add.Tensor if weight > 0 else aten.sub.Tensor
                total = self.make(join, plain, total, part)
        return self.make(aten.zeros_like.default, plain, fields[0]) if total is None else total

    def pile(self, node: Any) -> Given | None:
        """Fields as components, which stay apart until something needs them side by side."""
        parts = node.args[0]
        if any(self.is_split(each) for each in parts):
            return None
        wide = node.meta["val"].select(-1, 0)
        return tuple(self.spread(self.whole(each), wide) for each in parts)

    def sum(self, node: Any) -> Given | None:
        """A sum over components."""
        source, axes = node.args[0], list(node.args[1])
        keep = len(node.args) > 2 and bool(node.args[2])
        last = axes in ([-1], [source.meta["val"].dim() - 1])
        if not last or not self.is_split(source) or node.kwargs:
            return None
        value = node.meta["val"].select(-1, 0) if keep else node.meta["val"]
        fields = self.entries(source)
        total = self.sum_of(fields, [1.0] * len(fields), value)
        return (total,) if keep else total

    def unsqueeze(self, node: Any) -> Given | None:
        """A field as one component."""
        source, axis = node.args
        if self.is_split(source) or axis not in (-1, source.meta["val"].dim()):
            return None
        return (self.whole(source),)

    def squeeze(self, node: Any) -> Given | None:
        """One component as a field."""
        source, axis = node.args
        if not self.is_split(source) or axis not in (-1, source.meta["val"].dim() - 1):
            return None
        return self.entries(source)[0]

    def select(self, node: Any) -> Given | None:
        """A component of a field, or a layer of it."""
        source, axis, at = node.args
        rank = source.meta["val"].dim()
        axis %= rank
        if not self.is_apart(source):
            return self.pick(self.whole(source), axis, at)
        if axis == rank - 1:
            return self.entries(source)[at]
        return tuple(self.pick(each, axis, at) for each in self.entries(source))

    def is_apart(self, node: Node) -> bool:
        """Whether a field is known by its components, or has them as its last axis."""
        value, dims = node.meta["val"], self.captured.schema.dim
        last = value.dim() == dims + 1 and isinstance(value.shape[-1], int)
        return last or self.is_split(node)

    def scatter(self, node: Any) -> Given | None:
        """A field of which one layer is another."""
        source, layer, axis, at = node.args
        value = source.meta["val"]
        axis %= value.dim()
        if isinstance(value.shape[axis], int):
            if axis != value.dim() - 1 or not self.is_apart(source):
                return None
            parts = [*self.entries(source)]
            parts[at] = self.spread(self.whole(layer), value.select(-1, 0))
            return tuple(parts)
        if not (self.is_apart(source) or self.is_split(layer)):
            return self.replaced(self.whole(source), self.whole(layer), axis, at)
        pairs = zip(self.entries(source), self.entries(layer), strict=True)
        return tuple(self.replaced(x, y, axis, at) for x, y in pairs)

    def roll(self, node: Any) -> Given | None:
        """A field that is shifted."""
        if len(node.args) < 3:
            return None
        source, shifts, axes = node.args
        rank, by = source.meta["val"].dim(), Counter[int]()
        for axis, shift in zip(axes, shifts, strict=True):
            by[axis % rank] += shift
        if not self.is_apart(source):
            return self.rolled(self.whole(source), by)
        if rank - 1 in by:
            return None
        return tuple(self.rolled(each, by) for each in self.entries(source))

    def rolled(self, node: Any, by: dict[int, int]) -> Node:
        """A plain field shifted along some axes; shifts of a shift add up."""
        by = {axis: shift for axis, shift in by.items() if node.meta["val"].shape[axis] != 1}
        if name_of(node) == "roll.default":
            node, shifts, axes = node.args
            for axis, shift in zip(axes, shifts, strict=True):
                by[axis] = by.get(axis, 0) + shift
        by = {axis: shift for axis, shift in sorted(by.items()) if shift}
        if not by:
            return node
        return self.make(aten.roll.default, node.meta["val"], node, [*by.values()], [*by])

    def pick(self, node: Node, axis: int, at: int) -> Node:
        """A layer of a plain field, computed by itself: `at` counts from an end of the axis."""
        key = (node, axis, at)
        if key not in self.picked:
            self.picked[key] = self.layer_of(node, axis, at)
        return self.picked[key]

    def layer_of(self, node: Any, axis: int, at: int) -> Node:
        value, name = node.meta["val"], name_of(node)
        thin = value.select(axis, at if value.shape[axis] != 1 else 0)
        if value.shape[axis] == 1:
            return self.make(aten.select.int, thin, node, axis, 0)
        # what lies further in may be another end of the smallest box that is compiled
        near = range(1 - SMALLEST, SMALLEST - 1)
        if node in self.layers and at in near:
            source, layer, other, end = self.layers[node]
            if other == axis:
                return layer if end == at else self.pick(source, axis, at)
            inner = self.pick(layer, axis - (axis > other), at)
            return self.replaced(self.pick(source, axis, at), inner, other - (other > axis), end)
        if name == "roll.default":
            source, shifts, axes = node.args
            by = dict(zip(axes, shifts, strict=True))
            place = at - by.pop(axis, 0)
            if place in near:
                moved = self.pick(source, axis, place)
                return self.rolled(moved, {a - (a > axis): shift for a, shift in by.items()})
            return self.make(aten.select.int, thin, node, axis, at)
        if name in OPERATIONS or (name in CONSTANTS and name.endswith("_like.default")):
            return self.thinner(node, axis, at, thin)
        return self.make(aten.select.int, thin, node, axis, at)

    def thinner(self, node: Node, axis: int, at: int, thin: Tensor) -> Node:
        """An operation at every point of a layer."""
        rank = node.meta["val"].dim()

        def taken(each: Node) -> Node:
            value = each.meta.get("val")
            if not isinstance(value, Tensor) or axis < rank - value.dim():
                return each
            return self.pick(each, axis - (rank - value.dim()), at)

        args, kwargs = map_arg((node.args, node.kwargs), taken)
        return self.make(node.target, thin, *args, **kwargs)

    def replaced(self, node: Node, layer: Node, axis: int, at: int) -> Node:
        """A plain field of which the layer at an end of an axis is another."""
        if self.pick(node, axis, at) is layer:
            return node
        value = node.meta["val"]
        wide = self.make(aten.unsqueeze.default, layer.meta["val"].unsqueeze(axis), layer, axis)
        made = self.make(aten.where.self, value, self.end(value, axis, at), wide, node)
        self.layers[made] = (node, layer, axis, at)
        return made

    def end(self, value: Tensor, axis: int, at: int) -> Node:
        """Where the points of a field lie at an end of an axis, by their coordinates."""
        size, dims = hint_of(value.shape[axis]), self.captured.schema.dim
        which = next(a for a in range(dims) if TRACED[f"n{a}"] == size)
        points = self.axes[which]
        for _ in range(which - axis):
            points = self.pick(points, 0, 0)
        for _ in range(points.meta["val"].dim() - value.dim()):
            points = self.pick(points, axis + 1, 0)
        last = self.pick(points, axis, at)
        for _ in range(last.meta["val"].dim()):
            last = self.pick(last, 0, 0)
        known = points.meta["val"] == last.meta["val"]
        return self.make(aten.eq.Tensor, known, points, last)


RULES: dict[str, Any] = {
    MIX: Writer.mix, PILE: Writer.pile, "sum.dim_IntList": Writer.sum,
    "unsqueeze.default": Writer.unsqueeze, "squeeze.dim": Writer.squeeze,
    "select.int": Writer.select, "select_scatter.default": Writer.scatter,
    "roll.default": Writer.roll,
}  # fmt: skip
"""What becomes of operations that are not the same at every point."""
