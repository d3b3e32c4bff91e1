"""Repeated lines -> one function: what instances of a region share is written and compiled once.

In: straight lines, and which of them are twins. Out: functions, and statements that call them in
loops over the instances. Every operation stays as it is, so results do not depend on outlining.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from ingot.codegen.arguments import RegionCall
from ingot.codegen.statements import Row, write_function
from ingot.codegen.sums import SumLoops
from ingot.codegen.values import Definition, cast_mask, find_operands, read_entry, read_name
from ingot.options import Inline
from ingot.program import Node, Solve
from ingot.program.regions import (
    MIN_INSTANCES_TO_OUTLINE,
    Region,
    Twins,
    align_operands,
    find_twins,
    grow_twins,
    number_codes,
)  # fmt: skip
from ingot.program.schedule import schedule_lines

if TYPE_CHECKING:
    from ingot.codegen.lines import Lines

__all__ = ["Outline", "plan_outline", "write_outlined"]

MIN_LINES_TO_OUTLINE = 24
"""Below so many lines a function is not worth its calls."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Which lines of a function are twins, what code each is, how short a part may be."""

    groups: tuple[tuple[Twins, ...], ...]
    code: Mapping[int, int]
    short: int
    numbers: "count[int]"

    @property
    def saved_lines(self) -> int:
        """How many lines are not written again."""
        return sum(len(group) * (len(group[0]) - 1) for group in self.groups if group)


def plan_outline(
    regions: Sequence[Region], solve: Solve, roots: Sequence[Node], inline: Inline,
    numbers: "count[int]",
) -> Outline | None:  # fmt: skip
    """What of a solve is written once; roots: a result for each unknown."""
    chosen = [
        r for r in regions if inline == "none" or len(r.instances) >= MIN_INSTANCES_TO_OUTLINE
    ]
    if inline == "all" or not chosen:
        return None
    result = {c.id: root for c, root in zip(solve.columns, roots, strict=True)}
    lines = schedule_lines([*solve.rows, *roots])
    code = number_codes([*solve.rows, *roots])
    taken = {c.id for c in solve.columns}
    groups = []
    for region in chosen:
        ends = [tuple(result[n.id] for n in t) for t in region.columns]
        group = grow_twins(lines, find_twins([*region.rows, *ends], code, taken), code, taken)
        groups.append(tuple(group))
        taken |= {n.id for t in group for n in t}
    return Outline(tuple(groups), code, MIN_LINES_TO_OUTLINE if inline == "auto" else 2, numbers)


@dataclass(frozen=True, slots=True)
class _Member:
    """The place of a line: its region, its position there, its instance."""

    group: int
    position: int
    instance: int


def write_outlined(
    printer: "Lines", nodes: Sequence[Node], fused: set[int], kept: set[int], outline: Outline
) -> list[Row]:
    """Statements for the nodes, in order; `kept` are read after them."""
    return _OutlineWriter(printer, nodes, fused, kept, outline).write()


