"""What computes inside an artifact: a package's kernel library, or its compiled graphs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ingot.execute.batch_shape import ValueShape
from ingot.execute.call_layout import CPU, FastCall
from ingot.execute.inductor_run import InductorProgram
from ingot.execute.kernel_run import KernelEntry, KernelTransient, Runners
from ingot.execute.segments_run import Segmented, SegmentedInfo, StepInfo
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient
from ingot.graphs.calls import Layouts, layouts_of
from ingot.package.metadata import Metadata, ParameterInfo, VariableInfo

__all__ = [
    "Backend", "GraphBackend", "KernelBackend", "SegmentedBackend", "load_kernel", "shape_of",
    "tensor_of",
]  # fmt: skip

Pair = tuple[str, str]
Outputs = dict[str, Tensor]


class Backend(Protocol):
    """Values are those of the inputs, then of the promoted parameters; they were checked.

    device: where they lie; has_adjoints: whether it pulls cotangents back to all of them; sums: the
    outputs that have lost axes of the batch.
    """

    name: str
    device: torch.device
    has_adjoints: bool
    sums: frozenset[str]

    def values(self, values: Sequence[Tensor], key: Layouts) -> tuple[Outputs, Sequence[Status]]:
        """The outputs `(*batch, *axes, *base)`; the key is the signature of the values."""
        ...

    def make_fast_call(self, values: Sequence[Tensor], key: Layouts) -> FastCall | None:
        """A quicker way to make the call that was just made, if there is one."""
        ...

    def slopes(
        self, values: Sequence[Tensor], key: Layouts, by: Collection[str]
    ) -> tuple[Outputs, dict[Pair, Tensor], Sequence[Status]]:
        """The outputs and at least the blocks by some of the values, of all that there are,
        unbatched where the batch does not matter.
        """
        ...

    def pull(
        self, values: Sequence[Tensor], cotangents: Mapping[str, Tensor]
    ) -> tuple[Outputs, Outputs, Sequence[Status]]:
        """The outputs, and the adjoints of all values at every point, by name."""
        ...

    def arrange(self, transient: Transient, promoted: Sequence[Tensor]) -> Callable[[], History]:
        """A transient, to be run any number of times."""
        ...

    def under(self, meta: Metadata) -> "Backend":
        """The same code under the solver rules of other metadata."""
        ...


class KernelBackend:
    """The kernel of a package: values from one entry, with blocks or with adjoints from others."""

    name = "kernel"
    sums: frozenset[str] = frozenset()

    def __init__(self, meta: Metadata, runners: Runners) -> None:
        self._runners, self.device = runners, runners.device
        self._pairs = [(b.output, b.input) for b in meta.derivatives]
        self._free = [(b.output, b.input) for b in meta.derivatives if b.batch_independent]
        self._inputs = [shape_of(v) for v in meta.inputs]
        self._fixed = [shape_of(p.variable) for p in meta.parameters]
        self._outputs = [shape_of(v) for v in meta.outputs]
        self._forward = self._open(meta, "forward")
        self._jacobian = self._adjoint = None
        if self._pairs:
            blocks = self._blocks()
            self._jacobian = self._open(meta, "jacobian", gives=blocks)
        self.has_adjoints = meta.adjoints
        if meta.adjoints:
            adjoints = [_marked(v) for v in (*self._inputs, *self._fixed)]
            reads = [_marked(v) for v in self._outputs]
            self._adjoint = self._open(meta, "vjp", reads=reads, gives=adjoints)

    def _blocks(self) -> list[ValueShape]:
        given = {v.name: v for v in (*self._inputs, *self._fixed)}
        gives = {v.name: v for v in self._outputs}
        return [
            ValueShape(f"{y}:{x}", gives[y].sizes + given[x].sizes, gives[y].base + given[x].base)
            for y, x in self._pairs
        ]

    def _open(
        self, meta: Metadata, entry: str, *, reads: Sequence[ValueShape] = (),
        gives: Sequence[ValueShape] = (),
    ) -> KernelEntry:  # fmt: skip
        """An entry of the kernel, and what it reads and gives beyond values."""
        dtype: torch.dtype = getattr(torch, meta.dtype)
        inputs = (*self._inputs, *reads, *self._fixed)
        outputs = (*self._outputs, *gives)
        rows = len(inputs) + len(meta.constants), len(outputs), len(meta.solvers)
        return KernelEntry(
            run=self._runners.open(entry, rows),
            inputs=inputs,
            hidden=tuple((shape_of(p.variable), tensor_of(p, dtype)) for p in meta.constants),
            outputs=outputs,
            solvers=tuple((s.name, s) for s in meta.solvers),
            dtype=dtype,
        )

    def under(self, meta: Metadata) -> "KernelBackend":
        """The same code under other solver rules."""
        return KernelBackend(meta, self._runners)

    def values(self, values: Sequence[Tensor], key: Layouts) -> tuple[Outputs, Sequence[Status]]:
        """The outputs."""
        outputs, reports = self._forward.call(values, key)
        return outputs, reports

    def make_fast_call(self, values: Sequence[Tensor], key: Layouts) -> FastCall | None:
        """A quicker way to make a call like this one."""
        return self._forward.make_fast_call(values, key)

    def slopes(
        self, values: Sequence[Tensor], key: Layouts, by: Collection[str]
    ) -> tuple[Outputs, dict[Pair, Tensor], Sequence[Status]]:
        """The outputs and blocks."""
        assert self._jacobian is not None
        found, reports = self._jacobian.call(values, key)
        blocks = {(y, x): found.pop(f"{y}:{x}") for y, x in self._pairs}
        if self._free:
            somewhere = blocks
            if not all(x.numel() for x in blocks.values()):
                somewhere = self._anywhere(values)
            blocks |= {pair: self._first(somewhere[pair], pair) for pair in self._free}
        return found, blocks, reports

    def _anywhere(self, values: Sequence[Tensor]) -> dict[Pair, Tensor]:
        """The blocks at one point, for those that are the same at all where there is none."""
        assert self._jacobian is not None
        shapes = [s.sizes + s.base for s in self._jacobian.inputs]
        ones = [
            x if x.shape == shape else x.new_ones(shape)
            for x, shape in zip(values, shapes, strict=True)
        ]
        found, _ = self._jacobian.call(ones, layouts_of(ones))
        return {(y, x): found[f"{y}:{x}"] for y, x in self._pairs}

    def _first(self, block: Tensor, pair: Pair) -> Tensor:
        assert self._jacobian is not None
        rank = next(s.rank for s in self._jacobian.outputs if s.name == ":".join(pair))
        return block[(0,) * (block.ndim - rank)]

    def pull(
        self, values: Sequence[Tensor], cotangents: Mapping[str, Tensor]
    ) -> tuple[Outputs, Outputs, Sequence[Status]]:
        """The outputs and adjoints; cotangents that are not given are zero."""
        assert self._adjoint is not None
        count = len(self._inputs)
        zero = torch.zeros((), dtype=self._adjoint.dtype, device=self.device)
        against = [
            cotangents[v.name] if v.name in cotangents else zero.expand(v.sizes + v.base)
            for v in self._outputs
        ]
        whole = [*values[:count], *against, *values[count:]]
        found, reports = self._adjoint.call(whole, layouts_of(whole))
        names = [v.name for v in (*self._inputs, *self._fixed)]
        return found, {x: found.pop(_mark(x)) for x in names}, reports

    def arrange(self, transient: Transient, promoted: Sequence[Tensor]) -> Callable[[], History]:
        """All steps in one native call."""
        whole = self._forward
        count = len(whole.inputs) - len(self._fixed)
        fixed = tuple(zip(self._fixed, promoted, strict=True))
        native = KernelEntry(
            run=whole.run, inputs=whole.inputs[:count],
            hidden=(*fixed, *whole.hidden), outputs=whole.outputs, solvers=whole.solvers,
            dtype=whole.dtype,
        )  # fmt: skip
        return KernelTransient(native, transient)


class SegmentedBackend:
    """The kernel of a model that sums over points: its segments in turn, torch between."""

    name = "kernel"

    def __init__(self, meta: Metadata, runners: Runners) -> None:
        self._runners, self.device = runners, runners.device
        self._pairs = [(b.output, b.input) for b in meta.derivatives]
        self._free = {(b.output, b.input) for b in meta.derivatives if b.batch_independent}
        self._inputs = [v.name for v in meta.inputs]
        self._parameters = [p.variable.name for p in meta.parameters]
        self._outputs = {v.name: shape_of(v) for v in meta.outputs}
        self._runs = {name: self._open(meta, name, cut) for name, cut in meta.cuts.items()}
        self.has_adjoints = meta.adjoints
        forward = meta.cuts["forward"]
        self._sources = {v.name: v.sources for v in forward.values}
        self.sums = frozenset(
            n for n in forward.outputs if forward.levels.keys() & set(self._sources[n])
        )

    def _open(self, meta: Metadata, name: str, cut: SegmentedInfo) -> Segmented:
        """One function, as entries of the kernel."""
        dtype: torch.dtype = getattr(torch, meta.dtype)
        shapes = {v.name: v.shape for v in cut.values}
        rules = {s.name: s for s in meta.solvers}

        def open_step(i: int, step: StepInfo) -> KernelEntry:
            rows = len(step.reads), len(step.gives), len(step.solves)
            return KernelEntry(
                run=self._runners.open(f"{name}_{i}", rows),
                inputs=tuple(shapes[n] for n in step.reads), hidden=(),
                outputs=tuple(shapes[n] for n in step.gives),
                solvers=tuple((n, rules[n]) for n in step.solves), dtype=dtype,
            )  # fmt: skip

        runs = [open_step(i, s) if s.rule is None else None for i, s in enumerate(cut.steps)]
        held = {p.variable.name: tensor_of(p, dtype, self.device) for p in meta.constants}
        return Segmented(cut, runs, dtype=dtype, parameters=held, solves=[*rules])

    def under(self, meta: Metadata) -> "SegmentedBackend":
        """The same code under other solver rules."""
        return SegmentedBackend(meta, self._runners)

    def _given(self, values: Sequence[Tensor]) -> dict[str, Tensor]:
        names = (*self._inputs, *self._parameters)
        return {n: x.detach() for n, x in zip(names, values, strict=True)}

    def values(self, values: Sequence[Tensor], key: Layouts) -> tuple[Outputs, Sequence[Status]]:
        """The outputs."""
        outputs, statuses = self._runs["forward"](self._given(values))
        return outputs, statuses

    def make_fast_call(self, values: Sequence[Tensor], key: Layouts) -> None:
        """There is none."""

    def slopes(
        self, values: Sequence[Tensor], key: Layouts, by: Collection[str]
    ) -> tuple[Outputs, dict[Pair, Tensor], Sequence[Status]]:
        """The outputs and blocks."""
        run = self._runs["jacobian"]
        found, statuses = run(self._given(values))
        blocks = {(y, x): found.pop(f"{y}:{x}") for y, x in self._pairs}
        for y, x in self._free:
            rank = run.shape(f"{y}:{x}").rank
            blocks[y, x] = blocks[y, x][(0,) * (blocks[y, x].ndim - rank)]
        return found, blocks, statuses

    def pull(
        self, values: Sequence[Tensor], cotangents: Mapping[str, Tensor]
    ) -> tuple[Outputs, Outputs, Sequence[Status]]:
        """The outputs and adjoints; cotangents that are not given are zero."""
        run, given = self._runs["vjp"], self._given(values)
        reduced = self._runs["forward"].find_batch(given)
        for y, shape in self._outputs.items():
            bar = cotangents.get(y)
            if bar is None:
                bar = torch.zeros(shape.sizes + shape.base, dtype=run.dtype, device=self.device)
            elif bar.ndim > shape.rank:
                # for all points, and so with axes of one where a sum has lost its own
                for axis in reduced.dims(self._sources[y]) or ():
                    bar = bar.unsqueeze(axis)
            given[f"a.{y}"] = bar.detach()
        found, statuses = run(given)
        names = (*self._inputs, *self._parameters)
        return found, {x: found.pop(f"a.{x}") for x in names}, statuses

    def arrange(self, transient: Transient, promoted: Sequence[Tensor]) -> Callable[[], History]:
        """All steps, one after another."""
        fixed = dict(zip(self._parameters, promoted, strict=True))
        return self._runs["forward"].under(fixed).arrange(transient)


def load_kernel(meta: Metadata, runners: Runners) -> KernelBackend | SegmentedBackend:
    """What runs the kernel of a package."""
    return SegmentedBackend(meta, runners) if meta.cuts else KernelBackend(meta, runners)


class GraphBackend:
    """The `.pt2` graphs of a folder; Newton is driven over them."""

    name = "inductor"
    device = CPU
    has_adjoints = False
    sums: frozenset[str] = frozenset()

    def __init__(self, meta: Metadata, program: InductorProgram) -> None:
        self._inputs = [v.name for v in meta.inputs]
        self._parameters = [p.variable.name for p in meta.parameters]
        dtype: torch.dtype = getattr(torch, meta.dtype)
        constants = {p.variable.name: tensor_of(p, dtype) for p in meta.constants}
        rules = {s.name: s for s in meta.solvers}
        self._program = program.rebind(parameters=constants, rules=rules)

    @staticmethod
    def of(meta: Metadata, read: Callable[[str], bytes]) -> "GraphBackend":
        """The graphs of a package, whose files are read by name."""
        assert meta.inductor is not None
        return GraphBackend(meta, InductorProgram(read, meta.inductor))

    def under(self, meta: Metadata) -> "GraphBackend":
        """The same graphs under other solver rules."""
        return GraphBackend(meta, self._program)

    def _named(self, values: Sequence[Tensor]) -> Mapping[str, Tensor]:
        return dict(zip((*self._inputs, *self._parameters), values, strict=True))

    def values(self, values: Sequence[Tensor], key: Layouts) -> tuple[Outputs, Sequence[Status]]:
        """The outputs."""
        outputs, statuses = self._program(self._named(values))
        return outputs, statuses

    def make_fast_call(self, values: Sequence[Tensor], key: Layouts) -> None:
        """There is none."""

    def slopes(
        self, values: Sequence[Tensor], key: Layouts, by: Collection[str]
    ) -> tuple[Outputs, dict[Pair, Tensor], Sequence[Status]]:
        """The outputs and blocks."""
        outputs, statuses, blocks = self._program.run(self._named(values), slopes=True)
        return outputs, blocks, statuses

    def pull(
        self, values: Sequence[Tensor], cotangents: Mapping[str, Tensor]
    ) -> tuple[Outputs, Outputs, Sequence[Status]]:
        """Graphs have no adjoints."""
        raise NotImplementedError

    def arrange(self, transient: Transient, promoted: Sequence[Tensor]) -> Callable[[], History]:
        """All steps, one after another."""
        fixed = dict(zip(self._parameters, promoted, strict=True))
        return self._program.rebind(parameters=fixed).arrange(transient)


def _mark(name: str) -> str:
    """The name of an adjoint, which no variable has."""
    return f"adjoint of {name}"


def _marked(v: ValueShape) -> ValueShape:
    return ValueShape(_mark(v.name), v.sizes, v.base)


def shape_of(v: VariableInfo) -> ValueShape:
    """The shape of a package's variable."""
    return ValueShape(v.name, v.sub_batch, v.base)


def tensor_of(p: ParameterInfo, dtype: torch.dtype, device: torch.device = CPU) -> Tensor:
    """The value that a package holds of a parameter."""
    return torch.tensor(p.value.values, dtype=dtype, device=device).reshape(p.value.shape)
