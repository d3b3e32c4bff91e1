"""Linear solves written out at compile time: which entry is divided by, in what order.

The order comes from structure and from probe states: a pivot that vanishes at any of them comes
last. Every step becomes lines; nothing is decided at run time but whether to trust the result.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.program.differentiate import jacobian
from ingot.program.graph import Graph, Node, ordered
from ingot.program.ops import partials
from ingot.program.probe import Probes
from ingot.program.program import Solve, dependent, operations

__all__ = ["Eliminated", "Form", "choose", "eliminated"]

Form = Literal["jacobian", "accumulated", "extended"]
Ties = tuple[int, int]
TIES: tuple[Ties, ...] = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""Ways to settle ties between pivots; in the extended form they decide much of the cost."""
VANISHING = 1e-8
"""A pivot below this part of its column at a probe state is ranked last."""
SUSPECT = 1e-10
"""A pivot below this part of its column at run time is not trusted."""


@dataclass(frozen=True, slots=True)
class Eliminated:
    """The update of a solve as lines: its form, what it costs, and where it is not to be trusted.

    update: a node for every unknown; suspect: a condition, or None where no pivot can vanish;
    risk: how many pivots vanish at some probe state.
    """

    form: Form
    ties: Ties
    update: tuple[Node, ...]
    suspect: Node | None
    operations: int
    risk: int
    pivots: tuple[tuple[int, int], ...]


class TooLong(Exception):
    """The elimination makes more lines than it is worth."""


def eliminated(
    solve: Solve,
    sides: Sequence[Node],
    probes: Probes,
    form: Form,
    *,
    limit: float = math.inf,
    ties: Ties = (1, 1),
) -> Eliminated:
    """The solution of `J x = sides` in the given form, J the solve's Jacobian.

    `TooLong` is raised once more than `limit` lines have been written; `ties` says whether, of
    pivots that are as good, the first or the last row and column is taken.
    """
    graph = solve.rows[0].graph
    if form == "jacobian":
        rows = jacobian(solve.rows, solve.columns)
        table = [{j: a for (j, _), a in row.items()} for row in rows]
        size = len(solve.columns)
        system = System(graph, table, list(sides), probes, size=size, watch=True, ties=ties)
    else:
        table, right, first = extended_form(solve, sides)
        watch = form == "accumulated"
        size = len(table)
        system = System(graph, table, right, probes, size=size, watch=watch, ties=ties)
        if form == "accumulated":
            system.first(first)
    try:
        system.run(limit)
    except ZeroDivisionError:
        raise _singular(solve, system) from None
    update = system.solution()[: len(solve.columns)]
    cost = operations(update, ordered(solve.rows))
    pivots = tuple(system.pivots)
    return Eliminated(form, ties, tuple(update), system.suspect, cost, system.risk, pivots)


def _singular(solve: Solve, system: "System") -> IngotError:
    """What to tell of a system that no values make regular."""
    labels = [label for v in solve.unknowns for label in v.labels()]
    done = {j for _, j in system.pivots}
    left = ", ".join(f"'{name}'" for j, name in enumerate(labels) if j not in done)
    return IngotError([Problem(
        "singular-system",
        f"the equations of [{solve.name}] are singular whatever their values"
        + (f": none is left to decide {left}" if left else ""),
        None, "let every unknown appear in a residual of its own",
    )])  # fmt: skip


