"""How a simulation gets on: a line that renews itself on a terminal, lines far apart elsewhere."""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingot.fields import Run

__all__ = ["live", "statistics"]

SECONDS = 10.0
"""How far apart lines are where there is no terminal."""


class Pace:
    """Steps a second, over the last few seconds."""

    def __init__(self, step: int, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.seen = deque([(clock(), step)])

    def __call__(self, step: int) -> float:
        """The pace, a step having just been taken."""
        now = self.clock()
        self.seen.append((now, step))
        while len(self.seen) > 2 and now - self.seen[1][0] > SECONDS:
            self.seen.popleft()
        then, before = self.seen[0]
        return (step - before) / max(now - then, 1e-9)


def statistics(executor: object) -> tuple[str, dict[str, Any]]:
    """What an executor tells of its compiled sequences, in words and as counts; else nothing."""
    found: Any = getattr(executor, "statistics", None)
    return ("", {}) if found is None else (str(found), dataclasses.asdict(found))


def share(run: Run) -> float | None:
    """The share of a run that is done, where it has an end."""
    bounds = run.simulation.executioner
    shares: list[float] = []
    if bounds.num_steps:
        shares.append(run.number / bounds.num_steps)
    if bounds.end_time < 1e29:
        length = bounds.end_time - bounds.start_time
        shares.append((run.time - bounds.start_time) / length if length > 0 else 1.0)
    return min(1.0, max(shares)) if shares else None


def line(run: Run, pace: float) -> str:
    """Step, time, step size, pace, and what the executor counts."""
    total = run.simulation.executioner.num_steps
    step = f"step {run.number}" + ("" if total is None else f"/{total}")
    parts = [step, f"time {run.time:.6g}", f"dt {run.dt:.3g}", f"{pace:.3g} steps/s"]
    words, _ = statistics(run.executor)
    return "  ".join([*parts, words] if words else parts)


@contextmanager
def live(run: Run, seconds: float = SECONDS) -> Iterator[Callable[[Run], None]]:
    """Show on stderr how a run goes on; what is given is to be called after each step."""
    from rich.console import Console

    pace = Pace(run.number)
    console = Console(stderr=True)
    if not console.is_terminal:
        yield plain(pace, seconds)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        shown = -1.0

        def watch(now: Run) -> None:
            nonlocal shown
            found, clock = pace(now.number), pace.clock()
            if clock - shown < 0.1:
                return
            shown, done = clock, share(now)
            total = None if done is None else 1.0
            bar.update(task, description=line(now, found), completed=done, total=total)

        yield watch


def plain(pace: Pace, seconds: float) -> Callable[[Run], None]:
    """A watcher that prints a line when the last is some seconds old."""
    last = pace.clock()

    def watch(now: Run) -> None:
        nonlocal last
        found = pace(now.number)
        if pace.clock() - last >= seconds:
            last = pace.clock()
            print(line(now, found), file=sys.stderr, flush=True)

    return watch
