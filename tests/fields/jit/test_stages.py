"""Loops of many fields, which run in stages: each result is that of its steps, bit for bit."""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ingot.fields.jit import Jit
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Eager, Source, Step

from .cases import copied, state_of

FIELDS = 24
"""More than a loop reads at a time."""


def mixed(seed: int) -> Callable[..., list[Tensor]]:
    """Products of results of transforms, whose memory a loop may take for its own results."""
    draw = random.Random(seed)
    rows = [draw.sample(range(FIELDS), draw.randint(2, 7)) for _ in range(FIELDS)]

    def function(fields: tuple[Tensor, ...], space: Space) -> list[Tensor]:
        waves = [space.inverse(space.forward(field)) for field in fields]
        return [waves[row[0]] * waves[row[1]] - sum(waves[k] for k in row[1:]) for row in rows]

    return function


@pytest.mark.usefixtures("torch_transforms")
@pytest.mark.parametrize("sizes", [(9, 11), (40, 41)])  # less than a tile, and more
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_stages_read_nothing_that_an_earlier_one_has_overwritten(
    sizes: tuple[int, ...], dtype: torch.dtype
) -> None:
    seed = sum(sizes)
    names = [f"f{k}" for k in range(FIELDS)]
    gives = tuple(f"g{k}" for k in range(FIELDS))
    arguments: dict[str, Source | tuple[Source, ...]] = {
        "fields": tuple(map(Buffer, names)), "space": Ambient("space"),
    }  # fmt: skip
    steps = (Step("mixed", mixed(seed), arguments, gives),)
    state = state_of(sizes, *names, seed=seed, dtype=dtype)
    direct, compiled = copied(state), copied(state)
    Eager().run(steps, direct)
    jit = Jit()
    jit.run(steps, compiled)
    assert jit.statistics.fallbacks == 0
    (sequence,) = (each for parts in jit.plans.values() for _, each in parts)
    assert sequence is not None
    (bound,) = sequence.bound.values()
    assert bound is not None
    assert "stage_1" in bound.graph.program.source
    for name in gives:
        assert torch.equal(compiled.buffers[name], direct.buffers[name])


def chained(seed: int) -> Callable[..., list[Tensor]]:
    """Results that are made of others, spectra and truths among them, and a sum of all."""
    draw = random.Random(seed)
    rows = [draw.sample(range(FIELDS), draw.randint(2, 4)) for _ in range(FIELDS)]
    links = [draw.randrange(k) if k and draw.random() < 0.4 else None for k in range(FIELDS)]

    def function(fields: tuple[Tensor, ...], space: Space) -> list[Tensor]:
        found: list[Tensor] = []
        for row, link in zip(rows, links, strict=True):
            made = fields[row[0]] * fields[row[1]] - sum(fields[k] for k in row[1:])
            found.append(made if link is None else made * found[link])
        total = found[0]
        for each in found[1:]:
            total = total + each
        spectra = [space.forward(field) for field in fields[:12]]
        turned = [spectra[0] * 1j]
        for each in spectra[1:]:
            turned.append(turned[-1] * 0.5 + each)
        large = [each > 0.1 for each in found[:3]]
        return [*found, total, *turned, *large]

    return function


@pytest.mark.parametrize("seed", range(3))
def test_stages_read_results_of_earlier_ones(seed: int) -> None:
    names = [f"f{k}" for k in range(FIELDS)]
    gives = tuple(f"g{k}" for k in range(FIELDS + 1 + 12 + 3))
    arguments: dict[str, Source | tuple[Source, ...]] = {
        "fields": tuple(map(Buffer, names)), "space": Ambient("space"),
    }  # fmt: skip
    steps = (Step("chained", chained(seed), arguments, gives),)
    state = state_of((33, 40) if seed else (5, 7), *names, seed=seed)
    direct, compiled = copied(state), copied(state)
    Eager().run(steps, direct)
    jit = Jit()
    for _ in range(2):
        jit.run(steps, compiled)
        for name in gives:
            assert torch.equal(compiled.buffers[name], direct.buffers[name])
    assert jit.statistics.fallbacks == 0
