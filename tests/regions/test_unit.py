"""Blocks that torch really compiles: values and gradients of eager at sizes not traced."""

import random
from typing import Any

import pytest
import torch
from torch import nn

from ingot import regions
from ingot.errors import IngotError
from tests.calls import odd
from tests.regions.networks import Attention, Stack

OPEN = {0: "batch", 1: "length"}


@pytest.fixture(scope="module")
def attention() -> tuple[nn.Module, regions.Compiled]:
    torch.manual_seed(0)
    model = Stack([Attention(8) for _ in range(3)]).double()
    x = torch.randn(2, 5, 8).double()
    return model, regions.compile(model, x, Attention, dynamic=OPEN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [(2, 5), (7, 3), pytest.param((1, 4), marks=pytest.mark.exhaustive), (3, 3)]
)
def test_values_and_gradients_are_those_of_eager(
    attention: tuple[nn.Module, regions.Compiled], size: tuple[int, int]
) -> None:
    model, compiled = attention
    x = torch.randn(*size, 8, dtype=torch.float64, requires_grad=True)
    wanted = [x, *model.parameters()]
    found = [compiled(x), *torch.autograd.grad(compiled(x).square().sum(), wanted)]
    right = [model(x), *torch.autograd.grad(model(x).square().sum(), wanted)]
    for a, b in zip(found, right, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [100, pytest.param(500, marks=pytest.mark.exhaustive)], ids=["few", "many"]
)
def test_odd_calls_are_refused_or_equal_to_eager(
    attention: tuple[nn.Module, regions.Compiled], count: int
) -> None:
    model, compiled = attention
    dice = random.Random(6)
    tally = {"right": 0, "refused": 0}
    for _ in range(count):
        x = torch.randn(dice.choice([1, 2, 3]), dice.choice([2, 5]), 8, dtype=torch.float64)
        compiled(x)
        given = odd(x, dice)
        try:
            right = model(given)
        except Exception as error:
            with pytest.raises(Exception):  # noqa: B017
                compiled(given)
            tally["refused"] += 1
            assert not isinstance(error, IngotError)
            continue
        found = compiled(given)
        torch.testing.assert_close(found, right, rtol=0, atol=1e-12, equal_nan=True)
        assert found.requires_grad == right.requires_grad
        tally["right"] += 1
    assert tally["right"] > count // 10, tally


@pytest.mark.slow
def test_fuzzed_calls_are_right_or_refused(
    attention: tuple[nn.Module, regions.Compiled],
) -> None:
    model, compiled = attention
    seed = torch.Generator().manual_seed(3)

    def pick(*of: Any) -> Any:
        return of[int(torch.randint(len(of), (), generator=seed))]

    right = refused = 0
    for _ in range(200):
        rows, length, width = pick(1, 2, 3, 9), pick(1, 2, 5), pick(8, 8, 8, 8, 7, 16)
        dtype = pick(torch.float64, torch.float64, torch.float64, torch.float32, torch.int64)
        big = torch.randn(20, 20, 40, generator=seed).to(dtype)
        x = pick(
            big[:rows, :length, :width],
            big[: 2 * rows : 2, : 2 * length : 2, : 2 * width : 2],
            big.permute(1, 2, 0)[:rows, :length, :width],
            big.transpose(0, 1)[:rows, :length, :width],
            big[:1, :length, :width].expand(rows, length, width),
            big[:rows, :length, 1 : width + 1],
            big[:rows, :length, :1].expand(rows, length, width),
            big[:rows, 0, :width],
            big[:rows, :length, :width].unsqueeze(0),
        )
        fits = x.dtype == torch.float64 and x.ndim == 3 and x.shape[-1] == 8
        if not fits:
            with pytest.raises((RuntimeError, ValueError)):
                compiled(x)
            refused += 1
            continue
        found = compiled(x)
        torch.testing.assert_close(found, model(x), rtol=1e-12, atol=1e-12)
        right += 1
    assert right > 40 and refused > 40
