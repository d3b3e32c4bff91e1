"""What a disk refuses, in the user's words: a full one is no fault of a compiler."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingot.errors import IngotError, Problem

__all__ = ["FULL", "raise_if_full", "unwritable", "writable"]

FULL = {errno.ENOSPC: "No space left on device", errno.EFBIG: "File too large"}
if hasattr(errno, "EDQUOT"):  # Windows has none
    FULL[errno.EDQUOT] = "Disk quota exceeded"

LITTLE = 2**20
"""With less room than these bytes the smallest graph is not written."""

TAKEN = {errno.ENOTDIR, errno.EISDIR, errno.EEXIST}
"""A file or a device where a folder belongs, or the reverse."""

PLACES = {*TAKEN, errno.ENAMETOOLONG, errno.ELOOP}
"""The same, or a name that cannot be."""

REFUSED = {*FULL, *PLACES, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}


@contextmanager
def writable(*, any_error: bool = False) -> Iterator[None]:
    """Tell of a file that cannot be written; any_error: also of a place that is not there."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        found = _refusal(error)
        if found is None or not (any_error or found.errno in REFUSED):
            raise
        raise IngotError([unwritable(found)]) from error


def _refusal(error: BaseException | None) -> OSError | None:
    """The error of the disk: torch raises another while it handles that, HDF5 only speaks of it."""
    while error is not None and not isinstance(error, OSError):
        for number, text in FULL.items():
            if text in str(error):
                return OSError(number, text)
        error = error.__context__
    return error


def unwritable(error: OSError) -> Problem:
    """The problem of a file that cannot be written."""
    path = error.filename2 or error.filename
    name = f"'{path}'" if path else "a file"
    why = error.strerror or str(error)
    fix = "check its folder, the rights and the room left there"
    if error.errno in TAKEN and path and (other := _find_in_the_way(Path(os.fsdecode(path)))):
        why = f"'{other}' is {'a folder' if other.is_dir() else 'no folder'}"
        fix = f"name another place, or move '{other}' away"
    return Problem("unwritable", f"{name} cannot be written: {why}", fix=fix)


def _find_in_the_way(place: Path) -> Path | None:
    """The first name on the way to a place that is no folder, or the place itself, if it is one."""
    way = next(
        (p for p in (*reversed(place.parents), place) if p.exists() and not p.is_dir()), None
    )
    return way or (place if place.is_dir() else None)


def raise_if_full(said: str) -> None:
    """An error where a compiler failed since it found no room for its files, whatever it says."""
    scratch = tempfile.gettempdir()
    why = next((text for text in FULL.values() if text.lower() in said.lower()), None)
    if why is None and shutil.disk_usage(scratch).free < LITTLE:
        why = FULL[errno.ENOSPC]
    if why is not None:
        message = f"the compiler cannot write its files: {why}"
        fix = f"make room in {scratch}, or let TMPDIR name a folder with room"
        raise IngotError([Problem("unwritable", message, fix=fix)])
