"""`ingot show` prints every stage in the user's names."""

from pathlib import Path

import pytest

from ingot.cli.main import status

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        ("tree", "  [rate]"),
        ("model", "  gives  y_rate: Scalar"),
        ("program", "given  y, y~1, t, t~1"),
    ],
)
def test_a_stage_is_printed(stage: str, line: str, file: Path, capsys: Captured) -> None:
    assert status(["show", str(file), "rate", "--stage", stage]) == 0
    assert line in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("stage", ["clean", "hoist", "loops", "factor", "schedule", "source"])
def test_a_pass_is_printed(stage: str, file: Path, capsys: Captured) -> None:
    assert status(["show", str(file), "rate", "--stage", stage]) == 0
    assert capsys.readouterr().out.strip()


def test_overrides_are_shown(file: Path, capsys: Captured) -> None:
    words = ["Models/rate/variable:=z", "--stage", "program"]
    assert status(["show", str(file), "rate", *words]) == 0
    assert "z_rate" in capsys.readouterr().out


def test_a_driver_gives_structural_shapes(file: Path, capsys: Captured) -> None:
    text = file.read_text().replace("torch.ones(5))'", "torch.ones(5), sub_batch_ndim=1)'")
    file.write_text(text)
    assert status(["show", str(file), "rate", "--stage", "program", "--driver", "driver"]) == 0
    assert "y<axis1>" in capsys.readouterr().out
