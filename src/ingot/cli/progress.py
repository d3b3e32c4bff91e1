"""What is done of a long piece of work: a bar on a terminal, a line for each step elsewhere."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Steps", "can_renew", "progress"]


def can_renew() -> bool:
    """Whether stderr is a terminal that can renew a line.

    Forced colours, which continuous integration is fond of, do not make a terminal of a file.
    """
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


class Steps:
    """Called with the name of each thing that is done, from any thread."""

    def __init__(self, total: int | None, bar: "tuple[Progress, TaskID] | None") -> None:
        self.total = total
        self.done = 0
        self._bar = bar
        self._lock = threading.Lock()

    def expect(self, total: int) -> None:
        """Say how many steps there are, where that is known only on the way."""
        with self._lock:
            self.total = total
            if self._bar is not None:
                bar, task = self._bar
                bar.update(task, total=total)

    def __call__(self, name: str) -> None:
        """Count a step that is done."""
        with self._lock:
            self.done += 1
            if self._bar is not None:
                bar, task = self._bar
                bar.print(f"  {name}", markup=False, highlight=False)
                bar.update(task, advance=1)
                return
            count = f"{self.done}/{self.total}" if self.total is not None else str(self.done)
            print(f"[{count}] {name}", file=sys.stderr)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Steps]:
    """Count steps on stderr while the work goes on."""
    if not can_renew():
        yield Steps(total, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        yield Steps(total, (bar, bar.add_task(what, total=total)))
