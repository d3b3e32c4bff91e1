"""A loaded package as an object to call: values, derivatives, parameters, status, autograd."""

import contextlib
import copy
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem, did_you_mean, raise_if, warn_of
from ingot.execute.autograd_guard import find_lost_gradients, find_lost_tangents
from ingot.execute.batch_shape import ValueShape, join_batches
from ingot.execute.status import Status, failures, may_be, spoil_rows
from ingot.execute.transient import History, Transient, find_lost_step
from ingot.graphs.calls import CallCache, Layouts, layouts_of
from ingot.graphs.torch_private import forward_mode, transforms, without_storage
from ingot.messages import refuse, tell
from ingot.package.metadata import Metadata, VariableInfo
from ingot.package.target import IN_PROCESS
from ingot.runtime.backends import Backend, shape_of, tensor_of
from ingot.types import KINDS, Value, lag
from ingot.types.card import Card, Row, show_html, show_text
from ingot.types.history import TIMES
from ingot.types.spellings import find_named, resolve_name
from ingot.types.variables import VariableSpec

__all__ = ["Artifact", "as_tensor"]

Arrays = Mapping[str, Any]
Blocks = dict[str, dict[str, Tensor]]
Pair = tuple[str, str]
Word = Literal["input", "output", "parameter"]
Slopes = dict[Pair, Tensor]

MAX_PAIRS_SHOWN = 12  # one line each; beyond, a line for each output fits on a screen
PLAIN = frozenset((Tensor, nn.Parameter, nn.Buffer))
"""The kinds of tensors whose numbers lie where their address says."""


