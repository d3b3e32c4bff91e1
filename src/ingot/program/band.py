"""Systems on one long axis: each row reads its own entry of the unknowns and a few neighbours."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ingot.program.builder import Axis, Builder, Node, Space
from ingot.program.differentiate import Unstructured, jacobian
from ingot.program.implicit import Solve

__all__ = ["MIN_ENTRIES_TO_BAND", "MIN_ENTRIES_TO_BAND_SLOPES", "Band", "find_band", "prefer_band"]

MIN_ENTRIES_TO_BAND = 64
"""From how many entries of an axis on a band is solved by a loop along it: written out, it takes
ten times as long to compile, and by then it is no faster."""
MIN_ENTRIES_TO_BAND_SLOPES = 16
"""The same where derivatives are compiled beside values: of n entries by n they are as many lines,
for which g++ takes 24 s at 50."""


@dataclass(frozen=True, slots=True)
class Band:
    """The Jacobian of a solve whose unknowns all lie on one axis.

    entries: (row component, column component, shift) -> coefficient along the axis;
    reach: the largest shift.
    """

    axis: Axis
    components: int
    entries: dict[tuple[int, int, int], Node]
    reach: int

    @property
    def half(self) -> int:
        """How far from the diagonal an entry may lie, components interleaved."""
        return (self.reach + 1) * self.components - 1

    def copy(self, copy: Callable[[Node], Node]) -> "Band":
        """The same over copies of its lines."""
        return replace(self, entries={k: copy(n) for k, n in self.entries.items()})


def find_band(builder: Builder, solve: Solve) -> Band | None:
    """The band of a solve, or None where its unknowns are not all on one and the same axis."""
    axes = {c.axes for c in solve.columns}
    if len(axes) != 1 or len(next(iter(axes))) != 1:
        return None
    try:
        rows = jacobian(builder, solve.rows, solve.columns)
    except Unstructured:
        return None
    entries = {(i, j, s[0]): a for i, row in enumerate(rows) for (j, s), a in row.items()}
    reach = max((abs(k) for _, _, k in entries), default=0)
    return Band(next(iter(axes))[0], len(solve.columns), entries, reach)


def prefer_band(space: Space, solve: Solve, entries: int) -> bool:
    """Whether a solve is banded along an axis that has at least so many entries."""
    axes = {a for c in solve.columns for a in c.axes}
    if len(axes) != 1 or space.extent(*axes) < entries:
        return False
    return find_band(solve.builder(space.extents), solve) is not None