def extended_form(
    solve: Solve, sides: Sequence[Node]
) -> tuple[list[dict[int, Node]], list[Node], list[tuple[int, int]]]:
    """One row for every intermediate between unknowns and residuals, the residuals' rows last.

    Columns count the unknowns first, then the intermediates. Also the unit pivots of the latter.
    """
    graph = solve.rows[0].graph
    inside = dependent(solve.rows, solve.columns)
    column = {c.id: j for j, c in enumerate(solve.columns)}
    lines = [n for n in ordered(solve.rows) if n.id in inside and n.id not in column]
    for node in lines:
        column[node.id] = len(column)
    rows: list[dict[int, Node]] = []
    first: list[tuple[int, int]] = []
    for node in lines:
        row: dict[int, Node] = {}
        for arg, slope in partials(node):
            if arg.id in inside:
                j = column[arg.id]
                row[j] = graph.emit("sub", row.get(j, graph.zero), slope)
        row[column[node.id]] = graph.one
        first.append((len(rows), column[node.id]))
        rows.append({j: a for j, a in row.items() if not a.is_constant(0.0)})
    right = [graph.zero] * len(rows)
    for node, side in zip(solve.rows, sides, strict=True):
        rows.append({column[node.id]: graph.one} if node.id in column else {})
        right.append(side)
    return rows, right, first


