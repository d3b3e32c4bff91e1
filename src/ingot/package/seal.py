"""What every package on disk has: a format, a version of its layout, a seal, digests of its files.

A package is a closed world. Metadata is sealed by a digest of its own text, names every file that
is opened, and holds the digest of each; archives and sources carry the *contract*, a digest of the
metadata that they were compiled with. All of it is read once and checked before any is opened.
"""

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import msgspec

from ingot.codegen.cpu_levels import find_supported_levels
from ingot.errors import Problem, raise_if
from ingot.graphs.torch_private import VERSION
from ingot.messages import refuse, tell

__all__ = [
    "BLANK",
    "GRAPHS",
    "Digest",
    "Seal",
    "compute_contract",
    "digest_of",
    "find_other_level",
    "find_other_torch",
    "find_wrong_files",
    "open_metadata",
    "read_files",
    "read_torch_version",
    "seal",
    "seal_metadata",
    "stamp",
    "write_sealed",
]  # fmt: skip

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""A SHA-256 in hexadecimal."""

GRAPHS = "graphs.json"
"""What describes a package of a joint or of regions; that of a model is NAME_meta.json."""

BLANK = "0" * 64
"""What stands in the place of the seal while it is computed."""

WILD = "not finite"
"""The key under which nan, inf and -inf stand in metadata."""

MARK = b"ingot contract "
ENDS = {".cpp": b"// ", ".cu": b"// ", ".txt": b"# "}
"""How a source begins the line that carries the contract; archives carry it as their comment."""


class Seal(Protocol):
    """Metadata of any kind of package; it is a msgspec.Struct."""

    @property
    def digests(self) -> Mapping[str, str]:
        """The SHA-256 of every file."""
        ...

    @property
    def files(self) -> Iterable[str]:
        """The files that the metadata names."""
        ...


T = TypeVar("T")


def read_torch_version() -> str:
    """The version of torch here, without the name of its build."""
    return VERSION


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


# writing


def compute_contract(metadata: Any) -> str:
    """The digest of what metadata says of the code that was compiled with it.

    That is all but the digests of files and the version of torch, which is held against the one
    that is there.
    """
    bare = msgspec.structs.replace(metadata, digests={}, seal=BLANK, torch_version="")
    return hashlib.sha256(_encode(bare, order="deterministic")).hexdigest()


def _encode(metadata: Any, order: Literal["deterministic"] | None = None) -> bytes:
    """Metadata as JSON; numbers that JSON does not have stand in objects of their own."""
    return msgspec.json.encode(_spell(msgspec.to_builtins(metadata)), order=order)


def _spell(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spell(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(entry) for entry in value]
    wild = isinstance(value, float) and not math.isfinite(value)
    return {WILD: str(value)} if wild else value


def _decode(text: bytes, kind: type[T]) -> T:
    """The metadata that `_encode` has written."""
    if WILD.encode() not in text:
        return msgspec.json.decode(text, type=kind)
    found = json.loads(text, object_hook=lambda o: float(o[WILD]) if {*o} == {WILD} else o)
    return msgspec.convert(found, type=kind, str_keys=True)


def stamp(content: bytes, name: str, contract: str) -> bytes:
    """The content of an archive or a source, carrying a contract in the place of any other."""
    mark = MARK + contract.encode()
    if name.endswith(".pt2"):
        end = content.rindex(b"PK\x05\x06") + 20  # where an archive says how long its comment is
        return content[:end] + struct.pack("<H", len(mark)) + mark
    comment = ENDS[Path(name).suffix]
    body = content.partition(b"\n" + comment + MARK)[0]
    return body.rstrip(b"\n") + b"\n" + comment + mark + b"\n"


def seal(text: bytes) -> bytes:
    """The text of metadata with its seal: the digest of itself with zeros in that place.

    Nothing where there is no place for it.
    """
    places = [*re.finditer(rb'"seal"\s*:\s*"([0-9a-f]{64})"', text)]
    if not places:
        return b""
    begin, end = places[-1].span(1)
    blank = text[:begin] + BLANK.encode() + text[end:]
    return text[:begin] + hashlib.sha256(blank).hexdigest().encode() + text[end:]


def seal_metadata(metadata: Any) -> bytes:
    """The text of metadata, indented for people, with its seal."""
    blank = msgspec.structs.replace(metadata, seal=BLANK)
    return seal(msgspec.json.format(_encode(blank), indent=1) + b"\n")


def write_sealed(metadata: Any, file: Path) -> Any:
    """Stamp and digest the files of a folder, write metadata beside them; what was written."""
    contract = compute_contract(metadata)
    for path in file.parent.iterdir():
        if path.name.endswith((".pt2", *ENDS)):
            path.write_bytes(stamp(path.read_bytes(), path.name, contract))
    digests = {p.name: digest_of(p) for p in sorted(file.parent.iterdir())}
    text = seal_metadata(msgspec.structs.replace(metadata, digests=digests))
    file.write_bytes(text)
    return _decode(text, type(metadata))


# reading


def open_metadata(file: Path, kind: type[T], form: str, schema: int, again: str) -> T:
    """The metadata of a file, refused where it is none, was changed, or has another layout.

    again: how to make the package anew, unless the file itself tells the command.
    """
    problem, text = _read_content(file.parent, file.name, again)
    raise_if([problem] if problem else [])
    try:
        head: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refuse("no json", file=file.name, error=_tell_fault(error), again=again) from None
    if not isinstance(head, dict) or head.get("format") != form:
        raise refuse("no format", file=file.name, form=form, again=again)
    if head.get("schema_version") != schema:
        origin = head.get("origin")
        command = origin.get("command") if isinstance(origin, dict) else None
        again = f"compile it again: {command}" if command else again
        found = head.get("schema_version")
        found = type(found)() if isinstance(found, dict | list) else found  # whatever it holds
        raise refuse("schema", file=file.name, found=found, schema=schema, again=again)
    try:
        found = _decode(text, kind)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise refuse("layout", file=file.name, error=error, again=again) from None
    if text != seal(text):
        raise refuse("seal", file=file.name, again=again)
    return found


def _tell_fault(error: ValueError | RecursionError) -> str:
    """An error of Python's reader of JSON in the words of all its versions: newer ones tell a comma
    before a bracket, older ones what is missing behind it.
    """
    comma = "Illegal trailing comma before end of "
    if not isinstance(error, json.JSONDecodeError) or not error.msg.startswith(comma):
        return str(error)
    missing = "Expecting property name enclosed in double quotes"
    told = "Expecting value" if error.msg.endswith("array") else missing
    at = len(error.doc) - len(error.doc[error.pos + 1 :].lstrip())
    return str(json.JSONDecodeError(told, error.doc, at))


def find_other_torch(version: str, again: str) -> Iterator[Problem]:
    """Graphs run only with the torch that compiled them."""
    if version != read_torch_version():
        yield tell("other torch", held=version, here=read_torch_version(), again=again)


def find_other_level(level: str) -> Iterator[Problem]:
    """Graphs run only on CPUs that have what they were compiled for."""
    if level not in find_supported_levels():
        told = (
            f"the package was compiled for {level}, this machine runs {find_supported_levels()[0]}"
        )
        yield Problem("wrong-level", told, None, "compile it on a machine like this one")


def read_files(metadata: Seal, folder: Path, again: str) -> dict[str, bytes]:
    """The content of every file of a package, each of which is the one that was compiled.

    Other files of the folder are not looked at.
    """
    contents: dict[str, bytes] = {}
    raise_if(find_wrong_files(metadata, folder, again, contents))
    return contents


def find_wrong_files(
    metadata: Seal, folder: Path, again: str, contents: dict[str, bytes] | None = None
) -> Iterator[Problem]:
    """Files that are missing, lie elsewhere, are not named and sealed alike, or were changed.

    contents: receives what was read of those that are right.
    """
    named = set(metadata.files)
    for name in sorted(named - set(metadata.digests)):
        yield tell("no digest", file=name, again=again)
    for name in sorted(set(metadata.digests) - named):
        yield tell("no name", file=name, again=again)
    contract = MARK + compute_contract(metadata).encode()
    for name, wanted in metadata.digests.items():
        problem, content = _read_content(folder, name, again)
        if problem is not None:
            yield problem
        elif hashlib.sha256(content).hexdigest() != wanted:
            yield tell("digest", file=name, again=again)
        elif name.endswith((".pt2", *ENDS)) and content.rstrip(b"\n")[-len(contract) :] != contract:
            yield tell("contract", file=name, again=again)
        elif contents is not None:
            contents[name] = content


def _read_content(folder: Path, name: str, again: str) -> tuple[Problem | None, bytes]:
    """The content of a file that lies in a folder itself, or why there is none."""

    def refused(key: str, **values: object) -> tuple[Problem, bytes]:
        return tell(key, **{"file": name, "folder": folder, "again": again, **values}), b""

    if not name or name in (".", "..") or any(c in name for c in "/\\\0"):
        return refused("bad name", file=repr(name))
    file = folder / name
    try:
        real = file.resolve()
        if not file.exists():
            return refused("missing file")
        if real.parent != folder.resolve():
            return refused("link")
        if not real.is_file():
            return refused("no file")
        return None, real.read_bytes()
    except (OSError, RuntimeError) as error:
        return refused("unreadable file", error=error)
