"""fuse: a captured graph -> units in order: loops over points, and calls of torch between them.

Equal operations are joined, dead ones dropped; neighbours of one shape become one loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.capture import Captured
from ingot.fields.jit.operations import CHEAP, CONSTANTS, OPERATIONS, THROUGH

__all__ = ["Call", "Fused", "Loop", "Unit", "View", "fuse", "loads", "name_of", "sizes_of"]

FREE = ("view", "reshape", "select", "slice", "unsqueeze", "squeeze", "permute", "transpose",
        "expand", "alias", "detach", "t", "unbind", "split", "view_as_real", "view_as_complex",
        "getitem", "sym_size", "lift_fresh_copy", "diagonal", "movedim", "as_strided")  # fmt: skip
"""Calls that touch no values."""


@dataclass(eq=False, slots=True)
class Loop:
    """Operations of one shape that run point by point in one pass."""

    shape: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Call:
    """One operation of torch, as it is."""

    node: Node


Unit = Loop | Call


@dataclass(frozen=True, slots=True)
class View:
    """How the nodes of a graph are seen: numbers, values handed through, point by point, other."""

    real: torch.dtype
    constants: dict[Node, complex]
    through: dict[Node, Node]
    points: frozenset[Node]

    def seen(self, node: Node) -> Node:
        """The node whose values this one has, axes aside."""
        while node in self.through:
            node = self.through[node]
        return node


@dataclass(frozen=True, slots=True)
class Fused:
    """Units in the order they run, the nodes that leave a loop, and what the loops repeat."""

    captured: Captured
    view: View
    units: tuple[Unit, ...]
    stored: frozenset[Node]
    floating: frozenset[Node]
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
    real = captured.schema.dtypes[captured.space_inputs // 2]
    view = viewed(captured, real)
    outputs = tuple(next(n for n in graph.nodes if n.op == "output").args[0])
    forced = needed_whole(graph, view, outputs)
    floating = frozenset(
        n for n in view.points
        if n not in forced and is_part(n, captured) and name_of(n) in CHEAP
    )  # fmt: skip
    units, owner = clustered(captured, view, floating)
    stored = {each for unit in units if isinstance(unit, Loop) for each in loads(unit, view, floating)}
    stored = (stored | forced) & view.points
    units = alive(units, outputs, view, floating)
    return Fused(captured, view, units, frozenset(stored), floating, outputs, before)


def name_of(node: Node) -> str:
    """The name of a node's operation, torch's own without their room."""
    if node.op != "call_function":
        return node.op
    text = str(node.target)
    if text.startswith("aten."):
        return text.removeprefix("aten.")
    return getattr(node.target, "__name__", text)


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


def needed_whole(graph: Any, view: View, outputs: Iterable[Any]) -> set[Node]:
    """The nodes whose values must lie in memory, for calls of torch and for those outside."""
    calls = [n for n in graph.nodes if n.op == "call_function" and n not in view.points
             and n not in view.through and n not in view.constants]  # fmt: skip
    pending = [a for n in calls for a in n.all_input_nodes]
    pending += [each for each in outputs if isinstance(each, Node)]
    found: set[Node] = set()
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            if node in view.through or node in view.constants:
                pending += node.all_input_nodes
    return found


def loads(loop: Loop, view: View, floating: Iterable[Node]) -> dict[Node, None]:
    """What a loop reads from outside, in order."""
    own = set(loop.nodes)
    found = (each for node in loop.nodes for each in reads(node, view, floating))
    return dict.fromkeys(each for each in found if each not in own)


def alive(
    units: tuple[Unit, ...], outputs: Iterable[Any], view: View, floating: Iterable[Node]
) -> tuple[Unit, ...]:
    """The units whose values something reads."""
    needed = {each for each in outputs if isinstance(each, Node)}
    kept: list[Unit] = []
    for unit in reversed(units):
        if isinstance(unit, Loop):
            needed |= set(loads(unit, view, floating))
        elif unit.node not in needed:
            continue
        else:
            needed |= set(unit.node.all_input_nodes)
        kept.append(unit)
    return tuple(reversed(kept))


def costs(node: Node) -> bool:
    """Whether a node passes over values."""
    return node.op == "call_function" and (
        isinstance(node.meta.get("val"), Tensor | tuple | list)
        and name_of(node).split(".")[0] not in FREE
    )


def share(graph: Any) -> None:
    """Let equal operations be one; random numbers and sizes of what is made anew excepted."""
    known: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or "rand" in str(node.target):
            continue
        key = (node.target, repr(node.args), repr(node.kwargs))
        first = known.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def sizes_of(node: Node) -> tuple[int, ...]:
    """The sizes of a node's value while it was captured."""
    return tuple(int(getattr(getattr(n, "node", None), "hint", n)) for n in node.meta["val"].shape)


