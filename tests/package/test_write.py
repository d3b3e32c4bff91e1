"""A package is put in its place whole or not at all."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from ingot.errors import IngotError
from ingot.package import write
from ingot.package.write import choose_place, open_scratch, put, put_text
from ingot.runtime import load
from tests.packages import ELASTIC, elastic, inputs_of


def killed_compile(home: Path, pause: float) -> str:
    """Compile other values over an old package, and end the compiler while it writes."""
    out = home / "out" / "elastic"
    words = [sys.executable, "-c", "from ingot.cli.main import main; main()", "compile", "model.i",
             "Models/elastic/coefficients:='stiffness 0.25'", "--model", "elastic", "-p", "nu",
             "--output-dir", "out"]  # fmt: skip
    silent = subprocess.DEVNULL
    process = subprocess.Popen(
        words, cwd=home, start_new_session=True, stdout=silent, stderr=silent
    )
    kept = set(out.glob(".cpu-*"))
    while process.poll() is None and set(out.glob(".cpu-*")) == kept:
        time.sleep(0.005)
    time.sleep(pause)
    ended = process.poll()
    if ended is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return "killed" if ended is None else "done"


def check(home: Path) -> float:
    """The package and the stub load and compute; which one it is."""
    inputs = inputs_of(elastic(), 5)
    for place in (home / "out" / "elastic", home / "out" / "elastic_aoti.i"):
        artifact = load(place)
        assert bool(torch.isfinite(artifact(inputs)["stress"]).all())
    return float(dict(artifact.named_parameters())["nu"].detach())


def survive(home: Path, pauses: list[float]) -> None:
    """Kill the compiler so long after its first file, again and again."""
    shutil.copytree(elastic().file.parent, home)
    (home / "model.i").write_text(ELASTIC)
    ends = []
    for pause in pauses:
        ends.append(killed_compile(home, pause))
        assert check(home) in (0.3, 0.25)
    assert ends.count("killed") >= len(pauses) * 2 / 5
    with open_scratch(home / "out" / "elastic" / "cpu") as folder:
        assert [p.name for p in folder.parent.iterdir() if p.name.startswith(".")] == [folder.name]


@pytest.mark.slow
def test_killed_compiler_leaves_the_old_package_or_the_new(tmp_path: Path) -> None:
    dice = random.Random(3)
    survive(tmp_path / "home", [0.0, *(dice.uniform(0.0, 1.5) for _ in range(4))])


@pytest.mark.exhaustive
def test_compiler_killed_at_twenty_moments_leaves_a_whole_package(tmp_path: Path) -> None:
    dice = random.Random(4)
    survive(tmp_path / "home", [dice.uniform(0.0, 2.0) for _ in range(20)])


def test_folder_in_use_is_not_swept_away(tmp_path: Path) -> None:
    place = tmp_path / "a" / "cpu"
    with open_scratch(place) as first, open_scratch(place) as second:
        (first / "x").write_text("first")
        (second / "x").write_text("second")
        put(second, place)
        put(first, place)
    assert (place / "x").read_text() == "first"
    assert [p.name for p in place.parent.iterdir()] == ["cpu"]


@pytest.mark.parametrize("atomic", [True, False])
def test_folder_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, atomic: bool
) -> None:
    if not atomic:
        monkeypatch.setattr(write, "exchange_names", lambda a, b: False)
    place = tmp_path / "a" / "cpu"
    for text in ("old", "new"):
        with open_scratch(place) as folder:
            (folder / "x").write_text(text)
            put(folder, place)
        assert (place / "x").read_text() == text
    assert [p.name for p in place.parent.iterdir()] == ["cpu"]


def test_failed_compile_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "a" / "cpu"
    with pytest.raises(ZeroDivisionError), open_scratch(place) as folder:
        (folder / "x").write_text("half")
        raise ZeroDivisionError
    assert list(place.parent.iterdir()) == []


def test_text_takes_the_place_of_another(tmp_path: Path) -> None:
    place = tmp_path / "a" / "stub.i"
    for text in ("old", "new"):
        put_text(text, place)
        assert place.read_text() == text
    assert [p.name for p in place.parent.iterdir()] == ["stub.i"]


@pytest.mark.parametrize("atomic", [True, False])
def test_folders_put_in_one_new_place_at_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, atomic: bool
) -> None:
    """A place that is not there when it is looked for may be there when it is taken."""
    if not atomic:
        monkeypatch.setattr(write, "exchange_names", lambda a, b: False)
    place = tmp_path / "cpu"
    with open_scratch(place) as folder:
        (folder / "x").write_text("mine")

        def late(self: Path) -> bool:
            monkeypatch.setattr(Path, "exists", exists)
            place.mkdir()
            (place / "x").write_text("other")
            return False

        exists = Path.exists
        monkeypatch.setattr(Path, "exists", late)
        put(folder, place)
    assert (place / "x").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["cpu"]


MANY = """
import sys
from pathlib import Path
from ingot.package.write import open_scratch, put
place = Path(sys.argv[1])
for turn in range(40):
    with open_scratch(place / str(turn) / "cpu") as folder:
        for name in "abc":
            (folder / name).write_text(sys.argv[2])
        put(folder, place / str(turn) / "cpu")
