"""Architectures of GPUs: what a package is compiled for, and what of it a GPU runs."""

from collections.abc import Collection, Sequence

from ingot.errors import IngotError, Problem

__all__ = [
    "DEFAULT_ARCHITECTURES", "OLDEST_ARCHITECTURE", "choose_target", "name_targets",
    "read_architecture",
]  # fmt: skip

OLDEST_ARCHITECTURE = 70
"""Volta: older GPUs take no parameters that a kernel reads where they lie (`__grid_constant__`)."""

DEFAULT_ARCHITECTURES = (80, 90)
"""Ampere and Ada run the first, Hopper the second; newer GPUs the PTX of the newest."""


def read_architecture(text: object) -> int:
    """The number of an architecture: 90 for `90`, `9.0`, `sm_90`, `sm90` and `compute_90`."""
    digits = str(text).removeprefix("sm").removeprefix("compute").removeprefix("_")
    major, dot, minor = digits.partition(".")
    if major.isdecimal() and len(minor) == len(dot) and f"0{minor}".isdecimal():
        return int(major + minor)
    message = f"'{text}' is no architecture of a GPU"
    fix = "give its compute capability without the dot, such as 90 for 9.0 (Hopper)"
    raise IngotError([Problem("wrong-architecture", message, None, fix)])


def name_targets(architectures: Sequence[int], *, portable: bool) -> tuple[str, ...]:
    """What NVRTC calls them: machine code for each, and PTX of the newest for GPUs yet newer."""
    newest = (f"compute_{max(architectures)}",) if portable else ()
    return (*(f"sm_{each}" for each in sorted(set(architectures))), *newest)


def choose_target(held: Collection[str], capability: tuple[int, int]) -> str | None:
    """What a GPU of this compute capability runs best, if any.

    Machine code runs on GPUs of its major version that are as new or newer; PTX, which the driver
    compiles at load, on all that are.
    """
    major, minor = capability

    def find(kind: str, oldest: int) -> list[int]:
        numbers = (int(name.removeprefix(kind)) for name in held if name.startswith(kind))
        return [n for n in numbers if oldest <= n <= 10 * major + minor]

    for kind, oldest in (("sm_", 10 * major), ("compute_", 0)):
        if fitting := find(kind, oldest):
            return f"{kind}{max(fitting)}"
    return None
