"""What the solves of a call reported, kept for each thread until its next call."""

import threading
from collections.abc import Sequence

from ingot.errors import warn_of
from ingot.execute.status import Status, failures

__all__ = ["LastStatus"]


class LastStatus(threading.local):
    """What became of every point in this thread's last call, one status a solve.

    solves: whether there is any; waits: whether reports are there when a call returns.
    """

    def __init__(self, *, solves: bool, waits: bool) -> None:
        self._solves, self._waits = solves, waits
        self.told: Sequence[Status] = ()

    def tell(self, told: Sequence[Status]) -> bool:
        """Keep what the solves reported, and warn of points that failed; whether any may have.

        A call on a GPU does not wait to know, and so does not warn.
        """
        self.told = told
        if not self._waits:
            return self._solves
        problems = failures(told) if self._solves else ()
        warn_of(problems)
        return bool(problems)
