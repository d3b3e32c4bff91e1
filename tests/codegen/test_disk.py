"""What a disk refuses is told as that, and nothing else is."""

import errno
from collections import namedtuple
from pathlib import Path

import pytest

from ingot.codegen.disk import raise_if_full, writable
from ingot.errors import IngotError
from ingot.package.write import put_file, save_tensors


def test_a_refusal_is_told_and_other_errors_pass() -> None:
    with (
        pytest.raises(IngotError, match=r"unwritable.*'x' cannot be written: No"),
        writable(),
    ):
        raise OSError(errno.ENOSPC, "No space left on device", "x")
    with pytest.raises(FileNotFoundError), writable():
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "x")
    with pytest.raises(IngotError, match="unwritable"), writable(any_error=True):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "x")
    with pytest.raises(RuntimeError, match="of torch"), writable():
        raise RuntimeError("of torch")


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.touch(), folder.mkdir()
    for place, way in ((file / "a" / "b", file), (file, file), (folder, folder)):
        for write in (put_file, lambda _, place: place.mkdir()):
            if (write is put_file) == (place == file):
                continue  # a file takes the place of a file
            with pytest.raises(IngotError) as refused, writable():
                write(b"", place)
            (problem,) = refused.value.problems
            what = "a folder" if way == folder else "no folder"
            assert problem.message.endswith(f" cannot be written: '{way}' is {what}")
            assert problem.fix == f"name another place, or move '{way}' away"


def test_a_folder_that_no_system_makes_is_told() -> None:
    with pytest.raises(IngotError, match="unwritable"):
        put_file(b"", Path("/proc/ingot/x"))


def test_tensors_on_a_full_disk_are_told() -> None:
    with pytest.raises(IngotError, match=r"unwritable.*No space left on device"), writable():
        save_tensors([0] * 100_000, Path("/dev/full"))


@pytest.mark.parametrize(
    "said",
    [
        "cc1plus: error: error writing to ccx.s: No space left on device",
        "final link failed: no space left on device",
        "OSError: [Errno 122] Disk quota exceeded",
    ],
)
def test_a_compiler_without_room_is_not_at_fault(said: str) -> None:
    raise_if_full("error: 'nonsense' does not name a type")
    with pytest.raises(IngotError, match=r"unwritable.*cannot write its files(.|\n)*TMPDIR"):
        raise_if_full(said)


def test_no_room_is_noticed_where_the_compiler_does_not_say_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(100, 100, 0))
    with pytest.raises(IngotError, match="No space left on device"):
        raise_if_full("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534")
