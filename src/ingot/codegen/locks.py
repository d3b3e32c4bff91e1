"""A lock on an open file that ends with the process that holds it, however that ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ingot.platform import lock_file

__all__ = ["locked"]


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a name, and whether it is held; its file is there while someone holds it."""
    while True:
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        free = lock_file(number, wait=wait)
        if not free or _is_file(number, path):
            break
        # who held it before has removed the name: a lock on a file without one keeps nobody out
        os.close(number)
    try:
        yield free
    finally:
        if free:
            with suppress(OSError):
                path.unlink()
        os.close(number)


def _is_file(number: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False
