"""`@compute`: a typed function of whole grids becomes a type that an input file may name.

In: a function. Out: a `DeclaredCompute` in the registry; options, steps and pages follow from it.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from ingot.errors import Problem
from ingot.fields.spaces import Space, Spectrum
from ingot.fields.step import Ambient, Quirk, Step
from ingot.hit import Block
from ingot.keywords import check_keywords

__all__ = [
    "BOUNDARIES",
    "COMPUTES",
    "POSTPROCESSORS",
    "REQUIRED",
    "Cells",
    "Compatible",
    "ComputeArgument",
    "ComputeOption",
    "DeclaredCompute",
    "Dt",
    "End",
    "Former",
    "FunctionName",
    "Lattice",
    "Loaded",
    "More",
    "Names",
    "Nodal",
    "Number",
    "Numbers",
    "Past",
    "Prepared",
    "Solid",
    "Time",
    "Variable",
    "compute",
    "gives_spectrum",
    "named",
    "options_of",
    "postprocessor",
]

Number = Annotated[float, "constant"]
"""An option that is a number or the name of a constant; a named one arrives as a tensor."""

Numbers = Annotated[tuple[float, ...], "constants"]
"""An option that lists numbers, or names of constants."""

Time = Annotated[Tensor, "time"]
"""The time that a compute sees."""

Dt = Annotated[Tensor, "dt"]
"""The step that time takes: the solver's substep inside a solve, the whole step elsewhere."""

Names = Annotated[tuple[str, ...], "names"]
"""The names of the buffers that a list of grids was read from."""

Compatible = Annotated[bool, "compatible"]
"""Whether to behave as the reference does where it is not what the mathematics says."""

End = Annotated[Tensor, "end"]
"""The time at the end of the substep of a solve; elsewhere the time that a compute sees."""

FunctionName = Annotated[Any, "function"]
"""The name of a block of [Functions]; the function itself arrives."""

Loaded = Annotated[Any, "loaded"]
"""What the function named by `load` made of the options, once, before the run."""

More = Annotated[tuple[Tensor, ...], "more"]
"""What a loaded thing reads beyond the buffers that options name; it stands before."""

Prepared = Annotated[tuple[Tensor, ...], "prepared"]
"""What the function named by `prepare` gave, once."""

Past = Annotated[tuple[Tensor, ...], "past"]
"""The old states, newest first, of the buffer that the argument before names; may be none."""

Former = Annotated[Tensor, "former"]
"""What the buffer that the option names held at the end of the last step or substep."""

Lattice = Annotated[Any, "stencil"]
"""The stencil of a lattice Boltzmann problem."""

Solid = Annotated[Tensor | None, "solid"]
"""The solid cells of a lattice Boltzmann problem; None where it has no medium."""

Cells = Annotated[Tensor | None, "cells"]
"""The cells that the options `boundary` and `region_id` mean; None where they mean a face."""

Variable = Annotated[Tensor, "variable"]
"""The buffer that a variable of the mesh shows; the option is the variable's name."""

Nodal = Annotated[bool, "nodal"]
"""Whether the variable that the argument before names lives at nodes, linear between them."""

REQUIRED: Any = inspect.Parameter.empty

Role = Literal[
    "grid",
    "grids",
    "constant",
    "ambient",
    "prepared",
    "past",
    "names",
    "compatible",
    "loaded",
    "more",
    "constants",
    "former",
    "stencil",
    "solid",
    "cells",
    "variable",
    "nodal",
    "option",
]
Check = Callable[[Block, dict[str, Any]], Iterator[Problem]]
Load = Callable[..., Any]
Iterates = Callable[[Step, Callable[[str], tuple[Step, ...]]], Step]
"""A step as it was read, and a way to find the steps of another compute -> what iterates them."""
Idle = Callable[[dict[str, Any]], set[str]]
"""The values of options, `compatible`, `dim` and `stencil` -> options that have no effect."""


@dataclass(frozen=True, slots=True)
class ComputeOption:
    """A key of a block: its type, its default (or REQUIRED) and what it means."""

    name: str
    type: Any
    default: Any = REQUIRED
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ComputeArgument:
    """An argument of a compute and the part it plays."""

    name: str
    role: Role
    option: ComputeOption
    ambient: Ambient | None = None


