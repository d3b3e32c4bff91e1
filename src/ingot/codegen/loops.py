"""Loop fusion: lines on axes that run together share a loop; what is read beyond it is an array.

The outermost loop is over the axis that most lines have, so that what lies on further axes stays
in small arrays of one entry of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ingot.codegen.statements import Block, Row, count_up
from ingot.codegen.values import Access, ArrayEntry, find_operands, read_name
from ingot.program import Axis, Node, operation
from ingot.program.operations import Place

if TYPE_CHECKING:
    from ingot.codegen.lines import Lines

__all__ = ["Loops"]

MAX_ON_STACK = 64
"""The entries of an array of lanes that lies on the stack, of which threads have some megabytes: a
hundred arrays of 64 entries take 400 kB."""


class Loops:
    """Writes lines and the loops around them.

    staying: lines that are read after all of these; fused: products that are written where the
    one line stands that reads them.
    """

    def __init__(
        self, to: "Lines", lines: Sequence[Node], staying: set[int], fused: set[int]
    ) -> None:
        self.to = to
        self.lines = [n for n in lines if n.id not in fused]
        self.staying, self.fused = staying, fused
        self.arrays: dict[int, Access] = {}
        self.readers: dict[int, set[int]] = {}
        count: dict[tuple[str, int], int] = {}
        for node in self.lines:
            for arg in find_operands(node, self.fused):
                self.readers.setdefault(arg.id, set()).add(node.id)
            for axis in node.axes:
                count[axis.key] = count.get(axis.key, 0) + 1
        outermost = sorted(count, key=lambda key: (-count[key], key))
        self.rank = {key: i for i, key in enumerate(outermost)}

    def write(self) -> list[Row]:
        """All statements."""
        return self._write(self.lines, (), {})

    def _write(self, lines: Sequence[Node], done: tuple[Axis, ...], place: Place) -> list[Row]:
        """Statements inside loops over some axes."""
        rows: list[Row] = []
        for axis, group in self._group_lines(lines, done):
            if axis is not None:
                rows += self._write_loop(axis, group, done, place)
                continue
            for node in group:
                if node.id not in self.to.names:
                    rows.append(self.to.write_line(node, place, self.fused))
                if node.id in self.arrays:
                    rows.append(f"{self.arrays[node.id](place)} = {self.to.read(node)};")
        return rows

    def _find_next_axis(self, node: Node, done: tuple[Axis, ...]) -> Axis | None:
        """The outermost axis of a line that has no loop yet."""
        left = (a for a in node.axes if a not in done)
        return min(left, key=lambda a: self.rank[a.key], default=None)

    def _group_lines(
        self, lines: Sequence[Node], done: tuple[Axis, ...]
    ) -> Iterator[tuple[Axis | None, list[Node]]]:
        """Lines that run together, and the axis that they share a loop over, or None."""
        waiting = {n.id: n for n in lines}
        while waiting:
            ready = (n for n in waiting.values() if not self._waits(n, waiting, ()))
            axis = self._find_next_axis(next(ready), done)
            inside: dict[int, Node] = {}
            for node in waiting.values():
                if self._find_next_axis(node, done) != axis or self._waits(node, waiting, inside):
                    continue
                across = operation(node.op).reads_across and axis is not None
                # an operand whose axes are all the line's own may be read across any of them
                own = (a for a in node.args if set(a.axes) <= set(node.axes))
                if across and any(a.id in inside for a in own):
                    continue
                inside[node.id] = node
            for i in inside:
                del waiting[i]
            yield axis, list(inside.values())

    def _waits(
        self, node: Node, waiting: Mapping[int, Node], inside: "Sequence[int] | dict[int, Node]"
    ) -> bool:
        """Whether a line reads one that has not run yet, nor runs before it in its group."""
        return any(a.id in waiting and a.id not in inside for a in find_operands(node, self.fused))

    def _write_loop(
        self, axis: Axis, group: Sequence[Node], done: tuple[Axis, ...], place: Place
    ) -> list[Row]:
        """One loop for lines that have an axis, and for their sums over it."""
        inside = {n.id for n in group}
        sums = [n for n in self.lines if self._adds_up(n, axis, inside, done)]
        summed = {n.id for n in sums}
        rows: list[Row] = []
        for node in group:
            read = not self.readers.get(node.id, set()) - summed <= inside
            if node.id not in self.arrays and (read or node.id in self.staying):
                rows.append(self._declare(node, done))
        rows += [f"V {self._name(n)} = V{{}};" for n in sums]
        i, size = f"i{len(done)}", self.to.space.extent(axis)
        inner = self._write(group, (*done, axis), {**place, axis.key: i})
        for node in sums:
            inner.append(f"{self._name(node)} += {self.to.read(node.args[0])};")
            self.to.names[node.id] = read_name(self._name(node))
        for node in group:
            if node.id in self.arrays:
                self.to.names[node.id] = self.arrays[node.id]
            else:
                self.to.names.pop(node.id, None)
        return [*rows, Block(count_up(i, 0, size), inner)]

    def _adds_up(self, node: Node, axis: Axis, inside: set[int], done: tuple[Axis, ...]) -> bool:
        """Whether a line is the sum over a loop of what is computed in it once an entry."""
        if node.op != "sum" or node.attr != axis or node.args[0].id not in inside:
            return False
        return set(node.axes) <= set(done) and set(node.args[0].axes) <= {*done, axis}

    def _name(self, node: Node) -> str:
        return f"{self.to.prefix}x{node.id}"

    def _declare(self, node: Node, done: tuple[Axis, ...]) -> str:
        """An array for a line that is read beyond its loop; large ones lie on the heap."""
        axes = [a for a in node.axes if a not in done]
        kind, name = "M" if node.is_condition else "V", f"{self.to.prefix}a{node.id}"
        index = self.to.index(axes)
        self.arrays[node.id] = lambda at: ArrayEntry(name, index=index(at))
        size = self.to.space.size(axes)
        if size > MAX_ON_STACK:
            return f"const Array<{kind}, {size}> {name};"
        return f"{kind} {name}[{size}];"
