"""The components of each kind: their names in the order they are stored, and their scales."""

from itertools import product

import numpy as np

from ingot.types.kinds import MRP, R2, SQRT2, SR2, SSR4, WR2, MillerIndex, Quaternion, Vec
from ingot.types.value import Scalar, Value

__all__ = ["list_component_names", "list_component_suffixes", "list_scales"]

_PAIRS = ("xx", "yy", "zz", "yz", "xz", "xy")
_NAMES: dict[type[Value], tuple[str, ...]] = {
    Scalar: ("",),
    Vec: ("x", "y", "z"),
    MRP: ("x", "y", "z"),
    MillerIndex: ("h", "k", "l"),
    Quaternion: ("w", "x", "y", "z"),
    SR2: _PAIRS,
    WR2: ("zy", "xz", "yx"),
    R2: tuple(i + j for i, j in product("xyz", repeat=2)),
    SSR4: tuple(i + j for i, j in product(_PAIRS, repeat=2)),
}


def list_component_names(kind: type[Value]) -> tuple[str, ...]:
    """The name of every component, row-major; that of a number alone is empty."""
    if kind in _NAMES:
        return _NAMES[kind]
    return tuple("_".join(map(str, place)) for place in np.ndindex(kind.base))


def list_component_suffixes(kind: type[Value]) -> tuple[str, ...]:
    """What a column of numbers adds to the name of its variable, for each component."""
    return tuple(f"_{name}" if name else "" for name in list_component_names(kind))


def list_scales(kind: type[Value]) -> np.ndarray:
    """What stored components are to be divided by to be those of the tensor, shaped as the base."""
    mandel = np.array([1.0, 1.0, 1.0, SQRT2, SQRT2, SQRT2])
    if kind is SR2:
        return mandel
    return np.outer(mandel, mandel) if kind is SSR4 else np.ones(kind.base)
