"""`ingot run` on a simulation."""

import json
from pathlib import Path

import pytest

from ingot.cli.main import status

INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_file_with_a_domain_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["run", str(INPUTS / "diffusion.i")]) == 0
    assert "max_u = 0.198383" in capsys.readouterr().out
    assert Path("diffusion_out.csv").is_file()


@pytest.mark.parametrize("sign", ["=", ":="])
def test_options_are_replaced(sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    override = f"Executioner/num_steps{sign}2"
    assert status(["run", str(INPUTS / "diffusion.i"), override, "--json"]) == 0
    told = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert told["steps"] == 2
    assert told["time"] == pytest.approx(0.02)


def test_a_wrong_option_is_told_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["run", str(INPUTS / "diffusion.i"), "Domain/nxx=3"]) == 1
    assert "[Domain] has no option 'nxx'" in capsys.readouterr().err
