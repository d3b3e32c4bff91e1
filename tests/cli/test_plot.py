"""`ingot plot` and `ingot run --plot` write pictures of what they are asked for."""

import json
from pathlib import Path

import pytest
import torch

from ingot.cli.main import status
from tests.drivers.test_curves import make_result

pytest.importorskip("matplotlib", reason="pictures need ingot[plot]")

Captured = pytest.CaptureFixture[str]
BAR = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 5))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.linspace(0, 1, 5)[:, None] * SR2.fill(0.01, -0.003, -0.003).data)'
  []
[]
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
[Drivers]
  [stretch]
    type = TransientDriver
    model = 'elasticity'
    prescribed_time = 'times'
    prescribed_SR2_names = 'strain'
    prescribed_SR2_values = 'strains'
  []
[]
"""


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A result of three points, and beside it an input file."""
    monkeypatch.chdir(tmp_path)
    Path("bar.i").write_text(BAR)
    make_result(turn=torch.rand(5, 3, 3)).save("my bars.npz")
    return tmp_path / "my bars.npz"


def test_what_is_most_telling_is_drawn_beside_the_result(result: Path, capsys: Captured) -> None:
    assert status(["plot", str(result)]) == 0
    said = capsys.readouterr().out
    assert "my bars.png" in said and "iterations over time" in said
    assert result.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_words_points_and_output_are_heard(result: Path, capsys: Captured) -> None:
    words = ["strain.xx:state/stress.xx", "ep", "--point", "2", "-p", "0"]
    assert status(["plot", str(result), *words, "--output", "curves.svg", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["file"] == "curves.svg" and Path("curves.svg").exists()
    assert report["panels"] == [
        {"x": "strain.xx", "y": "state/stress.xx [MPa]", "curves": ["point 2", "point 0"]},
        {"x": "time", "y": "ep", "curves": ["point 2", "point 0"]},
    ]


def test_pole_figures_are_drawn(result: Path, capsys: Captured) -> None:
    words = ["--pole", "1", "-1", "1", "--step", "-1", "--projection", "stereographic", "--json"]
    assert status(["plot", str(result), *words]) == 0
    assert json.loads(capsys.readouterr().out)["shown"] == ["{1-11} of turn, step 4"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["strain.xx:stres.xx"], 1, "did you mean"),
        (["strain.xz:ep", "--point", "7"], 1, "the result has no point 7"),
        (["--output", "curves.jpg"], 1, "end it in one of: .png, .svg, .pdf"),
        (["--step", "1"], 2, "are of pole figures"),
        (["ep", "--pole", "1", "1", "1"], 2, "--pole draws no 'ep'"),
        (["--pole", "1", "1"], 2, ""),
    ],
)
def test_what_cannot_be_drawn_is_told(
    result: Path, capsys: Captured, words: list[str], code: int, said: str
) -> None:
    assert status(["plot", str(result), *words]) == code
    assert said in capsys.readouterr().err
    assert not list(result.parent.glob("*.png"))


def test_a_file_that_is_no_result_is_told(result: Path, capsys: Captured) -> None:
    assert status(["plot", "bar.i"]) == 1
    assert "bar.i' is no result by its ending" in capsys.readouterr().err
    assert status(["plot", "my bar.npz"]) == 1
    assert "did you mean 'my bars.npz'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["--plot"], "bar.png"),
        (["--plot", "a picture.pdf"], "a picture.pdf"),
        (["--plot", "stress", "strain.xx:stress.yy", "b.svg"], "b.svg"),
    ],
)
def test_a_run_draws_its_result(
    result: Path, capsys: Captured, words: list[str], file: str
) -> None:
    run = ["run", "bar.i", "--backend", "interpret"]
    machine = file.endswith(".svg")
    assert status([*run, *words, *(["--json"] if machine else [])]) == 0
    said = capsys.readouterr().out
    assert Path(file).exists()
    assert json.loads(said)["picture"] == file if machine else f"wrote   {file}" in said


def test_a_run_that_cannot_be_drawn_is_told(result: Path, capsys: Captured) -> None:
    run = ["run", "bar.i", "--backend", "interpret"]
    assert status([*run, "--plot", "stres"]) == 1
    assert "did you mean 'stress'" in capsys.readouterr().err
    assert status([*run, "--plot", "a.png", "b.png"]) == 2
    assert "--plot writes one picture" in capsys.readouterr().err
