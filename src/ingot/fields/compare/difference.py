"""Compared: how a file that a run wrote differs from its reference.

In: arrays of numbers and how far they may be apart. Out: findings, the worst first.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, isnan

import numpy as np
from numpy.typing import NDArray

__all__ = ["Compared", "Finding", "Limits", "differing", "joined", "names_differ", "words_differ"]

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers are equal if both are below `zero`, or apart by no more than one of the others."""

    relative: float = 5.5e-6
    zero: float = 1e-10
    absolute: float = 0.0

    def excess(self, found: Numbers, expected: Numbers) -> Numbers:
        """How many times too far apart numbers are: above 1 they differ. A lone nan differs."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            gap = np.abs(found - expected)
            size = np.maximum(np.abs(found), np.abs(expected))
            allowed = np.maximum(self.relative * size, self.absolute)
            ratio = np.where(gap == 0, 0.0, gap / allowed)
        same = (found == expected) | (size < self.zero) | (np.isnan(found) & np.isnan(expected))
        return np.where(same, 0.0, np.where(np.isnan(ratio), inf, ratio))

    def __str__(self) -> str:
        parts = [f"{self.relative:.2g} relative"] if self.relative else []
        parts += [f"{self.absolute:.2g}"] if self.absolute else []
        below = f", {self.zero:.2g} counts as zero" if self.zero else ""
        return f"allowed: {' or '.join(parts) or '0'}{below}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of a file that is not as expected; `size` says how many times too far it is off."""

    part: str
    why: str
    size: float = inf

    def __str__(self) -> str:
        return f"{self.part}: {self.why}"


@dataclass(frozen=True, slots=True)
class Compared:
    """How many parts of a file were compared, and those that differ, the worst first."""

    parts: int
    findings: tuple[Finding, ...] = ()


def joined(parts: int, findings: Iterable[Finding | None]) -> Compared:
    """All findings of a file in order."""
    found = (finding for finding in findings if finding is not None)
    return Compared(parts, tuple(sorted(found, key=lambda finding: -finding.size)))


def differing(
    part: str,
    found: Numbers,
    expected: Numbers,
    limits: Limits,
    place: Callable[[tuple[int, ...]], str],
) -> Finding | None:
    """What is wrong with an array of numbers: the worst of them, where it is, and both values."""
    if found.shape != expected.shape:
        return Finding(part, f"has shape {found.shape} instead of {expected.shape}")
    if not found.size:
        return None
    excess = limits.excess(found, expected)
    wrong = int((excess > 1).sum())
    if not wrong:
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    many = f"; {wrong} of {excess.size} differ" if excess.size > 1 else ""
    why = f"{place(at)} {told(float(found[at]), float(expected[at]), limits)}{many}"
    return Finding(part, why, float(excess[at]))


def told(found: float, expected: float, limits: Limits) -> str:
    """Both values, their difference, and what is allowed."""
    gap = abs(found - expected)
    size = max(abs(found), abs(expected))
    off = "" if isnan(gap) else f", off by {gap:.2g}"
    off += f" ({gap / size:.2g} relative)" if limits.relative and 0 < gap < inf else ""
    return f"is {found:.15g} instead of {expected:.15g}{off} ({limits})"


def words_differ(part: str, found: str, expected: str, limits: Limits) -> Finding | None:
    """What is wrong with a text: its numbers are compared as such, the rest letter by letter."""
    ours, theirs = found.split(), expected.split()
    if len(ours) != len(theirs):
        return Finding(part, f"is '{short(found)}' instead of '{short(expected)}'")
    worst: Finding | None = None
    for a, b in zip(ours, theirs, strict=True):
        x, y = number(a), number(b)
        if x is None or y is None:
            if a != b:
                return Finding(part, f"has '{short(a)}' instead of '{short(b)}'")
            continue
        finding = differing(part, np.array(x), np.array(y), limits, lambda at: "a number")
        if finding is not None and (worst is None or finding.size > worst.size):
            worst = finding
    return worst


def names_differ(kind: str, found: Iterable[str], expected: Iterable[str]) -> Iterable[Finding]:
    """A finding for each name that one side lacks."""
    ours, theirs = set(found), set(expected)
    for name in sorted(theirs - ours):
        yield Finding(f"{kind} '{name}'", "is missing")
    for name in sorted(ours - theirs):
        yield Finding(f"{kind} '{name}'", "is not in the reference")


def number(word: str) -> float | None:
    """A word as a number, if it is one."""
    try:
        return float(word)
    except ValueError:
        return None


def short(text: str) -> str:
    """A text that fits into a message."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
