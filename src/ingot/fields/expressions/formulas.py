"""Formula: an expression as torch operations on whole grids, each equal part computed once.

In: a Expression and the order of its variables. Out: a pure function of tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ingot.errors import did_you_mean
from ingot.fields.expressions.derivative import NoSlope, derivative
from ingot.fields.expressions.operations import OPERATIONS, NoValue, constant
from ingot.fields.expressions.parse import (
    UNFOLDED,
    Expression,
    ExpressionError,
    node,
    number,
    parse,
    variable,
)

__all__ = ["Formula", "constants_of", "formula", "formula_of"]


@dataclass(frozen=True, slots=True)
class Line:
    """An operation on earlier values, and the values that nothing needs after it."""

    operation: str
    arguments: tuple[int, ...]
    frees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """Lines over the variables and numbers that stand before them."""

    names: tuple[str, ...]
    numbers: tuple[complex, ...]
    lines: tuple[Line, ...]
    result: int
    node: Expression

    def __call__(
        self,
        values: Mapping[str, Tensor],
        like: Tensor,
        whole: Callable[[Tensor], Tensor] = lambda field: field,
    ) -> Tensor:
        """The value where the variables are `values`; `like` has the type of the run.

        `whole` fills a field that is stored narrow, which a transform needs.
        """
        slots: list[Any] = [*(values[name] for name in self.names), *self.numbers]
        for line in self.lines:
            given = [slots[at] for at in line.arguments]
            if line.operation == "real":
                slots.append(given[0].to(like.dtype))
            elif line.operation == "if":
                slots.append(torch.where(truth(given[0]), *both(given[1], given[2], like)))
            elif line.operation in UNFOLDED:
                slots.append(OPERATIONS[line.operation](whole(as_tensor(given[0], like))))
            else:
                slots.append(OPERATIONS[line.operation](*given))
            for at in line.frees:
                slots[at] = None
        return as_tensor(slots[self.result], like)

    def __str__(self) -> str:
        return str(self.node)


def as_tensor(value: Any, like: Tensor) -> Tensor:
    """A value as it is, or a number as a tensor."""
    return value if isinstance(value, Tensor) else constant(value, like)


def truth(condition: Tensor) -> Tensor:
    """A condition as true and false."""
    return condition if condition.dtype == torch.bool else condition != 0


def both(a: Any, b: Any, like: Tensor) -> tuple[Any, Any]:
    """The two sides of a choice; two plain numbers would be taken for float32."""
    numbers = not isinstance(a, Tensor) and not isinstance(b, Tensor)
    return (constant(a, like) if numbers else a), b


TRUTHS = ("<", ">", "<=", ">=", "==", "!=", "&", "|", "!")
"""Operations that give true and false."""


def with_numbers(expression: Expression) -> Expression:
    """The expression with true and false made numbers wherever they are reckoned with."""
    known: dict[Expression, Expression] = {}

    def real(each: Expression) -> Expression:
        return node("real", each) if each.operation in TRUTHS else each

    def mended(each: Expression) -> Expression:
        if each not in known:
            inner = [mended(argument) for argument in each.arguments]
            logical = each.operation in ("&", "|", "!")
            if each.operation == "if":
                inner = [inner[0], *map(real, inner[1:])]
            elif not logical:
                inner = [real(argument) for argument in inner]
            known[each] = node(each.operation, *inner, value=each.value)
        return known[each]

    return real(mended(expression))


def formula_of(expression: Expression) -> Formula:
    """The operations of an expression, arguments first; a value is freed at its last use."""
    expression = with_numbers(expression)
    order: list[Expression] = []
    seen: set[Expression] = set()
    pending = [(expression, False)]
    while pending:
        each, ready = pending.pop()
        if ready:
            order.append(each)
        elif each not in seen:
            seen.add(each)
            pending.append((each, True))
            pending += [(inner, False) for inner in reversed(each.arguments)]
    names = [each for each in order if not each.arguments and not each.is_number]
    numbers = [each for each in order if each.is_number]
    operations = [each for each in order if each.arguments]
    slot = {each: at for at, each in enumerate([*names, *numbers, *operations])}
    last = {slot[inner]: slot[each] for each in operations for inner in each.arguments}
    lines = [
        Line(
            each.operation,
            tuple(slot[inner] for inner in each.arguments),
            tuple(at for at, end in last.items() if end == slot[each] and at >= len(names)),
        )
        for each in operations
    ]
    return Formula(
        tuple(each.operation[1:] for each in names),
        tuple(each.value for each in numbers),
        tuple(lines),
        slot[expression],
        expression,
    )


@functools.lru_cache(maxsize=1024)
def formula(
    text: str,
    inputs: tuple[str, ...] = (),
    derivatives: tuple[str, ...] = (),
    constants: tuple[tuple[str, complex], ...] = (),
) -> Formula:
    """The formula of a text, differentiated by each of `derivatives` in turn."""
    names = {name: variable(name) for name in inputs}
    names |= {name: number(value) for name, value in constants}
    try:
        expression = parse(text, names)
        for name in derivatives:
            if name not in inputs:
                fix = did_you_mean(name, inputs) or "it is not one of the inputs"
                raise ExpressionError(f"cannot differentiate by '{name}': {fix}", text, 0)
            expression = derivative(expression, name)
        return formula_of(expression)
    except RecursionError:
        message = "it is nested too deeply; give parts of it names, such as a := x + y;"
        raise ExpressionError(message, text, 0) from None
    except (NoSlope, NoValue) as error:
        raise ExpressionError(str(error), text, 0) from None


def constants_of(names: Sequence[str], expressions: Sequence[str]) -> dict[str, float]:
    """The values of named constants; each expression may use the constants before it."""
    values: dict[str, float] = {}
    for name, text in zip(names, expressions, strict=True):
        found = parse(text, {each: number(value) for each, value in values.items()})
        assert found.is_number and isinstance(found.value, float), "real numbers give real ones"
        if math.isnan(found.value):
            raise ExpressionError(f"'{name}' is not a number", text, 0)
        values[name] = found.value
    return values
