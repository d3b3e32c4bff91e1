"""apart: a captured graph -> the same, fields of a material with their components outermost.

So do kernels give them. Loops run along the points of one component, and short sums over
components are loops too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from ingot.fields.jit.capture import Captured
from ingot.fields.jit.operations import CHEAP, name_of, seen
from ingot.fields.jit.view import View, is_part, viewed

__all__ = ["apart"]

SHORT = 9
"""The number of components up to which a sum over them is written out."""

MATERIAL = "ingot.material.default"

INDIFFERENT = ("output", MATERIAL, "select.int", "permute.default")
"""What reads components wherever they lie."""

aten = torch.ops.aten


def apart(captured: Captured) -> Captured:
    """The graph, short sums written out, and operations near a material turned."""
    graph = captured.module.graph
    if any(has_components(node, captured) for node in graph.nodes):
        write_out_sums(captured, viewed(captured))
        graph.eliminate_dead_code()
    if any(name_of(node) == MATERIAL for node in graph.nodes):
        Turned(captured, viewed(captured)).turn()
        graph.eliminate_dead_code()
    return captured


def has_components(node: Node, captured: Captured) -> bool:
    """Whether a value has fixed axes behind those of space."""
    value, dim = node.meta.get("val"), captured.schema.dim
    if not isinstance(value, Tensor) or value.dim() <= dim:
        return False
    space, rest = value.shape[:dim], value.shape[dim:]
    return not all(isinstance(n, int) for n in space) and all(isinstance(n, int) for n in rest)


def is_number(node: Node, view: View) -> bool:
    """Whether a value is the same everywhere."""
    value = node.meta.get("val")
    return node in view.constants or not isinstance(value, Tensor) or value.dim() == 0


def added(graph: Any, target: Any, *args: Any) -> Node:
    """A new view of a value."""
    node = graph.call_function(target, args)
    node.meta["val"] = target(*map_arg(args, lambda each: each.meta["val"]))
    return node


def write_out_sums(captured: Captured, view: View) -> None:
    """Short sums over components as sums of entries at every point."""
    graph = captured.module.graph
    sums = {node: None for node in graph.nodes if is_short_sum(node, captured)}
    # the operations that nothing reads but sums and each other
    inside: set[Node] = set()
    for node in reversed(graph.nodes):
        works = node in view.points and has_components(node, captured)
        if works and all(user in inside or user in sums for user in node.users):
            inside.add(node)

    @functools.cache
    def entry(node: Node, at: int) -> Node:
        node = seen(node)
        if is_number(node, view):
            return node
        value = node.meta["val"]
        at = min(at, value.shape[-1] - 1)
        if node not in inside:
            return added(graph, aten.select.int, node, -1, at)
        made = graph.node_copy(node, lambda each: entry(each, at))
        made.meta["val"] = value.select(-1, at)
        return made

    for node in sums:
        summed = node.all_input_nodes[0]
        with graph.inserting_before(node):
            total, *rest = [entry(summed, at) for at in range(summed.meta["val"].shape[-1])]
            for each in rest:
                total = graph.call_function(aten.add.Tensor, (total, each))
                total.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(total)


def is_short_sum(node: Node, captured: Captured) -> bool:
    """Whether a node sums over the last axis alone, which has few components."""
    if name_of(node) != "sum.dim_IntList" or node.kwargs or len(node.args) != 2:
        return False
    summed, axes = node.all_input_nodes[0], node.args[1]
    value = summed.meta["val"]
    last = has_components(summed, captured) and axes in ([-1], [value.dim() - 1])
    return last and value.dtype == node.meta["val"].dtype and 0 < value.shape[-1] <= SHORT


@dataclass(slots=True)
class Turned:
    """Operations on `(*space, *components)`, which become such on `(*components, *space)`.

    made: the new ones by the old, and by what is read instead
    """

    captured: Captured
    view: View
    made: dict[Node, Node] = field(default_factory=dict)

    def turn(self) -> None:
        """Turn those that gain by it."""
        graph, dim = self.captured.module.graph, self.captured.schema.dim
        chosen = self.chosen()
        for node in [node for node in graph.nodes if node in chosen]:
            rank = node.meta["val"].dim()
            order = (*range(dim, rank), *range(dim))
            with graph.inserting_before(node):
                made = graph.node_copy(node, lambda each, to=order: self.outermost(each, to))
                made.meta["val"] = node.meta["val"].permute(order)
                back = (*range(rank - dim, rank), *range(rank - dim))
                like = added(graph, aten.permute.default, made, back)
            node.replace_all_uses_with(like)
            self.made |= {node: made, like: made}

    def chosen(self) -> set[Node]:
        """The operations whose neighbours all have components outermost, or do not mind."""
        found = {node for node in self.view.points if has_components(node, self.captured)}
        while wrong := {node for node in found if not self.fits(node, found)}:
            found -= wrong
        return found

    def fits(self, node: Node, found: set[Node]) -> bool:
        """Whether what an operation reads and what reads it suit it, were it turned."""
        return all(self.lies_apart(seen(each), found) for each in node.all_input_nodes) and all(
            user in found or name_of(user) in INDIFFERENT for user in node.users
        )

    def lies_apart(self, node: Node, found: set[Node]) -> bool:
        """Whether a value's components are outermost, if it has any."""
        if node in found or not has_components(node, self.captured):
            return True
        one = all(size == 1 for size in node.meta["val"].shape[self.captured.schema.dim :])
        return one or any(name_of(each) == MATERIAL for each in node.all_input_nodes)

    def outermost(self, node: Node, order: tuple[int, ...]) -> Node:
        """An operand with its axes in an order, those that it lacks being of size 1."""
        node, graph = seen(node), self.captured.module.graph
        if node in self.made:
            return self.made[node]
        if is_number(node, self.view):
            return node
        rank = node.meta["val"].dim()
        alike = name_of(node) == "unsqueeze.default" and node.args[1] in (-1, rank - 1)
        if alike and rank == len(order) == self.captured.schema.dim + 1:
            given = node.all_input_nodes[0]
            self.made[node] = self.repeated(given) if len(self.read(given)) <= 1 else given
            return self.made[node]
        if rank < len(order):
            sizes = [1] * (len(order) - rank) + [-1] * rank
            node = added(graph, aten.expand.default, node, sizes)
        return added(graph, aten.permute.default, node, order)

    def is_cheap(self, node: Node) -> bool:
        """Whether a value is rather computed for each component than stored."""
        alone = node in self.view.points and len(node.users) == 1 and name_of(node) in CHEAP
        return alone and node.meta["val"].dim() == self.captured.schema.dim

    def read(self, node: Node) -> set[Node]:
        """The whole fields that it takes to compute a value."""
        if self.is_cheap(node):
            return set[Node]().union(*map(self.read, node.all_input_nodes))
        return set() if is_number(node, self.view) or is_part(node, self.captured) else {node}

    def repeated(self, node: Node) -> Node:
        """A cheap value as one of size 1 along components: every loop computes it for itself."""
        if not self.is_cheap(node):
            return node
        made = self.captured.module.graph.node_copy(node, self.repeated)
        made.meta["val"] = node.meta["val"].unsqueeze(0)
        return made
