"""The compiler's passes, in order, each a function from one value to the next that can be printed.

clean - hoist - loops - factor - schedule; printing the source is the executor's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ingot.errors import IngotError, Problem
from ingot.program.band import Band, banded
from ingot.program.condense import condensed, replayed, safer
from ingot.program.differentiate import directional
from ingot.program.eliminate import Eliminated, choose, eliminated
from ingot.program.graph import Graph, Node, ordered
from ingot.program.probe import Probes
from ingot.program.program import Program, Solve, frontier, operations
from ingot.program.regions import Region, found, regions
from ingot.program.rewrite import renewed
from ingot.program.schedule import peak, scheduled
from ingot.program.unroll import LIMIT, short, unroll

__all__ = ["Factored", "Plan", "clean", "factor", "hoisted", "loops", "planned", "staged"]


def clean(program: Program) -> Program:
    """The program replayed: folded again, every line once, dead lines left behind."""
    return renewed(program, {}, Graph(program.graph.extents))


def hoisted(program: Program) -> Mapping[str, int]:
    """How many operations run once a point, and how many in every iteration of each solve."""
    counts = {"point": operations(program.roots)}
    for solve in program.solves():
        counts[f"iteration of {solve.name}"] = operations(
            solve.rows, frontier(solve.rows, solve.columns)
        )
    return counts


def loops(program: Program, limit: int = LIMIT) -> Program:
    """All axes written out where the program stays short; otherwise they remain, as loops."""
    return unroll(program) if short(program, limit) else program


@dataclass(frozen=True, slots=True)
class Factored:
    """A solve with its linear systems written out.

    newton: the update from the residuals; linear: the same matrix with other right-hand sides,
    where the program asks for them;
    slopes: the residuals' derivative along `directions`, for checks and for the pivoted routine;
    regions: the parts of it that are the same code.
    """

    solve: Solve
    outside: tuple[Node, ...]
    newton: Eliminated | Band
    sides: tuple[Node, ...]
    linear: Eliminated | Band | None
    directions: tuple[Node, ...]
    slopes: tuple[Node, ...]
    costs: Mapping[str, int]
    regions: tuple[Region, ...] = ()

    @property
    def size(self) -> int:
        """The number of unknowns, every entry of an axis counted."""
        graph = self.solve.rows[0].graph
        return sum(math.prod(graph.extent(a) for a in c.axes) for c in self.solve.columns)

    def __str__(self) -> str:
        known = operations(self.solve.rows, self.outside)
        title = f"solve [{self.solve.name}]: {self.size} unknowns, residual {known} operations"
        if isinstance(self.newton, Band):
            band = self.newton
            return (
                f"{title}\n  band along '{band.axis}', reach {band.reach}, {band.components} a cell"
            )
        costs = ", ".join(f"{form} {n}" for form, n in self.costs.items())
        form, count = self.newton.form, self.newton.operations
        return f"{title}\n  update in the {form} form, {count} operations ({costs})"


def factor(solve: Solve, *, linear: bool, like: "Factored | None" = None) -> Factored:
    """Choose the form of elimination by counted operations, and write it out.

    like: the same solve in another program, whose form is taken.
    """
    graph = solve.rows[0].graph
    sides = _placeholders(solve, "side")
    directions = _placeholders(solve, "direction")
    slopes = tuple(directional(solve.rows, solve.columns, directions))
    if any(c.axes for c in solve.columns):
        band = banded(solve)
        if band is None:
            raise IngotError([Problem(
                "program-too-long",
                f"[{solve.name}] has unknowns on an axis that are not coupled by neighbours alone,"
                f" and is too long to write out", None, "shorten the axis",
            )])  # fmt: skip
        outside = frontier(
            (*solve.rows, *band.entries.values(), *slopes), (*solve.columns, *directions)
        )
        return Factored(
            solve, outside, band, sides, band if linear else None, directions, slopes, {}
        )
    probes = Probes(solve)
    parts = regions(solve)
    negative = [graph.emit("neg", r) for r in solve.rows]
    if like is not None and isinstance(like.newton, Eliminated) and "condensed" not in like.costs:
        form, ties, costs = like.newton.form, like.newton.ties, like.costs
        newton = eliminated(solve, negative, probes, form, ties=ties)
    else:
        newton, costs = condensed(solve, negative, probes, parts) or choose(solve, negative, probes)
        by_parts = safer(solve, negative, probes, parts, newton)
        if by_parts is not None:
            newton, costs = by_parts, {**costs, "condensed": by_parts.operations}
    other = None
    if linear and "condensed" in costs:
        other = replayed(solve, sides, probes, newton)
    elif linear:
        other = eliminated(solve, sides, probes, newton.form, ties=newton.ties)
    roots = (*solve.rows, *newton.update, *_compared(newton.suspect), *slopes)
    outside = frontier(roots, (*solve.columns, *directions))
    return Factored(solve, outside, newton, sides, other, directions, slopes, costs, parts)


def _compared(suspect: Node | None) -> list[Node]:
    """The numbers that a condition compares; the condition itself is no number to pass around."""
    conditions = ordered([suspect]) if suspect is not None else []
    return [a for n in conditions if n.op in ("lt", "le", "gt", "ge", "eq") for a in n.args]


def _placeholders(solve: Solve, role: str) -> tuple[Node, ...]:
    graph = solve.rows[0].graph
    return tuple(
        graph.node("unknown", (), (solve.name, role, i), c.axes)
        for i, c in enumerate(solve.columns)
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """A program ready to be printed: its lines, and its solves written out."""

    program: Program
    solves: Mapping[int, Factored]

    def __str__(self) -> str:
        return "\n".join(str(f) for f in self.solves.values()) or "no solve"


def planned(program: Program, limit: int = LIMIT, like: Plan | None = None) -> Plan:
    """All passes; solves of the same name as in a plan before take the forms chosen there."""
    ready = loops(clean(program), limit)
    again = {id(n.attr.solve) for n in ready.lines() if n.op == "linear"}
    chosen = {f.solve.name: f for f in like.solves.values()} if like is not None else {}
    return Plan(ready, {
        id(s): factor(s, linear=id(s) in again, like=chosen.get(s.name)) for s in ready.solves()
    })  # fmt: skip


def staged(program: Program, stage: str) -> str:
    """A program after a pass, with the number of operations before and after."""
    cleaned = clean(program)
    if stage == "program":
        return str(program)
    if stage == "clean":
        return f"{_counted(program, cleaned)}\n{cleaned}"
    if stage == "hoist":
        return "\n".join(f"{n:6d} operations a {when}" for when, n in hoisted(cleaned).items())
    if stage == "regions":
        return found(loops(cleaned))
    plan = planned(program)
    if stage == "loops":
        kept = {a for n in plan.program.lines() for a in n.axes}
        told = ", ".join(sorted(map(str, kept))) or "none"
        return f"{_counted(cleaned, plan.program)}; loops: {told}\n{plan.program}"
    if stage == "factor":
        return str(plan)
    assert stage == "schedule", stage
    rows = []
    for f in plan.solves.values():
        entries = f.newton.entries.values() if isinstance(f.newton, Band) else f.newton.update
        roots = [*f.solve.rows, *entries]
        before = peak(ordered(roots), roots)
        after = peak(scheduled(roots), roots)
        rows.append(
            f"solve [{f.solve.name}]: {before} values alive as traced, {after} as scheduled"
        )
    return "\n".join(rows) or "no solve"


def _counted(before: Program, after: Program) -> str:
    return f"# {before.count()} operations before, {after.count()} after"
