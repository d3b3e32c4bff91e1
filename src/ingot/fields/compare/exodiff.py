"""compare_exodus: two Exodus files, variable by variable.

In: the paths of an Exodus file and its reference. Out: Compared.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingot.fields.compare.difference import (
    Compared,
    Finding,
    Limits,
    differing,
    joined,
    names_differ,
)
from ingot.fields.compare.exodus import read_exodus

__all__ = ["compare_exodus"]

Numbers = NDArray[np.float64]
Order = NDArray[np.int64]


def compare_exodus(found: Path, expected: Path, limits: Limits) -> Compared:
    """Compare times and all variables; nodes and elements are matched by where they are."""
    ours, theirs = read_exodus(found), read_exodus(expected)
    times = differing("the times", ours.times, theirs.times, limits, lambda at: f"step {at[0]}")
    if times is not None:
        return joined(1, [times])
    places: list[tuple[str, Order, Order, Numbers]] = []
    for kind, mine, other in (
        ("node", ours.nodes, theirs.nodes),
        ("element", ours.centres, theirs.centres),
    ):
        order = matched(mine, other)
        if order is None:
            why = f"are elsewhere, or {len(mine)} instead of {len(other)}"
            return joined(1, [Finding(f"the {kind}s", why)])
        places.append((kind, *order, other))
    findings: list[Finding | None] = []
    for (kind, first, second, where), mine, other in zip(
        places, (ours.nodal, ours.elemental), (theirs.nodal, theirs.elemental), strict=True
    ):
        findings += names_differ(f"{kind} variable", mine, other)
        for name in (name for name in other if name in mine):
            place = Place(theirs.times, where[second], kind)
            sides = mine[name][:, first], other[name][:, second]
            findings.append(differing(f"{kind} variable '{name}'", *sides, limits, place))
    findings += names_differ("global variable", ours.scalar, theirs.scalar)
    for name in (name for name in theirs.scalar if name in ours.scalar):
        place = Place(theirs.times)
        sides = ours.scalar[name], theirs.scalar[name]
        findings.append(differing(f"global variable '{name}'", *sides, limits, place))
    return joined(1 + len(theirs.nodal) + len(theirs.elemental) + len(theirs.scalar), findings)


@dataclass(frozen=True, slots=True)
class Place:
    """Says in words where an entry `[time, place]` of a variable is."""

    times: Numbers
    where: Numbers | None = None
    kind: str = ""

    def __call__(self, at: tuple[int, ...]) -> str:
        when = f"at time {self.times[at[0]]:.6g}"
        if self.where is None:
            return when
        spot = ", ".join(f"{x:.6g}" for x in self.where[at[1]])
        return f"{when}, {self.kind} at ({spot})"


def matched(ours: Numbers, theirs: Numbers) -> tuple[Order, Order] | None:
    """The order of each side in which both are at the same places, if there is one."""
    if ours.shape != theirs.shape:
        return None
    span = float(np.ptp(theirs, axis=0).max(initial=0.0)) or 1.0
    # Places are sorted on a raster that no regular grid falls between the cells of.
    sides = (np.lexsort(np.round(side / (span * 1e-7) + 0.1234).T) for side in (ours, theirs))
    first, second = sides
    apart = float(np.abs(ours[first] - theirs[second]).max(initial=0.0))
    return (first, second) if apart <= 1e-6 * span else None
