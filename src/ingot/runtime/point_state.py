"""An Artifact and a host's points -> stress and tangent, with what every point remembers."""

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.execute.batch_shape import ValueShape, join_batches
from ingot.execute.status import failures, find_times
from ingot.execute.transient import find_lost_step
from ingot.keywords import check_keywords
from ingot.messages import refuse, tell
from ingot.runtime.artifact import Artifact
from ingot.runtime.backends import shape_of
from ingot.runtime.call_checks import as_tensor
from ingot.types import lag
from ingot.types.history import TIMES

__all__ = ["State", "Update"]

Arrays = Mapping[str, Any]


@check_keywords
@dataclass(frozen=True, slots=True)
class Update:
    """What a trial gave at every point; arrays are NumPy's where those that were given are.

    failed: the points whose solve did not converge, at which all else is NaN.
    """

    outputs: dict[str, Any]
    blocks: dict[str, dict[str, Any]]
    failed: Any
    material: Artifact = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        raise_if(self._find_unknown("output", name, self.outputs))
        return self.outputs[name]

    def tangent(self, output: str, by: str) -> Any:
        """A compiled derivative, `(*points, *base of the output, *base of the input)`."""
        inputs = self.material.inputs
        raise_if(
            [*self._find_unknown("output", output, self.outputs),
             *self._find_unknown("input", by, inputs)]
        )  # fmt: skip
        found = self.blocks.get(output, {}).get(by)
        if found is None and not self.blocks:
            told = "the update was made without tangents"
            fix = "leave tangent=False of update out"
            raise IngotError([Problem("no-derivatives", told, None, fix)])
        if found is None:
            spelled = self.material.metadata.origin.spell("derivative", f"{output}:{by}")
            raise refuse("no pair", output=output, input=by, spelled=spelled, remedy="")
        return found

    def _find_unknown(self, word: str, name: str, known: Collection[str]) -> Iterator[Problem]:
        if name not in known:
            fix = did_you_mean(str(name), known) or f"one of: {', '.join(known)}"
            yield tell("unknown direction", word=word, name=name, fix=fix)

    @property
    def has_failed(self) -> bool:
        """Whether any point failed: then the step is to be cut."""
        return bool(self.failed.any())


