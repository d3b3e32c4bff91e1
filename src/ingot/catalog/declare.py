"""`@model`: a typed function becomes a declared law, with its options, names and outputs.

In: a function of values. Out: a `Declared` in the catalogue, from which schema, building, tracing,
documentation and tests all follow.
"""

import importlib
import inspect
import linecache
import os
import types as python_types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args, get_origin

from ingot.keywords import check_keywords
from ingot.catalog.stored_names import STORED_NAMES
from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.options import fits, plain
from ingot.options import Range
from ingot.types import Axed, Value

__all__ = [
    "CATALOG", "Ascending", "Data", "Declared", "Fixed", "Input", "Listed", "Many", "Name",
    "Option", "Output", "Parameter", "ParameterSlot", "T", "derived", "follows", "locate_law",
    "model", "named", "old", "optional",
]  # fmt: skip

T = TypeVar("T", bound=Value)
"""The kind that a family of laws is declared over."""


class _Marked:
    """An annotation that says what an argument is: `Parameter[Scalar]`, `Many[SR2]`."""

    def __init__(self, role: str, inner: Any) -> None:
        self.role = role
        # the kind of a family stands beside its axes: Parameter[T, "slip"]
        self.inner = Axed(inner[0], inner[1:]) if isinstance(inner, tuple) else inner


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


class Listed:
    """A parameter whose last axes are the kind's own, also where a file does not mark them."""

    def __class_getitem__(cls, inner: Any) -> Any:
        return _Marked("listed", inner)


class Ascending:
    """A listed parameter whose numbers ascend along its axis; a descent is warned of."""

    def __class_getitem__(cls, inner: Any) -> Any:
        return _Marked("ascending", inner)


class Data:
    """A `[Data]` block of the named type."""

    def __class_getitem__(cls, name: str) -> Any:
        return _Marked("data", name)


@dataclass(frozen=True, slots=True)
class Name:
    """How a variable is called: the option that renames it, and its name without the option."""

    option: str | None
    template: str | None
    is_bound: bool = False
    """Whether it follows another variable's name, and no option renames it."""
    overrides: bool = False
    """Whether, as an output, it replaces what another model gives by the same name."""

    def absent(self) -> bool:
        """Whether the variable does not exist unless the file names it."""
        return self.template is None


def named(default: str, *, option: str | None = None, overrides: bool = False) -> Any:
    """A variable called `default` unless renamed; `{block}` and `{argument}` are filled in.

    overrides: as an output, it replaces what another model gives by the same name.
    """
    return Name(option, default, overrides=overrides)


def derived(template: str) -> Any:
    """A variable called after others, such as `{variable}_rate`; its own option renames it."""
    return Name(template.replace("{", "").replace("}", ""), template)


def follows(argument: str, suffix: str) -> Any:
    """A variable called after another, such as `strain_rate`; it cannot be renamed by itself."""
    return Name(None, "{" + argument + "}" + suffix, is_bound=True)


def old(argument: str) -> Any:
    """The value of another variable one step ago; it cannot be renamed by itself."""
    return follows(argument, "~1")


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
    """A parameter, or a list of them; `variable` says whether a variable may stand in.

    listed: the last axes of a constant are the kind's own, whether a file marks them or not;
    ascending: its numbers should ascend along the last.
    """

    argument: str
    kind: type[Value]
    axes: tuple[str, ...]
    variable: bool
    default: str | None = None
    many: bool = False
    listed: bool = False
    ascending: bool = False


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
    """A law as the catalogue knows it.

    opaque: its function takes and returns tensors `(*batch, *axes, *base)`, and is not traced;
    usual: the numbers that parameters are by what they mean, as the peer does not ask for.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    parameters: tuple[ParameterSlot, ...]
    options: tuple[Option, ...]
    outputs: tuple[Output, ...]
    rewire: Callable[[Names, Options], Names] | None = None
    labels: Mapping[str, Callable[[Options], list[str]]] = field(default_factory=dict)
    opaque: bool = False
    usual: Mapping[str, Range] = field(default_factory=dict)

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

    def find_replaced(self, span: Span | None = None) -> Iterator[Problem]:
        """A problem where the name means another law by now: a cell ran again."""
        if CATALOG.get(self.name, self) is not self:
            message = f"the law '{self.name}' was declared again since the model was made"
            fix = f"make the model again, of the new {self.name}"
            yield Problem("not-written", message, span, fix)

    def __deepcopy__(self, memory: Any) -> "Declared":
        return self

    def __reduce__(self) -> Any:
        """A pickled law is found by its name where it is loaded."""
        raise_if(self.find_replaced())
        return _find_law, (self.function.__module__, self.name)

    def stored_as(self, parameter: str) -> str:
        """What NEML2 calls a parameter that is stored; of a list each entry has a number."""
        names = STORED_NAMES.get(self.name, {})
        option, _, number = parameter.rpartition("_")
        if parameter not in names and option in names and number.isdigit():
            return f"{names[option]}_{number}"
        return names.get(parameter, parameter)


CATALOG: dict[str, Declared] = {}


def _find_law(module: str, name: str) -> Declared:
    importlib.import_module(module)
    return CATALOG[name]


def key(argument: str) -> str:
    """The option of an argument; Python's keywords carry an underscore as arguments."""
    return argument.removesuffix("_")


