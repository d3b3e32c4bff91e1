"""Symbolic sparse LU: pivot order from Markowitz fill and numeric probe states.

A pivot that vanishes at any probe state comes last. Every step becomes lines; nothing is decided at
run time but whether to trust the result. Each attempt has a builder of its own, and losers leave
nothing behind.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.program.builder import Axis, Builder, Node, Slopes, Space, sort_lines
from ingot.program.differentiate import jacobian
from ingot.program.extended import Matrix, Pivot, build_extended, find_inside
from ingot.program.implicit import Solve
from ingot.program.operations import sum_over
from ingot.program.probe import Probes
from ingot.program.program import count_operations

__all__ = [
    "TIES",
    "Attempt",
    "Eliminated",
    "Form",
    "Pivot",
    "Ties",
    "eliminate",
    "solve_again",
]  # fmt: skip

Form = Literal["jacobian", "accumulated", "extended", "condensed"]
SAFE_FORMS: tuple[Form, ...] = ("jacobian", "accumulated")
Ties = tuple[int, int]
TIES: tuple[Ties, ...] = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""Ways to settle ties between pivots; in the extended form they decide much of the cost."""
VANISHING_PIVOT = 1e-8
"""A pivot below this part of its column at a probe state is ranked last: half the digits of
float64 would be lost in it."""
SUSPECT_PIVOT = 1e-10
"""A pivot below this part of its column at run time is not trusted; below the bound at compile
time, so that a state somewhat worse than all probed ones does not take the slow routine."""


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
        return self._evaluate(builder, *build_extended(builder, self.solve, self.inside))

    @cached_property
    def inside(self) -> list[Node]:
        """The intermediates, in order."""
        return find_inside(self.solve)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Those of an arrow, whose unknowns lie on some of them."""
        if not any(c.axes for c in self.solve.columns):
            return ()
        lines = (*self.solve.columns, *self.inside)
        return tuple(dict.fromkeys(a for n in lines for a in n.axes))

    def _evaluate(self, builder: Builder, rows: Matrix, unit_pivots: list[Pivot]) -> "Entries":
        probes = self.probes.fork()
        numbers = [{j: probes.numbers(a, self.axes) for j, a in row.items()} for row in rows]
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
    watch = form in SAFE_FORMS
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


class System:
    """A sparse system under elimination: entries as lines, and as numbers at the probe states.

    limit, max_risk: what it may take before it is given up; operations: those of the lines written
    so far. Once all is eliminated, the pivots' rows are those of U; `inverse` and `lower` hold the
    pivots' reciprocals and L.

    A row or a column on axes stands for one of every entry, and its pivots are as many: the matrix
    is an arrow. Pivots on most axes come first, all entries side by side; what they leave in the
    border is summed over the axes that it lacks, once, when it is read: the Schur complement.
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
        self.probes, self.axes = attempt.probes, attempt.axes
        own = [c.axes for c in attempt.solve.columns]
        inside = [] if form == "jacobian" else [n.axes for n in attempt.inside]
        self.row_axes, self.column_axes = [*inside, *own], [*own, *inside]
        self._unsummed: dict[Pivot, _Unsummed] = {}
        self.columns: list[set[int]] = [set() for _ in range(size)]
        for i, row in enumerate(self.rows):
            for j in row:
                self.columns[j].add(i)
        self.left = set(range(size))
        self.pivots: list[Pivot] = []
        self.inverse: list[Node] = []
        self.lower: list[dict[int, Node]] = []
        self._suspects: dict[tuple[Axis, ...], Node] = {}
        self.limit = self.max_risk = math.inf
        self.operations = self.risk = 0
        self._heap: list[tuple[bool, int, bool, int, int]] = []
        self._floors: dict[int, np.ndarray | None] = {}

    # choosing

    def may_divide(self, i: int, j: int) -> bool:
        """Whether a pivot leaves an arrow an arrow: it couples no entries of axes it lacks."""
        axes = set(self.row_axes[i])
        above = {self.column_axes[c] for c in self.rows[i]}
        below = {self.row_axes[k] for k in self.columns[j]}
        return axes == {*self.column_axes[j]} and not any(
            set(a) & set(b) - axes for a in above for b in below
        )

    def rank(self, i: int, j: int) -> tuple[bool, int, bool, int, int]:
        """How good a pivot is, the best first: safe, little fill, constant; then as ties say."""
        places = i * self.ties[0], j * self.ties[1]
        return (self.vanishes(i, j), self._fill(i, j), self.rows[i][j].op != "const", *places)

    def place(self, rank: tuple[bool, int, bool, int, int]) -> Pivot:
        """The pivot that has a rank."""
        return rank[3] * self.ties[0], rank[4] * self.ties[1]

    def _fill(self, i: int, j: int) -> int:
        """How many entries a pivot may add at most (Markowitz), those on axes counted in full."""
        if not self.axes:
            return (len(self.rows[i]) - 1) * (len(self.columns[j]) - 1)
        above = Counter(self.column_axes[c] for c in self.rows[i] if c != j)
        below = Counter(self.row_axes[k] for k in self.columns[j] if k != i)
        own = self.row_axes[i]
        return sum(
            n * m * self.builder.size({*own, *a, *b})
            for a, n in above.items() for b, m in below.items()
        )  # fmt: skip

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
            elif (most is None or now <= most) and (not self.axes or self.may_divide(i, j)):
                self.eliminate(i, j, watch=False)

    def run(self) -> None:
        """Eliminate everything left, the best pivot first, those on most axes before others."""
        for count in sorted({len(axes) for axes in self.row_axes}, reverse=True):
            rows = {i for i in self.left if len(self.row_axes[i]) == count}
            self._heap = []
            self._offer(rows, rows)
            while rows:
                i, j = self._next()
                rows.discard(i)
                self._offer(self.eliminate(i, j, watch=self.watch), rows)

    def _offer(self, changed: Iterable[int], rows: set[int]) -> None:
        """Rank the entries of changed rows as pivots."""
        for k in changed:
            if k in rows:
                for c in self.rows[k]:
                    if len(self.row_axes[k]) == len(self.column_axes[c]):
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
        self.left.discard(i)
        self.columns[j].discard(i)
        below = sorted(self.columns[j])
        if self._unsummed:
            self._sum_up([*((i, c) for c in self.rows[i]), *((k, j) for k in below)])
        pivot, value = self.rows[i].pop(j), self.numbers[i].pop(j)
        row, axes = self.rows[i], self.row_axes[i]
        numbers = np.array([*self.numbers[i].values()]).reshape(len(row), value.size)
        for c in (j, *row):
            self.columns[c].discard(i)
            self._floors.pop(c, None)
        if watch:
            self._trust(pivot, [self.rows[k][j] for k in below], axes)
        one = self.builder.one
        inverse = self._write("div", one, pivot) if pivot is not one else one
        lower: dict[int, Node] = {}
        with np.errstate(all="ignore"):
            reciprocal = 1.0 / value
            for k in below:
                entry = self.rows[k].pop(j)
                factor = self._write("mul", entry, inverse) if inverse is not one else entry
                lower[k] = factor
                moved = self.numbers[k].pop(j) * reciprocal * numbers
                for (c, a), number in zip(row.items(), moved, strict=True):
                    self._subtract(k, c, self._write("mul", factor, a), number, axes)
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
        if self.builder.count > before and line.op != "const":
            self.operations += self.builder.size(line.axes) if line.axes else 1
        return line

    def _subtract(
        self, k: int, c: int, term: Node, number: np.ndarray, axes: tuple[Axis, ...]
    ) -> None:
        row, numbers = self.rows[k], self.numbers[k]
        over = [a for a in axes if a not in self.row_axes[k] and a not in self.column_axes[c]]
        if over:
            self._unsummed.setdefault((k, c), _Unsummed(self.slopes)).add(term, tuple(over))
            row.setdefault(c, self.builder.zero)
            numbers[c] = numbers.get(c, 0.0) - self.probes.add_up(number, over, self.axes)
            self.columns[c].add(k)
            return
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

    def _sum_up(self, entries: Sequence[Pivot]) -> None:
        """Subtract from entries of a border what pivots on its axes left to be summed."""
        for k, c in entries:
            terms = self._unsummed.pop((k, c), None)
            if terms is not None:
                self.rows[k][c] = self._write("sub", self.rows[k][c], terms.total())

    @property
    def suspect(self) -> Node | None:
        """Where some pivot was small beside its column, or None where none can be."""
        b = self.builder
        told: Node | None = None
        for axes, small in self._suspects.items():
            for axis in axes:
                count = sum_over(b, b.emit("where", small, 1.0, 0.0), axis)
                small = b.emit("lt", 0.0, count)
            told = small if told is None else b.emit("or", told, small)
        return told

    def _trust(self, pivot: Node, others: list[Node], axes: tuple[Axis, ...]) -> None:
        """Remember that the update is suspect where the pivot is small beside its column."""
        b = self.builder
        if not others or (pivot.op == "const" and all(o.op == "const" for o in others)):
            return
        column = b.add_up([b.emit("abs", o) for o in others])
        small = b.emit("lt", b.emit("abs", pivot), b.emit("mul", SUSPECT_PIVOT, column))
        held = self._suspects.get(axes)
        self._suspects[axes] = small if held is None else b.emit("or", held, small)

    def solve(self, sides: Sequence[Node]) -> tuple[Node, ...]:
        """The solve's own unknowns for right-hand sides of its residuals, by substitution."""
        d, zero = self.slopes, self.builder.zero
        # intermediates come first among rows and last among columns
        right = _Sides(self, [*[zero] * self.extra, *sides], self.row_axes)
        read = set(range(self.width))
        for (i, j), lower in zip(self.pivots, self.lower, strict=True):
            if j in read:
                read.update(self.rows[i])
            for k, factor in lower.items() if right[i] is not zero else ():
                right.subtract(k, d.emit("mul", factor, right[i]), self.row_axes[i])
        found: dict[int, Node] = {}
        for (i, j), inverse in zip(reversed(self.pivots), reversed(self.inverse), strict=True):
            if j not in read:
                continue
            for c, a in self.rows[i].items():
                right.subtract(i, d.emit("mul", a, found[c]), self.column_axes[c])
            found[j] = d.emit("mul", right[i], inverse)
        return tuple(found[k] for k in range(self.width))

    def solve_transposed(self, sides: Sequence[Node]) -> tuple[Node, ...]:
        """The adjoints of the residuals for those of the unknowns, by the same factors."""
        d = self.slopes
        right = _Sides(self, [*sides, *[self.builder.zero] * self.extra], self.column_axes)
        found = _Sides(self, [self.builder.zero] * len(self.rows), self.row_axes)
        for (i, j), inverse in zip(self.pivots, self.inverse, strict=True):
            found.sides[i] = d.emit("mul", right[j], inverse)
            for c, a in self.rows[i].items():
                right.subtract(c, d.emit("mul", a, found[i]), self.row_axes[i])
        for (i, _), lower in zip(reversed(self.pivots), reversed(self.lower), strict=True):
            for k, factor in lower.items():
                found.subtract(i, d.emit("mul", factor, found[k]), self.row_axes[k])
        return tuple(found[self.extra + k] for k in range(self.width))


