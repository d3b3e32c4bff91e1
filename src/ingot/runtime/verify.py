"""Whether a package can be trusted: all that is wrong with it, at once."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from ingot.errors import IngotError, Problem
from ingot.execute.devices import tell_missing
from ingot.options import Device, PackagedBackend
from ingot.package.metadata import Metadata
from ingot.package.seal import find_other_torch
from ingot.package.seal import find_wrong_files as sealed_files
from ingot.runtime.loader import again_of, find_other_folder, load, metadata_of

__all__ = ["find_mixed", "folders_of", "tell_elsewhere", "wrong_with"]


def folders_of(place: Path) -> list[Path]:
    """The folders in which metadata lies: the place itself, or one for each device."""
    found: list[Path] = []
    if os.path.isdir(place):
        if next(place.glob("*_meta.json"), None):
            return [place]
        found = sorted({path.parent for path in place.glob("*/*_meta.json")})
        # a folder of a device that has lost its metadata is one too
        named = [place / device for device in get_args(Device)] if found else []
        found = sorted({*found, *(folder for folder in named if folder.is_dir())})
    kept = [folder for folder in found if not folder.name.startswith(".")]
    if kept:
        return kept
    fix = "compile one: ingot compile FILE"
    raise IngotError([Problem("file-not-found", f"no package in '{place}'", None, fix)])


def wrong_with(folder: Path, *, untrusted: bool = False) -> Iterator[Problem]:
    """All that would keep a loader from using the package of one device.

    Nothing of an `untrusted` package is loaded: its files are checked alone.
    """
    try:
        meta, _ = metadata_of(folder, folder.name)
    except IngotError as error:
        yield from error.problems
        return
    again = again_of(meta)
    if folder.name in get_args(Device) and folder.name != meta.device:
        message = f"the folder '{folder.name}' holds a package for {meta.device}"
        yield Problem("broken-package", message, None, again)
        return
    files = list(wrong_files(meta, folder, again))
    yield from files
    if meta.inductor is not None:
        yield from find_other_torch(meta.torch_version, again)
    if not files and not untrusted:
        yield from unloadable(meta, folder, again)


def find_mixed(folders: Sequence[Path], place: Path) -> Iterator[Problem]:
    """Folders of different programs, of which each is right by itself; place: what names them,
    their stub or the folder above.
    """
    from ingot.hit import read
    from ingot.runtime.stub import find_other_program, require_stub

    for folder in folders:
        meta, _ = metadata_of(folder, folder.name)
        if place.suffix == ".i":
            yield from find_other_program(meta, require_stub(read(place)))
        if folder == folders[0] and len(folders) > 1:
            yield from find_other_folder(meta, folder)


def tell_elsewhere(folder: Path) -> str:
    """Why the code of a package is for other machines than this one; nothing where it is not."""
    meta, _ = metadata_of(folder, folder.name)
    return tell_missing(meta.device)


def wrong_files(meta: Metadata, folder: Path, again: str) -> Iterator[Problem]:
    """Files that are no part of the package, and all that is wrong with those that are."""
    yield from sealed_files(meta, folder, again)
    known = {*meta.digests, *(path.name for path in folder.glob("*_meta.json"))}
    for path in sorted(folder.iterdir()):
        if path.name not in known:
            message = f"'{path.name}' in {folder} is no part of the package"
            yield Problem("broken-package", message, None, f"remove it, or {again}")


def unloadable(meta: Metadata, folder: Path, again: str) -> Iterator[Problem]:
    """Whether each backend that the package holds loads."""
    for backend in get_args(PackagedBackend):
        if getattr(meta, backend) is None:
            continue
        try:
            load(folder, device=meta.device, backend=backend)
        except IngotError as error:
            # nothing is wrong with a package that another machine runs
            elsewhere = ("wrong-torch", "no-device", "wrong-architecture")
            yield from (p for p in error.problems if p.code not in elsewhere)
        except (OSError, RuntimeError, AttributeError) as error:
            message = f"the {backend} backend does not load: {error}"
            yield Problem("broken-package", message, None, again)