@check_keywords
class State:
    """What every point of a host remembers: as of the last commit, and of a trial after it.

    Remembered is whatever the model reads of steps before (`plastic_strain~1`, `t~1`): outputs, and
    inputs that were given. `update` starts from the last commit however often it is called, so
    Newton's method may ask again and again; `commit` ends a step, `rollback` forgets the trial.
    """

    def __init__(
        self, material: Artifact, points: int | tuple[int, ...], initial: Arrays | None = None
    ) -> None:
        """A state that begins at `initial`, by name, of all points or of each; else at zero.

        points: how many there are, or the shape that they lie in, such as (cells, quadrature).
        """
        raise_if(_find_unfit(material))
        self.material = material
        self.points = _read_points(points)
        shapes = {v.name: shape_of(v) for v in material.metadata.inputs}
        known = {*shapes, *(v.name for v in material.metadata.outputs)}
        self._remembered = {n: s for n, s in shapes.items() if lag(n)[1] and lag(n)[0] in known}
        self._given = {n: s for n, s in shapes.items() if n not in self._remembered}
        self._outputs = {v.name: shape_of(v) for v in material.metadata.outputs}
        self._committed = self._begin({} if initial is None else initial)
        self._trial: dict[str, Tensor] | None = None
        self._failures: tuple[Problem, ...] = ()
        self._times = {n: self._committed[f"{n}~1"].double().cpu() for n in self._list_times()}
        self._new_times = self._times

    def _list_times(self) -> list[str]:
        """The times whose steps may be lost in the precision of the model."""
        narrow = self.material.dtype != torch.float64
        return [n for n in TIMES if narrow and n in self._given and f"{n}~1" in self._remembered]

    def _read_time(self, value: Any) -> Tensor | None:
        """A time with all its digits, if it is any."""
        if isinstance(value, float | int) and not isinstance(value, bool):
            return torch.tensor(value, dtype=torch.float64)
        tensor = as_tensor(value)
        return None if tensor is None else tensor.detach().double().cpu()

    def _begin(self, initial: Arrays) -> dict[str, Tensor]:
        """The first values: those of `x~2`, or else of `x`, or else zero."""
        known = {*self._remembered, *(lag(n)[0] for n in self._remembered)}
        raise_if(_find_unnamed("initial values", initial, known))
        raise_if(
            Problem("unknown-input", f"the model remembers no '{n}'", None,
                    did_you_mean(str(n), known) or f"it remembers {', '.join(sorted(known))}")
            for n in initial if n not in known
        )  # fmt: skip
        values: dict[str, Tensor] = {}
        for name, shape in self._remembered.items():
            number = initial.get(name, initial.get(lag(name)[0], 0.0))
            try:
                like = {"dtype": self.material.dtype, "device": self.material.device}
                value = torch.as_tensor(number, **like).detach().clone()
            except (TypeError, ValueError, RuntimeError):
                told = f"the initial value of '{name}' is a {type(number).__name__}, not numbers"
                fix = "give a number or an array"
                raise IngotError([Problem("wrong-input", told, None, fix)]) from None
            if not value.ndim:
                value = value.expand((*shape.sizes, *shape.base)).clone()
            raise_if(self._find_misfit(name, shape, value))
            values[name] = value
        return values

    def _find_misfit(self, name: str, shape: ValueShape, value: Tensor) -> Iterator[Problem]:
        """A value that is not of all points, nor of each."""
        inner = (*shape.sizes, *shape.base)
        batch = tuple(value.shape[: max(value.ndim - len(inner), 0)])
        fits = tuple(value.shape[len(batch) :]) == inner and len(batch) <= len(self.points)
        last = self.points[len(self.points) - len(batch) :]
        if fits and all(n in (1, m) for n, m in zip(batch, last, strict=True)):
            return
        told = f"'{name}' has shape {tuple(value.shape)}, the state has {self.points} points"
        yield Problem("wrong-shape", told, None, f"give it the shape {(*self.points, *inner)}")

    def __getitem__(self, name: str) -> Tensor:
        """A value as of the last commit, by its name with or without `~1`, at every point."""
        key = name if lag(name)[1] else f"{name}~1"
        if key not in self._committed:
            known = sorted(self._committed)
            fix = did_you_mean(name, known) or f"one of: {', '.join(known)}"
            raise IngotError([Problem("unknown-name", f"'{name}' is not remembered", None, fix)])
        shape = self._remembered[key]
        return self._committed[key].expand((*self.points, *shape.sizes, *shape.base))

    def values(self) -> dict[str, Tensor]:
        """All that is remembered as of the last commit; another state may begin at it."""
        return {n: self[n].clone() for n in self._committed}

    @property
    def has_trial(self) -> bool:
        """Whether there is something to commit."""
        return self._trial is not None

    def update(self, inputs: Arrays, *, tangent: bool = True) -> Update:
        """A trial from the last commit: the outputs, and the compiled derivatives by inputs.

        inputs: every input that is not remembered, by name, of each point or of all.
        """
        self.rollback()
        raise_if(_find_unnamed("inputs", inputs, self._given))
        given = {n: self._read(x) for n, x in inputs.items()}
        raise_if(
            Problem("wrong-input", f"'{n}' is remembered from step to step", None,
                    "leave it out; its first value is one of `initial` of the state")
            for n in given if n in self._remembered
        )  # fmt: skip
        raise_if(
            problem for n, shape in self._given.items() if isinstance(given.get(n), Tensor)
            for problem in self._find_misfit(n, shape, given[n])
        )  # fmt: skip
        times = {n: self._read_time(inputs.get(n)) for n in self._times}
        self._new_times = {n: x for n, x in times.items() if x is not None}
        for name, now in self._new_times.items():
            ends = torch.broadcast_tensors(self._times[name], now)
            raise_if(find_lost_step(torch.stack(ends), self.material.dtype, name))
        call = {**given, **self._committed}
        with torch.no_grad():
            if tangent:
                outputs, blocks = self.material.value_and_jacobian(call)
            else:
                outputs, blocks = self.material(call), {}
        failed = self._find_failed(call)
        self._failures = ()
        if bool(failed.any()):
            self._failures = failures(self.material.status, find_times(call))
        self._trial = self._remember(given, outputs)
        arrays = bool(inputs) and all(isinstance(x, np.ndarray | float) for x in inputs.values())
        return Update(
            {n: _give(self._spread(x, self._outputs[n]), arrays) for n, x in outputs.items()},
            {y: {x: _give(self._spread_block(block, y, x), arrays) for x, block in row.items()}
             for y, row in blocks.items()},
            _give(failed, arrays), self.material,
        )  # fmt: skip

    def _read(self, value: Any) -> Any:
        """Numbers and arrays as tensors; what is none is told by the call."""
        if isinstance(value, float | int) and not isinstance(value, bool):
            return torch.tensor(value, dtype=self.material.dtype, device=self.material.device)
        tensor = as_tensor(value)
        return value if tensor is None else tensor.detach()

    def _find_failed(self, call: Mapping[str, Tensor]) -> Tensor:
        """Of every point, whether any of its solves failed; a call may have been of fewer."""
        told = [~s.converged for s in self.material.status]
        if not told:
            return torch.zeros(self.points, dtype=torch.bool, device=self.material.device)
        shapes = {**self._given, **self._remembered}
        batches = [tuple(x.shape[: x.ndim - shapes[n].rank]) for n, x in call.items()]
        return torch.stack(told).any(0).reshape(join_batches(batches)).expand(self.points)

    def _remember(self, given: Mapping[str, Tensor], outputs: Arrays) -> dict[str, Tensor]:
        """What a commit would keep: copies, since the host may write to what it gave and got."""
        trial: dict[str, Tensor] = {}
        for name in self._remembered:
            base, back = lag(name)
            older = f"{base}~{back - 1}"
            if back > 1 and older in self._committed:
                trial[name] = self._committed[older]
            else:
                trial[name] = (outputs[base] if base in outputs else given[base]).clone()
        return trial

    def _spread(self, value: Tensor, shape: ValueShape) -> Tensor:
        return value.expand((*self.points, *shape.sizes, *shape.base))

    def _spread_block(self, block: Tensor, output: str, by: str) -> Tensor:
        y = self._outputs[output]
        x = self._given.get(by) or self._remembered[by]
        return block.expand((*self.points, *y.sizes, *x.sizes, *y.base, *x.base))

    def commit(self) -> None:
        """End the step: the next starts from the trial. Refused where a point failed."""
        if self._trial is None:
            told = "there is no trial to commit"
            raise IngotError([Problem("no-trial", told, None, "call update first")])
        raise_if(self._failures)
        self._committed, self._trial = self._trial, None
        self._times = self._new_times

    def rollback(self) -> None:
        """Forget the trial: the next update starts from the last commit, as every one does."""
        self._trial, self._failures = None, ()


