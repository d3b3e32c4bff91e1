"""Call layouts: argument structs of a kernel for arrays of one signature, less their addresses."""

import ctypes
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ingot.errors import Problem, raise_if, warn_of
from ingot.execute.batch_shape import ValueShape, flatten_batch
from ingot.execute.status import Status, failures

__all__ = [
    "CPU",
    "NO_MEMORY",
    "CallLayout",
    "FastCall",
    "Reports",
    "StatusReader",
    "find_elsewhere",
    "lay_out_output",
]

StatusReader = Callable[[], tuple[Status, ...]]
"""Reads what the solves reported; most callers never ask."""

NO_MEMORY = "the kernel found no memory for this call"

CPU = torch.device("cpu")
data_ptr = Tensor.data_ptr
empty = np.empty
from_numpy = torch.from_numpy


def find_elsewhere(values: Mapping[str, Tensor], device: torch.device) -> Iterator[Problem]:
    """A problem for each array that lies on another device than the kernel that would read it."""
    for name, x in values.items():
        if x.device != device:
            told = f"'{name}' is on {x.device}, and the kernel runs on {device}"
            yield Problem("wrong-device", told, None, f"move it to {device}")


class Reports(NamedTuple):
    """What every solve told of its points, as the kernel writes it: (steps, points) tables."""

    solves: tuple[str, ...]
    steps: int
    points: int
    dtype: torch.dtype
    memory: Tensor

    @staticmethod
    def allocate(
        solves: tuple[str, ...], steps: int, points: int, dtype: torch.dtype,
        device: torch.device = CPU,
    ) -> "Reports":  # fmt: skip
        """Room for residuals, iterations, pivoted updates, reasons and criteria, in this order."""
        each = -(-steps * points * (dtype.itemsize + 10) // 8) * 8
        memory = torch.empty((len(solves), each), dtype=torch.uint8, device=device)
        return Reports(solves, steps, points, dtype, memory)

    def pack_rows(self, step: int = 0) -> bytes:
        """`Reports::One` of newton.h for each solve, from a step on."""
        n, wide = self.steps * self.points, self.dtype.itemsize
        begin, each = self.memory.data_ptr(), self.memory.shape[1]
        done = step * self.points
        found = []
        for at in range(begin, begin + each * len(self.solves), each or 1):
            counts = at + n * wide
            reason = counts + 8 * n
            found += [reason + done, counts + 4 * done, at + wide * done, counts + 4 * (n + done),
                      reason + n + done]  # fmt: skip
        return struct.pack(f"{len(found)}q", *found)

    def read_statuses(self, begin: int = 0) -> tuple[Status, ...]:
        """One status a solve; its tables are (steps, points)."""
        shape, n, wide = (self.steps, self.points), self.steps * self.points, self.dtype.itemsize
        found = []
        if not self.memory.is_cpu:
            for name, row in zip(self.solves, self.memory, strict=True):
                residual = row[: n * wide].view(self.dtype).reshape(shape)
                counts = row[n * wide : n * (wide + 8)].view(torch.int32).reshape(2, *shape)
                flags = row[n * (wide + 8) : n * (wide + 10)].view(torch.int8).reshape(2, *shape)
                tables = (flags[0], counts[0], residual, counts[1], flags[1])
                found.append(Status(name, *tables, begin=begin))
            return tuple(found)
        # NumPy makes a view in a third of torch's time, and a tenth where caches are cold
        for name, row in zip(self.solves, self.memory.numpy(), strict=True):
            residual = row[: n * wide].view(f"f{wide}").reshape(shape)
            counts = row[n * wide : n * (wide + 8)].view(np.int32).reshape(2, *shape)
            flags = row[n * (wide + 8) : n * (wide + 10)].view(np.int8).reshape(2, *shape)
            tables = (flags[0], counts[0], residual, counts[1], flags[1])
            found.append(Status(name, *map(from_numpy, tables), begin=begin))
        return tuple(found)

    def read_only_step(self) -> tuple[Status, ...]:
        """The statuses of the only step, (points,) each."""
        return tuple(
            Status(
                s.solve, s.reason[0], s.iterations[0], s.residual[0], s.pivoted[0], s.accepted[0]
            )
            for s in self.read_statuses()
        )


class CallLayout:
    """The layout of a call: strides and shapes of its arrays, and room for their addresses."""

    def __init__(
        self, inputs: Sequence[ValueShape], hidden: Sequence[tuple[ValueShape, Tensor]],
        outputs: Sequence[ValueShape], dtype: torch.dtype, values: Sequence[Tensor],
        device: torch.device = CPU,
    ) -> None:  # fmt: skip
        names = [v.name for v in inputs]
        raise_if(find_elsewhere(dict(zip(names, values, strict=True)), device))
        self.inputs, self.hidden, self.dtype = tuple(inputs), tuple(hidden), dtype
        self.device = device
        rows, self.batch = self._flatten(values)
        self.points = math.prod(self.batch)
        count = len(values)
        self.in_place = all(
            r.data_ptr() == x.data_ptr() for r, x in zip(rows, values, strict=False)
        )
        self._held = rows[count:]
        given = [(0, 0, 0 if len(x) == 1 else x.stride(0), x.stride(1), 0) for x in rows]
        self._given = [n for row in given for n in row]
        self._given[5 * count :: 5] = [x.data_ptr() for x in self._held]
        self._gives = [0, 0, 1, self.points] * len(outputs)
        self._outputs = [lay_out_output(v, self.batch) for v in outputs]
        self._pack_given = struct.Struct(f"{len(self._given)}q").pack
        self._pack_gives = struct.Struct(f"{len(self._gives)}q").pack

    def pack_given(self, values: Sequence[Tensor]) -> tuple[Sequence[Tensor], bytes]:
        """The arrays as they are read, copied where they must be, and rows of `Given`."""
        held = values if self.in_place else self._flatten(values)[0][: len(values)]
        row = self._given.copy()
        row[0 : 5 * len(held) : 5] = [x.data_ptr() for x in held]
        return held, self._pack_given(*row)

    def allocate_outputs(self) -> tuple[list[Tensor], bytes]:
        """Arrays for the outputs, and rows of `Gives`."""
        # whatever the default device is: the kernel writes to the addresses of these
        made = [
            torch.empty_strided(*lay_out_output, dtype=self.dtype, device=self.device)
            for lay_out_output in self._outputs
        ]
        row = self._gives.copy()
        row[::4] = [x.data_ptr() for x in made]
        return made, self._pack_gives(*row)

    def _flatten(self, values: Sequence[Tensor]) -> tuple[list[Tensor], tuple[int, ...]]:
        """All arrays as (points, components), or (1, components) where unbatched."""
        pairs = [*zip(self.inputs, values, strict=True), *self.hidden]
        flat, batch = flatten_batch(
            [(v, x.detach().to(self.dtype).resolve_neg()) for v, x in pairs]
        )
        return [x.reshape(len(x), math.prod(x.shape[1:])) for x in flat], batch


class FastCall:
    """The fast path of small calls whose layout is known: argument structs are used again.

    Each call takes structs that no other thread is using.
    """

    def __init__(
        self, run: Any, knobs: object, names: Sequence[str], solves: tuple[str, ...],
        ready: CallLayout, values: Sequence[Tensor],
    ) -> None:  # fmt: skip
        self._run, self._knobs, self._points = run, knobs, ready.points
        like, self._gives = ready.allocate_outputs()
        self._kind = like[0].numpy().dtype
        self._read = range(0, 5 * len(values), 5)
        self._write = [
            (n, 4 * i, *_find_numpy_order(x, len(ready.batch)))
            for i, (n, x) in enumerate(zip(names, like, strict=True))
        ]
        self._given = ready.pack_given(values)[1]
        self._reports = Reports.allocate(solves, 1, ready.points, ready.dtype)
        begin, rows = self._reports.memory.data_ptr(), self._reports.pack_rows()
        addresses = struct.unpack(f"{len(rows) // 8}q", rows)
        self._offsets = [(i, x - begin) for i, x in enumerate(addresses)]
        self._reasons = [slice(x, x + ready.points) for i, x in self._offsets if i % 5 == 0]
        self._converged = bytes(ready.points)
        self._room = ctypes.c_char * max(1, self._reports.memory.numel())
        self._free: list[tuple[Any, Any, Any]] = []

    def __call__(self, values: Sequence[Tensor]) -> tuple[dict[str, Tensor], StatusReader]:
        """The outputs of arrays that lie as those did, and what reads the reports."""
        try:
            rows = self._free.pop()
        except IndexError:
            rows = self._allocate()
        given, gives, told = rows
        for i, x in zip(self._read, values):  # noqa: B905 0.1 µs
            given[i] = data_ptr(x)
        outputs = {}
        for name, i, shape, order in self._write:
            made = empty(shape, self._kind)
            outputs[name] = x = from_numpy(made if order is None else made.transpose(order))
            gives[i] = data_ptr(x)
        room = self._room()
        begin = ctypes.addressof(room)
        for i, x in self._offsets:
            told[i] = begin + x
        points = self._points
        if self._run(given, gives, self._knobs, told, points, 0, 1, 0, points):
            raise MemoryError(NO_MEMORY)
        self._free.append(rows)
        read = partial(self._read_statuses, room)
        for reasons in self._reasons:
            if room[reasons] != self._converged:
                warn_of(failures(read()))
                break
        return outputs, read

    def _allocate(self) -> tuple[Any, Any, Any]:
        sizes = len(self._given) // 8, len(self._gives) // 8, max(1, len(self._offsets))
        given, gives, told = ((ctypes.c_int64 * n)() for n in sizes)
        ctypes.memmove(given, self._given, len(self._given))
        ctypes.memmove(gives, self._gives, len(self._gives))
        return given, gives, told

    def _read_statuses(self, room: Any) -> tuple[Status, ...]:
        like = self._reports.memory
        memory = torch.frombuffer(room, dtype=torch.uint8)[: like.numel()].view(like.shape)
        return self._reports._replace(memory=memory).read_only_step()


def _find_numpy_order(x: Tensor, rank: int) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The shape of an array, and the order of its axes, that make it lie as an output does.

    NumPy needs 0.3 µs less than torch for an array.
    """
    shape = tuple(x.shape)
    if not rank or rank == x.ndim:
        return shape, None
    inner = x.ndim - rank
    return shape[rank:] + shape[:rank], (*range(inner, x.ndim), *range(inner))


def lay_out_output(
    v: ValueShape, batch: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of an output: components outermost, the points of each side by side."""
    points = math.prod(batch)
    inner = _find_strides(batch)
    return (*batch, *v.sizes, *v.base), (
        *inner, *(points * n for n in _find_strides((*v.sizes, *v.base))),
    )  # fmt: skip


def _find_strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]
