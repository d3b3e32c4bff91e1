"""Whether what a compiled sequence gives is what its steps give, up to rounding.

Large boxes are compared on a corner of them, so that comparing takes neither time nor memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.fields.jit.schema import Schema
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Source, Step, evaluate
from ingot.graphs import torch_private

__all__ = ["corner", "differences"]

ROUNDING = 2**12
"""How many units in the last place of the largest value two ways to compute may differ."""

LARGE = 2**18
"""The number of cells from which a corner of a box is compared."""

CORNER = {1: 4096, 2: 64, 3: 16}
"""How many cells of each axis belong to the corner, by the number of axes."""

AMPLIFIED = 2**10
"""How many times what a change in the last place of every number makes they may differ."""

TRIES = 3
"""How often numbers are moved: two moves of one number may cancel by chance."""


def differences(
    given: Mapping[str, Tensor],
    steps: Sequence[Step],
    expected: Mapping[str, Tensor],
    look_up: Callable[[Source], Any],
) -> list[str]:
    """What differs between results and those expected, in words.

    A value that is left over where large ones cancel may be all rounding: then it also moves where
    every operation rounds otherwise. One that moves without that, such as a draw, is no rounding.
    """
    far = {n: d for n, x in given.items() if (d := distance(x, expected[n])) > allowed(expected[n])}
    if not far:
        return []
    again = evaluate(steps, look_up)
    drawn = {name for name in far if distance(again[name], expected[name]) > allowed(again[name])}
    others = [rounded(steps, look_up, seed) for seed in range(TRIES)]
    moves = {name: max(distance(each[name], expected[name]) for each in others) for name in far}
    return [
        f"'{name}' differs by {d:.2g}"
        for name, d in far.items()
        if name in drawn or not d <= allowed(expected[name]) + AMPLIFIED * moves[name]
    ]


def corner(
    inputs: Sequence[Tensor], sources: Sequence[Source], schema: Schema, space: Space
) -> tuple[list[Tensor], Callable[[Source], Any]] | None:
    """The inputs of a sequence on a corner of a large box, and a way to look them up.

    What a sequence makes of them means nothing, but it must make the same of them as its steps.
    """
    if space.share is not None or math.prod(space.shape) < LARGE:
        return None
    grid = {f"n{axis}": min(size, CORNER[space.dim]) for axis, size in enumerate(space.shape)}
    sizes = grid | {f"k{name[1:]}": size // 2 + 1 for name, size in grid.items()}
    cut = [
        x[tuple(slice(sizes[n]) if isinstance(n, str) else slice(None) for n in shape)].contiguous()
        for x, shape in zip(inputs, schema.shapes, strict=True)
    ]
    count = len(cut) - len(sources)
    values: dict[Source, Any] = dict(zip(sources, cut[count:], strict=True))
    values[Ambient("space")] = space.rebuilt(cut[:count])
    return cut, values.__getitem__


def distance(a: Tensor, b: Tensor) -> float:
    """The largest difference; infinite where shapes, types or what is not finite differ."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return torch.inf
    if not a.numel():
        return 0.0
    if not (a.is_floating_point() or a.is_complex()):
        return 0.0 if torch.equal(a, b) else torch.inf
    odd = ~(torch.isfinite(a) & torch.isfinite(b))
    if bool(odd.any()):
        if not torch.equal(a[odd].nan_to_num(1.5), b[odd].nan_to_num(1.5)):
            return torch.inf
        a, b = a[~odd], b[~odd]
    return float((a - b).abs().max()) if a.numel() else 0.0


def allowed(x: Tensor) -> float:
    """How far results may lie from these."""
    if not x.numel() or not (x.is_floating_point() or x.is_complex()):
        return 0.0
    sizes = x.abs()
    largest = float(torch.where(torch.isfinite(sizes), sizes, 0).max())
    return ROUNDING * torch.finfo(x.dtype).eps * largest


def rounded(
    steps: Sequence[Step], look_up: Callable[[Source], Any], seed: int
) -> dict[str, Tensor]:
    """What steps give with every number that operations read moved up or down by its last place.

    Each use of a number moves by itself, as rounding does: what is left where two uses of one
    number cancel is all rounding. Views and writes are left alone, since memory is shared there.
    """
    dice = torch.Generator().manual_seed(seed)

    def run(operation: Any, *args: Any, **kwargs: Any) -> Any:
        schema = torch_private.schema_of(operation)
        if schema is None or any(each.alias_info is not None for each in schema.arguments):
            return operation(*args, **kwargs)
        return operation(*map(move, args), **kwargs)

    def move(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(move, value))
        if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        signs = 2 * torch.randint(2, value.shape, generator=dice).to(value.device) - 1
        return value * (1 + torch.finfo(value.dtype).eps * signs.to(value.real.dtype))

    with torch_private.run_operations(run):
        return evaluate(steps, look_up)
