"""Devices by their names: whether this machine has them."""

import torch

from ingot.errors import IngotError, Problem

__all__ = ["require_device", "tell_missing"]

KINDS = ("cpu", "cuda", "mps")


def tell_missing(name: str) -> str:
    """Why there is no such device here; nothing if there is."""
    try:
        device = torch.device(name)
    except RuntimeError:
        return f"'{name}' is no device: there are {', '.join(KINDS)}"
    match device.type:
        case "cpu":
            return ""
        case "cuda":
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
            if (device.index or 0) < count:
                return ""
            return f"there is no device '{name}': torch sees {count or 'no'} CUDA devices here"
        case "mps" if torch.backends.mps.is_available():
            return ""
        case _:
            return f"there is no device '{name}' here"


def require_device(name: str) -> torch.device:
    """The device of that name; an error if it is not here."""
    wrong = tell_missing(name)
    if wrong:
        raise IngotError([Problem("no-device", wrong, None, "run it on the CPU: --device cpu")])
    return torch.device(name)
