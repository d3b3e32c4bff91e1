"""A simulation tells how it gets on, in a line that fits where it is read."""

import os
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingot.cli.live import Pace, duration, line, live, plain, share, statistics

Captured = pytest.CaptureFixture[str]


@dataclass
class Counts:
    sequences: int = 2
    cache_hits: int = 7

    def __str__(self) -> str:
        return f"JIT: {self.sequences} sequences"


def now(
    number: int, num_steps: int | None = 40, end: float = 1e30, start: float = 0.0, **counted: Any
) -> Any:
    """A run after some steps, as far as it is looked at."""
    bounds = SimpleNamespace(num_steps=num_steps, start_time=start, end_time=end)
    return SimpleNamespace(
        number=number,
        time=start + number * 0.25 if number else 0.0,
        dt=0.25,
        executor=SimpleNamespace(**counted),
        simulation=SimpleNamespace(executioner=bounds),
    )


def ticking(*times: float) -> Iterator[float]:
    yield from times


def test_a_line_tells_step_time_size_pace_and_what_is_compiled() -> None:
    assert line(now(10), 12.345) == "step 10/40  time 2.5  dt 0.25  12.3 steps/s"
    assert line(now(10, None), 2.0).startswith("step 10  ")
    counted = line(now(10, statistics=Counts()), 2.0)
    assert counted.endswith("2 steps/s  JIT: 2 sequences")


def test_an_executor_that_compiles_tells_what_it_did() -> None:
    counts = {"sequences": 2, "cache_hits": 7}
    assert statistics(SimpleNamespace(statistics=Counts())) == ("JIT: 2 sequences", counts)
    assert statistics(SimpleNamespace()) == ("", {})


def test_the_share_done_is_that_of_the_nearer_end() -> None:
    assert share(now(10)) == 0.25
    assert share(now(10, end=5.0)) == 0.5
    assert share(now(10, None)) is None