class Artifact(nn.Module):
    """A compiled model. Calls are checked, threads may share it, autograd passes through it."""

    def __init__(self, meta: Metadata, backend: Backend) -> None:
        super().__init__()
        self.metadata = meta
        self._backend = backend
        self.device = backend.device
        self.dtype: torch.dtype = getattr(torch, meta.dtype)
        self._names = {p.variable.name: self._key(p.variable.name) for p in meta.parameters}
        slopes = {b.input for b in meta.derivatives}
        for p in meta.parameters:
            name = p.variable.name
            differs = name in slopes or backend.has_adjoints
            value = nn.Parameter(tensor_of(p, self.dtype, self.device), requires_grad=differs)
            self.register_parameter(self._names[name], value)
        self._held = _picker(tuple(self._names.values()))
        self._shapes = {v.name: shape_of(v) for v in meta.inputs}
        self._output_shapes = {v.name: shape_of(v) for v in meta.outputs}
        self._parameter_shapes = {p.variable.name: shape_of(p.variable) for p in meta.parameters}
        variables = (*meta.inputs, *meta.outputs, *(p.variable for p in meta.parameters))
        self._kinds = {v.name: v.kind for v in variables}
        self._every = (*self._shapes, *self._names)
        self._lives = backend.name == "interpret"
        self._who = "the model" if self._lives else "the package"
        self._waits = self._lives or self.device.type == "cpu"
        self._spellings = {p.variable.name: p.spellings for p in meta.parameters}
        self._pairs = [(b.output, b.input) for b in meta.derivatives]
        # by guards what calls a kernel anew, by keys what was examined
        self._calls: CallCache[Any] = CallCache()
        self._picked = _picker(tuple(self._shapes))
        self._last = threading.local()

    def _key(self, name: str) -> str:
        """The key of a parameter in `state_dict()`: its name, so that no state fits by its place.

        torch takes no dots in a key, and no name that a module has already.
        """
        key = name.replace(".", "/")
        return f"{key}/" if hasattr(self, key) else key

    def with_rules(self, meta: Metadata) -> "Artifact":
        """The same code under other solver rules."""
        return Artifact(meta, self._backend.under(meta))

    # what it is

    @property
    def backend(self) -> str:
        """What of the package runs: its `kernel` or its `inductor` graphs."""
        return self._backend.name

    @property
    def inputs(self) -> dict[str, VariableInfo]:
        """Inputs by name."""
        return {v.name: v for v in self.metadata.inputs}

    @property
    def outputs(self) -> dict[str, VariableInfo]:
        """Outputs by name."""
        return {v.name: v for v in self.metadata.outputs}

    @property
    def input_spec(self) -> dict[str, VariableSpec]:
        """What every input is."""
        return {v.name: _specify(v) for v in self.metadata.inputs}

    @property
    def output_spec(self) -> dict[str, VariableSpec]:
        """What every output is."""
        return {v.name: _specify(v) for v in self.metadata.outputs}

    def card(self) -> Card:
        """What a prompt or a notebook shows: variables, promoted parameters, derivatives."""
        meta = self.metadata
        rows = [Row("given", v.name, _tell_kind(v)) for v in meta.inputs]
        rows += [Row("gives", v.name, _tell_kind(v)) for v in meta.outputs]
        for name, parameter in self.named_parameters():
            size = f"{parameter.item():g}" if parameter.ndim == 0 else f"{tuple(parameter.shape)}"
            rows.append(Row("param", name, size))
        rows += [Row("solve", s.name, ", ".join(s.unknowns)) for s in meta.solvers]
        if len(meta.derivatives) <= MAX_PAIRS_SHOWN:
            pairs = (f"d({b.output})/d({b.input})" for b in meta.derivatives)
            rows += [Row("slope", pair, "compiled") for pair in pairs]
        else:
            for output in dict.fromkeys(b.output for b in meta.derivatives):
                inputs = [b.input for b in meta.derivatives if b.output == output]
                rows.append(Row("slope", f"d({output})/d(...)", f"by {', '.join(inputs)}"))
        return Card(
            f"Artifact [{meta.name}], {self.backend}, {meta.device}, {meta.dtype}", (*rows,)
        )

    def __repr__(self) -> str:
        return show_text(self, self.card)

    def _repr_html_(self) -> str:
        return show_html(self, self.card)

    def hold(self, promoted: Mapping[str, Tensor]) -> None:
        """Compute with these tensors, which another module owns, as promoted parameters."""
        self._parameters.update({self._names[n]: x for n, x in promoted.items()})  # pyright: ignore[reportArgumentType, reportCallIssue]

    @property
    def status(self) -> tuple[Status, ...]:
        """What became of every point in this thread's last call, one status a solve."""
        told = getattr(self._last, "told", None)
        return () if told is None else tuple(told)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """The promoted parameters by their qualified names; they share storage with the model."""
        start = f"{prefix}." if prefix else ""
        return iter([(start + name, getattr(self, key)) for name, key in self._names.items()])

    def _resolved(self, word: str) -> str:
        """The promoted parameter that a word means."""
        spelled = self._spell("parameter", "NAME")
        fix = f"compile with {spelled}, a name that `ingot show FILE MODEL` prints"
        missing = tell("not promoted", name=word, fix=fix)
        return resolve_name(word, self._spellings, missing.message, fix=missing.fix)

    def set_parameter(self, name: str, value: Any) -> None:
        """Give a promoted parameter another value, batched or not, which the package can hold."""
        name = self._resolved(name)
        tensor = self._parameter_value(name, value)
        raise_if(self._misfits(name, self._parameter_shapes[name], tensor))
        current: nn.Parameter = getattr(self, self._names[name])
        if current.shape == tensor.shape:
            with torch.no_grad():
                current.copy_(tensor)
        else:
            fresh = nn.Parameter(tensor.clone(), requires_grad=current.requires_grad)
            setattr(self, self._names[name], fresh)

    def _parameter_value(self, name: str, value: Any) -> Tensor:
        """A value in the precision of the package, refused where that would lose any of it."""
        given = value if isinstance(value, bool | int | float) else as_tensor(value)
        if isinstance(value, list | tuple):
            with contextlib.suppress(TypeError, ValueError):
                given = torch.tensor(value, dtype=self.dtype, device=self.device)
        if given is None:
            told = f"'{name}' is {_told(value)}, not a tensor or an array of numbers"
            raise _problem("wrong-input", told, "give a number or an array")
        if not isinstance(given, Tensor):
            return torch.tensor(given, dtype=self.dtype, device=self.device)
        if isinstance(value, np.ndarray):
            given = given.to(self.device)
        if given.requires_grad and torch.is_grad_enabled():
            told = f"'{name}' is set to a tensor that requires a gradient, which a copy loses"
            fix = "give value.detach(); gradients arrive in named_parameters()"
            raise _problem("no-gradient", told, fix)
        if given.device.type == "meta" or given.dtype == self.dtype:
            return given
        same = given.to(self.dtype) if not given.is_complex() else given
        exact = same.to(given.dtype) == given
        return same if bool((exact | (given != given)).all()) else given

    # what it stays

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Artifact":
        """Refuse what would give parameters another precision, device or value.

        `to`, `half`, `cuda`, `to_empty` and their kin come here, those of a module around it too.
        """
        probe = torch.ones((), dtype=self.dtype, device=self.device)
        for tensor in (probe, *self._parameters.values()):
            if tensor is None:
                continue
            try:
                with torch.no_grad():
                    made = fn(tensor)
            except (AssertionError, NotImplementedError, RuntimeError) as error:
                told = f"the package runs on {self.device} only: {error}"
                raise _problem("wrong-device", told, "move its results instead") from None
            raise_if(self._unlike(made))
            if not torch.equal(made.nan_to_num(), tensor.nan_to_num()):
                told = "the values of promoted parameters would be lost"
                raise _problem("wrong-input", told, "set_parameter gives them others")
        return self

    def _unlike(self, made: Tensor) -> list[Problem]:
        """What a converted tensor has that the package cannot compute with."""
        kind = str(made.dtype).removeprefix("torch.")
        if made.device != self.device:
            told = f"the package runs on {self.device}, not on {made.device}"
            return [Problem("wrong-device", told, None, "move its results instead")]
        if made.dtype != self.dtype:
            told = f"the package computes in {self.metadata.dtype}, not in {kind}"
            return [
                Problem(
                    "wrong-dtype",
                    told,
                    None,
                    self._fix_dtype(kind) or "convert its results instead",
                )
            ]
        return []

    def __deepcopy__(self, memo: dict[int, Any]) -> "Artifact":
        made = Artifact(self.metadata, self._backend)
        for key in self._names.values():
            setattr(made, key, copy.deepcopy(getattr(self, key), memo))
        return made

    def __reduce_ex__(self, _: Any) -> Any:
        told = "an artifact is not pickled: its code is native"
        fix = "send the folder of its package, and ingot.load it there"
        raise _problem("unsaveable", told, fix)

    # calls

    def __call__(self, inputs: Arrays) -> dict[str, Any]:
        """The same as `forward`; a call like the last one takes a shorter way."""
        hooked = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks
        if self._calls.is_guarding and not hooked:
            try:
                values: tuple[Any, ...] = self._picked(inputs)
                if self._names:
                    values = (*values, *self._held(self._parameters))
                again = self._calls.match(None, values)
                if again is not None and len(inputs) == len(self._shapes) and not forward_mode():
                    outputs, reports = again(values)
                    self._last.told = reports
                    if reports.has_failed:
                        warn_of(failures(reports))
                    return outputs
            except (AttributeError, IndexError, KeyError, TypeError, torch.OutOfMemoryError):
                pass  # whatever it is, it is told below
        return super().__call__(inputs)

    def forward(self, inputs: Arrays) -> dict[str, Any]:
        """The outputs of inputs `(*batch, *axes, *base)`; NumPy arrays give NumPy arrays, and kinds
        such as `SR2(x)` give kinds.
        """
        values, key = self._checked(inputs)
        if inputs and all(isinstance(x, Value) for x in inputs.values()):
            outputs = self.forward(dict(zip(self._shapes, values, strict=False)))
            axes = {v.name: (KINDS[v.kind], len(v.sub_batch)) for v in self.metadata.outputs}
            return {n: axes[n][0](x, sub_batch_ndim=axes[n][1]) for n, x in outputs.items()}
        arrays = bool(inputs) and all(isinstance(x, np.ndarray) for x in inputs.values())
        differ = any(x.requires_grad for x in values)
        if differ and torch.is_grad_enabled() and not arrays:
            return _through_autograd(self, values)
        outputs, told = self._backend.values(values, key)
        self._tell(told)
        if arrays:
            return {n: x.numpy() for n, x in outputs.items()}
        if not differ:
            again = self._backend.make_fast_call(values, key)
            if again is not None:
                self._calls.guard(None, values, again)
        return outputs

    def jacobian(self, inputs: Arrays) -> Blocks:
        """Blocks `[output][input]` of the compiled pairs: (*batch, *axes, *axes, *base, *base).

        One that is the same for all points has no batch, and is so whatever became of a point.
        """
        return self._blocks(inputs, set(self._shapes))[1]

    def value_and_jacobian(self, inputs: Arrays) -> tuple[dict[str, Tensor], Blocks]:
        """The outputs, and what `jacobian` gives, by one call of the compiled code."""
        return self._blocks(inputs, set(self._shapes))

    def param_jacobian(self, inputs: Arrays, params: Sequence[str] | None = None) -> Blocks:
        """Blocks `[output][parameter]` of the compiled pairs with promoted parameters, with all or
        with some, which are called as they are asked for.
        """
        asked = self._asked(params)
        found = self._blocks(inputs, set(asked.values()))[1]
        return {
            y: {word: blocks[n] for word, n in asked.items() if n in blocks}
            for y, blocks in found.items()
        }

    def _asked(self, params: Sequence[str] | None) -> dict[str, str]:
        """Names of promoted parameters by what each is called: some, or all by themselves."""
        if params is None:
            return {name: name for name in self._names}
        return {word: self._resolved(word) for word in params}

    def jvp(self, inputs: Arrays, tangents: Arrays) -> dict[str, Tensor]:
        """The change of outputs along tangents of inputs or promoted parameters.

        Given are the outputs that have a compiled pair with each of them.
        """
        values, key = self._checked(inputs)
        self._derivable()
        known = {**self._shapes, **self._parameter_shapes}
        along, batch = self._directions(self._named(tangents), known, "input", values)
        self._once(values, along)
        outputs, blocks, _ = self._both(values, key, along)
        return self._spread(self._pushed(blocks, along), self._output_shapes, outputs, batch)

    def _named(self, tangents: Arrays) -> Arrays:
        """Tangents by the names of what they belong to, where they have others."""
        if not isinstance(tangents, Mapping) or all(n in self._every for n in tangents):
            return tangents
        found: dict[str, str] = {}
        for word in tangents:
            means = [word] if word in self._shapes else find_named(str(word), self._spellings)
            name = self._resolved(word) if len(means) > 1 else (*means, word)[0]
            if name in found:
                raise refuse("twice", first=found[name], second=word)
            found[name] = word
        return {name: tangents[word] for name, word in found.items()}

    def vjp(self, inputs: Arrays, cotangents: Arrays) -> dict[str, Tensor]:
        """The gradient by inputs of a sum of outputs times cotangents, point by point.

        Of a package compiled with --train all inputs are given, else those that have a compiled
        pair with each of those outputs. At a point that failed it is NaN, unless all cotangents
        of the point are zero: then it is zero.
        """
        return self._gradient(inputs, cotangents, list(self._shapes))

    def param_vjp(
        self, inputs: Arrays, cotangents: Arrays, params: Sequence[str] | None = None
    ) -> dict[str, Tensor]:
        """The gradient by every promoted parameter, or by some, which are called as they are asked
        for, summed over the points that share it.
        """
        asked = self._asked(params)
        pulled = self._gradient(inputs, cotangents, list(dict.fromkeys(asked.values())))
        shapes = {n: getattr(self, self._names[n]).shape for n in pulled}
        return {word: _summed_to(pulled[n], shapes[n]) for word, n in asked.items() if n in pulled}

    def _gradient(self, inputs: Arrays, cotangents: Arrays, by: list[str]) -> dict[str, Tensor]:
        values, key = self._checked(inputs)
        self._derivable(backwards=True)
        along, batch = self._directions(cotangents, self._output_shapes, "output", values)
        self._once(values, along)
        if not self._backend.has_adjoints:
            outputs, blocks, failed = self._both(values, key, by)
            pulled = self._silenced(self._pulled(blocks, along, by), along, failed)
            known = {**self._shapes, **self._parameter_shapes}
            return self._spread(pulled, known, outputs, batch)
        pulled = self._adjoints(values, along)
        return {n: pulled[n] for n in by}

    def transient(self, transient: Transient) -> History:
        """Many steps in one native call."""
        history = self.arrange(transient)()
        if self._waits:
            warn_of(failures(history.statuses))
        return history

    def arrange(self, transient: Transient) -> Callable[[], History]:
        """A transient with its arrays laid out, to be run any number of times."""
        promoted = {n: getattr(self, key) for n, key in self._names.items()}
        raise_if(self._unfit(promoted))
        raise_if(self._unlike_steps(transient))
        raise_if(find_lost_gradients({**transient.prescribed, **transient.initial, **promoted}))
        return self._backend.arrange(transient, [x.detach() for x in promoted.values()])

    # derivatives

    def _derivable(self, *, backwards: bool = False) -> None:
        if self._pairs or (backwards and self._backend.has_adjoints):
            return
        what = "derivative pairs" if self._backend.has_adjoints else "derivatives"
        some, every = (self._spell("derivative", pair) for pair in ("OUT:IN", ":"))
        fix = f"compile with {some}, or {every} for all pairs"
        fix += self._or_train(" for all gradients") if backwards else ""
        raise refuse("no derivatives", what=what, fix=fix)

    def _or_train(self, what: str = "") -> str:
        """The other remedy where a gradient is missing: graphs have none, but the kernel may."""
        if self.metadata.adjoints:
            return "; or load the package with backend='kernel', which has adjoints"
        return f", or with {self._spell('train')}{what}"

    def _fix_dtype(self, kind: str) -> str | None:
        """How to compile for another precision, where that can be."""
        spelled = self._spell("dtype", kind)
        return f"compile with {spelled}" if kind in ("float32", "float64") else None

    @property
    def _spell(self) -> Callable[..., str]:
        """How an option of its compilation is given."""
        return self.metadata.origin.spell

    def _both(
        self, values: Sequence[Tensor], key: Layouts, by: Collection[str], *, spread: bool = True
    ) -> tuple[dict[str, Tensor], Slopes, Tensor | None]:
        """The outputs and blocks; where an output is NaN at a point that failed, so are its blocks.

        Also the points that failed, if any. by: what is differentiated by; spread: whether a block
        that is the same for all points then has a batch, to be NaN in.
        """
        self._derivable()
        outputs, blocks, told = self._backend.slopes(values, key, by)
        failed = self._failed(told, outputs, self._output_shapes)
        if failed is not None:
            known = {**self._shapes, **self._parameter_shapes}
            for b in self.metadata.derivatives:
                pair = b.output, b.input
                if pair in blocks and (spread or not b.batch_independent):
                    shapes = self._output_shapes[b.output], known[b.input]
                    blocks[pair] = spoil_rows(blocks[pair], outputs[b.output], failed, *shapes)
        return outputs, blocks, failed

    def _failed(
        self, told: Sequence[Status], values: Mapping[str, Tensor], shapes: Mapping[str, ValueShape]
    ) -> Tensor | None:
        """Tell of the solves; which points of the batch failed, if any; a value has all points."""
        if not self._tell(told):
            return None
        batch = max((x.shape[: x.ndim - shapes[n].rank] for n, x in values.items()), key=len)
        return torch.stack([~s.converged for s in told]).any(0).reshape(batch)

    def _adjoints(
        self, values: Sequence[Tensor], cotangents: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """The adjoints of all values at every point."""
        outputs, pulled, told = self._backend.pull(values, cotangents)
        failed = self._failed(told, pulled, {**self._shapes, **self._parameter_shapes})
        if failed is None:
            return pulled
        lost = {y: outputs[y].isnan() & (bar != 0) for y, bar in cotangents.items()}
        pulled = self._filled(pulled, failed & self._any(lost, failed), math.nan)
        return self._silenced(pulled, cotangents, failed)

    def _silenced(
        self, pulled: dict[str, Tensor], cotangents: Mapping[str, Tensor], failed: Tensor | None
    ) -> dict[str, Tensor]:
        """Adjoints that are zero at points that failed and whose cotangents are all zero.

        Such a point has NaN slopes, which a sum over points would spread to all; whoever leaves it
        out of a function, so that its cotangents are zero, means the gradient of the rest.
        """
        if failed is None:
            return pulled
        heard = self._any({y: bar != 0 for y, bar in cotangents.items()}, failed)
        return self._filled(pulled, failed & ~heard, 0.0)

    def _any(self, marks: Mapping[str, Tensor], like: Tensor) -> Tensor:
        """The points at which a component of any output is marked."""
        found = torch.zeros_like(like)
        for y, mark in marks.items():
            rank = self._output_shapes[y].rank
            if y in self._backend.sums:
                found = found | mark.any()
                continue
            found = found | mark.reshape(*mark.shape[: mark.ndim - rank], -1).any(-1)
        return found

    def _filled(
        self, pulled: dict[str, Tensor], points: Tensor, number: float
    ) -> dict[str, Tensor]:
        if not may_be(points):
            return pulled
        ranks = {n: s.rank for n, s in {**self._shapes, **self._parameter_shapes}.items()}
        return {
            n: torch.where(points.reshape(*points.shape, *(1,) * ranks[n]), number, x)
            for n, x in pulled.items()
        }

    def _tell(self, told: Sequence[Status]) -> bool:
        """Keep what the solves reported for `status`, and warn of points that failed; whether any
        may have. A call on a GPU does not wait to know, and so does not warn.
        """
        self._last.told = told
        if not self._waits:
            return bool(self.metadata.solvers)
        problems = failures(told) if self.metadata.solvers else ()
        warn_of(problems)
        return bool(problems)

    def _once(self, values: Sequence[Tensor], along: Mapping[str, Tensor]) -> None:
        """Refuse inputs and directions by which the derivatives would have to be differentiated.

        Parameters require gradients from the start, which asks for nothing.
        """
        inputs = dict(zip(self._shapes, values, strict=False))
        raise_if(find_lost_gradients({**inputs, **along}, "a derivative"))

    def _blocks(self, inputs: Arrays, by: set[str]) -> tuple[dict[str, Tensor], Blocks]:
        values, key = self._checked(inputs)
        self._once(values, {})
        outputs, blocks, _ = self._both(values, key, by, spread=False)
        found: Blocks = {}
        for y, x in self._pairs:
            if x in by:
                found.setdefault(y, {})[x] = blocks[y, x]
        return outputs, found

    def _pushed(self, blocks: Slopes, tangents: Mapping[str, Tensor]) -> dict[str, Tensor]:
        known = {**self._shapes, **self._parameter_shapes}
        whole = self._complete(self._output_shapes, lambda y: [(y, x) for x in tangents])
        found: dict[str, Tensor] = {}
        for x, tangent in tangents.items():
            for y in whole:
                term = _product(blocks[y, x], tangent, self._output_shapes[y], known[x])
                found[y] = found[y] + term if y in found else term
        return found

    def _pulled(
        self, blocks: Slopes, cotangents: Mapping[str, Tensor], by: Sequence[str]
    ) -> dict[str, Tensor]:
        known = {**self._shapes, **self._parameter_shapes}
        whole = self._complete(by, lambda x: [(y, x) for y in cotangents], self._or_train())
        found: dict[str, Tensor] = {}
        for y, value in cotangents.items():
            for x in whole:
                shapes = self._output_shapes[y], known[x]
                term = _product(blocks[y, x], value, *shapes, turned=True)
                found[x] = found[x] + term if x in found else term
        return found

    def _spread(
        self, found: dict[str, Tensor], known: Mapping[str, ValueShape],
        outputs: Mapping[str, Tensor], batch: tuple[int, ...],
    ) -> dict[str, Tensor]:  # fmt: skip
        """Products at every point of the call, those with blocks that are the same for all too.

        Outputs have the batch of constants too; those that are sums, one of their own.
        """
        if self._backend.sums:
            return found
        ranks = {y: s.rank for y, s in self._output_shapes.items()}
        batch = join_batches(
            [batch, *(tuple(x.shape[: x.ndim - ranks[y]]) for y, x in outputs.items())]
        )
        whole = {n: (*batch, *known[n].sizes, *known[n].base) for n in found}
        return {
            n: x if x.shape == whole[n] else x.expand(whole[n]).clone() for n, x in found.items()
        }

    def _complete(
        self, names: Iterable[str], needs: Callable[[str], list[Pair]], remedy: str = ""
    ) -> list[str]:
        """The names for which every pair that they need was compiled; there must be one."""
        missing = {n: [p for p in needs(n) if p not in self._pairs] for n in names}
        whole = [n for n, pairs in missing.items() if not pairs]
        if not whole and missing:
            y, x = next(iter(missing.values()))[0]
            spelled = self._spell("derivative", f"{y}:{x}")
            raise refuse("no pair", output=y, input=x, spelled=spelled, remedy=remedy)
        return whole

    # checks

    def _checked(self, inputs: Arrays) -> tuple[list[Tensor], Layouts]:
        """All values in their order and their signature; one error holds all that is wrong."""
        try:
            held: Any = self._held(self._parameters)
            values = [*map(inputs.__getitem__, self._shapes), *held]
            key = layouts_of(values)
        except (AttributeError, KeyError, TypeError, IndexError, RuntimeError):
            pass  # whatever it is, it is told below
        else:
            known = self._calls.find(key) and len(inputs) == len(self._shapes)
            known = known and not (transforms() or forward_mode())
            if known and PLAIN.issuperset(map(type, values)):
                return values, key
        promoted = {n: getattr(self, key, None) for n, key in self._names.items()}
        values = [*self._examined(inputs).values(), *promoted.values()]
        raise_if(self._unfit(promoted))
        key = layouts_of(values)
        self._calls.keep(key, True)
        return values, key

    def _examined(self, inputs: Arrays) -> dict[str, Tensor]:
        """The inputs as tensors, each examined."""
        given, problems = self._read(inputs, self._shapes, "input")
        problems += [tell("missing input", name=n) for n in self._shapes if n not in inputs]
        raise_if(problems)
        return given

    def _unfit(self, promoted: Mapping[str, Any]) -> list[Problem]:
        """What became of promoted parameters that the package cannot compute with."""
        return self._read(promoted, self._parameter_shapes, "parameter")[1]

    def _directions(
        self,
        along: Arrays,
        known: Mapping[str, ValueShape],
        word: Word,
        values: Sequence[Tensor],
    ) -> tuple[dict[str, Tensor], tuple[int, ...]]:
        """Tangents or cotangents as tensors that fit the batch of the values, and that of all."""
        given, problems = self._read(along, known, word)
        raise_if(problems)
        shapes = (*self._shapes.values(), *self._parameter_shapes.values())
        pairs = list(zip(shapes, values, strict=True))
        pairs += [(known[n], x) for n, x in given.items() if n not in self._backend.sums]
        return given, join_batches([tuple(x.shape[: x.ndim - s.rank]) for s, x in pairs])

    def _read(
        self,
        values: Arrays,
        known: Mapping[str, ValueShape],
        word: Word,
    ) -> tuple[dict[str, Tensor], list[Problem]]:
        if not isinstance(values, Mapping):
            told = f"the {word}s are a {type(values).__name__}, not values by name"
            fix = f"give a dictionary of {', '.join(known)}"
            raise _problem("wrong-input", told, fix)
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
            problems += self._misfits(name, known[name], value)
            given[name] = value
        who, what = ("a live model", "model") if self._lives else ("compiled code", "artifact")
        fix = f"call jacobian, jvp or vjp of the {what}; batches need no vmap"
        return given, problems + find_lost_tangents(given, fix, who)

    def _unlike_steps(self, transient: Transient) -> Iterator[Problem]:
        """What of a transient does not fit; drivers give any precision, which is converted."""
        known = {lag(n)[0]: s for n, s in {**self._output_shapes, **self._shapes}.items()}
        for values, steps in ((transient.prescribed, transient.steps), (transient.initial, None)):
            for name, given in values.items():
                x = as_tensor(given)
                if name not in known:
                    fix = did_you_mean(name, known) or f"one of: {', '.join(known)}"
                    yield tell("unknown input", name=name, fix=fix)
                elif x is None or not isinstance(given, Tensor):
                    yield _unreadable(name, given, self._kinds[name])
                elif steps is not None and (x.ndim == 0 or len(x) != steps):
                    yield tell("steps", name=name, shape=tuple(x.shape), steps=steps)
                else:
                    now = x if steps is None else x.new_empty(x.shape[1:])
                    now = now.to(self.dtype) if x.is_floating_point() else now
                    yield from self._misfits(name, known[name], now)
                    if steps is not None and name in TIMES and f"{name}~1" in self._shapes:
                        yield from find_lost_step(x, self.dtype, name)

    def _misfits(self, name: str, shape: ValueShape, value: Tensor) -> list[Problem]:
        found = []
        if value.dtype != self.dtype:
            kind = str(value.dtype).removeprefix("torch.")
            flag = (
                self._fix_dtype(kind)
                if not self._lives
                else f"convert the model: model.to(torch.{kind})"
            )
            other = f", or {flag}" if self._fix_dtype(kind) else ""
            held = {"who": self._who, "held": self.metadata.dtype}
            found.append(tell("precision", name=name, dtype=kind, other=other, **held))
        if value.device != self.device:
            held = {"who": self._who, "held": self.device}
            found.append(tell("device", name=name, device=value.device, **held))
        want = shape.sizes + shape.base
        if tuple(value.shape[value.ndim - len(want) :]) != want or value.ndim < len(want):
            told = {"shape": tuple(value.shape), "wanted": _expected(want)}
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
        command = self.metadata.origin.command
        extents = f"{shape.name}=(; {', '.join(map(str, sizes))})"
        if command in ("", IN_PROCESS):
            return f"compile the model again with {self._spell('example_batch_shape', extents)}"
        return f"compile the model again: {command} --example-batch-shape '{extents}'"


class _Autograd(torch.autograd.Function):
    """The artifact as one node of torch's graph.

    Backwards runs compiled adjoints at the inputs, which are kept; where a package has none, it
    multiplies compiled blocks, which were computed and kept forwards.
    """

    @staticmethod
    def forward(ctx: Any, artifact: Artifact, *values: Tensor) -> Any:
        key = layouts_of(values)
        ctx.artifact = artifact
        ctx.shapes = [v.shape for v in values]
        ctx.set_materialize_grads(False)
        if artifact._backend.has_adjoints:
            outputs, told = artifact._backend.values(values, key)
            artifact._tell(told)
            ctx.save_for_backward(*values)
        else:
            outputs, blocks, ctx.failed = artifact._both(values, key, artifact._every)
            ctx.keys = list(blocks)
            ctx.save_for_backward(*blocks.values())
        return tuple(outputs.values())

    @staticmethod
    def backward(ctx: Any, *up: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        artifact: Artifact = ctx.artifact
        if torch.is_grad_enabled():
            what = "passes on" if artifact._lives else "was compiled with its"
            told = f"'{artifact.metadata.name}' {what} first derivatives only"
            raise _problem("double-backward", told, "leave out create_graph=True")
        pairs = zip(artifact.outputs, up, strict=True)
        cotangents = {n: g for n, g in pairs if g is not None}
        every = artifact._every
        wanted = [n for n, need in zip(every, ctx.needs_input_grad[1:], strict=True) if need]
        if artifact._backend.has_adjoints:
            pulled = artifact._adjoints(ctx.saved_tensors, cotangents) if cotangents else {}
        else:
            pulled = _pull_blocks(ctx, cotangents, wanted)
        found = [
            _summed_to(pulled[n], shape) if n in pulled and n in wanted else None
            for n, shape in zip(every, ctx.shapes, strict=True)
        ]
        return (None, *found)


def _pull_blocks(
    ctx: Any, cotangents: Mapping[str, Tensor], wanted: Sequence[str]
) -> dict[str, Tensor]:
    """The adjoints by the blocks that a call has kept; every one that it takes must be there."""
    artifact: Artifact = ctx.artifact
    blocks = dict(zip(ctx.keys, ctx.saved_tensors, strict=True))
    for y in cotangents:
        for x in wanted:
            artifact._complete([y], lambda y, x=x: [(y, x)], artifact._or_train())
    return artifact._silenced(artifact._pulled(blocks, cotangents, wanted), cotangents, ctx.failed)


def _through_autograd(artifact: Artifact, values: Sequence[Tensor]) -> dict[str, Tensor]:
    differ = [n for n, x in zip(artifact._every, values, strict=True) if x.requires_grad]
    carried = {x for _, x in artifact._pairs}
    raise_if(
        Problem(
            "no-derivatives", f"'{x}' requires a gradient, and no pair OUT:{x} was compiled", None,
            f"compile with {artifact._spell('derivative', f'{next(iter(artifact.outputs))}:{x}')}"
            f"{artifact._or_train()}, or call under torch.no_grad()",
        )
        for x in differ if x not in carried and not artifact._backend.has_adjoints
    )  # fmt: skip
    found = _Autograd.apply(artifact, *values)
    return dict(zip(artifact.outputs, found, strict=True))


def _tell_kind(variable: VariableInfo) -> str:
    sizes = " × ".join(map(str, variable.sub_batch))
    return f"{variable.kind}{f' on {sizes}' if sizes else ''}"


def _specify(v: VariableInfo) -> VariableSpec:
    return VariableSpec(v.name, KINDS[v.kind], v.sub_batch, lag(v.name)[1])


def _picker(names: tuple[str, ...]) -> Callable[[Arrays], tuple[Any, ...]]:
    """What takes values by name, in order; `itemgetter` is quickest, but knows no tuple of one."""
    return itemgetter(*names) if len(names) > 1 else lambda x: tuple(x[n] for n in names)


def _product(
    block: Tensor, other: Tensor, out: ValueShape, into: ValueShape, *, turned: bool = False
) -> Tensor:
    """A block times a tangent of its input, or, turned, times a cotangent of its output."""
    left, right = len(out.sizes), len(into.sizes)
    rank = left + right + len(out.base) + len(into.base)
    batch = block.ndim - rank
    # (*batch, *out sizes, *in sizes, *out base, *in base) -> (*batch, out, in)
    first = [*range(batch), *range(batch, batch + left),
             *range(batch + left + right, batch + left + right + len(out.base))]  # fmt: skip
    rest = [i for i in range(block.ndim) if i not in first]
    matrix = block.permute((*first, *rest)).reshape(*block.shape[:batch], out.width, into.width)
    side = out if turned else into
    vector = other.reshape(*other.shape[: other.ndim - side.rank], side.width, 1)
    result = (matrix.mT if turned else matrix) @ vector
    to = into if turned else out
    return result[..., 0].reshape((*result.shape[:-2], *to.sizes, *to.base))


def _summed_to(x: Tensor, shape: torch.Size) -> Tensor:
    return x.sum_to_size(shape) if x.shape != shape else x


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
        told = f"'{name}' is {_told(value)}, not a {kind}"
        return Problem("wrong-input", told, None, f"give {kind}(...), or its tensor")
    if isinstance(value, np.ma.MaskedArray):
        fix = "fill what is masked: x.filled(number)"
    elif isinstance(value, Tensor) and type(value) not in PLAIN:
        fix = "give a plain tensor: x.as_subclass(torch.Tensor)"
    told = f"'{name}' is {_told(value)}, not a tensor or an array of numbers"
    return Problem("wrong-input", told, None, fix)


def _told(value: Any) -> str:
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if isinstance(value, Tensor) and type(value) in PLAIN:
        return "a sparse tensor"
    return f"a {type(value).__name__}"


def _expected(want: tuple[int, ...]) -> str:
    return f"(*batch, {', '.join(map(str, want))})" if want else "(*batch)"


def _problem(code: str, message: str, fix: str | None) -> IngotError:
    return IngotError([Problem(code, message, None, fix)])
