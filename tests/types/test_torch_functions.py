"""torch's functions on values give what the types' functions give, on tensors and on atoms."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ingot import types
from ingot.types import R2, SR2, Scalar, Value, Vec
from ingot.types.torch_names import _NAMES
from tests.types.atoms import on_atoms

Function = Callable[..., Any]

# torch's way, our way, the kinds they take
PAIRS: dict[str, tuple[Function, Function, list[type[Value]]]] = {
    "exp": (torch.exp, types.exp, [SR2]),
    "log": (lambda x: torch.log(x * x), lambda x: types.log(x * x), [Vec]),
    "log10": (lambda x: torch.log10(x * x), lambda x: types.log10(x * x), [Vec]),
    "sqrt": (lambda x: torch.sqrt(x * x), lambda x: types.sqrt(x * x), [Vec]),
    "sin": (torch.sin, types.sin, [Vec]),
    "cos": (torch.cos, types.cos, [Vec]),
    "tan": (torch.tan, types.tan, [Vec]),
    "asin": (lambda x: torch.asin(torch.tanh(x)), lambda x: types.asin(types.tanh(x)), [Vec]),
    "acos": (lambda x: torch.acos(torch.tanh(x)), lambda x: types.acos(types.tanh(x)), [Vec]),
    "atan": (torch.atan, types.atan, [Vec]),
    "sinh": (torch.sinh, types.sinh, [Vec]),
    "cosh": (torch.cosh, types.cosh, [Vec]),
    "tanh": (torch.tanh, types.tanh, [Vec]),
    "abs": (torch.abs, types.abs, [R2]),
    "sign": (torch.sign, types.sign, [R2]),
    "neg": (torch.neg, lambda x: -x, [Vec]),
    "square": (torch.square, lambda x: x * x, [Vec]),
    "reciprocal": (torch.reciprocal, lambda x: 1.0 / x, [Vec]),
    "pow": (lambda x: torch.pow(x, 3), lambda x: x**3, [Vec]),
    "add": (torch.add, lambda a, b: a + b, [SR2, SR2]),
    "sub": (torch.sub, lambda a, b: a - b, [SR2, SR2]),
    "mul": (torch.mul, lambda a, b: a * b, [SR2, Scalar]),
    "div": (torch.div, lambda a, b: a / b, [SR2, Scalar]),
    "lt": (lambda a, b: torch.where(torch.lt(a, b), a, b), types.minimum, [Vec, Vec]),
    "le": (lambda a, b: torch.where(torch.le(a, b), a, b), types.minimum, [Vec, Vec]),
    "gt": (lambda a, b: torch.where(torch.gt(a, b), a, b), types.maximum, [Vec, Vec]),
    "ge": (lambda a, b: torch.where(torch.ge(a, b), a, b), types.maximum, [Vec, Vec]),
    "eq": (
        lambda a, b: torch.where(torch.eq(a, b), a, -a),
        lambda a, b: types.where(a == b, a, -a),
        [Scalar, Scalar],
    ),
    "ne": (
        lambda a, b: torch.where(torch.ne(a, b), a, -a),
        lambda a, b: types.where(a != b, a, -a),
        [Scalar, Scalar],
    ),
    "maximum": (torch.maximum, types.maximum, [Vec, Vec]),
    "minimum": (torch.minimum, types.minimum, [Vec, Vec]),
    "clamp": (lambda x: torch.clamp(x, -0.5, 0.5), lambda x: types.clamp(x, -0.5, 0.5), [Vec]),
    "clamp from below": (lambda x: torch.clamp(x, min=0.0), lambda x: types.maximum(x, 0.0), [Vec]),
    "clamp from above": (lambda x: torch.clamp(x, max=0.0), lambda x: types.minimum(x, 0.0), [Vec]),
    "where": (
        lambda a, b: torch.where(a > 0.0, a, b),
        lambda a, b: types.where(a > 0.0, a, b),
        [Scalar, Scalar],
    ),
    "matmul": (torch.matmul, types.matmul, [R2, Vec]),
    "@": (lambda a, b: a @ b, types.matmul, [R2, R2]),
    "det": (torch.det, types.det, [R2]),
    "linalg.det": (torch.linalg.det, types.det, [R2]),
    "inverse": (torch.inverse, types.inv, [R2]),
    "linalg.inv": (torch.linalg.inv, types.inv, [R2]),
    "linalg.norm": (torch.linalg.norm, types.norm, [Vec]),
    "norm": (torch.norm, types.norm, [SR2]),
    "trace": (torch.trace, types.tr, [R2]),
    "dot": (torch.dot, types.inner, [Vec, Vec]),
    "cross": (torch.cross, types.cross, [Vec, Vec]),
    "linalg.cross": (torch.linalg.cross, types.cross, [Vec, Vec]),
    "sum": (torch.sum, lambda x: x[0] + x[1] + x[2], [Vec]),
    "einsum": (
        lambda a, b: torch.einsum("ij,kj->ki", a, b),
        lambda a, b: types.einsum("ij,kj->ki", a, b),
        [R2, R2],
    ),
    "einsum of a list": (
        lambda a, b: torch.einsum("i,ij,j->", [b, a, b]),
        lambda a, b: types.einsum("i,ij,j->", b, a, b),
        [R2, Vec],
    ),
    "linalg.eigh": (
        lambda a: torch.linalg.eigh(a).eigenvectors,
        lambda a: types.eigh3(a).eigenvectors,
        [SR2],
    ),
    "linalg.eigh of a matrix": (
        lambda a: torch.linalg.eigh(a)[0],
        lambda a: types.eigh3(types.sym(a))[0],
        [R2],
    ),
    "linalg.eigvalsh": (torch.linalg.eigvalsh, lambda a: types.eigh3(a)[0], [SR2]),
    "matrix_exp": (torch.matrix_exp, types.expm3, [R2]),
    "linalg.matrix_exp": (torch.linalg.matrix_exp, types.expm3, [SR2]),
    "stack of scalars": (
        lambda x: torch.stack([x[2], x[1], x[0]]),
        lambda x: Vec.of(x[2], x[1], x[0]),
        [Vec],
    ),
    "stack of vectors": (
        lambda a, b: torch.stack([a, b, a]),
        lambda a, b: R2.of(*a, *b, *a),
        [Vec, Vec],
    ),
}


def drawn(kinds: list[type[Value]]) -> list[Value]:
    source = torch.Generator().manual_seed(2)
    values = [torch.randn(5, *kind.base, generator=source, dtype=torch.float64) for kind in kinds]
    if len(set(kinds)) == 1 and len(kinds) == 2:
        values[1][0] = values[0][0]
    return [kind(x) for kind, x in zip(kinds, values, strict=True)]


@pytest.mark.parametrize("name", PAIRS)
def test_torch_function_is_the_types_function(name: str) -> None:
    torchs, ours, kinds = PAIRS[name]
    values = drawn(kinds)
    expected = ours(*values)
    found = torchs(*values)
    assert type(found) is type(expected)
    assert torch.equal(found.data, expected.data)
    on_symbols = on_atoms(torchs, *values)
    torch.testing.assert_close(on_symbols, expected.data, rtol=1e-13, atol=1e-13)


def test_every_torch_name_is_compared() -> None:
    spelled = {name.split(" ")[0].replace("@", "matmul") for name in PAIRS}
    known = {torch.overrides.resolve_name(f).removeprefix("torch.") for f in _NAMES}
    assert {name.removeprefix("functional.") for name in known} <= spelled


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.float64(0.1) * x,
        lambda x: x * np.float64(0.1),
        lambda x: np.sqrt(2.0) / x,
        lambda x: np.float64(0.1) - x,
        lambda x: np.float64(2.0) ** x,
    ],
)
def test_numpy_double_on_either_side_is_a_number(function: Function) -> None:
    (x,) = drawn([Vec])
    expected = function(x.data.numpy())
    assert np.array_equal(function(x).data.numpy(), expected) or np.allclose(
        function(x).data.numpy(), expected, rtol=1e-15
    )
    assert np.allclose(on_atoms(function, x).numpy(), expected, rtol=1e-14)


ELEMENTWISE = (
    "exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "abs", "sign",
)  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_function_is_that_of_its_name(name: str) -> None:
    numbers = torch.linspace(0.05, 0.95, 7, dtype=torch.float64)
    numbers = numbers if name in ("log", "log10", "sqrt") else torch.cat([-numbers, numbers])
    expected = getattr(torch, name)(numbers)
    function = getattr(types, name)
    assert torch.equal(function(Scalar(numbers)).data, expected)
    assert torch.equal(on_atoms(function, Scalar(numbers)), expected)


def test_arithmetic_is_that_of_the_numbers() -> None:
    a, b = (x.data for x in drawn([Vec, Vec]))
    x, y = Vec(a), Vec(b)
    pairs = [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x**3, a**3), (-x, -a),
        (types.abs(x) ** y, a.abs() ** b), (2.0**x, 2.0**a), (1.0 / x, 1.0 / a),
    ]  # fmt: skip
    for found, expected in pairs:
        torch.testing.assert_close(found.data, expected, rtol=1e-15, atol=0.0)
