"""A Program -> something that runs: its library loaded, its text a function."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.execute.build import NATIVE, built
from ingot.fields.jit.program import Program, Slot

__all__ = ["Kernel", "ready"]

WORTH_A_THREAD = 8192
"""The number of points from which a second thread pays."""

KEPT = 64
"""How many layouts of operands a kernel remembers."""

CHUNK = 1024
"""The least number of points that a thread takes at a time."""

FLAGS = (*(flag for flag in NATIVE if flag != "-O1"), "-O2")


class Kernel:
    """A loop over points: gives tensors of some sizes from tensors that broadcast to them."""

    def __init__(self, slot: Slot, entry: Any) -> None:
        entry.argtypes, entry.restype = (ctypes.c_void_p,) * 3, None
        self.entry, self.slot = entry, slot
        self.dtypes = tuple(getattr(torch, name) for name in slot.gives)
        self.layouts: dict[Any, Any] = {}

    def __call__(
        self,
        sizes: tuple[int, ...],
        into: Sequence[Tensor | None],
        numbers: Sequence[float],
        tensors: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        """The results, written into the given tensors where there are some."""
        gives = tuple(
            torch.empty(sizes, dtype=dtype) if at is None else at
            for dtype, at in zip(self.dtypes, into, strict=True)
        )
        operands = [x.resolve_conj().resolve_neg() if x.is_conj() else x for x in tensors]
        operands += gives
        threads = torch.get_num_threads()
        key = (threads, sizes, *[x.stride() for x in operands], *[x.shape for x in tensors])
        layout = self.layouts.get(key)
        if layout is None:
            if len(self.layouts) >= KEPT:
                self.layouts.clear()
            layout = self.layouts[key] = laid_out(self.slot, sizes, operands, threads)
        addresses = (ctypes.c_void_p * len(operands))(*[x.data_ptr() for x in operands])
        values = (ctypes.c_double * max(len(numbers), 1))(*numbers)
        if 0 not in sizes:
            self.entry(addresses, values, layout)
        return gives


def laid_out(slot: Slot, sizes: tuple[int, ...], operands: Sequence[Tensor], threads: int) -> Any:
    """What a kernel is told of its operands: axes that lie as one are joined."""
    rank = len(sizes)
    rows = []
    for x in operands:
        missing = rank - x.dim()
        pairs = zip(x.shape, x.stride(), strict=True)
        rows.append([0] * missing + [0 if size == 1 else stride for size, stride in pairs])
    extents = [*sizes] or [1]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[0] * len(rows)]
    at = len(extents) - 2
    while at >= 0:
        inner_fixed = at == len(extents) - 2 and extents[-1] == 1
        together = all(
            a == b * extents[at + 1] for a, b in zip(columns[at], columns[at + 1], strict=True)
        )
        if together and not inner_fixed:
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
            columns[at : at + 2] = [columns[at + 1]]
        at -= 1
    points = math.prod(extents)
    threads = max(1, min(threads, points // WORTH_A_THREAD))
    unit = all(columns[-1][k] == 1 for k in slot.varying)
    rows_count = points // max(extents[-1], 1)
    chunk = extents[-1]
    if rows_count < 4 * threads and threads > 1:
        chunk = max(CHUNK, -(-extents[-1] // (4 * threads)) // 64 * 64)
    strides = [column[k] for k in range(len(operands)) for column in columns]
    values = [len(extents), threads, int(unit), max(chunk, 1), *extents, *strides]
    return (ctypes.c_int64 * len(values))(*values)


def ready(program: Program) -> Callable[[Sequence[Tensor]], tuple[Tensor, ...]]:
    """The function of a program."""
    names: dict[str, Any] = {
        "torch": torch, "operator": operator, "math": math, "constants": program.constants,
        "inf": math.inf, "nan": math.nan,
    }  # fmt: skip
    if program.kernels:
        library = built(program.source, FLAGS)
        names |= {s.name: Kernel(s, getattr(library, s.name)) for s in program.kernels}
    exec(compile(program.text, "<sequence>", "exec"), names)
    return names["run"]
