"""`ingot run` runs a driver and tells how it went."""

import json
from pathlib import Path

import pytest
import torch

from ingot.cli.main import status

Captured = pytest.CaptureFixture[str]


def test_a_transient_is_summarised(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "driver", "--backend", "interpret"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["driver"] == "driver (interpret)"
    assert (rows["steps"], rows["points"]) == ("4", "5")
    assert rows["speed"].endswith("µs per point and step")


def test_a_summary_may_be_json(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "driver", "--backend", "interpret", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["steps"], report["points"], report["solves"]) == (4, 5, {})


def test_a_result_is_saved(file: Path) -> None:
    words = ["driver", "--backend", "interpret", "--save", "result.pt"]
    assert status(["run", str(file), *words]) == 0
    found = torch.load("result.pt", weights_only=True)
    assert found["output.3.y_rate"].tolist() == [2.0] * 5


def test_overrides_follow_the_driver(file: Path) -> None:
    words = ["driver", "factor:=3", "--backend", "interpret", "--save", "result.pt"]
    assert status(["run", str(file), *words]) == 0
    found = torch.load("result.pt", weights_only=True)
    assert found["output.3.y_rate"].tolist() == [3.0] * 5


def test_the_only_driver_needs_no_name(file: Path, capsys: Captured) -> None:
    text = file.read_text()
    file.write_text(text[: text.index("  [verification]")] + "[]\n")
    assert status(["run", str(file), "factor:=3", "--backend", "interpret"]) == 0
    assert "driver (interpret)" in capsys.readouterr().out


def test_several_drivers_are_told(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "name one: driver, verification" in said.err


def test_a_verification_is_judged(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "verification", "--backend", "interpret"]) == 0
    assert capsys.readouterr().out == "verification passed: 4 values agree\n"


def test_a_failed_verification_is_an_error(file: Path, capsys: Captured) -> None:
    words = ["verification", "factor:=3", "--backend", "interpret"]
    assert status(["run", str(file), *words]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "error[values-differ]: 3 of 4 values differ" in said.err
    assert status(["run", str(file), *words, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


def test_a_verdict_cannot_be_saved(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "verification", "--save", "result.pt"]) == 1
    assert "name its TransientDriver" in capsys.readouterr().err


def test_an_unknown_driver_is_an_error(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "drivr"]) == 1
    assert "did you mean 'driver'?" in capsys.readouterr().err
