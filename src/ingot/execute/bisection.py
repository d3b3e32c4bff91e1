"""Which part of its step each point takes next, where the whole step failed."""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ingot.execute.status import STATUS_ROWS, Status

__all__ = ["Bisection", "StepsInParts"]


class Bisection:
    """Parts of steps of a number of points, each halved until it converges; newton.h does the same.

    Ends of parts are counted in the shortest ones. After a part the next is as long as the largest
    power of two that divides where it begins: the other half of the shortest part that was halved.
    """

    def __init__(self, level: int, points: int, device: torch.device) -> None:
        self.whole = 1 << level
        self.begin = torch.zeros(points, dtype=torch.int64, device=device)
        self.length = torch.full_like(self.begin, self.whole >> 1)

    @property
    def done(self) -> Tensor:
        """The points whose step is taken."""
        return self.begin == self.whole

    def next(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """The points that go on, and where in the step their parts begin and end, from 0 to 1."""
        index = (~self.done & (self.length > 0)).nonzero()[:, 0]
        begin, length = self.begin[index], self.length[index]
        return index, (begin / self.whole).to(dtype), ((begin + length) / self.whole).to(dtype)

    def judge(self, index: Tensor, converged: Tensor) -> None:
        """Go on after the parts that converged, halve the others."""
        begin, length = self.begin[index], self.length[index]
        after = begin + length
        self.begin[index] = torch.where(converged, after, begin)
        self.length[index] = torch.where(converged, after & -after, length >> 1)


class StepsInParts:
    """The steps of points that failed, taken in parts; iterating gives the parts to try.

    failed: the points; unknowns: of all, as far as parts have been kept.
    """

    def __init__(self, level: int, unknowns: Tensor, status: Status) -> None:
        self.failed = (~status.converged).nonzero()[:, 0]
        self.unknowns = unknowns.clone()
        self._bisection = Bisection(level, len(self.failed), self.failed.device)
        self._status = status
        self._rows = {n: getattr(status, n).clone() for n in STATUS_ROWS}

    @property
    def done(self) -> Tensor:
        """The points among those that failed whose step is taken."""
        return self._bisection.done

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        while len((part := self._bisection.next(self.unknowns.dtype))[0]):
            yield part

    def keep(self, index: Tensor, unknowns: Tensor, part: Status) -> Tensor:
        """What became of parts; returns the places of those that converged.

        Told is the part tried last, but for counts of updates, which are those of all.
        """
        points = self.failed[index]
        self.unknowns[:, points] = unknowns
        for name, row in self._rows.items():
            new = getattr(part, name)
            row[points] = row[points] + new if name in ("iterations", "pivoted") else new
        self._bisection.judge(index, part.converged)
        return part.converged.nonzero()[:, 0]

    def finish(self) -> tuple[Tensor, Status]:
        """The unknowns, NaN where a step could not be taken, and the status of all points."""
        self.unknowns[:, self.failed[~self.done]] = math.nan
        return self.unknowns, replace(self._status, **self._rows)
