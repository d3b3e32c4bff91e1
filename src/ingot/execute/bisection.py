"""Which part of its step each point takes next, where the whole step failed."""

from dataclasses import replace

import torch
from torch import Tensor

from ingot.execute.status import Status

__all__ = ["Bisection", "Merged"]


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


class Merged:
    """The status of points whose step was tried in parts: of the part tried last, but for counts of
    updates, which are those of all.
    """

    def __init__(self, status: Status) -> None:
        names = ("reason", "iterations", "residual", "pivoted", "accepted")
        self._whole = status
        self._rows = {n: getattr(status, n).clone() for n in names}

    def add(self, points: Tensor, part: Status) -> None:
        """What became of parts of some points."""
        for name, row in self._rows.items():
            new = getattr(part, name)
            row[points] = row[points] + new if name in ("iterations", "pivoted") else new

    @property
    def status(self) -> Status:
        """All of it."""
        return replace(self._whole, **self._rows)