class _OutlineWriter:
    def __init__(
        self, printer: "Lines", nodes: Sequence[Node], fused: set[int], kept: set[int],
        outline: Outline,
    ) -> None:  # fmt: skip
        self.printer = printer
        self.nodes = nodes
        self.fused = fused
        self.kept = kept
        self.outline = outline
        present = {n.id for n in nodes}
        self.groups = [
            self._drop_torn([t for t in group if all(n.id in present for n in t)])
            for group in outline.groups
        ]
        self.member: dict[int, _Member] = {}
        self.step: dict[int, int] = {}

    def write(self) -> list[Row]:
        """All statements."""
        self._assign_steps()
        if not self.member:
            return [self.printer.write_line(n, {}, self.fused) for n in self.nodes]
        readers: dict[int, list[Node]] = {}
        for node in self.nodes:
            for arg in find_operands(node, self.fused):
                readers.setdefault(arg.id, []).append(node)
        twin: dict[int, tuple[Twins, int]] = {}
        for line in (t for group in self.groups for t in group):
            for alike in (line, *self._find_operands(line)):
                for k, node in enumerate(alike if len(set(alike)) == len(alike) else ()):
                    twin.setdefault(node.id, (alike, k))
        sums = SumLoops(self.printer, self.fused, self.kept, twin, readers)
        rows: list[Row] = []
        for step in range(max(self.step.values()) + 1):
            here = [n for n in self.nodes if self.step[n.id] == step]
            rows += sums.write([n for n in here if n.id not in self.member])
            for group in range(len(self.groups)):
                inside = [n for n in here if n.id in self.member
                          and self.member[n.id].group == group]  # fmt: skip
                if inside:
                    rows += self._write_region(group, inside, readers)
        return rows

    def _drop_torn(self, group: list[Twins]) -> list[Twins]:
        """The lines of a region that one function can compute for every instance."""
        group = [t for t in group if self._are_alike(t)]
        while True:
            own = {n.id: t for t in group for n in t}
            # equal numbers may make one line of two roles; such a line belongs to no instance
            torn = {
                own[n.id] for t in group for read in self._find_operands(t)
                for n in read if own.get(n.id, read) != read
            }  # fmt: skip
            if not torn:
                return group
            group = [t for t in group if t not in torn]

    def _are_alike(self, line: Twins) -> bool:
        """Whether twins fuse the same product, and no operand of one stands for two of another."""
        for args in align_operands(line, self.outline.code):
            if len({a.id in self.fused for a in args}) > 1:
                return False
        reads = self._find_operands(line)
        return len({r[0].id for r in reads}) == len(set(reads))

    # which lines run together

    def _assign_steps(self) -> None:
        """Give every line its step; parts of regions too short to be called are let go."""
        while True:
            self.member = {
                n.id: _Member(g, p, i)
                for g, group in enumerate(self.groups)
                for p, line in enumerate(group)
                for i, n in enumerate(line)
            }
            if not self.member or not self._find_steps():
                self.member, self.step = {}, {}
                return
            worth = []
            for group in self.groups:
                sizes = Counter(self.step[t[0].id] for t in group)
                worth.append([t for t in group if sizes[self.step[t[0].id]] >= self.outline.short])
            if worth == self.groups:
                return
            self.groups = worth

    def _find_steps(self) -> bool:
        """Steps such that straight lines of a step come before its calls; whether there are any."""
        step = {n.id: 0 for n in self.nodes}
        for _ in range(60):
            changed = False
            for node in self.nodes:
                reads = find_operands(node, self.fused)
                now = max([step[node.id], *(self._find_first_step(node, r, step) for r in reads)])
                at = self.member.get(node.id)
                line = self.groups[at.group][at.position] if at is not None else (node,)
                for twin in line:
                    if step[twin.id] < now:
                        step[twin.id] = now
                        changed = True
            if not changed:
                self.step = step
                return True
        return False

    def _find_first_step(self, node: Node, read: Node, step: Mapping[int, int]) -> int:
        """The first step in which a line can read another."""
        if read.id not in step:
            return 0
        source, target = self.member.get(read.id), self.member.get(node.id)
        if source is None:
            return step[read.id]
        together = target is not None and (source.group, source.instance) == (
            target.group, target.instance,
        )  # fmt: skip
        return step[read.id] + (not together)

    # regions

    def _write_region(
        self, group: int, nodes: Sequence[Node], readers: Mapping[int, list[Node]]
    ) -> list[Row]:
        """A function for what an instance computes in this step, and the loop that calls it."""
        here = {n.id for n in nodes}
        lines = [
            self.groups[group][self.member[n.id].position]
            for n in nodes
            if self.member[n.id].instance == 0
        ]
        gives = [
            t for t in lines
            if any(n.id in self.kept or any(r.id not in here for r in readers.get(n.id, ()))
                   for n in t)
        ]  # fmt: skip
        number = next(self.outline.numbers)
        body = self.printer.start_function()
        call = RegionCall(self.printer, number, len(lines[0]))
        own = set(lines)
        rows: list[Row] = []
        for line in lines:
            for read in self._find_operands(line):
                said = read_name(f"x{read[0].id}") if read in own else call.write_argument(read)
                body.name({read[0].id: said})
            rows.append(body.write_line(line[0], {}, self.fused))
            body.name({line[0].id: read_name(f"x{line[0].id}")})
        rows += [f"r[{i}] = {cast_mask(t[0])}x{t[0].id};" for i, t in enumerate(gives)]
        head = ", ".join([*call.write_parameters(), "V* __restrict r"])
        text = write_function(f"INGOT_CALL void region_{number}({head})", rows)
        self.printer.tables.append(Definition(text, (f"region_{number}",), body.reads))
        size = len(gives)
        for i, line in enumerate(gives):
            for k, node in enumerate(line):
                self.printer.name({node.id: read_entry(node, f"r{number}", k * size + i)})
        return call.write_calls(size)

    def _find_operands(self, line: Twins) -> list[Twins]:
        """What twins read, through products that are fused with them."""
        found: list[Twins] = []
        for args in align_operands(line, self.outline.code):
            fused = args[0].id in self.fused
            found += align_operands(args, self.outline.code) if fused else [args]
        return found
