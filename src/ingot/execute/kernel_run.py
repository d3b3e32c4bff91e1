"""A compiled library and what it reads and gives -> calls and transients, on all cores."""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from sys import getrefcount
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ingot.execute.abi import ARGUMENTS, Given, Gives, Slot, knobs
from ingot.execute.batch_shape import Shape, common
from ingot.execute.call_layout import NO_MEMORY, Again, Ready, Reports, Signature, signature
from ingot.execute.parallel import Work, shared
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient
from ingot.options import Newton
from ingot.types import lag

__all__ = ["Arranged", "Native", "Solver"]

WORTH_A_THREAD = 1000
"""The number of points times steps from which a second thread pays."""

WORTH_A_TEAM = 200_000
"""The number of points times steps from which work is long."""

KEPT = 256
"""How many signatures of calls are remembered."""

KEPT_BYTES = 1 << 26
"""The largest history whose memory is kept for the next run of the same transient.

A fresh page costs up to 2 µs: at 1000 points and 100 steps of `isoharden` that is as much as the
steps themselves. What is larger is given back, for others may need it.
"""

Steps = Callable[[int, int, object, bytes], None]


@dataclass(frozen=True, slots=True)
class Solver:
    """A solve of the library and the rules it follows."""

    name: str
    newton: Newton