def _find_unfit(material: object) -> Iterator[Problem]:
    """Why a material has no points to remember anything at."""
    if not isinstance(material, Artifact):
        told = f"a state is that of a compiled model, not of a {type(material).__name__}"
        fix = "give ingot.load(folder), or ingot.compile(model, derivative=('stress:strain',))"
        yield Problem("wrong-input", told, None, fix)
    elif material.metadata.cuts:
        told = f"'{material.metadata.name}' sums over its points, which a host has by elements"
        yield Problem("batch-reduction", told, None, "call the model itself")


def _find_unnamed(what: str, values: object, known: Collection[str]) -> Iterator[Problem]:
    """Values that have no names."""
    if not isinstance(values, Mapping):
        told = f"the {what} are a {type(values).__name__}, not values by name"
        yield Problem("wrong-input", told, None, f"give a dictionary of {', '.join(known)}")


def _read_points(points: Any) -> tuple[int, ...]:
    """The shape that points lie in."""
    shape = tuple(points) if isinstance(points, Sequence | torch.Size) else (points,)
    try:
        found = tuple(operator.index(size) for size in shape)
    except TypeError:
        found = (-1,)
    if min(found, default=0) < 0:
        told = f"{points!r} is no number of points, and no shape"
        raise IngotError([Problem("wrong-shape", told, None, "give 8, or (cells, quadrature)")])
    return found


def _give(value: Tensor, arrays: bool) -> Any:
    return value.numpy() if arrays else value
