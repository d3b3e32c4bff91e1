"""Programs kept from one process to the next, each in a file named by its digest."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from ingot.execute.build import cache_folder
from ingot.fields.jit.program import Program, Slot

__all__ = ["folder", "forget", "keep", "kept"]


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
        return Program(found["text"], found["source"], slots, found["before"], found["after"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(digest: str, program: Program, place: Path | None = None) -> None:
    """Write a program; one that holds tensors is not written."""
    if program.constants:
        return
    at = place or folder()
    at.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=at, delete=False) as copy:
        json.dump(asdict(program), copy)
    Path(copy.name).replace(at / f"{digest}.json")


def forget(digest: str, place: Path | None = None) -> None:
    """Remove a program."""
    ((place or folder()) / f"{digest}.json").unlink(missing_ok=True)
