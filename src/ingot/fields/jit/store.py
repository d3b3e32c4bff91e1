"""Programs kept from one process to the next, each under its digest."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import torch

from ingot.codegen.cache import open_cache
from ingot.fields.jit.program import SequenceSource, Slot

__all__ = ["forget", "keep", "kept"]

KIND = "sequence"

LARGE = 4096
"""How many numbers a tensor has that is not written."""


def kept(digest: str, place: Path | None = None) -> SequenceSource | None:
    """The program of a digest, if there is one; an entry that cannot be read is none."""
    content = open_cache(place).find(KIND, digest)
    if content is None:
        return None
    try:
        found = json.loads(content)
        slots = tuple(
            Slot(s["name"], tuple(s["gives"]), tuple(s["varying"]), s["operations"], s["shifted"])
            for s in found["kernels"]
        )
        constants = {
            name: torch.tensor(values, dtype=getattr(torch, dtype), device=device).reshape(shape)
            for name, (dtype, device, shape, values) in found["constants"].items()
        }
        counts = found["before"], found["after"], tuple(found["reads"])
        texts = found["text"], found["source"]
        return SequenceSource(*texts, slots, *counts, constants, found["device"])
    except (ValueError, KeyError, TypeError, RuntimeError):
        return None


def keep(digest: str, program: SequenceSource, place: Path | None = None) -> None:
    """Write a program; one that holds large tensors is not written."""
    if any(x.numel() > LARGE or x.is_complex() for x in program.constants.values()):
        return
    constants = {
        name: (
            str(x.dtype).removeprefix("torch."), str(x.device), list(x.shape), x.flatten().tolist(),
        )
        for name, x in program.constants.items()
    }  # fmt: skip
    found = asdict(replace(program, constants={})) | {"constants": constants}
    open_cache(place).put(KIND, digest, json.dumps(found).encode())


def forget(digest: str, place: Path | None = None) -> None:
    """Remove a program."""
    open_cache(place).forget(KIND, digest)
