"""What an option may hold: its kind, range and sentence, declared once as an annotated type.

In: `Annotated[float, Meta(ge=0)]` and the like. Out: values checked, and the words that say what is
allowed. Newton's rules are declared here, for input files, stubs, metadata, Python and C alike.
"""

import math
import types
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from ingot.errors import Problem, Span, did_you_mean, raise_if
from ingot.keywords import check_keywords, find_misfits
from ingot.messages import refuse, tell

__all__ = [
    "INT32", "Backend", "Count", "Device", "Factor", "Fraction", "Host", "Inline", "Knob", "Meta",
    "Newton", "NotNegative", "NotNegativeCount", "PackagedBackend", "Positive", "Precision",
    "Range", "Share", "allowed", "bounds", "find_example", "find_no_choice", "fits", "knobs_of",
    "name_type", "plain", "spell",
]  # fmt: skip

INT32 = 2**31 - 1
"""The largest whole number of an option: all end in 32-bit integers of C sooner or later."""

PackagedBackend = Literal["kernel", "inductor"]
"""What a package can run on: a library of its own, or torch's compiled graphs."""

Device = Literal["cpu", "cuda"]
"""What a folder of a package runs on."""

Backend = Literal["interpret", PackagedBackend]
"""What can run a program: operations of torch, or what a package can hold."""

Precision = Literal["float64", "float32"]
"""What a package computes in."""

Inline = Literal["all", "auto", "none"]
"""What of repeated blocks is written out for every instance in generated C++."""

Host = Literal["abaqus", "calculix"]
"""Whose user material a library is: which stress and which slope are meant at finite strain."""

NotNegative = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, lt=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Factor = Annotated[float, Meta(ge=1)]
Count = Annotated[int, Meta(ge=1, le=INT32)]
NotNegativeCount = Annotated[int, Meta(ge=0, le=INT32)]


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The finite numbers that a parameter may be; its bounds are called as those of `Meta`."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    @staticmethod
    def of(kind: Any) -> "Range | None":
        """The range of an annotated number; none where it has no bound."""
        meta = meta_of(kind)
        found = [
            float(x) if x is not None and math.isfinite(x) else None
            for x in (meta.gt, meta.ge, meta.lt, meta.le)
        ]
        return None if found == [None] * 4 else Range(*found)

    def __and__(self, other: "Range | None") -> "Range":
        """What lies in both."""
        if other is None:
            return self
        gt, ge = _tighten(max, (self.gt, other.gt), (self.ge, other.ge))
        lt, le = _tighten(min, (self.lt, other.lt), (self.le, other.le))
        return Range(gt, ge, lt, le)

    def holds(self, value: float) -> bool:
        """Whether a number is in the range."""
        return math.isfinite(value) and _is_within(value, self)


Bound = float | None


def _tighten(
    pick: Callable[..., float], ends: tuple[Bound, Bound], closed: tuple[Bound, Bound]
) -> tuple[Bound, Bound]:
    """The open bound and the closed one of two ranges at one side, whichever is tighter."""
    outer, inner = (
        pick((x for x in pair if x is not None), default=None) for pair in (ends, closed)
    )
    if outer is None or inner is None:
        return outer, inner
    return (outer, None) if pick(outer, inner) == outer else (None, inner)


class _CheckedStruct(type(msgspec.Struct)):
    """Structures that users make: a rule that is not there is told with the nearest."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        try:
            return super().__call__(*args, **named)
        except TypeError:
            raise_if(find_misfits(cls, args, named))
            raise


@check_keywords
class Newton(msgspec.Struct, frozen=True, kw_only=True, metaclass=_CheckedStruct):
    """When a solve stops, and how far it steps: the rules that act at load, and are not compiled.

    The order is that of the C structure; a title is what a block of `[Solvers]` calls the rule.
    """

    abs_tol: Annotated[
        float, Meta(ge=0, description="the residual below which a point has converged")
    ] = 1e-10
    rel_tol: Annotated[
        float, Meta(ge=0, description="the part of the first residual below which it has")
    ] = 1e-8
    max_its: Annotated[
        int, Meta(ge=1, le=INT32, description="one more than the number of updates allowed")
    ] = 25
    stop: Annotated[
        Literal["point", "batch"],
        Meta(description="whether a point stops by itself, or all go on until the last converged"),
    ] = "point"
    linesearch: Annotated[
        Literal["NONE", "BACKTRACKING", "STRONG_WOLFE"],
        Meta(title="linesearch_type", description="which decrease of the residual is enough"),
    ] = "NONE"
    max_linesearch_iterations: Annotated[
        int, Meta(ge=0, le=INT32, description="one more than the number of trials allowed")
    ] = 10
    linesearch_cutback: Annotated[
        float, Meta(gt=1, description="what a step that is too long is divided by")
    ] = 2.0
    linesearch_stopping_criteria: Annotated[
        float, Meta(ge=0, lt=1, description="the part of the promised decrease that is enough")
    ] = 1e-3
    substep_del_tol: Annotated[
        float,
        Meta(ge=0, description="the part of the unknowns below which an update must be, in parts"),
    ] = 1e-6

    def __post_init__(self) -> None:
        """Refuse rules out of range, wherever they come from."""
        for knob in knobs_of(Newton):
            value = getattr(self, knob.name)
            if not fits(value, knob.kind):
                told = {"allowed": allowed(knob.kind), "value": repr(value)}
                raise refuse("rule", name=knob.name, **told, default=repr(knob.default))

    def rules(self) -> dict[str, Any]:
        """The rules by name, of this and of whatever extends it."""
        return {name: getattr(self, name) for name in Newton.__struct_fields__}


@dataclass(frozen=True, slots=True)
class Knob:
    """One rule as it was declared: its name, what files call it, its type, default and sentence."""

    name: str
    option: str
    kind: Any
    default: Any
    sentence: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it is one of, if it is a word."""
        return get_args(plain(self.kind)) if get_origin(plain(self.kind)) is Literal else ()

    @property
    def c_type(self) -> Literal["double", "int32_t"]:
        """How C holds it; a word is its place among the choices."""
        return "double" if plain(self.kind) is float else "int32_t"

    def c_value(self, value: Any) -> float | int:
        """A value as C holds it."""
        return self.choices.index(value) if self.choices else value


