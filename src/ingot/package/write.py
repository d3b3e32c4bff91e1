"""A package put in its place: all of it or nothing, also where the process dies in between."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ingot.codegen.disk import writable
from ingot.errors import IngotError, Problem
from ingot.platform import FOLDERS_CAN_BE_OPENED, exchange_names, lock_file

__all__ = [
    "choose_place", "find_older", "open_file", "open_scratch", "put", "put_all", "put_file",
    "put_text", "read_program", "save_tensors",
]  # fmt: skip

MEETINGS = 100
"""How often another process may put a folder in the same place at the same moment."""

OLDER = ".older"
"""The file of a package that names folders of devices which wait for the compile beside them."""

OLD = "-old"
"""What a package is called while another takes its place, where that takes two steps."""


def choose_place(folder: object, *names: str) -> Path:
    """Where a package may be put: nothing is there, or only what a package has, which goes.

    names: the files of a kind that has no metadata which names them.
    """
    if not isinstance(folder, str | os.PathLike) or not str(folder):
        told = f"{folder!r} is no folder"
        raise _refuse_place(told, "give the path of a folder, which need not be there")
    place = Path(folder)
    with writable():
        place = place.resolve() if place.is_symlink() else place
        if place.resolve() in (Path.cwd(), *Path.cwd().parents):
            told = f"'{folder}' is or holds the working folder, which cannot be replaced"
            raise _refuse_place(told, "name a folder inside of it")
        found = sorted(place.iterdir()) if place.exists() else []  # a file is told by the system
        ours = {*names, *_list_packaged(found)}
    foreign = [p.name for p in found if p.name not in ours or p.is_dir()]
    if foreign:
        some = "', '".join(foreign[:3])
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        told = f"'{folder}' holds '{some}'{more}, which is of no package and would be lost"
        raise _refuse_place(told, "give a folder that is new or empty, or move these away")
    return place


def _list_packaged(files: list[Path]) -> Iterator[str]:
    """The files that metadata among them names, and the metadata itself."""
    for file in files:
        if file.suffix == ".json" and file.is_file():
            with suppress(ValueError, RecursionError):
                head = json.loads(file.read_bytes())
                if isinstance(head, dict) and str(head.get("format")).startswith("ingot"):
                    yield from (file.name, *head.get("digests", ()))


def _refuse_place(told: str, fix: str) -> IngotError:
    return IngotError([Problem("foreign-files", told, None, fix)])


@contextmanager
def open_scratch(place: Path) -> Iterator[Path]:
    """An empty folder beside a place, gone at the end unless it was put there."""
    with writable(), _open_beside(place, tempfile.mkdtemp) as folder:
        yield folder


@contextmanager
def _open_beside(place: Path, make: Callable[..., str]) -> Iterator[Path]:
    """A file or folder beside a place, locked while it is in use, and gone at the end."""
    with writable(any_error=True):
        place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    with ExitStack() as stack:
        while True:
            made = Path(make(prefix=_make_prefix(place), dir=place.parent))
            # until it is locked another process may take it for one left behind, and remove it
            with suppress(FileNotFoundError):
                if stack.enter_context(_hold(made)) and made.exists():
                    break
        try:
            yield made
        finally:
            _remove(made)


def _make_prefix(place: Path) -> str:
    return f".{place.name}-ingot-"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _hold(path: Path) -> Iterator[bool]:
    """A lock on a path that ends with the process, however it ends; whether it was free."""
    if not FOLDERS_CAN_BE_OPENED:  # all are taken to be in use
        yield path.exists()
        return
    number = os.open(path, os.O_RDONLY)
    try:
        yield lock_file(number, wait=False)
    finally:
        os.close(number)


def _sweep(place: Path) -> None:
    """Remove what processes that were killed have left behind."""
    for path in place.parent.glob(f"{_make_prefix(place)}*"):
        if not path.name.endswith(OLD) and FOLDERS_CAN_BE_OPENED:
            with suppress(FileNotFoundError), _hold(path) as free:
                if free:
                    _remove(path)


def put(folder: Path, place: Path) -> None:
    """Move a folder to its place in one step; what stood there takes the folder's name."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        _sync(path)
    for _ in range(MEETINGS):
        try:
            if place.exists():
                _exchange(folder, place)
            else:
                folder.rename(place)
            break
        except OSError as error:
            # another process was quicker: its folder has come, or is on its way
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    _sync(place.parent)


def put_all(folders: Mapping[Path, Path]) -> None:
    """Move folders of one package to their places, each in one step, by place.

    Those that still wait are marked as older than the others: the process may end in between. So is
    what lies beside them and is of another program, of a device that was not compiled for.
    """
    waiting = list(folders)
    for place, folder in folders.items():
        waiting.remove(place)
        _mark_older(place.parent, find_older(place.parent) | {each.name for each in waiting})
        put(folder, place)
        _mark_older(place.parent, find_older(place.parent) - {place.name})
    for place in folders:
        _mark_older(place.parent, find_older(place.parent) ^ _find_misjudged(place))


def _find_misjudged(place: Path) -> set[str]:
    """The folders beside a new one that are marked as older and are not, or the other way round."""
    older, own = find_older(place.parent), read_program(place)
    beside = {each.name: read_program(each) for each in place.parent.iterdir() if each.is_dir()}
    told = {n: x != own for n, x in beside.items() if own and x and not n.startswith(".")}
    return {n for n, is_older in told.items() if is_older != (n in older)}


def read_program(folder: Path) -> str:
    """What the metadata of a device's folder says that it computes, as a hash.

    Nothing where it says nothing, or is not one file that can be read.
    """
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        (file,) = folder.glob("*_meta.json")
        return str(json.loads(file.read_bytes())["origin"].get("program", ""))
    return ""


def find_older(parent: Path) -> set[str]:
    """The folders of a package that are older than those beside them: a compile did not end."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return set((parent / OLDER).read_text().split())
    return set()


def _mark_older(parent: Path, names: Collection[str]) -> None:
    if names:
        put_text(" ".join(sorted(names)), parent / OLDER)
    else:
        (parent / OLDER).unlink(missing_ok=True)


def put_text(text: str, place: Path) -> None:
    """Write a text file in one step."""
    put_file(text.encode(), place)


def put_file(content: bytes, place: Path) -> None:
    """Write a file in one step; what was there stays where that fails."""
    with open_file(place) as file:
        file.write_bytes(content)


@contextmanager
def open_file(place: Path) -> Iterator[Path]:
    """An empty file beside a place, which takes that place at the end unless something fails."""
    with writable(), _open_beside(place, _make_empty_file) as file:
        yield file
        _sync(file)
        file.chmod(0o644)
        file.replace(place)


def _make_empty_file(**named: Any) -> str:
    number, name = tempfile.mkstemp(**named)
    os.close(number)
    return name


def save_tensors(value: Any, file: Path) -> None:
    """Write tensors; given a name instead of a stream torch does not say what the disk refuses."""
    import torch

    with file.open("wb") as stream:
        torch.save(value, stream)


def _exchange(a: Path, b: Path) -> None:
    """Swap two names; the kernel does it in one step, so that no moment shows neither."""
    if not exchange_names(a, b):
        old = a.with_name(a.name + OLD)
        b.rename(old)
        a.rename(b)
        old.rename(a)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
