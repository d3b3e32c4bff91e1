"""Joint -> folder -> Joint: what a process that never saw the source needs, checked at loading.

A package is native code: load only packages you trust as you trust a program.
"""

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from torch import Tensor, nn

from ingot.codegen.cpu_levels import find_supported_levels
from ingot.errors import IngotError, Problem, raise_if
from ingot.package.seal import (
    BLANK,
    Digest,
    find_other_level,
    find_other_torch,
    open_metadata,
    read_files,
    read_torch_version,
    write_sealed,
)
from ingot.train.compile import Half, from_source, inductor
from ingot.train.module import Joint
from ingot.train.signature import FORMAT, SCHEMA, Saved, Signature

__all__ = ["Described", "from_bytes", "load", "read_description", "save", "to_bytes"]

NAME = "joint.json"
STATE = "state.pt"
GRAPH = "{}_graph.txt"
"""The graph of a half for readers; nothing runs it."""
AGAIN = "trace and save the joint again"


class Described(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The metadata of a package."""

    format: str
    schema_version: int
    torch_version: str
    level: str
    partition: str
    halves: dict[Literal["forward", "backward"], Literal["inductor", "eager"]]
    signature: Signature
    saved: Saved
    digests: dict[str, Digest]
    seal: Digest = BLANK

    @property
    def files(self) -> tuple[str, ...]:
        """The state, and the files of both halves."""
        parts = {"inductor": (GRAPH, "{}.pt2"), "eager": (GRAPH, "{}.py.txt", "{}_constants.pt")}
        names = [f.format(name) for name, kind in self.halves.items() for f in parts[kind]]
        return (STATE, *names)


def save(joint: Joint, folder: str | Path) -> Path:
    """Write a package in one step: the old one, or the new one, is there at any moment."""
    # the room of packages imports what reads input files, which loading does not need
    from ingot.package.write import open_scratch, put, save_tensors

    halves = {"forward": joint.forward_half, "backward": joint.backward_half}
    present = {name: half for name, half in halves.items() if half is not None}
    for name, half in present.items():
        if half.kind == "callable":
            told = f"the {name} graph was compiled by a callable, which a package cannot hold"
            fix = f"compile_{name}='inductor' or 'eager' can be saved"
            raise IngotError([Problem("unsaveable", told, None, fix)])
    place = Path(folder)
    with open_scratch(place) as made:
        for name, half in present.items():
            _write(half, made, name)
        values = [t.detach().clone() for t in joint.held()]
        save_tensors(values, made / STATE)
        kinds: Any = {name: half.kind for name, half in present.items()}
        described = Described(
            FORMAT, SCHEMA, read_torch_version(), find_supported_levels()[0], joint.strategy, kinds,
            joint.signature, joint.saved, {},
        )  # fmt: skip
        write_sealed(described, made / NAME)
        put(made, place)
    return place


def _write(half: Half, folder: Path, name: str) -> None:
    from ingot.package.write import save_tensors

    (folder / GRAPH.format(name)).write_text(half.text)
    if half.kind == "inductor":
        (folder / f"{name}.pt2").write_bytes(half.archive)
    else:
        (folder / f"{name}.py.txt").write_text(half.source)
        save_tensors(half.constants, folder / f"{name}_constants.pt")


def load(folder: str | Path) -> Joint:
    """The joint of a package, refused where anything does not fit."""
    place = Path(folder)
    described = read_description(place)
    contents = read_files(described, place, AGAIN)
    halves = {name: _half(kind, contents, name) for name, kind in described.halves.items()}
    values: list[Tensor] = torch.load(io.BytesIO(contents[STATE]), weights_only=True)
    signature = described.signature
    tensors = [
        nn.Parameter(v, requires_grad=h.tensor.requires_grad) if h.parameter else v
        for h, v in zip(signature.held, values, strict=True)
    ]
    return Joint(
        signature, described.saved, halves["forward"], halves.get("backward"), tensors,
        strategy=described.partition,
    )  # fmt: skip


def to_bytes(joint: Joint) -> dict[str, bytes]:
    """The files of a package, for pickle."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as scratch:
        place = save(joint, Path(scratch) / "joint")
        return {file.name: file.read_bytes() for file in place.iterdir()}


def from_bytes(files: Mapping[str, bytes]) -> Joint:
    """The joint of a package's files."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as scratch:
        for name, content in files.items():
            (Path(scratch) / name).write_bytes(content)
        return load(scratch)


def _half(kind: str, contents: Mapping[str, bytes], name: str) -> Half:
    text = contents[GRAPH.format(name)].decode()
    if kind == "inductor":
        archive = contents[f"{name}.pt2"]
        return Half(kind, inductor(archive), archive, text=text)
    source = contents[f"{name}.py.txt"].decode()
    constants = torch.load(io.BytesIO(contents[f"{name}_constants.pt"]), weights_only=True)
    run = from_source(source, constants)
    return Half(kind, run, source=source, constants=constants, text=text)


def read_description(folder: Path) -> Described:
    """The metadata of a package that can be loaded here."""
    file = folder / NAME
    if not file.is_file():
        told = f"no joint package in '{folder}'"
        fix = "save one: ingot.train.joint(...).save(FOLDER)"
        raise IngotError([Problem("file-not-found", told, None, fix)])
    described = open_metadata(file, Described, FORMAT, SCHEMA, AGAIN)
    problems = [*find_other_torch(described.torch_version, AGAIN)]
    if "inductor" in described.halves.values():
        problems += find_other_level(described.level)
    raise_if(problems)
    return described
