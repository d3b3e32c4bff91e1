"""A package put in its place: all of it or nothing, also where the process dies in between."""

import ctypes
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["put", "put_text", "scratch"]

EXCHANGE = 2
OLD = "-old"
"""What a package is called while another takes its place, where that takes two steps."""


@contextmanager
def scratch(place: Path) -> Iterator[Path]:
    """An empty folder beside a place, gone at the end unless it was put there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    with _held(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """A lock on a folder that ends with the process, however it ends; whether it was free."""
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(number)


def _sweep(place: Path) -> None:
    """Remove what compilers that were killed have left behind."""
    for folder in place.parent.glob(f".{place.name}-*"):
        if folder.is_dir() and not folder.name.endswith(OLD):
            with suppress(FileNotFoundError), _held(folder) as free:
                if free:
                    shutil.rmtree(folder, ignore_errors=True)


def put(folder: Path, place: Path) -> None:
    """Move a folder to its place in one step; what stood there takes the folder's name."""
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
        _synced(path)
    _synced(folder)
    if place.exists():
        _exchange(folder, place)
    else:
        folder.rename(place)
    _synced(place.parent)


def put_text(text: str, place: Path) -> None:
    """Write a file in one step."""
    place.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{place.name}-", dir=place.parent)
    with os.fdopen(number, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    Path(name).chmod(0o644)
    Path(name).replace(place)


def _exchange(a: Path, b: Path) -> None:
    """Swap two names; the kernel does it in one step, so that no moment shows neither."""
    libc = ctypes.CDLL(None, use_errno=True)
    swapped = getattr(libc, "renameat2", None)
    here = -100  # AT_FDCWD
    done = swapped is not None and not swapped(here, os.fsencode(a), here, os.fsencode(b), EXCHANGE)
    if not done:
        old = a.with_name(a.name + OLD)
        b.rename(old)
        a.rename(b)
        old.rename(a)


def _synced(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
