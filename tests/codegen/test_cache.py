"""What the cache gives is what was put there, whoever damages, fills or shares it."""

import os
import random
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from ingot.codegen import cache as module
from ingot.codegen.cache import Cache, key_of, open_cache
from ingot.codegen.locks import locked
from ingot.errors import IngotWarning

SOURCE = Path(module.__file__).parents[2]


def names(cache: Cache) -> set[str]:
    return {entry.key for entry in cache.entries()}


def test_every_damage_is_noticed_and_mended(tmp_path: Path) -> None:
    dice, cache, made = random.Random(1), Cache(tmp_path), []
    content = dice.randbytes(500)

    def make() -> bytes:
        made.append(1)
        return content

    assert cache.obtain("kernel", "k", make) == content
    (file,) = (tmp_path / "kernel").iterdir()
    for turn in range(200):
        stored = bytearray(file.read_bytes())
        match dice.randrange(4):
            case 0:
                stored = stored[: dice.randrange(len(stored))]
            case 1:
                stored[dice.randrange(len(stored))] ^= 1 << dice.randrange(8)
            case 2:
                stored += dice.randbytes(dice.randrange(1, 9))
            case _:
                stored = bytearray(len(stored))
        file.write_bytes(stored)
        assert cache.obtain("kernel", "k", make) == content
        assert len(made) == turn + 2
        assert cache.find("kernel", "k") == content


def test_a_key_tells_where_its_parts_end() -> None:
    assert len({key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("ab\0c")}) == 4
    assert key_of("a") == key_of(b"a")


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=5 * 132)
    for number in range(5):
        cache.put("kernel", f"k{number}", bytes(100))
        os.utime(tmp_path / "kernel" / f"k{number}", (number, number))
    assert cache.find("kernel", "k0") is not None
    with locked(tmp_path / "kernel" / ".lock-k1"):
        cache.put("graph", "new", bytes(100))
    # k0 was just used, k1 is locked
    assert names(cache) == {"k0", "k1", "k3", "k4", "new"}
    cache.put("graph", "huge", bytes(10_000))
    assert names(cache) == {"huge"}


def test_all_threads_get_one_content_that_is_made_once(tmp_path: Path) -> None:
    made: list[int] = []
    found: list[bytes] = []

    def make() -> bytes:
        made.append(1)
        return b"content"

    def ask() -> None:
        found.append(Cache(tmp_path).obtain("kernel", "k", make))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), found) == (1, [b"content"] * 8)
    assert [path.name for path in (tmp_path / "kernel").iterdir()] == ["k"]


def test_clearing_leaves_what_another_process_writes_now(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("kernel", "k", b"content")
    now, old = tmp_path / "kernel" / ".part-now", tmp_path / "kernel" / ".part-old"
    stale = tmp_path / "kernel" / ".lock-stale"
    for file in (now, old, stale):
        file.touch()
    os.utime(old, (0, 0))
    cache.clear()
    assert cache.entries() == []
    assert [path.name for path in (tmp_path / "kernel").iterdir()] == [".part-now"]


def test_the_place_is_that_of_the_standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "given"))
    assert open_cache().folder == tmp_path / "given" / "ingot"
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert open_cache().folder == tmp_path / "home" / ".cache" / "ingot"


def test_a_place_that_cannot_be_written_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first, second = open_cache(), open_cache()
    assert first == second
    assert first.obtain("kernel", "k", lambda: b"content") == b"content"
    assert second.find("kernel", "k") == b"content"
    (warning,) = told
    assert isinstance(warning.message, IngotWarning)
    assert str(warning.message) == (
        f"warning[no-cache]: the cache in {tmp_path}/file/ingot cannot be written"
        " (Not a directory): what is compiled is kept for this process only\n"
        "  fix: let XDG_CACHE_HOME name a folder that can be written and has room"
    )


def test_a_temporary_cache_goes_with_its_process(tmp_path: Path) -> None:
    code = """
import os, warnings
warnings.simplefilter("ignore")
from ingot.codegen.cache import open_cache
cache = open_cache()
cache.put("kernel", "k", b"content")
print(cache.folder, cache.find("kernel", "k"))
"""
    environment = {"HOME": "/proc/nowhere", "TMPDIR": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path)) and "b'content'" in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_full_disk_costs_the_entry_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    cache = Cache(tmp_path)
    cache.put("kernel", "old", b"content")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(IngotWarning, match=r"no-cache.*No space left on device"):
        assert cache.obtain("kernel", "new", lambda: b"more") == b"more"
    assert names(cache) == {"old"}
    assert [path.name for path in (tmp_path / "kernel").iterdir()] == ["old"]
