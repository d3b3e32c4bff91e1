"""`ingot compile`: what it prints, and how it exits."""

import json
from pathlib import Path

import pytest

from ingot.cli.main import status
from ingot.runtime import load
from tests.packages import ELASTIC


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
