"""`@model`: a typed function becomes a declared law, with its options, names and outputs.

In: a function of values. Out: a `Declared` in the catalogue, from which schema, building, tracing,
documentation and tests all follow.
"""

import inspect
import types as python_types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args, get_origin

from ingot.types import Axed, Value

__all__ = [
    "CATALOG", "Data", "Declared", "Fixed", "Input", "Many", "Name", "Option", "Output",
    "Parameter", "ParameterSlot", "T", "derived", "model", "named", "old", "optional",
]  # fmt: skip

T = TypeVar("T", bound=Value)
"""The kind that a family of laws is declared over."""


class _Marked:
    """An annotation that says what an argument is: `Parameter[Scalar]`, `Many[SR2]`."""

    def __init__(self, role: str, inner: Any) -> None:
        self.role = role
        self.inner = inner


class Parameter:
    """A number, a `[Tensors]` entry, another model's output or a free variable."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return _Marked("parameter", kind)


class Fixed:
    """A parameter that is a number or a `[Tensors]` entry, never a variable."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return _Marked("fixed", kind)


class Many:
    """A list of inputs or of parameters."""

    def __class_getitem__(cls, inner: Any) -> Any:
        return _Marked("many", inner)


class Data:
    """A `[Data]` block of the named type."""

    def __class_getitem__(cls, name: str) -> Any:
        return _Marked("data", name)


@dataclass(frozen=True, slots=True)
class Name:
    """How a variable is called: the option that renames it, and its name without the option."""

    option: str | None
    template: str | None

    def absent(self) -> bool:
        """Whether the variable does not exist unless the file names it."""
        return self.template is None


def named(default: str, *, option: str | None = None) -> Any:
    """A variable called `default` unless renamed; `{block}` and `{argument}` are filled in."""
    return Name(option, default)


def derived(template: str) -> Any:
    """A variable called after others, such as `{variable}_rate`; its own option renames it."""
    return Name(template.replace("{", "").replace("}", ""), template)


def old(argument: str) -> Any:
    """The value of another variable one step ago; it cannot be renamed by itself."""
    return Name(None, "{" + argument + "}~1")


optional: Any = Name("", None)
"""An input that is absent unless the file names it; the law receives None."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input variable, or a list of them."""

    argument: str
    kind: type[Value]
    axes: tuple[str, ...]
    name: Name
    many: bool = False


@dataclass(frozen=True, slots=True)
class ParameterSlot:
    """A parameter, or a list of them; `variable` says whether a variable may stand in."""

    argument: str
    kind: type[Value]
    axes: tuple[str, ...]
    variable: bool
    default: str | None = None
    many: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """A static choice: its type, its default (or `REQUIRED`), the `[Data]` type it refers to."""

    argument: str
    type: Any
    default: Any
    data: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """An output variable."""

    kind: type[Value]
    axes: tuple[str, ...]
    name: Name


REQUIRED = inspect.Parameter.empty
Names = dict[str, str]
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declared:
    """A law as the catalogue knows it."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    parameters: tuple[ParameterSlot, ...]
    options: tuple[Option, ...]
    outputs: tuple[Output, ...]
    rewire: Callable[[Names, Options], Names] | None = None
    labels: Mapping[str, Callable[[Options], list[str]]] = field(default_factory=dict)

    @property
    def known(self) -> tuple[str, ...]:
        """Every key a block of this type may hold."""
        return ("type", *self.options_known)

    @property
    def options_known(self) -> tuple[str, ...]:
        """Every key that names a variable, a parameter or an option."""
        variables = [i.name.option for i in self.inputs] + [o.name.option for o in self.outputs]
        rest = [key(p.argument) for p in (*self.parameters, *self.options)]
        return (*(v for v in variables if v), *rest)


CATALOG: dict[str, Declared] = {}


def key(argument: str) -> str:
    """The option of an argument; Python's keywords carry an underscore as arguments."""
    return argument.removesuffix("_")


class _Model:
    """The decorator `@model`, and `@model.family` for one law over several kinds."""

    def __call__(
        self,
        *,
        gives: Any,
        rewire: Callable[[Names, Options], Names] | None = None,
        labels: Mapping[str, Callable[[Options], list[str]]] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a law whose outputs are `gives`.

        rewire: adjusts variable names where options decide them; labels: names the entries of a
        list of parameters.
        """

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            extra = {"rewire": rewire, "labels": labels or {}}
            CATALOG[function.__name__] = _declared(function.__name__, function, gives, None, extra)
            return function

        return declare

    def family(self, **kinds: type[Value]) -> Callable[..., Any]:
        """Declare one law under several names, each with its kind in the place of `T`."""

        def outer(*, gives: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
            def declare(function: Callable[..., Any]) -> Callable[..., Any]:
                for name, kind in kinds.items():
                    CATALOG[name] = _declared(name, function, gives, kind, {})
                return function

            return declare

        return outer


model = _Model()


def _declared(
    name: str, function: Callable[..., Any], gives: Any, kind: Any, extra: dict[str, Any]
) -> Declared:
    signature = inspect.signature(function)
    inputs: list[Input] = []
    parameters: list[ParameterSlot] = []
    options: list[Option] = []
    for argument in signature.parameters.values():
        slot = _slot(argument, kind)
        {Input: inputs, ParameterSlot: parameters, Option: options}[type(slot)].append(slot)  # type: ignore[reportArgumentType]
    returned = signature.return_annotation
    kinds = get_args(returned) if get_origin(returned) is tuple else (returned,)
    names = gives if isinstance(gives, tuple) else (gives,)
    outputs = tuple(
        Output(*_kind(k, kind), n if isinstance(n, Name) else Name(n, n))
        for k, n in zip(kinds, names, strict=True)
    )
    return Declared(
        name, function, tuple(inputs), tuple(parameters), tuple(options), outputs, **extra
    )


def _slot(argument: inspect.Parameter, kind: Any) -> Input | ParameterSlot | Option:
    hint = argument.annotation
    default = argument.default
    many = isinstance(hint, _Marked) and hint.role == "many"
    if many:
        hint = hint.inner
    if isinstance(hint, _Marked) and hint.role == "data":
        return Option(argument.name, str, default, data=hint.inner)
    if isinstance(hint, _Marked):
        text = None if default is REQUIRED else str(default)
        variable = hint.role == "parameter"
        return ParameterSlot(argument.name, *_kind(hint.inner, kind), variable, text, many)
    if argument.kind is inspect.Parameter.KEYWORD_ONLY and not _is_kind(hint):
        return Option(argument.name, hint, default)
    name = Name(key(argument.name), key(argument.name))
    if isinstance(default, Name):
        option = default.option
        if default.template is None or default.template.find("~1") < 0 or option is not None:
            option = key(argument.name)
        name = Name(option, default.template)
    return Input(argument.name, *_kind(hint, kind), name, many)


def _is_kind(hint: Any) -> bool:
    return (
        hint is T or isinstance(hint, Axed) or (isinstance(hint, type) and issubclass(hint, Value))
    )


def _kind(hint: Any, kind: Any) -> tuple[type[Value], tuple[str, ...]]:
    if hint is T:
        return kind, ()
    if isinstance(hint, Axed):
        return hint.kind, hint.axes
    if isinstance(hint, python_types.UnionType):
        return _kind(get_args(hint)[0], kind)
    if isinstance(hint, type) and issubclass(hint, Value):
        return hint, ()
    raise TypeError(f"{hint!r} is not a kind of value")
