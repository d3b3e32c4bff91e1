"""Symbolic sparse LU: pivot order from Markowitz fill and numeric probe states.

A pivot that vanishes at any probe state comes last. Every step becomes lines; nothing is decided at
run time but whether to trust the result. Each attempt has a builder of its own, and losers leave
nothing behind.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.program.builder import Builder, Node, Space, sort_lines
from ingot.program.differentiate import jacobian
from ingot.program.implicit import Solve
from ingot.program.operations import operation
from ingot.program.probe import Probes
from ingot.program.program import count_operations, find_dependent

__all__ = [
    "TIES",
    "Attempt",
    "Eliminated",
    "Form",
    "Pivot",
    "Ties",
    "choose_form",
    "eliminate",
    "solve_again",
    "tell_states",
]  # fmt: skip

Form = Literal["jacobian", "accumulated", "extended", "condensed"]
Pivot = tuple[int, int]
Ties = tuple[int, int]
TIES: tuple[Ties, ...] = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""Ways to settle ties between pivots; in the extended form they decide much of the cost."""
VANISHING_PIVOT = 1e-8
"""A pivot below this part of its column at a probe state is ranked last: half the digits of
float64 would be lost in it."""
SUSPECT_PIVOT = 1e-10
"""A pivot below this part of its column at run time is not trusted; below the bound at compile
time, so that a state somewhat worse than all probed ones does not take the slow routine."""
EXTENDED_WORTH = 2 / 3
"""The part of the best form's operations that the extended one may take to be chosen: it divides
by derivatives of intermediates, which loses digits on stiff states, and is checked at run time.
With the substitution to come it takes at least 1.07 times the operations of its factors (published
cases), so that factors longer than this are given up."""
BORDERS = (None, -1, 1)
"""How many entries net the elimination of an intermediate may add to go first in the extended form:
what stays, the border, is what many lines read and what reads many (a norm, a trace). None: no
intermediate goes first. Which is shortest differs (benchmarks.spine)."""


MIN_DENSE_UNKNOWNS = 32
"""From so many unknowns on a dense Jacobian is not eliminated where it need not be: 2/3 n^3 lines
are 20 000, which take tens of seconds to write and minutes to compile."""
DENSE_SHARE = 1 / 4
"""The part of a Jacobian's entries from which on it counts as dense: its factors fill up."""


@dataclass(frozen=True, slots=True)
class Eliminated:
    """The solution of a linear system as lines: its form, its cost, and where not to trust it.

    update: a line for every unknown; suspect: a condition, or None where no pivot can vanish;
    risk: how many pivots vanish at some probe state; factors: the system it was solved with, as
    long as other right-hand sides may be.
    """

    form: Form
    ties: Ties
    update: tuple[Node, ...]
    suspect: Node | None
    operations: int
    risk: int
    pivots: tuple[Pivot, ...]
    factors: "System | None"

    @property
    def builder(self) -> Builder:
        """Where its lines were made, and others may join them."""
        assert self.factors is not None, "no line joins a copy"
        return self.factors.builder

    @property
    def is_extended(self) -> bool:
        """Whether it divides by derivatives of intermediates, so that it must be checked."""
        return self.form in ("extended", "condensed")

    def copy(self, copy: Callable[[Node], Node]) -> "Eliminated":
        """The same over copies of its lines, to which no others join."""
        suspect = copy(self.suspect) if self.suspect is not None else None
        return replace(self, update=tuple(map(copy, self.update)), suspect=suspect, factors=None)


class NotWorth(Exception):
    """The elimination takes more operations, or more risk, than it may."""


Matrix = list[dict[int, Node]]
Numbers = list[dict[int, np.ndarray]]


@dataclass(frozen=True, slots=True)
class Entries:
    """A sparse system before it is eliminated: entries as lines, and as numbers at probe states.

    unit_pivots: those of intermediates in extended forms, which are safe.
    """

    builder: Builder
    rows: Matrix
    numbers: Numbers
    unit_pivots: list[Pivot]