def test_a_line_tells_the_end_time_and_the_time_left() -> None:
    told = line(now(10, end=5.0), 2.0, 65.4)
    assert told == "step 10/40  time 2.5/5  dt 0.25  2 steps/s  1:05 left"
    assert "left" not in line(now(10), 2.0)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "0:00"), (59.7, "1:00"), (3599.0, "59:59"), (3600.0, "1:00:00"), (86399.0, "23:59:59"),
     (90000.0, "1 d 1 h"), (float("inf"), "11574074 d 1 h")],
)  # fmt: skip
def test_a_duration_is_told_as_by_a_clock(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_the_time_left_is_to_the_nearer_end_at_the_present_pace() -> None:
    times = ticking(0.0, 4.0)
    pace = Pace(0, lambda: next(times))
    bounds = now(0).simulation.executioner
    assert pace.left(bounds) is None
    pace(10, 2.5)
    assert pace.left(bounds) == 12.0
    assert pace.left(now(0, end=5.0).simulation.executioner) == 4.0
    assert pace.left(now(0, None, end=5.0).simulation.executioner) == 4.0
    assert pace.left(now(0, None, end=2.0).simulation.executioner) == 0.0
    assert pace.left(now(0, None).simulation.executioner) is None


def test_a_run_whose_steps_grow_is_judged_by_its_time_not_by_its_steps() -> None:
    times = ticking(0.0, 1.0, 2.0)
    pace = Pace(0, lambda: next(times))
    pace(1, 1.0)
    pace(2, 3.0)
    assert pace.left(now(0, None, end=9.0).simulation.executioner) == 3.0


def test_the_pace_is_that_of_the_last_seconds() -> None:
    times = ticking(0.0, 1.0, 2.0, 100.0, 101.0)
    pace = Pace(5, lambda: next(times))
    assert [pace(6), pace(7)] == [1.0, 1.0]
    assert pace(8) == pytest.approx(1 / 98)
    assert pace(18) == pytest.approx(11 / 99)


def test_lines_are_far_apart_where_there_is_no_terminal(capsys: Captured) -> None:
    clock = [0.0]
    watch = plain(Pace(0, lambda: clock[0]), 10)
    for number in range(1, 30):
        clock[0] += 1
        watch(now(number))
    said = capsys.readouterr()
    assert said.out == ""
    assert [row.split()[1] for row in said.err.splitlines()] == ["10/40", "20/40"]


def test_a_short_run_says_nothing_where_there_is_no_terminal(capsys: Captured) -> None:
    with live(now(0)) as show:
        show(now(1))
    assert capsys.readouterr().err == ""


def test_the_first_step_which_compiles_does_not_count_once_others_have_been_taken() -> None:
    times = ticking(0.0, 60.0, 61.0, 62.0)
    pace = Pace(0, lambda: next(times))
    bounds = now(0).simulation.executioner
    pace(1, 0.25)
    assert pace.left(bounds) == 60 * 39
    pace(2, 0.5)
    assert pace.left(bounds) == 38
    assert pace(3, 0.75) == 1.0 and pace.left(bounds) == 37


def test_a_run_that_starts_late_or_goes_on_is_judged_from_there(capsys: Captured) -> None:
    for begun in (0, 30):
        with live(now(begun, None, end=110.0, start=100.0), seconds=0.0) as show:
            show(now(begun + 1, None, end=110.0, start=100.0))
        (row,) = capsys.readouterr().err.splitlines()
        reached = 100 + (begun + 1) * 0.25
        assert f"time {reached:g}/110" in row
        pace, left = (row.split(word)[0].split()[-1] for word in (" steps/s", " left"))
        minutes, _, seconds = left.rpartition(":")
        expected = (110 - reached) / 0.25 / float(pace)
        assert 60 * int(minutes or 0) + int(seconds) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("seed", range(10))
def test_the_time_left_of_a_real_run_is_that_at_the_pace_of_its_last_steps(
    tmp_path: Path, seed: int
) -> None:
    from ingot.fields import build, prepared
    from ingot.fields.checkpoint import restore, store
    from ingot.hit import read_text

    draw = random.Random(seed)
    growth, steps, cost = draw.uniform(1, 1.2), draw.randint(6, 12), draw.uniform(0.1, 8)
    start, stop = draw.choice([-3.0, 0.0, 50.0]), draw.randint(2, 4)
    bound = f"num_steps = {steps}" if seed % 2 else f"end_time = {start + 0.25 * steps}"
    text = (
        f"[Domain]\ndim = 1\n[]\n[Executioner]\n{bound}\nstart_time = {start}\n[TimeStepper]\n"
        f"type = IterationAdaptiveDT\ndt = 0.25\ngrowth_factor = {growth}\n[]\n[]"
    )

    def ready() -> Any:
        return prepared(build(read_text(text, moose=True)), tmp_path, jit=False)

    run = ready()
    if seed % 3 == 0:
        steps_of = run.steps()
        for _ in range(stop):
            half = next(steps_of)
        store(half, tmp_path / "half.checkpoint")
        steps_of.close()
        run = ready()
        restore(run, tmp_path)
        assert run.number == stop
    clock = [0.0]
    pace = Pace(run.number, lambda: clock[0], time=run.time if run.number else start)
    seen = [(0.0, run.number, run.time if run.number else start)]
    for each in run.steps():
        clock[0] += cost
        pace(each.number, each.time)
        seen.append((clock[0], each.number, each.time))
        later = seen[1:] if len(seen) > 2 else seen
        inside = [k for k, (at, _, _) in enumerate(later) if clock[0] - at <= 10]
        then = later[max(0, inside[0] - 1)] if len(later) > 2 else later[0]
        passed, bounds = clock[0] - then[0], each.simulation.executioner
        left = (
            passed * (bounds.num_steps - each.number) / (each.number - then[1])
            if bounds.num_steps is not None
            else passed * (bounds.end_time - each.time) / (each.time - then[2])
        )
        assert pace.left(bounds) == pytest.approx(max(0.0, left), abs=1e-9)
    assert pace.left(bounds) == pytest.approx(0.0, abs=1e-9)


def told_on_terminal(run: Any, later: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> str:
    """What a terminal of 60 columns is told of a run, now and later."""
    pty = pytest.importorskip("pty", reason="Windows has no pseudo terminals")
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    with os.fdopen(slave, "w") as stream, monkeypatch.context() as patch:
        patch.setenv("TERM", kind)
        patch.setenv("COLUMNS", "60")
        patch.setattr("sys.stderr", stream)
        with live(run, seconds=0.0) as show:
            show(later)
        stream.flush()
        said = b""
        with suppress(BlockingIOError):
            while True:
                said += os.read(master, 2**16)
    os.close(master)
    return said.decode()


def test_a_terminal_shows_a_bar_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told_on_terminal(
        now(0, statistics=Counts()), now(10, statistics=Counts()), monkeypatch, "xterm"
    )
    rows = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).replace("\r", "\n").splitlines()
    shown = [row for row in rows if "25%" in row]
    assert shown and all("step 10/40" in row and len(row) <= 60 for row in shown), said


def test_a_dumb_terminal_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told_on_terminal(now(0), now(10), monkeypatch, "dumb")
    assert said.startswith("step 10/40") and "\x1b" not in said and said.count("\n") == 1


def test_a_file_has_no_carriage_returns_whatever_colours_are_forced(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with live(now(0), seconds=0.0) as show:
        show(now(10))
    said = capsys.readouterr().err
    assert said.startswith("step 10/40") and "\r" not in said and "\x1b" not in said


def test_a_real_run_is_shown(tmp_path: Path, capsys: Captured) -> None:
    from ingot.fields import build, prepared
    from ingot.hit import read_text

    text = "[Domain]\ndim = 1\n[]\n[Executioner]\nnum_steps = 3\n[]"
    run = prepared(build(read_text(text, moose=True)), tmp_path)
    with live(run, seconds=0.0) as show:
        for each in run.steps():
            show(each)
    rows = capsys.readouterr().err.splitlines()
    assert [row.partition("  time")[0] for row in rows] == ["step 1/3", "step 2/3", "step 3/3"]