class _Sides:
    """Right-hand sides of a system, by row or by column, from which products are subtracted.

    axes: those of every side; products on an axis that a side lacks are summed over it when the
    side is read, all at once.
    """

    def __init__(self, system: System, sides: list[Node], axes: Sequence[tuple[Axis, ...]]) -> None:
        self.slopes = system.builder.slopes
        self.sides, self.axes = sides, axes
        self.unsummed: dict[int, _Unsummed] = {}

    def __getitem__(self, k: int) -> Node:
        if k in self.unsummed:
            total = self.unsummed.pop(k).total()
            self.sides[k] = self.slopes.emit("sub", self.sides[k], total)
        return self.sides[k]

    def subtract(self, k: int, term: Node, axes: tuple[Axis, ...]) -> None:
        """Subtract a product of what is on these axes."""
        over = tuple(a for a in axes if a not in self.axes[k])
        if not over:
            self.sides[k] = self.slopes.emit("sub", self.sides[k], term)
        elif not term.is_constant(0.0):
            self.unsummed.setdefault(k, _Unsummed(self.slopes)).add(term, over)


class _Unsummed:
    """Terms that are to be summed over axes, those over the same axes together."""

    def __init__(self, slopes: Slopes) -> None:
        self.slopes = slopes
        self.terms: dict[tuple[Axis, ...], Node] = {}

    def add(self, term: Node, over: tuple[Axis, ...]) -> None:
        """One more term."""
        held = self.terms.get(over)
        self.terms[over] = term if held is None else self.slopes.emit("add", held, term)

    def total(self) -> Node:
        """The sum, innermost axes first."""
        while any(self.terms):
            over = max(self.terms, key=len)
            inner = next(
                (a for a in over if all(a not in o for o in self.terms if len(o) < len(over))),
                over[-1],
            )
            term = sum_over(self.slopes.builder, self.terms.pop(over), inner)
            self.add(term, tuple(a for a in over if a != inner))
        return self.terms[()]
