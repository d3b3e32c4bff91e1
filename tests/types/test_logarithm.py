"""The logarithm of tensors and its derivatives against numbers of sixty digits."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import jacfwd, jacrev

from ingot import types
from ingot.execute.interpret import Interpreter
from ingot.program import verify, with_jacobian
from ingot.types import SR2, log1p3
from tests.types.atoms import on_atoms, slopes_on_atoms, traced
from tests.types.test_spectral import mandel, principal_values, turned

DOUBLE = torch.float64
SPECIAL = [
    [0.0, 0.0, 0.0], [0.2, 0.2, 0.5], [0.2, 0.5, 0.5], [0.0, 0.0, 1e-12], [0.0, 1e-8, 1e-4],
    [0.1, 0.1 + 1e-6, 0.1 + 2e-6], [-0.5, 0.1, 3.0], [0.0, 0.3999, 0.4001], [-0.9, 8.0, 8.0 + 1e-9],
    [1e-9, 2e-9, -3e-9], [-0.8, 0.0, 4.0],
]  # fmt: skip


def reference(a: Tensor, along: Sequence[Tensor]) -> Tensor:
    """The derivative by central differences with steps of 1e-14 and sixty digits."""
    with mpmath.workdps(60 + 15 * len(along)):
        step = mpmath.mpf(10) ** -14

        def logarithm(signs: Sequence[int]) -> Any:
            m = mpmath.matrix(a.tolist()) + mpmath.eye(3)
            for sign, b in zip(signs, along, strict=True):
                m += sign * step * mpmath.matrix(b.tolist())
            values, q = mpmath.eigsy(m)
            return q * mpmath.diag([mpmath.log(v) for v in values]) * q.T

        total = mpmath.zeros(3)
        for signs in itertools.product((1, -1), repeat=len(along)):
            total += math.prod(signs) * logarithm(signs) / (2 * step) ** len(along)
        rows = [[float(total[i, j]) for j in range(3)] for i in range(3)]
    return torch.tensor(rows, dtype=DOUBLE)


def directions(seed: int, count: int) -> list[Tensor]:
    source = torch.Generator().manual_seed(seed)
    full = torch.randn(count, 3, 3, generator=source, dtype=DOUBLE)
    return list((full + full.transpose(1, 2)) / 2.0)


@pytest.mark.parametrize("values", SPECIAL, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_derivatives_are_right_to_the_third_order(values: list[float], seed: int) -> None:
    a = turned(values, seed)
    for order in range(4):
        along = directions(seed, order)
        found = log1p3(SR2(mandel(a)), *(SR2(mandel(b)) for b in along))
        expected = reference(a, along)
        exact = (4e-15, 1e-14, 2e-14, 1e-13)[order]
        scale = max(float(expected.abs().max()), 1e-300)
        torch.testing.assert_close(
            types.r2_from_sr2(found).data / scale, expected / scale, rtol=0, atol=exact
        )


@settings(max_examples=12, deadline=None, derandomize=True)
@given(principal_values(), st.integers(0, 1000))
def test_slopes_of_traces_are_derivatives_in_both_modes(values: list[float], seed: int) -> None:
    a = SR2(mandel(turned(values, seed) * 0.2))
    columns = [log1p3(a, SR2(e)).data for e in torch.eye(6, dtype=DOUBLE)]
    expected = torch.stack(columns, -1)
    for reverse in (False, True):
        found = slopes_on_atoms(log1p3, a, reverse=reverse)
        torch.testing.assert_close(found, expected, rtol=0, atol=4e-15)
    for mode in (jacfwd, jacrev):
        torch.testing.assert_close(mode(lambda x: log1p3(SR2(x)).data)(a.data), expected)
    torch.testing.assert_close(on_atoms(log1p3, a), log1p3(a).data, rtol=0, atol=2e-15)


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [0.2, 0.2, 0.5], [-0.3, 0.1, 0.9]], ids=str)
def test_second_slopes_of_traces_are_second_derivatives(values: list[float]) -> None:
    a, b = SR2(mandel(turned(values, 3))), SR2(mandel(directions(2, 1)[0]))
    basis = torch.eye(6, dtype=DOUBLE)
    expected = torch.stack([log1p3(a, b, SR2(e)).data for e in basis], -1)
    twice = with_jacobian(traced(log1p3, a, b), [("out", "a0")])
    found = Interpreter(verify(twice))({"a0": a.data, "a1": b.data})[0]["out:a0"]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_a_batch_with_directions_of_one_point_is_a_loop() -> None:
    a = torch.stack([mandel(turned(v, 1)) for v in SPECIAL])
    b = mandel(directions(0, 1)[0])
    found = log1p3(SR2(a), SR2(b)).data
    expected = torch.stack([log1p3(SR2(x), SR2(b)).data for x in a])
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
