"""Formula: an expression as torch operations on whole grids, each equal part computed once.

In: a line of a program and the names of its variables. Out: a pure function of tensors.
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
from ingot.fields.expressions.exact import (
    LINES,
    SPELLINGS,
    NoValue,
    differentiate,
    is_number,
    write,
)
from ingot.fields.expressions.parse import ExpressionError, parse, variable
from ingot.program import Node
from ingot.program.schedule import schedule_lines
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["Formula", "constants_of", "formula"]

TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {"FFT": torch.fft.fft, "iFFT": torch.fft.ifft}


@dataclass(frozen=True, slots=True)
class Formula:
    """Lines in the order they run, each with the values that nothing needs after it."""

    variables: tuple[Node, ...]
    lines: tuple[tuple[Node, tuple[int, ...]], ...]
    result: Node

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it reads."""
        return tuple(node.attr[0] for node in self.variables)

    @property
    def transforms(self) -> bool:
        """Whether it holds a transform, which goes along a whole axis."""
        return any(node.op in TRANSFORMS for node, _ in self.lines)

    def __call__(
        self,
        values: Mapping[str, Tensor],
        like: Tensor,
        whole: Callable[[Tensor], Tensor] = lambda field: field,
    ) -> Tensor:
        """The value where the variables are `values`; `like` has the type of the run.

        `whole` fills a field that is stored narrow, which a transform needs.
        """
        known: dict[int, Any] = {node.id: values[node.attr[0]] for node in self.variables}
        for node, frees in self.lines:
            args = [known[each.id] for each in node.args]
            if not args:
                known[node.id] = node.attr[1] if is_number(node) else 0.0
            elif node.op in TRANSFORMS:
                known[node.id] = TRANSFORMS[node.op](whole(as_tensor(args[0], like)))
            else:
                known[node.id] = apply(node.op, args, like)
            for each in frees:
                del known[each]
        return as_tensor(known[self.result.id], like)

    def __str__(self) -> str:
        return write(self.result)


def as_tensor(value: Any, like: Tensor) -> Tensor:
    """A value as it is, or a number as a tensor without axes, of the type of the run."""
    if isinstance(value, Tensor):
        return value
    kind = like.dtype.to_complex() if isinstance(value, complex) else like.dtype
    return like.new_full((), value, dtype=kind)


def apply(op: str, args: list[Any], like: Tensor) -> Tensor:
    """An operation of the table on tensors and numbers."""
    row = ELEMENTWISE[op]
    # functions of torch but powers take tensors alone; a number over a tensor would be multiplied
    # by a reciprocal, which may overflow
    over = op == "div" and not isinstance(args[0], Tensor)
    if over or (row.torch.startswith("torch.") and op != "pow"):
        args = [as_tensor(each, like) for each in args]
    try:
        return row.function(*args)
    except (RuntimeError, TypeError) as error:
        if not any(
            isinstance(x, complex) or (isinstance(x, Tensor) and x.is_complex()) for x in args
        ):
            raise
        told = f"'{SPELLINGS.get(op, op)}' takes real numbers, and those of spectra are complex"
        raise NoValue(f"{told}; abs(...) of them is real") from error


def formula_of(line: Node) -> Formula:
    """The operations of an expression, arguments first; a value is freed at its last use."""
    line = LINES.count_condition(line)
    order = schedule_lines([line])
    last = {each.id: node.id for node in order for each in node.args if each.op != "input"}
    variables = tuple(node for node in order if node.op == "input")
    frees: dict[int, list[int]] = {node.id: [] for node in order}
    for each, end in last.items():
        frees[end].append(each)
    lines = [(node, tuple(frees[node.id])) for node in order if node not in variables]
    return Formula(variables, tuple(lines), line)


FORMULAS_KEPT = 2**14
"""How many formulas are kept: more than an input has, since a direct run asks again each step."""


@functools.lru_cache(maxsize=FORMULAS_KEPT)
def formula(
    text: str,
    inputs: tuple[str, ...] = (),
    derivatives: tuple[str, ...] = (),
    constants: tuple[tuple[str, complex], ...] = (),
) -> Formula:
    """The formula of a text, differentiated by each of `derivatives` in turn."""
    try:
        expression = expression_of(text, inputs, constants)
        for name in derivatives:
            if name not in inputs:
                fix = did_you_mean(name, inputs) or "it is not one of the inputs"
                raise ExpressionError(f"cannot differentiate by '{name}': {fix}", text, 0)
            expression = differentiate(expression, variable(name))
        return formula_of(expression)
    except RecursionError:
        message = "it is nested too deeply; give parts of it names, such as a := x + y;"
        raise ExpressionError(message, text, 0) from None
    except NoValue as error:
        raise ExpressionError(str(error), text, 0) from None


@functools.lru_cache(maxsize=64)
def expression_of(
    text: str, inputs: tuple[str, ...], constants: tuple[tuple[str, complex], ...]
) -> Node:
    """The expression of a text; one energy is differentiated by many order parameters."""
    names = {name: variable(name) for name in inputs}
    return parse(text, names | {name: LINES.number(value) for name, value in constants})


def constants_of(names: Sequence[str], expressions: Sequence[str]) -> dict[str, float]:
    """The values of named constants; each expression may use the constants before it."""
    values: dict[str, float] = {}
    for name, text in zip(names, expressions, strict=True):
        found = parse(text, {each: LINES.number(value) for each, value in values.items()})
        assert is_number(found) and isinstance(found.attr[1], float), "real numbers give real ones"
        if math.isnan(found.attr[1]):
            raise ExpressionError(f"'{name}' is not a number", text, 0)
        values[name] = found.attr[1]
    return values
