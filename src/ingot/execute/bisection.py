"""Which part of its step each point takes next, where the whole step failed."""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ingot.execute.status import STATUS_ROWS, Status

__all__ = ["StepsInParts"]


class StepsInParts:
    """The steps of points that failed, each part halved until it converges; newton.h does the same.

    Iterating gives the parts to try. Their ends are counted in the shortest ones: after a part the
    next is as long as the largest power of two that divides where it begins, the other half of the
    shortest part that was halved.
    failed: the points; unknowns: of all, as far as parts have been kept.
    """

    def __init__(self, level: int, unknowns: Tensor, status: Status) -> None:
        self.failed = (~status.converged).nonzero()[:, 0]
        self.unknowns = unknowns.clone()
        self._whole = 1 << level
        self._begin = torch.zeros_like(self.failed)
        self._length = torch.full_like(self.failed, self._whole >> 1)
        self._status = status
        self._rows = {n: getattr(status, n).clone() for n in STATUS_ROWS}

    @property
    def done(self) -> Tensor:
        """The points among those that failed whose step is taken."""
        return self._begin == self._whole

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The points that go on, and where in the step their parts begin and end, from 0 to 1."""
        while len(index := (~self.done & (self._length > 0)).nonzero()[:, 0]):
            begin, length, dtype = self._begin[index], self._length[index], self.unknowns.dtype
            after = begin + length
            yield index, (begin / self._whole).to(dtype), (after / self._whole).to(dtype)

    def keep(self, index: Tensor, unknowns: Tensor, part: Status) -> Tensor:
        """What became of parts; returns the places of those that converged.

        Told is the part tried last, but for counts of updates, which are those of all.
        """
        points = self.failed[index]
        self.unknowns[:, points] = unknowns
        for name, row in self._rows.items():
            new = getattr(part, name)
            row[points] = row[points] + new if name in ("iterations", "pivoted") else new
        begin, length, converged = self._begin[index], self._length[index], part.converged
        after = begin + length
        self._begin[index] = torch.where(converged, after, begin)
        self._length[index] = torch.where(converged, after & -after, length >> 1)
        return converged.nonzero()[:, 0]

    def finish(self) -> tuple[Tensor, Status]:
        """The unknowns, NaN where a step could not be taken, and the status of all points."""
        self.unknowns[:, self.failed[~self.done]] = math.nan
        return self.unknowns, replace(self._status, **self._rows)
