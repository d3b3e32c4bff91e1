"""fuse: a captured graph -> units in order: loops over points, and calls of torch between them.

Equal operations are joined, dead ones dropped; neighbours of one shape become one loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from ingot.fields.jit.capture import Captured, draws
from ingot.fields.jit.clusters import Loop, Unit, clustered, loads
from ingot.fields.jit.components import apart
from ingot.fields.jit.nodes import costs, name_of
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

    @property
    def after(self) -> int:
        """How many passes over memory are left."""
        return sum(isinstance(u, Loop) or costs(u.node) for u in self.units)

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
    graph = captured.module.graph
    before = sum(costs(node) for node in graph.nodes)
    name_parts(graph)
    share(graph)
    graph.eliminate_dead_code()
    view = viewed(apart(captured))
    outputs = tuple(next(n for n in graph.nodes if n.op == "output").args[0])
    units = alive(clustered(captured, view), outputs, view)
    read = {each for unit in units if isinstance(unit, Loop) for each in loads(unit, view)}
    stored = (read | view.whole) & view.points
    return Fused(captured, view, units, frozenset(stored), outputs, before)


def name_parts(graph: Any) -> None:
    """Say `real` and `imag` where torch takes one of two numbers that a complex one is seen as."""
    for node in list(graph.nodes):
        if str(node.target) != "aten.select.int":
            continue
        parted, axis, index = node.args
        last = axis in (-1, parted.meta["val"].dim() - 1)
        if last and str(parted.target) == "aten.view_as_real.default":
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


def alive(units: tuple[Unit, ...], outputs: Iterable[Any], view: View) -> tuple[Unit, ...]:
    """The units whose values something reads."""
    needed = {each for each in outputs if isinstance(each, Node)}
    kept: list[Unit] = []
    for unit in reversed(units):
        if isinstance(unit, Loop):
            needed |= set(loads(unit, view))
        elif unit.node not in needed:
            continue
        else:
            needed |= set(unit.node.all_input_nodes)
        kept.append(unit)
    return tuple(reversed(kept))
