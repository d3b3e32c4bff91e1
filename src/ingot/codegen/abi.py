"""The kernel's C structures, as ctypes sees them (entry.h, newton.h)."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ingot.options import Newton, knobs_of

__all__ = [
    "GIVEN_NUMBERS",
    "GIVES_NUMBERS",
    "REPORT_NUMBERS",
    "RUN_ARGTYPES",
    "InputSlot",
    "Knobs",
    "pack_knobs",
    "write_rules_struct",
]


RUN_ARGTYPES = (*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 5)
"""given, gives, knobs, reports; points, first step, steps, first point, the point after the last"""


class InputSlot(NamedTuple):
    """Where an input lies: strides in numbers; `lag` steps back; `link` names an output instead."""

    data: Tensor
    step: int
    point: int
    component: int
    lag: int = 0
    link: str | None = None


GIVEN_NUMBERS, GIVES_NUMBERS, REPORT_NUMBERS = 5, 4, 5
"""Of 8 bytes in a row of `Given` and of `Gives` (entry.h), and of `Reports::One` (newton.h)."""


_CTYPES = {"double": ctypes.c_double, "int32_t": ctypes.c_int32}


class Knobs(ctypes.Structure):
    """`ingot_rules`: Newton's rules as declared; all of a batch do at least `min_its` updates."""

    _fields_ = [*((k.name, _CTYPES[k.c_type]) for k in knobs_of(Newton)),
                ("min_its", ctypes.c_int32)]  # fmt: skip


def write_rules_struct() -> str:
    """The C text of `ingot_rules`."""
    rows = [f"  {k.c_type} {k.name};  // {k.sentence}" for k in knobs_of(Newton)]
    return "\n".join([
        "#include <cstdint>", "struct ingot_rules {", *rows,
        "  int32_t min_its;  // how many updates no point may stop before", "};", "",
    ])  # fmt: skip


def pack_knobs(newtons: Sequence[Newton]) -> "ctypes.Array[Knobs]":
    """The rules of every solve."""
    rows = (Knobs * max(len(newtons), 1))()
    for row, newton in zip(rows, newtons, strict=False):
        for knob in knobs_of(Newton):
            setattr(row, knob.name, knob.c_value(getattr(newton, knob.name)))
    return rows
