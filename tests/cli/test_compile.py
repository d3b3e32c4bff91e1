"""`ingot compile`: what it prints, and how it exits."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ingot.cli.main import status
from ingot.package import translate
from ingot.package.compilation import Compilation
from ingot.package.metadata import Metadata
from ingot.runtime import load
from tests.cli.counted import count_reading
from tests.packages import DECAY, ELASTIC, written


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    path = Path("model.i")
    path.write_text(ELASTIC)
    return path


def test_summary_is_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", str(file), "Models/elastic/coefficients:='2e5 0.25'", "--model", "elastic"]
    assert status([*words, "-p", "nu", "-d", ":", "-d", ":nu", "--json"]) == 0
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert report["package"] == "aoti/elastic/cpu" and report["stub"] == "aoti/elastic_aoti.i"
    assert (report["inputs"], report["outputs"]) == (["strain"], ["stress"])
    assert report["parameters"] == ["nu"]
    assert report["derivatives"] == ["stress:strain", "stress:nu"]
    assert report["seconds"] > 0
    assert "cpu/elastic-" in told.err
    artifact = load("aoti/elastic")
    assert float(dict(artifact.named_parameters())["nu"].detach()) == 0.25
    assert artifact.metadata.origin.overrides == ("Models/elastic/coefficients:='2e5 0.25'",)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--model", "elastik"], 1, "elastic"),
        (["--model", "elastic", "-p", "E_"], 1, "unknown-parameter"),
        (["--model", "elastic", "-d", "stres:"], 1, "did you mean 'stress'?"),
        (["--driver", "driver"], 1, "driver"),
        (["--model", "elastic", "--dtype", "float16"], 2, "float16"),
        (["--model", "elastic", "--nothing"], 2, "nothing"),
        ([], 2, "give one of --model and --driver"),
        (["--model", "elastic", "--driver", "d"], 2, "give one of --model and --driver"),
        (["--model", "elastic", "-j", "0"], 2, "leaves no compiler to run"),
    ],
)
def test_wrong_words_are_told(
    file: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, text: str
) -> None:
    assert status(["compile", str(file), *words]) == code
    told = capsys.readouterr()
    assert text in told.err + told.out
    assert not Path("aoti").exists()


def test_missing_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["compile", str(tmp_path / "no.i"), "--model", "m"]) == 1
    assert "file-not-found" in capsys.readouterr().err


@pytest.mark.parametrize("what", [["--model", "decay"], ["--driver", "driver"]])
def test_the_file_is_read_and_the_model_built_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, what: list[str]
) -> None:
    def compile_nothing(c: Compilation, folder: Path, **_: object) -> Metadata:
        return c.metadata

    monkeypatch.setattr(translate, "translate", compile_nothing)
    written(DECAY, file.parent)
    counted = count_reading(monkeypatch)
    assert status(["compile", str(file), *what, "-d", ":"]) == 0
    assert counted == {"model.i": 1, "Factory": 1, "Tensors": 1}


def test_the_driver_of_a_stub_runs_under_new_names(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(DECAY, file.parent)
    inputs = ["T:heat", "t:clock", "t~1:clock~1", "alpha~1:a~1"]
    words = ["compile", str(file), "--driver", "driver", "--rename-output", "alpha:a"]
    assert status([*words, "--rename-input", *inputs]) == 0
    assert status(["run", str(file), "driver", "--save", "live.pt"]) == 0
    capsys.readouterr()
    assert status(["run", "aoti/decay_aoti.i", "driver", "--save", "stub.pt"]) == 0
    assert "warning" not in capsys.readouterr().err
    live, stub = (torch.load(f"{n}.pt", weights_only=True) for n in ("live", "stub"))
    keys = {"alpha": "a", "T": "heat", "t": "clock", "alpha~1": "a~1", "t~1": "clock~1"}

    def renamed(key: str) -> str:
        side, step, name = key.split(".")
        return f"{side}.{step}.{keys.get(name, name)}"

    assert {renamed(key) for key in live} == set(stub)
    for key in live:
        np.testing.assert_allclose(stub[renamed(key)], live[key], rtol=1e-12)
    assert live["output.4.alpha"] > live["output.1.alpha"] > 0
