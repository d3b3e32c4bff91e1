"""A loaded package as an object to call: values, derivatives, parameters, status, autograd."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ingot.errors import raise_if, warn_of
from ingot.execute.autograd_guard import find_lost_gradients
from ingot.execute.batch_shape import ValueShape, join_batches
from ingot.execute.status import Status, failures
from ingot.execute.transient import History, Transient
from ingot.graphs.calls import CallCache, Layouts, layouts_of
from ingot.graphs.torch_private import forward_mode, transforms
from ingot.keywords import check_keywords
from ingot.messages import refuse, tell
from ingot.package.metadata import Metadata, VariableInfo
from ingot.runtime.autograd import call_through_autograd
from ingot.runtime.backends import Backend, tensor_of
from ingot.runtime.call_checks import PLAIN, Arrays, CallChecks, Word, make_error
from ingot.runtime.derivatives import Derivatives, sum_to
from ingot.runtime.last_status import LastStatus
from ingot.types import KINDS, Value, lag
from ingot.types.card import Card, Row, show_html, show_text
from ingot.types.history import TIMES
from ingot.types.ranges import find_outside
from ingot.types.spellings import find_named, resolve_name
from ingot.types.variables import VariableSpec

__all__ = ["Artifact"]

Blocks = dict[str, dict[str, Tensor]]

MAX_PAIRS_SHOWN = 12  # one line each; beyond, a line for each output fits on a screen


@check_keywords
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
        lives = backend.name == "interpret"
        self._waits = lives or self.device.type == "cpu"
        self._checks = CallChecks(meta, self.device, lives=lives)
        names, solves = tuple(self._checks.inputs), bool(meta.solvers)
        self._last = LastStatus(names, solves=solves, waits=self._waits)
        self._derivatives = Derivatives(meta, backend, self._checks, self._last)
        self._inputs = self._checks.inputs
        self._spellings = {p.variable.name: p.spellings for p in meta.parameters}
        self._ranges = {p.variable.name: p.range for p in meta.parameters if p.range is not None}
        # by guards what calls a kernel anew, by keys what was examined
        self._calls: CallCache[Any] = CallCache()
        self._picked = _picker(tuple(self._inputs))

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
        return tuple(self._last.told)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """The promoted parameters by their qualified names; they share storage with the model."""
        start = f"{prefix}." if prefix else ""
        return iter([(start + name, getattr(self, key)) for name, key in self._names.items()])

    def _resolved(self, word: str) -> str:
        """The promoted parameter that a word means."""
        spelled = self.metadata.origin.spell("parameter", "NAME")
        fix = f"compile with {spelled}, a name that `ingot show FILE MODEL` prints"
        missing = tell("not promoted", name=word, fix=fix)
        return resolve_name(word, self._spellings, missing.message, fix=missing.fix)

    def set_parameter(self, name: str, value: Any) -> None:
        """Give a promoted parameter another value, batched or not, which the package can hold."""
        name = self._resolved(name)
        tensor = self._checks.read_parameter(name, value)
        raise_if(self._checks.find_misfits(name, self._checks.parameters[name], tensor))
        on_host = tensor if isinstance(value, Tensor) else tensor.cpu()
        raise_if(find_outside(name, self._ranges.get(name), on_host))
        current: nn.Parameter = getattr(self, self._names[name])
        if current.shape == tensor.shape:
            with torch.no_grad():
                current.copy_(tensor)
        else:
            fresh = nn.Parameter(tensor.clone(), requires_grad=current.requires_grad)
            setattr(self, self._names[name], fresh)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """Refuse numbers out of the range of a parameter."""
        values = {n: state_dict.get(prefix + self._names[n]) for n in self._ranges}
        raise_if(
            problem for name, value in values.items() if isinstance(value, Tensor)
            for problem in find_outside(name, self._ranges[name], value)
        )  # fmt: skip
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

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
                raise make_error("wrong-device", told, "move its results instead") from None
            raise_if(self._checks.find_unlike(made))
            if not torch.equal(made.nan_to_num(), tensor.nan_to_num()):
                told = "the values of promoted parameters would be lost"
                raise make_error("wrong-input", told, "set_parameter gives them others")
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Artifact":
        made = Artifact(self.metadata, self._backend)
        for key in self._names.values():
            setattr(made, key, copy.deepcopy(getattr(self, key), memo))
        return made

    def __reduce_ex__(self, _: Any) -> Any:
        told = "an artifact is not pickled: its code is native"
        fix = "send the folder of its package, and ingot.load it there"
        raise make_error("unsaveable", told, fix)

    # calls

    def __call__(self, *given: Arrays, **named: Arrays) -> dict[str, Any]:
        """The same as `forward`; a call like the last one takes a shorter way."""
        hooked = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks
        if self._calls.is_guarding and len(given) == 1 and not (hooked or named):
            try:
                inputs = given[0]
                values: tuple[Any, ...] = self._picked(inputs)
                if self._names:
                    values = (*values, *self._held(self._parameters))
                again = self._calls.match(None, values)
                if again is not None and len(inputs) == len(self._inputs) and not forward_mode():
                    outputs, reports = again(values)
                    self._last.told = reports
                    if reports.has_failed:
                        self._last.tell(reports, values)
                    return outputs
            except (AttributeError, IndexError, KeyError, TypeError, torch.OutOfMemoryError):
                pass  # whatever it is, it is told below
        return super().__call__(*given, **named)

    def forward(self, inputs: Arrays) -> dict[str, Any]:
        """The outputs of inputs `(*batch, *axes, *base)`; NumPy arrays give NumPy arrays, and kinds
        such as `SR2(x)` give kinds.
        """
        values, key = self._checked(inputs)
        if inputs and all(isinstance(x, Value) for x in inputs.values()):
            outputs = self.forward(dict(zip(self._inputs, values, strict=False)))
            axes = {v.name: (KINDS[v.kind], len(v.sub_batch)) for v in self.metadata.outputs}
            return {n: axes[n][0](x, sub_batch_ndim=axes[n][1]) for n, x in outputs.items()}
        arrays = bool(inputs) and all(isinstance(x, np.ndarray) for x in inputs.values())
        differ = any(x.requires_grad for x in values)
        if differ and torch.is_grad_enabled() and not arrays:
            return call_through_autograd(self._derivatives, values)
        outputs, told = self._backend.values(values, key)
        self._last.tell(told, values)
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
        return self._blocks(inputs, set(self._inputs))[1]

    def value_and_jacobian(self, inputs: Arrays) -> tuple[dict[str, Tensor], Blocks]:
        """The outputs, and what `jacobian` gives, by one call of the compiled code."""
        return self._blocks(inputs, set(self._inputs))

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
        if isinstance(params, str) or not isinstance(params, Iterable):
            told = f"params is {params!r}, not a list of names"
            raise make_error("wrong-input", told, "give such as params=['E'], or leave it out")
        return {word: self._resolved(word) for word in params}

    def jvp(self, inputs: Arrays, tangents: Arrays) -> dict[str, Tensor]:
        """The change of outputs along tangents of inputs or promoted parameters.

        Given are the outputs that have a compiled pair with each of them.
        """
        values, key = self._checked(inputs)
        self._derivatives.require()
        known = self._checks.given
        along, batch = self._directions(self._named(tangents), known, "input", values)
        self._once(values, along)
        outputs, blocks, _ = self._derivatives.evaluate(values, key, along)
        pushed = self._derivatives.push_blocks(blocks, along)
        return self._derivatives.spread(pushed, self._checks.outputs, outputs, batch)

    def _named(self, tangents: Arrays) -> Arrays:
        """Tangents by the names of what they belong to, where they have others."""
        if not isinstance(tangents, Mapping) or all(n in self._checks.given for n in tangents):
            return tangents
        found: dict[str, str] = {}
        for word in tangents:
            means = [word] if word in self._inputs else find_named(str(word), self._spellings)
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
        return self._gradient(inputs, cotangents, list(self._inputs))

    def param_vjp(
        self, inputs: Arrays, cotangents: Arrays, params: Sequence[str] | None = None
    ) -> dict[str, Tensor]:
        """The gradient by every promoted parameter, or by some, which are called as they are asked
        for, summed over the points that share it.
        """
        asked = self._asked(params)
        pulled = self._gradient(inputs, cotangents, list(dict.fromkeys(asked.values())))
        shapes = {n: getattr(self, self._names[n]).shape for n in pulled}
        return {word: sum_to(pulled[n], shapes[n]) for word, n in asked.items() if n in pulled}

    def _gradient(self, inputs: Arrays, cotangents: Arrays, by: list[str]) -> dict[str, Tensor]:
        values, key = self._checked(inputs)
        self._derivatives.require(backwards=True)
        along, batch = self._directions(cotangents, self._checks.outputs, "output", values)
        self._once(values, along)
        if not self._backend.has_adjoints:
            outputs, blocks, failed = self._derivatives.evaluate(values, key, by)
            pulled = self._derivatives.pull_blocks(blocks, along, by)
            pulled = self._derivatives.silence(pulled, along, failed)
            return self._derivatives.spread(pulled, self._checks.given, outputs, batch)
        pulled = self._derivatives.pull(values, along)
        return {n: pulled[n] for n in by}

    def transient(self, transient: Transient) -> History:
        """Many steps in one native call; every input is prescribed, an output's old value, or a
        first guess of a solve, which is zero.
        """
        wrong = self._checks.find_unlike_steps(transient)
        raise_if([*wrong, *self._checks.find_unprescribed(transient)])
        history = self.arrange(transient)()
        if self._waits:
            times = (transient.prescribed.get(name) for name in TIMES)
            warn_of(failures(history.statuses, next((x for x in times if x is not None), None)))
        return history

    def arrange(self, transient: Transient) -> Callable[[], History]:
        """A transient with its arrays laid out, to be run any number of times.

        An input that nothing gives is zero, as files rely on; drivers warn of it.
        """
        promoted = {n: getattr(self, key) for n, key in self._names.items()}
        raise_if(self._checks.find_unfit(promoted))
        raise_if(self._checks.find_unlike_steps(transient))
        raise_if(find_lost_gradients({**transient.prescribed, **transient.initial, **promoted}))
        return self._backend.arrange(transient, [x.detach() for x in promoted.values()])

    def _once(self, values: Sequence[Tensor], along: Mapping[str, Tensor]) -> None:
        """Refuse inputs and directions by which the derivatives would have to be differentiated.

        Parameters require gradients from the start, which asks for nothing.
        """
        inputs = dict(zip(self._inputs, values, strict=False))
        raise_if(find_lost_gradients({**inputs, **along}, "a derivative"))

    def _blocks(self, inputs: Arrays, by: set[str]) -> tuple[dict[str, Tensor], Blocks]:
        values, key = self._checked(inputs)
        self._once(values, {})
        outputs, blocks, _ = self._derivatives.evaluate(values, key, by, spread=False)
        found: Blocks = {}
        for y, x in self._derivatives.pairs:
            if x in by:
                found.setdefault(y, {})[x] = blocks[y, x]
        return outputs, found

    # checks

    def _checked(self, inputs: Arrays) -> tuple[list[Tensor], Layouts]:
        """All values in their order and their signature; one error holds all that is wrong."""
        try:
            held: Any = self._held(self._parameters)
            values = [*map(inputs.__getitem__, self._inputs), *held]
            key = layouts_of(values)
        except (AttributeError, KeyError, TypeError, IndexError, RuntimeError):
            pass  # whatever it is, it is told below
        else:
            known = self._calls.find(key) and len(inputs) == len(self._inputs)
            known = known and not (transforms() or forward_mode())
            if known and PLAIN.issuperset(map(type, values)):
                return values, key
        promoted = {n: getattr(self, key, None) for n, key in self._names.items()}
        values = [*self._checks.examine(inputs).values(), *promoted.values()]
        raise_if(self._checks.find_unfit(promoted))
        key = layouts_of(values)
        self._calls.keep(key, True)
        return values, key

    def _directions(
        self, along: Arrays, known: Mapping[str, ValueShape], word: Word, values: Sequence[Tensor]
    ) -> tuple[dict[str, Tensor], tuple[int, ...]]:
        """Tangents or cotangents as tensors that fit the batch of the values, and that of all."""
        given, problems = self._checks.read(along, known, word)
        raise_if(problems)
        pairs = list(zip(self._checks.given.values(), values, strict=True))
        pairs += [(known[n], x) for n, x in given.items() if n not in self._backend.sums]
        return given, join_batches([tuple(x.shape[: x.ndim - s.rank]) for s, x in pairs])


def _tell_kind(variable: VariableInfo) -> str:
    sizes = " × ".join(map(str, variable.sub_batch))
    return f"{variable.kind}{f' on {sizes}' if sizes else ''}"


def _specify(v: VariableInfo) -> VariableSpec:
    return VariableSpec(v.name, KINDS[v.kind], v.sub_batch, lag(v.name)[1])


def _picker(names: tuple[str, ...]) -> Callable[[Arrays], tuple[Any, ...]]:
    """What takes values by name, in order; `itemgetter` is quickest, but knows no tuple of one."""
    return itemgetter(*names) if len(names) > 1 else lambda x: tuple(x[n] for n in names)