@dataclass(frozen=True)
class Attempt:
    """What is eliminated: a solve's system at probe states, each time in a builder of its own."""

    space: Space
    solve: Solve
    probes: Probes

    def builder(self) -> Builder:
        """A builder that continues the residuals' lines."""
        given = (*self.solve.columns, *self.solve.given)
        return Builder(self.space.extents, sort_lines((*self.solve.rows, *given)))

    @cached_property
    def jacobian(self) -> "Entries":
        """The system of the residuals' Jacobian."""
        builder = self.builder()
        rows = jacobian(builder, self.solve.rows, self.solve.columns)
        return self._evaluate(builder, [{j: a for (j, _), a in row.items()} for row in rows], [])

    @cached_property
    def extended(self) -> "Entries":
        """The system of all intermediates."""
        builder = self.builder()
        return self._evaluate(builder, *build_extended(builder, self.solve))

    def _evaluate(self, builder: Builder, rows: Matrix, unit_pivots: list[Pivot]) -> "Entries":
        probes = self.probes.fork()
        numbers = [{j: probes.numbers(a) for j, a in row.items()} for row in rows]
        return Entries(builder, rows, numbers, unit_pivots)

    def count(self, update: Sequence[Node]) -> int:
        """The operations of an update beyond those of the residuals."""
        return count_operations(self.space, update, sort_lines(self.solve.rows))

    def finish(self, system: "System", form: Form) -> Eliminated:
        """Newton's update by a system that is eliminated."""
        update = system.solve([system.builder.emit("neg", r) for r in self.solve.rows])
        return Eliminated(
            form, system.ties, update, system.suspect, self.count(update), system.risk,
            tuple(system.pivots), system,
        )  # fmt: skip


def eliminate(
    attempt: Attempt, form: Form, *, limit: float = math.inf, max_risk: float = math.inf,
    ties: Ties = (1, 1), border: int | None = None, like: Eliminated | None = None,
) -> Eliminated:  # fmt: skip
    """Newton's update in the given form.

    `NotWorth` is raised once factors take more than `limit` operations, or more than `max_risk`
    pivots vanish at some probe state; `ties` says whether, of pivots that are as good, the first or
    the last row and column is taken; border: which intermediates of the extended form go first;
    like: an elimination of the same system, whose pivots are taken.
    """
    watch = form in ("jacobian", "accumulated")
    if like is not None:
        system = System(attempt, form, watch=watch, ties=like.ties)
        unit = set(system.unit_pivots) if form == "accumulated" else set()
        for pivot in like.pivots:
            system.eliminate(*pivot, watch=watch and pivot not in unit)
        system.risk = like.risk
        return attempt.finish(system, form)
    system = System(attempt, form, watch=watch, ties=ties)
    system.limit, system.max_risk = limit, max_risk
    if form == "accumulated":
        system.eliminate_first(system.unit_pivots)
    elif border is not None:
        system.eliminate_first(system.unit_pivots, border)
    try:
        system.run()
    except ZeroDivisionError:
        raise _singular(attempt.solve, system) from None
    return attempt.finish(system, form)


def solve_again(
    attempt: Attempt, before: Eliminated, sides: Sequence[Node], *, transposed: bool = False
) -> Eliminated:
    """The solution for other right-hand sides, or that of the transposed system: same factors."""
    system = before.factors
    assert system is not None, "copies of an elimination have no factors"
    update = system.solve_transposed(sides) if transposed else system.solve(sides)
    return replace(before, update=update, operations=attempt.count(update))


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


def build_extended(b: Builder, solve: Solve) -> tuple[Matrix, list[Pivot]]:
    """One row for every intermediate between unknowns and residuals, the residuals' rows last.

    Columns count the unknowns first, then the intermediates. Also the unit pivots of the latter.
    """
    inside = find_dependent(solve.rows, solve.columns)
    column = {c.id: j for j, c in enumerate(solve.columns)}
    lines = [n for n in sort_lines(solve.rows) if n.id in inside and n.id not in column]
    for node in lines:
        column[node.id] = len(column)
    rows: Matrix = []
    first: list[Pivot] = []
    for node in lines:
        ones = {a.id: {(column[a.id], ()): b.one} for a in node.args if a.id in inside}
        slopes = operation(node.op).push(b.slopes, node, ones, ())
        row = {j: b.slopes.emit("neg", slope) for (j, _), slope in slopes.items()}
        row[column[node.id]] = b.one
        first.append((len(rows), column[node.id]))
        rows.append(row)
    for node in solve.rows:
        rows.append({column[node.id]: b.one} if node.id in column else {})
    return rows, first


