"""Joint -> folder -> Joint: what a process that never saw the source needs, checked at loading.

A package is native code: load only packages you trust as you trust a program.
"""

import io
from pathlib import Path

import msgspec
import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem, raise_if
from ingot.execute.levels import supported
from ingot.package.seal import (
    content_of,
    digest_of,
    opened,
    other_level,
    other_torch,
    torch_version,
    wrong_files,
)
from ingot.train.compile import Half, from_source, inductor
from ingot.train.module import Joint
from ingot.train.signature import FORMAT, SCHEMA, Saved, Signature

__all__ = ["Described", "load", "save"]

NAME = "joint.json"
STATE = "state.pt"
AGAIN = "trace and save the joint again"


class Described(msgspec.Struct, frozen=True):
    """The metadata of a package."""

    format: str
    schema_version: int
    torch_version: str
    level: str
    partition: str
    halves: dict[str, str]
    signature: Signature
    saved: Saved
    digests: dict[str, str]


def save(joint: Joint, folder: str | Path) -> Path:
    """Write a package in one step: the old one, or the new one, is there at any moment."""
    # the room of packages imports what reads input files, which loading does not need
    from ingot.package.write import put, save_tensors, scratch

    halves = {"forward": joint.forward_half, "backward": joint.backward_half}
    present = {name: half for name, half in halves.items() if half is not None}
    for name, half in present.items():
        if half.kind == "callable":
            told = f"the {name} graph was compiled by a callable, which a package cannot hold"
            fix = f"compile_{name}='inductor' or 'eager' can be saved"
            raise IngotError([Problem("unsaveable", told, None, fix)])
    place = Path(folder)
    with scratch(place) as made:
        for name, half in present.items():
            _write(half, made, name)
        values = [t.detach().clone() for t in joint.held()]
        save_tensors(values, made / STATE)
        digests = {f.name: digest_of(f) for f in sorted(made.iterdir())}
        described = Described(
            FORMAT, SCHEMA, torch_version(), supported()[0], joint.strategy,
            {name: half.kind for name, half in present.items()},
            joint.signature, joint.saved, digests,
        )  # fmt: skip
        text = msgspec.json.format(msgspec.json.encode(described), indent=1)
        (made / NAME).write_bytes(text + b"\n")
        put(made, place)
    return place


def _write(half: Half, folder: Path, name: str) -> None:
    from ingot.package.write import save_tensors

    if half.kind == "inductor":
        (folder / f"{name}.pt2").write_bytes(half.archive)
    else:
        (folder / f"{name}.py.txt").write_text(half.source)
        save_tensors(half.constants, folder / f"{name}_constants.pt")


def load(folder: str | Path) -> Joint:
    """The joint of a package, refused where anything does not fit."""
    place = Path(folder)
    described = _checked(place)
    halves = {name: _half(described, place, name) for name in described.halves}
    values: list[Tensor] = torch.load(_stream(described, place, STATE), weights_only=True)
    signature = described.signature
    tensors = [
        nn.Parameter(v, requires_grad=h.tensor.requires_grad) if h.parameter else v
        for h, v in zip(signature.held, values, strict=True)
    ]
    return Joint(
        signature, described.saved, halves["forward"], halves.get("backward"), tensors,
        strategy=described.partition,
    )  # fmt: skip


def _stream(described: Described, folder: Path, name: str) -> io.BytesIO:
    return io.BytesIO(content_of(described, folder, name, AGAIN))


def _half(described: Described, folder: Path, name: str) -> Half:
    kind = described.halves[name]
    if kind == "inductor":
        archive = content_of(described, folder, f"{name}.pt2", AGAIN)
        return Half(kind, inductor(archive), archive)
    source = content_of(described, folder, f"{name}.py.txt", AGAIN).decode()
    constants = torch.load(_stream(described, folder, f"{name}_constants.pt"), weights_only=True)
    return Half(kind, from_source(source, constants), source=source, constants=constants)


def _checked(folder: Path) -> Described:
    """The metadata of a package that can be loaded here."""
    file = folder / NAME
    if not file.is_file():
        told = f"no joint package in '{folder}'"
        fix = "save one: ingot.train.joint(...).save(FOLDER)"
        raise IngotError([Problem("file-not-found", told, None, fix)])
    described = opened(file, Described, FORMAT, SCHEMA, AGAIN)
    problems = [*other_torch(described.torch_version, AGAIN)]
    if "inductor" in described.halves.values():
        problems += other_level(described.level)
    raise_if([*problems, *wrong_files(described, folder, AGAIN)])
    return described
