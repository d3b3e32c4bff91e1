"""What every package on disk has: a format, a version of its layout, digests of its files."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ingot.errors import IngotError, Problem
from ingot.execute.levels import supported
from ingot.graphs.torch_private import VERSION

__all__ = [
    "Seal", "content_of", "digest_of", "opened", "other_level", "other_torch", "torch_version",
    "wrong_files",
]  # fmt: skip


class Seal(Protocol):
    """Metadata of any kind of package."""

    @property
    def digests(self) -> Mapping[str, str]:
        """The SHA-256 of every file."""
        ...


T = TypeVar("T")


def torch_version() -> str:
    """The version of torch here, without the name of its build."""
    return VERSION


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def opened(file: Path, kind: type[T], form: str, schema: int, again: str) -> T:
    """The metadata of a file, refused where it is none, or of another format or layout.

    again: how to make the package anew, unless the file itself tells the command.
    """
    text = file.read_bytes()
    try:
        head: Any = json.loads(text)
    except ValueError as error:
        raise _problem("broken-package", f"{file.name} is no JSON: {error}", again) from None
    if not isinstance(head, dict) or head.get("format") != form:
        raise _problem("broken-package", f"{file.name} describes no package '{form}'", again)
    if head.get("schema_version") != schema:
        origin = head.get("origin")
        command = origin.get("command") if isinstance(origin, dict) else None
        raise _problem(
            "wrong-schema",
            f"{file.name} has schema version {head.get('schema_version')}, this Ingot reads"
            f" {schema}",
            f"compile it again: {command}" if command else again,
        )
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise _problem("broken-package", f"{file.name}: {error}", again) from None


def other_torch(version: str, again: str) -> Iterator[Problem]:
    """Graphs run only with the torch that compiled them."""
    if version != torch_version():
        told = f"the package was compiled by torch {version}, this is {torch_version()}"
        yield Problem("wrong-torch", told, None, again)


def other_level(level: str) -> Iterator[Problem]:
    """Graphs run only on CPUs that have what they were compiled for."""
    if level not in supported():
        told = f"the package was compiled for {level}, this machine runs {supported()[0]}"
        yield Problem("wrong-level", told, None, "compile it on a machine like this one")


def wrong_files(sealed: Seal, folder: Path, again: str) -> Iterator[Problem]:
    """Files that are missing, or are not those that were compiled."""
    for name, wanted in sealed.digests.items():
        file = folder / name
        if not file.exists():
            yield Problem("broken-package", f"'{name}' is missing from {folder}", None, again)
        elif digest_of(file) != wanted:
            told = f"'{name}' was changed after it was compiled"
            yield Problem("broken-package", told, None, again)


def content_of(sealed: Seal, folder: Path, name: str, again: str) -> bytes:
    """The bytes of a file, checked to be those that were compiled, so that just they are opened."""
    try:
        content = (folder / name).read_bytes()
    except OSError:
        content = None
    if content is None or hashlib.sha256(content).hexdigest() != sealed.digests.get(name):
        raise _problem("broken-package", f"'{name}' was changed after it was compiled", again)
    return content


def _problem(code: str, message: str, fix: str) -> IngotError:
    return IngotError([Problem(code, message, None, fix)])
