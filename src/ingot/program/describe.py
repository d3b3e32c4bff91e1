"""A program after a pass of the pipeline, as people read it."""

from ingot.program.boundaries import find_points_apart, has_boundaries
from ingot.program.builder import sort_lines
from ingot.program.pipeline import Choices, clean, loops, walk_passes
from ingot.program.program import Program, count_operations
from ingot.program.regions import format_regions
from ingot.program.schedule import find_peak

__all__ = ["describe_pass"]


def describe_pass(program: Program, stage: str) -> str:
    """The program as traced (`program`), its repeated blocks (`regions`), or after a pass.

    One that is cut at lines that see all points is shown part by part.
    """
    if stage == "program":
        return str(program)
    if has_boundaries(program):
        parts = enumerate(find_points_apart(program))
        return "\n".join(f"# part {i}\n{describe_pass(part, stage)}" for i, part in parts)
    if stage == "regions":
        return format_regions(loops(clean(program, Choices()), Choices()))
    before = program
    for name, after in walk_passes(program):
        if name == stage:
            return "\n".join(_TEXTS.get(name, _describe_lines)(before, after))
        before = after
    raise KeyError(stage)


def _format_counts(before: Program, after: Program) -> str:
    return f"# {before.count()} operations before, {after.count()} after"


def _describe_lines(before: Program, after: Program) -> list[str]:
    """The lines themselves: what is shown of a pass that has no report of its own."""
    return [_format_counts(before, after), str(after)]


def _describe_loops(before: Program, after: Program) -> list[str]:
    kept = {a for n in after.lines for a in n.axes}
    told = ", ".join(sorted(map(str, kept))) or "none"
    return [f"{_format_counts(before, after)}; loops: {told}", str(after)]


def _describe_factor(before: Program, after: Program) -> list[str]:
    rows = [s.factored.describe(after, s) for s in after.solves if s.factored is not None]
    return rows or ["no solve"]


def _describe_hoist(before: Program, after: Program) -> list[str]:
    """How many operations run once a call, at every point, and in every iteration of a solve."""
    once = count_operations(after, after.hoisted)
    point = count_operations(after, after.roots, sort_lines(after.hoisted))
    counts = {"once a call": once, "at a point": point}
    for solve in after.solves:
        counts[f"in an iteration of {solve.name}"] = count_operations(after, solve.rows)
    return [f"{n:6d} operations {when}" for when, n in counts.items()]


def _describe_schedule(before: Program, after: Program) -> list[str]:
    rows = []
    for old, new in zip(before.solves, after.solves, strict=True):
        assert old.factored is not None and new.factored is not None
        as_made, as_run = (
            find_peak(sort_lines(roots), roots)
            for roots in (old.factored.roots(old), new.factored.roots(new))
        )
        rows.append(f"solve [{new.name}]: {as_made} values alive as made, {as_run} as scheduled")
    return rows or ["no solve"]


_TEXTS = {
    "loops": _describe_loops,
    "factor": _describe_factor,
    "hoist": _describe_hoist,
    "schedule": _describe_schedule,
}
