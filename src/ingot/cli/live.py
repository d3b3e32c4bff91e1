"""How a simulation gets on: a line that renews itself on a terminal, lines far apart elsewhere."""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from ingot.cli.progress import can_renew

if TYPE_CHECKING:
    from ingot.fields import Run
    from ingot.fields.blocks.executioner import Executioner

__all__ = ["live", "statistics"]

SECONDS = 10.0
"""How far apart lines are where there is no terminal."""

UNBOUNDED = 1e29
"""An end time from which on a run is meant to have none; 1e30 is the default."""


class Pace:
    """Steps a second, over the last few seconds, and how long the rest takes at that."""

    def __init__(
        self, step: int, clock: Callable[[], float] = monotonic, *, time: float = 0.0
    ) -> None:
        self.clock = clock
        self.seen = deque([(clock(), step, time)])
        self.first = step + 1

    def __call__(self, step: int, time: float = 0.0) -> float:
        """The pace, a step having just been taken to a time."""
        now = self.clock()
        self.seen.append((now, step, time))
        while len(self.seen) > 2 and (
            now - self.seen[1][0] > SECONDS
            # the first step compiles what all others run
            or self.seen[1][1] == self.first
        ):
            self.seen.popleft()
        then, before, _ = self.seen[0]
        return (step - before) / max(now - then, 1e-9)

    def left(self, bounds: Executioner) -> float | None:
        """The seconds to the nearer end, of steps or of time; None where there is none in sight."""
        (then, before, early), (now, step, late) = self.seen[0], self.seen[-1]
        found: list[float] = []
        if bounds.num_steps is not None and step > before:
            found.append((now - then) * (bounds.num_steps - step) / (step - before))
        if bounds.end_time < UNBOUNDED and late > early:
            found.append((now - then) * (bounds.end_time - late) / (late - early))
        return max(0.0, min(found)) if found else None


def duration(seconds: float) -> str:
    """A length of time as a clock has it: minutes and seconds, before them hours, and days."""
    minutes, second = divmod(round(min(seconds, 1e12)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if not hours:
        return f"{minute}:{second:02d}"
    return f"{days} d {hour} h" if days else f"{hour}:{minute:02d}:{second:02d}"


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
    if bounds.end_time < UNBOUNDED:
        length = bounds.end_time - bounds.start_time
        shares.append((run.time - bounds.start_time) / length if length > 0 else 1.0)
    return min(1.0, max(shares)) if shares else None


def line(run: Run, pace: float, left: float | None = None) -> str:
    """Step, time and their ends, step size, pace, time left, and what the executor counts."""
    bounds = run.simulation.executioner
    step = f"step {run.number}" + ("" if bounds.num_steps is None else f"/{bounds.num_steps}")
    end = f"/{bounds.end_time:.6g}" if bounds.end_time < UNBOUNDED else ""
    parts = [step, f"time {run.time:.6g}{end}", f"dt {run.dt:.3g}", f"{pace:.3g} steps/s"]
    parts += [] if left is None else [f"{duration(left)} left"]
    words, _ = statistics(run.executor)
    return "  ".join([*parts, words] if words else parts)


@contextmanager
def live(run: Run, seconds: float = SECONDS) -> Iterator[Callable[[Run], None]]:
    """Show on stderr how a run goes on; what is given is to be called after each step."""
    # a run that has not begun has no time yet
    time = run.time if run.number else run.simulation.executioner.start_time
    pace = Pace(run.number, time=time)
    if not can_renew():
        yield plain(pace, seconds)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    # a narrow terminal cuts the words, not the bar
    words = TextColumn(
        "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)
    )
    columns = (BarColumn(12), TaskProgressColumn(), words)
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task("starting", total=None)

        shown = -1.0

        def watch(now: Run) -> None:
            nonlocal shown
            found, clock = pace(now.number, now.time), pace.clock()
            if clock - shown < 0.1:
                return
            shown, done = clock, share(now)
            total = None if done is None else 1.0
            left = pace.left(now.simulation.executioner)
            bar.update(task, description=line(now, found, left), completed=done, total=total)

        yield watch


def plain(pace: Pace, seconds: float) -> Callable[[Run], None]:
    """A watcher that prints a line when the last is some seconds old."""
    last = pace.clock()

    def watch(now: Run) -> None:
        nonlocal last
        found = pace(now.number, now.time)
        if pace.clock() - last >= seconds:
            last = pace.clock()
            left = pace.left(now.simulation.executioner)
            print(line(now, found, left), file=sys.stderr, flush=True)

    return watch
