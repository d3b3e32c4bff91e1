"""What Python gives to a law, held as a block of an input file is: the builders read both alike.

In: a type's name and a mapping of its options. Out: a Given, whose fields hold values and models,
not text. A block of a file becomes one too, once its names are resolved: how a model was made.
"""

import math
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.hit import Field
from ingot.model.model import Model
from ingot.types import Value

__all__ = ["Given", "GivenField", "OutputOf", "give"]


class OutputOf(NamedTuple):
    """One of several outputs of a model: what `model["name"]` gives."""

    model: Model
    name: str


@dataclass(frozen=True, slots=True)
class GivenField:
    """An option and its value; it answers what a `Field` of a file answers."""

    name: str
    value: Any
    span: Span | None

    @property
    def value_span(self) -> Span | None:
        """Where the value stands: Python tells the line alone."""
        return self.span

    @property
    def text(self) -> str:
        """What stands for the value in a message."""
        return describe(self.value)

    def string(self) -> str:
        """The value as one name or choice."""
        if not isinstance(self.value, str):
            raise self.wrong("a string", fix="give one str")
        return str(self.value)

    def words(self) -> tuple[str, ...]:
        """The value as names or choices; one string is a list of one."""
        listed = [self.value] if isinstance(self.value, str) else self.value
        if not isinstance(listed, list | tuple) or not all(isinstance(w, str) for w in listed):
            raise self.wrong("a list of strings", fix="give a list of str")
        for word in listed:
            if len(word.split()) != 1 or ";" in word:
                told = ", ".join(f'"{each}"' for each in word.replace(";", " ").split())
                raise self.wrong("a list of strings, a name each", word, f"write [{told}]")
        return tuple(map(str, listed))

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The value as groups of names; a flat list is one group."""
        groups = self.value if isinstance(self.value, list | tuple) else [self.value]
        if groups and all(isinstance(each, list | tuple) for each in groups):
            return tuple(replace(self, value=each).words() for each in groups)
        words = self.words()
        return (words,) if words else ()

    def model(self) -> Model:
        """The value as a model."""
        if isinstance(self.value, Model):
            return self.value
        fix = "give what a law of ingot.laws, compose or implicit returns"
        if callable(self.value) and not isinstance(self.value, type):
            fix = f"call it: {getattr(self.value, '__name__', 'the law')}(...)"
        raise self.wrong("a model", fix=fix)

    def models(self) -> tuple[Model, ...]:
        """The value as a list of models."""
        if isinstance(self.value, list | tuple):
            return tuple(replace(self, value=each).model() for each in self.value)
        return (self.model(),)

    def entries(self) -> tuple[Any, ...]:
        """The values of a list of parameters; an array is a list of its rows."""
        if isinstance(self.value, list | tuple):
            return tuple(self.value)
        rows = isinstance(self.value, np.ndarray | Tensor) and self.value.ndim > 0
        return tuple(self.value) if rows else (self.value,)

    def flag(self) -> bool:
        """The value as true or false."""
        if not isinstance(self.value, bool | np.bool_):
            raise self.wrong("True or False", fix="give a bool")
        return bool(self.value)

    def integer(self) -> int:
        """The value as a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, numbers.Integral):
            raise self.wrong("a whole number", fix="give an int")
        return int(self.value)

    def number(self) -> float:
        """The value as one number."""
        found = self.tensor(self.value)
        if found.ndim:
            raise self.wrong("one number", fix="give a float")
        return float(found)

    # A choice or a number in its range is read by what reads those of a file.
    option, within, choice = Field.option, Field.within, Field.choice

    def variable(self, name: str) -> None:
        """Refuse a string that names no variable: a number in quotes, or several words."""
        numeric = re.match(r"[-+.]?\d|[-+]?(inf|nan)", name.strip(), re.IGNORECASE)
        if numeric or len(name.split()) != 1:
            raise self.wrong("a number, or the name of one variable", name, "give numbers unquoted")

    def constant(self, kind: type[Value], value: Any) -> tuple[Tensor, int]:
        """The numbers of a value of this field, and how many of its axes are structural."""
        if not isinstance(value, Value):
            return self.tensor(value), 0
        if type(value) is not kind:
            raise self.wrong(f"a {kind.__name__}", value, f"give {kind.__name__}(...)")
        return self.tensor(value.data), value.sub

    def tensor(self, value: Any) -> Tensor:
        """A copy of some numbers in float64, refused where that changes one of them."""
        if hasattr(type(value), "__array__") and not isinstance(
            value, np.generic | np.ndarray | Tensor
        ):
            value = np.asarray(value)  # of pandas, xarray, or a result
        if isinstance(value, list | tuple | range) and value:
            rows = [self.tensor(row) for row in value]
            if len({row.shape for row in rows}) > 1:
                raise self.wrong("rows of one length", value, "make the rows equally long")
            return torch.stack(rows)
        if isinstance(value, Tensor):
            return self.widen(self.plain(value))
        if isinstance(value, np.ma.MaskedArray):
            raise self.wrong("numbers", value, "give value.filled(...)")
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "iuf":
            wide = np.array(value, dtype=np.float64)
            # only long doubles and large whole numbers may change; those that did are looked at
            exact = value.dtype.kind == "f" and value.dtype.itemsize <= wide.itemsize
            for number in () if exact else np.unique(value):
                self.real(number)
            return torch.from_numpy(wide)
        if isinstance(value, numbers.Real) and not isinstance(value, bool | np.generic):
            return self.real(value)
        raise self.wrong("numbers", value, "give a float, an array or a tensor")

    def real(self, value: Any) -> Tensor:
        """A plain number in float64."""
        try:
            number = float(value)
        except OverflowError:
            number = math.nan
        # Python compares int and float without rounding, NumPy does not
        whole = int(value) if isinstance(value, numbers.Integral) else value
        if number != whole and whole == whole:
            raise self.wrong("a float64", value, "give a number that a float64 holds")
        return torch.tensor(number, dtype=torch.float64)

    def plain(self, value: Tensor) -> Tensor:
        """A tensor on the CPU that holds real numbers and no history."""
        if value.requires_grad:
            fix = (
                f"give {self.name}.detach(), and promote it with"
                f" parameter=({self.name!r},) for its gradient"
            )
            raise self.wrong("a constant", value, fix)
        real = value.dtype.is_floating_point or value.dtype in _WHOLE
        if value.layout != torch.strided or value.is_meta or value.is_nested or not real:
            raise self.wrong("real numbers", value, "give a dense tensor of float64")
        return value.cpu()

    def widen(self, value: Tensor) -> Tensor:
        """Every number in float64: narrower floats are widened exactly, integers looked at."""
        for number in () if value.dtype.is_floating_point else value.unique().tolist():
            self.real(number)
        return value.to(torch.float64, copy=True)

    def wrong(self, expected: str, word: Any = None, fix: str | None = None) -> IngotError:
        """The error to raise when this value, or one in it, is not what was `expected`."""
        shown = describe(self.value if word is None else word)
        message = f"'{self.name}' should be {expected}, not {shown}"
        return IngotError([Problem("wrong-value", message, self.span, fix)])


