"""The one cache of all that is generated: kernels, graphs, sequences of fields, their CUDA code.

An entry is a file: the digest of its content, then the content. What does not match is made anew.
"""

import hashlib
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ingot.codegen.locks import locked
from ingot.errors import IngotWarning, Problem

__all__ = ["LIMIT", "Cache", "Entry", "key_of", "open_cache", "place_of_cache"]

LIMIT = 2 * 2**30
"""The most bytes that are kept: some thousand graphs of 2 MB, which torch compiles for hours."""

ABANDONED = 3600.0
"""After how many seconds a half-written file is taken to be left by a process that was killed."""

LOOKS = 64
"""A folder is looked through before each of so many parts of its limit is written: to count all
entries at every write takes as long as there are many."""

_WRITTEN: dict[Path, int] = {}
"""How many bytes this process has written into a folder since it looked through it."""

_DIGEST = hashlib.sha256().digest_size
_PARTIAL, _LOCK = ".part-", ".lock-"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of an entry; its size is in bytes, its last use in seconds since 1970."""

    kind: str
    key: str
    size: int
    used: float


@dataclass(frozen=True, slots=True)
class Cache:
    """Contents by kind and key, in a folder that processes share."""

    folder: Path
    limit: int = LIMIT

    def find(self, kind: str, key: str) -> bytes | None:
        """The content of an entry; one that is damaged is removed, and is none."""
        file = self._file(kind, key)
        try:
            stored = file.read_bytes()
        except OSError:
            return None
        content = stored[_DIGEST:]
        if hashlib.sha256(content).digest() != stored[:_DIGEST]:
            self.forget(kind, key)
            return None
        with suppress(OSError):
            os.utime(file)
        return content

    def put(self, kind: str, key: str, content: bytes) -> None:
        """Write an entry in one step; where that fails a warning tells it, and nothing is kept."""
        file = self._file(kind, key)
        partial: Path | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(prefix=_PARTIAL, dir=file.parent)
            partial = Path(name)
            with os.fdopen(number, "wb") as stream:
                stream.write(hashlib.sha256(content).digest() + content)
            partial.replace(file)
        except OSError as error:
            if partial is not None:
                partial.unlink(missing_ok=True)
            _warn_unwritable(self.folder, error, "it is made again when it is next needed")
        else:
            self._evict(keep=file, added=len(content))

    def obtain(self, kind: str, key: str, make: Callable[[], bytes]) -> bytes:
        """The content of an entry, made and kept if there is none; processes that meet wait."""
        content = self.find(kind, key)
        if content is not None:
            return content
        with ExitStack() as stack:
            with suppress(OSError):  # where nothing can be written there is no lock; `put` tells it
                (self.folder / kind).mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self._lock(kind, key)))
            content = self.find(kind, key)
            if content is None:
                content = make()
                self.put(kind, key, content)
        return content

    def forget(self, kind: str, key: str) -> None:
        """Remove an entry."""
        with suppress(OSError):
            self._file(kind, key).unlink()

    def entries(self) -> list[Entry]:
        """All entries, the one that was used last first."""
        found = [
            Entry(file.parent.name, file.name, status.st_size, status.st_mtime)
            for file, status in self._files()
            if not file.name.startswith((_PARTIAL, _LOCK))
        ]
        return sorted(found, key=lambda entry: -entry.used)

    def clear(self) -> None:
        """Remove all entries; what a process is making now comes afterwards."""
        for entry in self.entries():
            self.forget(entry.kind, entry.key)
        self._sweep()

    def _file(self, kind: str, key: str) -> Path:
        return self.folder / kind / key

    def _lock(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{_LOCK}{key}"

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for file in self.folder.glob("*/*"):
            with suppress(OSError):
                if file.is_file():
                    yield file, file.stat()

    def _sweep(self) -> None:
        """Remove what killed processes have left: locks nobody holds, and files half written."""
        for file, status in self._files():
            with suppress(OSError):
                if file.name.startswith(_LOCK):
                    with locked(file, wait=False):
                        pass
                elif file.name.startswith(_PARTIAL) and time.time() - status.st_mtime > ABANDONED:
                    file.unlink()

    def _evict(self, keep: Path, added: int) -> None:
        """Remove what was used longest ago until the rest fits, but nothing that is locked."""
        written = _WRITTEN.get(self.folder, self.limit) + added
        is_near = written * LOOKS >= self.limit
        _WRITTEN[self.folder] = 0 if is_near else written
        if not is_near:
            return
        entries = self.entries()
        size = sum(entry.size for entry in entries)
        if size <= self.limit:
            return
        self._sweep()
        for entry in reversed(entries):
            if size <= self.limit:
                return
            if self._file(entry.kind, entry.key) == keep:
                continue
            with locked(self._lock(entry.kind, entry.key), wait=False) as free:
                if free:
                    self.forget(entry.kind, entry.key)
                    size -= entry.size


def key_of(*parts: str | bytes) -> str:
    """The key of what depends on these parts and on nothing else."""
    whole = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        # with its length before it, no part can be taken for the end of another
        whole.update(len(content).to_bytes(8, "little") + content)
    return whole.hexdigest()[:40]


def place_of_cache() -> Path:
    """Where what is generated is kept: in $XDG_CACHE_HOME, or else in ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # the standard says that a relative path is to be ignored
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "ingot"


def open_cache(folder: Path | None = None) -> Cache:
    """The cache of a folder, or of this user; a temporary one where that cannot be written."""
    if folder is not None:
        return Cache(folder)
    try:
        place = place_of_cache()
    except RuntimeError as error:  # there is no home
        return _temporary(Path("~"), str(error))
    return _checked(place)


@cache
def _checked(place: Path) -> Cache:
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return Cache(place)
    except OSError as error:
        return _temporary(place, error.strerror or str(error))


@cache
def _temporary(place: Path, why: str) -> Cache:
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="ingot-cache-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _warn_unwritable(place, why, "what is compiled is kept for this process only")
    return Cache(folder)


def _warn_unwritable(place: Path, why: object, effect: str) -> None:
    said = getattr(why, "strerror", None) or str(why)
    problem = Problem(
        "no-cache", f"the cache in {place} cannot be written ({said}): {effect}", None,
        "let XDG_CACHE_HOME name a folder that can be written and has room",
    )  # fmt: skip
    _tell_once(problem)


@cache
def _tell_once(problem: Problem) -> None:
    warnings.warn(IngotWarning(problem), stacklevel=4)
