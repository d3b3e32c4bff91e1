"""`ingot diagnose`: what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest

from ingot.cli.main import status
from tests.drivers.test_failure import TEXT

Captured = pytest.CaptureFixture[str]
DIAGNOSE = ["diagnose", "model.i", "--backend", "interpret"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of six points, two of which fail at step 2, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    Path("model.i").write_text(TEXT)
    Path("times.csv").write_text("time\n0\n1\n2\n3\n")


def test_points_that_fail_are_told_with_exit_code_1(capsys: Captured) -> None:
    assert status(DIAGNOSE) == 1
    told = capsys.readouterr().out
    assert "[root] 2 of 6 points failed" in told
    assert "residuals at step 2, point " in told
    assert "x_residual" in told
    assert "there may be no solution" in told
    assert not Path("result.pt").exists(), "what the driver saves is left alone"


def test_a_run_without_trouble_has_exit_code_0(capsys: Captured) -> None:
    loads = "Tensors/loads/expr:='Scalar(torch.ones(4, 3, dtype=torch.float64))'"
    assert status([*DIAGNOSE, "driver", loads]) == 0
    assert "nothing to say" in capsys.readouterr().out


def test_all_of_it_is_printed_as_json(capsys: Captured) -> None:
    assert status([*DIAGNOSE, "driver", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (solve,) = report["solves"]
    assert (report["driver"], solve["failed"], solve["worst"][0]["step"]) == ("driver", 2, 2)
    assert len(solve["history"]["x_residual"]) == 12


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "[Drivers] has no block 'nowhere'"),
        (["Drivers/other/type=TransientDriver"], "name one: driver, other"),
        (["Drivers/driver/type:=Verification"], "no TransientDriver"),
    ],
)
def test_a_driver_is_named_or_the_only_one(
    words: list[str], said: str, capsys: Captured
) -> None:  # fmt: skip
    assert status([*DIAGNOSE, *words]) == 1
    assert said in capsys.readouterr().err


def test_a_model_that_solves_nothing_has_nothing_to_tell(capsys: Captured) -> None:
    words = ["driver", "Drivers/driver/model:=square", "Drivers/driver/prescribed_Scalar_names:=x"]
    assert status([*DIAGNOSE, *words, "Drivers/driver/ic_Scalar_names:=y"]) == 0
    assert "nothing is solved" in capsys.readouterr().out
