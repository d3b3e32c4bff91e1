"""Call layouts: argument structs of a kernel for arrays of one signature, less their addresses."""

import ctypes
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

from ingot.errors import Problem, raise_if
from ingot.execute.batch_shape import ValueShape, flatten_batch
from ingot.execute.status import Status
from ingot.graphs.torch_private import find_allocator, view_memory

__all__ = [
    "CPU",
    "NO_MEMORY",
    "CallLayout",
    "FastCall",
    "Reports",
    "Task",
    "find_elsewhere",
    "lay_out_output",
]

NO_MEMORY = "the kernel found no memory for this call"

Allocate = Callable[[str, int], Any]
"""The name of an output, none of reports, and how many numbers -> an array of NumPy, or None."""

CPU = torch.device("cpu")
data_ptr = Tensor.data_ptr


def find_elsewhere(values: Mapping[str, Tensor], device: torch.device) -> Iterator[Problem]:
    """A problem for each array that lies on another device than the kernel that would read it."""
    for name, x in values.items():
        if x.device != device:
            told = f"'{name}' is on {x.device}, and the kernel runs on {device}"
            yield Problem("wrong-device", told, None, f"move it to {device}")


class Reports(Sequence[Status]):
    """What every solve told of its points: statuses, read where the kernel wrote them once asked.

    tables: (steps, points), or (points,) of one step; begin: the step of the first row; memory: a
    tensor, or a buffer of this process.
    """

    __slots__ = ("_read", "begin", "dtype", "memory", "solves", "tables")

    def __init__(
        self, solves: tuple[str, ...], tables: tuple[int, ...], dtype: torch.dtype, memory: Any,
        begin: int = 0,
    ) -> None:  # fmt: skip
        self.solves, self.tables, self.dtype = solves, tables, dtype
        self.memory, self.begin = memory, begin
        self._read: tuple[Status, ...] | None = None

    @staticmethod
    def allocate(
        solves: tuple[str, ...], tables: tuple[int, ...], dtype: torch.dtype,
        device: torch.device = CPU, begin: int = 0, allocate: Allocate | None = None,
    ) -> "Reports":  # fmt: skip
        """Room for residuals, iterations, pivoted updates, reasons and criteria, in this order.

        allocate: what has memory for some
        """
        size = len(solves) * _count_report_bytes(tables, dtype) // dtype.itemsize
        if allocate is not None and (kept := allocate("", size)) is not None:
            memory = torch.from_numpy(kept)
        else:
            memory = torch.empty(size, dtype=dtype, device=device)
        return Reports(solves, tables, dtype, memory, begin)

    def pack_rows(self, step: int = 0) -> bytes:
        """`Reports::One` of newton.h for each solve, from a step on."""
        found = self.find_offsets(self.memory.data_ptr(), step)
        return struct.pack(f"{len(found)}q", *found)

    def find_offsets(self, begin: int = 0, step: int = 0) -> list[int]:
        """Where the tables of `Reports::One` lie for each solve, in bytes."""
        n, wide = math.prod(self.tables), self.dtype.itemsize
        each, done = _count_report_bytes(self.tables, self.dtype), step * self.tables[-1]
        found = []
        for k in range(len(self.solves)):
            at = begin + k * each
            counts = at + n * wide
            reason = counts + 8 * n
            found += [reason + done, counts + 4 * done, at + wide * done, counts + 4 * (n + done),
                      reason + n + done]  # fmt: skip
        return found

    def __len__(self) -> int:
        return len(self.solves)

    @property
    def has_failed(self) -> bool:
        """Whether a point is known to have failed: for a GPU nobody waits."""
        if isinstance(self.memory, Tensor):
            return self.memory.is_cpu and any(s.has_failed for s in self)
        n, each = math.prod(self.tables), _count_report_bytes(self.tables, self.dtype)
        first = n * (self.dtype.itemsize + 8)
        places = range(first, first + each * len(self.solves), each)
        return any(self.memory[at : at + n].count(0) != n for at in places)

    @overload
    def __getitem__(self, which: int) -> Status: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Status, ...]: ...
    def __getitem__(self, which: int | slice) -> Status | tuple[Status, ...]:
        return self._read_all()[which]

    def __iter__(self) -> Iterator[Status]:
        return iter(self._read_all())  # a sequence's own asks for one more, and catches the error

    def _read_all(self) -> tuple[Status, ...]:
        """All statuses; their tables are views of the memory."""
        if self._read is not None or not self.solves:
            return self._read or ()
        memory: Any = self.memory
        if not isinstance(memory, Tensor):
            memory = torch.frombuffer(memory, dtype=self.dtype)
        counts, flags = memory.view(torch.int32), memory.view(torch.int8)
        rows = (flags, counts, memory, counts, flags) * len(self.solves)
        widths = (1, 4, memory.itemsize, 4, 1) * len(self.solves)
        # plain tuples: torch 2.15 takes no list here, nor a torch.Size
        shape, strides = tuple(self.tables), _find_strides(self.tables)
        places = zip(rows, self.find_offsets(), widths, strict=True)
        tables = [view_memory(row, shape, strides, at // wide) for row, at, wide in places]
        self._read = tuple(
            Status(name, *tables[5 * k : 5 * k + 5], begin=self.begin)
            for k, name in enumerate(self.solves)
        )
        return self._read


def _count_report_bytes(tables: tuple[int, ...], dtype: torch.dtype) -> int:
    """The memory that one solve reports to: whole numbers of 8 bytes."""
    return -(-math.prod(tables) * (dtype.itemsize + 10) // 8) * 8


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
        self.layouts = {v.name: lay_out_output(v, self.batch) for v in outputs}
        self._pack_given = struct.Struct(f"{len(self._given)}q").pack
        self._pack_gives = struct.Struct(f"{len(self._gives)}q").pack

    def pack_given(self, values: Sequence[Tensor]) -> tuple[Sequence[Tensor], bytes]:
        """The arrays as they are read, copied where they must be, and rows of `Given`."""
        held = values if self.in_place else self._flatten(values)[0][: len(values)]
        row = self._given.copy()
        row[0 : 5 * len(held) : 5] = [x.data_ptr() for x in held]
        return held, self._pack_given(*row)

    def allocate_outputs(self, allocate: Allocate | None = None) -> tuple[dict[str, Tensor], bytes]:
        """Arrays for the outputs, and rows of `Gives`; allocate: what has memory for some."""
        made = {
            # whatever the default device is: the kernel writes to the addresses of these
            name: torch.empty_strided(*layout, dtype=self.dtype, device=self.device)
            if allocate is None or (memory := allocate(name, math.prod(layout[0]))) is None
            else torch.from_numpy(memory).as_strided(*layout)
            for name, layout in self.layouts.items()
        }
        row = self._gives.copy()
        row[::4] = [x.data_ptr() for x in made.values()]
        return made, self._pack_gives(*row)

    def _flatten(self, values: Sequence[Tensor]) -> tuple[list[Tensor], tuple[int, ...]]:
        """All arrays as (points, components), or (1, components) where unbatched."""
        pairs = [*zip(self.inputs, values, strict=True), *self.hidden]
        flat, batch = flatten_batch(
            [(v, x.detach().to(self.dtype).resolve_neg()) for v, x in pairs]
        )
        return [x.reshape(len(x), math.prod(x.shape[1:])) for x in flat], batch


class Task(NamedTuple):
    """A call that is laid out but for addresses: rows of `Given`, of `Gives` and of `Reports::One`.

    places: where in the numbers each of the three kinds begins; start: what runs it.
    """

    numbers: Any
    places: tuple[int, int, int]
    start: Callable[[], object]


MakeTask = Callable[[bytes, bytes, bytes, int], Task]
"""What lays out a call, given the rows of all three kinds, and the points."""


class FastCall:
    """The fast path of calls whose layout is known: tasks are used again, with other addresses.

    Each call takes a task that no other thread is using.
    """

    def __init__(
        self, make_task: MakeTask, solves: tuple[str, ...], ready: CallLayout,
        values: Sequence[Tensor],
    ) -> None:  # fmt: skip
        _, gives = ready.allocate_outputs()
        self._ready = ready  # whose arrays of parameters the tasks read
        self._outputs = [*ready.layouts.items()]
        reports = Reports.allocate(solves, (ready.points,), ready.dtype, ready.device)
        rows = ready.pack_given(values)[1], gives, reports.pack_rows(), ready.points
        self._make_task: Callable[[], Task] = partial(make_task, *rows)
        self._solves, self._tables = solves, reports.tables
        self._offsets = reports.find_offsets()
        size = reports.memory.numel()
        self._allocate = find_allocator(ready.device)
        self._memory = (size,), (1,), ready.dtype
        self._buffer = ctypes.c_char * max(1, size * ready.dtype.itemsize)
        self._free: list[Task] = []

    def __call__(self, values: Sequence[Tensor]) -> tuple[dict[str, Tensor], Reports]:
        """The outputs of arrays that lie as those did, and the reports."""
        try:
            task = self._free.pop()
        except IndexError:
            task = self._make_task()
        ready, (numbers, (i, k, r), start) = self._ready, task
        for x in values:
            numbers[i] = data_ptr(x)
            i += 5
        outputs, allocate, dtype = {}, self._allocate, ready.dtype
        for name, layout in self._outputs:
            outputs[name] = x = allocate(*layout, dtype)
            numbers[k] = data_ptr(x)
            k += 4
        if ready.device == CPU:
            memory: Any = self._buffer()  # a tensor takes 0.5 µs more
            begin = ctypes.addressof(memory)
        else:
            memory = allocate(*self._memory)
            begin = data_ptr(memory)
        for offset in self._offsets:
            numbers[r] = begin + offset
            r += 1
        start()
        self._free.append(task)
        return outputs, Reports(self._solves, self._tables, dtype, memory)


def lay_out_output(
    v: ValueShape, batch: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of an output: components outermost, the points of each side by side."""
    points = math.prod(batch)
    inner = _find_strides(batch)
    return (*batch, *v.sizes, *v.base), (
        *inner, *(points * n for n in _find_strides((*v.sizes, *v.base))),
    )  # fmt: skip


def _find_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([math.prod(shape[i + 1 :]) for i in range(len(shape))])
