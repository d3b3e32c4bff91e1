"""Spills on purpose: statements of which few values are in registers, others in slots of memory.

In: straight statements in phases. Out: the same, among which values are stored and reloaded; which
are is Belady's rule, those that are read the furthest ahead.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ingot.codegen.statements import Let, Row

__all__ = ["MAX_HELD", "MAX_HOISTED_TO_SPILL", "MIN_PEAK_TO_SPILL", "spill"]

MAX_HELD = 96
"""Values in registers at once while lines run: of the 127 that a thread of a GPU may have, unknowns
and residuals and what the compiler begins ahead take the rest. On an H200 a crystal takes 103 ms
with 95 and 121 ms with 110 (2^18 points, 99 steps)."""
MAX_HELD_BETWEEN = 65
"""The same between two phases, where residuals are judged: five arrays of unknowns are alive."""
MIN_PEAK_TO_SPILL = 127
"""Where no more than these are alive nothing is spilled on purpose: what the compiler spills of its
own accord costs less there (GTN, with 97, takes 11 ms, and 16 with one value spilled here)."""
MAX_HOISTED_TO_SPILL = 900
"""Values that depend on parameters alone lie in the 8 kB of a block's memory that slots leave
(lane_cuda.h)."""
_NEVER = 1 << 60


def spill(
    phases: Sequence[Sequence[Row]], kept: Sequence[Collection[str]], array: str
) -> tuple[list[list[Row]], int]:
    """The statements of phases with an array that values are spilled to, and how many slots it has.

    kept: the values that each phase must have at hand at its end; array: the name of the array.
    They are as they were, and need no slot, where few values are alive or they are not straight.
    """
    lines = [row for rows in phases for row in rows if isinstance(row, Let)]
    if len(lines) < sum(map(len, phases)):
        return [[*rows] for rows in phases], 0
    own = {row.name for row in lines if row.kind == "V"}
    places: dict[str, list[int]] = {name: [] for name in own}
    at = 0
    for rows, ends in zip(phases, kept, strict=True):
        for row in rows:
            for name in row.reads if isinstance(row, Let) else ():
                if name in own:
                    places[name].append(at)
            at += 1
        for name in own.intersection(ends):
            places[name].append(at)
        at += 1
    work = _Spilling(places, array)
    if work.find_peak(phases) <= MIN_PEAK_TO_SPILL:
        return [[*rows] for rows in phases], 0
    found = [work.write(rows, own.intersection(e)) for rows, e in zip(phases, kept, strict=True)]
    return [work.open_reloaded(rows) for rows in found], work.slots


class _Spilling:
    """Walks statements: which values are in registers, and in which slot the others lie.

    places: where each value is read, by the number of a statement; ends of phases have one too.
    """

    def __init__(self, places: Mapping[str, Sequence[int]], array: str) -> None:
        self.places, self.array = places, array
        self.at = 0
        self.held: set[str] = set()
        self.slot: dict[str, int] = {}
        self.free: list[int] = []
        self.slots = 0
        self.reloaded: set[str] = set()

    def find_peak(self, phases: Sequence[Sequence[Row]]) -> int:
        """The most values alive at once, phases one after another."""
        alive = most = at = 0
        ends: dict[int, int] = {}
        for rows in phases:
            for row in rows:
                places = self.places.get(row.name) if isinstance(row, Let) else None
                if places:
                    alive += 1
                    ends[places[-1]] = ends.get(places[-1], 0) + 1
                most = max(most, alive)
                alive -= ends.pop(at, 0)
                at += 1
            alive -= ends.pop(at, 0)
            at += 1
        return most

    def write(self, rows: Sequence[Row], kept: Collection[str]) -> list[Row]:
        """The statements of a phase; what it keeps is in registers at the end."""
        found: list[Row] = []
        for row in rows:
            assert isinstance(row, Let)
            read = [name for name in dict.fromkeys(row.reads) if name in self.places]
            found += self._reload(read)
            found.append(row)
            self.at += 1
            self._drop(read)
            if self.places.get(row.name):
                self.held.add(row.name)
            found += self._store(MAX_HELD)
        found += self._reload(sorted(kept))
        self.at += 1
        self._drop(sorted(kept))
        return [*found, *self._store(MAX_HELD_BETWEEN)]

    def open_reloaded(self, rows: Sequence[Row]) -> list[Row]:
        """Statements in which values that are reloaded are no constants."""
        return [
            replace(row, is_constant=False)
            if isinstance(row, Let) and row.name in self.reloaded else row
            for row in rows
        ]  # fmt: skip

    def _find_next(self, name: str, at: int) -> int:
        """The first place from one on at which a value is read."""
        places = self.places[name]
        k = bisect_left(places, at)
        return places[k] if k < len(places) else _NEVER

    def _reload(self, names: Sequence[str]) -> list[Row]:
        """Reload what is read next."""
        gone = [name for name in names if name not in self.held]
        self.held.update(gone)
        self.reloaded.update(gone)
        return [f"{name} = {self.array}[{self.slot[name]}];" for name in gone]

    def _drop(self, names: Sequence[str]) -> None:
        """Forget what is read no more."""
        for name in names:
            if self._find_next(name, self.at) == _NEVER:
                self.held.discard(name)
                if name in self.slot:
                    self.free.append(self.slot.pop(name))

    def _store(self, most: int) -> list[Row]:
        """Leave so many values in registers; one that was stored before lies there still."""
        rows: list[Row] = []
        while len(self.held) > most:
            name = max(self.held, key=lambda name: (self._find_next(name, self.at), name))
            self.held.discard(name)
            if name not in self.slot:
                if not self.free:
                    self.free.append(self.slots)
                    self.slots += 1
                self.slot[name] = self.free.pop()
                rows.append(f"{self.array}[{self.slot[name]}] = {name};")
        return rows
