"""A live Model -> the input file that describes it: every block once, parameters as they are now.

It is written from what the model was made of (`Model.made`), not from a file: one that was read and
one that was composed in Python are written alike.
"""

import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields as fields_of
from typing import Any

import msgspec
import torch

from ingot.catalog import key
from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.hit import Block, Field, Tree
from ingot.model.given import Given
from ingot.model.model import DataTensors, Law, Model
from ingot.options import Newton, knobs_of
from ingot.types import Scalar, Value

__all__ = ["NOWHERE", "Writer", "expression", "section", "spell_block", "written"]

NOWHERE = Span("", 0)
WIDTH = 100  # of a line of an expression

Selection = Callable[[Value], Value]


class Writer:
    """Collects the blocks of a file, each under a name of its own.

    select: what is written of a value, such as one point of its batch.
    """

    def __init__(self, select: Selection = lambda value: value) -> None:
        self._select = select
        self._sections: dict[str, dict[str, Block]] = {
            name: {} for name in ("Tensors", "Data", "Models", "EquationSystems", "Solvers")
        }
        self._names: dict[Any, str] = {}
        self._alive: list[Any] = []
        self._reserved: set[str] = set()
        self._settings: list[Field] = []
        self._shapes: list[Block] = []

    def tree(self, *blocks: Block) -> Tree:
        """The file, with more blocks at its end."""
        settings = Block("Settings", "Settings", (*self._settings,), (*self._shapes,), NOWHERE)
        sections = (section(name, found.values()) for name, found in self._sections.items())
        kept = [s for s in (settings, *sections) if s.blocks or s.fields]
        return Tree((), (*kept, *blocks))

    def declare(self, setting: str, text: str) -> None:
        """Enter a line of `[Settings]`."""
        self._settings.append(written(setting, text))

    def root(self, model: Model, shapes: Mapping[str, tuple[int, ...]]) -> str:
        """Write a model and all that it is made of, on structural axes; the name of its block."""
        # In a file, a parameter called as a block or a tensor means that one.
        self._reserved |= {name for each in _reach(model) for name in _free_parameters(each)}
        if shapes:
            rows = (written(n, f"(; {', '.join(map(str, s))})") for n, s in shapes.items())
            self._shapes = [Block("example_batch_shape", "Settings", tuple(rows), (), NOWHERE)]
        return self.model(model)

    def model(self, model: Model, preferred: str | None = None) -> str:
        """The name of a model's block, which is written where it was not before."""
        if id(model) in self._names:
            return self._names[id(model)]
        name = self._claim("Models", model, preferred or model.name)
        if model.made is None:
            message = f"[{model.name}] does not know what it was made of"
            fix = "make it with ingot.laws, ingot.compose, ingot.implicit or ingot.build"
            raise IngotError([Problem("not-written", message, model.span, fix)])
        held = {id(part): part_name for part_name, part in model.parts.items()}
        if isinstance(model.body, Law):
            raise_if(model.body.declared.find_replaced(model.span))
            fields = list(self._law_fields(model, model.body, name))
        else:
            fields = [
                written(field.name, self.spell(field.value, held, f"{name}_{field.name}"))
                for field in model.made.fields
            ]
        self._put("Models", name, model.made.type, fields)
        return name

    def spell(self, value: Any, held: Mapping[int, str], name: str) -> str:
        """A value as a file has it; `held`: what the models among it are called where it stands."""
        match value:
            case Model():
                return self.model(value, held.get(id(value)))
            case Given():
                return self._given(value)
            case Newton():
                return self._newton(value)
            case Value():
                return self.tensor(value, name)
            case bool():
                return str(value).lower()
            case Mapping():
                return " ".join(f"{k}:{self.spell(v, held, name)}" for k, v in value.items())
            case list() | tuple():
                rows = bool(value) and all(isinstance(each, list | tuple) for each in value)
                return ("; " if rows else " ").join(self.spell(v, held, name) for v in value)
            case float():
                return repr(value)
            case _:
                return str(value)

    def tensor(self, value: Value, name: str) -> str:
        """Numbers as they are written, of those that are selected."""
        return self.enter(self._select(value), name)

    def enter(self, value: Value, name: str) -> str:
        """Numbers as they are written: one as itself, others as an entry of `[Tensors]`."""
        data = value.data.detach().cpu()
        if isinstance(value, Scalar) and data.ndim == 0:
            return repr(float(data))
        text = expression(type(value), data, value.sub)
        if text not in self._names:
            self._names[text] = self._claim("Tensors", text, name)
            self._put("Tensors", self._names[text], "Python", [written("expr", text)])
        return self._names[text]

    def _law_fields(self, model: Model, law: Law, name: str) -> Iterator[Field]:
        declared = law.declared
        own = {key(p.argument) for p in declared.parameters}
        own |= {key(o.argument) for o in declared.options if o.data is not None}
        named = {field.name for field in model.made.fields}
        for field in model.made.fields:
            if field.name not in own:
                yield written(field.name, self.spell(field.value, {}, name))
        for variable, output in zip(law.outputs, declared.outputs, strict=True):
            follows = "{block}" in (output.name.template or "")
            if follows and output.name.option and output.name.option not in named:
                yield written(output.name.option, variable)
        for option in declared.options:
            if option.data is not None and law.options[option.argument] is not None:
                (held,) = model.data.values()
                yield written(key(option.argument), self._data(held, key(option.argument)))
        for argument, bound in law.parameters.items():
            yield written(key(argument), self._parameter(model, bound, f"{name}_{key(argument)}"))

    def _parameter(self, model: Model, bound: Any, name: str) -> str:
        if not isinstance(bound[0], str):
            each = (self._parameter(model, one, f"{name}_{i}") for i, one in enumerate(bound))
            return " ".join(each)
        role, word = bound
        if role == "value":
            return self.tensor(model.values[word], name)
        provider = model.providers.get(word)
        if provider is None:
            return word
        block = self.model(provider)
        return block if len(provider.outputs) == 1 else f"{block}.{word}"

    def _data(self, held: DataTensors, preferred: str) -> str:
        """The block of an object of `[Data]`, refused where its tensors are no longer its own."""
        source = held.source
        if id(source) in self._names:
            return self._names[id(source)]
        for stored, value in source.values.items():
            if not torch.equal(held.values[stored].data.double(), value.data):
                message = f"'{stored}' of a {type(source).__name__} was set, and no file can say so"
                fix = "set it again after reading the file, or keep the model in Python"
                raise IngotError([Problem("not-written", message, None, fix)])
        name = self._claim("Data", source, preferred)
        values = [
            written(f.name, self.tensor(getattr(source, f.name), f"{name}_{f.name}"))
            for f in fields_of(source)
        ]
        self._put("Data", name, type(source).__name__, values)
        return name

    def _given(self, given: Given) -> str:
        """The block of an equation system, or of a solver."""
        if id(given) not in self._names:
            name = self._claim(given.section, given, given.name)
            rows = [written(f.name, self.spell(f.value, {}, name)) for f in given.fields]
            self._put(given.section, name, given.type, rows)
        return self._names[id(given)]

    def _newton(self, rules: Newton) -> str:
        """The block of a solver; equal rules are one."""
        if rules not in self._names:
            searches = rules.linesearch != "NONE"
            chosen = [
                written(k.option, self.spell(getattr(rules, k.name), {}, ""))
                for k in knobs_of(Newton)
                if getattr(rules, k.name) != k.default
            ]
            name = self._claim("Solvers", rules, "newton")
            kind = "NewtonWithLineSearch" if searches else "Newton"
            self._put("Solvers", name, kind, chosen)
        return self._names[rules]

    def _claim(self, part: str, thing: Any, preferred: str) -> str:
        """A name that no other block of the section has, and no parameter means a variable by."""
        taken = self._reserved | self._sections[part].keys()
        if part in ("Models", "Tensors"):
            taken |= self._sections["Tensors" if part == "Models" else "Models"].keys()
        stem = spell_block(preferred)
        alike = (f"{stem}_{i}" for i in itertools.count(2))
        name = next(n for n in itertools.chain([stem], alike) if n not in taken)
        hashed = isinstance(thing, str | msgspec.Struct)
        self._names[thing if hashed else id(thing)] = name
        self._alive.append(thing)  # whose id is a key
        self._sections[part][name] = Block(name, part, (), (), NOWHERE)  # its place among others
        return name

    def _put(self, part: str, name: str, kind: str, fields: Iterable[Field]) -> None:
        every = (written("type", kind), *fields)
        self._sections[part][name] = Block(name, f"{part}/{name}", every, (), NOWHERE)


