"""Elimination by regions: the order is found for one instance, and all instances follow it.

What a region hides is eliminated first, instance beside instance, then the border that they share:
the time to find an order follows the number of distinct blocks.
"""

import heapq
import math
from collections.abc import Mapping, Sequence

from ingot.program.eliminate import TIES, Eliminated, System, Ties, extended_form
from ingot.program.graph import Node, ordered
from ingot.program.probe import Probes
from ingot.program.program import Solve, dependent, operations
from ingot.program.regions import MANY, Region, Twins

__all__ = ["condensed", "predicted", "replayed", "safer"]

Pivot = tuple[int, int]
WORTH = 4
"""How many times shorter than the Jacobian's elimination the update must be."""


def condensed(
    solve: Solve,
    sides: Sequence[Node],
    probes: Probes,
    parts: Sequence[Region],
    worth: int = WORTH,
) -> tuple[Eliminated, Mapping[str, int]] | None:
    """The update with regions eliminated first, and its cost; None where that is not worth it."""
    best = _best(solve, sides, probes, [p for p in parts if len(p.instances) >= MANY])
    if best is None:
        return None
    least = predicted(solve, best.operations * worth)
    if best.operations * worth > least:
        return None
    return best, {"condensed": best.operations, "jacobian at least": least}


def safer(
    solve: Solve, sides: Sequence[Node], probes: Probes, parts: Sequence[Region], than: Eliminated
) -> Eliminated | None:
    """The update with regions eliminated first, where another form was chosen for its safety.

    It must be as safe as that one and, as any extended form, a third shorter.
    """
    best = _best(solve, sides, probes, parts) if than.form != "extended" else None
    if best is None or best.risk > than.risk or best.operations > than.operations * 2 / 3:
        return None
    return best


def _best(
    solve: Solve, sides: Sequence[Node], probes: Probes, parts: Sequence[Region]
) -> Eliminated | None:
    """The safest order, and of equally safe ones the shortest; None if there is none."""
    if not parts:
        return None
    try:
        tried = [_condensed(solve, sides, probes, parts, ties) for ties in TIES]
    except ZeroDivisionError:
        return None
    return min(tried, key=lambda e: (e.risk, e.operations))


def replayed(solve: Solve, sides: Sequence[Node], probes: Probes, update: Eliminated) -> Eliminated:
    """The same elimination with other right-hand sides."""
    rows, right, _ = extended_form(solve, sides)
    graph = solve.rows[0].graph
    system = System(graph, rows, right, probes, size=len(rows), watch=False, ties=update.ties)
    for i, j in update.pivots:
        system._eliminate(i, j, watch=False)
    return _result(solve, system, update.risk)


def predicted(solve: Solve, enough: float = math.inf) -> int:
    """How many products an elimination of the Jacobian takes, from its pattern alone.

    Counting stops once there are enough.
    """
    reach: dict[int, set[int]] = {c.id: {j} for j, c in enumerate(solve.columns)}
    for node in ordered(solve.rows):
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


def _condensed(
    solve: Solve, sides: Sequence[Node], probes: Probes, parts: Sequence[Region], ties: Ties
) -> Eliminated:
    rows, right, _ = extended_form(solve, sides)
    graph = solve.rows[0].graph
    system = System(graph, rows, right, probes, size=len(rows), watch=False, ties=ties)
    place = _Places(solve)
    system.first(place.collectors(parts))
    for part in parts:
        _hide(system, place, part)
    system.run(math.inf)
    return _result(solve, system, system.risk)


def _result(solve: Solve, system: System, risk: int) -> Eliminated:
    update = system.solution()[: len(solve.columns)]
    cost = operations(update, ordered(solve.rows))
    return Eliminated(
        "extended", system.ties, tuple(update), None, cost, risk, tuple(system.pivots)
    )


class _Places:
    """Where the lines of a solve stand in its extended system."""

    def __init__(self, solve: Solve) -> None:
        self.inside = dependent(solve.rows, solve.columns)
        columns = {c.id for c in solve.columns}
        self.lines = [n for n in ordered(solve.rows) if n.id in self.inside and n.id not in columns]
        self.row = {n.id: i for i, n in enumerate(self.lines)}
        self.column = {c.id: j for j, c in enumerate((*solve.columns, *self.lines))}
        self.residual = {n.id: len(self.lines) + i for i, n in enumerate(solve.rows)}

    def collectors(self, parts: Sequence[Region]) -> list[Pivot]:
        """Sums that only pass on what instances give: with them gone, instances look alike."""
        given = {n.id for p in parts for t in (*p.lines, *p.columns) for n in t}
        reads: dict[int, int] = {}
        for node in self.lines:
            for arg in node.args:
                reads[arg.id] = reads.get(arg.id, 0) + 1
        found: list[Pivot] = []
        feeds = set(given)
        for node in self.lines:
            if node.op not in ("add", "sub") or node.id in given or node.id in self.residual:
                continue
            if any(a.id in feeds for a in node.args):
                feeds.add(node.id)
                if reads.get(node.id) == 1:
                    found.append((self.row[node.id], self.column[node.id]))
        return found


def _hide(system: System, place: _Places, part: Region) -> None:
    """Eliminate a region's lines and unknowns for all instances at once."""
    lines = [t for t in part.lines if t[0].id in place.inside]
    columns = _indices([*part.columns, *lines], place.column)
    rows = _indices(lines, place.row) | _indices(part.rows, place.residual)
    heap = [system._rank(i, j) for i in rows for j in system.rows[i] if j in columns]
    heapq.heapify(heap)
    while heap:
        rank = heapq.heappop(heap)
        i, j = rank[3] * system.ties[0], rank[4] * system.ties[1]
        if i not in system.left or j not in system.rows[i]:
            continue
        pivots = list(zip(rows[i], columns[j], strict=True))
        if any(p not in system.left or q not in system.rows[p] for p, q in pivots):
            continue
        now = system._rank(i, j)
        vanishing = sum(system._vanishes(*p) for p in pivots)
        now = (vanishing > 0, *now[1:])
        if now > rank and heap and now > heap[0]:
            heapq.heappush(heap, now)
            continue
        system.risk += vanishing
        touched = [k for p in pivots for k in system._eliminate(*p, watch=False)]
        for k in dict.fromkeys(k for k in touched if k in rows):
            for c in system.rows[k]:
                if c in columns:
                    heapq.heappush(heap, system._rank(k, c))


def _indices(lines: Sequence[Twins], at: Mapping[int, int]) -> dict[int, list[int]]:
    """By the first instance's place, the places of all."""
    return {at[t[0].id]: [at[n.id] for n in t] for t in lines}