"""


def test_processes_that_write_to_the_same_new_places_leave_whole_folders(tmp_path: Path) -> None:
    words = [sys.executable, "-c", MANY, str(tmp_path)]
    writers = [
        subprocess.Popen([*words, name], stderr=subprocess.PIPE, text=True) for name in "123"
    ]
    assert [(w.communicate()[1], w.returncode) for w in writers] == [("", 0)] * 3
    for turn in range(40):
        (place,) = (tmp_path / str(turn)).iterdir()
        assert len({file.read_text() for file in place.iterdir()}) == 1
        assert len(list(place.iterdir())) == 3


def test_a_folder_swept_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, swept = write._hold, []

    def sweep(folder: Path) -> object:
        if not swept:
            swept.append(folder)
            shutil.rmtree(folder)
        return held(folder)

    monkeypatch.setattr(write, "_hold", sweep)
    with open_scratch(tmp_path / "cpu") as folder:
        assert folder.is_dir() and folder not in swept


def lay(place: Path, what: str) -> None:
    """What a user may have at a place where a package is to be written."""
    if what == "a file":
        place.write_text("mine")
        return
    place.mkdir()
    (place / ("graphs.json" if what == "metadata of others" else "notes.md")).write_text("{}")
    if what == "a folder":
        (place / "notes.md").unlink()
        (place / "deep").mkdir()
    if what == "notes in a package":
        text = '{"format": "ingot-graphs", "digests": {"state.pt": "", "notes": ""}}'
        (place / "graphs.json").write_text(text)
    if what == "a folder by the name of a file":
        text = '{"format": "ingot-graphs", "digests": {"notes.md": ""}}'
        (place / "graphs.json").write_text(text)
        (place / "notes.md").unlink()
        (place / "notes.md").mkdir()


@pytest.mark.parametrize(
    "what",
    ["a file", "notes", "a folder", "metadata of others", "notes in a package",
     "a folder by the name of a file"],
)  # fmt: skip
def test_what_is_no_package_is_not_replaced(tmp_path: Path, what: str) -> None:
    place = tmp_path / "here"
    lay(place, what)
    before = sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(IngotError) as caught:
        choose_place(place)
    assert caught.value.problems[0].code in ("foreign-files", "unwritable")
    assert caught.value.problems[0].fix
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_places_that_are_free_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "old").mkdir()
    text = '{"format": "ingot", "digests": {"a.so": ""}}'
    (tmp_path / "old" / "m_meta.json").write_text(text)
    (tmp_path / "old" / "a.so").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    for name in ("new", "empty", "old", "new/deep"):
        assert choose_place(tmp_path / name) == tmp_path / name
    assert choose_place(str(tmp_path / "link")) == tmp_path / "old"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "state.pt").write_text("")
    assert choose_place(tmp_path / "run", "state.pt") == tmp_path / "run"


@pytest.mark.parametrize("place", [".", "..", "", None, 3, "a/.."])
def test_what_cannot_be_a_place_is_refused_by_name(
    place: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IngotError, match="folder"):
        choose_place(place)