@dataclass(frozen=True, slots=True)
class DeclaredCompute:
    """A type of compute or postprocessor: its function, what it reads, its options."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[ComputeArgument, ...]
    gives: tuple[str, ...]
    many: tuple[str, ...] = ()
    reason: str = ""
    prepare: tuple[Callable[..., Any], int] | None = None
    always: str = ""
    history: int = 0
    check: Check | None = None
    doc: str = ""
    load: Load | None = None
    iterates: Iterates | None = None
    quirk: Quirk | None = None
    unless: Mapping[str, Any] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    idle: Idle | None = None

    @property
    def is_compatible(self) -> bool:
        """Whether it may behave as the reference does."""
        return any(argument.role == "compatible" for argument in self.arguments)

    @property
    def options(self) -> tuple[ComputeOption, ...]:
        """The keys a block of this type may hold, those it gives first."""
        docs = sentences(self.function)
        gives = (
            ComputeOption(
                name,
                tuple[str, ...] if name in self.many else str,
                self.unless.get(name, REQUIRED),
                docs.get(name, "what it is written to"),
            )
            for name in self.gives
        )
        own = (a.option for a in self.arguments if a.role not in NOT_KEYS)
        more = (AS_REFERENCE,) if self.is_compatible else ()
        return (*gives, *(each for each in own if each.name not in self.gives), *more)


AS_REFERENCE = ComputeOption(
    "marlin_compatible", bool, None, "whether to do as Marlin does; as [Problem] says unless given"
)
NOT_KEYS = (
    "ambient", "prepared", "past", "names", "compatible", "loaded", "more", "stencil", "solid",
    "cells", "nodal",
)  # fmt: skip
COMPUTES: dict[str, DeclaredCompute] = {}
BOUNDARIES: dict[str, DeclaredCompute] = {}
POSTPROCESSORS: dict[str, DeclaredCompute] = {}


@check_keywords
def compute(
    function: Callable[..., Any] | None = None,
    *,
    gives: Sequence[str] = ("buffer",),
    many: Sequence[str] = (),
    jit: bool = True,
    reason: str = "",
    prepare: tuple[Callable[..., Any], int] | None = None,
    always: str = "",
    check: Check | None = None,
    load: Load | None = None,
    iterates: Iterates | None = None,
    quirk: Quirk | None = None,
    unless: Mapping[str, Any] | None = None,
    hidden: Sequence[str] = (),
    idle: Idle | None = None,
    registry: dict[str, DeclaredCompute] | None = None,
) -> Any:
    """Declare a function of whole grids as a type of [TensorComputes].

    Positional arguments are buffers (`Grid`, `Spectrum`, a tuple of them) or given by the engine
    (`Space`, `Time`, `Dt`); keyword arguments are options. `gives` are the options that name what
    is written, those in `many` being lists, `unless` what it is where a file does not name it.
    `prepare` is a function and the number of its results,
    computed once (or at every turn, where the option `always` is set) and passed as `Prepared`.
    `load` makes something of the options and of files in the input's folder, passed as `Loaded`.
    `iterates` makes a step that runs others until they converge. `quirk` says what the compute
    does where `marlin_compatible`, and what the mathematics does not ask for.
    `hidden` are buffers that are written besides; `idle` tells which options have no effect beside
    the others, so that a buffer that one of them names is not read, and who sets it is told;
    `registry` is where the type is known, [TensorComputes] unless given.
    """
    if not jit and not reason:
        raise TypeError("@compute(jit=False) needs a reason")

    types = COMPUTES if registry is None else registry

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        types[function.__name__] = DeclaredCompute(
            function.__name__, function, tuple(arguments_of(function)), tuple(gives), tuple(many),
            reason, prepare, always, 0, check, summary(function), load, iterates, quirk,
            unless or {}, tuple(hidden), idle,
        )  # fmt: skip
        return function

    return declare if function is None else declare(function)


@check_keywords
def postprocessor(
    function: Callable[..., Any] | None = None, *, history: int = 0, check: Check | None = None
) -> Any:
    """Declare a function of whole grids that gives one number as a type of [Postprocessors]."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        POSTPROCESSORS[function.__name__] = DeclaredCompute(
            function.__name__, function, tuple(arguments_of(function)), (),
            history=history, check=check, doc=summary(function),
        )  # fmt: skip
        return function

    return declare if function is None else declare(function)


def named(default: str) -> Any:
    """The buffer that is read unless the file names another."""
    return default


def arguments_of(function: Callable[..., Any]) -> Iterator[ComputeArgument]:
    """The arguments of a function, read off its annotations."""
    hints = get_type_hints(function, include_extras=True)
    docs = sentences(function)
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        role, ambient = role_of(hint)
        words = dict.fromkeys(("grid", "former", "variable"), str)
        kind = {**words, "grids": tuple[str, ...]}.get(role, hint)
        key = parameter.name.removesuffix("_")
        option = ComputeOption(key, kind, parameter.default, docs.get(key, ""))
        yield ComputeArgument(parameter.name, role, option, ambient)


def role_of(hint: Any) -> tuple[Role, Ambient | None]:
    """The part that an argument with this annotation plays."""
    if hint is Space:
        return "ambient", Ambient("space")
    if get_origin(hint) is Annotated:
        match get_args(hint)[1]:
            case "grid" | "spectrum" | "narrow":
                return "grid", None
            case "time":
                return "ambient", Ambient("time")
            case "dt" | "end" as name:
                return "ambient", Ambient(name)
            case (
                "constant" | "prepared" | "past" | "names" | "compatible" | "loaded" | "more"
                | "constants" | "former" | "stencil" | "solid" | "cells"
            ) as role:  # fmt: skip
                return role, None
            case "variable" | "nodal" as role:
                return role, None
    if get_origin(hint) is tuple and role_of(get_args(hint)[0])[0] == "grid":
        return "grids", None
    if get_origin(hint) in (Union, types.UnionType) and role_of(get_args(hint)[0])[0] == "grid":
        return "grid", None
    return "option", None


def gives_spectrum(function: Callable[..., Any]) -> bool:
    """Whether a function is declared to give a spectrum."""
    return get_type_hints(function, include_extras=True).get("return") == Spectrum


def options_of(cls: Any) -> tuple[ComputeOption, ...]:
    """The options that a frozen dataclass stands for: its fields, told by its docstring."""
    hints = get_type_hints(cls, include_extras=True)
    docs = {name: text for each in cls.__mro__[::-1] for name, text in sentences(each).items()}
    return tuple(
        ComputeOption(
            each.name.removesuffix("_"),
            hints[each.name],
            REQUIRED if each.default is MISSING else each.default,
            docs.get(each.name.removesuffix("_"), ""),
        )
        for each in fields(cls)
        if each.init
    )


def sentences(owner: Any) -> dict[str, str]:
    """The `name: sentence` lines of a docstring."""
    lines = (inspect.getdoc(owner) or "").splitlines()
    pairs = (line.partition(": ") for line in lines)
    return {name: text for name, mark, text in pairs if mark and name.isidentifier()}


def summary(owner: Any) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(owner) or "").split("\n\n")[0].split())