class System:
    """A sparse system under elimination: entries as lines, and as numbers at the probe states.

    limit, max_risk: what it may take before it is given up; operations: those of the lines written
    so far. Once all is eliminated, the pivots' rows are those of U; `inverse` and `lower` hold the
    pivots' reciprocals and L.
    """

    def __init__(self, attempt: Attempt, form: Form, *, watch: bool, ties: Ties) -> None:
        start = attempt.jacobian if form == "jacobian" else attempt.extended
        self.builder = start.builder.fork()
        self.slopes = self.builder.slopes
        self.unit_pivots = start.unit_pivots
        self.rows: Matrix = [dict(row) for row in start.rows]
        self.numbers: Numbers = [dict(row) for row in start.numbers]
        self.ties = ties
        self.watch = watch
        size = len(self.rows)
        self.width = len(attempt.solve.columns)
        self.extra = size - self.width
        self.columns: list[set[int]] = [set() for _ in range(size)]
        for i, row in enumerate(self.rows):
            for j in row:
                self.columns[j].add(i)
        self.left = set(range(size))
        self.pivots: list[Pivot] = []
        self.inverse: list[Node] = []
        self.lower: list[dict[int, Node]] = []
        self.suspect: Node | None = None
        self.limit = self.max_risk = math.inf
        self.operations = self.risk = 0
        self._heap: list[tuple[bool, int, bool, int, int]] = []
        self._floors: dict[int, np.ndarray | None] = {}

    # choosing

    def rank(self, i: int, j: int) -> tuple[bool, int, bool, int, int]:
        """How good a pivot is, the best first: safe, little fill, constant; then as ties say."""
        places = i * self.ties[0], j * self.ties[1]
        return (self.vanishes(i, j), self._fill(i, j), self.rows[i][j].op != "const", *places)

    def place(self, rank: tuple[bool, int, bool, int, int]) -> Pivot:
        """The pivot that has a rank."""
        return rank[3] * self.ties[0], rank[4] * self.ties[1]

    def _fill(self, i: int, j: int) -> int:
        """How many entries a pivot may add at most (Markowitz)."""
        return (len(self.rows[i]) - 1) * (len(self.columns[j]) - 1)

    def vanishes(self, i: int, j: int) -> bool:
        """Whether an entry is nothing beside its column at some probe state."""
        if j not in self._floors:
            self._floors[j] = self._floor(j)
        floor = self._floors[j]
        return floor is None or bool((np.abs(self.numbers[i][j]) < floor).any())

    def _floor(self, j: int) -> np.ndarray | None:
        """Below what an entry of a column vanishes, at each state that tells; None if none does."""
        top = np.abs([self.numbers[k][j] for k in self.columns[j]]).max(axis=0)
        tells = np.isfinite(top) & (top > 0)
        return np.where(tells, VANISHING_PIVOT * top, -np.inf) if tells.any() else None

    def eliminate_first(self, order: Sequence[Pivot], most: int | None = None) -> None:
        """Eliminate these pivots, least fill first; they are known to be safe.

        most: the entries that each may add beyond those it removes.
        """

        def fill(i: int, j: int) -> int:
            removed = len(self.rows[i]) + len(self.columns[j]) - 2 if most is not None else 0
            return self._fill(i, j) - removed

        heap = [(fill(i, j), i, j) for i, j in order]
        heapq.heapify(heap)
        while heap:
            cost, i, j = heapq.heappop(heap)
            now = fill(i, j)
            if now > cost and heap and (now, i, j) > heap[0]:
                heapq.heappush(heap, (now, i, j))
            elif most is None or now <= most:
                self.eliminate(i, j, watch=False)

    def run(self) -> None:
        """Eliminate everything left, the best pivot first."""
        self._heap = [self.rank(i, j) for i in self.left for j in self.rows[i]]
        heapq.heapify(self._heap)
        while self.left:
            i, j = self._next()
            touched = self.eliminate(i, j, watch=self.watch)
            for k in touched:
                for c in self.rows[k]:
                    heapq.heappush(self._heap, self.rank(k, c))

    def _next(self) -> Pivot:
        while self._heap:
            rank = heapq.heappop(self._heap)
            i, j = self.place(rank)
            if i in self.left and j in self.rows[i]:
                now = self.rank(i, j)
                if now <= rank or not self._heap or now <= self._heap[0]:
                    self.risk += now[0]
                    return i, j
                heapq.heappush(self._heap, now)
        raise ZeroDivisionError("the system is singular whatever its values")

    # eliminating

    def eliminate(self, i: int, j: int, *, watch: bool) -> list[int]:
        """Divide by entry (i, j) and remove its column from the rows left; those it changed."""
        pivot, value = self.rows[i].pop(j), self.numbers[i].pop(j)
        self.left.discard(i)
        self.columns[j].discard(i)
        below = sorted(self.columns[j])
        row = self.rows[i]
        numbers = np.array([*self.numbers[i].values()]).reshape(len(row), value.size)
        for c in (j, *row):
            self.columns[c].discard(i)
            self._floors.pop(c, None)
        if watch:
            self._trust(pivot, [self.rows[k][j] for k in below])
        inverse = self._write("div", self.builder.one, pivot)
        lower: dict[int, Node] = {}
        with np.errstate(all="ignore"):
            reciprocal = 1.0 / value
            for k in below:
                factor = lower[k] = self._write("mul", self.rows[k].pop(j), inverse)
                moved = self.numbers[k].pop(j) * reciprocal * numbers
                for (c, a), number in zip(row.items(), moved, strict=True):
                    self._subtract(k, c, self._write("mul", factor, a), number)
        self.columns[j] = set()
        self.pivots.append((i, j))
        self.inverse.append(inverse)
        self.lower.append(lower)
        if self.operations > self.limit or self.risk > self.max_risk:
            raise NotWorth
        return below

    def _write(self, op: str, *operands: Node) -> Node:
        """A line of the factors, counted if it is new; constants and negations are free."""
        before = self.builder.count
        line = self.slopes.emit(op, *operands)
        self.operations += self.builder.count > before and line.op != "const"
        return line

    def _subtract(self, k: int, c: int, term: Node, number: np.ndarray) -> None:
        row, numbers = self.rows[k], self.numbers[k]
        if c in row:
            row[c] = self._write("sub", row[c], term)
            numbers[c] = numbers[c] - number
        else:
            row[c] = self.slopes.emit("neg", term)
            numbers[c] = -number
        if row[c].is_constant(0.0):
            del row[c], numbers[c]
            self.columns[c].discard(k)
        else:
            self.columns[c].add(k)

    def _trust(self, pivot: Node, others: list[Node]) -> None:
        """Remember that the update is suspect where the pivot is small beside its column."""
        b = self.builder
        if not others or (pivot.op == "const" and all(o.op == "const" for o in others)):
            return
        column = b.add_up([b.emit("abs", o) for o in others])
        small = b.emit("lt", b.emit("abs", pivot), b.emit("mul", SUSPECT_PIVOT, column))
        self.suspect = small if self.suspect is None else b.emit("or", self.suspect, small)

    def solve(self, sides: Sequence[Node]) -> tuple[Node, ...]:
        """The solve's own unknowns for right-hand sides of its residuals, by substitution."""
        d, zero = self.slopes, self.builder.zero
        # intermediates come first among rows and last among columns
        right = [*[zero] * self.extra, *sides]
        read = set(range(self.width))
        for (i, j), lower in zip(self.pivots, self.lower, strict=True):
            if j in read:
                read.update(self.rows[i])
            for k, factor in lower.items() if right[i] is not zero else ():
                right[k] = d.emit("sub", right[k], d.emit("mul", factor, right[i]))
        found: dict[int, Node] = {}
        for (i, j), inverse in zip(reversed(self.pivots), reversed(self.inverse), strict=True):
            if j not in read:
                continue
            total = right[i]
            for c, a in self.rows[i].items():
                total = d.emit("sub", total, d.emit("mul", a, found[c]))
            found[j] = d.emit("mul", total, inverse)
        return tuple(found[k] for k in range(self.width))

    def solve_transposed(self, sides: Sequence[Node]) -> tuple[Node, ...]:
        """The adjoints of the residuals for those of the unknowns, by the same factors."""
        d = self.slopes
        right = [*sides, *[self.builder.zero] * self.extra]
        found: dict[int, Node] = {}
        for (i, j), inverse in zip(self.pivots, self.inverse, strict=True):
            found[i] = d.emit("mul", right[j], inverse)
            for c, a in self.rows[i].items():
                right[c] = d.emit("sub", right[c], d.emit("mul", a, found[i]))
        for (i, _), lower in zip(reversed(self.pivots), reversed(self.lower), strict=True):
            for k, factor in lower.items():
                found[i] = d.emit("sub", found[i], d.emit("mul", factor, found[k]))
        return tuple(found[self.extra + k] for k in range(self.width))


