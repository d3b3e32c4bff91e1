"""The command line: help, versions, explanations, exit codes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from ingot import __version__
from ingot.cli.main import app, status

Captured = pytest.CaptureFixture[str]
SOURCE = Path(__file__).parents[2] / "src"


def ingot(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from ingot.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_names_the_commands() -> None:
    done = ingot("--help")
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in ("run", "show", "test", "explain"))


def test_the_version_is_told() -> None:
    done = ingot("--version")
    assert (done.returncode, done.stdout.strip()) == (0, __version__)


def test_a_run_end_to_end(file: Path) -> None:
    done = ingot("run", str(file), "verification", "--backend", "interpret")
    assert (done.returncode, done.stdout) == (0, "verification passed: 4 values agree\n")
    assert done.stderr == ""


def test_a_problem_exits_with_one_and_says_so_on_stderr(file: Path) -> None:
    done = ingot("run", "nowhere.i")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[file-not-found]")


@pytest.mark.parametrize(
    "words", [["strange"], ["run"], ["test"], ["run", "x.i", "--backend", "abacus"]], ids=" ".join
)
def test_wrong_usage_exits_with_two(words: list[str], capsys: Captured) -> None:
    assert status(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err != ""


def test_a_bug_exits_with_seventy(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(app), "__call__", broken)
    assert status(["run"]) == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_code_is_explained(capsys: Captured) -> None:
    assert status(["explain", "unknown-option"]) == 0
    assert "misspelling" in capsys.readouterr().out


def test_an_unknown_code_is_an_error(capsys: Captured) -> None:
    assert status(["explain", "unknown-optoin"]) == 1
    assert "did you mean 'unknown-option'?" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_bug() -> None:
    code = "from ingot.cli.main import main; main()"
    words = [sys.executable, "-c", code, "package", "schema"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def commands(which: App, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command, those of commands within commands too."""
    for name in which:
        if not name.startswith("-"):
            yield (*words, name)
            yield from commands(which[name], *words, name)


@pytest.mark.parametrize("words", list(commands(app)), ids=" ".join)
def test_help_of_every_command_has_an_example_that_is_understood(
    words: tuple[str, ...], capsys: Captured
) -> None:
    assert status([*words, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    example = re.search(r"Example: (ingot [^╭]*[^╭ ])", said)
    assert example is not None
    _, *given = example[1].partition(" > ")[0].split()
    assert tuple(given[: len(words)]) == words
    app.parse_args(given, exit_on_error=False)


def test_a_terminal_of_ascii_alone_is_no_reason_to_fail(tmp_path: Path) -> None:
    """The summary of a run has a µ."""
    page = (SOURCE.parent / "docs" / "tour.md").read_text()
    (tmp_path / "bar.i").write_text(page.split("```ini\n")[1].split("```")[0])
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from ingot.cli import main; main()"
    words = ["run", str(tmp_path / "bar.i"), "--backend", "interpret"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "?s per point and step" in done.stdout
