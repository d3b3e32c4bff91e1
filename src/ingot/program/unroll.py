"""Axes written out: one scalar line for every entry, where that keeps the program small."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot.program.builder import Axis, Builder, Node, Space, sort_until
from ingot.program.operations import operation
from ingot.program.program import Program, Variable

if TYPE_CHECKING:
    from ingot.program.implicit import Solve

__all__ = ["MAX_UNROLLED_OPERATIONS", "Unrolling", "unroll"]

MAX_UNROLLED_OPERATIONS = 4000
"""The operations up to which all axes are written out: beyond, g++ takes longer than loops cost."""

Entry = tuple[int, ...]


def unroll(program: Program) -> Program:
    """The same program without axes; variables on axes have a node for every entry."""
    work = Unrolling(program, Builder(program.extents))
    for line in program.lines:
        work.copy(line)
    return replace(
        program,
        inputs=tuple(work.variable(v) for v in program.inputs),
        parameters=tuple(
            replace(p, variable=work.variable(p.variable)) for p in program.parameters
        ),
        outputs=tuple(work.variable(v) for v in program.outputs),
        named=(),
        hoisted=tuple(m for n in program.hoisted for m in work.entries(n).values()),
    )


class Unrolling:
    """Copies lines entry by entry into a builder.

    done: the copies of each line by entry; those of a block under the empty one.
    """

    def __init__(
        self, space: Space, builder: Builder, done: Mapping[int, dict[Entry, Node]] | None = None
    ) -> None:
        self.space = space
        self.builder = builder
        self.done: dict[int, dict[Entry, Node]] = dict(done or {})

    def inside(self, done: Mapping[int, dict[Entry, Node]]) -> "Unrolling":
        """The same for the lines of a solve, of which some are known."""
        return Unrolling(self.space, self.builder, done)

    def variable(self, variable: Variable) -> Variable:
        """A node for every entry of the layout and every component."""
        entries = self.space.entries(variable.axes)
        nodes = tuple(self.at(n, variable.axes, e) for e in entries for n in variable.nodes)
        return replace(variable, nodes=nodes)

    def at(self, node: Node, axes: Sequence[Axis], entry: Entry) -> Node:
        """The copy of a line at an entry of a layout that holds its axes."""
        place = dict(zip([a.key for a in axes], entry, strict=True))
        return self.entries(node)[tuple(place[a.key] for a in node.axes)]

    def entries(self, node: Node) -> dict[Entry, Node]:
        """All copies of a line."""
        self.copy(node)
        return self.done[node.id]

    def copy(self, node: Node) -> None:
        """Make the copies of a line, and of all that it needs."""
        if node.id not in self.done:
            for needed in sort_until([node], self.done):
                self.done[needed.id] = self._copy(needed)

    def _copy(self, node: Node) -> dict[Entry, Node]:
        rule = operation(node.op)
        if rule.is_block:
            return {(): rule.unroll_block(self, node)}
        if node.op == "item":
            return operation(node.args[0].op).unroll_item(self, node)
        return {e: rule.unroll(self, node, e) for e in self.space.entries(node.axes)}

    def flatten(
        self, solve: "Solve", nodes: Sequence[Node], seeds: Sequence[Axis] = (), seed: Entry = ()
    ) -> list[Node]:
        """A line for every unknown of the unrolled solve, at an entry of seed axes."""
        flat, left = [], iter(nodes)
        for v in solve.unknowns:
            part = [next(left) for _ in v.nodes]
            for entry in self.space.entries(v.axes):
                flat += [self.at(n, (*v.axes, *seeds), (*entry, *seed)) for n in part]
        return flat

    def places(self, solve: "Solve") -> dict[int, dict[Entry, int]]:
        """Where each entry of each unknown stands in the unrolled order."""
        found: dict[int, dict[Entry, int]] = {}
        at, column = 0, 0
        for v in solve.unknowns:
            entries = self.space.entries(v.axes)
            for c in range(len(v.nodes)):
                found[column + c] = {e: at + i * len(v.nodes) + c for i, e in enumerate(entries)}
            column += len(v.nodes)
            at += len(entries) * len(v.nodes)
        return found
