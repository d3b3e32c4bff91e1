"""Static condensation: the pivot order of a region is found for one instance, and all follow it.

What a region hides is eliminated first, instance beside instance, then the Schur complement on the
border that they share: the time to find an order follows the number of distinct blocks.
"""

import heapq
import math
from collections.abc import Mapping, Sequence

from ingot.program.builder import sort_lines
from ingot.program.eliminate import TIES, Attempt, Eliminated, System, Ties
from ingot.program.extended import Pivot, find_inside
from ingot.program.forms import EXTENDED_WORTH
from ingot.program.implicit import Solve
from ingot.program.regions import MIN_INSTANCES_TO_CONDENSE, Region, Twins
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["condense", "condense_safely", "predict_operations"]

CONDENSED_WORTH = 4
"""How many times shorter than the Jacobian's elimination the update must be to be taken without
trying the other forms, whose search takes long where there are many instances."""


def condense(
    attempt: Attempt, parts: Sequence[Region], worth: int = CONDENSED_WORTH
) -> tuple[Eliminated, dict[str, int]] | None:
    """The update with regions eliminated first, and its cost; None where that is not worth it."""
    many = [p for p in parts if len(p.instances) >= MIN_INSTANCES_TO_CONDENSE]
    best = _condense_best(attempt, many)
    if best is None:
        return None
    least = predict_operations(attempt.solve, best.operations * worth)
    if best.operations * worth > least:
        return None
    return best, {"condensed": best.operations, "jacobian at least": least}


def condense_safely(
    attempt: Attempt, parts: Sequence[Region], than: Eliminated
) -> Eliminated | None:
    """The update with regions eliminated first, where another form was chosen for its safety.

    It must be as safe as that one and, as any extended form, a third shorter.
    """
    best = _condense_best(attempt, parts) if not than.is_extended else None
    if best is None or best.risk > than.risk:
        return None
    return best if best.operations <= than.operations * EXTENDED_WORTH else None


def _condense_best(attempt: Attempt, parts: Sequence[Region]) -> Eliminated | None:
    """The safest order, and of equally safe ones the shortest; None if there is none."""
    if not parts:
        return None
    try:
        tried = [_condense(attempt, parts, ties) for ties in TIES]
    except ZeroDivisionError:
        return None
    return min(tried, key=lambda e: (e.risk, e.operations))


def _condense(attempt: Attempt, parts: Sequence[Region], ties: Ties) -> Eliminated:
    system = System(attempt, "condensed", watch=False, ties=ties)
    place = _Places(attempt.solve)
    system.eliminate_first(place.find_collectors(parts))
    for part in parts:
        _hide(system, place, part)
    system.run()
    return attempt.finish(system, "condensed")


def predict_operations(solve: Solve, enough: float = math.inf) -> int:
    """How many products an elimination of the Jacobian takes, from its pattern alone.

    Counting stops once there are enough.
    """
    reach: dict[int, set[int]] = {c.id: {j} for j, c in enumerate(solve.columns)}
    for node in sort_lines(solve.rows):
        if node.id not in reach:
            reach[node.id] = set().union(*(reach[a.id] for a in node.args))
    rows = {i: set(reach[r.id]) for i, r in enumerate(solve.rows)}
    total = 0
    while total < enough and all(rows.values()) and rows:
        columns: dict[int, int] = {}
        for row in rows.values():
            for j in row:
                columns[j] = columns.get(j, 0) + 1
        fill, i, j = min(
            ((len(row) - 1) * (columns[j] - 1), i, j) for i, row in rows.items() for j in row
        )
        pivot = rows.pop(i) - {j}
        total += fill
        for row in rows.values():
            if j in row:
                row.discard(j)
                row |= pivot
    return total


class _Places:
    """Where the lines of a solve stand in its extended system."""

    def __init__(self, solve: Solve) -> None:
        self.lines = find_inside(solve)
        self.row = {n.id: i for i, n in enumerate(self.lines)}
        self.column = {c.id: j for j, c in enumerate((*solve.columns, *self.lines))}
        self.residual = {n.id: len(self.lines) + i for i, n in enumerate(solve.rows)}

    def find_collectors(self, parts: Sequence[Region]) -> list[Pivot]:
        """Sums that only pass on what instances give: with them gone, instances look alike."""
        given = {n.id for p in parts for t in (*p.lines, *p.columns) for n in t}
        reads: dict[int, int] = {}
        for node in self.lines:
            for arg in node.args:
                reads[arg.id] = reads.get(arg.id, 0) + 1
        found: list[Pivot] = []
        feeds = set(given)
        for node in self.lines:
            row = ELEMENTWISE.get(node.op)
            if row is None or row.fused is None or node.id in given or node.id in self.residual:
                continue
            if any(a.id in feeds for a in node.args):
                feeds.add(node.id)
                if reads.get(node.id) == 1:
                    found.append((self.row[node.id], self.column[node.id]))
        return found


def _hide(system: System, place: _Places, part: Region) -> None:
    """Eliminate a region's lines and unknowns for all instances at once."""
    lines = [t for t in part.lines if t[0].id in place.row]
    columns = _index_lines([*part.columns, *lines], place.column)
    rows = _index_lines(lines, place.row) | _index_lines(part.rows, place.residual)
    heap = [system.rank(i, j) for i in rows for j in system.rows[i] if j in columns]
    heapq.heapify(heap)
    while heap:
        rank = heapq.heappop(heap)
        i, j = system.place(rank)
        if i not in system.left or j not in system.rows[i]:
            continue
        pivots = list(zip(rows[i], columns[j], strict=True))
        if any(p not in system.left or q not in system.rows[p] for p, q in pivots):
            continue
        now = system.rank(i, j)
        vanishing = sum(system.vanishes(*p) for p in pivots)
        now = (vanishing > 0, *now[1:])
        if now > rank and heap and now > heap[0]:
            heapq.heappush(heap, now)
            continue
        system.risk += vanishing
        touched = [k for p in pivots for k in system.eliminate(*p, watch=False)]
        for k in dict.fromkeys(k for k in touched if k in rows):
            for c in system.rows[k]:
                if c in columns:
                    heapq.heappush(heap, system.rank(k, c))


def _index_lines(lines: Sequence[Twins], at: Mapping[int, int]) -> dict[int, list[int]]:
    """By the first instance's place, the places of all."""
    return {at[t[0].id]: [at[n.id] for n in t] for t in lines}
