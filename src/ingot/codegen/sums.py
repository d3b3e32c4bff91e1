"""Straight lines -> statements; reductions over the instances of a region become loops."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ingot.codegen.statements import Block, Row, count_up
from ingot.codegen.values import ArrayEntry, find_operands, read_name
from ingot.program import Node
from ingot.program.regions import Twins
from ingot.types.elementwise import ELEMENTWISE

if TYPE_CHECKING:
    from ingot.codegen.lines import Lines

__all__ = ["SumLoops", "find_waves"]

MAX_SUMS_PER_LOOP = 12
"""How many sums share a loop: as many as stay in registers."""


def find_waves(
    nodes: Sequence[Node], fused: set[int], mates: Mapping[int, Sequence[Node]],
    wait: Callable[[Node, Node], int], rounds: int,
) -> dict[int, int]:  # fmt: skip
    """The first wave in which each line can run, which is that of all its mates.

    wait: by how many waves a line comes after one that it reads. Nothing where rounds do not do.
    """
    wave = {n.id: 0 for n in nodes}
    for _ in range(rounds):
        before = dict(wave)
        for node in nodes:
            reads = (x for x in find_operands(node, fused) if x.id in wave)
            now = max((wave[x.id] + wait(node, x) for x in reads), default=0)
            for mate in mates.get(node.id, (node,)):
                wave[mate.id] = max(wave[mate.id], now)
        if wave == before:
            return wave
    return {}


@dataclass(frozen=True, slots=True)
class SumLoops:
    """Writes straight lines. A sum is a chain of lines that each add the next instance's term.

    fused: products written where they are read; kept: lines read by others than these;
    twin: the twins that a node is one of, and its instance; readers: who reads each line;
    places: by twin that lies in an array in which they are evenly spaced, its instance, the array,
    where they start, and their stride.
    """

    printer: "Lines"
    fused: set[int]
    kept: set[int]
    twin: Mapping[int, tuple[Twins, int]]
    readers: Mapping[int, list[Node]]
    places: dict[int, tuple[int, str, int, int]] = field(default_factory=dict)

    def write(self, nodes: Sequence[Node]) -> list[Row]:
        """Straight lines; sums over instances wait for each other, to share their loops."""
        self._find_places()
        chains = self._find_chains(nodes)
        inside = {n.id: chain for chain in chains for n in chain}

        def count_loops(node: Node, read: Node) -> int:
            """One, if a line reads the sum of another chain."""
            return int(read.id in inside and inside[read.id] is not inside.get(node.id))

        wave = find_waves(nodes, self.fused, inside, count_loops, rounds=len(nodes) + 1)
        rows: list[Row] = []
        for now in range(max(wave.values(), default=-1) + 1):
            first = [n for n in nodes if wave[n.id] == now and inside.get(n.id, [n])[0] is n]
            for node in first:
                is_constant = node.id not in inside
                rows.append(self.printer.write_line(node, {}, self.fused, is_constant=is_constant))
            rows += self._write_loops([inside[n.id] for n in first if n.id in inside])
        return rows

    def _find_chains(self, nodes: Sequence[Node]) -> list[list[Node]]:
        """Sums whose terms are twins, in the order of the instances."""
        found: list[list[Node]] = []
        done: set[int] = set()
        here = {n.id for n in nodes}
        for node in nodes:
            if node.id in done:
                continue
            chain, due = [node], None
            while len(after := self.readers.get(chain[-1].id, [])) == 1:
                term = self._find_term(after[0], chain[-1]) if after[0].id in here else None
                if chain[-1].id in self.kept or term is None or due not in (None, term):
                    break
                chain += after
                due = (term[0] + 1, *term[1:])
            if len(chain) > 3:
                found.append(chain)
                done |= {n.id for n in chain}
        return found

    def _find_term(self, node: Node, total: Node) -> tuple[int, object, object] | None:
        """The instance whose term a line adds to a total, how, and which term it is."""
        row = ELEMENTWISE.get(node.op)
        if row is None or row.fused is None or total not in node.args:
            return None
        side = node.args.index(total)
        arg = node.args[1 - side]
        if arg is total or (side == 1 and not row.commutes):
            return None
        parts = arg.args if arg.id in self.fused else (arg,)
        places = [self.places.get(p.id) for p in parts]
        told = [p for p in places if p is not None]
        if len({p[0] for p in told}) != 1 or total in parts:
            return None
        which = tuple(p[1:] if p is not None else n.id for p, n in zip(places, parts, strict=True))
        return told[0][0], (node.op, side, arg.id in self.fused), which

    def _find_places(self) -> None:
        """Note where twins lie by now."""
        self.places.clear()
        for line in {line for line, _ in self.twin.values()}:
            found = [self.printer.names[n.id]({}) for n in line if n.id in self.printer.names]
            at = [(x.array, x.offset) for x in found if isinstance(x, ArrayEntry) and not x.index]
            if len(at) < len(line):
                continue
            (name, start), stride = at[0], at[1][1] - at[0][1]
            if all(p == (name, start + k * stride) for k, p in enumerate(at)):
                own = (n.id for n in line if self.twin[n.id][0] == line)
                self.places.update((i, (self.twin[i][1], name, start, stride)) for i in own)

    def _write_loops(self, chains: Sequence[list[Node]]) -> list[Row]:
        """Loops that finish sums; those over the same instances share one."""
        ranges: dict[tuple[int, int], list[str]] = {}
        for chain in chains:
            total, first = chain[:2]
            term = self._find_term(first, total)
            assert term is not None
            reads = find_operands(first, self.fused)
            before = {r.id: self.printer.names[r.id] for r in reads}
            for read in reads:
                if read is not total and read.id in self.places:
                    _, array, start, stride = self.places[read.id]
                    entry = ArrayEntry(array, start, "k", stride, read.is_condition)
                    self.printer.name({read.id: read_name(entry)})
            text = self.printer.write_expression(first, {}, self.fused)
            self.printer.name(before)
            name = f"x{total.id}"
            rows = ranges.setdefault((term[0], term[0] + len(chain) - 1), [])
            rows.append(f"{name} = {text};")
            self.printer.name({n.id: read_name(name) for n in chain})
        return [
            Block(count_up("k", begin, end), rows[i : i + MAX_SUMS_PER_LOOP])
            for (begin, end), rows in ranges.items()
            for i in range(0, len(rows), MAX_SUMS_PER_LOOP)
        ]
