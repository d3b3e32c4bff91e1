"""Shifts along any axes: compiled as they are direct."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ingot.fields.step import Buffer, Step

from .conftest import Both, state_of


def components_around(a: Tensor, u: Tensor) -> Tensor:
    return u.roll((1, 1), (0, -1))


def twice_along_an_axis(a: Tensor, u: Tensor) -> Tensor:
    return 2 * u.roll((1, 1), (0, 0)) + 2 * a.roll((1, -1, 1), (1, 0, 1)).unsqueeze(-1)


def counted_from_the_last_axis(a: Tensor, u: Tensor) -> Tensor:
    return (a[0] * a[1]).roll(1, -1) + u.sum(-1)


CASES = (components_around, twice_along_an_axis, counted_from_the_last_axis)


@pytest.mark.parametrize("function", CASES)
def test_compiled_it_is_as_direct(function: Callable[[Tensor, Tensor], Tensor], both: Both) -> None:
    def given(a: Tensor, b: Tensor) -> Tensor:
        return function(a, torch.stack([a, b], -1))

    steps = (Step("given", given, {"a": Buffer("a"), "b": Buffer("b")}, ("c",)),)
    jit = both(steps, state_of((7, 5), "a", "b"), state_of((3, 3), "a", "b", seed=1))
    assert jit.statistics.fallbacks == 0
    assert jit.statistics.sequences == 1
