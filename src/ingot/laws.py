"""The laws of the catalogue as functions that give live models: `laws.YieldFunction(...)`.

A view of the catalogue, of the types that contain models (`Normality`, predictors) and of those of
`[Data]`; `laws.pyi`, printed by `python -m benchmarks.stubs`, tells editors what each takes.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ingot.catalog import CATALOG, Declared, key, load
from ingot.catalog.declare import REQUIRED
from ingot.catalog.schema import read_docstring
from ingot.errors import IngotError, Problem, caller, did_you_mean, raise_if
from ingot.hit import unknown_fields
from ingot.keywords import check_keywords
from ingot.model import ELSEWHERE, bind, locate, python_factory
from ingot.model.given import give

__all__ = ["Maker", "declaration_of", "of"]

_FUNCTIONS = {"ComposedModel": "ingot.compose", "ImplicitUpdate": "ingot.implicit"}
"""Types that functions of their own make, whose arguments say more than a block's options."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A type of the catalogue to call: its options are keywords, what comes back is live.

    A parameter is a number, an array, a value of `ingot.types`, the name of a variable or a model,
    whose output stands in. An input or output is renamed by its keyword.
    """

    type: str
    law: Declared | None = None

    @check_keywords
    def __call__(self, *, name: str | None = None, **options: Any) -> Any:
        """The model, called `name` or as its type; where it was called is where errors point."""
        span = caller()
        values = {key(option): value for option, value in options.items()}
        given = give(self.type, values, span, name)
        raise_if(unknown_fields(given, ("name", *self.options)))  # type: ignore[reportArgumentType]
        if self.type in ELSEWHERE["Data"]:
            return python_factory().make_data(given)
        return bind(self.law or self.type, values, span, name)

    @property
    def __name__(self) -> str:
        return self.type

    @property
    def __doc__(self) -> str:  # type: ignore[reportIncompatibleVariableOverride]
        return inspect.getdoc(self.law.function if self.law else self._class()) or ""

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.KEYWORD_ONLY
        slots = [("name", self.type), *describe_options(self)]
        return inspect.Signature(
            [inspect.Parameter(option, kind, default=default) for option, default in slots]
        )

    @property
    def options(self) -> tuple[str, ...]:
        """What it may be given, as a file spells it."""
        if self.law is not None:
            return self.law.options_known
        return tuple(read_docstring(self._class())[1])

    def _class(self) -> Any:
        return locate(self.type, "Data" if self.type in ELSEWHERE["Data"] else "Models")

    def __repr__(self) -> str:
        return f"<law {self.type}{self.__signature__}>"


def describe_options(maker: Maker) -> list[tuple[str, Any]]:
    """Each option with its default, as Python spells it: what is required comes first."""
    law = maker.law
    if law is None:
        required = maker.type in ELSEWHERE["Data"]
        return [(_spell(o), REQUIRED if required else None) for o in maker.options]
    found: list[tuple[str, Any]] = []
    for slot in law.parameters:
        found.append((slot.argument, REQUIRED if slot.default is None else _number(slot.default)))
    for option in law.options:
        found.append((option.argument, REQUIRED if option.data else option.default))
    for slot in law.inputs:
        if slot.many:
            found.append((slot.argument, REQUIRED))
        elif slot.name.option is not None:
            found.append((slot.argument, slot.name.template))
    for output in law.outputs:
        if output.name.option is not None:
            found.append((_spell(output.name.option), output.name.template))
    return sorted(found, key=lambda each: each[1] is not REQUIRED)


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _spell(option: str) -> str:
    """An option as an argument of Python, whose own words carry an underscore."""
    return f"{option}_" if option in ("from", "lambda", "in", "is") else option


@check_keywords
def of(function: Callable[..., Any]) -> Maker:
    """The maker of a law of your own: a function under `@model`, of a module or a notebook's cell.

    A cell that runs again replaces its law; models that were made before keep theirs.
    """
    law = declaration_of(function)
    return Maker(law.name, law)


def declaration_of(function: Callable[..., Any]) -> Declared:
    """What `@model` declared of a function."""
    load()
    found = [declared for declared in CATALOG.values() if declared.function is function]
    if len(found) == 1:
        return found[0]
    if isinstance(function, Maker):
        message = f"'{function.type}' is called as it is"
        fix = f"write ingot.laws.{function.type}(...)"
        raise IngotError([Problem("unknown-type", message, caller(), fix)])
    name = getattr(function, "__name__", f"a {type(function).__name__}")
    message = f"'{name}' is not declared as a law"
    fix = did_you_mean(name, CATALOG) or "write @model(gives=...) above it"
    if found:
        message = f"'{name}' stands for {', '.join(declared.name for declared in found)}"
        fix = f"call ingot.laws.{found[0].name}(...), or another of them"
    raise IngotError([Problem("unknown-type", message, caller(), fix)])


def _others() -> list[str]:
    return [n for n in (*ELSEWHERE["Models"], *ELSEWHERE["Data"]) if n not in _FUNCTIONS]


def __getattr__(name: str) -> Maker:
    law = load().get(name)
    if law is not None or name in _others():
        return Maker(name, law)
    if name.startswith("_"):
        raise AttributeError(f"module 'ingot.laws' has no attribute '{name}'")
    known = [*CATALOG, *_others()]
    alike = [each for each in known if name.lower() in each.lower()][:4]
    some = f"choose one of: {', '.join(alike)}" if alike else "`dir(ingot.laws)` lists all laws"
    fix = did_you_mean(name, known) or some
    if name in _FUNCTIONS:
        fix = f"call {_FUNCTIONS[name]}(...)"
    raise UnknownLaw([Problem("unknown-type", f"there is no law '{name}'", caller(), fix)])


class UnknownLaw(IngotError, AttributeError):
    """A law that is not there; an AttributeError too, so that `hasattr` and `getattr` work."""


def __dir__() -> list[str]:
    return sorted([*load(), *_others(), "of"])
