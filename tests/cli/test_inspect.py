"""`ingot inspect` tells the same of a file, its package and its stub, and draws their wiring."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ingot.cli.main import status
from tests import packages
from tests.packages import DECAY, ELASTIC, RATE

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    packages.written(DECAY, tmp_path)
    return Path("model.i")


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stub and its package, copied to a folder of their own, from which they are inspected."""
    one = packages.decay()
    stub = one.package.stub
    assert stub is not None
    shutil.copytree(stub.parent, tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out" / stub.name


def told(capsys: Captured, *words: object) -> list[str]:
    """The rows that a command which must succeed prints."""
    assert status(["inspect", *map(str, words)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_package_tells_what_it_holds(capsys: Captured) -> None:
    rows = told(capsys, packages.decay().folder)
    assert rows[0] == "decay: float64 on cpu, from model.i"
    assert "  given  T: Scalar" in rows and "  gives  total: Scalar" in rows
    assert f"  param  {RATE}: Scalar = 4" in rows
    assert any(row.startswith("  slope  alpha by ") for row in rows)
    assert any("extra (the same for all points)" in row for row in rows)
    assert any(row.startswith("  segment 0  implicit [update]: ") for row in rows)
    rules = "abs_tol 1e-10, rel_tol 1e-12, max_its 25, stop point, substep_del_tol 1e-06"
    assert f"  solver  [update] {rules}" in rows


@pytest.mark.exhaustive
def test_a_batched_constant_is_stored(capsys: Captured) -> None:
    assert "  stored  E: Scalar of shape (5,)" in told(capsys, packages.elastic().folder)


def test_a_stub_tells_the_same_as_its_package(capsys: Captured) -> None:
    one = packages.decay()
    assert told(capsys, one.package.stub) == told(capsys, one.folder)


def test_a_stub_changes_the_rules_of_its_solver(moved: Path, capsys: Captured) -> None:
    moved.write_text(moved.read_text().replace("1e-10", "1e-3"))
    assert any("abs_tol 0.001" in row for row in told(capsys, moved))


def test_a_stub_needs_no_library_to_be_inspected(moved: Path, capsys: Captured) -> None:
    for library in moved.parent.glob("decay/cpu/*.so"):
        library.unlink()
    assert told(capsys, moved)[0] == "decay: float64 on cpu, from model.i"


def test_a_model_of_a_file_is_inspected(file: Path, capsys: Captured) -> None:
    rows = told(capsys, file, "--model", "decay")
    assert rows[0] == "decay: ComposedModel, from model.i"
    assert "  given  T: Scalar" in rows and f"  param  {RATE}: Scalar = 4" in rows
    assert "  slope  alpha by T, alpha~1, t, t~1" in rows
    assert any(row.startswith("  segment 1  forward: ") for row in rows)


def test_overrides_act(file: Path, capsys: Captured) -> None:
    rows = told(capsys, file, "Models/coefficient/reference_value:=7", "--model", "decay")
    assert f"  param  {RATE}: Scalar = 7" in rows


def test_all_blocks_of_a_file_are_inspected(file: Path, capsys: Captured) -> None:
    titles = [row.partition(":")[0] for row in told(capsys, file) if row[:1].strip()]
    assert titles == [
        "coefficient", "rate", "integrate", "reaction", "guess", "update", "sum", "decay",
    ]  # fmt: skip


def test_a_file_and_its_package_have_the_same_keys(file: Path, capsys: Captured) -> None:
    (model,) = json.loads("".join(told(capsys, file, "--model", "decay", "--json")))["models"]
    meta = json.loads("".join(told(capsys, packages.decay().folder, "--json")))
    assert set(model) - {"remarks"} <= set(meta)
    assert [v["name"] for v in model["inputs"]] == [v["name"] for v in meta["inputs"]]
    assert [v["name"] for v in model["outputs"]] == [v["name"] for v in meta["outputs"]]
    kinds = [(s["kind"], s["name"]) for s in model["segments"]]
    assert kinds == [(s["kind"], s["name"]) for s in meta["segments"]]
    values = {p["name"]: p["value"]["values"] for p in model["parameters"]}
    assert values[RATE] == [4.0]


@pytest.mark.exhaustive
def test_structural_extents_are_told(capsys: Captured) -> None:
    meta = json.loads("".join(told(capsys, packages.diffusion().folder, "--json")))
    assert meta["format"] == "ingot" and meta["outputs"][0]["sub_batch"] == [5]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["model.i", "--model", "decai"], 1, "did you mean 'decay'?"),
        (["model.i", "--source", "model.i"], 2, "--source says nothing about an input file"),
        (["model.i", "--svg", "all.svg"], 2, "a picture shows one model, and there are 8"),
        (["nowhere.i"], 1, "file-not-found"),
        (["."], 1, "no package in '.'"),
    ],
)
def test_wrong_words_are_told(
    file: Path, capsys: Captured, words: list[str], code: int, text: str
) -> None:
    assert status(["inspect", *words]) == code
    assert text in capsys.readouterr().err