class Native:
    """A kernel's entry function with the order, names and shapes of its arguments.

    hidden: values of inputs that the caller does not give, after those that it gives.
    """

    def __init__(
        self, *, run: Any, lanes: int, inputs: tuple[Shape, ...],
        hidden: tuple[tuple[Shape, Tensor], ...], outputs: tuple[Shape, ...],
        solvers: tuple[Solver, ...], dtype: torch.dtype,
    ) -> None:  # fmt: skip
        run.argtypes, run.restype = ARGUMENTS, ctypes.c_int32
        self.run, self.lanes, self.dtype = run, lanes, dtype
        self.inputs, self.hidden, self.outputs, self.solvers = inputs, hidden, outputs, solvers
        self._names = tuple(v.name for v in outputs)
        self._solves = tuple(s.name for s in solvers)
        self._knobs = knobs([s.newton for s in solvers])
        self._together = any(s.newton.stop == "batch" for s in solvers)
        self._ready: dict[Signature, Ready] = {}
        self._rooms: dict[tuple[str, tuple[int, ...]], NDArray[np.floating]] = {}

    def __call__(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        values = [inputs[v.name] for v in self.inputs]
        outputs, reports = self.called(values, signature(values))
        return outputs, reports.single()

    def called(self, values: Sequence[Tensor], key: Signature) -> tuple[dict[str, Tensor], Reports]:
        """The outputs of inputs in their order, whose signature is known, and the reports."""
        ready = self._ready.get(key)
        if ready is None:
            ready = Ready(self.inputs, self.hidden, self.outputs, self.dtype, values)
            if len(self._ready) >= KEPT:
                self._ready.clear()
            self._ready[key] = ready
        held, given = ready.given(values)
        outputs, gives = ready.gives()
        reports = self._reported(given, gives, ready.points, range(1))
        del held  # until here the kernel reads them
        return dict(zip(self._names, outputs, strict=True)), reports

    def again(self, values: Sequence[Tensor], key: Signature) -> Again | None:
        """A quicker way to make a call like one that was made, if there is one."""
        ready = self._ready.get(key)
        small = ready is not None and ready.in_place and 0 < ready.points < 2 * WORTH_A_THREAD
        if ready is None or not small or self._together:
            return None
        return Again(self.run, self._knobs, self._names, self._solves, ready, values)

    def steps(
        self, slots: Sequence[Slot], points: int, steps: range, initial: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """Run a range of steps; outputs are (steps.stop, components, points), zero before it."""
        outputs = {v.name: self._room(v.name, (steps.stop, v.width, points)) for v in self.outputs}
        for name, x in outputs.items():
            x[: steps.start] = initial.get(name, 0.0)
        given = (Given * max(len(slots), 1))()
        for i, slot in enumerate(slots):
            x, strides = slot.data, slot[1:4]
            if slot.link is not None:
                x = outputs[slot.link]
                strides = (x.stride(0), 1, x.stride(1))
            given[i] = Given(x.data_ptr(), *strides, slot.lag)
        gives = (Gives * max(len(outputs), 1))()
        for i, x in enumerate(outputs.values()):
            gives[i] = Gives(x.data_ptr(), x.stride(0), 1, x.stride(1))
        return outputs, self._reported(given, gives, points, steps).statuses(steps.start)

    def _room(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Memory for a history: that of the last one, if no tensor reads it any more."""
        key = (name, shape)
        kept = self._rooms.pop(key, None)  # of two threads one finds it
        if kept is None or getrefcount(kept) > 2:
            # torch's memory: NumPy asks for huge pages, which take longer to get than small ones
            kept = torch.empty(shape, dtype=self.dtype, device="cpu").numpy()
        room = torch.from_numpy(kept)  # its storage counts as a reader until the last view is gone
        if kept.nbytes <= KEPT_BYTES:
            self._rooms[key] = kept
        return room

    def _reported(self, given: object, gives: object, points: int, steps: range) -> Reports:
        """Run steps on all points, and tell what the solves reported."""
        reports = Reports.empty(self._solves, len(steps), points, self.dtype)

        def native(first: int, count: int, rules: object, rows: bytes) -> None:
            def work(begin: int, end: int) -> None:
                if self.run(given, gives, rules, rows, points, first, count, begin, end):
                    raise MemoryError(NO_MEMORY)

            self._spread(points, count, work)

        if self._together and points:
            self._in_lockstep(native, reports, steps)
        else:
            native(steps.start, len(steps), self._knobs, reports.rows())
        return reports

    def _in_lockstep(self, native: Steps, reports: Reports, steps: range) -> None:
        """`stop = batch`: each step once to see who needs most updates, then so many for all."""
        rules = knobs([s.newton for s in self.solvers])
        statuses = reports.statuses()
        for k, step in enumerate(steps):
            rows = reports.rows(k)
            native(step, 1, rules, rows)
            for rule, status, solver in zip(rules, statuses, self.solvers, strict=False):
                if solver.newton.stop == "batch":
                    rule.min_its = int(status.iterations[k].max())
            native(step, 1, rules, rows)
            for rule in rules:
                rule.min_its = 0

    def _spread(self, points: int, steps: int, work: Work) -> None:
        """Work on ranges of whole blocks, one range a thread where it is worth a thread."""
        blocks = -(-points // self.lanes)
        threads = min(torch.get_num_threads(), blocks, points * steps // WORTH_A_THREAD)
        if threads <= 1:
            work(0, points)
            return
        edges = [min(points, blocks * i // threads * self.lanes) for i in range(threads)]
        ranges = [*pairwise([*edges, points])]
        shared(work, ranges, is_long=points * steps >= WORTH_A_TEAM)


class Arranged:
    """A transient whose arrays lie as the kernel reads them."""

    def __init__(self, native: Native, transient: Transient) -> None:
        self.native = native
        self.count = transient.steps
        outputs = {v.name: v for v in native.outputs}
        self.batch = common(_batches(native, transient))
        self.points = math.prod(self.batch)
        self.slots = [self._slot(v, transient, outputs) for v in native.inputs]
        self.slots += [self._fixed(v, x) for v, x in native.hidden]
        begun = {name: x[0] for name, x in transient.prescribed.items()}
        self.initial = {
            name: self._flat(outputs[name], x).T
            for name, x in {**begun, **transient.initial}.items()
            if name in outputs
        }

    def _flat(self, v: Shape, x: Tensor) -> Tensor:
        """(points, components) of a value `(*batch, *axes, *base)`."""
        rest = x.shape[x.ndim - v.rank :]
        spread = x.detach().to(self.native.dtype).resolve_neg().expand((*self.batch, *rest))
        return spread.reshape(self.points, math.prod(rest))

    def _fixed(self, v: Shape, x: Tensor) -> Slot:
        flat = self._flat(v, x)
        return Slot(flat, 0, flat.stride(0), flat.stride(1))

    def _slot(self, v: Shape, transient: Transient, outputs: Mapping[str, Shape]) -> Slot:
        base, back = lag(v.name)
        if back and base in outputs:
            return Slot(torch.empty(0, device="cpu"), 0, 0, 0, back, base)
        if base in transient.prescribed:
            return self._prescribed(v, transient.prescribed[base], back)
        if back and base in transient.initial:
            first = self._flat(v, transient.initial[base])
            rows = first.new_zeros(self.count, *first.shape)
            rows[0] = first
            return _strided(rows, back)
        return Slot(torch.zeros(v.width, dtype=self.native.dtype, device="cpu"), 0, 0, 1)

    def _prescribed(self, v: Shape, x: Tensor, back: int) -> Slot:
        """(steps, points, components), viewed where the strides allow it."""
        x = x.detach().to(self.native.dtype).resolve_neg()
        rank = x.ndim - 1 - v.rank
        rest = x.shape[1 + rank :]
        missing = (1,) * (len(self.batch) - rank)
        x = x.reshape(len(x), *missing, *x.shape[1 : 1 + rank], *rest)
        x = x.expand(len(x), *self.batch, *rest)
        if len(self.batch) != 1 or len(rest) > 1:
            x = x.reshape(len(x), self.points, math.prod(rest))
        return _strided(x if x.ndim == 3 else x[..., None], back)

    def __call__(self) -> History:
        """Run all steps."""
        steps = range(1, self.count)
        found, statuses = self.native.steps(self.slots, self.points, steps, self.initial)
        outputs = {}
        for v in self.native.outputs:
            rows = found[v.name].transpose(1, 2)
            outputs[v.name] = rows.reshape(self.count, *self.batch, *v.sizes, *v.base)
        return History(outputs, statuses)


def _strided(x: Tensor, back: int) -> Slot:
    """A slot over (steps, points, components)."""
    step, point, component = x.stride()
    return Slot(x, step, point, component, back)


def _batches(native: Native, transient: Transient) -> list[tuple[int, ...]]:
    """The batch shapes of everything that is known before the first step."""
    outputs = {v.name: v for v in native.outputs}
    found = [
        (v, transient.prescribed[base][0])
        for v in native.inputs
        if (base := lag(v.name)[0]) in transient.prescribed
    ]
    found += [(outputs[n], x) for n, x in transient.initial.items() if n in outputs]
    return [tuple(x.shape[: x.ndim - v.rank]) for v, x in (*found, *native.hidden)]
