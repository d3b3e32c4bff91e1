"""The operations of expressions on tensors; numbers are folded by the same operations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["OPERATIONS", "NoValue", "constant", "folded"]


class NoValue(ValueError):
    """An operation that torch has not for numbers of this kind."""


def power(base: Any, exponent: Any) -> Any:
    """A power; torch has no power of two Python numbers."""
    return torch.pow(base, exponent)


def constant(value: Any, like: Tensor) -> Tensor:
    """A number as a tensor without axes, of the type of the run."""
    kind = like.dtype.to_complex() if isinstance(value, complex) else like.dtype
    return like.new_full((), value, dtype=kind)


def divide(a: Any, b: Any) -> Any:
    """A quotient; torch would multiply a number by a reciprocal, which may overflow."""
    return a / b if isinstance(a, Tensor) else constant(a, b) / b


def extreme(pick: Callable[..., Tensor], bound: str) -> Callable[[Any, Any], Tensor]:
    """The smaller or the larger of two values, either of which may be a number."""

    def pair(a: Any, b: Any) -> Tensor:
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return pick(a, b)
        return a.clamp(**{bound: b}) if isinstance(a, Tensor) else b.clamp(**{bound: a})

    return pair


def lifted(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Any], Tensor]:
    """A function of two tensors that also takes a number for one of them."""

    def pair(a: Any, b: Any) -> Tensor:
        like = a if isinstance(a, Tensor) else b
        return function(tensor_like(a, like), tensor_like(b, like))

    return pair


def tensor_like(value: Any, like: Tensor) -> Tensor:
    """A value as a tensor of the type of another."""
    return value if isinstance(value, Tensor) else like.new_full((), value)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": divide,
    "%": lifted(torch.remainder), "^": power, "neg": operator.neg,
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "!": torch.logical_not,
    "&": lifted(torch.logical_and), "|": lifted(torch.logical_or),
    "min": extreme(torch.minimum, "max"), "max": extreme(torch.maximum, "min"),
    "atan2": lifted(torch.atan2), "hypot": lifted(torch.hypot),
    **{name: getattr(torch, name) for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh",
        "atanh", "exp", "exp2", "log", "log10", "log2", "sqrt", "rsqrt", "abs", "ceil", "floor",
        "round", "trunc",
    )},
    "FFT": torch.fft.fft, "iFFT": torch.fft.ifft,
}  # fmt: skip


FOLDED = OPERATIONS | {
    "if": lambda condition, a, b: torch.where(condition != 0, a, b),
    # torch takes the root of -0 and of -inf otherwise where the exponent is a tensor
    **dict.fromkeys(("^", "pow"), lambda base, exponent: torch.pow(base, exponent.item())),
}


def folded(operation: str, *values: float | complex) -> float | complex:
    """The value of an operation on numbers: what torch makes of them, inf and nan too."""
    is_complex = any(isinstance(value, complex) for value in values)
    kind = torch.complex128 if is_complex else torch.float64
    given = [torch.tensor(value, dtype=kind) for value in values]
    try:
        return FOLDED[operation](*given).item()
    except (RuntimeError, TypeError):
        listed = ", ".join(f"{value:g}" for value in values)
        raise NoValue(f"{operation}({listed}) has no value: it takes real numbers") from None
