"""Slope: how the stress changes with the deformation gradient, by a tangent or by the law."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ingot.fields.computes.elasticity import STRESSES
from ingot.fields.duals import derivative_along
from ingot.fields.matrices import (
    MANDEL,
    Fields,
    add_up,
    entries,
    mandel,
    square_from_mandel,
)
from ingot.fields.spaces import Grid, Narrow, Space

__all__ = ["Convention", "Slope", "response", "slope_of", "stress_alone"]

Convention = Literal["TRANSPOSED", "DERIVATIVE"]
"""Where dP_ij/dF_kl stands in a tangent: at jikl, or at ijkl."""

EntryOfSlope = Callable[[int, int, int, int], Tensor]


def slope_of(tangent: Tensor, side: int, space: Space, convention: Convention) -> EntryOfSlope:
    """The derivative of an entry of the stress by one of the deformation gradient, as a field."""
    slopes = entries(tangent, space)
    sizes = tuple(tangent.shape[space.dim :])
    if sizes == (6, 6):
        at = {pair: k for k, (i, j) in enumerate(MANDEL) for pair in ((i, j), (j, i))}

        def mandel_slope(i: int, j: int, k: int, m: int) -> Tensor:
            halves = (i != j) + (k != m)
            found = slopes[6 * at[i, j] + at[k, m]]
            return found * 0.5 ** (halves / 2) if halves else found

        return mandel_slope
    if sizes != (side,) * 4:
        has = " x ".join(map(str, sizes)) or "one"
        needs = " x ".join([str(side)] * 4)
        raise ValueError(f"a tangent of 6 x 6 or {needs} numbers is needed, not {has}")

    def plain_slope(i: int, j: int, k: int, m: int) -> Tensor:
        row = (i, j) if convention == "DERIVATIVE" else (j, i)
        return slopes[((row[0] * side + row[1]) * side + k) * side + m]

    return plain_slope


def stress_alone(law: Callable[..., Any], **given: Any) -> Grid:
    """The stress of a law."""
    return law(**given)[0]


@dataclass(frozen=True, slots=True)
class Slope:
    """How the stress changes: by a tangent, or by the derivative of a law at every point."""

    tangent: Narrow | None
    convention: Convention
    law: Callable[..., Any] | None
    at: Narrow | None
    moduli: Fields

    def along(self, change: Fields, space: Space) -> list[Tensor]:
        """The stress that a change of the deformation gradient makes."""
        if self.tangent is not None:
            return response(self.tangent, change, space, self.convention)
        assert self.law is not None
        assert self.at is not None
        stress = functools.partial(self.stress_of, STRESSES[self.law])
        return derivative_along(stress, entries(self.at, space), change)

    def stress_of(self, law: Callable[..., list[Tensor]], f: Fields) -> list[Tensor]:
        """The stress of a law at given moduli."""
        return law(f, *self.moduli)


def response(tangent: Tensor, change: Fields, space: Space, convention: Convention) -> list[Tensor]:
    """The stress that a change of the deformation gradient makes, by the tangent."""
    side = math.isqrt(len(change))
    if tuple(tangent.shape[space.dim :]) == (6, 6):
        slopes, strain = entries(tangent, space), mandel(change)
        used = [k for k, (_, j) in enumerate(MANDEL) if j < side]
        none = torch.zeros_like(change[0])
        stress = [
            add_up([slopes[6 * row + k] * strain[k] for k in used]) if row in used else none
            for row in range(6)
        ]
        return square_from_mandel(stress, side)
    slope = slope_of(tangent, side, space, convention)
    pairs = [(i, j) for i in range(side) for j in range(side)]
    return [add_up([slope(*pair, k, m) * change[k * side + m] for k, m in pairs]) for pair in pairs]
