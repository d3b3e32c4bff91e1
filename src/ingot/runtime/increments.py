"""Times of a host's steps, cut where a step fails and grown again where it does not."""

import itertools
from collections.abc import Iterator, Sequence

from ingot.errors import IngotError, Problem
from ingot.keywords import check_keywords

__all__ = ["Increments"]


@check_keywords
class Increments:
    """Pairs of times, the last and the next; `cut` in the body of the loop repeats a step halved.

    times: those to be reached exactly, in ascending order; smallest: a step below which to give up.
    """

    def __init__(self, times: Sequence[float], *, smallest: float = 0.0) -> None:
        try:
            self._times = [float(t) for t in times]
            self._smallest = float(smallest)
        except (TypeError, ValueError):
            told = "the times of increments, and the smallest step, should be numbers"
            fix = "give such as Increments([0.0, 0.5, 1.0], smallest=1e-3)"
            raise IngotError([Problem("wrong-value", told, None, fix)]) from None
        self._is_cut = False
        self.cuts = 0
        if any(not a < b for a, b in itertools.pairwise(self._times)):
            told = "the times of increments do not ascend"
            raise IngotError([Problem("wrong-value", told, None, "sort them, each once")])

    def cut(self) -> None:
        """The step that is being taken failed: take it again, half as long."""
        self._is_cut = True

    def __iter__(self) -> Iterator[tuple[float, float]]:
        for begin, end in itertools.pairwise(self._times):
            now, length = begin, end - begin
            while now < end:
                # a remainder of rounding would be a step of its own
                new = end if now + length * (1 + 1e-9) >= end else now + length
                self._is_cut = False
                yield now, new
                if not self._is_cut:
                    now, length = new, 2 * length
                    continue
                self.cuts += 1
                length = (new - now) / 2
                if length <= self._smallest or now + length == now:
                    raise IngotError([_explain_end(now, length)])


def _explain_end(time: float, length: float) -> Problem:
    told = f"the step from {time:g} failed, and {length:.1e} is as short as it may be"
    fix = "look at what fails there, the load or the material; or allow a smaller step"
    return Problem("step-too-small", told, None, fix)
