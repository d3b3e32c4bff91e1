"""ParsedCompute: an expression of the input file, over buffers, the grid and time."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import torch

from ingot.errors import Problem
from ingot.fields.blocks.options import place
from ingot.fields.declare import Names, Time, compute
from ingot.fields.expressions.formulas import Formula, constants_of, formula
from ingot.fields.expressions.parse import ExpressionError
from ingot.fields.spaces import Grid, Narrow, Space
from ingot.hit import Block

__all__ = ["ParsedCompute"]

TENSORS = ("x", "y", "z", "kx", "ky", "kz", "k2", "t")
SYMBOLS = {"i": 1j, "pi": math.pi, "e": math.e}


def check(block: Block, options: dict[str, Any]) -> Iterator[Problem]:
    """What is wrong with the names and the expression."""
    inputs, names = options["inputs"], options["constant_names"]
    for name, count in (Counter(inputs) + Counter(names)).items():
        if count > 1:
            message = f"'{name}' is given {count} times"
            yield Problem("wrong-value", message, block.span, "keep one of them")
        if options["extra_symbols"] and name in (*TENSORS, *SYMBOLS):
            message = f"'{name}' has a meaning of its own where extra_symbols = true"
            yield Problem("wrong-value", message, block.span, "give it another name")
    if len(names) != len(options["constant_expressions"]):
        message = (
            f"constant_names has {len(names)} entries,"
            f" constant_expressions {len(options['constant_expressions'])}"
        )
        yield Problem("wrong-value", message, block.span, "give as many of the one as of the other")
        return
    option = "constant_expressions"
    try:
        numbers_of(names, options["constant_expressions"])
        option = "expression"
        formula_from(options)
    except ExpressionError as error:
        message = f"'{option}' is not understood: {error}"
        yield Problem("bad-expression", message, place(block, option))


def formula_from(options: dict[str, Any]) -> Formula:
    """The formula of a block's options."""
    names, expressions = (options.get(f"constant_{each}", ()) for each in ("names", "expressions"))
    extra = options.get("extra_symbols", False)
    symbols = (*numbers_of(names, expressions), *(SYMBOLS.items() if extra else ()))
    variables = (*options["inputs"], *(TENSORS if extra else ()))
    return formula(options["expression"], variables, options.get("derivatives", ()), symbols)


@compute(check=check)
def ParsedCompute(
    space: Space,
    time: Time,
    inputs: tuple[Narrow, ...] = (),
    *,
    names: Names,
    expression: str,
    derivatives: tuple[str, ...] = (),
    constant_names: tuple[str, ...] = (),
    constant_expressions: tuple[str, ...] = (),
    extra_symbols: bool = False,
    expand: Literal["NONE", "REAL", "RECIPROCAL"] = "NONE",
    is_integer: bool = False,
    enable_fpoptimizer: bool = True,
) -> Grid:
    """An expression of buffers, point by point, or a derivative of it.

    inputs: buffers that the expression uses as variables
    expression: what to compute, such as 0.1*c^2*(c-1)^2
    derivatives: variables to differentiate by, one after the other
    constant_names: names for numbers
    constant_expressions: those numbers; each may use the ones before it
    extra_symbols: whether x y z kx ky kz k2 t i pi e have a meaning
    expand: whether the result is spread over the whole grid or spectrum
    is_integer: whether the result is cast to whole numbers
    enable_fpoptimizer: accepted: expressions are always simplified
    """
    found = formula_from({
        "inputs": names, "expression": expression, "derivatives": derivatives,
        "constant_names": constant_names, "constant_expressions": constant_expressions,
        "extra_symbols": extra_symbols,
    })  # fmt: skip
    if found.transforms:
        space.require_one("FFT or iFFT in an expression")
    values = dict(zip(names, inputs, strict=True))
    if extra_symbols:
        given = (*space.axes, *space.waves, space.k2, time)
        values |= dict(zip(TENSORS, given, strict=True))
    result = found(values, space.k2, space.whole)
    if expand == "REAL":
        result = result.expand(space.shape).contiguous()
    if expand == "RECIPROCAL":
        result = result.expand(space.spectrum_shape).contiguous()
    return result.to(torch.int64) if is_integer else result


@functools.lru_cache(maxsize=1024)
def numbers_of(
    names: tuple[str, ...], expressions: tuple[str, ...]
) -> tuple[tuple[str, complex], ...]:
    """The constants of a block."""
    return tuple(constants_of(names, expressions).items())
