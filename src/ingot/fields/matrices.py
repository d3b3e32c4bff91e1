"""Tensors at the points of a grid: a field with components behind space <-> one field for each.

Loops run along the points of single fields, so that is how mechanics computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ingot.fields.spaces import Grid, Narrow, Space

__all__ = [
    "MANDEL", "Fields", "add_up", "apart",
    "determinant", "entries", "eye", "inverse", "joined", "mandel", "mean",
    "product", "side_of", "square_from_mandel", "transposed",
]  # fmt: skip

MANDEL = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
"""Which entries of a symmetric matrix stand where; those off the diagonal times the root of 2."""

ROOT2 = math.sqrt(2.0)

Fields = Sequence[Tensor]
"""The entries of a matrix at every point, row by row."""


def entries(field: Narrow, space: Space) -> list[Tensor]:
    """One field for each component, row by row."""
    rank = field.dim() - space.dim
    if rank <= 0:
        raise ValueError(f"a matrix at every point is needed, not {tuple(field.shape)} numbers")
    flat = field if rank == 1 else field.flatten(space.dim)
    return list(flat.unbind(-1))


def joined(fields: Sequence[Tensor], sizes: tuple[int, ...], space: Space) -> Grid:
    """One field of these components' sizes, which lie apart in memory."""
    whole = torch.stack([field.expand(space.shape) for field in fields])
    last = whole.permute(*range(1, space.dim + 1), 0)
    return last.unflatten(-1, sizes) if len(sizes) > 1 else last


def apart(field: Narrow, dim: int) -> Tensor:
    """The same field, its components apart in memory: each lies as a scalar field does."""
    axes = tuple(range(field.dim()))
    back = (*axes[field.dim() - dim :], *axes[: field.dim() - dim])
    return field.permute(*axes[dim:], *axes[:dim]).contiguous().permute(back)


def side_of(field: Narrow, space: Space) -> int:
    """The number of rows of square matrices."""
    sizes = tuple(field.shape[space.dim :])
    if len(sizes) != 2 or sizes[0] != sizes[1] or not space.dim <= sizes[0] <= 3:
        wanted = f"{space.dim} x {space.dim}" + (" or 3 x 3" if space.dim < 3 else "")
        told = " x ".join(map(str, sizes)) or "1"
        raise ValueError(f"a matrix of {wanted} is needed at every point, not {told} numbers")
    return sizes[0]


def eye(side: int) -> list[float]:
    """The identity, row by row."""
    return [float(i == j) for i in range(side) for j in range(side)]


def mean(field: Narrow, space: Space) -> Tensor:
    """The average over all cells, with one cell along each axis."""
    return space.average(field, keepdim=True)


def transposed(a: Sequence[Tensor]) -> list[Tensor]:
    """The transposed matrix."""
    side = math.isqrt(len(a))
    return [a[j * side + i] for i in range(side) for j in range(side)]


def product(a: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
    """The product of two square matrices."""
    side = math.isqrt(len(a))
    return [
        add_up([a[i * side + k] * b[k * side + j] for k in range(side)])
        for i in range(side)
        for j in range(side)
    ]


def add_up(terms: Sequence[Tensor]) -> Tensor:
    """The sum of at least one term, from the first to the last."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def determinant(a: Sequence[Tensor]) -> Tensor:
    """The determinant of a matrix of up to three rows."""
    if len(a) == 1:
        return a[0]
    if len(a) == 4:
        return a[0] * a[3] - a[1] * a[2]
    return add_up([a[j] * minor for j, minor in enumerate(cofactors(a)[:3])])


def cofactors(a: Sequence[Tensor]) -> list[Tensor]:
    """The matrix of cofactors."""
    if len(a) == 1:
        return [torch.ones_like(a[0])]
    if len(a) == 4:
        return [a[3], -a[2], -a[1], a[0]]

    def cofactor(i: int, j: int) -> Tensor:
        p, q, r, s = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        return a[3 * p + r] * a[3 * q + s] - a[3 * p + s] * a[3 * q + r]

    return [cofactor(i, j) for i in range(3) for j in range(3)]


def inverse(a: Sequence[Tensor]) -> list[Tensor]:
    """The inverse of a matrix of up to three rows."""
    factor = 1 / determinant(a)
    return [factor * each for each in transposed(cofactors(a))]


def mandel(a: Sequence[Tensor]) -> list[Tensor]:
    """The symmetric part of a matrix in Mandel order; what a smaller one lacks is zero."""
    side = math.isqrt(len(a))
    zero = torch.zeros_like(a[0])
    return [
        zero if j >= side
        else a[i * side + i] if i == j
        else (a[i * side + j] + a[j * side + i]) / ROOT2
        for i, j in MANDEL
    ]  # fmt: skip


def square_from_mandel(s: Sequence[Tensor], side: int) -> list[Tensor]:
    """The matrix, or its first rows and columns, of a symmetric one in Mandel order."""
    at = {pair: k for k, pair in enumerate(MANDEL)}
    return [
        s[at[i, j]] if i == j else s[at[min(i, j), max(i, j)]] / ROOT2
        for i in range(side)
        for j in range(side)
    ]
