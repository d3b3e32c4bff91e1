"""Fields that a step puts side by side: loops store them right there, and they are as direct."""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ingot.fields.jit import Jit
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Eager, Source, Step

from .cases import copied, state_of


def stacking(seed: int) -> Callable[..., tuple[Tensor, ...]]:
    """Two stacks of drawn values: some twice, some in both, some numbers, some from memory."""
    draw = random.Random(seed)
    firsts = [draw.randrange(8) for _ in range(draw.randint(1, 12))]
    seconds = [draw.randrange(8) for _ in range(draw.randint(1, 12))]
    axis = draw.choice([0, 0, -1])

    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, ...]:
        product = a * b
        parts = [
            a, b, product, product - a, torch.zeros_like(a), space.axes[0] * 2,
            (a + b) * space.axes[1], space.inverse(space.forward(a) * 2),
        ]  # fmt: skip
        one, two = (
            torch.stack([parts[k].expand(space.shape) for k in numbers], axis if at else 0)
            for at, numbers in enumerate((firsts, seconds))
        )
        return one.movedim(0, -1), two if axis else two.movedim(0, -1), product + 1

    return function


@pytest.mark.usefixtures("torch_transforms")
@pytest.mark.parametrize("seed", range(8))
def test_stacked_values_are_those_of_the_steps(seed: int) -> None:
    arguments: dict[str, Source | tuple[Source, ...]] = {
        "a": Buffer("a"), "b": Buffer("b"), "space": Ambient("space"),
    }  # fmt: skip
    steps = (Step("stacking", stacking(seed), arguments, ("one", "two", "three")),)
    kind = torch.float32 if seed % 4 == 3 else torch.float64
    state = state_of((7, 9) if seed % 2 else (4, 5, 6), "a", "b", seed=seed, dtype=kind)
    direct, compiled = copied(state), copied(state)
    Eager().run(steps, direct)
    jit = Jit()
    for _ in range(2):
        jit.run(steps, compiled)
        for name in ("one", "two", "three"):
            assert torch.equal(compiled.buffers[name], direct.buffers[name])
            assert compiled.buffers[name].stride() == direct.buffers[name].stride()
    assert jit.statistics.fallbacks == 0


def test_stacked_entries_are_stored_by_one_loop() -> None:
    def squares(a: Tensor, b: Tensor, space: Space) -> Tensor:
        entries = [x * y for x in (a, b) for y in (a, b)]
        return torch.stack([entries[k] for k in (0, 1, 1, 3)]).movedim(0, -1)

    arguments: dict[str, Source | tuple[Source, ...]] = {
        "a": Buffer("a"), "b": Buffer("b"), "space": Ambient("space"),
    }  # fmt: skip
    state, jit = state_of((6, 5), "a", "b", seed=1), Jit()
    jit.run((Step("squares", squares, arguments, ("c",)),), state)
    assert jit.statistics.passes == 1
    assert jit.statistics.fallbacks == 0
