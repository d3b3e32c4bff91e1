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
from ingot.codegen.sums import SumLoops, find_waves
from ingot.codegen.values import Definition, cast_mask, find_operands, read_entry
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

__all__ = ["Outline", "OutlineWriter", "plan_outline"]

MIN_LINES_TO_OUTLINE = 24
"""Below so many lines a function is not worth its calls."""

MAX_ROUNDS = 60
"""In how many rounds all lines must have their steps; regions that wait for each other never do."""


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


class OutlineWriter:
    """Writes nodes in order, regions once; kept: those that are read after them."""

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
        # by line: its region and instance, its twins, and the step in which it runs
        self.member: dict[int, tuple[int, int]] = {}
        self.twins: dict[int, Twins] = {}
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
                inside = [n for n in here if self.member.get(n.id, ())[:1] == (group,)]
                if inside:
                    rows += self._write_region(inside, readers)
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
            self.twins = {n.id: line for group in self.groups for line in group for n in line}
            self.member = {
                n.id: (g, i)
                for g, group in enumerate(self.groups) for line in group
                for i, n in enumerate(line)
            }  # fmt: skip
            self.step = find_waves(
                self.nodes, self.fused, self.twins, self._count_steps, MAX_ROUNDS
            )
            if not self.member or not self.step:
                self.member = {}
                return
            worth = []
            for group in self.groups:
                sizes = Counter(self.step[t[0].id] for t in group)
                worth.append([t for t in group if sizes[self.step[t[0].id]] >= self.outline.short])
            if worth == self.groups:
                return
            self.groups = worth

    def _count_steps(self, node: Node, read: Node) -> int:
        """One, if a line reads what a call gives: straight lines of a step precede its calls."""
        return int(self.member.get(read.id) not in (None, self.member.get(node.id)))

    # regions

    def _write_region(self, nodes: Sequence[Node], readers: Mapping[int, list[Node]]) -> list[Row]:
        """A function for what an instance computes in this step, and the loop that calls it."""
        here = {n.id for n in nodes}
        lines = [self.twins[n.id] for n in nodes if self.member[n.id][1] == 0]
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
                if read not in own:
                    body.name({read[0].id: call.write_argument(read)})
            rows.append(body.write_line(line[0], {}, self.fused))
        rows += [f"r[{i}] = {cast_mask(t[0])}x{t[0].id};" for i, t in enumerate(gives)]
        size = len(gives)
        parameters, calls = call.write(size)
        head = ", ".join([*parameters, "V* __restrict r"])
        text = write_function(f"INGOT_CALL void region_{number}({head})", rows)
        function = Definition(text, (f"region_{number}",), body.reads)
        self.printer.tables += [function, *call.tables]
        for i, line in enumerate(gives):
            for k, node in enumerate(line):
                self.printer.name({node.id: read_entry(node, f"r{number}", k * size + i)})
        return calls

    def _find_operands(self, line: Twins) -> list[Twins]:
        """What twins read, through products that are fused with them."""
        found: list[Twins] = []
        for args in align_operands(line, self.outline.code):
            fused = args[0].id in self.fused
            found += align_operands(args, self.outline.code) if fused else [args]
        return found
