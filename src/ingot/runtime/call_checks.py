"""What a caller gives to a package -> tensors that fit it, or problems that say what does not."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.execute.autograd_guard import find_lost_tangents
from ingot.execute.batch_shape import ValueShape
from ingot.execute.transient import Transient, find_lost_step
from ingot.graphs.torch_private import without_storage
from ingot.messages import tell
from ingot.package.metadata import Metadata
from ingot.package.target import IN_PROCESS
from ingot.runtime.backends import shape_of
from ingot.types import Value, lag
from ingot.types.history import TIMES

__all__ = ["PLAIN", "Arrays", "CallChecks", "Word", "as_tensor", "make_error"]

Arrays = Mapping[str, Any]
Word = Literal["input", "output", "parameter"]

PLAIN = frozenset((Tensor, nn.Parameter, nn.Buffer))
"""The kinds of tensors whose numbers lie where their address says."""


class CallChecks:
    """The names, shapes, precision and device that the values of a package have.

    lives: whether it is a live model, which is told so.
    """

    def __init__(self, meta: Metadata, device: torch.device, *, lives: bool) -> None:
        self._meta, self.device, self.lives = meta, device, lives
        self.dtype: torch.dtype = getattr(torch, meta.dtype)
        self.inputs = {v.name: shape_of(v) for v in meta.inputs}
        self.outputs = {v.name: shape_of(v) for v in meta.outputs}
        self.parameters = {p.variable.name: shape_of(p.variable) for p in meta.parameters}
        self.given = {**self.inputs, **self.parameters}
        variables = (*meta.inputs, *meta.outputs, *(p.variable for p in meta.parameters))
        self._kinds = {name: v.kind for v in variables for name in (v.name, lag(v.name)[0])}
        self._who = "the model" if lives else "the package"

    def examine(self, inputs: Arrays) -> dict[str, Tensor]:
        """The inputs as tensors, each examined."""
        given, problems = self.read(inputs, self.inputs, "input")
        problems += [tell("missing input", name=n) for n in self.inputs if n not in inputs]
        raise_if(problems)
        return given

    def find_unfit(self, promoted: Mapping[str, Any]) -> list[Problem]:
        """What became of promoted parameters that the package cannot compute with."""
        return self.read(promoted, self.parameters, "parameter")[1]

    def read_parameter(self, name: str, value: Any) -> Tensor:
        """A value in the precision of the package, refused where that would lose any of it."""
        if isinstance(value, Value) and type(value).__name__ == self._kinds[name]:
            value = value.data
        value = np.asarray(value) if isinstance(value, np.generic) else value
        given = value if isinstance(value, bool | int | float) else as_tensor(value)
        if isinstance(value, list | tuple):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                given = torch.tensor(value, dtype=self.dtype, device=self.device)
        if given is None:
            told = f"'{name}' is {_describe(value)}, not a tensor or an array of numbers"
            raise make_error("wrong-input", told, "give a number or an array")
        if not isinstance(given, Tensor):
            try:
                return torch.tensor(given, dtype=self.dtype, device=self.device)
            except OverflowError:
                told = f"'{name}' is a whole number beyond all that a {self._meta.dtype} holds"
                raise make_error("wrong-input", told, "give a smaller number") from None
        if isinstance(value, np.ndarray):
            given = given.to(self.device)
        if given.requires_grad and torch.is_grad_enabled():
            told = f"'{name}' is set to a tensor that requires a gradient, which a copy loses"
            fix = "give value.detach(); gradients arrive in named_parameters()"
            raise make_error("no-gradient", told, fix)
        if given.device.type == "meta" or given.dtype == self.dtype:
            return given
        same = given.to(self.dtype) if not given.is_complex() else given
        exact = same.to(given.dtype) == given
        return same if bool((exact | (given != given)).all()) else given

    def read(
        self, values: Arrays, known: Mapping[str, ValueShape], word: Word
    ) -> tuple[dict[str, Tensor], list[Problem]]:
        """The values of known names as tensors, and all that is wrong with what was given."""
        if not isinstance(values, Mapping):
            told = f"the {word}s are a {type(values).__name__}, not values by name"
            fix = f"give a dictionary of {', '.join(known)}"
            raise make_error("wrong-input", told, fix)
        problems = [
            tell("unknown input" if word == "input" else "unknown direction", name=n, word=word,
                 fix=did_you_mean(str(n), known) or f"one of: {', '.join(known)}")
            for n in values if n not in known
        ]  # fmt: skip
        given: dict[str, Tensor] = {}
        for name in (n for n in known if n in values):
            found = values[name]
            if isinstance(found, Value) and type(found).__name__ == self._kinds[name]:
                found = found.data
            value = as_tensor(found)
            if value is None:
                problems.append(_unreadable(name, found, self._kinds[name]))
                continue
            problems += self.find_misfits(name, known[name], value)
            given[name] = value
        who, what = ("a live model", "model") if self.lives else ("compiled code", "artifact")
        fix = f"call jacobian, jvp or vjp of the {what}; batches need no vmap"
        return given, problems + find_lost_tangents(given, fix, who)

    def find_unlike_steps(self, transient: Transient) -> Iterator[Problem]:
        """What of a transient does not fit; drivers give any precision, which is converted."""
        known = {lag(n)[0]: s for n, s in {**self.outputs, **self.inputs}.items()}
        for values, steps in ((transient.prescribed, transient.steps), (transient.initial, None)):
            for name, given in values.items():
                x = as_tensor(given)
                if name not in known:
                    fix = did_you_mean(str(name), known) or f"one of: {', '.join(known)}"
                    yield tell("unknown input", name=name, fix=fix)
                elif x is None or not isinstance(given, Tensor):
                    yield _unreadable(name, given, self._kinds[name])
                elif steps is not None and (x.ndim == 0 or len(x) != steps):
                    yield tell("steps", name=name, shape=tuple(x.shape), steps=steps)
                else:
                    now = x if steps is None else x.new_empty(x.shape[1:])
                    now = now.to(self.dtype) if x.is_floating_point() else now
                    yield from self.find_misfits(name, known[name], now)
                    if steps is not None and name in TIMES and f"{name}~1" in self.inputs:
                        yield from find_lost_step(x, self.dtype, name)

    def find_unprescribed(self, transient: Transient) -> Iterator[Problem]:
        """Inputs that would be zero at every step; a first guess of a solve may be."""
        guesses = {name for solver in self._meta.solvers for name in solver.unknowns}
        known = {*transient.prescribed, *self.outputs, *guesses}
        for base in dict.fromkeys(lag(name)[0] for name in self.inputs):
            if base not in known:
                yield tell("missing steps", name=base)

    def find_misfits(self, name: str, shape: ValueShape, value: Tensor) -> list[Problem]:
        """What of a tensor does not fit a value of that name."""
        found = []
        if value.dtype != self.dtype:
            kind = str(value.dtype).removeprefix("torch.")
            flag = self._fix_dtype(kind)
            flag = f"convert the model: model.to(torch.{kind})" if flag and self.lives else flag
            other = f", or {flag}" if flag else ""
            held = {"who": self._who, "held": self._meta.dtype}
            found.append(tell("precision", name=name, dtype=kind, other=other, **held))
        if value.device != self.device:
            held = {"who": self._who, "held": self.device}
            found.append(tell("device", name=name, device=value.device, **held))
        want = shape.sizes + shape.base
        if tuple(value.shape[value.ndim - len(want) :]) != want or value.ndim < len(want):
            told = {"shape": tuple(value.shape), "wanted": _write_shape(want)}
            fix = self._find_extents(shape, value) or "give the batch axes first"
            found.append(tell("shape", name=name, **told, fix=fix))
        return found

    def _find_extents(self, shape: ValueShape, value: Tensor) -> str:
        """What to compile for a value that fits in all but its extents, which are compiled in."""
        first = value.ndim - shape.rank
        sizes = tuple(value.shape[max(first, 0) : value.ndim - len(shape.base)])
        base = tuple(value.shape[value.ndim - len(shape.base) :])
        if not shape.sizes or first < 0 or base != shape.base or 0 in sizes:
            return ""
        command = self._meta.origin.command
        extents = f"{shape.name}=(; {', '.join(map(str, sizes))})"
        if command in ("", IN_PROCESS):
            spelled = self._meta.origin.spell("example_batch_shape", extents)
            return f"compile the model again with {spelled}"
        return f"compile the model again: {command} --example-batch-shape '{extents}'"

    def _fix_dtype(self, kind: str) -> str | None:
        """How to compile for another precision, where that can be."""
        spelled = self._meta.origin.spell("dtype", kind)
        return f"compile with {spelled}" if kind in ("float32", "float64") else None

    def find_unlike(self, made: Tensor) -> list[Problem]:
        """What a converted tensor has that the package cannot compute with."""
        kind = str(made.dtype).removeprefix("torch.")
        if made.device != self.device:
            told = f"the package runs on {self.device}, not on {made.device}"
            return [Problem("wrong-device", told, None, "move its results instead")]
        if made.dtype != self.dtype:
            told = f"the package computes in {self._meta.dtype}, not in {kind}"
            fix = self._fix_dtype(kind) or "convert its results instead"
            return [Problem("wrong-dtype", told, None, fix)]
        return []


def as_tensor(value: Any) -> Tensor | None:
    """A tensor that holds the numbers of a torch or NumPy array, if it is one."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray) or value.dtype.kind not in "biufc":
            return None
        native = value.astype(value.dtype.newbyteorder("="), copy=False)
        viewable = native.flags.writeable and all(s >= 0 for s in native.strides)
        try:
            return torch.from_numpy(native if viewable else native.copy())
        except (TypeError, ValueError):
            return None
    plain = type(value) in PLAIN and value.layout == torch.strided and not value.is_nested
    return value if plain and not without_storage(value) else None


def _unreadable(name: str, value: Any, kind: str) -> Problem:
    fix = "give a torch or NumPy array"
    if isinstance(value, Value):
        told = f"'{name}' is {_describe(value)}, not a {kind}"
        return Problem("wrong-input", told, None, f"give {kind}(...), or its tensor")
    if isinstance(value, np.ma.MaskedArray):
        fix = "fill what is masked: x.filled(number)"
    elif isinstance(value, Tensor) and type(value) not in PLAIN:
        fix = "give a plain tensor: x.as_subclass(torch.Tensor)"
    told = f"'{name}' is {_describe(value)}, not a tensor or an array of numbers"
    return Problem("wrong-input", told, None, fix)


def _describe(value: Any) -> str:
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if isinstance(value, Tensor) and type(value) in PLAIN:
        return "a sparse tensor"
    return f"a {type(value).__name__}"


def _write_shape(want: tuple[int, ...]) -> str:
    return f"(*batch, {', '.join(map(str, want))})" if want else "(*batch)"


def make_error(code: str, message: str, fix: str | None) -> IngotError:
    """The error of one problem that has no place in a file."""
    return IngotError([Problem(code, message, None, fix)])
