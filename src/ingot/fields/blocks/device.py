"""device_of: what a file and a user say about devices -> the device that a run takes place on."""

from __future__ import annotations

import logging

import torch

from ingot.errors import IngotError, Problem, Span
from ingot.execute.devices import tell_missing

__all__ = ["device_of"]


def device_of(
    names: tuple[str, ...], asked: str = "", span: Span | None = None, rank: int | None = None
) -> str:
    """The first of a file's `device_names`, else what is asked for, else a GPU if there is one.

    `span` is where the file names its devices; a `rank` takes its own of them in turn.
    """
    if not names and not asked:
        asked = "cuda" if torch.cuda.is_available() else "cpu"
    if rank is not None and asked == "cuda":
        asked = f"cuda:{rank % max(1, torch.cuda.device_count())}"
    name = names[(rank or 0) % len(names)] if names else asked
    if names and asked and name != asked:
        message = "the run takes place on %s, which device_names in [Domain] says, not on %s"
        logging.getLogger("ingot").warning(message, name, asked)
    wrong = tell_missing(name)
    if wrong:
        told = "Domain/device_names=cpu" if names else "--device cpu"
        fix = f"run it on the CPU: {told}"
        raise IngotError([Problem("no-device", wrong, span if names else None, fix)])
    return name
