"""CPU levels: which instruction sets kernels are compiled for, and which this machine has."""

import functools

from ingot.platform import MACHINE, choose_native_flags, read_processor_features

__all__ = ["BASELINE", "LEVELS", "choose_flags", "choose_levels", "find_supported_levels"]

LEVELS: dict[str, frozenset[str]] = {
    "x86-64-v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "x86-64-v3": frozenset({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}),
    "x86-64-v2": frozenset({"sse4_2", "ssse3", "popcnt"}),
}
"""Levels from the best down, each with what it needs beyond those below it."""

BASELINE = "x86-64-v3"
"""The level that every package holds on machines of that family."""


@functools.cache
def find_supported_levels() -> tuple[str, ...]:
    """The levels that this machine runs, best first."""
    if MACHINE != "x86_64":
        return (MACHINE,)
    words = read_processor_features()
    found = []
    needed: set[str] = set()
    for level, more in reversed(LEVELS.items()):
        needed |= more
        if needed <= words:
            found.append(level)
    return tuple(reversed(found)) or ("x86-64-v2",)


def choose_levels() -> tuple[str, ...]:
    """The levels a package is compiled for here: this machine's best, and the baseline."""
    have = find_supported_levels()
    return tuple(dict.fromkeys((have[0], BASELINE if BASELINE in have else have[-1])))


def choose_flags(level: str) -> tuple[str, ...]:
    """The compiler's flags for a level."""
    if level not in LEVELS:
        return choose_native_flags(level)
    wide = ("-mprefer-vector-width=512",) if level == "x86-64-v4" else ()
    return (f"-march={level}", *wide)
