"""What the solves of a call reported, kept for each thread until its next call."""

import threading
from collections.abc import Sequence

from torch import Tensor

from ingot.errors import warn_of
from ingot.execute.status import Status, failures, find_times

__all__ = ["LastStatus"]


class LastStatus(threading.local):
    """What became of every point in this thread's last call, one status a solve.

    names: of the inputs; solves: whether there is any; waits: whether reports are there when a call
    returns.
    """

    def __init__(self, names: Sequence[str], *, solves: bool, waits: bool) -> None:
        self._names, self._solves, self._waits = names, solves, waits
        self.told: Sequence[Status] = ()

    def tell(self, told: Sequence[Status], values: Sequence[Tensor]) -> bool:
        """Keep what the solves reported, and warn of points that failed; whether any may have.

        values: of the inputs, in order.

        A call on a GPU does not wait to know, and so does not warn.
        """
        self.told = told
        if not self._waits:
            return self._solves
        if not self._solves or not any(status.has_failed for status in told):
            return False
        warn_of(failures(told, find_times(dict(zip(self._names, values, strict=False)))))
        return True
