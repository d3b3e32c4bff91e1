"""NaN and infinity through functions of numbers: torch's, ours on tensors, traced and compiled."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import grad

from ingot import types
from ingot.execute.kernel import Kernel
from ingot.types import R2, SR2, SSR4, Scalar, Value, Vec
from tests.types.atoms import on_atoms, traced

NUMBERS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -2.0)
A, B = (
    torch.tensor(column, dtype=torch.float64)
    for column in zip(*itertools.product(NUMBERS, NUMBERS), strict=True)
)
Function = Callable[..., Any]

# ours, and torch's where it has one of that name
UNARY: dict[str, tuple[Function, Function | None]] = {
    name: (getattr(types, name), getattr(torch, name))
    for name in (
        "exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "abs", "sign",
    )
} | {
    "heaviside": (types.heaviside, None),
    "macaulay": (types.macaulay, None),
    "clamp": (lambda x: types.clamp(x, -1.0, 0.25), lambda x: torch.clamp(x, -1.0, 0.25)),
    "clamp to nothing": (
        lambda x: types.clamp(x, -math.inf, math.inf),
        lambda x: torch.clamp(x, -math.inf, math.inf),
    ),
    "norm": (types.norm, torch.abs),
    "inv": (types.inv, torch.reciprocal),
}  # fmt: skip
BINARY: dict[str, tuple[Function, Function | None]] = {
    "maximum": (types.maximum, torch.maximum),
    "minimum": (types.minimum, torch.minimum),
    "pow": (types.pow, torch.pow),
    "sum": (lambda a, b: a + b, torch.add),
    "difference": (lambda a, b: a - b, torch.sub),
    "product": (lambda a, b: a * b, torch.mul),
    "quotient": (lambda a, b: a / b, torch.div),
    "choice": (lambda a, b: types.where(a < b, a, b), lambda a, b: torch.where(a < b, a, b)),
    "norm of two": (
        lambda a, b: types.norm(Vec.of(a, b, 0.0)),
        lambda a, b: torch.linalg.vector_norm(torch.stack([a, b]), dim=0),
    ),
}
ALL: dict[str, tuple[Function, Function | None]] = {
    **{name: (lambda a, b, f=f: f(a), t and (lambda a, b, t=t: t(a)))
       for name, (f, t) in UNARY.items()},
    **BINARY,
}  # fmt: skip


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("name", ALL)
def test_functions_of_no_numbers_are_those_of_torch_also_traced(name: str) -> None:
    ours, torchs = ALL[name]
    plain = ours(Scalar(A), Scalar(B)).data
    if name == "norm of two":
        # torch says inf for (inf, nan), as C's hypot; a sum of squares says NaN
        both = (A.isnan() | B.isnan()) & (A.isinf() | B.isinf())
        assert plain[both].isnan().all()
        same(plain[~both], torchs(A, B)[~both])  # type: ignore[misc]
    elif torchs is not None:
        same(plain, torchs(A, B))
    same(on_atoms(ours, Scalar(A), Scalar(B)), plain)


def test_one_kernel_says_the_same() -> None:
    names = list(ALL)

    def all_of_them(a: Scalar, b: Scalar) -> SSR4:
        found = [ALL[name][0](a, b) for name in names]
        return SSR4.of(*found, *([0.0] * (36 - len(found))))

    values = Scalar(A), Scalar(B)
    found = Kernel(traced(all_of_them, *values))({"a0": A, "a1": B})[0]["out"]
    for i, name in enumerate(names):
        expected, result = ALL[name][0](*values).data, found.reshape(-1, 36)[:, i]
        torch.testing.assert_close(
            result, expected, rtol=1e-13, atol=1e-15, equal_nan=True, msg=name
        )


@pytest.mark.parametrize("bound", [math.nan, 1.0, math.inf])
def test_a_number_as_bound_is_as_a_value(bound: float) -> None:
    number = torch.tensor(bound, dtype=torch.float64)
    for ours, torchs in ((types.maximum, torch.maximum), (types.minimum, torch.minimum)):
        same(ours(Scalar(A), bound).data, torchs(A, number))
        same(on_atoms(lambda a, f=ours: f(a, bound), Scalar(A)), torchs(A, number))
        same(ours(bound, Scalar(A)).data, torchs(number, A))


numbers = st.floats(-10.0, 10.0)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(numbers, numbers)
def test_slopes_of_the_larger_are_those_of_torch_away_from_ties(a: float, b: float) -> None:
    if a == b:
        return
    pair = [torch.tensor(x, dtype=torch.float64) for x in (a, b)]
    for ours, torchs in ((types.maximum, torch.maximum), (types.minimum, torch.minimum)):
        found = grad(lambda x, y, f=ours: f(Scalar(x), Scalar(y)).data, argnums=(0, 1))(*pair)
        assert found == grad(torchs, argnums=(0, 1))(*pair)
    if a not in (-1.0, 1.0):
        found = grad(lambda x: types.clamp(Scalar(x), -1.0, 1.0).data)(pair[0])
        assert found == grad(lambda x: torch.clamp(x, -1.0, 1.0))(pair[0])


@pytest.mark.parametrize("kind", [Scalar, Vec, SR2, R2])
@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-140, 1e-30, 1.0, 1e140, 1e200, 1e307])
def test_norm_neither_overflows_nor_underflows(kind: type[Value], size: float) -> None:
    source = torch.Generator().manual_seed(4)
    direction = torch.randn(5, *kind.base, generator=source, dtype=torch.float64)
    data = direction * size
    flat = (data / size).reshape(5, -1)
    expected = torch.linalg.vector_norm(flat, dim=-1)
    near = 1e-13 if size > 1e-300 else 1e-3  # a subnormal number has few digits
    for found in (types.norm(kind(data)).data, on_atoms(types.norm, kind(data))):
        torch.testing.assert_close(found / size, expected, rtol=near, atol=0.0)
    slope = grad(lambda x: types.norm(kind(x)).data.sum())(data).reshape(5, -1)
    torch.testing.assert_close(slope, flat / expected[:, None], rtol=near, atol=near)


def test_a_constant_bound_costs_a_comparison_and_a_choice() -> None:
    assert traced(lambda x: types.clamp(x, 0.0, 1.0), Scalar(A)).count() == 4
    assert traced(types.maximum, Scalar(A), Scalar(B)).count() == 4
