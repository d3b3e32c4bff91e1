"""Architectures of GPUs: what a package is compiled for, and what of it a GPU runs."""

from collections.abc import Collection, Sequence

__all__ = ["DEFAULT_ARCHITECTURES", "OLDEST_ARCHITECTURE", "choose_target", "name_targets"]

OLDEST_ARCHITECTURE = 70
"""Volta: older GPUs take no parameters that a kernel reads where they lie (`__grid_constant__`)."""

DEFAULT_ARCHITECTURES = (80, 90)
"""Ampere and Ada run the first, Hopper the second; newer GPUs the PTX of the newest."""


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
