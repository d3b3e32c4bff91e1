"""A SequenceSource -> something that runs: its library loaded, its text a function."""

from __future__ import annotations

import ctypes
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ingot.codegen.build import NATIVE_FLAGS, load_library
from ingot.codegen.cuda import DeviceFunction, load_functions
from ingot.codegen.frames import THREADS
from ingot.codegen.grids import THREADS_PER_GROUP, GridLoop
from ingot.codegen.nvrtc import OPTIONS
from ingot.fields.jit.program import SequenceSource
from ingot.fields.jit.transforms import real_field
from ingot.graphs.calls import CallCache
from ingot.graphs.torch_private import raw_stream

__all__ = ["SETTINGS", "Entry", "Launch", "Layout", "PointLoop", "joined", "order_of", "ready"]

WORTH_A_THREAD = 8192
"""The number of points from which a second thread pays."""

CHUNK = 1024
"""The least number of points that a thread takes at a time."""

MAX_BLOCKS = 2**20
"""The most groups of threads that are started; with more points each takes several."""

FLAGS = (*(flag for flag in NATIVE_FLAGS if flag != "-O1"), "-O2")

SETTINGS = " ".join((*FLAGS, *OPTIONS))
"""How sources are compiled."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of the axes that are left, and the strides of all operands along each of them."""

    rank: int
    extents: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def points(self) -> int:
        """How many points there are."""
        return math.prod(self.extents)

    @property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        """The strides of each operand along all axes."""
        return tuple(zip(*self.columns, strict=True))


def joined(
    sizes: tuple[int, ...], operands: Sequence[Tensor], order: Sequence[int] | None = None, *,
    join: bool = True,
) -> Layout:  # fmt: skip
    """The layout of operands that broadcast to some sizes, their axes taken in some order.

    The rank is that of the sizes, or 1. Unless `join`, all axes stay apart.
    """
    rank = len(sizes)
    taken = range(rank) if order is None else order
    every = [strides_of(x, rank) for x in operands]
    extents = [sizes[axis] for axis in taken] or [1]
    columns = [tuple(row[axis] for row in every) for axis in taken] or [(0,) * len(every)]
    at = len(extents) - 2
    while join and at >= 0:
        inner_fixed = at == len(extents) - 2 and extents[-1] == 1
        together = all(
            a == b * extents[at + 1] for a, b in zip(columns[at], columns[at + 1], strict=True)
        )
        if together and not inner_fixed:
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
            columns[at : at + 2] = [columns[at + 1]]
        at -= 1
    return Layout(max(rank, 1), tuple(extents), tuple(columns))


def strides_of(x: Tensor, rank: int) -> list[int]:
    """The strides of a tensor that broadcasts to a rank: 0 where it has one value."""
    pairs = zip(x.shape, x.stride(), strict=True)
    return [0] * (rank - x.dim()) + [0 if size == 1 else stride for size, stride in pairs]


def order_of(sizes: tuple[int, ...], operands: Sequence[Tensor]) -> tuple[int, ...]:
    """The axes from the outermost to the innermost, as most of the memory of operands has them."""
    bytes_with: dict[tuple[int, ...], int] = {}
    for x in operands:
        strides = x.stride()
        if x.shape == sizes and 0 not in strides:
            order = tuple(sorted(range(len(sizes)), key=strides.__getitem__, reverse=True))
            bytes_with[order] = bytes_with.get(order, 0) + x.element_size()
    return max(bytes_with, key=bytes_with.__getitem__, default=tuple(range(len(sizes))))


