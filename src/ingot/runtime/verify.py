"""Whether a package can be trusted: all that is wrong with it, at once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingot.errors import IngotError, Problem
from ingot.package.metadata import Metadata, encoded
from ingot.package.seal import other_torch
from ingot.package.seal import wrong_files as sealed_files
from ingot.runtime.load import again_of, load, metadata_of

__all__ = ["folders_of", "wrong_with"]


def folders_of(place: Path) -> list[Path]:
    """The folders in which metadata lies: the place itself, or one for each device."""
    if next(place.glob("*_meta.json"), None):
        return [place]
    found = sorted({path.parent for path in place.glob("*/*_meta.json")})
    kept = [folder for folder in found if not folder.name.startswith(".")]
    if kept:
        return kept
    fix = "compile one: ingot compile FILE"
    raise IngotError([Problem("file-not-found", f"no package in '{place}'", None, fix)])


def wrong_with(folder: Path) -> Iterator[Problem]:
    """All that would keep a loader from using the package of one device."""
    try:
        meta, _ = metadata_of(folder, "cpu")
    except IngotError as error:
        yield from error.problems
        return
    again = again_of(meta)
    files = list(wrong_files(meta, folder, again))
    yield from files
    if meta.inductor is not None:
        yield from other_torch(meta.torch_version, again)
    if not files:
        yield from unloadable(meta, folder, again)


def wrong_files(meta: Metadata, folder: Path, again: str) -> Iterator[Problem]:
    """Files that are missing, changed, unknown, or named but not sealed by a digest."""
    yield from sealed_files(meta, folder, again)
    known = {*meta.digests, *(path.name for path in folder.glob("*_meta.json"))}
    for path in sorted(folder.iterdir()):
        if path.name not in known:
            message = f"'{path.name}' in {folder} is no part of the package"
            yield Problem("broken-package", message, None, f"remove it, or {again}")
    for name in sorted(named_files(meta) - set(meta.digests)):
        message = f"the metadata names '{name}', and holds no digest of it"
        yield Problem("broken-package", message, None, again)


def named_files(meta: Metadata) -> set[str]:
    """The files that the metadata of the backends speak of."""
    whole = json.loads(encoded(meta))
    endings = (".so", ".cubin", ".cpp", ".cu", ".h", ".pt2")

    def names(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield from [value] if value.endswith(endings) else []
        elif isinstance(value, dict):
            yield from (n for v in value.values() for n in names(v))
        elif isinstance(value, list):
            yield from (n for v in value for n in names(v))

    return set(names([whole["kernel"], whole["inductor"]]))


def unloadable(meta: Metadata, folder: Path, again: str) -> Iterator[Problem]:
    """Whether each backend that the package holds loads."""
    for backend in ("kernel", "inductor"):
        if getattr(meta, backend) is None:
            continue
        try:
            load(folder, device=meta.device, backend=backend)
        except IngotError as error:
            yield from (p for p in error.problems if p.code != "wrong-torch")
        except (OSError, RuntimeError, AttributeError) as error:
            message = f"the {backend} backend does not load: {error}"
            yield Problem("broken-package", message, None, again)
