"""A loop of a field simulation by threads of a GPU."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from ingot.codegen.cuda import DeviceFunction
from ingot.codegen.grids import THREADS_PER_GROUP
from ingot.fields.jit.layout import Layout
from ingot.graphs.torch_private import raw_stream

__all__ = ["Launch", "on_current_stream"]

BLOCKS = 2**20
"""The most groups of threads that are started; with more points each takes several."""


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
        blocks = min(-(-layout.points // THREADS_PER_GROUP), BLOCKS)
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
