"""Computes on spectra: transforms, gradients, factors of operators, filters, and the Laplacian."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch

from ingot.errors import Problem
from ingot.fields.blocks.options import place
from ingot.fields.declare import compute
from ingot.fields.spaces import Grid, Narrow, Space, Spectrum
from ingot.hit import Block
from ingot.options import Positive

__all__ = [
    "DeAliasingTensor", "FFTGradient", "FFTGradientSquare", "FiniteDifferenceLaplacian",
    "ForwardFFT", "GradientTensor", "InverseFFT", "ReciprocalLaplacianFactor",
    "ReciprocalLaplacianSquareFactor", "SwiftHohenbergLinear",
]  # fmt: skip


@compute
def ForwardFFT(input: Grid, space: Space) -> Spectrum:
    """The spectrum of a field.

    input: the field
    """
    return space.forward(input)


@compute
def InverseFFT(input: Spectrum, space: Space) -> Grid:
    """The field of a spectrum.

    input: the spectrum
    """
    return space.inverse(input)


@compute
def ReciprocalLaplacianFactor(space: Space, *, factor: float = 1.0) -> Spectrum:
    r"""The factor that a Laplacian is on a spectrum, $-k^2$, times a number.

    factor: the number
    """
    return -space.k2 * factor


@compute
def ReciprocalLaplacianSquareFactor(space: Space, *, factor: float = 1.0) -> Spectrum:
    r"""The factor that a Laplacian applied twice is on a spectrum, $k^4$, times a number.

    factor: the number
    """
    return space.k2 * space.k2 * factor


@compute
def SwiftHohenbergLinear(space: Space, *, r: float = -0.5, alpha: float = 1.0) -> Spectrum:
    r"""The linear operator of a phase-field crystal, $r - \alpha^2 (1 - k^2)^2$.

    r: the driving force, $r$
    alpha: the strength of the operator, $\alpha$
    """
    return r - alpha * alpha * (1 - space.k2) ** 2


def idle_filter(values: dict[str, Any]) -> set[str]:
    """What shapes a smooth filter, where it is sharp."""
    return {"p", "alpha"} if values["method"] == "SHARP" else set()


@compute(idle=idle_filter)
def DeAliasingTensor(
    space: Space, *, method: Literal["SHARP", "HOULI"], p: Positive = 16.0, alpha: float = 36.0
) -> Spectrum:
    r"""A filter that damps high wavenumbers.

    method: cut off above two thirds of the largest wavenumber, or $e^{-\alpha \sum (k/K)^p}$
    p: the exponent, $p$
    alpha: the strength, $\alpha$
    """
    parts = []
    for wave in space.waves[: space.dim]:
        largest = space.largest(wave.abs())
        if method == "SHARP":
            parts.append((wave.abs() <= largest * 2 / 3).to(space.k2.dtype))
        else:
            safe = torch.where(largest == 0, torch.ones_like(largest), largest)
            parts.append((wave.abs() / safe) ** p)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole * part if method == "SHARP" else whole + part
    return whole if method == "SHARP" else torch.exp(-alpha * whole)


def check_direction(block: Block, values: dict[str, Any]) -> Iterator[Problem]:
    """A slope along an axis that the box has; along another it would be 0 everywhere."""
    axes = "XYZ"[: values["dim"]]
    if values["direction"] not in axes:
        message = f"a box of dim = {len(axes)} has no axis {values['direction']}"
        fix = f"choose one of: {', '.join(axes)}"
        yield Problem("wrong-value", message, place(block, "direction"), fix)


@compute(check=check_direction)
def FFTGradient(
    input: Narrow,
    space: Space,
    *,
    direction: Literal["X", "Y", "Z"],
    input_is_reciprocal: bool = False,
) -> Grid:
    """The slope of a field along an axis.

    input: the field, or its spectrum
    direction: the axis
    input_is_reciprocal: whether the input is a spectrum
    """
    spectrum = input if input_is_reciprocal else space.forward(input)
    return space.derivative(spectrum, "XYZ".index(direction))


@compute
def FFTGradientSquare(
    input: Narrow, space: Space, *, factor: float = 1.0, input_is_reciprocal: bool = False
) -> Grid:
    """The squared length of the gradient of a field, times a number.

    input: the field, or its spectrum
    factor: the number
    input_is_reciprocal: whether the input is a spectrum
    """
    spectrum = input if input_is_reciprocal else space.forward(input)
    total = space.derivative(spectrum, 0) ** 2
    for axis in range(1, space.dim):
        total = total + space.derivative(spectrum, axis) ** 2
    return factor * total


@compute
def GradientTensor(input: Narrow, space: Space, *, input_is_reciprocal: bool = False) -> Grid:
    """The gradient of a field: always three components, those of unused axes being 0.

    input: the field, or its spectrum
    input_is_reciprocal: whether the input is a spectrum
    """
    spectrum = input if input_is_reciprocal else space.forward(input)
    slopes = [space.derivative(spectrum, axis) for axis in range(space.dim)]
    none = torch.zeros_like(slopes[0])
    return torch.stack([*slopes, none, none][:3], dim=-1)


STENCILS = {
    "3": ((0, -2.0), (1, 1.0)),
    "5": ((0, -5 / 2), (1, 4 / 3), (2, -1 / 12)),
}
"""The weight at each distance of a second difference."""


@compute
def FiniteDifferenceLaplacian(
    input: Grid, space: Space, *, factor: float = 1.0, stencil_width: Literal["3", "5"] = "3"
) -> Grid:
    """The Laplacian of a field on the periodic grid by second differences, times a number.

    input: the field
    factor: the number
    stencil_width: how many points each difference has
    """
    total = torch.zeros_like(input)
    for axis in range(space.dim):
        difference = torch.zeros_like(input)
        for distance, weight in STENCILS[stencil_width]:
            shifted = input if distance == 0 else (
                space.roll(input, [distance], [axis]) + space.roll(input, [-distance], [axis])
            )  # fmt: skip
            difference = difference + weight * shifted
        total = total + difference / space.spacing[axis] ** 2
    return total * factor
