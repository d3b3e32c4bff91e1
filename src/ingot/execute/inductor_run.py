"""Compiled graphs and their description -> calls, transients, derivatives; Newton is driven here.

Needs torch and msgspec; knows nothing of models, programs or compilers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor

from ingot.execute.batch_shape import flatten_batch
from ingot.execute.inductor_metadata import (
    ForwardSegment,
    ImplicitSegment,
    InductorDescription,
)
from ingot.execute.newton import StepsInParts, run_newton
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient, step_calls
from ingot.graphs.openmp import run_alone
from ingot.graphs.torch_private import load_graph

__all__ = ["InductorDescription", "InductorProgram"]

MIN_POINTS_FOR_THREADS = 2000
"""The number of points from which a second thread pays."""

Values = dict[str, Tensor]
Pair = tuple[str, str]
Boxed = Callable[[list[Tensor]], Sequence[Tensor]]
"""A loaded graph; it empties the list of its arguments."""


@dataclass(frozen=True, slots=True)
class CallResults:
    """What a call computes: all values by name (components, points), statuses, and derivatives.

    slopes: (value, input) -> (rows, columns, points), or (rows, columns) where constant.
    """

    values: Values
    statuses: tuple[Status, ...]
    slopes: dict[Pair, Tensor]

    def drop_points(self) -> "CallResults":
        """The same of no point; constant derivatives stay."""
        values = {n: x[:, :0] for n, x in self.values.items()}
        slopes = {n: x if x.ndim == 2 else x[..., :0] for n, x in self.slopes.items()}
        return CallResults(
            values, tuple(s.change(lambda row: row[:0]) for s in self.statuses), slopes
        )


class InductorProgram:
    """Runs compiled graphs. It trusts its caller: names, shapes and kinds are not checked.

    parameters: values of parameters that calls need not give; rules: of solves, by their names, in
    the place of the description's; read: the archive of a graph by name; load: what runs it.
    """

    def __init__(
        self, read: Callable[[str], Any], description: InductorDescription, *,
        parameters: Mapping[str, Tensor] | None = None, rules: Mapping[str, Any] | None = None,
        load: Callable[[Any], Any] = load_graph,
    ) -> None:  # fmt: skip
        self.description = description
        self.dtype: torch.dtype = getattr(torch, description.dtype)
        self.parameters = dict(parameters or {})
        self.rules = dict(rules or {})
        self._inner = {
            s.name: InductorProgram(read, s.inner, load=load)
            for s in description.segments
            if isinstance(s, ImplicitSegment) and s.inner is not None
        }
        inside = {f for inner in self._inner.values() for f in inner.description.files}
        own = [file for file in description.files if file not in inside]
        self._graphs = {file: load(read(file)).boxed_run for file in own}
        self._shape = {v.name: v.shape for v in description.values}
        names = (*description.inputs, *description.parameters)
        self._given = {description.given.get(n, n): self._shape[n] for n in names}
        asked = {s.input for s in description.slopes}
        self._wanted = {v.name: name for name, v in self._given.items() if name in asked}

    def rebind(
        self, *, parameters: Mapping[str, Tensor] | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> "InductorProgram":  # fmt: skip
        """The same graphs with more parameters given, or under other rules."""
        other = copy(self)
        other.parameters = {**self.parameters, **(parameters or {})}
        other.rules = {**self.rules, **(rules or {})}
        return other

    def __call__(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        outputs, statuses, _ = self.run(inputs, slopes=False)
        return outputs, statuses

    def run(
        self, inputs: Mapping[str, Tensor], *, slopes: bool
    ) -> tuple[dict[str, Tensor], tuple[Status, ...], dict[Pair, Tensor]]:
        """Outputs, statuses, and if asked for the derivative blocks of every pair:
        `(*batch, *axes, *axes, *base, *base)`, without batch where constant.
        """
        given = {**self.parameters, **inputs}
        rows = [
            (v, given[name].detach().to(self.dtype).resolve_neg())
            for name, v in self._given.items()
        ]
        flat, batch = flatten_batch(rows)
        points = math.prod(batch)
        values = {
            v.name: x.reshape(len(x), v.width).t().expand(v.width, points).contiguous()
            for (v, _), x in zip(rows, flat, strict=True)
        }
        if points == 0:  # graphs take one or more: of one, shapes and constant blocks are kept
            values = {n: x.new_ones(len(x), 1) for n, x in values.items()}
        with run_alone(points < MIN_POINTS_FOR_THREADS):
            found = self._run_segments(values, slopes=slopes)
        if points == 0:
            found = found.drop_points()
        names = self.description.outputs
        shapes = {n: (*batch, *self._shape[n].sizes, *self._shape[n].base) for n in names}
        outputs = {n: found.values[n].t().reshape(shape) for n, shape in shapes.items()}
        return outputs, found.statuses, self._read_blocks(found, batch) if slopes else {}

    def transient(self, transient: Transient) -> History:
        """All steps, one after another."""
        given = dict([*self._given.items()][: len(self.description.inputs)])
        return step_calls(self, given, self.description.outputs, transient, self.dtype)

    def arrange(self, transient: Transient) -> Callable[[], History]:
        """The run of a transient."""
        return partial(self.transient, transient)

    # segments in turn

    def _run_segments(self, values: Values, *, slopes: bool) -> CallResults:
        statuses: dict[str, Status] = {}
        known: dict[Pair, Tensor] = {}
        for segment in self.description.segments:
            reads = {n: values[n] for n in segment.reads}
            local: dict[Pair, Tensor] = {}
            if isinstance(segment, ForwardSegment):
                # values are those of a call without derivatives, to the last bit
                found = self._graphs[segment.value]([*reads.values()])
                values.update(zip(segment.gives, found, strict=True))
                if slopes and segment.jvp is not None:
                    pairs = [(s.output, s.input) for s in segment.slopes]
                    blocks = self._graphs[segment.jvp]([*reads.values()])
                    local = dict(zip(pairs, blocks, strict=True))
            else:
                u, status, inside = self._run_newton(segment, reads)
                taken: list[TakenPart] = []
                if segment.level and not bool(status.converged.all()):
                    u, status, taken = self._take_in_parts(segment, reads, u, status)
                # solves inside the residuals tell of their last call, before the solve itself
                statuses |= {s.solve: s for s in (*inside, status)}
                values |= self._split(segment.gives, u)
                if slopes:
                    local = self._run_sensitivity(segment, u, reads, taken)
            self._chain(local, known)
        return CallResults(values, tuple(statuses.values()), known)

    def _split(self, names: Sequence[str], x: Tensor, dim: int = 0) -> Values:
        """What lies end to end in an array, by the names of the values."""
        widths = [self._shape[n].width for n in names]
        return dict(zip(names, x.split(widths, dim), strict=True))

    def _run_sensitivity(
        self, segment: ImplicitSegment, u: Tensor, reads: Values, taken: "Sequence[TakenPart]"
    ) -> dict[Pair, Tensor]:
        """The derivatives of the unknowns by what is read; NaN at points that failed."""
        if not segment.columns:
            return {}
        whole = self._open_equations(segment, reads).sensitivity(u)
        more = sum(self._shape[n].width for n in segment.varied[len(segment.columns) :])
        whole = torch.cat([whole, whole.new_zeros((len(whole), more, whole.shape[-1]))], 1)
        if taken:
            self._differentiate_parts(segment, taken, whole)
        whole = torch.where(u.isfinite().all(0), whole, math.nan)
        return {
            (y, x): block
            for y, row in self._split(segment.gives, whole).items()
            for x, block in self._split(segment.varied, row, 1).items()
        }

    def _differentiate_parts(
        self, segment: ImplicitSegment, taken: "Sequence[TakenPart]", whole: Tensor
    ) -> None:
        """Put the derivatives of points whose step was taken in parts in their place."""
        own = torch.eye(whole.shape[1], dtype=self.dtype)[..., None]
        ends = self._split(segment.varied, own)
        carried = {n: ends[n].repeat(1, 1, whole.shape[-1]) for n in segment.carried}
        for part in taken:
            at = part.points
            here = ends | {n: x[..., at] for n, x in carried.items()}
            here |= _blend_forces(segment, part.begin, part.end, ends)
            system = self._open_equations(segment, part.reads)
            local = self._split(segment.columns, system.sensitivity(part.unknowns), 1)
            found = torch.stack([
                _multiply_blocks(block, here[n].expand(-1, -1, len(at)))
                for n, block in local.items()
            ]).sum(0)  # fmt: skip
            whole[..., at] = found
            here |= self._split(segment.gives, found)
            for n, other in segment.carried.items():
                carried[n][..., at] = here[other].expand(-1, -1, len(at))

    def _chain(self, local: dict[Pair, Tensor], known: dict[Pair, Tensor]) -> None:
        """Adds the derivatives of a segment's values by inputs, given those of what it read."""
        for (y, by), block in local.items():
            if by in self._wanted:
                _add_block(known, (y, self._wanted[by]), block)
            for (middle, x), inner in list(known.items()):
                if middle == by:
                    _add_block(known, (y, x), _multiply_blocks(block, inner))

    def _read_blocks(self, found: CallResults, batch: tuple[int, ...]) -> dict[Pair, Tensor]:
        result: dict[Pair, Tensor] = {}
        for s in self.description.slopes:
            y, x = self._shape[s.output], self._given[s.input]
            block = self._read_block(found, s.output, s.input)
            lead = batch if block.ndim == 3 else ()
            groups = map(math.prod, (y.sizes, y.base, x.sizes, x.base, lead))
            parts = block.reshape(*groups).transpose(1, 2).movedim(-1, 0)
            shape = (*lead, *y.sizes, *x.sizes, *y.base, *x.base)
            result[s.output, s.input] = parts.reshape(shape)
        return result

    def _read_block(self, found: CallResults, output: str, input: str) -> Tensor:
        """A derivative (rows, columns, points), or (rows, columns) where it is constant."""
        block = found.slopes.get((output, input))
        if block is not None:
            return block
        y, x = self._shape[output], self._given[input]
        none = torch.zeros((y.width, x.width), dtype=self.dtype, device="cpu")
        return none.fill_diagonal_(1) if output == x.name else none

    # Newton

    def _run_newton(
        self, segment: ImplicitSegment, reads: Values, *, in_parts: bool = False
    ) -> tuple[Tensor, Status, Sequence[Status]]:
        """The unknowns and what became of every point, also of solves inside."""
        if segment.predictor is not None:
            (start,) = self._graphs[segment.predictor]([*reads.values()])
        else:
            start = torch.cat([reads[n] for n in segment.guesses])
        system = self._open_equations(segment, reads)
        rules = self.rules.get(segment.name, segment.rules)
        if segment.level:
            # points that need no parts do not wait for those that do
            rules = replace(rules, stop="point")
        u, status = run_newton(
            segment.name, start, system.rhs, system.step, rules,
            [self._shape[n].width for n in segment.gives], in_parts=in_parts,
        )  # fmt: skip
        return u, status, system.statuses

    def _take_in_parts(
        self, segment: ImplicitSegment, reads: Values, u: Tensor, status: Status
    ) -> "tuple[Tensor, Status, list[TakenPart]]":
        """The steps of points that failed, taken in parts."""
        steps, taken = StepsInParts(segment.level, u, status), list[TakenPart]()
        whole = {n: x[:, steps.failed] for n, x in reads.items()}
        carried = {n: whole[n].clone() for n in segment.carried}
        for index, begin, end in steps:
            here = {n: x[:, index] for n, x in (whole | carried).items()}
            here |= _blend_forces(segment, begin, end, here)
            here = {n: x.contiguous() for n, x in here.items()}
            found, said, _ = self._run_newton(segment, here, in_parts=True)
            good = steps.keep(index, found, said)
            ends = here | self._split(segment.gives, found)
            for n, other in segment.carried.items():
                carried[n][:, index[good]] = ends[other][:, good]
            kept = {n: x[:, good].contiguous() for n, x in here.items()}
            place, unknowns = steps.failed[index[good]], found[:, good].contiguous()
            taken.append(TakenPart(place, begin[good], end[good], kept, unknowns))
        return *steps.finish(), taken

    def _open_equations(
        self, segment: ImplicitSegment, reads: Values
    ) -> "_GraphEquations | _NestedEquations":
        """The equations of a solve, given what it reads."""
        inner = self._inner.get(segment.name)
        if inner is None:
            return _GraphEquations(self._graphs, segment, reads)
        return _NestedEquations(inner.rebind(rules=self.rules), segment, reads)


