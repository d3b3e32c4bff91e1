"""A compiled library and what it reads and gives -> calls and transients, on all cores."""

import ctypes
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from sys import getrefcount
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ingot.codegen.abi import RUN_ARGTYPES, InputSlot, pack_knobs
from ingot.codegen.parallel import run_parallel
from ingot.errors import IngotError, Problem, raise_if
from ingot.execute.batch_shape import ValueShape, join_batches
from ingot.execute.call_layout import (
    CPU,
    NO_MEMORY,
    CallLayout,
    FastCall,
    Reports,
    Task,
    find_elsewhere,
)
from ingot.execute.transient import History, Transient
from ingot.graphs.calls import CallCache, Layouts, layouts_of
from ingot.messages import refuse
from ingot.options import Newton
from ingot.types import lag

__all__ = [
    "KernelEntry", "KernelTransient", "NativeRunner", "Runner", "Runners",
    "open_native_runners",
]  # fmt: skip

MIN_WORK_FOR_THREADS = 1000
"""Points times steps from which a second thread pays."""

MIN_WORK_FOR_OPENMP = 200_000
"""Points times steps from which work runs on torch's OpenMP pool (parallel.py)."""

LINE = 64
"""Points of whole lines of the cache, whatever is written: no two threads write to one."""

TILE = 256
"""Points of a range at least, if there are so many: their steps are taken together (steps.h)."""

RANGES_OF_A_THREAD = 8
"""Ranges that points are cut into for each thread: one that comes late, or finds its core taken,
does fewer of them. A range costs 10 µs of Python."""

MAX_KEPT_BYTES = 1 << 28
"""The largest array whose memory is kept for the next run of the same transient or call.

A fresh page costs up to 2 µs: at 1000 points and 100 steps of `isoharden` that is as much as the
steps themselves, and four times elasticity of 4 million points. What is larger is given back, for
others may need it.
"""

MIN_KEPT_NUMBERS = 1 << 17
"""The smallest output of a call that is kept: what is smaller comes from memory that is in use."""

MAX_KEPT_BYTES_OF_ALL = 1 << 29
"""What one kernel keeps."""

Array = NDArray[np.floating]


def count_references(rooms: list[Array], which: int) -> int:
    """What refers to an array of a list, and the call that counts as this Python sees it."""
    return getrefcount(rooms[which])


UNREAD = count_references([np.empty(0)], 0)
"""The references to an array that nothing but its list holds."""


class Runner(Protocol):
    """What runs a kernel on a device.

    task_points: below so many points the task of one step is worth keeping
    """

    device: torch.device
    task_points: float

    def make_task(
        self, knobs: Any, given: bytes, gives: bytes, rows: bytes, points: int, first: int = 0,
        count: int = 1,
    ) -> Task:  # fmt: skip
        """`count` steps of all points from `first` on, given the rows of C structures.

        It may be run again with other addresses.
        """
        ...


class Runners(NamedTuple):
    """Kernels that are ready on a device.

    open: what runs an entry, by its name and by how many inputs with parameters, outputs and
    solves it has
    """

    device: torch.device
    open: Callable[[str, tuple[int, int, int]], Runner]