_WHOLE = (
    torch.uint8, torch.uint16, torch.uint32, torch.uint64,
    torch.int8, torch.int16, torch.int32, torch.int64,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """The options of one model, solver or system; it answers what a `Block` of a file answers."""

    type: str
    name: str
    fields: tuple[GivenField, ...]
    span: Span | None
    section: str = "Models"
    blocks: tuple[()] = ()

    @property
    def title(self) -> str:
        """The name to use in messages."""
        return self.type

    @property
    def path(self) -> str:
        """What stands for the path of a block."""
        return self.name

    def field(self, name: str) -> GivenField | None:
        """The option of that name, or the type."""
        if name == "type":
            return GivenField(name, self.type, self.span)
        return next((field for field in self.fields if field.name == name), None)

    def require(self, name: str) -> GivenField:
        """The option of that name; its absence is an error."""
        found = self.field(name)
        if found is None:
            message = f"{self.type} needs the option '{name}'"
            fix = f"give {name}=..."
            raise IngotError([Problem("missing-option", message, self.span, fix)])
        return found


def give(
    kind: str, values: Mapping[str, Any], span: Span | None, name: str | None = None,
    section: str = "Models",
) -> Given:  # fmt: skip
    """The options of a type as Python gives them; one that is None is as if it were not there."""
    if not isinstance(values, Mapping):
        message = f"the values of {kind} should be a dict, not {describe(values)}"
        fix = 'write ingot.compile(law, {"option": value})'
        raise IngotError([Problem("wrong-value", message, span, fix)])
    if name is not None and not isinstance(name, str):
        raise GivenField("name", name, span).wrong("a string", fix="give one str")
    raise_if(_strange_names(kind, values, span))
    fields = (GivenField(name, value, span) for name, value in values.items() if value is not None)
    return Given(kind, kind if name is None else name, tuple(fields), span, section)


def _strange_names(kind: str, values: Mapping[Any, Any], span: Span | None) -> Iterator[Problem]:
    for name in values:
        if not isinstance(name, str):
            message = f"{kind} has no option {name!r}: options are named by strings"
            yield Problem("unknown-option", message, span, "name the option by a str")


def describe(value: Any) -> str:
    """A value in a few words, for a message."""
    if isinstance(value, Tensor):
        history = " that requires grad" if value.requires_grad else ""
        return f"a tensor of {value.dtype} and shape {tuple(value.shape)}{history}"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    if isinstance(value, Model):
        return f"the model [{value.name}]"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    if isinstance(value, str | numbers.Number | Sequence) and len(repr(value)) <= 60:
        return repr(value)
    return f"a {type(value).__name__}"
