"""Every operation that a loop holds as one step, and fields of all kinds for it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ingot.fields.step import Buffer, Step

__all__ = ["ARGUMENTS", "CALLS", "STEP", "fields"]

A, B, Z, Y, M, N = "a", "b", "z", "y", "m", "n"
"""Two fields of numbers, two of complex numbers, two of truth values."""

BINARY = [(A, B), (A, Z), (Z, A), (Z, Y), (A, M), (A, 2), (Z, 0.5), (Z, 1j)]
REAL = [(A, B), (A, M)]
ARGUMENTS: dict[str, Sequence[tuple[object, ...]]] = {
    "add.Tensor": BINARY, "sub.Tensor": [*BINARY[:4], *BINARY[5:]], "mul.Tensor": BINARY,
    "div.Tensor": BINARY, "true_divide.Tensor": [(A, B)],
    "add.Scalar": [(A, 2), (Z, 1j)], "sub.Scalar": [(A, 2.5)], "mul.Scalar": [(A, 2), (Z, 2.5)],
    "div.Scalar": [(A, 3)], "rsub.Scalar": [(A, 1), (Z, 1)], "rsub.Tensor": [(A, B), (Z, A)],
    "neg.default": [(A,), (Z,)], "reciprocal.default": [(A,), (Z,)], "square.default": [(A,), (Z,)],
    "pow.Tensor_Scalar": [(A, e) for e in (2, 3, 4, -1, -2, 0.5, -0.5, 1, 2.7, 0, 17)] + [(Z, 3)],
    "pow.Tensor_Tensor": [(A, B)], "pow.Scalar": [(2.0, A)],
    "exp.default": [(A,), (Z,)], "abs.default": [(A,), (Z,)], "rsqrt.default": [(A,)],
    "atan2.default": [(A, B), (A, M)], "hypot.default": [(A, B)],
    "_conj.default": [(Z,)], "conj_physical.default": [(Z,)],
    "_conj_physical.default": [(Z,)],
    "complex.default": [(A, B)], "clone.default": [(A,), (Z,), (M,)],
    "clamp.default": [(A, 0.3, 0.6), (A, None, 0.5), (A, 0.4)], "clamp.Tensor": [(A, B, None)],
    "clamp_min.default": [(A, 0.4)], "clamp_max.default": [(A, 0.4)],
    "minimum.default": [(A, B)], "maximum.default": [(A, B)],
    "where.self": [(M, A, B), (M, Z, Y), (M, N, M)], "where.ScalarSelf": [(M, 1.5, A)],
    "where.ScalarOther": [(M, A, 2.5), (M, Z, 0)], "where.Scalar": [],
    "logical_and.default": [(M, N), (A, M)], "logical_or.default": [(M, N)],
    "logical_not.default": [(M,), (A,)], "bitwise_and.Tensor": [(M, N)],
    "bitwise_or.Tensor": [(M, N)], "bitwise_not.default": [(M,)],
    "_to_copy.default": [], "real": [(Z,)], "imag": [(Z,)],
    **{f"{n}.Tensor": [(A, B)] for n in ("eq", "ne", "lt", "gt", "le", "ge")},
    **{f"{n}.Scalar": [(A, 0.5)] for n in ("eq", "ne", "lt", "gt", "le", "ge")},
    **{f"{n}.default": [(A,)] for n in (
        "sqrt", "log", "log10", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "floor", "ceil", "trunc", "round", "sign", "asin", "acos", "atan", "asinh", "acosh",
        "atanh", "log2",
    )},
}  # fmt: skip
ARGUMENTS["eq.Tensor"] = [(A, B), (Z, Y), (Z, A)]


def operation(name: str) -> Callable[..., Tensor]:
    """An operation of torch by its name."""
    if name in ("real", "imag"):
        return getattr(torch, name)
    base, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, base), overload)


CALLS = [(name, arguments) for name, rows in ARGUMENTS.items() for arguments in rows]


def every(**fields: Tensor) -> tuple[Tensor, ...]:
    """What all calls give, and conversions."""
    found = []
    for name, arguments in CALLS:
        given = [fields[x] if isinstance(x, str) else x for x in arguments]
        found.append(operation(name)(*given))
    found += [fields[A].to(torch.complex128), fields[M].to(torch.float64), fields[A].bool()]
    return tuple(found)


STEP = Step(
    "every", every, {name: Buffer(name) for name in (A, B, Z, Y, M, N)},
    tuple(f"r{k}" for k in range(len(CALLS) + 3)),
)  # fmt: skip


def fields(sizes: tuple[int, ...], device: str = "cpu") -> dict[str, Tensor]:
    """Fields between 0.2 and 0.8, complex ones of them, and truth values."""
    torch.manual_seed(1)
    a, b, c, d = (0.2 + 0.6 * torch.rand(4, *sizes, dtype=torch.float64)).to(device).unbind()
    return {A: a, B: b, Z: torch.complex(a, c - 0.5), Y: torch.complex(d, b - 0.5), M: a > 0.5,
            N: b > c}  # fmt: skip
