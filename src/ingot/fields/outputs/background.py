"""Background: jobs -> files, written by one thread in the order given, while the run goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Background"]

MOST_FRAMES = 2
"""How many frames may wait to be written; with more, a slow disk would fill the memory."""

MOST_ROWS = 1000
"""How many rows of tables may wait: a frame takes as long as many steps, and rows are small."""


class Background:
    """One thread that does jobs in turn; what goes wrong is raised when more is asked of it.

    After a job that fails the next ones are not done: files have no gaps.
    """

    def __init__(self) -> None:
        self.pool: ThreadPoolExecutor | None = None
        self.waiting: deque[tuple[Future[None], bool]] = deque()
        self.error: BaseException | None = None

    def submit(self, job: Callable[[], None], *, is_frame: bool) -> None:
        """Have a job done after those before it; waits where too many wait already.

        is_frame: whether the job holds fields, or numbers only
        """
        while self.waiting and (self.is_full() or self.waiting[0][0].done()):
            self.waiting.popleft()[0].result()
        self.check()
        if self.pool is None:
            self.pool = ThreadPoolExecutor(1, thread_name_prefix="ingot-output")
        self.waiting.append((self.pool.submit(self.do, job), is_frame))

    def is_full(self) -> bool:
        """Whether another job would be one too many; the first is under way."""
        frames = sum(is_frame for _, is_frame in self.waiting)
        return frames > MOST_FRAMES or len(self.waiting) > MOST_ROWS

    def do(self, job: Callable[[], None]) -> None:
        """Do a job, unless one before it has failed."""
        if self.error is None:
            try:
                job()
            except BaseException as error:  # it is raised where the run goes on
                self.error = error

    def flush(self) -> None:
        """Wait until all is written."""
        while self.waiting:
            self.waiting.popleft()[0].result()
        self.check()

    def check(self) -> None:
        """Raise what went wrong."""
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """End the thread when all is written; what failed is for `flush` to tell."""
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None