def spell_block(name: str) -> str:
    """The name of a block as near to one of Python as a file can hold."""
    return re.sub(r"[^\w.+~-]|^(?=\d|$)|^[.]+$", "_", name)


def _reach(model: Model) -> list[Model]:
    """A model and all that it contains or that provides parameters, each once."""
    found = {id(model): model}
    left = [model]
    while left:
        each = left.pop()
        for other in (*each.parts.values(), *each.providers.values()):
            if id(other) not in found:
                found[id(other)] = other
                left.append(other)
    return list(found.values())


def _free_parameters(model: Model) -> Iterator[str]:
    """The variables that stand in for parameters, and that no model was named to give."""
    if isinstance(model.body, Law):
        for bound in model.body.parameters.values():
            for role, word in bound if not isinstance(bound[0], str) else (bound,):
                if role == "variable" and word not in model.providers:
                    yield word.partition(".")[0]


def expression(kind: type[Value], data: torch.Tensor, sub: int) -> str:
    """Python that makes a value again, to the last bit."""
    whole = not data.is_floating_point()
    text = textwrap.fill(repr(data.tolist()), WIDTH - 4, break_long_words=False)
    text = re.sub(r"\b(nan|inf)\b", r"math.\1", text)
    axes = f", sub_batch_ndim={sub}" if sub else ""
    dtype = "int64" if whole else "float64"
    made = f"tensor({text}" if data.numel() else f"zeros({tuple(data.shape)}"  # lists lose sizes
    return f"{kind.__name__}(torch.{made}, dtype=torch.{dtype}){axes})"


def section(name: str, blocks: Iterable[Block]) -> Block:
    """A top-level block of others."""
    return Block(name, name, (), tuple(blocks), NOWHERE)


def written(name: str, text: str) -> Field:
    """A field that stands in no file yet."""
    return Field(name, text, NOWHERE, NOWHERE)
