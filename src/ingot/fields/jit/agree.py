"""Whether what a compiled sequence gives is what its steps give, up to rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.fields.step import Buffer, Old, Source, Step, evaluate

__all__ = ["differences"]

ROUNDING = 2**12
"""How many units in the last place of the largest value two ways to compute may differ."""

AMPLIFIED = 2**10
"""How many times what a change in the last place of the inputs makes they may differ."""


def differences(
    given: Mapping[str, Tensor],
    steps: Sequence[Step],
    expected: Mapping[str, Tensor],
    look_up: Callable[[Source], Any],
) -> list[str]:
    """What differs between results and those expected, in words.

    A value that is left over where large ones cancel may be all rounding: then it also moves when
    the inputs move by their last place.
    """
    far = {n: d for n, x in given.items() if (d := distance(x, expected[n])) > allowed(expected[n])}
    if not far:
        return []
    moved = evaluate(steps, nudged(look_up))
    return [
        f"'{name}' differs by {d:.2g}"
        for name, d in far.items()
        if not d <= allowed(expected[name]) + AMPLIFIED * distance(moved[name], expected[name])
    ]


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


def nudged(look_up: Callable[[Source], Any]) -> Callable[[Source], Any]:
    """The same inputs, every other number moved by its last place."""

    def moved(source: Source) -> Any:
        value = look_up(source)
        fields = isinstance(source, Buffer | Old) and isinstance(value, Tensor)
        if not fields or not (value.is_floating_point() or value.is_complex()):
            return value
        eps = torch.finfo(value.dtype).eps
        shape = value.shape or (1,)
        signs = 1 - 2 * (torch.arange(value.numel(), device=value.device) % 2).reshape(shape)
        return value * (1 + eps * signs.reshape(value.shape).to(value.real.dtype))

    return moved
