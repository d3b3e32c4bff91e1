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

MAX_LOOP_NODES = 3072
"""Above so many operations a loop is cut: from twice as many on, g++ takes four times as long for a
function of twice the length. A step of a lattice, which must be one pass, has fewer."""


def clustered(captured: Captured, view: View) -> tuple[Unit, ...]:
    """The units of a graph, in an order that works."""
    made = Clusters(view)
    place = {node: at for at, node in enumerate(captured.module.graph.nodes)}
    for node, at in place.items():
        if node.op in ("placeholder", "output") or node in view.floating:
            continue
        values = set(reads(node, view))
        if node not in view.points:
            made.add(node, KernelCall(node), values, at)
            continue
        unit = Loop(sizes_of(node))
        made.add(node, unit, values, at)
        near = {made.owner[each] for each in values if each in made.owner}
        shared = made.beside(values) - near
        for other in [*sorted(near, key=lambda u: -made.last[u]),
                      *sorted(shared, key=lambda u: -made.births[u])]:  # fmt: skip
            unit = made.joined(unit, other)
    for unit in made.after:
        if isinstance(unit, Loop):
            unit.nodes.sort(key=place.__getitem__)
    return tuple(ordered(made.after, made.last))


@dataclass(slots=True)
class Clusters:
    """Units while they grow: the nodes they own, the units they need, where they end.

    readers: the loops that read a value at their own points; births: where a unit began
    """

    view: View
    owner: dict[Node, Unit] = field(default_factory=dict)
    after: dict[Unit, set[Unit]] = field(default_factory=dict)
    needed_by: dict[Unit, set[Unit]] = field(default_factory=dict)
    last: dict[Unit, int] = field(default_factory=dict)
    births: dict[Unit, int] = field(default_factory=dict)
    readers: dict[Node, set[Loop]] = field(default_factory=dict)

    def add(self, node: Node, unit: Unit, values: Iterable[Node], at: int) -> None:
        """A unit of one node."""
        if isinstance(unit, Loop):
            unit.nodes.append(node)
            for each in self.shares(unit, [node]):
                self.readers.setdefault(each, set()).add(unit)
        self.owner[node] = unit
        self.after[unit] = {self.owner[each] for each in values if each in self.owner}
        self.needed_by[unit] = set()
        for each in self.after[unit]:
            self.needed_by[each].add(unit)
        self.last[unit] = self.births[unit] = at

    def shares(self, loop: Loop, nodes: Iterable[Node]) -> Iterator[Node]:
        """The values that nodes of a loop read and that have the sizes of the loop."""
        for each in (self.view.seen(x) for node in nodes for x in node.all_input_nodes):
            if isinstance(each.meta["val"], Tensor) and sizes_of(each) == loop.shape:
                yield each

    def beside(self, values: Iterable[Node]) -> set[Loop]:
        """The loops that read one of these values, too."""
        return set[Loop]().union(*(self.readers.get(each, ()) for each in values))

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
        if unit.shape != other.shape or len(unit.nodes) + len(other.nodes) > MAX_LOOP_NODES:
            return unit
        if self.needs(self.after[unit] - {other}, other):
            return unit
        if self.needs(self.after[other] - {unit}, unit):
            return unit
        # the smaller moves, so that no node moves more often than the logarithm of their number
        small, large = sorted((unit, other), key=lambda each: len(each.nodes))
        for each in self.shares(small, small.nodes):
            self.readers[each].discard(small)
            self.readers[each].add(large)
        large.nodes += small.nodes
        self.owner |= dict.fromkeys(small.nodes, large)
        for each in self.after[small]:
            self.needed_by[each].discard(small)
            self.needed_by[each].add(large)
        for each in self.needed_by[small]:
            self.after[each].discard(small)
            self.after[each].add(large)
        self.after[large] = (self.after[large] | self.after.pop(small)) - {small, large}
        self.needed_by[large] = (self.needed_by[large] | self.needed_by.pop(small)) - {small, large}
        self.last[large] = max(self.last[large], self.last.pop(small))
        self.births[large] = self.births[other]
        del self.births[small]
        return large


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
