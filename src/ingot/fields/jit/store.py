"""Programs kept from one process to the next, each under its digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from ingot.codegen.cache import open_cache
from ingot.fields.jit.program import SequenceSource

__all__ = ["forget", "keep", "kept"]

KIND = "sequence"

LARGE = 4096
"""How many numbers a tensor has that is not written."""


def kept(digest: str, place: Path | None = None) -> SequenceSource | None:
    """The program of a digest, if there is one; an entry that cannot be read is none."""
    content = open_cache(place).find(KIND, digest)
    try:
        decode = msgspec.json.Decoder(SequenceSource, dec_hook=_read_tensor).decode
        return None if content is None else decode(content)
    except (ValueError, TypeError, RuntimeError):
        return None


def keep(digest: str, program: SequenceSource, place: Path | None = None) -> None:
    """Write a program; one that holds large tensors is not written."""
    if not any(x.numel() > LARGE or x.is_complex() for x in program.constants.values()):
        content = msgspec.json.encode(program, enc_hook=_write_tensor)
        open_cache(place).put(KIND, digest, content)


def _write_tensor(x: Tensor) -> Any:
    """A tensor by its bytes: numbers as text would lose what is not finite."""
    kind = str(x.dtype).removeprefix("torch.")
    return kind, str(x.device), x.shape, x.flatten().resolve_neg().view(torch.uint8).tolist()


def _read_tensor(_: type, found: Any) -> Tensor:
    kind, device, shape, content = found
    x = torch.tensor(content, dtype=torch.uint8, device=device)
    return x.view(getattr(torch, kind)).reshape(shape)


def forget(digest: str, place: Path | None = None) -> None:
    """Remove a program."""
    open_cache(place).forget(KIND, digest)
