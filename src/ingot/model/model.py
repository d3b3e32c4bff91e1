"""The live Model: named typed variables, parameters, inner models."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ingot.catalog import Declared
from ingot.errors import Span
from ingot.types import Value, lag

__all__ = ["Law", "Model", "find_buffers", "lag", "owners", "spell_parameters", "walk"]

MAX_PATHS = 16  # to one part of a model: where shared parts are nested, paths double at each level

Kinds = dict[str, type[Value]]


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


@dataclass(slots=True, eq=False)
class Model:
    """A model that lives: its parameters may be changed, and the next trace sees it."""

    name: str
    type: str
    span: Span | None
    inputs: Kinds
    outputs: Kinds
    body: Any
    values: dict[str, Value] = field(default_factory=dict)
    children: dict[str, "Model"] = field(default_factory=dict)
    providers: dict[str, "Model"] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def overrides(self) -> frozenset[str]:
        """The outputs that replace what another model of a composition gives by the same name."""
        if not isinstance(self.body, Law):
            return frozenset()
        pairs = zip(self.body.outputs, self.body.declared.outputs, strict=True)
        return frozenset(name for name, output in pairs if output.name.overrides)

    def named_parameters(self) -> dict[str, Value]:
        """Every parameter by the dotted path of block names that leads to it, shared ones once."""
        return {name: owner.values[key] for name, owner, key in walk(self)}

    def named_buffers(self) -> dict[str, Value]:
        """Every tensor of `[Data]` in the same way, by what it is called in the file's models."""
        owners = dict(find_buffers(self).values())
        return {name: owner.values[key] for name, (owner, key) in owners.items()}

    def __str__(self) -> str:
        rows = [f"{self.type} [{self.name}]"]
        for title, kinds in (("given", self.inputs), ("gives", self.outputs)):
            rows += [f"  {title}  {name}: {kind.__name__}" for name, kind in kinds.items()]
        held = (("param", self.named_parameters()), ("buffer", self.named_buffers()))
        for title, values in held:
            for name, value in values.items():
                data = value.data
                shown = f"{data.item():g}" if data.ndim == 0 else f"shape {tuple(data.shape)}"
                rows.append(f"  {title}  {name}: {type(value).__name__} = {shown}")
        return "\n".join(rows)


def walk(model: Model) -> Iterator[tuple[str, Model, str]]:
    """(qualified name, owner, stored name) of every parameter; a shared owner appears once."""
    for prefix, owner in owners(model, "", set()):
        for key in owner.values:
            yield prefix + key, owner, key


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
        for name, child in owner.children.items():
            paths.setdefault(id(child), []).extend(f"{prefix}{name}." for prefix in prefixes)
    return {name: list(dict.fromkeys(spelled)) for name, spelled in found.items()}


def _in_order(model: Model) -> list[Model]:
    """A model and all in it, each after all that contain it."""
    done: dict[int, Model] = {}

    def visit(each: Model) -> None:
        if id(each) not in done:
            for child in each.children.values():
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
    for name, child in model.children.items():
        yield from owners(child, f"{prefix}{name}.", seen)
