"""Programs kept from one process to the next, each in a file named by its digest."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import torch

from ingot.execute.build import cache_folder, put_in_cache
from ingot.fields.jit.program import Program, Slot

__all__ = ["folder", "forget", "keep", "kept"]

LARGE = 4096
"""How many numbers a tensor has that is not written."""


def folder() -> Path:
    """Where programs are kept."""
    return cache_folder().parent / "fields"


def kept(digest: str, place: Path | None = None) -> Program | None:
    """The program of a digest, if there is one; a file that cannot be read is none."""
    try:
        found = json.loads(((place or folder()) / f"{digest}.json").read_text())
        slots = tuple(
            Slot(s["name"], tuple(s["gives"]), tuple(s["varying"]), s["operations"])
            for s in found["kernels"]
        )
        constants = {
            name: torch.tensor(values, dtype=getattr(torch, dtype), device=device).reshape(shape)
            for name, (dtype, device, shape, values) in found["constants"].items()
        }
        counts = found["before"], found["after"]
        texts = found["text"], found["source"]
        return Program(*texts, slots, *counts, constants, found["device"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def keep(digest: str, program: Program, place: Path | None = None) -> None:
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
    put_in_cache((place or folder()) / f"{digest}.json", json.dumps(found).encode())


def forget(digest: str, place: Path | None = None) -> None:
    """Remove a program."""
    ((place or folder()) / f"{digest}.json").unlink(missing_ok=True)
