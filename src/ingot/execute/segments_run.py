"""Segments in turn: those that run points apart, sums over the batch and functions between them.

Needs torch and msgspec; knows nothing of models, programs or compilers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial

import msgspec
import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, raise_if
from ingot.execute.autograd_guard import find_lost_gradients
from ingot.execute.batch_shape import ValueShape, join_batches
from ingot.execute.status import Status, spoil_slopes
from ingot.execute.transient import History, Transient, step_calls
from ingot.graphs.calls import CallCache
from ingot.types.batches import Level, PointRule, Reduced, apply_rule, find_dims

__all__ = ["PassedInfo", "Segmented", "SegmentedInfo", "StepInfo"]

Run = Callable[[Mapping[str, Tensor]], tuple[Mapping[str, Tensor], Sequence[Status]]]
"""What runs a segment: values read by name -> values given, and the status of its solves."""


class PassedInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that is passed between segments.

    sources: the inputs and levels that it depends on, which decide its batch.
    """

    name: str
    sizes: tuple[int, ...]
    base: tuple[int, ...]
    sources: tuple[str, ...]

    @property
    def shape(self) -> ValueShape:
        """What callers see of it."""
        return ValueShape(self.name, self.sizes, self.base)


class StepInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A segment: what it reads and gives, and what it solves.

    rule: what it does with points, if that is all, along the axis `dim` of the batch; like: the
    sources of the value whose batch is made to fit.
    """

    reads: tuple[str, ...]
    gives: tuple[str, ...]
    rule: PointRule | None = None
    dim: int = 0
    like: tuple[str, ...] = ()
    solves: tuple[str, ...] = ()


class SegmentedInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that running segments in turn needs to know.

    values: every value by name; given: what the caller gives, inputs then parameters, by the names
    that segments read; levels: values of other batches than inputs have.
    """

    values: tuple[PassedInfo, ...]
    given: dict[str, str]
    inputs: int
    outputs: tuple[str, ...]
    steps: tuple[StepInfo, ...]
    levels: dict[str, Level]


class Segmented:
    """Runs segments in turn. It trusts its caller: names, shapes and kinds are not checked.

    runs: what runs each step that is more than a rule; parameters: values of those that calls need
    not give; solves: the order of statuses; slopes: each derivative after its value.
    """

    def __init__(
        self, info: SegmentedInfo, runs: Sequence[Run | None], *, dtype: torch.dtype,
        parameters: Mapping[str, Tensor] | None = None, solves: Sequence[str] = (),
        slopes: Sequence[tuple[ValueShape, ValueShape]] = (),
    ) -> None:  # fmt: skip
        self.info, self.runs, self.dtype = info, runs, dtype
        self.parameters = dict(parameters or {})
        self.solves, self.slopes = tuple(solves), tuple(slopes)
        self._value = {v.name: v for v in info.values}
        self._sources = {
            step: tuple(dict.fromkeys(x for n in step.reads for x in self._value[n].sources))
            for step in info.steps
        }
        self._batches: CallCache[Reduced] = CallCache()

    def __call__(self, inputs: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Sequence[Status]]:
        """The outputs `(*batch, *axes, *base)`, where sums have lost axes; statuses of solves."""
        raise_if(find_lost_gradients(inputs, "a compiled segment"))
        values, reduced = self._begin(inputs)
        batch = reduced.batch
        statuses: dict[str, Status] = {}
        with torch.no_grad():
            for step, run in zip(self.info.steps, self.runs, strict=True):
                for n in step.gives:
                    reduced.dims(
                        self._value[n].sources
                    )  # refuses batches that do not meet, axes that are not
                if step.rule is not None:
                    (read,), (gives,) = step.reads, step.gives
                    lost, like = reduced.dims(self._value[read].sources), reduced.dims(step.like)
                    x = apply_rule(step.rule, step.dim, values[read], lost, like, batch)
                    values[gives] = x
                else:
                    assert run is not None
                    found, told = run({n: values[n] for n in step.reads})
                    values |= {n: self._narrow(found[n], n, reduced) for n in step.gives}
                    dims = reduced.dims(self._sources[step]) if told else ()
                    statuses = {s.solve: s.spread(dims, batch) for s in told} | statuses
        outputs = {n: self._spread(values[n], n, reduced) for n in self.info.outputs}
        told = tuple(statuses[n] for n in dict.fromkeys((*self.solves, *statuses)))
        return spoil_slopes(outputs, told, self.slopes), told

    def find_batch(self, inputs: Mapping[str, Tensor]) -> Reduced:
        """The batch of a call, and what of it each value has."""
        return self._begin(inputs)[1]

    def shape(self, name: str) -> ValueShape:
        """The shape of a value."""
        return self._value[name].shape

    def under(self, parameters: Mapping[str, Tensor]) -> "Segmented":
        """The same with more parameters given."""
        other = copy(self)
        other.parameters = {**self.parameters, **parameters}
        return other

    def _begin(self, inputs: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Reduced]:
        """What is given, at all points or without a batch."""
        given = {**self.parameters, **inputs}
        rows = {key: given[name].to(self.dtype) for key, name in self.info.given.items()}
        own = {k: x.shape[: x.ndim - self.shape(k).rank] for k, x in rows.items()}
        batch = join_batches([tuple(shape) for shape in own.values()])
        if math.prod(batch) == 0 and self.info.levels:
            message = "a model that sums over points is given none"
            raise IngotError([Problem("batch-reduction", message, None, "give it a point or more")])
        same = frozenset(k for k, shape in own.items() if find_dims(shape, batch) is None)
        values = {
            k: x.reshape(x.shape[len(own[k]) :]) if k in same
            else x.expand((*batch, *x.shape[len(own[k]) :]))
            for k, x in rows.items()
        }  # fmt: skip
        reduced = self._batches.find((batch, same))
        if reduced is None:
            made = Reduced(self.info.levels, batch, same)
            reduced = self._batches.keep((batch, same), made)
        return values, reduced

    def transient(self, transient: Transient) -> History:
        """All steps, one after another."""
        keys = [*self.info.given.items()][: self.info.inputs]
        given = {name: self.shape(key) for key, name in keys}
        return step_calls(self, given, self.info.outputs, transient, self.dtype)

    def arrange(self, transient: Transient) -> Callable[[], History]:
        """The run of a transient."""
        return partial(self.transient, transient)

    def _narrow(self, x: Tensor, name: str, reduced: Reduced) -> Tensor:
        """A value at the points that it has of its own, where others of its segment have more."""
        v = self._value[name]
        batch = x.ndim - v.shape.rank
        return x if batch == len(reduced.left(v.sources)) else x[(0,) * batch]

    def _spread(self, x: Tensor, name: str, reduced: Reduced) -> Tensor:
        """An output at every point, unless it is a sum."""
        v = self._value[name]
        if reduced.dims(v.sources) is not None:
            return x
        return x.expand((*reduced.batch, *x.shape))
