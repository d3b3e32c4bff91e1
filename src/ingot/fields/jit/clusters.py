"""Loops over points as wide as the order of operations allows, and calls of torch between them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.capture import Captured
from ingot.fields.jit.nodes import sizes_of
from ingot.fields.jit.view import View, reads

__all__ = ["KernelCall", "Loop", "Unit", "clustered", "loads"]


@dataclass(eq=False, slots=True)
class Loop:
    """Operations of one shape that run point by point in one pass."""

    shape: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class KernelCall:
    """One operation of torch, as it is."""

    node: Node


Unit = Loop | KernelCall


def clustered(captured: Captured, view: View) -> tuple[Unit, ...]:
    """The units of a graph, in an order that works."""
    made = Clusters()
    for at, node in enumerate(captured.module.graph.nodes):
        if node.op in ("placeholder", "output") or node in view.floating:
            continue
        values = set(reads(node, view))
        if node not in view.points:
            made.add(node, KernelCall(node), values, at)
            continue
        unit = Loop(sizes_of(node))
        made.add(node, unit, values, at)
        near = {made.owner[each] for each in values if each in made.owner}
        shared = [u for u in made.after if u not in near and beside(u, values, view)]
        for other in [*sorted(near, key=lambda u: -made.last[u]), *reversed(shared)]:
            unit = made.joined(unit, other)
    return tuple(ordered(made.after, made.last))


@dataclass(slots=True)
class Clusters:
    """Units while they grow: the nodes they own, the units they need, where they end."""

    owner: dict[Node, Unit] = field(default_factory=dict)
    after: dict[Unit, set[Unit]] = field(default_factory=dict)
    last: dict[Unit, int] = field(default_factory=dict)

    def add(self, node: Node, unit: Unit, values: Iterable[Node], at: int) -> None:
        """A unit of one node."""
        if isinstance(unit, Loop):
            unit.nodes.append(node)
        self.owner[node] = unit
        self.after[unit] = {self.owner[each] for each in values if each in self.owner}
        self.last[unit] = at

    def needs(self, start: Iterable[Unit], goal: Unit) -> bool:
        """Whether any of some units needs another."""
        pending, met = list(start), set[Unit]()
        while pending:
            unit = pending.pop()
            if unit is goal:
                return True
            if unit not in met:
                met.add(unit)
                pending += self.after[unit]
        return False

    def joined(self, unit: Loop, other: Unit) -> Loop:
        """Two loops as one, where they have one shape and nothing must run between them."""
        if unit is other or other not in self.after or not isinstance(other, Loop):
            return unit
        apart = self.needs(self.after[unit] - {other}, other)
        apart = apart or self.needs(self.after[other] - {unit}, unit)
        if unit.shape != other.shape or apart:
            return unit
        other.nodes += unit.nodes
        for node in unit.nodes:
            self.owner[node] = other
        self.after[other] = (self.after[other] | self.after.pop(unit)) - {unit, other}
        self.last[other] = max(self.last[other], self.last.pop(unit))
        for needed in self.after.values():
            if unit in needed:
                needed.remove(unit)
                needed.add(other)
        return other


def beside(loop: Unit, values: set[Node], view: View) -> bool:
    """Whether a loop reads a whole value that is among those given."""
    if not isinstance(loop, Loop):
        return False
    near = (view.seen(each) for node in loop.nodes for each in node.all_input_nodes)
    return any(
        each in values and isinstance(each.meta["val"], Tensor) and sizes_of(each) == loop.shape
        for each in near
    )


def ordered(after: dict[Unit, set[Unit]], last: dict[Unit, int]) -> Iterator[Unit]:
    """Units after those that they need, else as they were written."""
    waiting = {unit: len(earlier) for unit, earlier in after.items()}
    later: dict[Unit, list[Unit]] = {unit: [] for unit in after}
    for unit, earlier in after.items():
        for each in earlier:
            later[each].append(unit)
    ready = [(last[unit], id(unit), unit) for unit, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    while ready:
        unit = heapq.heappop(ready)[2]
        yield unit
        for each in later[unit]:
            waiting[each] -= 1
            if waiting[each] == 0:
                heapq.heappush(ready, (last[each], id(each), each))


def loads(loop: Loop, view: View) -> dict[Node, None]:
    """What a loop reads from outside, in order."""
    own = set(loop.nodes)
    found = (each for node in loop.nodes for each in reads(node, view))
    return dict.fromkeys(each for each in found if each not in own)
