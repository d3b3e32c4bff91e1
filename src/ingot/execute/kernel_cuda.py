"""A kernel on a GPU: a thread a point, all steps of a transient in one launch.

Nothing here waits for the GPU: outputs and reports stay there until they are read.
"""

import math
import struct
from collections.abc import Callable, Iterator
from ctypes import c_int64, sizeof
from typing import Any

import torch

from ingot.codegen.abi import GIVEN_NUMBERS, GIVES_NUMBERS, REPORT_NUMBERS, Knobs
from ingot.codegen.cuda import DeviceFunction
from ingot.errors import Problem, raise_if
from ingot.execute.call_layout import Task
from ingot.execute.kernel_run import Runners
from ingot.graphs.torch_private import raw_stream

__all__ = ["MAX_TASK_BYTES", "DeviceRunner", "find_too_large", "open_device_runners"]

MAX_TASK_BYTES = 32_764
"""What a kernel can be handed by value, from CUDA 12.1 on."""

MAX_BLOCKS = 1 << 20
"""The most groups of threads that are started; with more points each takes several."""


class DeviceRunner:
    """A kernel and how many rows of each kind its task has (`Task` of threads.h).

    rows: of inputs and parameters, of outputs, of solves
    """

    task_points: float = math.inf  # whatever their number, it is one launch

    def __init__(self, function: DeviceFunction, rows: tuple[int, int, int]) -> None:
        self.function = function
        self.device = function.device
        raise_if(find_too_large(rows))
        self._sizes = _measure_task(rows)

    def make_task(
        self, knobs: Any, given: bytes, gives: bytes, rows: bytes, points: int, first: int = 0,
        count: int = 1,
    ) -> Task:  # fmt: skip
        """Steps on what is torch's current stream when they start."""
        parts = zip((given, gives, rows, knobs), self._sizes, strict=True)
        rest = struct.pack("3q", points, first, count)
        whole = b"".join(bytes(x).ljust(n, b"\0") for x, n in parts) + rest
        numbers = (c_int64 * (len(whole) // 8)).from_buffer_copy(whole)
        threads = self.function.threads
        blocks = min(-(-points // threads), MAX_BLOCKS)
        launch = self.function.bind(blocks, threads, numbers)
        given_bytes, gives_bytes, _, _ = self._sizes
        places = 0, given_bytes // 8, (given_bytes + gives_bytes) // 8
        index = self.device.index
        return Task(numbers, places, lambda: launch(raw_stream(index)))


def _measure_task(rows: tuple[int, int, int]) -> tuple[int, ...]:
    """The bytes of each array of a task, which has one row at least."""
    given, gives, solves = (max(n, 1) for n in rows)
    numbers = given * GIVEN_NUMBERS, gives * GIVES_NUMBERS, solves * REPORT_NUMBERS
    return (*(8 * n for n in numbers), solves * sizeof(Knobs))


def find_too_large(rows: tuple[int, int, int]) -> Iterator[Problem]:
    """What is wrong with a kernel whose task CUDA does not take."""
    total = sum(_measure_task(rows)) + 24
    if total > MAX_TASK_BYTES:
        told = f"the kernel reads and gives too much for a GPU: {total} bytes of descriptions"
        fix = f"ask for fewer derivatives: at most {MAX_TASK_BYTES} bytes; or run it on a CPU"
        yield Problem("task-too-large", told, None, fix)


def open_device_runners(
    find: Callable[[str], DeviceFunction], prefix: str, device: torch.device
) -> Runners:
    """What runs the entries of a module on a GPU, whose functions are found by name."""
    return Runners(device, lambda entry, rows: DeviceRunner(find(f"{prefix}_{entry}"), rows))
