"""fuse: a captured graph -> units in order: loops over points, and calls of torch between them.

Equal operations are joined, dead ones dropped; neighbours of one shape become one loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from ingot.fields.jit.capture import Captured, draws
from ingot.fields.jit.clusters import Loop, Unit, clustered
from ingot.fields.jit.components import apart
from ingot.fields.jit.entries import by_entries
from ingot.fields.jit.operations import OPERATIONS, costs, name_of, seen, sizes_of
from ingot.fields.jit.view import View, viewed

__all__ = ["Fused", "fuse"]


@dataclass(frozen=True, slots=True)
class Fused:
    """Units in the order they run, and the nodes whose values leave their loop."""

    captured: Captured
    view: View
    units: tuple[Unit, ...]
    stored: frozenset[Node]
    outputs: tuple[Node, ...]
    before: int
    placed: dict[Node, tuple[Node, int]]
    """Values that are stored as a component of another, and the number of that."""

    @property
    def after(self) -> int:
        """How many passes over memory are left."""
        filled = {whole for whole, _ in self.placed.values()}
        return sum(
            isinstance(u, Loop) or (costs(u.node) and u.node not in filled) for u in self.units
        )

    def __str__(self) -> str:
        lines = (
            f"loop {list(u.shape)}: {' '.join(n.name for n in u.nodes)}"
            if isinstance(u, Loop)
            else f"call {name_of(u.node)}"
            for u in self.units
        )
        return "\n".join(lines)


def fuse(captured: Captured) -> Fused:
    """The units of a graph."""
    before = sum(costs(node) for node in captured.module.graph.nodes)
    captured = by_entries(captured)
    graph = captured.module.graph
    name_parts(graph)
    share(graph)
    graph.eliminate_dead_code()
    captured = apart(captured)
    copy_parts(graph)
    view = viewed(captured)
    outputs = tuple(next(n for n in graph.nodes if n.op == "output").args[0])
    units = clustered(captured, view)
    read = {each for unit in units if isinstance(unit, Loop) for each in unit.reads} | view.whole
    units = tuple(unit for unit in units if isinstance(unit, Loop) or unit.node in read)
    stored, by_loops = read & view.points, view.points - view.floating
    placed = {
        part: (node, at)
        for node in graph.nodes if is_stack(node) and by_loops.issuperset(node.args[0])
        for at, part in enumerate(node.args[0])
    }  # fmt: skip
    return Fused(captured, view, units, frozenset(stored), outputs, before, placed)


def is_stack(node: Node) -> bool:
    """Whether a node puts fields side by side, each in one piece."""
    return name_of(node) == "stack.default" and list(node.args[1:]) in ([], [0])


def copy_parts(graph: Any) -> None:
    """Let loops store what they put side by side: each part is a value of a loop, and once one."""
    for node in list(graph.nodes):
        if not is_stack(node):
            continue
        parts = [seen(each) for each in list[Any](node.args)[0]]
        if not any(name_of(part) in OPERATIONS for part in parts):
            continue  # torch copies what already lies in memory
        taken: set[Node] = set()
        with graph.inserting_before(node):
            for at, (part, given) in enumerate(zip(parts, node.args[0], strict=True)):
                alone = not any(is_stack(user) for user in part.users if user is not node)
                plain = name_of(part) in OPERATIONS and sizes_of(part) == sizes_of(given)
                if not (plain and alone) or part in taken:
                    copy = graph.call_function(torch.ops.aten.clone.default, (given,))
                    copy.meta["val"] = given.meta["val"]
                    parts[at] = copy
                taken.add(part)
        node.args = (parts, *node.args[1:])


def name_parts(graph: Any) -> None:
    """Say `real` and `imag` where torch takes one of two numbers that a complex one is seen as."""
    for node in list(graph.nodes):
        if name_of(node) != "select.int":
            continue
        parted, axis, index = node.args
        last = axis in (-1, parted.meta["val"].dim() - 1)
        if last and name_of(parted) == "view_as_real.default":
            with graph.inserting_before(node):
                taken = graph.call_function((torch.real, torch.imag)[index], parted.args)
            taken.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(taken)


def share(graph: Any) -> None:
    """Let equal operations be one; random numbers excepted."""
    known: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or draws(node.target):
            continue
        key = (node.target, repr(node.args), repr(node.kwargs))
        first = known.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)