def tell_states(attempt: Attempt, safe: Eliminated) -> bool:
    """Whether most probe states are states of the model: there the safe update is a number.

    Where few are (a temperature or a porosity that must be positive), pivots that seem safe may
    lose their digits at states that were never seen, as a bordered form did for free sintering.
    """
    probes = attempt.probes.fork()
    finite = np.all([np.isfinite(probes.numbers(x)) for x in safe.update], axis=0)
    return bool(np.mean(finite) > 0.5)


def choose_form(attempt: Attempt) -> tuple[Eliminated, dict[str, int]]:
    """The cheapest form that is worth its risk, and what each costs that was finished.

    With lines on axes, which remain loops, and with solves inside the residuals, only the
    Jacobian's entries are plain lines.
    """
    if any(n.axes or operation(n.op).is_block for n in sort_lines(attempt.solve.rows)):
        best = eliminate(attempt, "jacobian")
        return best, {"jacobian": best.operations}
    if is_dense(attempt.solve):
        limit = EXTENDED_WORTH * 2 / 3 * len(attempt.solve.columns) ** 3
        free = _choose_extended(attempt, BORDERS[1:], limit, 0)
        if free is not None and tell_states(attempt, free):
            return free, {"extended": free.operations}
    best = eliminate(attempt, "jacobian")
    other = eliminate(attempt, "accumulated")
    costs = {"jacobian": best.operations, "accumulated": other.operations}
    best = min(best, other, key=lambda e: e.operations)
    borders = _find_borders(attempt, best)
    free = _choose_extended(attempt, borders, best.operations * EXTENDED_WORTH, best.risk)
    if free is None:
        return best, costs
    return free, {**costs, "extended": free.operations}


