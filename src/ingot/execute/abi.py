"""The kernel's C structures, as ctypes sees them (entry.h, newton.h)."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

__all__ = ["ARGUMENTS", "Given", "Gives", "Knobs", "Rules", "Slot", "knobs"]


ARGUMENTS = (*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 5)
"""given, gives, knobs, reports; points, first step, steps, first point, the point after the last"""


class Rules(Protocol):
    """When a solve stops and how far it steps: `Newton`, or a package's record of it."""

    @property
    def abs_tol(self) -> float:
        """The residual below which a point has converged."""
        ...

    @property
    def rel_tol(self) -> float:
        """The part of the first residual below which it has."""
        ...

    @property
    def max_its(self) -> int:
        """One more than the number of updates allowed."""
        ...

    @property
    def stop(self) -> str:
        """`point` or `batch`."""
        ...

    @property
    def linesearch(self) -> str:
        """`NONE`, `BACKTRACKING` or `STRONG_WOLFE`."""
        ...

    @property
    def max_linesearch_iterations(self) -> int:
        """One more than the number of trials allowed."""
        ...

    @property
    def linesearch_cutback(self) -> float:
        """What a step is divided by."""
        ...

    @property
    def linesearch_stopping_criteria(self) -> float:
        """The part of the promised decrease that is enough."""
        ...


class Slot(NamedTuple):
    """Where an input lies: strides in numbers; `lag` steps back; `link` names an output instead."""

    data: Tensor
    step: int
    point: int
    component: int
    lag: int = 0
    link: str | None = None


class Given(ctypes.Structure):
    """`ingot_given` of entry.h."""

    _fields_ = [("data", ctypes.c_void_p), ("step", ctypes.c_int64), ("point", ctypes.c_int64),
                ("component", ctypes.c_int64), ("lag", ctypes.c_int64)]  # fmt: skip


class Gives(ctypes.Structure):
    """`ingot_gives` of entry.h."""

    _fields_ = [("data", ctypes.c_void_p), ("step", ctypes.c_int64), ("point", ctypes.c_int64),
                ("component", ctypes.c_int64)]  # fmt: skip


class Knobs(ctypes.Structure):
    """`Knobs` of newton.h."""

    _fields_ = [("abs_tol", ctypes.c_double), ("rel_tol", ctypes.c_double),
                ("cutback", ctypes.c_double), ("criterion", ctypes.c_double),
                ("max_its", ctypes.c_int32), ("min_its", ctypes.c_int32),
                ("line", ctypes.c_int32), ("max_tries", ctypes.c_int32)]  # fmt: skip


def knobs(newtons: Sequence[Rules]) -> "ctypes.Array[Knobs]":
    """The rules of every solve."""
    rows = (Knobs * max(len(newtons), 1))()
    lines = {"NONE": 0, "BACKTRACKING": 1, "STRONG_WOLFE": 2}
    for row, newton in zip(rows, newtons, strict=False):
        row.abs_tol, row.rel_tol = newton.abs_tol, newton.rel_tol
        row.cutback, row.criterion = newton.linesearch_cutback, newton.linesearch_stopping_criteria
        row.max_its = newton.max_its
        row.max_tries = newton.max_linesearch_iterations
        row.line = lines[newton.linesearch] if newton.max_linesearch_iterations > 1 else 0
    return rows
