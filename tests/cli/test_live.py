"""A simulation tells how it gets on, in a line that fits where it is read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingot.cli.live import Pace, line, live, plain, share, statistics

Captured = pytest.CaptureFixture[str]


@dataclass
class Counts:
    sequences: int = 2
    cache_hits: int = 7

    def __str__(self) -> str:
        return f"JIT: {self.sequences} sequences"


def now(number: int, num_steps: int | None = 40, end: float = 1e30, **counted: Any) -> Any:
    """A run after some steps, as far as it is looked at."""
    bounds = SimpleNamespace(num_steps=num_steps, start_time=0.0, end_time=end)
    return SimpleNamespace(
        number=number, time=number * 0.25, dt=0.25, executor=SimpleNamespace(**counted),
        simulation=SimpleNamespace(executioner=bounds),
    )  # fmt: skip


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


def test_a_terminal_shows_a_bar(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with live(now(0)) as show:
        show(now(10))
    said = capsys.readouterr()
    assert "step 10/40" in said.err and "25%" in said.err and said.out == ""


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