class _Model:
    """The decorator `@model`, and `@model.family` for one law over several kinds."""

    @check_keywords
    def __call__(
        self,
        function: Any = None,
        *,
        gives: Any = None,
        rewire: Callable[[Names, Options], Names] | None = None,
        labels: Mapping[str, Callable[[Options], list[str]]] | None = None,
        opaque: bool = False,
        usual: Mapping[str, Range] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a law whose outputs are `gives`.

        rewire: adjusts variable names where options decide them; labels: names the entries of a
        list of parameters; opaque: the function is ordinary torch of whole tensors
        `(*batch, *axes, *base)`, called for all points at once and differentiated by autograd;
        usual: what parameters are by their meaning, of which others are taken, and told.
        """
        if function is not None or gives is None:
            message = "@model does not say what the law gives"
            raise wrong_law(function, message, '@model(gives="name_of_the_output")')

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            _check_name(function, getattr(function, "__name__", repr(function)))
            extra = {"rewire": rewire, "labels": labels or {}, "opaque": opaque}
            extra |= {"usual": usual or {}}
            CATALOG[function.__name__] = _declared(function.__name__, function, gives, None, extra)
            return function

        return declare

    def family(self, **kinds: type[Value]) -> Callable[..., Any]:
        """Declare one law under several names, each with its kind in the place of `T`."""

        def outer(*, gives: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
            def declare(function: Callable[..., Any]) -> Callable[..., Any]:
                for name in kinds:
                    _check_name(function, name)
                for name, kind in kinds.items():
                    CATALOG[name] = _declared(name, function, gives, kind, {})
                return function

            return declare

        return outer


model = _Model()


class _Unlawful(Exception):
    """What is wrong with a declaration, and the fix."""


def wrong_law(function: Any, message: str, fix: str) -> IngotError:
    """The error at the first line of a function that cannot be a law as it is."""
    return IngotError([Problem("wrong-law", message, locate_law(function), f"write {fix}")])


def locate_law(function: Any) -> Span | None:
    """The first line of a law, if it stands in a file or in a notebook's cell."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    text = linecache.getline(code.co_filename, code.co_firstlineno).rstrip()
    span = Span(code.co_filename, code.co_firstlineno, 0, 0, function.__name__, text)
    return span if span.is_python else None


def _check_name(function: Any, name: str) -> None:
    """A law is a function, known by a name that no other law has."""
    if not inspect.isfunction(function) or not function.__name__.isidentifier():
        message = f"'{name}' cannot be a law: it is no function with a name"
        raise wrong_law(function, message, "def NameOfTheLaw(...) -> Scalar: under @model")
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise wrong_law(function, f"'{name}' does not return its value", "return instead of yield")
    earlier = CATALOG.get(name)
    if earlier is not None and not _is_same_source(earlier.function, function):
        both = (earlier.function, function)
        # a user's law may be declared before the library's of that name is imported
        first, second = reversed(both) if function.__module__.startswith("ingot.") else both
        message = f"there is already a law '{name}', in {_place(first)}"
        raise wrong_law(second, message, "another name")


def _is_same_source(earlier: Any, function: Any) -> bool:
    """Whether a law is declared anew: by a cell, a test, or its file as another module."""
    files = [os.path.realpath(each.__code__.co_filename) for each in (earlier, function)]
    return earlier.__module__ == function.__module__ or files[0] == files[1]


def _place(function: Any) -> str:
    """Where a law stands: the module of one of ours, the file and line of a user's."""
    code = function.__code__
    ours = function.__module__.startswith("ingot.")
    return function.__module__ if ours else f"{code.co_filename}:{code.co_firstlineno}"


def _declared(
    name: str, function: Callable[..., Any], gives: Any, kind: Any, extra: dict[str, Any]
) -> Declared:
    """The law that a function declares, or all that is wrong with it."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError, TypeError) as error:
        message = f"an annotation of {name} is not understood: {error}"
        raise wrong_law(
            function, message, "kinds that are imported where the law stands"
        ) from error
    slots: list[Input | ParameterSlot | Option] = []
    problems: list[Problem] = []
    for argument in signature.parameters.values():
        try:
            slots.append(_slot(argument, kind))
        except _Unlawful as found:
            message, fix = found.args
            problems += wrong_law(function, f"'{argument.name}' of {name} {message}", fix).problems
    outputs: tuple[Output, ...] = ()
    try:
        outputs = _outputs(signature.return_annotation, gives, kind)
    except _Unlawful as found:
        message, fix = found.args
        problems += wrong_law(function, f"{name} {message}", fix).problems
    raise_if(problems)
    law = Declared(
        name, function, tuple(s for s in slots if isinstance(s, Input)),
        tuple(s for s in slots if isinstance(s, ParameterSlot)),
        tuple(s for s in slots if isinstance(s, Option)), outputs, **extra,
    )  # fmt: skip
    doubles = [each for each, count in Counter(law.options_known).items() if count > 1]
    if doubles:
        message = f"{name} has two variables or options called '{doubles[0]}'"
        raise wrong_law(
            function, message, "another name for one of them, in gives or as an argument"
        )
    return law


def _outputs(returned: Any, gives: Any, kind: Any) -> tuple[Output, ...]:
    kinds = get_args(returned) if get_origin(returned) is tuple else (returned,)
    names = gives if isinstance(gives, tuple) else (gives,)
    if returned is inspect.Signature.empty:
        raise _Unlawful("has no kind of value after ->", "-> Scalar, or the kind that it returns")
    if len(kinds) != len(names):
        message = f"gives {len(names)} names and returns {len(kinds)} kinds"
        raise _Unlawful(message, 'gives=("a", "b") and -> tuple[Scalar, Scalar], as many of each')
    for each in names:
        if not isinstance(each, Name) and not (isinstance(each, str) and len(each.split()) == 1):
            raise _Unlawful(f"gives {each!r}, which is no name", 'gives="name_of_the_output"')
    return tuple(
        Output(*_kind(k, kind), n if isinstance(n, Name) else Name(n, n))
        for k, n in zip(kinds, names, strict=True)
    )


def _slot(argument: inspect.Parameter, kind: Any) -> Input | ParameterSlot | Option:
    hint = argument.annotation
    default = argument.default
    if argument.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        fix = "every argument by its name; a list of inputs is Many[Scalar]"
        raise _Unlawful("stands for any number of arguments", fix)
    if hint is inspect.Parameter.empty:
        raise _Unlawful("has no kind", f"{argument.name}: Scalar, or the kind that it is of")
    role = hint.role if isinstance(hint, _Marked) else ""
    many, ascending = role == "many", role == "ascending"
    listed = ascending or role == "listed"
    if many or listed:
        hint = hint.inner
    if isinstance(hint, _Marked) and hint.role == "data":
        return Option(argument.name, str, default, data=hint.inner)
    if isinstance(hint, _Marked):
        text = None if default is REQUIRED else _written(default)
        variable = hint.role == "parameter"
        found = _kind(hint.inner, kind)
        return ParameterSlot(argument.name, *found, variable, text, many, listed, ascending)
    if argument.kind is inspect.Parameter.KEYWORD_ONLY and not _is_kind(hint):
        return _choice(argument)
    name = Name(key(argument.name), key(argument.name))
    if isinstance(default, Name):
        name = default if default.is_bound else Name(key(argument.name), default.template)
    elif default is not REQUIRED:
        fix = f"{argument.name}: Parameter[...] = {default!r} after a *, or leave the default out"
        raise _Unlawful("is an input, which has no default", fix)
    return Input(argument.name, *_kind(hint, kind), name, many)


def _written(default: Any) -> str:
    """The default of a parameter as a file has it."""
    if isinstance(default, bool) or not isinstance(default, int | float | str):
        kind = type(default).__name__
        raise _Unlawful(f"has a default of type {kind}", "a number, or the name of a variable")
    return str(default)


def _choice(argument: inspect.Parameter) -> Option:
    """An option of a type that files can hold, and a default that it can have."""
    hint, default = argument.annotation, argument.default
    inner = plain(hint)
    each = get_args(inner)[0] if get_origin(inner) is tuple and get_args(inner) else inner
    if each not in (bool, int, float, str) and get_origin(each) is not Literal:
        fix = "bool, int, float, str or Literal[...], a tuple of them, or Parameter[Scalar]"
        raise _Unlawful(f"is of type {_shown(hint)}, which is no option", fix)
    if get_origin(inner) is tuple:
        allowed = isinstance(default, tuple) and all(fits(word, each) for word in default)
    else:
        allowed = fits(default, hint)
    if not allowed and default not in (REQUIRED, None):
        raise _Unlawful(f"has the default {default!r}, which is not allowed", "one that is")
    return Option(argument.name, hint, default)


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _is_kind(hint: Any) -> bool:
    return (
        hint is T or isinstance(hint, Axed) or (isinstance(hint, type) and issubclass(hint, Value))
    )


def _kind(hint: Any, kind: Any) -> tuple[type[Value], tuple[str, ...]]:
    if hint is T:
        return kind, ()
    if isinstance(hint, Axed):
        return _kind(hint.kind, kind)[0], hint.axes
    if isinstance(hint, python_types.UnionType):
        return _kind(get_args(hint)[0], kind)
    if isinstance(hint, type) and issubclass(hint, Value):
        return hint, ()
    kinds = "Scalar, SR2, Vec or another kind of ingot.types"
    raise _Unlawful(f"is of type {_shown(hint)}, which is no kind of value", kinds)
