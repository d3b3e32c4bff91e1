"""`ingot compile` and `ingot inspect`: what they print, and how they exit."""

import json
from pathlib import Path

import pytest

from ingot.cli.main import status
from ingot.runtime import load
from tests import packages
from tests.packages import ELASTIC, RATE


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


def test_inspect_tells_what_a_package_holds(capsys: pytest.CaptureFixture[str]) -> None:
    one = packages.decay()
    assert status(["inspect", str(one.folder)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "decay: float64 on cpu, from model.i"
    assert "  given  T: Scalar" in rows and "  gives  total: Scalar" in rows
    assert f"  param  {RATE}: Scalar ()" in rows
    assert "  slope  total:extra (the same for all points)" in rows
    assert "  slope  alpha:T" in rows
    assert "  implicit  update" in rows


def test_inspect_tells_the_same_of_a_stub(capsys: pytest.CaptureFixture[str]) -> None:
    one = packages.decay()
    status(["inspect", str(one.folder)])
    rows = capsys.readouterr().out
    assert status(["inspect", str(one.package.stub)]) == 0
    assert capsys.readouterr().out == rows


def test_inspect_prints_metadata_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["inspect", str(packages.diffusion().folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "ingot" and found["outputs"][0]["sub_batch"] == [5]


def test_verify_counts_files_and_finds_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    place = tmp_path / "elastic"
    shutil.copytree(packages.elastic().folder, place)
    assert status(["inspect", str(place), "--verify"]) == 0
    assert "all 4 files are as they were compiled" in capsys.readouterr().out
    (place / "elastic.h").write_text("")
    assert status(["inspect", str(place)]) == 0
    capsys.readouterr()
    assert status(["inspect", str(place), "--verify"]) == 1
    assert "'elastic.h' was changed after it was compiled" in capsys.readouterr().err


def test_inspect_of_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["inspect", str(tmp_path)]) == 1
    assert "no package in" in capsys.readouterr().err


def test_inspect_tells_whether_the_source_has_changed(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["compile", str(file), "--model", "elastic"]) == 0
    capsys.readouterr()
    assert status(["inspect", "aoti/elastic", "--source", str(file)]) == 0
    assert "model.i is what was compiled" in capsys.readouterr().out
    file.write_text(ELASTIC + "\n# changed\n")
    assert status(["inspect", "aoti/elastic", "--source", str(file)]) == 0
    assert "model.i is NOT what was compiled" in capsys.readouterr().out
