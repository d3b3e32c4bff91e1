"""`ingot package`: what is wrong with a package is told, all at once."""

import json
import shutil
from pathlib import Path

import pytest

from ingot.cli.main import status
from ingot.package.metadata import json_schema
from ingot.package.seal import seal
from tests import packages

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of a package that may be broken, with its stub."""
    one = packages.decay()
    assert one.package.stub is not None
    shutil.copytree(one.package.stub.parent, tmp_path / "out")
    return tmp_path / "out" / "decay" / "cpu"


def told(capsys: Captured, place: Path) -> list[tuple[str, str]]:
    """Code and message of every problem, the same as text and as JSON."""
    code = status(["package", "verify", str(place)])
    text = capsys.readouterr()
    assert status(["package", "verify", str(place), "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    found = [(p["code"], p["message"]) for p in report["problems"]]
    assert code == int(bool(found))
    assert all(f"error[{code}]: {message}" in text.err for code, message in found)
    return found


def edited(place: Path, **changes: object) -> None:
    """The metadata with some keys changed."""
    (file,) = place.glob("*_meta.json")
    file.write_bytes(seal(json.dumps({**json.loads(file.read_text()), **changes}).encode()))


def test_a_sound_package_passes_however_it_is_named(place: Path, capsys: Captured) -> None:
    for name in (place, place.parent, place.parents[1] / "decay_aoti.i"):
        assert told(capsys, name) == []
    assert status(["package", "verify", str(place)]) == 0
    count = len(list(place.iterdir()))
    assert capsys.readouterr().out.endswith(
        f": all {count} files are as they were compiled, and load\n"
    )


def test_all_wrong_files_are_told_at_once(place: Path, capsys: Captured) -> None:
    (place / "decay.h").write_text("")
    (place / "decay.cpp").unlink()
    (place / "notes.txt").write_text("mine")
    messages = [message for _, message in told(capsys, place)]
    assert messages == [
        f"'decay.cpp' is missing from {place}",
        "'decay.h' was changed after it was compiled",
        f"'notes.txt' in {place} is no part of the package",
    ]


def test_a_changed_library_is_never_loaded(
    place: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(*_: object, **__: object) -> None:
        raise AssertionError("native code ran")

    monkeypatch.setattr("ctypes.CDLL", loaded)
    library = next(place.glob("*.so"))
    library.write_bytes(library.read_bytes()[:-1])
    message = f"'{library.name}' was changed after it was compiled"
    assert told(capsys, place) == [("broken-package", message)]


def test_a_library_that_does_not_load_is_told(place: Path, capsys: Captured) -> None:
    from ingot.package.seal import digest_of as digest

    (file,) = place.glob("*_meta.json")
    meta = json.loads(file.read_text())
    for library in place.glob("*.so"):
        library.write_bytes(b"no library")
        meta["digests"][library.name] = digest(library)
    file.write_bytes(seal(json.dumps(meta).encode()))
    ((code, message),) = told(capsys, place)
    assert code == "broken-package" and message.startswith("the kernel backend does not load: ")


def test_a_file_without_digest_is_told(place: Path, capsys: Captured) -> None:
    (file,) = place.glob("*_meta.json")
    digests = json.loads(file.read_text())["digests"]
    del digests["decay.h"]
    edited(place, digests=digests)
    assert [m for _, m in told(capsys, place)] == [
        "the metadata names 'decay.h', and holds no digest of it",
        f"'decay.h' in {place} is no part of the package",
    ]


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"schema_version": 0}, "wrong-schema", "schema version 0"),
        ({"format": "other"}, "broken-package", "describes no package 'ingot'"),
        ({"inputs": 3}, "broken-package", "inputs"),
    ],
)
def test_wrong_metadata_is_told(
    place: Path, capsys: Captured, changes: dict[str, object], code: str, text: str
) -> None:
    edited(place, **changes)
    ((found, message),) = told(capsys, place)
    assert found == code and text in message


def test_graphs_of_another_torch_are_told_once(place: Path, capsys: Captured) -> None:
    (file,) = place.glob("*_meta.json")
    if json.loads(file.read_text())["inductor"] is None:
        pytest.skip("the package holds no graphs")
    edited(place, torch_version="1.0")
    ((code, message),) = told(capsys, place)
    assert code == "wrong-torch" and "compiled by torch 1.0, this is " in message


def test_nothing_and_no_stub_are_told(tmp_path: Path, capsys: Captured) -> None:
    assert told(capsys, tmp_path) == [("file-not-found", f"no package in '{tmp_path}'")]
    file = packages.written(packages.ELASTIC, tmp_path)
    ((code, message),) = told(capsys, file)
    assert code == "no-stub" and str(file) in message


def test_every_device_is_verified(place: Path, capsys: Captured) -> None:
    shutil.copytree(place, place.with_name("other"))
    (place.with_name("other") / "decay.h").unlink()
    ((_, message),) = told(capsys, place.parent)
    assert message == f"other/: 'decay.h' is missing from {place.with_name('other')}"


def test_the_schema_is_printed(capsys: Captured) -> None:
    assert status(["package", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(json_schema()))


def test_nothing_of_an_untrusted_package_is_loaded(
    place: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingot.runtime.verify.load", lambda *_, **__: pytest.fail("it was loaded"))
    assert status(["package", "verify", str(place), "--untrusted"]) == 0
    assert capsys.readouterr().out.endswith("files are as they were compiled\n")
