"""Matrices at points by wavenumbers: projection on gradients, divergence, homogeneous bodies."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ingot.fields.computes.mechanics import is_nyquist, smooth_waves
from ingot.fields.computes.slopes import Convention, slope_of
from ingot.fields.matrices import Fields, add_up, inverse, mean
from ingot.fields.spaces import Narrow, Space

__all__ = [
    "displaced", "divergence", "dot", "dot_of_spectra", "gradients", "homogeneous", "projected",
]  # fmt: skip


def projected(fields: Fields, waves: Fields, space: Space) -> list[Tensor]:
    """The part of a field of matrices that is the gradient of a displacement without mean."""
    return gradients(displaced(divergence(fields, waves, space), (), waves), waves, space)


def divergence(fields: Fields, waves: Fields, space: Space) -> list[Tensor]:
    """The spectra of the divergence of the rows, less its imaginary factor."""
    side = math.isqrt(len(fields))
    return [
        add_up([waves[j] * space.forward(fields[i * side + j]) for j in range(len(waves))])
        for i in range(side)
    ]


def gradients(spectra: Fields, waves: Fields, space: Space) -> list[Tensor]:
    """The gradient of fields by their spectra, less its imaginary factor."""
    side, none = len(spectra), torch.zeros_like(space.axes[0]).expand(space.shape)
    return [
        space.inverse(each * waves[j]) if j < len(waves) else none
        for each in spectra
        for j in range(side)
    ]


def displaced(forces: Fields, green: Fields, waves: Fields) -> list[Tensor]:
    """The displacements of a homogeneous body by forces; without one, of a Laplacian."""
    if not green:
        squares = add_up([wave * wave for wave in waves])
        factor = 1 / torch.where(squares == 0, 1.0, squares)
        return [each * factor for each in forces]
    side = len(forces)
    return [add_up([green[i * side + k] * forces[k] for k in range(side)]) for i in range(side)]


def homogeneous(
    tangent: Narrow, space: Space, *, side: int, convention: Convention
) -> list[Tensor]:
    """The inverse acoustic tensor of a homogeneous body with the mean of the tangent."""
    waves = smooth_waves(space)
    slope = slope_of(mean(tangent, space), side, space, convention)
    axes = range(len(waves))
    both = {(j, m): waves[j] * waves[m] for j in axes for m in axes}
    still = add_up([both[j, j] for j in axes]) == 0
    shape = space.spectrum_shape
    acoustic: list[Tensor] = []
    for i in range(side):
        for k in range(side):
            terms = [slope(i, j, k, m) * both[j, m] for j in axes for m in axes]
            acoustic.append(torch.where(still, float(i == k), add_up(terms)).expand(shape))
    return inverse(acoustic)


def dot(a: Fields, b: Fields, space: Space) -> Tensor:
    """The sum over all points of the products of entries."""
    return space.sum(add_up([x * y for x, y in zip(a, b, strict=True)]))


def dot_of_spectra(a: Fields, b: Fields, weight: Tensor, space: Space) -> Tensor:
    """The same of fields by their spectra (Parseval), each wavenumber with a weight."""
    parts = [x.real * y.real + x.imag * y.imag for x, y in zip(a, b, strict=True)]
    return space.sum(add_up(parts) * (weight * stored_for(space))) / space.cells


def stored_for(space: Space) -> Tensor:
    """How many wavenumbers of the whole spectrum each that is stored stands for.

    Of two conjugate ones one is stored, along the axis that is halved.
    """
    halved = {"NONE": space.dim - 1, "FFT_PENCIL": 0}.get(space.mode)
    if halved is None:
        return torch.ones_like(space.waves[0])
    wave = space.waves[halved]
    alone = (wave == 0) | is_nyquist(wave, space.spacing[halved])
    return 2 - alone.to(wave.dtype)