class NativeRunner:
    """A function of a library of C++, whose blocks of points are shared among threads."""

    device = CPU
    task_points: float = 2 * MIN_WORK_FOR_THREADS  # from there on a second thread pays

    def __init__(self, function: Any, lanes: int) -> None:
        function.argtypes, function.restype = RUN_ARGTYPES, ctypes.c_int32
        self.function, self.lanes = function, lanes

    def make_task(
        self, knobs: Any, given: bytes, gives: bytes, rows: bytes, points: int, first: int = 0,
        count: int = 1,
    ) -> Task:  # fmt: skip
        """Steps by the thread that calls, or ranges of blocks by threads where it is worth one."""
        whole = given + gives + rows
        numbers = (ctypes.c_int64 * (len(whole) // 8)).from_buffer_copy(whole)
        places = 0, len(given) // 8, (len(given) + len(gives)) // 8
        at = ctypes.addressof(numbers)
        rest = at + len(given), knobs, at + 8 * places[2], points, first, count
        function = self.function

        def work(begin: int, end: int) -> None:
            if function(at, *rest, begin, end):
                raise MemoryError(NO_MEMORY)

        threads = min(torch.get_num_threads(), points * count // MIN_WORK_FOR_THREADS)
        if threads <= 1 or points <= LINE:
            return Task(numbers, places, partial(work, 0, points))
        least = min(TILE, points / threads)
        each = LINE * math.ceil(max(least, points / (threads * RANGES_OF_A_THREAD)) / LINE)
        ranges = [(begin, min(begin + each, points)) for begin in range(0, points, each)]
        threads, is_long = min(threads, len(ranges)), points * count >= MIN_WORK_FOR_OPENMP
        return Task(numbers, places, partial(run_parallel, work, ranges, threads, is_long=is_long))


def open_native_runners(library: ctypes.CDLL, prefix: str) -> Runners:
    """What runs the entries of a library."""
    lanes = _find_function(library, f"{prefix}_lanes")()

    def open_entry(entry: str, _: tuple[int, int, int]) -> Runner:
        return NativeRunner(_find_function(library, f"{prefix}_{entry}_steps"), lanes)

    return Runners(CPU, open_entry)


def _find_function(library: ctypes.CDLL, name: str) -> Any:
    """A function of a library, which is another package's where it has none of this name."""
    try:
        return getattr(library, name)
    except AttributeError:
        raise refuse("no symbol", name=name) from None


@contextmanager
def _tell_full() -> Iterator[None]:
    """An error that tells a remedy where torch finds no memory on a GPU."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        # its second sentence says how much was asked for, its third how much there is
        told = f"the GPU is full: {'. '.join(str(error).split('. ')[1:3])}"
        fix = "give it fewer points or steps at a time, or free memory of the GPU"
        raise IngotError([Problem("no-device-memory", told, None, fix)]) from None


class KernelEntry:
    """A kernel's entry function with the order, names and shapes of its arguments.

    hidden: values of inputs that the caller does not give, after those that it gives; solvers: the
    names of its solves, and the rules that they follow.
    """

    def __init__(
        self, *, run: Runner, inputs: tuple[ValueShape, ...],
        hidden: tuple[tuple[ValueShape, Tensor], ...], outputs: tuple[ValueShape, ...],
        solvers: tuple[tuple[str, Newton], ...], dtype: torch.dtype,
    ) -> None:  # fmt: skip
        self.run, self.dtype, self.device = run, dtype, run.device
        self.inputs, self.outputs, self.solvers = inputs, outputs, solvers
        self.hidden = tuple((v, x.to(self.device)) for v, x in hidden)
        self._reads = tuple(v.name for v in inputs)
        self._solves = tuple(name for name, _ in solvers)
        self._rules = [newton for _, newton in solvers]
        self._knobs = pack_knobs(self._rules)
        self._together = any(newton.stop == "batch" for newton in self._rules)
        self._calls: CallCache[CallLayout] = CallCache()
        self._fast: CallCache[FastCall] = CallCache()
        self._rooms: dict[tuple[str, tuple[int, ...]], list[Array]] = {}

    def __call__(self, inputs: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Reports]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        values = [inputs[name] for name in self._reads]
        fast = self._fast.match(None, values)
        if fast is not None:
            try:
                return fast(values)
            except torch.OutOfMemoryError:
                fast = None  # the slow way, which tells of it
        key = layouts_of(values)
        is_known = self._calls.find(key) is not None
        found = self.call(values, key)
        if is_known and (fast := self.make_fast_call(values, key)) is not None:
            self._fast.guard(None, values, fast)
        return found

    @_tell_full()
    def call(self, values: Sequence[Tensor], key: Layouts) -> tuple[dict[str, Tensor], Reports]:
        """The outputs of inputs in their order, whose signature is known, and the reports."""
        ready = self._calls.find(key)
        if ready is None:
            made = CallLayout(
                self.inputs, self.hidden, self.outputs, self.dtype, values, self.device
            )
            ready = self._calls.keep(key, made)
        held, given = ready.pack_given(values)
        outputs, gives = ready.allocate_outputs(self._allocate_large)
        reports = self.run_reporting(given, gives, (ready.points,), range(1))
        del held  # until here the kernel reads them
        return outputs, reports

    def make_fast_call(self, values: Sequence[Tensor], key: Layouts) -> FastCall | None:
        """A quicker way to make a call like one that was made, if there is one."""
        ready = self._calls.find(key)
        if ready is None or not ready.in_place or self._together:
            return None
        if not 0 < ready.points < self.run.task_points:
            return None
        make_task = partial(self.run.make_task, self._knobs)
        return FastCall(make_task, self._solves, ready, values)

    def _allocate_large(self, name: str, size: int) -> Array | None:
        """Memory for an output of a call or for what solves report, if it is worth keeping."""
        if size < MIN_KEPT_NUMBERS or self.device.type != "cpu":
            return None
        return self.reuse((name, (size,)))

    def reuse(self, key: tuple[str, tuple[int, ...]]) -> Array:
        """Memory that nobody reads, of two that are kept: a loop that assigns its result to the
        same name holds the one while it asks for the other.
        """
        rooms = self._rooms.pop(key, [])  # of two threads one finds them
        # a tensor over an array, or over a view of it, counts as a reader
        unread = (i for i in range(len(rooms)) if count_references(rooms, i) == UNREAD)
        if (found := next(unread, None)) is not None:
            kept = rooms[found]
        else:
            # torch's memory: NumPy asks for huge pages, which take longer to get than small ones
            kept = torch.empty(key[1], dtype=self.dtype, device="cpu").numpy()
            rooms = [*rooms[-1:], kept]
        if kept.nbytes <= MAX_KEPT_BYTES:
            self._rooms[key] = rooms
        while sum(x.nbytes for row in [*self._rooms.values()] for x in row) > MAX_KEPT_BYTES_OF_ALL:
            self._rooms.pop(next(iter(self._rooms)), None)  # what was asked for first
        return kept

    def run_reporting(
        self, given: bytes, gives: bytes, tables: tuple[int, ...], steps: range
    ) -> Reports:
        """Run steps on all points, and tell what the solves reported in tables."""
        points = tables[-1]
        reports = Reports.allocate(
            self._solves, tables, self.dtype, self.device, steps.start, self._allocate_large
        )

        def run(first: int, count: int, rules: object, rows: bytes) -> None:
            if points:
                task = self.run.make_task(rules, given, gives, rows, points, first, count)
                task.start()  # while the task holds the numbers that are read

        if not self._together or not points:
            run(steps.start, len(steps), self._knobs, reports.pack_rows())
            return reports
        # `stop = batch`: each step once to see who needs most updates, then so many for all
        rules = pack_knobs(self._rules)
        for k, step in enumerate(steps):
            rows = reports.pack_rows(k)
            run(step, 1, rules, rows)
            for rule, status, newton in zip(rules, reports, self._rules, strict=False):
                if newton.stop == "batch":
                    rule.min_its = int(torch.atleast_2d(status.iterations)[k].max())
            run(step, 1, rules, rows)
            for rule in rules:
                rule.min_its = 0
        return reports


class KernelTransient:
    """A transient whose arrays lie as the kernel reads them."""

    @_tell_full()
    def __init__(self, entry: KernelEntry, transient: Transient) -> None:
        self.entry = entry
        raise_if(find_elsewhere({**transient.prescribed, **transient.initial}, entry.device))
        self.count = transient.steps
        outputs = {v.name: v for v in entry.outputs}
        # of everything that is known before the first step
        bases = ((v, lag(v.name)[0]) for v in entry.inputs)
        known = [(v, transient.prescribed[n][0]) for v, n in bases if n in transient.prescribed]
        known += [(outputs[n], x) for n, x in transient.initial.items() if n in outputs]
        batches = [tuple(x.shape[: x.ndim - v.rank]) for v, x in (*known, *entry.hidden)]
        self.batch = join_batches(batches)
        self.points = math.prod(self.batch)
        self.slots = [self._lay_out_input(v, transient, outputs) for v in entry.inputs]
        self.slots += [_make_slot(self._flatten(v, x)) for v, x in entry.hidden]
        begun = {name: x[0] for name, x in transient.prescribed.items()}
        first = {
            name: self._flatten(outputs[name], x).T
            for name, x in {**begun, **transient.initial}.items()
            if name in outputs
        }
        self.initial = {name: x.numpy() if x.is_cpu else x for name, x in first.items()}

    def _flatten(self, v: ValueShape, x: Tensor, steps: tuple[int, ...] = ()) -> Tensor:
        """(*steps, points, components) of a value `(*steps, *batch, *axes, *base)`.

        It is viewed where the strides allow it.
        """
        x = x.detach().to(self.entry.dtype).resolve_neg()
        own, rest = x.shape[len(steps) : x.ndim - v.rank], x.shape[x.ndim - v.rank :]
        missing = (1,) * (len(self.batch) - len(own))
        x = x.reshape((*steps, *missing, *own, *rest)).expand((*steps, *self.batch, *rest))
        return x.reshape((*steps, self.points, math.prod(rest)))

    def _lay_out_input(
        self, v: ValueShape, transient: Transient, outputs: Mapping[str, ValueShape]
    ) -> InputSlot:
        base, back = lag(v.name)
        if back and base in outputs:
            return InputSlot(torch.empty(0, device="cpu"), 0, 0, 0, back, base)
        if base in transient.prescribed:
            x = transient.prescribed[base]
            return _make_slot(self._flatten(v, x, (len(x),)), back)
        if back and base in transient.initial:
            first = self._flatten(v, transient.initial[base])
            rows = first.new_zeros(self.count, *first.shape)
            rows[0] = first
            return _make_slot(rows, back)
        return _make_slot(torch.zeros(v.width, dtype=self.entry.dtype, device=self.entry.device))

    @_tell_full()
    def __call__(self) -> History:
        """Run all steps; histories are arrays of NumPy on CPUs, of torch on GPUs, until the end."""
        entry, histories = self.entry, dict[str, Any]()
        places: dict[str, tuple[int, ...]] = {}
        for v in entry.outputs:
            shape = self.count, v.width, self.points
            if entry.device == CPU:
                x: Any = entry.reuse((v.name, shape))
            else:
                x = torch.empty(shape, dtype=entry.dtype, device=entry.device)
            x[:1] = self.initial.get(v.name, 0.0)
            histories[v.name] = x
            address = (x if isinstance(x, Tensor) else torch.from_numpy(x)).data_ptr()
            places[v.name] = address, v.width * self.points, 1, self.points
        read: list[int] = []
        for data, step, point, component, back, link in self.slots:
            at = (data.data_ptr(), step, point, component) if link is None else places[link]
            read += (*at, back)
        given = struct.pack(f"{len(read)}q", *read)
        gives = struct.pack(f"{4 * len(places)}q", *chain(*places.values()))
        steps = range(1, self.count)
        statuses = entry.run_reporting(given, gives, (len(steps), self.points), steps)
        outputs = {}
        for v in entry.outputs:
            rows = histories[v.name].swapaxes(1, 2)
            rows = rows.reshape(self.count, *self.batch, *v.sizes, *v.base)
            outputs[v.name] = rows if isinstance(rows, Tensor) else torch.from_numpy(rows)
        return History(outputs, statuses)


def _make_slot(x: Tensor, back: int = 0) -> InputSlot:
    """A slot over ([[steps,] points,] components)."""
    step, point, component = (0,) * (3 - x.ndim) + x.stride()
    return InputSlot(x, step, point, component, back)
