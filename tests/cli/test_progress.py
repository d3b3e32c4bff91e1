"""Progress is a line for each step, and a bar on a terminal."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ingot.cli.progress import progress

Captured = pytest.CaptureFixture[str]


def test_each_step_is_a_line_where_there_is_no_terminal(capsys: Captured) -> None:
    with progress("compiling", 2) as step:
        step("cpu/a.so")
        step("cpu/[b].so")
    assert capsys.readouterr().err == "[1/2] cpu/a.so\n[2/2] cpu/[b].so\n"


def test_a_total_may_come_late_or_never(capsys: Captured) -> None:
    with progress("compiling") as step:
        step("a")
        step.expect(2)
        step("b")
    assert capsys.readouterr().err == "[1] a\n[2/2] b\n"


def test_steps_are_counted_from_many_threads(capsys: Captured) -> None:
    with progress("compiling", 200) as step, ThreadPoolExecutor(8) as pool:
        list(pool.map(step, map(str, range(200))))
    rows = capsys.readouterr().err.splitlines()
    assert [row.partition("/")[0] for row in rows] == [f"[{i + 1}" for i in range(200)]


def test_names_stand_above_the_bar_on_a_terminal(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress("compiling", 2) as step:
        step("cpu/[b].so")
    said = capsys.readouterr()
    assert "cpu/[b].so" in said.err and "1/2" in said.err and said.out == ""