_KNOBS: dict[type, tuple[Knob, ...]] = {}


def knobs_of(struct: type[msgspec.Struct]) -> tuple[Knob, ...]:
    """The rules that a structure declares, in order."""
    if struct not in _KNOBS:
        hints = get_type_hints(struct, include_extras=True)
        _KNOBS[struct] = tuple(
            Knob(f.name, meta_of(hints[f.name]).title or f.name, hints[f.name], f.default,
                 meta_of(hints[f.name]).description or "")
            for f in msgspec.structs.fields(struct)
        )  # fmt: skip
    return _KNOBS[struct]


def meta_of(kind: Any) -> Meta:
    """The range of an annotated type; whole numbers are those of C."""
    if get_origin(kind) in (Union, types.UnionType):
        return meta_of(get_args(kind)[0])
    for each in getattr(kind, "__metadata__", ()):
        if isinstance(each, Meta):
            return each
    return Meta(ge=-INT32 - 1, le=INT32) if plain(kind) is int else Meta()


def plain(kind: Any) -> Any:
    """A type without its range, and without the None of an option that may be absent."""
    if get_origin(kind) is Annotated:
        return plain(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return plain(get_args(kind)[0])
    return kind


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind and in its range; a number is finite."""
    inner, meta = plain(kind), meta_of(kind)
    if get_origin(inner) is Literal:
        return value in get_args(inner)
    if inner not in (int, float):
        return isinstance(value, inner)
    if isinstance(value, bool) or not isinstance(value, int if inner is int else (int, float)):
        return False
    return math.isfinite(value) and _is_within(value, meta)


def _is_within(value: float, meta: "Meta | Range") -> bool:
    return (
        (meta.gt is None or value > meta.gt)
        and (meta.ge is None or value >= meta.ge)
        and (meta.lt is None or value < meta.lt)
        and (meta.le is None or value <= meta.le)
    )


def find_no_choice(
    name: str, word: object, choices: Collection[str], span: Span | None = None
) -> Iterator[Problem]:
    """A problem where a word is none of the choices; Python checks no literals."""
    if word not in choices:
        fix = did_you_mean(str(word), choices) or f"give one of: {', '.join(choices)}"
        yield tell("no choice", span, name=name, choices=", ".join(choices), word=word, fix=fix)


def find_example(kind: Any) -> str:
    """A value that is of a kind, or in a range."""
    examples = (1, 0.3, 1.0, 2, 10, 0, -1)
    is_lawful = kind.holds if isinstance(kind, Range) else lambda each: fits(each, kind)
    return next((f"{each}" for each in examples if is_lawful(each)), "another")


def allowed(kind: Any) -> str:
    """What is allowed, by a kind or a range, in words that follow `should be`."""
    if isinstance(kind, Range):
        return f"a finite number {bounds(kind)}".strip()
    inner = plain(kind)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(get_args(inner))}"
    noun = {int: "a whole number", float: "a finite number"}.get(inner, "text")
    most = f" and at most {INT32}" if meta_of(kind).le == INT32 else ""
    return f"{noun} {bounds(kind)}{most}".strip()


def bounds(kind: Any) -> str:
    """The range of a number in words, without the limits of C."""
    meta = kind if isinstance(kind, Range) else meta_of(kind)
    found = (meta.gt, meta.ge, meta.lt, None if meta.le == INT32 else meta.le)
    above, least, below, most = (None if x is None else repr(x).removesuffix(".0") for x in found)
    if least is not None and most is not None and above is None and below is None:
        return f"from {least} to {most}"
    pairs = (("above", above), ("of at least", least), ("below", below), ("up to", most))
    return " and ".join(f"{word} {bound}" for word, bound in pairs if bound is not None)


def name_type(kind: Any) -> str:
    """What the value of an option is called on a page: its kind and range."""
    origin = get_origin(kind)
    if origin is Annotated:
        words = {
            "constant": "number or constant",
            "constants": "numbers or constants",
            "function": "function",
        }
        special = [words[each] for each in kind.__metadata__ if isinstance(each, str)]
        return special[0] if special else f"{name_type(plain(kind))} {bounds(kind)}".strip()
    if origin in (Union, types.UnionType):
        return name_type(get_args(kind)[0])
    if origin is Literal:
        return " | ".join(get_args(kind))
    if origin is tuple:
        each, *more = get_args(kind)
        count = "list of" if Ellipsis in more else f"{1 + len(more)} of"
        return f"{count} {name_type(each)}"
    return {str: "word", float: "number", int: "whole number", bool: "true | false"}[kind]


def spell(value: Any) -> str:
    """A value as a file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " ".join(spell(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
