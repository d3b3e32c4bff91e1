"""Loop unrolling: axes written out as a scalar line for every entry, where that stays small."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot.program.builder import Axis, Builder, Node, Space, sort_until
from ingot.program.operations import Unstructured, operation
from ingot.program.program import Program, Variable

if TYPE_CHECKING:
    from ingot.program.implicit import Solve

__all__ = ["MAX_UNROLLED_OPERATIONS", "MAX_UNROLLED_SYSTEM", "Unrolling", "unroll"]

MAX_UNROLLED_OPERATIONS = 4000
"""The operations up to which all axes are written out: beyond, g++ takes longer than loops cost."""
MAX_UNROLLED_SYSTEM = 24000
"""The same where a system of unknowns can be no loop: half a minute of g++ is better than none."""

Entry = tuple[int, ...]


def unroll(program: Program, keep: Collection[str] = ()) -> Program:
    """The same program without axes, except those kept; variables have a node for every entry of
    the others.
    """
    work = Unrolling(program, Builder(program.extents), keep)
    for line in program.lines:
        work.copy(line)
    copied = program.copy(work.variable)
    hoisted = tuple(m for n in program.hoisted for m in work.entries(n).values())
    return replace(copied, named=(), hoisted=hoisted)


class _Unrolled(Space):
    """A space in which an axis that stays a loop counts for one entry, number 0."""

    def __init__(self, whole: Space, keep: Collection[str]) -> None:
        self.whole, self.keep = whole, keep
        self.extents = whole.extents

    def extent(self, axis: Axis) -> int:
        """The number of entries that are written out."""
        return 1 if axis.name in self.keep else self.whole.extent(axis)


class Unrolling:
    """Copies lines entry by entry into a builder.

    keep: axes that stay, along which a copy stands for all entries; done: the copies of each line
    by entry; those of a block under the empty one.
    """

    def __init__(
        self, space: Space, builder: Builder, keep: Collection[str] = (),
        done: Mapping[int, dict[Entry, Node]] | None = None,
    ) -> None:  # fmt: skip
        self.whole = space
        self.space = _Unrolled(space, keep) if keep else space
        self.builder = builder
        self.keep = keep
        self.done: dict[int, dict[Entry, Node]] = dict(done or {})

    def inside(self, done: Mapping[int, dict[Entry, Node]]) -> "Unrolling":
        """The same for the lines of a solve, of which some are known."""
        return Unrolling(self.whole, self.builder, self.keep, done)

    def kept(self, axes: Sequence[Axis]) -> tuple[Axis, ...]:
        """Those of the axes that stay."""
        return tuple(a for a in axes if a.name in self.keep)

    def variable(self, variable: Variable) -> Variable:
        """A node for every entry of the layout and every component."""
        entries = self.space.entries(variable.axes)
        nodes = tuple(self.at(n, variable.axes, e) for e in entries for n in variable.nodes)
        spread = tuple(a for a in variable.axes if a.name not in self.keep)
        return replace(variable, nodes=nodes, spread=spread)

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
        entries = self.space.entries(node.axes)
        gone = tuple(dict.fromkeys(a for x in node.args for a in x.axes if a not in node.axes))
        if not self.kept(gone):
            return {e: rule.unroll(self, node, e) for e in entries}
        if len(self.kept(gone)) < len(gone):
            raise Unstructured(gone[0].name)
        axes = (*(a for a in node.axes if a.key not in {g.key for g in gone}), *gone)
        return {
            e: rule.rebuild(
                self.builder, node, tuple(self._reach(x, node, axes, e) for x in node.args)
            )
            for e in entries
        }

    def _reach(self, arg: Node, node: Node, axes: Sequence[Axis], entry: Entry) -> Node:
        """An operand of a line that works along axes which stay, at an entry of the line."""
        at = dict(zip([a.key for a in node.axes], entry, strict=True))
        return self.at(arg, axes, tuple(at.get(a.key, 0) for a in axes))

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
