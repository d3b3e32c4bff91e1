"""`ingot sweep` reads values, runs them all, and tells what it wrote."""

import json
import random
from pathlib import Path

import pytest

from ingot.cli.main import status
from ingot.cli.sweep import read_range, read_table
from ingot.errors import IngotError

Captured = pytest.CaptureFixture[str]


def test_values_are_read() -> None:
    assert read_range("E", "1,2.5,-3e2") == [1.0, 2.5, -300.0]
    assert read_range("E", "1:3:5") == [1.0, 1.5, 2.0, 2.5, 3.0]
    assert read_range("E", "7:9:1") == [7.0]
    assert read_range("E", "0.001:10:5:log") == pytest.approx([1e-3, 1e-2, 1e-1, 1, 10])
    begin, end = random.random(), random.random()
    for suffix in ("", ":log"):
        found = read_range("E", f"{begin!r}:{end!r}:9{suffix}")
        assert (found[0], found[-1], len(found)) == (begin, end, 9)


@pytest.mark.parametrize(
    "text",
    ["", "1,", "a", "1:2", "1:2:0", "1:2:x", "1:2:3:lin", "0:1:3:log", "1:inf:3", "1:2:3:log:4"],
)
def test_what_is_no_value_is_wrong_usage(text: str, capsys: Captured) -> None:
    assert status(["sweep", "no-file.i", "--over", f"E={text}"]) == 2
    assert "error[wrong-usage]" in capsys.readouterr().err


def test_a_table_has_a_column_for_each_name(tmp_path: Path) -> None:
    file = tmp_path / "design.csv"
    file.write_text("E, nu\n1,0.1\n\n2,0.2\n")
    assert read_table(file) == {"E": [1.0, 2.0], "nu": [0.1, 0.2]}
    for text in ("", "\n", "E\n", "E,E\n1,2\n", "E,nu\n1\n", "E\nx\n", "E\n1,2\n"):
        file.write_text(text)
        with pytest.raises(IngotError, match=r"design\.csv"):
            read_table(file)


def test_a_sweep_is_told_and_goes_on(file: Path, capsys: Captured) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    command = ["sweep", str(file), "driver", "--over", "y=1:2:3", "--part", "5"]
    assert status([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["points"], report["parts"], report["computed"]) == (15, 3, 3)
    Path("sweep.parquet/part-000001.parquet").unlink()
    assert status(command) == 0
    assert "15 points" in (told := capsys.readouterr().out) and "2 of 3 parts were there" in told
    assert status([*command, "--over", "y=3"]) == 2
    assert status(["sweep", str(file), "driver", "--over", "y=3"]) == 1
    assert "error[sweep-differs]" in capsys.readouterr().err


def test_flags_that_contradict_are_wrong_usage(file: Path, capsys: Captured) -> None:
    for words in ([], ["--over", "E"], ["--table", "t.csv", "--over", "E=1"]):
        assert status(["sweep", str(file), *words]) == 2
    assert status(["sweep", str(file), "--over", "E=1", "--steps", "some"]) == 2


def test_what_calls_a_command_is_no_line_of_the_user(file: Path, capsys: Captured) -> None:
    place = str(file.parent / "never.parquet")
    command = ["sweep", str(file), "driver", "--over", "E=1e5,nan", "--output", place]
    assert status(command) == 1
    text = capsys.readouterr().err
    assert "'E' should be a row of finite numbers" in text
    assert "-->" not in text