class PointLoop:
    """A loop over points: gives tensors of some sizes from tensors that broadcast to them."""

    def __init__(self, loop: GridLoop, real: str, device: torch.device, entry: Entry) -> None:
        number = torch.float64 if real == "double" else torch.float32
        kinds = {"V": number, "C": number.to_complex(), "M": torch.bool}
        self.entry, self.device = entry, device
        self.dtypes = tuple(kinds[kind] for kind in loop.kinds[loop.inputs :])
        self.layouts: CallCache[Any] = CallCache()
        self.shifted = loop.is_shifted

    def __call__(
        self,
        sizes: tuple[int, ...],
        into: Sequence[Tensor | None],
        numbers: Sequence[float],
        tensors: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        """The results, written into the given tensors where there are some."""
        operands = [plain(x) for x in tensors]
        threads = torch.get_num_threads()
        key = (threads, sizes, *[(x.stride(), x.shape) for x in operands])
        known = self.layouts.find(key)
        order = self.order(sizes, operands) if known is None else known[0]
        gives = tuple(
            torch.empty_permuted(sizes, order, dtype=dtype, device=self.device)
            if at is None
            else at
            for dtype, at in zip(self.dtypes, into, strict=True)
        )
        operands += gives
        if known is None:
            layout = joined(sizes, operands, order, join=not self.shifted)
            known = self.layouts.keep(key, (order, self.entry.arranged(layout, threads)))
        if 0 not in sizes:
            self.entry.run([x.data_ptr() for x in operands], numbers, known[1])
        return gives

    def order(self, sizes: tuple[int, ...], operands: Sequence[Tensor]) -> tuple[int, ...]:
        """The order in which to take the axes; results lie like most operands."""
        if self.shifted or not self.entry.any_order:
            return tuple(range(len(sizes)))
        return order_of(sizes, operands)


def plain(x: Tensor) -> Tensor:
    """A tensor whose memory holds its values as they are."""
    return x.resolve_conj().resolve_neg() if x.is_conj() or x.is_neg() else x


class NativeLoop:
    """A loop of a library of C++, shared among the threads of this process."""

    any_order = False

    def __init__(self, loop: GridLoop, entry: Any) -> None:
        entry.argtypes, entry.restype = (ctypes.c_void_p,) * 3, None
        self.entry, self.varying = entry, loop.varying

    def arranged(self, layout: Layout, threads: int) -> Any:
        """Axes, threads, whether all is contiguous, pieces of rows; then sizes and strides."""
        inner, points = layout.extents[-1], layout.points
        threads = max(1, min(threads, points // WORTH_A_THREAD))
        unit = all(layout.columns[-1][k] == 1 for k in self.varying)
        rows = points // max(inner, 1)
        chunk = inner
        if rows < 4 * threads and threads > 1:
            chunk = max(CHUNK, -(-inner // (4 * threads)) // 64 * 64)
        strides = [stride for row in layout.strides for stride in row]
        head = [len(layout.extents), threads, int(unit), max(chunk, 1)]
        values = [*head, *layout.extents, *strides]
        return (ctypes.c_int64 * len(values))(*values)

    def run(self, addresses: Sequence[int], numbers: Sequence[float], arranged: Any) -> None:
        """Run the loop over all points."""
        operands = (ctypes.c_void_p * len(addresses))(*addresses)
        values = (ctypes.c_double * max(len(numbers), 1))(*numbers)
        self.entry(operands, values, arranged)


class Launch:
    """A loop by threads of a GPU, one a point."""

    any_order = True

    def __init__(self, function: Callable[[int, bytes], None]) -> None:
        self.function = function

    def arranged(self, layout: Layout, threads: int) -> Any:
        """How many groups of threads, and the second half of the Task of grid_cuda.h."""
        unused = layout.rank - len(layout.extents)
        strides = [stride for row in layout.strides for stride in ((0,) * unused + row)]
        words = [unused, *[1] * unused, *layout.extents, *strides]
        if max(map(abs, words)) >= 2**31:
            raise OverflowError("a field is too large for a loop on a GPU")
        blocks = min(-(-layout.points // THREADS_PER_GROUP), MAX_BLOCKS)
        words += [0] * (len(words) % 2)  # the structure ends where an address may begin
        return blocks, struct.pack(f"=q{len(words)}i", layout.points, *words)

    def run(self, addresses: Sequence[int], numbers: Sequence[float], arranged: Any) -> None:
        """Start the loop over all points."""
        blocks, rest = arranged
        values = numbers or (0.0,)
        head = struct.pack(f"={len(addresses)}Q{len(values)}d", *addresses, *values)
        self.function(blocks, head + rest)


def on_current_stream(function: DeviceFunction) -> Callable[[int, bytes], None]:
    """A function on a GPU, started on torch's current stream."""
    return lambda blocks, task: function(
        blocks, THREADS_PER_GROUP, raw_stream(function.device.index), task
    )


Entry = NativeLoop | Launch
"""A compiled loop on one device."""


def entries(program: SequenceSource) -> dict[str, Entry]:
    """The compiled loops of a program by name."""
    if not program.kernels:
        return {}
    device = torch.device(program.device)
    if device.type == "cuda":
        functions = load_functions(program.source, device, THREADS.read_headers())
        names = (loop.name for loop in program.kernels)
        return {name: Launch(on_current_stream(functions(name))) for name in names}
    library = load_library(program.source, FLAGS)
    return {loop.name: NativeLoop(loop, getattr(library, loop.name)) for loop in program.kernels}


def ready(
    program: SequenceSource, loops: Mapping[str, Entry] | None = None
) -> Callable[[Sequence[Tensor]], tuple[Tensor, ...]]:
    """The function of a program; loops: those that are compiled already, by name."""
    compiled = entries(program) if loops is None else loops
    device = torch.device(program.device)
    names: dict[str, Any] = {
        "torch": torch, "operator": operator, "math": math, "constants": program.constants,
        "inf": math.inf, "nan": math.nan, "real_field": real_field,
        "device": device,
    }  # fmt: skip
    names |= {
        loop.name: PointLoop(loop, program.real, device, compiled[loop.name])
        for loop in program.kernels
    }
    exec(compile(program.text, "<sequence>", "exec"), names)
    return names["run"]
