"""Devices by their names: whether this machine has them."""

import ctypes

import torch

from ingot.codegen.cuda import open_driver, read_status
from ingot.errors import IngotError, Problem, did_you_mean
from ingot.graphs.torch_private import BUILD, CUDA

__all__ = ["name_device", "require_device", "tell_missing", "tell_no_gpu"]

KINDS = ("cpu", "cuda", "mps")


def name_device(device: str | torch.device) -> str:
    """The name of a device, which torch's own devices have too."""
    if not isinstance(device, str | torch.device):
        told = f"a device is named by a string, not by {device!r}"
        raise IngotError([Problem("no-device", told, None, "give 'cpu', 'cuda' or 'cuda:1'")])
    return str(device)


def tell_missing(name: str) -> str:
    """Why there is no such device here; nothing if there is."""
    try:
        device = torch.device(name)
    except RuntimeError:
        return f"'{name}' is no device: there are {', '.join(KINDS)}"
    match device.type:
        case "cpu":
            return "" if not device.index else f"there is one CPU, and no device '{name}'"
        case "cuda":
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
            if (device.index or 0) < count:
                return ""
            why = f"torch sees {count} CUDA devices here" if count else tell_no_gpu()
            return f"there is no device '{name}': {why}"
        case "mps" if torch.backends.mps.is_available():
            return ""
        case _:
            return f"there is no device '{name}' here"


def require_device(name: str, fix: str = "run it on the CPU: --device cpu") -> torch.device:
    """The device of that name, a GPU with its number; an error if it is not here."""
    wrong = tell_missing(name)
    if wrong:
        meant = did_you_mean(name.partition(":")[0], KINDS)
        fix = f"{meant} or {fix}" if meant and not name.startswith(KINDS) else fix
        raise IngotError([Problem("no-device", wrong, None, fix)])
    device = torch.device(name)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def tell_no_gpu() -> str:
    """Why torch sees no GPU here."""
    if CUDA is None:
        return f"torch {BUILD} was built without CUDA"
    try:
        driver = open_driver()
    except IngotError as error:
        return error.problems[0].message
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    runs = f"{version.value // 1000}.{version.value % 1000 // 10}"
    if [*map(int, runs.split("."))] < [*map(int, CUDA.split("."))]:
        return f"NVIDIA's driver is too old: it runs CUDA {runs}, torch needs {CUDA}"
    return read_status(driver.cuInit(0)) or "torch sees no CUDA devices here"
