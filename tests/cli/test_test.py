"""`ingot test` finds what judges itself, runs it, and counts."""

import json
from pathlib import Path

import pytest

from ingot.cli.main import status

Captured = pytest.CaptureFixture[str]
INTERPRET = ["--backend", "interpret"]


def test_passed_and_failed_are_counted(file: Path, capsys: Captured) -> None:
    assert status(["test", str(file), *INTERPRET]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_both_backends_are_run_where_none_is_named(file: Path, capsys: Captured) -> None:
    assert status(["test", str(file)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_a_failure_has_a_line_with_its_reason(file: Path, capsys: Captured) -> None:
    file.write_text(file.read_text().replace("factor = 2", "factor = 3"))
    assert status(["test", str(file), *INTERPRET]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "model.i [verification] failed: interpret values-differ:"
        " 3 of 4 values differ from what is expected",
        "0 passed, 1 failed",
    ]


def test_types_that_do_not_exist_are_counted_among_the_failed(file: Path, capsys: Captured) -> None:
    Path("other.i").write_text(file.read_text().replace("ScalarVariableRate", "StrangeRate"))
    assert status(["test", ".", *INTERPRET]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("other.i [verification] failed: unknown-type: no type 'StrangeRate'")
    assert rows[1:] == ["1 passed, 1 failed", "1 unsupported: StrangeRate"]


def test_a_file_that_cannot_be_read_fails(file: Path, capsys: Captured) -> None:
    Path("broken.i").write_text("[Models]\n")
    assert status(["test", ".", *INTERPRET]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("broken.i failed: parse-error")
    assert rows[-1] == "1 passed, 1 failed"


def test_a_bug_in_one_driver_stops_no_other(
    file: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ingot.drivers.verification import Verification

    def broken(self: object, backend: str) -> None:
        raise AssertionError("lines do not match")

    monkeypatch.setattr(Verification, "run", broken)
    assert status(["test", str(file), *INTERPRET]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].endswith("failed: interpret AssertionError: lines do not match")
    assert rows[1] == "0 passed, 1 failed"


def test_a_named_file_without_a_check_is_an_error(file: Path, capsys: Captured) -> None:
    text = file.read_text()
    file.write_text(text[: text.index("  [verification]")] + "[]\n")
    assert status(["test", str(file)]) == 1
    assert "error[nothing-checked]: 'model.i' has no driver that checks itself" in (
        capsys.readouterr().err
    )


def test_a_missing_path_is_an_error(file: Path, capsys: Captured) -> None:
    assert status(["test", "nowhere", str(file)]) == 1
    assert "no file or folder 'nowhere'" in capsys.readouterr().err


def test_outcomes_may_be_json(file: Path, capsys: Captured) -> None:
    assert status(["test", str(file), "--json", *INTERPRET]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["passed"], report["failed"], report["unsupported"]) == (1, 0, 0)
    assert report["outcomes"][0]["driver"] == "verification"


@pytest.mark.slow
def test_several_run_at_a_time(file: Path, capsys: Captured) -> None:
    Path("other.i").write_text(file.read_text().replace("factor = 2", "factor = 3"))
    assert status(["test", ".", "-j", "2", *INTERPRET]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"


@pytest.mark.exhaustive
@pytest.mark.parametrize("folder", ["models", "regression", "verification"])
def test_published_cases_pass_as_far_as_their_types_exist(
    folder: str, cases: Path, capsys: Captured
) -> None:
    status(["test", str(cases / folder), "--json"])
    report = json.loads(capsys.readouterr().out)
    wrong = [o for o in report["outcomes"] if not o["passed"] and not o["unsupported"]]
    assert not wrong
    assert report["passed"] > 0
