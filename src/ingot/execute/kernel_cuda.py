"""A kernel on a GPU: a thread a point, all steps of a transient in one launch.

Nothing here waits for the GPU: outputs and reports stay there until they are read.
"""

import struct
from ctypes import sizeof
from typing import Any

from ingot.codegen.abi import GivenStruct, GivesStruct, Knobs
from ingot.codegen.cuda import DeviceFunction
from ingot.codegen.frames import THREADS_PER_BLOCK
from ingot.errors import IngotError, Problem
from ingot.graphs.torch_private import raw_stream

__all__ = ["MAX_TASK_BYTES", "DeviceRunner"]

MAX_TASK_BYTES = 32_764
"""What a kernel can be handed by value, from CUDA 12.1 on."""

MAX_BLOCKS = 1 << 20
"""The most groups of threads that are started; with more points each takes several."""

_REPORT_BYTES = 40
"""`Reports::One` of newton.h."""


class DeviceRunner:
    """A kernel and how many rows of each kind its task has (`Task` of threads.h)."""

    def __init__(self, function: DeviceFunction, rows: tuple[int, int, int]) -> None:
        self.function = function
        self.device = function.device
        given, gives, solves = rows
        self._sizes = (
            given * sizeof(GivenStruct), gives * sizeof(GivesStruct), solves * _REPORT_BYTES,
            solves * sizeof(Knobs),
        )  # fmt: skip
        total = sum(self._sizes) + 24
        if total > MAX_TASK_BYTES:
            told = f"the kernel reads and gives too much for a GPU: {total} bytes of descriptions"
            fix = f"ask for fewer derivatives: at most {MAX_TASK_BYTES} bytes; or run it on a CPU"
            raise IngotError([Problem("task-too-large", told, None, fix)])

    def __call__(
        self, given: Any, gives: Any, knobs: Any, rows: bytes, points: int, first: int, count: int
    ) -> None:
        """Start the steps on torch's current stream."""
        if not points:
            return
        parts = (given, gives, rows, knobs)
        task = b"".join(bytes(x).ljust(n, b"\0") for x, n in zip(parts, self._sizes, strict=True))
        blocks = min(-(-points // THREADS_PER_BLOCK), MAX_BLOCKS)
        stream = raw_stream(self.device.index)
        self.function(
            blocks, THREADS_PER_BLOCK, stream, task + struct.pack("3q", points, first, count)
        )
