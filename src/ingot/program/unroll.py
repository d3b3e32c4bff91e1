"""Axes written out: one scalar line for every entry, where that keeps the program small."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from ingot.program.graph import Axis, Graph, Node, ordered
from ingot.program.program import Program, Solve, Variable
from ingot.program.rewrite import solve_node

__all__ = ["LIMIT", "short", "unroll"]

LIMIT = 4000
"""The number of operations up to which all axes are written out."""

Entry = tuple[int, ...]


def short(program: Program, limit: int = LIMIT) -> bool:
    """Whether the program stays small with every axis written out."""
    return program.count() <= limit


def unroll(program: Program) -> Program:
    """The same program without axes; variables on axes have a node for every entry."""
    work = _Unroll(program.graph)
    for line in program.lines():
        work.copy(line)
    return Program(
        work.graph,
        tuple(work.variable(v) for v in program.inputs),
        tuple(replace(p, variable=work.variable(p.variable)) for p in program.parameters),
        tuple(work.variable(v) for v in program.outputs),
        program.notes,
    )


class _Unroll:
    """Copies nodes entry by entry."""

    def __init__(self, old: Graph) -> None:
        self.old = old
        self.graph = Graph()
        self.done: dict[int, dict[Entry, Node]] = {}

    def variable(self, variable: Variable) -> Variable:
        """A node for every entry of the layout and every component."""
        entries = self._entries(variable.axes)
        nodes = tuple(self.at(n, variable.axes, entry) for entry in entries for n in variable.nodes)
        return replace(variable, nodes=nodes)

    def at(self, node: Node, axes: Sequence[Axis], entry: Entry) -> Node:
        """The counterpart of a node at an entry of a layout that holds its axes."""
        self.copy(node)
        place = dict(zip([a.name for a in axes], entry, strict=True))
        return self.done[node.id][tuple(place[a.name] for a in node.axes)]

    def copy(self, node: Node) -> None:
        """Make the counterparts of a node, and of all that it needs."""
        if node.id not in self.done:
            for needed in ordered([node]):
                if needed.id not in self.done:
                    self.done[needed.id] = self._copy(needed)

    def _entries(self, axes: Sequence[Axis]) -> list[Entry]:
        return list(itertools.product(*(range(self.old.extent(a)) for a in axes)))

    def _copy(self, node: Node) -> dict[Entry, Node]:
        if node.op == "solve":
            return {(): self._solve(node)}
        if node.op == "linear":
            return {(): self._linear(node)}
        if node.op == "item":
            return self._items(node)
        return {entry: self._line(node, entry) for entry in self._entries(node.axes)}

    def _line(self, node: Node, entry: Entry) -> Node:
        g = self.graph
        if node.op in ("input", "parameter", "unknown"):
            return g.node(node.op, (), (*node.attr, *entry) if entry else node.attr)
        if node.op == "const":
            return g.const(node.attr)
        if node.op == "table":
            return g.const(float(self.old.values(node)[entry]))
        if node.op == "eye":
            return g.const(float(entry[0] == entry[1]))
        if node.op == "eps":
            return g.node("eps")
        if node.op == "sum":
            inner = node.args[0]
            place = dict(zip([a.name for a in node.axes], entry, strict=True))
            terms = []
            for i in range(self.old.extent(node.attr)):
                place[node.attr.name] = i
                terms.append(self.done[inner.id][tuple(place[a.name] for a in inner.axes)])
            return g.add_up(terms)
        if node.op in ("window", "pad"):
            return self._shifted(node, entry)
        return g.emit(node.op, *(self.at(a, node.axes, entry) for a in node.args))

    def _shifted(self, node: Node, entry: Entry) -> Node:
        held, first = node.attr
        at = [a.name for a in node.axes].index(held.name)
        inside = list(entry)
        inside[at] += first if node.op == "window" else -first
        if not 0 <= inside[at] < self.old.extent(held):
            return self.graph.zero
        return self.done[node.args[0].id][tuple(inside)]

    def _flat(self, nodes: Sequence[Node], axes: Sequence[tuple[Axis, ...]]) -> tuple[Node, ...]:
        return tuple(
            self.at(n, a, entry)
            for n, a in zip(nodes, axes, strict=True)
            for entry in self._entries(a)
        )

    def _solve(self, node: Node) -> Node:
        old: Solve = node.attr
        guesses = node.args[: len(old.columns)]
        flat = []
        at = 0
        for v in old.unknowns:
            part = guesses[at : at + len(v.nodes)]
            flat += [self.at(n, v.axes, e) for e in self._entries(v.axes) for n in part]
            at += len(v.nodes)
        new = replace(
            old,
            unknowns=tuple(self.variable(v) for v in old.unknowns),
            residuals=tuple(self.variable(v) for v in old.residuals),
            reads=(),
        )
        return solve_node(self.graph, new, tuple(flat))

    def _places(self, solve: Solve) -> dict[int, dict[Entry, int]]:
        """Where each entry of each unknown stands in the unrolled order."""
        found: dict[int, dict[Entry, int]] = {}
        at, column = 0, 0
        for v in solve.unknowns:
            entries = self._entries(v.axes)
            for c in range(len(v.nodes)):
                found[column + c] = {e: at + i * len(v.nodes) + c for i, e in enumerate(entries)}
            column += len(v.nodes)
            at += len(entries) * len(v.nodes)
        return found

    def _items(self, node: Node) -> dict[Entry, Node]:
        block = node.args[0]
        new = self.done[block.id][()]
        if block.op == "solve":
            places = self._places(block.attr)[node.attr]
            return {e: self.graph.node("item", (new,), i) for e, i in places.items()}
        slot, side = node.attr
        places = self._places(block.attr.solve)[slot]
        own = len(block.attr.solve.columns[slot].axes)
        widths = self._side_starts(block)
        seeds = node.axes[own:]
        sizes = [self.old.extent(a) for a in seeds]
        found = {}
        for entry in self._entries(node.axes):
            flat = 0
            for i, n in zip(entry[own:], sizes, strict=True):
                flat = flat * n + i
            place = (places[entry[:own]], widths[side] + flat)
            found[entry] = self.graph.node("item", (new,), place)
        return found

    def _side_axes(self, node: Node, side: int) -> tuple[Axis, ...]:
        linear = node.attr
        width = len(linear.solve.columns)
        first = len(node.args) - width * (linear.sides - side)
        rows = node.args[first : first + width]
        return tuple({a.name: a for n in rows for a in n.axes if "^" in a.name}.values())

    def _side_starts(self, node: Node) -> list[int]:
        starts = [0]
        for side in range(node.attr.sides):
            width = math.prod(self.old.extent(a) for a in self._side_axes(node, side))
            starts.append(starts[-1] + width)
        return starts

    def _linear(self, node: Node) -> Node:
        linear = node.attr
        solve: Solve = linear.solve
        width = len(solve.columns)
        items = node.args[:width]
        block = self.done[items[0].args[0].id][()]
        sides = node.args[len(node.args) - width * linear.sides :]
        flat: list[Node] = []
        for side in range(linear.sides):
            rows = sides[side * width : (side + 1) * width]
            seeds = self._side_axes(node, side)
            for seed in self._entries(seeds):
                at = 0
                for v in solve.unknowns:
                    part = rows[at : at + len(v.nodes)]
                    for e in self._entries(v.axes):
                        flat += [self.at(n, (*v.axes, *seeds), (*e, *seed)) for n in part]
                    at += len(v.nodes)
        new: Solve = block.attr
        solution = [self.graph.node("item", (block,), i) for i in range(len(new.columns))]
        outside = block.args[len(new.columns) :]
        count = self._side_starts(node)[-1]
        return self.graph.node(
            "linear", (*solution, *outside, *flat), replace(linear, solve=new, sides=count)
        )
