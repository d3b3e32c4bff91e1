"""A package is a closed world: its own files only, all sealed, checked before any is opened."""

import ctypes
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingot import IngotError
from ingot.codegen import library as codegen_library
from ingot.package.seal import digest_of, seal, stamp
from ingot.runtime import load
from tests import packages

Change = Callable[[Path, dict[str, Any]], None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a package of both backends; nothing of it may be opened."""

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("something was opened")

    place = tmp_path / "deep" / "decay"
    shutil.copytree(packages.decay().folder, place)
    monkeypatch.setattr(ctypes, "CDLL", opened)
    monkeypatch.setattr(codegen_library, "private_file", opened)
    monkeypatch.setattr("ingot.graphs.torch_private.inductor.private_file", opened)
    return place


def rewrite(folder: Path, change: Change) -> None:
    """Change the metadata, and seal it again."""
    (file,) = folder.glob("*_meta.json")
    meta = json.loads(file.read_text())
    change(folder, meta)
    file.write_bytes(seal(json.dumps(meta).encode()))


def refused(folder: Path) -> str:
    """What both backends say."""
    said = set()
    for backend in ("kernel", "inductor"):
        with pytest.raises(IngotError) as error:
            load(folder, backend=backend)
        said.add(str(error.value))
    assert len(said) == 1
    return said.pop()


def library_of(meta: dict[str, Any]) -> tuple[str, str]:
    return next(iter(meta["kernel"]["libraries"].items()))


def outside(folder: Path, meta: dict[str, Any]) -> None:
    level, name = library_of(meta)
    shutil.copy(folder / name, folder.parents[1] / "x.so")
    meta["kernel"]["libraries"][level] = "../../x.so"


def outside_and_sealed(folder: Path, meta: dict[str, Any]) -> None:
    outside(folder, meta)
    meta["digests"]["../../x.so"] = digest_of(folder.parents[1] / "x.so")


def absolute(folder: Path, meta: dict[str, Any]) -> None:
    level, name = library_of(meta)
    meta["kernel"]["libraries"][level] = str(folder / name)
    meta["digests"][str(folder / name)] = meta["digests"].pop(name)


def linked(folder: Path, meta: dict[str, Any]) -> None:
    name = library_of(meta)[1]
    shutil.move(folder / name, folder.parent / name)
    (folder / name).symlink_to(folder.parent / name)


def piped(folder: Path, meta: dict[str, Any]) -> None:
    name = library_of(meta)[1]
    (folder / name).unlink()
    os.mkfifo(folder / name)


def bare(folder: Path, meta: dict[str, Any]) -> None:
    meta["digests"] = {}


def empty(folder: Path, meta: dict[str, Any]) -> None:
    meta["digests"][library_of(meta)[1]] = ""


def more(folder: Path, meta: dict[str, Any]) -> None:
    (folder / "more.so").write_bytes(b"more")
    meta["digests"]["more.so"] = digest_of(folder / "more.so")


def tolerant(folder: Path, meta: dict[str, Any]) -> None:
    meta["solvers"][0]["rel_tol"] *= 1.5


def unknown_key(folder: Path, meta: dict[str, Any]) -> None:
    meta["kernel"]["also"] = 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (outside, "names '../../x.so', and holds no digest of it"),
        (outside_and_sealed, "'../../x.so' is no name of a file in the folder"),
        (absolute, "is no name of a file in the folder of the package"),
        (linked, "is a link that leads out of"),
        (piped, "is no file"),
        (bare, "holds no digest of it"),
        (empty, "Expected `str` matching regex"),
        (more, "holds a digest of 'more.so', which it does not name"),
        (tolerant, "'decay.cpp' was compiled with other metadata than lies beside it"),
        (unknown_key, "unknown field `also`"),
    ],
)
def test_whatever_leaves_the_closed_world_is_refused_before_anything_is_opened(
    folder: Path, change: Change, told: str
) -> None:
    rewrite(folder, change)
    assert told in refused(folder)


def test_any_byte_of_the_metadata_that_changes_breaks_its_seal(folder: Path) -> None:
    (file,) = folder.glob("*_meta.json")
    whole = file.read_text()
    for old, new in (("1e-12", "1e-11"), ("  ", " "), ('"decay"', '"Decay"'), ("}\n", "}\n\n")):
        assert old in whole
        file.write_text(new.join(whole.rsplit(old, 1)))
        assert "was changed after it was compiled" in refused(folder)
    meta = json.loads(whole)
    del meta["seal"]
    file.write_text(json.dumps(meta))
    assert "error[broken-package]" in refused(folder)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("derivatives", 0, "output"), "alfa", "a derivative of 'alfa' names 'alfa'"),
        (("derivatives", 0, "input"), "nobody", "names 'nobody', which is not there"),
        (("segments", 0, "reads"), ["nobody"], "names 'nobody', which is not there"),
        (("inputs", 0, "kind"), "SR9", "of a kind 'SR9' that does not exist"),
        (("inputs", 0, "kind"), "SR2", "has base (), a SR2 has (6,)"),
        (("inputs", 0, "size"), 7, "has 7 numbers"),
        (("outputs", 0, "sub_batch"), [0], "do not"),
        (("inputs", 1, "name"), "T", "the input 'T' is there 2 times"),
        (("parameters", 0, "value", "shape"), [3], "has shape (3,) and 1 numbers"),
        (("solvers", 0, "max_its"), -1, "max_its"),
        (("solvers", 0, "unknowns"), [], "has no unknowns"),
        (("solvers",), [], "solvers and implicit segments are not the same"),
        (("dtype",), "float16", "dtype"),
        (("device",), "mars", "device"),
        (("inductor", "dtype"), "float32", "the graphs compute in float32"),
        (("inductor", "outputs"), ["total", "alpha"], "other outputs than the package"),
        (("inductor", "slopes"), [], "other derivatives than the package"),
        (("kernel", "libraries"), {}, "the kernel has no library"),
        (("name",), "other", "describes 'other'"),
    ],
)
def test_metadata_that_contradicts_itself_is_told_even_where_all_is_stamped_anew(
    folder: Path, path: tuple[Any, ...], value: Any, told: str
) -> None:
    def change(_: Path, meta: dict[str, Any]) -> None:
        at = meta
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    rewrite(folder, change)
    assert told in refused(folder)


def test_files_that_are_no_part_of_the_package_are_not_looked_at(tmp_path: Path) -> None:
    place = tmp_path / "decay"
    shutil.copytree(packages.decay().folder, place)
    (place / "notes.so").write_bytes(b"no library")
    (place / "gone").symlink_to(tmp_path / "nowhere")
    assert load(place).metadata.name == "decay"
    shutil.copy(place / "decay_meta.json", place / "also_meta.json")
    with pytest.raises(IngotError, match=r"also_meta.json and decay_meta.json: which is meant"):
        load(place)


def test_a_link_within_the_folder_is_no_harm(tmp_path: Path) -> None:
    place = tmp_path / "decay"
    shutil.copytree(packages.decay().folder, place)
    (place / "decay.h").rename(place / "real.h")
    (place / "decay.h").symlink_to("real.h")
    assert load(place).metadata.name == "decay"


def test_stamping_again_replaces_the_contract() -> None:
    archive = next(packages.decay().folder.glob("*.pt2"))
    for name, content in ((archive.name, archive.read_bytes()), ("a.cpp", b"int a;\n")):
        once, twice = stamp(content, name, "a" * 64), stamp(content, name, "b" * 64)
        assert once != twice == stamp(once, name, "b" * 64)
