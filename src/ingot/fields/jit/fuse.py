"""fuse: a captured graph -> units in order: loops over points, and calls of torch between them.

Equal operations are joined, dead ones dropped; neighbours of one shape become one loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.capture import Captured, draws
from ingot.fields.jit.components import apart
from ingot.fields.jit.entries import by_entries
from ingot.fields.jit.operations import OPERATIONS, costs, name_of, seen, sizes_of
from ingot.fields.jit.view import View, reads, viewed

__all__ = ["Fused", "KernelCall", "Loop", "Unit", "fuse"]


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