def test_flags_of_files_are_refused_for_packages(moved: Path, capsys: Captured) -> None:
    assert status(["inspect", str(moved), "a:=1", "--model", "decay"]) == 2
    assert "--model, a:=1 says nothing about a package" in capsys.readouterr().err


def test_all_problems_of_a_file_are_told(file: Path, capsys: Captured) -> None:
    text = file.read_text().replace("ContractingGeometry", "Contracting")
    file.write_text(text.replace("'alpha extra'", "'alpha extra'\n    fro = 1"))
    assert status(["inspect", str(file)]) == 1
    said = capsys.readouterr().err
    assert "no type 'Contracting'" in said and "no option 'fro'" in said


# whether the source is still what was compiled


def test_a_source_that_is_gone_is_asked_for(moved: Path, capsys: Captured) -> None:
    assert told(capsys, moved)[-1] == "  source  model.i is not found; name it with --source"


@pytest.mark.parametrize("where", ["out", "."])
def test_a_source_is_found_by_itself(moved: Path, where: str, capsys: Captured) -> None:
    source = Path(where) / "model.i"
    source.write_text(DECAY)
    for place in (moved, moved.parent / "decay", moved.parent / "decay" / "cpu"):
        row = told(capsys, place)[-1]
        assert row.startswith("  source  ") and row.endswith("model.i is what was compiled")
    source.write_text(DECAY.replace("0.6", "0.7"))
    assert told(capsys, moved)[-1].endswith("model.i has changed since it was compiled")
    source.write_text("[Models")
    assert told(capsys, moved)[-1].endswith("model.i has changed since it was compiled")


def test_a_source_may_be_named(moved: Path, capsys: Captured) -> None:
    Path("other.i").write_text(DECAY)
    row = told(capsys, moved, "--source", "other.i")[-1]
    assert row == "  source  other.i is what was compiled"
    found = json.loads("".join(told(capsys, moved, "--source", "other.i", "--json")))
    assert found["source"] == {"file": "other.i", "state": "same"}
    assert status(["inspect", str(moved), "--source", "none.i"]) == 1


# the picture


def test_a_picture_is_written(file: Path, capsys: Captured) -> None:
    rows = told(capsys, file, "--model", "decay", "--svg", "decay.svg")
    assert rows[0].startswith("decay: ")
    root = ElementTree.parse("decay.svg").getroot()
    texts = {e.text for e in root.iter() if e.tag.endswith("text")}
    assert {"1 update", "ImplicitUpdate", "2 sum", "alpha_residual", "total"} <= texts


def test_a_picture_of_a_package_shows_its_segments(tmp_path: Path, capsys: Captured) -> None:
    told(capsys, packages.decay().folder, "--svg", tmp_path / "decay.svg")
    root = ElementTree.parse(tmp_path / "decay.svg").getroot()
    texts = {e.text for e in root.iter() if e.tag.endswith("text")}
    assert {"1 update", "implicit", "2 forward", RATE} <= texts


def test_a_file_of_one_law_is_drawn(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "model.i").write_text(ELASTIC)
    told(capsys, tmp_path / "model.i", "--svg", tmp_path / "elastic.svg")
    assert "LinearIsotropicElasticity" in (tmp_path / "elastic.svg").read_text()