def is_part(node: Node, captured: Captured) -> bool:
    """Whether a value lacks one of the axes of space."""
    sizes = sizes_of(node)
    return len(sizes) < captured.schema.dim or 1 in sizes


def viewed(captured: Captured, real: torch.dtype) -> View:
    """How each node of a graph is seen."""
    constants: dict[Node, complex] = {}
    through: dict[Node, Node] = {}
    points: set[Node] = set()
    for node in captured.module.graph.nodes:
        name = name_of(node)
        value = node.meta.get("val")
        if node.op == "get_attr":
            held = getattr(captured.module, str(node.target))
            if isinstance(held, Tensor) and held.numel() == 1:
                constants[node] = held.item()
        elif name in CONSTANTS:
            number = CONSTANTS[name](*node.args, **node.kwargs)
            if isinstance(number, bool | int | float | complex):
                constants[node] = bool(number) if value.dtype == torch.bool else number
        elif name in THROUGH and node.args[0] in constants:
            constants[node] = constants[node.args[0]]
        elif name in THROUGH:
            through[node] = node.args[0]
        elif name in OPERATIONS and works(node, real, captured):
            points.add(node)
    return View(real, constants, through, frozenset(points))


def works(node: Node, real: torch.dtype, captured: Captured) -> bool:
    """Whether a loop can hold an operation: its types, its sizes and its arguments."""
    kinds = (real, real.to_complex(), torch.bool)
    name, value = name_of(node), node.meta["val"]
    tensors = [a.meta["val"] for a in node.all_input_nodes if isinstance(a.meta.get("val"), Tensor)]
    same = all(x.dtype in kinds and x.device == value.device for x in (*tensors, value))
    if not same or not tensors or not known_sizes(node, captured):
        return False
    if name.startswith("rsub") and len(node.args) > 2:
        return False
    if name in ("div.Tensor", "true_divide.Tensor") and node.kwargs.get("rounding_mode"):
        return False
    return bool(printable(node, real))


def printable(node: Node, real: torch.dtype) -> bool:
    """Whether an operation can be printed for the kinds of its arguments."""
    from ingot.fields.jit.kernels import applied, kind_of
    from ingot.fields.jit.operations import Term

    try:
        applied(node, lambda each: Term("x", kind_of(each, real)), real)
    except (KeyError, TypeError):
        return False
    return True


def known_sizes(node: Node, captured: Captured) -> bool:
    """Whether the sizes of a value are those of the box, of its spectrum, or fixed."""
    from ingot.fields.jit.schema import TRACED

    known = set(TRACED.values())
    return all(isinstance(n, int) or n.node.hint in known for n in node.meta["val"].shape)


def reads(node: Node, view: View, floating: Iterable[Node]) -> Iterator[Node]:
    """The values that a node takes from outside its loop or call, or from its own loop."""
    is_loop = node in view.points
    for each in node.all_input_nodes:
        found = view.seen(each) if is_loop else each
        if is_loop and found in view.constants:
            continue
        if is_loop and found in floating:
            yield from reads(found, view, floating)
        else:
            yield found


def clustered(
    captured: Captured, view: View, floating: frozenset[Node]
) -> tuple[tuple[Unit, ...], dict[Node, Unit]]:
    """Loops as wide as the order of operations allows, and calls, in an order that works."""
    made = Clusters()
    for at, node in enumerate(captured.module.graph.nodes):
        if node.op in ("placeholder", "output") or node in floating:
            continue
        values = set(reads(node, view, floating))
        if node not in view.points:
            made.add(node, Call(node), values, at)
            continue
        unit: Unit = Loop(sizes_of(node))
        made.add(node, unit, values, at)
        near = {made.owner[each] for each in values if each in made.owner}
        shared = [u for u in made.after if u not in near and beside(u, values, view)]
        for other in [*sorted(near, key=lambda u: -made.last[u]), *reversed(shared)]:
            unit = made.joined(unit, other)
    return tuple(ordered(made.after, made.last)), made.owner


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

    def joined(self, unit: Unit, other: Unit) -> Unit:
        """Two loops as one, where they have one shape and nothing must run between them."""
        loops = isinstance(unit, Loop) and isinstance(other, Loop)
        if not loops or unit is other or other not in self.after:
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
    return isinstance(loop, Loop) and any(view.seen(a) in values and sizes_of(view.seen(a)) == loop.shape
               for n in loop.nodes for a in n.all_input_nodes
               if isinstance(a.meta.get("val"), Tensor))  # fmt: skip


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
