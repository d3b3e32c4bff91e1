"""Program -> generated C++: blocks of points in vector lanes, Newton inside, many steps a call."""

import ctypes
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from ingot.execute.abi import Given, Gives, Slot, knobs, reports
from ingot.execute.batch import common, flattened, restored
from ingot.execute.build import FLAGS, built
from ingot.execute.cpp import source
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient
from ingot.model import lag
from ingot.program import Program, Variable
from ingot.program.passes import planned
from ingot.program.unroll import LIMIT

__all__ = ["Arranged", "Kernel"]

WORTH_A_THREAD = 1000
"""The number of points times steps from which a second thread pays."""

Work = Callable[[int, int], None]
Native = Callable[[int, int, object], None]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count())


class Kernel:
    """Runs a program as native code."""

    def __init__(
        self, program: Program, *, dtype: torch.dtype = torch.float64, unroll_limit: int = LIMIT
    ) -> None:
        self.plan = planned(program, unroll_limit)
        self.program = self.plan.program
        self.dtype = dtype
        self.extents = dict(program.graph.extents)
        real = "double" if dtype == torch.float64 else "float"
        self.source = source(self.plan)
        library = built(self.source, (*FLAGS, f"-DINGOT_REAL={real}"))
        self._run = library.ingot_run
        self._lanes: int = library.ingot_lanes()
        self._solves = [f.solve for f in self.plan.solves.values()]
        self._knobs = knobs([s.newton for s in self._solves])
        self.hidden = [p.value.data.detach().to(dtype) for p in self.program.parameters]

    def __call__(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        given = [(v, inputs[v.name].detach().to(self.dtype)) for v in self.program.inputs]
        hidden = zip(self.program.parameters, self.hidden, strict=True)
        given += [(p.variable, x) for p, x in hidden]
        flat, batch = flattened([(v.kind, len(v.axes), x) for v, x in given])
        slots = []
        for x in flat:
            parts = x.reshape(len(x), math.prod(x.shape[1:]))
            slots.append(Slot(parts, 0, 0 if len(x) == 1 else parts.stride(0), parts.stride(1)))
        points = math.prod(batch)
        outputs, statuses = self.steps(slots, points, range(1), {})
        shaped = {}
        for v in self.program.outputs:
            rows = outputs[v.name][0].T.reshape(points, *self.sizes(v), math.prod(v.kind.base))
            shaped[v.name] = restored(rows, batch, v.kind, len(v.axes))
        return shaped, tuple(_first(s) for s in statuses)

    def transient(self, transient: Transient) -> History:
        """All steps in one native call; step 0 is taken as given."""
        return self.arranged(transient)()

    def arranged(self, transient: Transient) -> "Arranged":
        """The transient with its arrays laid out, to be run any number of times."""
        return Arranged(self, transient)

    def width(self, v: Variable) -> int:
        """The number of components of a variable, every entry of its axes counted."""
        return math.prod([*self.sizes(v), *v.kind.base])

    def sizes(self, v: Variable) -> list[int]:
        """The extents of a variable's axes."""
        return [self.extents[a.name] + a.offset for a in v.axes]

    def steps(
        self, slots: Sequence[Slot], points: int, steps: range, initial: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """Run a range of steps; outputs are (steps.stop, components, points), zero before it."""
        shape = {v.name: (steps.stop, self.width(v), points) for v in self.program.outputs}
        outputs = {name: torch.empty(size, dtype=self.dtype) for name, size in shape.items()}
        for name, x in outputs.items():
            x[: steps.start] = initial.get(name, 0.0)
        given = (Given * max(len(slots), 1))()
        for i, slot in enumerate(slots):
            x, strides = slot.data, slot[1:4]
            if slot.link is not None:
                x = outputs[slot.link]
                strides = (x.stride(0), 1, x.stride(1))
            given[i] = Given(x.data_ptr(), *strides, slot.lag)
        gives = (Gives * len(outputs))()
        for i, x in enumerate(outputs.values()):
            gives[i] = Gives(x.data_ptr(), x.stride(0), 1, x.stride(1))
        statuses = [_empty(s.name, steps, points, self.dtype) for s in self._solves]

        def native(first: int, count: int, rows: object) -> None:
            def work(begin: int, end: int) -> None:
                numbers = map(ctypes.c_int64, (points, first, count, begin, end))
                self._run(given, gives, self._knobs, rows, *numbers)

            self._spread(points, count, work)

        if any(s.newton.stop == "batch" for s in self._solves) and points:
            self._in_lockstep(native, statuses, steps)
        else:
            native(steps.start, len(steps), reports(statuses, 0))
        return outputs, tuple(statuses)

    def _in_lockstep(self, native: Native, statuses: Sequence[Status], steps: range) -> None:
        """`stop = batch`: each step once to see who needs most updates, then so many for all."""
        for k, step in enumerate(steps):
            rows = reports(statuses, k)
            native(step, 1, rows)
            for row, status, solve in zip(self._knobs, statuses, self._solves, strict=False):
                if solve.newton.stop == "batch":
                    row.min_its = int(status.iterations[k].max())
            native(step, 1, rows)
            for row in self._knobs:
                row.min_its = 0

    def _spread(self, points: int, steps: int, work: Work) -> None:
        """Work on ranges of whole blocks, one range a thread where it is worth a thread."""
        blocks = -(-points // self._lanes)
        threads = min(torch.get_num_threads(), blocks, points * steps // WORTH_A_THREAD)
        if threads <= 1:
            work(0, points)
            return
        edges = [min(points, blocks * i // threads * self._lanes) for i in range(threads)]
        jobs = [_pool().submit(work, a, b) for a, b in pairwise([*edges, points])]
        for job in jobs:
            job.result()


class Arranged:
    """A transient whose arrays lie as the kernel reads them."""

    def __init__(self, kernel: Kernel, transient: Transient) -> None:
        self.kernel = kernel
        self.count = transient.steps
        program = kernel.program
        outputs = {v.name: v for v in program.outputs}
        hidden = list(zip((p.variable for p in program.parameters), kernel.hidden, strict=True))
        self.batch = common(_batches(program, transient, hidden))
        self.points = math.prod(self.batch)
        self.slots = [self._slot(v, transient, outputs) for v in program.inputs]
        self.slots += [self._fixed(v, x) for v, x in hidden]
        begun = {name: x[0] for name, x in transient.prescribed.items()}
        self.initial = {
            name: self._flat(outputs[name], x).T
            for name, x in {**begun, **transient.initial}.items()
            if name in outputs
        }

    def _flat(self, v: Variable, x: Tensor) -> Tensor:
        """(points, components) of a value `(*batch, *axes, *base)`."""
        rest = x.shape[x.ndim - len(v.axes) - len(v.kind.base) :]
        spread = x.to(self.kernel.dtype).expand((*self.batch, *rest))
        return spread.reshape(self.points, math.prod(rest))

    def _fixed(self, v: Variable, x: Tensor) -> Slot:
        flat = self._flat(v, x)
        return Slot(flat, 0, flat.stride(0), flat.stride(1))

    def _slot(self, v: Variable, transient: Transient, outputs: Mapping[str, Variable]) -> Slot:
        base, back = lag(v.name)
        if back and base in outputs:
            return Slot(torch.empty(0), 0, 0, 0, back, base)
        if base in transient.prescribed:
            return self._prescribed(v, transient.prescribed[base], back)
        if back and base in transient.initial:
            first = self._flat(v, transient.initial[base])
            rows = torch.zeros(self.count, *first.shape, dtype=first.dtype)
            rows[0] = first
            return _strided(rows, back)
        return Slot(torch.zeros(self.kernel.width(v), dtype=self.kernel.dtype), 0, 0, 1)

    def _prescribed(self, v: Variable, x: Tensor, back: int) -> Slot:
        """(steps, points, components), viewed where the strides allow it."""
        x = x.detach().to(self.kernel.dtype)
        rank = x.ndim - 1 - len(v.axes) - len(v.kind.base)
        rest = x.shape[1 + rank :]
        missing = (1,) * (len(self.batch) - rank)
        x = x.reshape(len(x), *missing, *x.shape[1 : 1 + rank], *rest)
        x = x.expand(len(x), *self.batch, *rest)
        if len(self.batch) != 1 or len(rest) > 1:
            x = x.reshape(len(x), self.points, math.prod(rest))
        return _strided(x if x.ndim == 3 else x[..., None], back)

    def __call__(self) -> History:
        """Run all steps."""
        kernel = self.kernel
        steps = range(1, self.count)
        found, statuses = kernel.steps(self.slots, self.points, steps, self.initial)
        outputs = {}
        for v in kernel.program.outputs:
            rows = found[v.name].transpose(1, 2)
            outputs[v.name] = rows.reshape(self.count, *self.batch, *kernel.sizes(v), *v.kind.base)
        return History(outputs, statuses)


def _strided(x: Tensor, back: int) -> Slot:
    """A slot over (steps, points, components)."""
    step, point, component = x.stride()
    return Slot(x, step, point, component, back)


def _batches(
    program: Program, transient: Transient, hidden: Sequence[tuple[Variable, Tensor]]
) -> list[tuple[int, ...]]:
    """The batch shapes of everything that is known before the first step."""
    outputs = {v.name: v for v in program.outputs}
    found = [
        (v, transient.prescribed[base][0])
        for v in program.inputs
        if (base := lag(v.name)[0]) in transient.prescribed
    ]
    found += [(outputs[n], x) for n, x in transient.initial.items() if n in outputs]
    shapes = []
    for v, x in (*found, *hidden):
        shapes.append(tuple(x.shape[: x.ndim - len(v.axes) - len(v.kind.base)]))
    return shapes


def _empty(name: str, steps: range, points: int, dtype: torch.dtype) -> Status:
    def table(kind: torch.dtype) -> Tensor:
        return torch.empty(len(steps), points, dtype=kind)

    kinds = (torch.int8, torch.int32, dtype, torch.int32)
    return Status(name, *map(table, kinds), begin=steps.start)


def _first(s: Status) -> Status:
    return Status(s.solve, s.reason[0], s.iterations[0], s.residual[0], s.pivoted[0])
