"""[Functions]: functions of time and place that computes and postprocessors may ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.fields.blocks.options import Reader, place
from ingot.fields.expressions.formulas import formula
from ingot.fields.expressions.parse import ExpressionError
from ingot.hit import Block

__all__ = ["FUNCTION_TYPES", "Function", "read_functions"]


class Function(Protocol):
    """A function of time and place."""

    def value(self, time: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        """Its value at a time and at points."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """Which of x, y, z and t it depends on."""
        ...


@dataclass(frozen=True, slots=True)
class ParsedFunction:
    """A function spelled as an expression of x, y, z, t.

    expression: the expression
    symbol_names: further names that it uses
    symbol_values: what these stand for: numbers, or other functions
    """

    expression: str
    symbol_names: tuple[str, ...] = ()
    symbol_values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstantFunction:
    """A function that is the same everywhere.

    value: what it is
    """

    value: float = 0.0


@dataclass(frozen=True, slots=True)
class ShiftedFunction:
    """Another function, seen from a shifted place and time.

    function: the name of the other function
    shift: how far the place is shifted
    delta_t: how far the time is shifted
    """

    function: str
    shift: tuple[float, ...] = (0.0, 0.0, 0.0)
    delta_t: float = 0.0


FUNCTION_TYPES: dict[str, Any] = {
    "ParsedFunction": ParsedFunction,
    "ConstantFunction": ConstantFunction,
    "ShiftedFunction": ShiftedFunction,
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """An expression with its symbols bound to numbers and functions."""

    expression: str
    numbers: tuple[tuple[str, complex], ...]
    functions: Mapping[str, Function]

    def value(self, time: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        """Its value at a time and at points."""
        values = {"x": x, "y": y, "z": z, "t": time}
        values |= {name: each.value(time, x, y, z) for name, each in self.functions.items()}
        found = formula(self.expression, tuple(values), (), self.numbers)
        return found(values, x)

    @property
    def names(self) -> frozenset[str]:
        """Which of x, y, z and t it depends on."""
        known = ("x", "y", "z", "t")
        used = formula(self.expression, (*known, *self.functions), (), self.numbers).names
        inner = (self.functions[name].names for name in used if name in self.functions)
        return frozenset(name for name in used if name in known).union(*inner)


@dataclass(frozen=True, slots=True)
class Shifted:
    """A function seen from elsewhere."""

    function: Function
    shift: tuple[float, ...]
    delta_t: float

    def value(self, time: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        """Its value at a time and at points."""
        dx, dy, dz = self.shift
        return self.function.value(time + self.delta_t, x + dx, y + dy, z + dz)

    @property
    def names(self) -> frozenset[str]:
        """Which of x, y, z and t it depends on."""
        return self.function.names


@dataclass(slots=True)
class Functions:
    """Makes the functions of a file, each once, when first referred to."""

    blocks: dict[str, Block]
    reader: Reader
    made: dict[str, Function | None]

    def function(self, name: str, asked: Any) -> Function:
        """The function of that name; its absence is an error where it was `asked` for."""
        if name not in self.blocks:
            fix = did_you_mean(name, self.blocks) or "add it to [Functions]"
            message = f"[Functions] has no block '{name}'"
            raise IngotError([Problem("missing-block", message, asked, fix)])
        if name not in self.made:
            self.made[name] = None
            self.made[name] = self.make(self.blocks[name])
        found = self.made[name]
        if found is None:
            message = f"the function '{name}' refers to itself, or is wrong itself"
            raise IngotError([Problem("circular-model", message, asked)])
        return found

    def make(self, block: Block) -> Function | None:
        """The function of a block; problems go to the reader."""
        kind = self.reader.type_of(block, FUNCTION_TYPES)
        options = None if kind is None else self.reader.made(block, kind)
        try:
            match options:
                case ParsedFunction():
                    return self.parsed(block, options)
                case ConstantFunction(value):
                    return Parsed("value", (("value", value),), {})
                case ShiftedFunction(_, shift, _) if len(shift) != 3:
                    message = f"'shift' has {len(shift)} entries, not 3"
                    span = place(block, "shift")
                    raise IngotError([Problem("wrong-value", message, span, "give x, y and z")])
                case ShiftedFunction(name, shift, delta_t):
                    return Shifted(self.function(name, block.span), shift, delta_t)
        except IngotError as error:
            self.reader.problems += error.problems
        return None

    def parsed(self, block: Block, options: ParsedFunction) -> Function:
        """A parsed function with its symbols bound."""
        if len(options.symbol_names) != len(options.symbol_values):
            message = (
                f"symbol_names has {len(options.symbol_names)} entries,"
                f" symbol_values {len(options.symbol_values)}"
            )
            raise IngotError([Problem("wrong-value", message, block.span, "give as many of both")])
        numbers: dict[str, complex] = {"pi": math.pi, "e": math.e}
        functions: dict[str, Function] = {}
        for name, word in zip(options.symbol_names, options.symbol_values, strict=True):
            try:
                numbers[name] = float(word)
            except ValueError:
                functions[name] = self.function(word, block.require("symbol_values").value_span)
        known = ("x", "y", "z", "t", *functions)
        pairs = tuple((n, v) for n, v in numbers.items() if n not in known)
        try:
            formula(options.expression, known, (), pairs)
        except ExpressionError as error:
            span = block.require("expression").value_span
            message = f"'expression' is not understood: {error}"
            raise IngotError([Problem("bad-expression", message, span)]) from None
        return Parsed(options.expression, pairs, functions)


def read_functions(blocks: tuple[Block, ...], reader: Reader) -> Functions:
    """The functions of [Functions], all of them made so that what is wrong is told."""
    functions = Functions({block.name: block for block in blocks}, reader, {})
    for block in blocks:
        if block.name not in functions.made:
            functions.made[block.name] = None
            functions.made[block.name] = functions.make(block)
    return functions


def at_origin(function: Function, time: float) -> float:
    """A function of time alone, as a number."""
    zero = torch.zeros((), dtype=torch.float64)
    return float(function.value(zero + time, zero, zero, zero))
