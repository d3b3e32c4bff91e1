"""Stencil: the directions of a lattice, their weights, and the moments in which MRT relaxes.

Moments are polynomials in the components of a direction; one number for each row relaxes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CS2", "STENCILS", "Matrix", "Stencil"]

CS2 = 1 / 3
"""The square of the speed of sound, in cells per step."""

Matrix = tuple[tuple[float, ...], ...]
"""Rows of numbers that combine components."""

Direction = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Stencil:
    """A lattice in `dim` axes with a direction for each of q numbers.

    rows: the moments of a direction; rates: what each relaxes by, 0 being conserved
    shear, momentum: the rows that set the viscosity, and those of momentum
    reference_order: the directions of the reference's moments, where they are not the lattice's
    """

    name: str
    dim: int
    directions: tuple[Direction, ...]
    weights: tuple[float, ...]
    rows: Callable[[float, float, float], tuple[float, ...]]
    rates: tuple[float, ...]
    shear: tuple[int, ...]
    momentum: tuple[int, ...]
    reference_order: tuple[Direction, ...] = ()

    @property
    def q(self) -> int:
        """The number of directions."""
        return len(self.directions)

    @property
    def velocities(self) -> Matrix:
        """A row for each direction: its components along the axes in use."""
        return tuple(tuple(map(float, e[: self.dim])) for e in self.directions)

    @property
    def opposite(self) -> tuple[int, ...]:
        """The number of the direction that points back, for each."""
        at = {e: i for i, e in enumerate(self.directions)}
        return tuple(at[-x, -y, -z] for x, y, z in self.directions)

    def entering(self, axis: int, *, upper: bool) -> tuple[int, ...]:
        """The directions that point into the box at its lower or upper end of an axis."""
        sign = -1 if upper else 1
        return tuple(i for i, e in enumerate(self.directions) if e[axis] == sign)

    def neutral(self, axis: int) -> tuple[int, ...]:
        """The directions along the faces of an axis."""
        return tuple(i for i, e in enumerate(self.directions) if e[axis] == 0)

    def relaxation(self, *, compatible: bool) -> tuple[Matrix, Matrix]:
        r"""The matrices of $M^{-1} S M$ for the rows with fixed rates, and for those of shear.

        The second is to be divided by the relaxation time.
        """
        return _relaxation(self.name, compatible)


def _transpose(matrix: Sequence[Sequence[float]]) -> Matrix:
    return tuple(zip(*matrix, strict=True))


def moments(stencil: Stencil, *, compatible: bool) -> NDArray[np.float64]:
    """The matrix of moments: a row for each, a column for each direction."""
    order = stencil.reference_order if compatible else ()
    columns = [stencil.rows(*map(float, e)) for e in order or stencil.directions]
    return np.array(_transpose(columns))


@functools.cache
def _relaxation(name: str, compatible: bool) -> tuple[Matrix, Matrix]:
    stencil = STENCILS[name]
    m = moments(stencil, compatible=compatible)
    back = np.linalg.inv(m)
    # forces are applied with the relaxation time, so momentum must relax with it
    rows = stencil.shear if compatible else (*stencil.shear, *stencil.momentum)
    shear = np.isin(np.arange(stencil.q), rows)
    parts = (np.where(shear, 0.0, stencil.rates), np.where(shear, 1.0, 0.0))
    found = (back @ (rates[:, None] * m) for rates in parts)
    # what rounding leaves of a zero would be read from memory and added all the same
    fixed, sheared = (np.where(np.abs(x) < 1e-14, 0.0, x) for x in found)
    return tuple(map(tuple, fixed.tolist())), tuple(map(tuple, sheared.tolist()))


def d2q9_rows(x: float, y: float, z: float) -> tuple[float, ...]:
    s = x * x + y * y
    return (
        1, -4 + 3 * s, 4 - 10.5 * s + 4.5 * s * s, x, (3 * s - 5) * x, y, (3 * s - 5) * y,
        x * x - y * y, x * y,
    )  # fmt: skip


def d3q19_rows(x: float, y: float, z: float) -> tuple[float, ...]:
    x2, y2, z2 = x * x, y * y, z * z
    s = x2 + y2 + z2
    along, across, odd = 3 * z2 - s, y2 - x2, 5 * s - 9
    return (
        1, -30 + 19 * s, (24 - 53 * s + 21 * s * s) / 2, z, odd * z, y, odd * y, x, odd * x,
        along, (3 * s - 5) * along, across, (3 * s - 5) * across, y * z, x * y, x * z,
        (y2 - x2) * z, (x2 - z2) * y, (z2 - y2) * x,
    )  # fmt: skip


def d3q27_rows(x: float, y: float, z: float) -> tuple[float, ...]:
    x2, y2, z2 = x * x, y * y, z * z
    s, pairs = x2 + y2 + z2, x2 * y2 + y2 * z2 + x2 * z2
    return (
        1, x, y, z, s - 2, 2 * x2 - y2 - z2, y2 - z2, x * y, y * z, x * z,
        x * (3 * y2 + 3 * z2 - 4), y * (3 * x2 + 3 * z2 - 4), z * (3 * x2 + 3 * y2 - 4),
        x * (4 - 6 * y2 - 6 * z2 + 9 * y2 * z2), y * (4 - 6 * x2 - 6 * z2 + 9 * x2 * z2),
        z * (4 - 6 * x2 - 6 * y2 + 9 * x2 * y2), 4 - 4 * s + 3 * pairs,
        -8 + 12 * s - 18 * pairs + 27 * x2 * y2 * z2,
        2 * y2 + 2 * z2 - 4 * x2 + 3 * x2 * y2 + 3 * x2 * z2 - 6 * y2 * z2,
        2 * z2 - 2 * y2 + 3 * x2 * y2 - 3 * x2 * z2,
        x * y * (3 * z2 - 2), y * z * (3 * x2 - 2), x * z * (3 * y2 - 2),
        x * (y2 - z2), y * (z2 - x2), z * (x2 - y2), x * y * z,
    )  # fmt: skip


def directions(*axes: str) -> tuple[Direction, ...]:
    """Directions from a string of signs for each axis."""
    found = [tuple("-0+".index(sign) - 1 for sign in signs) for signs in zip(*axes, strict=True)]
    return tuple((x, y, z) for x, y, z in found)


D2Q9 = Stencil(
    "D2Q9", 2,
    directions("0+0-0+--+", "00+0-++--", "000000000"),
    (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4),
    d2q9_rows,
    tuple(1 / rate for rate in (1, 1.1, 1.2, 1, 1, 1, 1, 1, 1)),
    (7, 8),
    (3, 5),
)  # fmt: skip

D3Q19 = Stencil(
    "D3Q19", 3,
    directions("00000+-0000++--++--", "000+-00++--0000+-+-", "0+-0000+-+-+-+-0000"),
    (1 / 3, *(1 / 18,) * 6, *(1 / 36,) * 12),
    d3q19_rows,
    tuple(1 / rate for rate in (
        1, 1.19, 1.4, 1.4, 1, 1, 1, 1, 1, 1, 1.4, 1, 1.4, 1, 1, 1, 1.98, 1.98, 1.98,
    )),
    (9, 11, 13, 14, 15),
    (3, 5, 7),
)  # fmt: skip

D3Q27 = Stencil(
    "D3Q27", 3,
    directions(
        "0+-0000++--++--0000++++----", "000+-00+-+-0000++--+--++--+",
        "00000+-0000+-+-+-+-++--++--",
    ),
    (8 / 27, *(2 / 27,) * 6, *(1 / 54,) * 12, *(1 / 216,) * 8),
    d3q27_rows,
    (0.0,) * 4 + tuple(1 / rate for rate in (
        1.54, *(1.0,) * 5, *(1.5,) * 3, *(1.83,) * 3, 1.4, 1.61, *(1.98,) * 5, *(1.74,) * 4,
    )),
    (5, 6, 7, 8, 9),
    (1, 2, 3),
    directions(
        "+0-000+--++0-0+0-0+--++--+0", "0+0-00++--0+0-0+0-++--++--0",
        "0000+-0000++++----++++----0",
    ),
)  # fmt: skip

STENCILS = {stencil.name: stencil for stencil in (D2Q9, D3Q19, D3Q27)}