@dataclass(frozen=True, slots=True)
class TakenPart:
    """Parts of steps: of which points, from where to where, what was read, and their unknowns."""

    points: Tensor
    begin: Tensor
    end: Tensor
    reads: Values
    unknowns: Tensor


def _blend_forces(segment: ImplicitSegment, begin: Tensor, end: Tensor, values: Values) -> Values:
    """The ends of forces in a part of a step, of values over the whole step."""
    blended = {}
    for p in segment.parts:
        if p.role != "carried":
            names = (p.name, p.other) if p.role == "old" else (p.other, p.name)
            at, (old, new) = begin if p.role == "old" else end, (values[n] for n in names)
            blended[p.name] = (1.0 - at) * old + at * new
    return blended


@dataclass(frozen=True, slots=True)
class _GraphEquations:
    """Equations as graphs."""

    graphs: Mapping[str, Boxed]
    segment: ImplicitSegment
    reads: Values
    statuses: tuple[Status, ...] = ()

    def _run_graph(self, file: str | None, *given: Tensor) -> Sequence[Tensor]:
        assert file is not None
        return self.graphs[file]([*given, *self.reads.values()])

    def rhs(self, u: Tensor) -> Tensor:
        """The residual with its sign changed."""
        (right,) = self._run_graph(self.segment.rhs, u)
        return right

    def step(self, u: Tensor, right: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """The unknowns after an update of the active points, and the right-hand side there."""
        # Held here: a graph that frees an argument's last reference waits for the interpreter
        # lock while it has the graph, and another thread may wait for the graph with the lock.
        length = active.to(u.dtype)
        moved, after = self._run_graph(self.segment.step, u, length)
        return moved, after

    def sensitivity(self, u: Tensor) -> Tensor:
        """$-A^{-1} B$ (unknowns, columns, points)."""
        (whole,) = self._run_graph(self.segment.ift, u)
        return whole


@dataclass(slots=True)
class _NestedEquations:
    """Equations whose residuals solve others: a run of segments at every call."""

    inner: InductorProgram
    segment: ImplicitSegment
    reads: Values
    statuses: tuple[Status, ...] = ()

    def _run(self, u: Tensor, *, slopes: bool) -> CallResults:
        names = self.inner.description.inputs[: len(self.segment.gives)]
        return self.inner._run_segments(self.reads | self.inner._split(names, u), slopes=slopes)

    def rhs(self, u: Tensor) -> Tensor:
        """The residual with its sign changed."""
        found = self._run(u, slopes=False)
        self.statuses = found.statuses
        return -torch.cat([found.values[n] for n in self.inner.description.outputs])

    def step(self, u: Tensor, right: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """The unknowns after an update of the active points, and the right-hand side there."""
        matrix, _ = self._differentiate(u)
        update = torch.linalg.solve_ex(matrix, right.t()[..., None])[0][..., 0].t()
        moved = torch.where(active, u + update.contiguous(), u)
        return moved, self.rhs(moved)

    def sensitivity(self, u: Tensor) -> Tensor:
        """$-A^{-1} B$ (unknowns, columns, points)."""
        left, right = self._differentiate(u)
        return torch.linalg.solve_ex(left, -right)[0].permute(1, 2, 0)

    def _differentiate(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """The residuals' derivatives by unknowns and by columns read, (points, rows, columns)."""
        found, inner = self._run(u, slopes=True), self.inner
        outputs, inputs = inner.description.outputs, inner.description.inputs

        def join(names: Sequence[str]) -> Tensor:
            rows = [torch.cat([lift(y, x) for x in names], 1) for y in outputs]
            return torch.cat(rows).permute(2, 0, 1)

        def lift(y: str, x: str) -> Tensor:
            block = inner._read_block(found, y, x)
            return block if block.ndim == 3 else block[..., None].expand(-1, -1, u.shape[-1])

        matrix = join(inputs[: len(self.segment.gives)])
        columns = self.segment.columns
        return matrix, join(columns) if columns else matrix[..., :0]


def _multiply_blocks(left: Tensor, right: Tensor) -> Tensor:
    """A product of blocks, each with or without points."""
    if left.ndim == right.ndim == 2:
        return left @ right
    kinds = ["ij", "ijp"][left.ndim == 3], ["jk", "jkp"][right.ndim == 3]
    return torch.einsum(f"{kinds[0]},{kinds[1]}->ikp", left, right)


def _add_block(known: dict[Pair, Tensor], pair: Pair, block: Tensor) -> None:
    if pair in known:
        old = known[pair]
        if old.ndim != block.ndim:
            old, block = (x if x.ndim == 3 else x[..., None] for x in (old, block))
        block = old + block
    known[pair] = block