def is_dense(solve: Solve) -> bool:
    """Whether many unknowns meet in most residuals, as sizes of precipitates do in what is left of
    the solution: then the Jacobian's own elimination is known to be long without being written.
    """
    if len(solve.columns) < MIN_DENSE_UNKNOWNS:
        return False
    read = {c.id: 1 << j for j, c in enumerate(solve.columns)}
    for node in sort_lines(solve.rows):
        for arg in node.args:
            read[node.id] = read.get(node.id, 0) | read.get(arg.id, 0)
    entries = sum(read.get(row.id, 0).bit_count() for row in solve.rows)
    return entries > DENSE_SHARE * len(solve.columns) ** 2


def _choose_extended(
    attempt: Attempt, borders: Iterable[int | None], limit: float, max_risk: int
) -> Eliminated | None:
    """The extended form within some operations and risk, or None if none is.

    Of ways to settle ties the safest is taken, then the shortest; of borders the first that is
    worth it, for another may be somewhat shorter, but takes as long again to find.
    """
    for border in borders:
        best = _try_extended(attempt, border, TIES[0], limit, max_risk)
        if best is None:
            continue
        for ties in TIES[1:]:
            most = best.operations if best.risk == 0 else limit
            other = _try_extended(attempt, border, ties, most, best.risk)
            best = min(filter(None, (best, other)), key=lambda e: (e.risk, e.operations))
        return best
    return None


def _find_borders(attempt: Attempt, safe: Eliminated) -> Iterator[int | None]:
    yield BORDERS[0]
    if tell_states(attempt, safe):
        yield from BORDERS[1:]


def _try_extended(
    attempt: Attempt, border: int | None, ties: Ties, limit: float, max_risk: int
) -> Eliminated | None:
    """An extended form within these bounds, or None."""
    try:
        found = eliminate(
            attempt, "extended", limit=limit, max_risk=max_risk, ties=ties, border=border
        )
    except NotWorth:
        return None
    return found if found.operations <= limit else None
