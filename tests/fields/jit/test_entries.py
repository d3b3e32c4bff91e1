"""Shifts, layers and components beside operations of a lattice: compiled as they are direct."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ingot.fields.lbm.operators import join
from ingot.fields.step import Buffer, Step

from .conftest import Both, state_of


def beside_a_layer(a: Tensor, u: Tensor) -> Tensor:
    return a - a.select(-1, 0).unsqueeze(-1) + u.sum(-1)


def one_component(a: Tensor, u: Tensor) -> Tensor:
    return torch.select_scatter(2 * u, 3 * a, -1, 1)


def a_layer_of_a_component(a: Tensor, u: Tensor) -> Tensor:
    return torch.select_scatter(u, torch.select_scatter(u[0], 3 * a[0], -1, -1), 0, -1)


def components_around(a: Tensor, u: Tensor) -> Tensor:
    return u.roll((1, 1), (0, -1))


def twice_along_an_axis(a: Tensor, u: Tensor) -> Tensor:
    return 2 * u.roll((1, 1), (0, 0)) + 2 * a.roll((1, -1, 1), (1, 0, 1)).unsqueeze(-1)


def counted_from_the_last_axis(a: Tensor, u: Tensor) -> Tensor:
    return (a[0] * a[1]).roll(1, -1) + u.sum(-1)


def far_around(a: Tensor, u: Tensor) -> Tensor:
    return a.roll(-4, 0).select(0, 0).unsqueeze(0) + u.sum(-1)


def the_other_end_of_a_small_box(a: Tensor, u: Tensor) -> Tensor:
    changed = torch.select_scatter(u, 5 * u[1], 0, -1)
    return changed.roll(-2, 0).select(0, 0).unsqueeze(0) + changed.select(0, 2).unsqueeze(0) + u


CASES = (
    beside_a_layer, one_component, a_layer_of_a_component, components_around, twice_along_an_axis,
    counted_from_the_last_axis, far_around, the_other_end_of_a_small_box,
)  # fmt: skip


@pytest.mark.parametrize("lattice", [False, True], ids=["plain", "lattice"])
@pytest.mark.parametrize("function", CASES)
def test_compiled_it_is_as_direct(
    function: Callable[[Tensor, Tensor], Tensor], lattice: bool, both: Both
) -> None:
    def given(a: Tensor, b: Tensor) -> Tensor:
        return function(a, join([a, b]) if lattice else torch.stack([a, b], -1))

    steps = (Step("given", given, {"a": Buffer("a"), "b": Buffer("b")}, ("c",)),)
    jit = both(steps, state_of((7, 5), "a", "b"), state_of((3, 3), "a", "b", seed=1))
    assert jit.statistics.fallbacks == 0
    assert jit.statistics.sequences == 1
