"""The live Model: named typed variables, parameters, inner models; an `nn.Module` to call."""

import importlib
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from ingot.catalog import Declared
from ingot.errors import IngotError, Problem, Span, caller, did_you_mean, raise_if
from ingot.keywords import check_keywords
from ingot.options import Range
from ingot.types import Value, lag
from ingot.types.card import Card, Row, show_html, show_text
from ingot.types.ranges import find_outside
from ingot.types.spellings import resolve_name, with_root
from ingot.types.variables import VariableSpec

__all__ = [
    "DataTensors", "Law", "Model", "find_buffers", "find_ranges", "lag", "owners",
    "spell_parameters", "walk",
]  # fmt: skip

EVALUATION = "ingot.runtime.live"
"""Where live models are evaluated: a room that may not be imported from here."""

PICTURE = "ingot.cli.drawing"
"""Where models are drawn, likewise."""

MAX_BOXES = 60  # a picture of more takes seconds, and nobody finds anything in it
MAX_PATHS = 16  # to one part of a model: where shared parts are nested, paths double at each level

Kinds = dict[str, type[Value]]
Arrays = Mapping[str, Any]
Blocks = dict[str, dict[str, Tensor]]


@dataclass(frozen=True, slots=True)
class Law:
    """A declared law with its names filled in: what a block of the catalogue becomes.

    inputs: variable of each argument (several for a list, None where absent);
    parameters: ("value", stored name) or ("variable", name) of each, a tuple of them for a list.
    """

    declared: Declared
    inputs: dict[str, Any]
    parameters: dict[str, Any]
    options: dict[str, Any]
    outputs: tuple[str, ...]


