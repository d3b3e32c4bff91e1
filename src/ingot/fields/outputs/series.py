"""Frames: the fields that a run wrote, over time, each array read when it is asked for.

Arrays are indexed as XDMF has it, the last axis being x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ingot.errors import Problem

__all__ = ["Frames", "unreadable"]


@dataclass(frozen=True, slots=True)
class Frames:
    """The fields of a run: names, times, the box along x, y, z, and what reads an array.

    The names are those of the last frame: a vector that nothing has written yet is one zero field.
    """

    file: Path
    names: tuple[str, ...]
    times: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    load: Callable[[str, int], np.ndarray[Any, Any] | None]
    """The array of a name at a frame, if the frame has it."""
    nodal: frozenset[str] = frozenset()
    """The fields whose values belong to nodes, the first of them on the lower end of the box."""
    scalars: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Numbers that the file itself has at each time."""

    def array(self, name: str, frame: int) -> np.ndarray[Any, Any]:
        """A field at a time; all nan where the frame does not have it."""
        array = self.load(name, frame)
        return np.full(self.shape(name), np.nan) if array is None else array

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a field, which the last frame has."""
        array = self.load(name, len(self.times) - 1)
        assert array is not None, "names are those of the last frame"
        return array.shape


def unreadable(message: str) -> Problem:
    """The problem of a file that holds no fields."""
    fix = "give the .xmf, .pvd, .vti or .e file that a run has written, or its folder"
    return Problem("unreadable-result", message, fix=fix)