class System:
    """A sparse system under elimination: entries as nodes, and as numbers at the probe states."""

    def __init__(
        self,
        graph: Graph,
        rows: list[dict[int, Node]],
        right: list[Node],
        probes: Probes,
        *,
        size: int,
        watch: bool,
        ties: Ties,
    ) -> None:
        self.graph = graph
        self.ties = ties
        self.risk = 0
        self.watch = watch
        self.rows = [dict(r) for r in rows]
        self.right = right
        self.probes = probes
        self.numbers: list[dict[int, np.ndarray]] = [
            {j: probes.numbers(a) for j, a in row.items()} for row in rows
        ]
        self.columns: list[set[int]] = [set() for _ in range(size)]
        for i, row in enumerate(rows):
            for j in row:
                self.columns[j].add(i)
        self.left = set(range(len(rows)))
        self.pivots: list[tuple[int, int]] = []
        self.inverse: list[Node] = []
        self.suspect: Node | None = None
        self._heap: list[tuple[bool, int, bool, int, int]] = []

    # choosing

    def _rank(self, i: int, j: int) -> tuple[bool, int, bool, int, int]:
        places = i * self.ties[0], j * self.ties[1]
        return (self._vanishes(i, j), self._fill(i, j), self.rows[i][j].op != "const", *places)

    def _fill(self, i: int, j: int) -> int:
        """How many entries a pivot may add at most."""
        return (len(self.rows[i]) - 1) * (len(self.columns[j]) - 1)

    def _vanishes(self, i: int, j: int) -> bool:
        others = [np.abs(self.numbers[k][j]) for k in self.columns[j] if k != i]
        own = np.abs(self.numbers[i][j])
        top = np.maximum.reduce([own, *others]) if others else own
        told = np.isfinite(top) & (top > 0)
        return bool(np.any(own[told] < VANISHING * top[told])) or not bool(told.any())

    def first(self, order: Sequence[tuple[int, int]]) -> None:
        """Eliminate these pivots, cheapest first; they are known to be safe."""
        fill = self._fill
        heap = [(fill(i, j), i, j) for i, j in order]
        heapq.heapify(heap)
        while heap:
            cost, i, j = heapq.heappop(heap)
            now = fill(i, j)
            if now > cost and heap and (now, i, j) > heap[0]:
                heapq.heappush(heap, (now, i, j))
            else:
                self._eliminate(i, j, watch=False)

    def run(self, limit: float) -> None:
        """Eliminate everything left, the best pivot first."""
        start = len(self.graph.nodes)
        self._heap = [self._rank(i, j) for i in self.left for j in self.rows[i]]
        heapq.heapify(self._heap)
        while self.left:
            if len(self.graph.nodes) - start > limit:
                raise TooLong
            i, j = self._next()
            touched = self._eliminate(i, j, watch=self.watch)
            for k in touched:
                for c in self.rows[k]:
                    heapq.heappush(self._heap, self._rank(k, c))

    def _next(self) -> tuple[int, int]:
        while self._heap:
            rank = heapq.heappop(self._heap)
            i, j = rank[3] * self.ties[0], rank[4] * self.ties[1]
            if i in self.left and j in self.rows[i]:
                now = self._rank(i, j)
                if now <= rank or not self._heap or now <= self._heap[0]:
                    self.risk += now[0]
                    return i, j
                heapq.heappush(self._heap, now)
        raise ZeroDivisionError("the system is singular whatever its values")

    # eliminating

    def _eliminate(self, i: int, j: int, *, watch: bool) -> list[int]:
        """Divide by entry (i, j) and remove its column from the rows left; those it changed."""
        g = self.graph
        pivot = self.rows[i].pop(j)
        value = self.numbers[i].pop(j)
        self.left.discard(i)
        for c in self.rows[i]:
            self.columns[c].discard(i)
        below = [k for k in sorted(self.columns[j]) if k in self.left]
        if watch:
            self._trust(pivot, [self.rows[k][j] for k in below])
        inverse = g.emit("div", 1.0, pivot)
        with np.errstate(all="ignore"):
            reciprocal = 1.0 / value
        for k in below:
            factor = g.emit("mul", self.rows[k].pop(j), inverse)
            with np.errstate(all="ignore"):
                number = self.numbers[k].pop(j) * reciprocal
                moved = {c: number * self.numbers[i][c] for c in self.rows[i]}
            for c, a in self.rows[i].items():
                self._subtract(k, c, g.emit("mul", factor, a), moved[c])
            self.right[k] = g.emit("sub", self.right[k], g.emit("mul", factor, self.right[i]))
        self.columns[j] = set()
        self.pivots.append((i, j))
        self.inverse.append(inverse)
        return below

    def _subtract(self, k: int, c: int, term: Node, number: np.ndarray) -> None:
        row, numbers = self.rows[k], self.numbers[k]
        if c in row:
            row[c] = self.graph.emit("sub", row[c], term)
            with np.errstate(all="ignore"):
                numbers[c] = numbers[c] - number
        else:
            row[c] = self.graph.emit("neg", term)
            numbers[c] = -number
        if row[c].is_constant(0.0):
            del row[c], numbers[c]
            self.columns[c].discard(k)
        else:
            self.columns[c].add(k)

    def _trust(self, pivot: Node, others: list[Node]) -> None:
        """Remember that the update is suspect where the pivot is small beside its column."""
        g = self.graph
        if not others or (pivot.op == "const" and all(o.op == "const" for o in others)):
            return
        column = g.add_up([g.emit("abs", o) for o in others])
        small = g.emit("lt", g.emit("abs", pivot), g.emit("mul", SUSPECT, column))
        self.suspect = small if self.suspect is None else g.emit("or", self.suspect, small)

    def solution(self) -> list[Node]:
        """The unknowns, by substitution in the reverse order."""
        g = self.graph
        found: dict[int, Node] = {}
        for (i, j), inverse in zip(reversed(self.pivots), reversed(self.inverse), strict=True):
            total = self.right[i]
            for c, a in self.rows[i].items():
                total = g.emit("sub", total, g.emit("mul", a, found[c]))
            found[j] = g.emit("mul", total, inverse)
        return [found[j] for j in range(len(found))]


def choose(
    solve: Solve, sides: Sequence[Node], probes: Probes
) -> tuple[Eliminated, Mapping[str, int]]:
    """The cheapest form that is worth its risk, and what each costs that was finished.

    With lines on axes, which remain loops, only the Jacobian's entries are free of them.
    """
    found = {"jacobian": eliminated(solve, sides, probes, "jacobian")}
    if not any(n.axes for n in ordered(solve.rows)):
        found["accumulated"] = eliminated(solve, sides, probes, "accumulated")
        limit = 1.5 * min(e.operations for e in found.values())
        with suppress(TooLong):
            tried = [
                eliminated(solve, sides, probes, "extended", limit=limit, ties=ties)
                for ties in TIES
            ]
            found["extended"] = min(tried, key=lambda e: (e.risk, e.operations))
    costs = {form: e.operations for form, e in found.items()}
    free = found.pop("extended", None)
    best = min(found.values(), key=lambda e: e.operations)
    worth = free is not None and free.operations <= best.operations * 2 / 3
    if free is not None and worth and free.risk <= best.risk:
        best = free
    return best, costs
