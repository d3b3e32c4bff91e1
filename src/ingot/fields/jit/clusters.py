"""Loops over points as wide as the order of operations allows, and calls of torch between them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.capture import Captured
from ingot.fields.jit.operations import sizes_of
from ingot.fields.jit.view import View, reads

__all__ = ["KernelCall", "Loop", "Unit", "clustered"]


@dataclass(eq=False, slots=True)
class Loop:
    """Operations of one shape that run point by point in one pass.

    reads: values from outside; last: the place of its last operation; birth: of the one it grew
    from
    """

    shape: tuple[int, ...]
    nodes: list[Node]
    reads: dict[Node, None]
    last: int
    birth: int


@dataclass(eq=False, slots=True)
class KernelCall:
    """One operation of torch, as it is."""

    node: Node
    reads: dict[Node, None]
    last: int


Unit = Loop | KernelCall

MAX_LOOP_NODES = 3072
"""Above so many operations a loop is cut: from twice as many on, g++ takes four times as long for a
function of twice the length. A step of a lattice, which must be one pass, has fewer."""


def clustered(captured: Captured, view: View) -> tuple[Unit, ...]:
    """The units of a graph, in an order that works."""
    made = Clusters()
    place = {node: at for at, node in enumerate(captured.module.graph.nodes)}
    for node, at in place.items():
        if node.op in ("placeholder", "output") or node in view.floating:
            continue
        values = dict.fromkeys(reads(node, view))
        if node in view.points:
            made.add(Loop(sizes_of(node), [node], values, at, at))
        else:
            made.owner[node] = KernelCall(node, values, at)
    units = dict.fromkeys(made.owner.values())
    for unit in units:
        if isinstance(unit, Loop):
            unit.nodes.sort(key=place.__getitem__)
    return tuple(made.ordered(units))


@dataclass(slots=True)
class Clusters:
    """Units while they grow: which one a node belongs to.

    readers: the loops that read a value at their own points
    """

    owner: dict[Node, Unit] = field(default_factory=dict)
    readers: dict[Node, set[Loop]] = field(default_factory=dict)

    def add(self, loop: Loop) -> None:
        """A loop of one node, joined to those that it reads and to those that read the same."""
        self.owner[loop.nodes[0]] = loop
        near = {unit for unit in self.needed(loop) if isinstance(unit, Loop)}
        shared = set[Loop]()
        for each in loop.reads:
            if isinstance(each.meta["val"], Tensor) and sizes_of(each) == loop.shape:
                shared |= self.readers.setdefault(each, set())
                self.readers[each].add(loop)
        for other in [*sorted(near, key=lambda each: -each.last),
                      *sorted(shared - near, key=lambda each: -each.birth)]:  # fmt: skip
            loop = self.joined(loop, other)

    def needed(self, unit: Unit) -> set[Unit]:
        """The units whose values a unit reads."""
        return {self.owner[each] for each in unit.reads if each in self.owner}

    def needs(self, start: Unit, goal: Unit) -> bool:
        """Whether anything that a unit needs, but the goal itself, needs the goal."""
        pending, met = [*self.needed(start) - {goal}], set[Unit]()
        while pending:
            unit = pending.pop()
            if unit is goal:
                return True
            if unit not in met:
                met.add(unit)
                pending += self.needed(unit)
        return False

    def joined(self, loop: Loop, other: Loop) -> Loop:
        """Two loops as one, where they have one shape and nothing must run between them."""
        # one without nodes is part of another by now
        if loop is other or not other.nodes or loop.shape != other.shape:
            return loop
        if len(loop.nodes) + len(other.nodes) > MAX_LOOP_NODES:
            return loop
        if self.needs(loop, other) or self.needs(other, loop):
            return loop
        # the smaller moves, so that no node moves more often than the logarithm of their number
        small, large = sorted((loop, other), key=lambda each: len(each.nodes))
        outside = [each for each in small.reads if self.owner.get(each) is not large]
        for each in small.nodes:
            large.reads.pop(each, None)
            self.owner[each] = large
        for each in small.reads.keys() & self.readers.keys():
            if small in self.readers[each]:
                self.readers[each].remove(small)
                self.readers[each].add(large)
        large.reads |= dict.fromkeys(outside)
        large.nodes += small.nodes
        large.last, large.birth = max(large.last, small.last), other.birth
        small.nodes = []
        return large

    def ordered(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """Units after those that they need, else as they were written."""
        sorter = TopologicalSorter({unit: self.needed(unit) for unit in units})
        sorter.prepare()
        ready: list[tuple[int, int, Unit]] = []
        while sorter:
            for each in sorter.get_ready():
                heapq.heappush(ready, (each.last, id(each), each))
            unit = heapq.heappop(ready)[2]
            yield unit
            sorter.done(unit)
