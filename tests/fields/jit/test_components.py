"""Short sums over components are part of loops, and give what torch gives."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ingot.fields.jit import Jit
from ingot.fields.step import Buffer, State, Step

from .conftest import Both, state_of

DIRECTION = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def product(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return 0.5 * (v * w).sum(-1)


def with_a_field(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return (a[..., None] * v * DIRECTION).sum(-1) + a


def read_twice(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    scaled = v * a[..., None]
    return (scaled * scaled + torch.exp(scaled)).sum(-1)


def stored_too(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    scaled = v * a[..., None]
    return scaled * (scaled * w).sum(-1)[..., None]


def expanded(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return (a[..., None].expand(v.shape) * torch.where(v > w, v, 2.0)).sum(-1)


def over_two_axes(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return (v[..., :, None] * w[..., None, :] + 1).sum(-1).sum(-1)


def of_complex(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return torch.complex(v, w).sum(-1)


WRITTEN_OUT = (
    product, with_a_field, read_twice, stored_too, expanded, over_two_axes, of_complex,
)  # fmt: skip


def kept(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return v.sum(-1, keepdim=True) * w


def over_space(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return (a * a).sum(-1, keepdim=True)  # a field that is constant along an axis


def long(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return (a[..., None] * torch.ones(12, dtype=a.dtype)).sum(-1)


def counts(a: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return (v > w).sum(-1)


Function = Callable[[Tensor, Tensor, Tensor], Tensor]


def steps_of(function: Function) -> tuple[Step, ...]:
    return (Step("s", function, {name: Buffer(name) for name in "avw"}, ("d",)),)


def vectors(sizes: tuple[int, ...]) -> State:
    state = state_of(sizes, "a")
    for seed, name in enumerate("vw"):
        torch.manual_seed(seed)
        state.buffers[name] = torch.rand(*sizes, 3, dtype=torch.float64)
    return state


def text_of(made: Jit) -> str:
    (parts,) = made.plans.values()
    (_, sequence), *_ = parts
    assert sequence is not None
    return "".join(bound.graph.program.text for bound in sequence.bound.values() if bound)


@pytest.mark.parametrize("function", WRITTEN_OUT, ids=lambda f: f.__name__)
def test_a_short_sum_over_components_is_part_of_a_loop(both: Both, function: Function) -> None:
    made = both(steps_of(function), vectors((7, 6, 5)))
    assert made.statistics.fallbacks == 0
    assert "aten.sum" not in text_of(made)


@pytest.mark.parametrize("function", (kept, over_space, long, counts), ids=lambda f: f.__name__)
def test_other_sums_are_calls(both: Both, function: Function) -> None:
    made = both(steps_of(function), vectors((7, 6)))
    assert made.statistics.fallbacks == 0
    assert "aten.sum" in text_of(made)