class _Values(MutableMapping[str, Value]):
    """Tensors that a module holds, as values of their kinds that share their storage.

    One that is parametrized (`torch.nn.utils.parametrize`) is what its parametrization computes.
    """

    def __init__(
        self, owner: str, tensors: dict[str, Any], modules: dict[str, Any], *, trained: bool
    ) -> None:
        self._owner, self._tensors, self._modules, self._trained = owner, tensors, modules, trained
        self._kinds: dict[str, tuple[type[Value], int]] = {}

    def __getitem__(self, key: str) -> Value:
        kind, sub = self._kinds[key]
        return kind(self._find(key).detach(), sub_batch_ndim=sub)

    def tensor(self, key: str) -> tuple[Tensor, int]:
        """The tensor that is held or computed, and how many of its axes are no batch."""
        kind, sub = self._kinds[key]
        return self._find(key), sub + len(kind.base)

    def _find(self, key: str) -> Tensor:
        computed = self._find_parametrization(key)
        found = self._tensors.get(key) if computed is None else computed()
        if isinstance(found, Tensor):
            return found
        told = f"[{self._owner}] has lost its parameter '{key}'"
        fix = f"give it again: module.{key} = nn.Parameter(...)"
        if f"{key}_orig" in self._tensors:
            told += ", which a hook computes where the block itself is called: it never is"
            fix = "compute it by torch.nn.utils.parametrize.register_parametrization"
        raise IngotError([Problem("wrong-input", told, None, fix)])

    def _find_parametrization(self, key: str) -> Any:
        computed = self._modules.get("parametrizations")
        return computed[key] if isinstance(computed, nn.ModuleDict) and key in computed else None

    def __setitem__(self, key: str, value: Value) -> None:
        """Hold a copy, since a tensor of a file may stand in several places; written into the
        tensor that is held where that has the same shape, so that an optimiser still knows it.
        """
        held = self._tensors.get(key)
        computed = self._find_parametrization(key)
        if computed is not None:
            self._invert(computed, key, value)
            return
        self._kinds[key] = (type(value), value.sub)
        if held is not None and held.shape == value.data.shape:
            with torch.no_grad():
                held.copy_(value.data)
            return
        copy = value.data.detach().clone(memory_format=torch.contiguous_format)
        if self._trained:
            differs = copy.is_floating_point() if held is None else held.requires_grad
            copy = nn.Parameter(copy, requires_grad=differs)
        self._tensors[key] = copy

    def _invert(self, computed: Any, key: str, value: Value) -> None:
        try:
            computed.right_inverse(value.data)
        except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            told = f"'{key}' of [{self._owner}] is parametrized, and cannot be set: {error}"
            fix = "give the parametrization a right_inverse, or set what it computes from"
            raise IngotError([Problem("wrong-input", told, None, fix)]) from None

    def __delitem__(self, key: str) -> None:
        del self._tensors[key], self._kinds[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


class DataTensors(nn.Module):
    """The tensors of an object of `[Data]` that can be promoted, as buffers."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self.source = source
        self.values = _Values("Data", self._buffers, self._modules, trained=False)
        self.values.update(source.values)


class _Evaluators:
    """What evaluates a live model, by what its trace depends on; none goes with a copy."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.table: dict[Any, Any] = {}
        self.last = threading.local()

    def __reduce__(self) -> Any:
        return _Evaluators, ()


@check_keywords
class Model(nn.Module):
    """A model that lives: its parameters may be changed, and the next call or trace sees it.

    Called with inputs by name, it is evaluated as an artifact is, by torch operations, and passes
    gradients on to inputs and parameters. shapes: the structural extents that its file declares;
    made: the `Given` that it was made of, with models where a file has names; ranges: those of its
    own parameters, where a preset has declared any
    """

    def __init__(
        self, name: str, type_name: str, span: Span | None, inputs: Kinds, outputs: Kinds,
        body: Any, parts: "Mapping[str, Model] | None" = None,
        providers: "Mapping[str, Model] | None" = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name, self.type_name, self.span = name, type_name, span
        self.inputs, self.outputs, self.body = inputs, outputs, body
        self.providers: dict[str, Model] = dict(providers or {})
        self.values = _Values(name, self._parameters, self._modules, trained=True)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.ranges: dict[str, Range] = {}
        self.made: Any = None
        self._like = torch.empty(0, dtype=torch.float64, device="cpu")
        self._evaluators = _Evaluators()
        # tables of their own: a block or an option may have the name of something that we have
        self._modules.update(parts or {})

    # what it is

    @property
    def parts(self) -> "dict[str, Model]":
        """The models inside, by the names of their blocks."""
        return {name: part for name, part in self._modules.items() if isinstance(part, Model)}

    @property
    def data(self) -> dict[str, DataTensors]:
        """The tensors of `[Data]` that the model reads itself, by what NEML2 calls their holder."""
        held = self._modules.items()
        return {name: each for name, each in held if isinstance(each, DataTensors)}

    def hold_data(self, name: str, data: DataTensors) -> None:
        """Let the model have tensors of `[Data]`."""
        self._modules[name] = data

    @property
    def overrides(self) -> frozenset[str]:
        """The outputs that replace what another model of a composition gives by the same name."""
        if not isinstance(self.body, Law):
            return frozenset()
        pairs = zip(self.body.outputs, self.body.declared.outputs, strict=True)
        return frozenset(name for name, output in pairs if output.name.overrides)

    @property
    def dtype(self) -> torch.dtype:
        """The precision it computes in; `to` changes it."""
        return self._like.dtype

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._like.device

    @property
    def input_spec(self) -> dict[str, VariableSpec]:
        """What every input is."""
        return self._evaluation().specify(self)[0]

    @property
    def output_spec(self) -> dict[str, VariableSpec]:
        """What every output is."""
        return self._evaluation().specify(self)[1]

    def named_values(self) -> dict[str, Value]:
        """Every parameter as a value of its kind, by the path of block names that leads to it."""
        return {name: owner.values[key] for name, owner, key in walk(self)}

    def buffer_values(self) -> dict[str, Value]:
        """Every tensor of `[Data]` in the same way, by what it is called in the file's models."""
        held = dict(find_buffers(self).values())
        return {name: owner.values[key] for name, (owner, key) in held.items()}

    def __getitem__(self, output: str) -> Any:
        """An output, to stand in for a parameter of another model: `laws.X(shear=model["G"])`."""
        from ingot.model.given import OutputOf

        if output not in self.outputs:
            message = f"[{self.name}] has no output {output!r}"
            fix = did_you_mean(str(output), self.outputs) or f"choose {', '.join(self.outputs)}"
            raise IngotError([Problem("unknown-output", message, caller(), fix)])
        return OutputOf(self, output)

    def to_hit(self) -> str:
        """The input file that describes the model, with its parameters as they are now.

        Read again (`ingot.from_hit`), it is the same model: the same blocks, shared where parts are
        shared, and the same program.
        """
        from ingot.model.write import Writer

        writer = Writer()
        writer.root(self, self.shapes)
        return str(writer.tree())

    def set_parameter(self, name: str, value: Any) -> None:
        """Give a parameter, or a tensor of `[Data]`, another value, batched or not."""
        spellings = with_root(spell_parameters(self), self.name)
        missing = f"[{self.name}] has no parameter '{name}'"
        found = resolve_name(name, spellings, missing)
        held: dict[str, tuple[Any, str]] = {n: (owner, key) for n, owner, key in walk(self)}
        owner, key = (held | dict(find_buffers(self).values()))[found]
        chosen = _like_value(found, owner.values[key], value)
        if isinstance(owner, Model):
            raise_if(find_outside(found, owner.ranges.get(key), chosen.data))
        owner.values[key] = chosen

    def card(self) -> Card:
        """What a prompt or a notebook shows: variables, values, parts, and the wiring."""
        rows = [Row("given", name, kind.__name__) for name, kind in self.inputs.items()]
        rows += [Row("gives", name, kind.__name__) for name, kind in self.outputs.items()]
        held = (("param", self.named_values()), ("buffer", self.buffer_values()))
        for title, values in held:
            for name, value in values.items():
                data = value.data
                shown = f"{data.item():g}" if data.ndim == 0 else f"shape {tuple(data.shape)}"
                rows.append(Row(title, name, f"{type(value).__name__} = {shown}"))
        rows += [Row("part", name, part.type_name) for name, part in self.parts.items()]
        return Card(f"{self.type_name} [{self.name}]", tuple(rows), self._draw)

    def _draw(self) -> str:
        """The wiring as SVG, of a model that is small enough for a page."""
        if sum(1 for _ in owners(self, "", set())) > MAX_BOXES:
            return ""
        picture = importlib.import_module(PICTURE)
        return picture.draw_model(self)

    def __str__(self) -> str:
        return show_text(self, self.card)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return show_html(self, self.card)

    # what it becomes

    def __setattr__(self, name: str, value: Any) -> None:
        """Set what is ours even where a block has its name; refuse to put another part in place."""
        parts = self.__dict__.get("_modules", {})
        if name in parts and name in self.__dict__:
            object.__setattr__(self, name, value)
            return
        self._keep_part(parts, name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._keep_part(self._modules, name, None)
        super().__delattr__(name)

    def _keep_part(self, parts: Mapping[str, Any], name: str, value: Any) -> None:
        part = parts.get(name)
        if isinstance(part, Model | DataTensors) and value is not part:
            told = f"[{name}] is a part of [{self.name}], which was wired with it, and stays so"
            fix = "build the model again: ingot.read(file, ['Models/BLOCK/OPTION:=VALUE'])"
            raise IngotError([Problem("fixed-part", told, self.span, fix)])

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Convert the tensors; what a model without any computes in changes too."""
        made = super()._apply(fn, recurse)
        self._like = fn(self._like)
        return made

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """Refuse numbers out of the range of a parameter."""
        held = {key: state_dict.get(prefix + key) for key in self.ranges}
        raise_if(
            problem for key, value in held.items() if isinstance(value, Tensor)
            for problem in find_outside(prefix + key, self.ranges[key], value)
        )  # fmt: skip
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    # calls

    def _evaluation(self) -> Any:
        return importlib.import_module(EVALUATION)

    def find_unprovided(self, given: Any = ()) -> Iterator[Problem]:
        """A problem for each parameter whose model is no part of this one, and is not given."""
        for variable in self.providers:
            if variable not in given:
                told = f"'{variable}' is given by a model that is no part of [{self.name}]"
                fix = "compose both: ingot.compose(law) takes in what gives its parameters"
                yield Problem("missing-input", told, self.span, fix)

    def _evaluator(self, inputs: Arrays) -> Any:
        if isinstance(inputs, Mapping):
            raise_if(self.find_unprovided(inputs))
        return self._evaluation().evaluator_of(self, inputs)

    @property
    def status(self) -> tuple[Any, ...]:
        """What became of every point in this thread's last call, one status a solve."""
        last = getattr(self._evaluators.last, "evaluator", None)
        return () if last is None else last.status

    def forward(self, inputs: Arrays) -> dict[str, Any]:
        """The outputs of inputs `(*batch, *axes, *base)`; NumPy arrays give NumPy arrays, and kinds
        such as `SR2(x)` give kinds.
        """
        return self._evaluator(inputs).forward(inputs)

    def jacobian(self, inputs: Arrays) -> Blocks:
        """Blocks `[output][input]`: (*batch, *axes, *axes, *base, *base)."""
        return self._evaluator(inputs).jacobian(inputs)

    def value_and_jacobian(self, inputs: Arrays) -> tuple[dict[str, Tensor], Blocks]:
        """The outputs, and what `jacobian` gives."""
        return self._evaluator(inputs).value_and_jacobian(inputs)

    def param_jacobian(self, inputs: Arrays, params: Sequence[str] | None = None) -> Blocks:
        """Blocks `[output][parameter]`, with all parameters or with some."""
        return self._evaluator(inputs).param_jacobian(inputs, params)

    def jvp(self, inputs: Arrays, tangents: Arrays) -> dict[str, Tensor]:
        """The change of outputs along tangents of inputs or parameters."""
        return self._evaluator(inputs).jvp(inputs, tangents)

    def vjp(self, inputs: Arrays, cotangents: Arrays) -> dict[str, Tensor]:
        """The gradient by inputs of a sum of outputs times cotangents, point by point."""
        return self._evaluator(inputs).vjp(inputs, cotangents)

    def param_vjp(
        self, inputs: Arrays, cotangents: Arrays, params: Sequence[str] | None = None
    ) -> dict[str, Tensor]:
        """The gradient by every parameter, or by some, summed over the points that share it."""
        return self._evaluator(inputs).param_vjp(inputs, cotangents, params)


def _like_value(name: str, held: Value, given: Any) -> Value:
    """What a parameter is given, as a value of its kind in its precision."""
    fix = "give a number, an array, or a value of its kind"
    if isinstance(given, Value) and type(given) is not type(held):
        told = f"'{name}' is a {type(held).__name__}, not a {type(given).__name__}"
        raise IngotError([Problem("kinds-differ", told, None, fix)])
    data, sub = (given.data, given.sub) if isinstance(given, Value) else (given, held.sub)
    if isinstance(data, Tensor) and data.requires_grad and torch.is_grad_enabled():
        told = f"'{name}' is set to a tensor that requires a gradient, which a copy loses"
        fix = (
            "call torch.func.functional_call(model, {name: tensor}, (inputs,)), or give a detached"
        )
        raise IngotError([Problem("no-gradient", told, None, fix)])
    if isinstance(data, str):
        told = f"'{name}' should be numbers, not {data!r}"
        raise IngotError([Problem("wrong-input", told, None, fix)])
    try:
        from ingot.model.given import GivenField

        data = GivenField(name, data, None).tensor(data).to(held.data)
        return type(held)(data, sub_batch_ndim=sub)
    except (TypeError, ValueError, RuntimeError) as error:
        raise IngotError([Problem("wrong-input", f"'{name}': {error}", None, fix)]) from None


def walk(model: Model) -> Iterator[tuple[str, Model, str]]:
    """(qualified name, owner, stored name) of every parameter; a shared owner appears once."""
    for prefix, owner in owners(model, "", set()):
        for key in owner.values:
            yield prefix + key, owner, key


def find_ranges(model: Model) -> dict[str, Range]:
    """The range of every parameter that has one, by its qualified name."""
    return {
        name: owner.ranges[key] for name, owner, key in walk(model) if key in owner.ranges
    }  # fmt: skip


def find_buffers(model: Model) -> dict[str, tuple[str, tuple[Any, str]]]:
    """Of every name of a tensor of `[Data]`, by each model that reads it, the first of these names,
    and what holds the tensor under which key.
    """
    first: dict[tuple[int, str], str] = {}
    found = {}
    for prefix, owner in owners(model, "", set()):
        for name, data in owner.data.items():
            for key in data.values:
                asked = f"{prefix}{name}.{key}"
                found[asked] = (first.setdefault((id(data), key), asked), (data, key))
    return found


def spell_parameters(model: Model) -> dict[str, list[str]]:
    """All names of every parameter and every tensor of `[Data]`: by each path that leads to it, by
    the option's name and by NEML2's.
    """
    paths: dict[int, list[str]] = {id(model): [""]}
    names = {(id(owner), key): name for name, owner, key in walk(model)}
    names |= {(id(data), key): name for name, (data, key) in find_buffers(model).values()}
    found: dict[str, list[str]] = {name: [] for name in names.values()}

    def enter(holder: Any, prefixes: list[str], stored: Callable[[str], str]) -> None:
        for key in holder.values:
            spelled = [prefix + each for prefix in prefixes for each in (key, stored(key))]
            found[names[id(holder), key]] += spelled

    for owner in _in_order(model):
        prefixes = paths[id(owner)][:MAX_PATHS]
        law = owner.body.declared if isinstance(owner.body, Law) else None
        enter(owner, prefixes, law.stored_as if law is not None else str)
        for name, data in owner.data.items():
            enter(data, [f"{prefix}{name}." for prefix in prefixes], str)
        for name, child in owner.parts.items():
            paths.setdefault(id(child), []).extend(f"{prefix}{name}." for prefix in prefixes)
    return {name: list(dict.fromkeys(spelled)) for name, spelled in found.items()}


def _in_order(model: Model) -> list[Model]:
    """A model and all in it, each after all that contain it."""
    done: dict[int, Model] = {}

    def visit(each: Model) -> None:
        if id(each) not in done:
            for child in each.parts.values():
                visit(child)
            done[id(each)] = each

    visit(model)
    return [*done.values()][::-1]


def owners(model: Model, prefix: str, seen: set[int]) -> Iterator[tuple[str, Model]]:
    """A model and all inside it, each once, by the names that their parameters are found under."""
    if id(model) in seen:
        return
    seen.add(id(model))
    yield prefix, model
    for name, child in model.parts.items():
        yield from owners(child, f"{prefix}{name}.", seen)
