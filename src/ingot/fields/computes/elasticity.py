"""Laws of elasticity at the points of a grid, with their tangents."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ingot.fields.declare import compute
from ingot.fields.matrices import (
    add_up,
    entries,
    eye,
    joined,
    mandel,
    product,
    side_of,
    square_from_mandel,
    transposed,
)
from ingot.fields.spaces import Grid, Narrow, Space

__all__ = ["STRESSES", "ComputeSmallStrain", "HyperElasticIsotropic", "SmallStrainIsotropic"]

TANGENT = {"tangent_operator": "dstressdstrain"}
"""Where a tangent is written to unless a file says so."""


@compute(gives=("buffer", "tangent_operator"), unless=TANGENT)
def HyperElasticIsotropic(F: Narrow, K: Narrow, mu: Narrow, space: Space) -> tuple[Grid, Grid]:
    r"""The first Piola-Kirchhoff stress of St. Venant and Kirchhoff, $P = F S$.

    $S = \lambda\, \mathrm{tr}(E) I + 2 \mu E$ with $E = (F^T F - I) / 2$ and
    $\lambda = K - 2 \mu / 3$; in two dimensions that is plane strain.

    F: the deformation gradient
    K: the bulk modulus
    mu: the shear modulus
    tangent_operator: what the tangent is written to, $K_{jikl} = \partial P_{ij}/\partial F_{kl}$
    """
    side = side_of(F, space)
    pairs = [(i, j) for i in range(side) for j in range(side)]
    f = entries(F, space)
    lame = K - 2 * mu / 3
    second = second_stress(f, K, mu)
    left = [mu * b for b in product(f, transposed(f))]
    wide, stiff = [lame * each for each in f], [mu * each for each in f]

    @functools.cache
    def slope(i: int, j: int, k: int, m: int) -> Tensor:
        """The derivative of an entry of the stress by one of the deformation gradient."""
        if (i, j) > (k, m):
            return slope(k, m, i, j)  # an energy's second derivatives commute
        found = wide[i * side + j] * f[k * side + m] + stiff[i * side + m] * f[k * side + j]
        found = found + second[m * side + j] if i == k else found
        return found + left[i * side + k] if j == m else found

    tangent = [slope(i, j, *each) for j, i in pairs for each in pairs]
    stress = joined(product(f, second), (side, side), space)
    return stress, joined(tangent, (side,) * 4, space)


def second_stress(f: Sequence[Tensor], bulk: Tensor, shear: Tensor) -> list[Tensor]:
    """The second Piola-Kirchhoff stress of St. Venant and Kirchhoff."""
    side = math.isqrt(len(f))
    one, lame = eye(side), bulk - 2 * shear / 3
    right = product(transposed(f), f)
    strain = [(c - d) / 2 for c, d in zip(right, one, strict=True)]
    volume = lame * add_up([strain[i * side + i] for i in range(side)])
    return [2 * shear * e + (volume if d else 0) for e, d in zip(strain, one, strict=True)]


def first_stress(f: Sequence[Tensor], bulk: Tensor, shear: Tensor) -> list[Tensor]:
    """The first Piola-Kirchhoff stress of St. Venant and Kirchhoff."""
    return product(f, second_stress(f, bulk, shear))


@compute
def ComputeSmallStrain(F: Narrow, space: Space) -> Grid:
    r"""The strain $(F + F^T)/2 - I$, six numbers in Mandel order; none along an axis without F.

    F: the deformation gradient
    """
    side = side_of(F, space)
    moved = [f - d for f, d in zip(entries(F, space), eye(side), strict=True)]
    return joined(mandel(moved), (6,), space)


@compute(gives=("buffer", "tangent_operator"), unless=TANGENT)
def SmallStrainIsotropic(F: Narrow, K: Narrow, mu: Narrow, space: Space) -> tuple[Grid, Grid]:
    r"""The stress of isotropic elasticity for small strains, six numbers in Mandel order.

    $\sigma = \lambda\, \mathrm{tr}(\varepsilon) I + 2 \mu \varepsilon$ with
    $\varepsilon = (F + F^T)/2 - I$; in two dimensions that is plane strain.

    F: the deformation gradient
    K: the bulk modulus
    mu: the shear modulus
    tangent_operator: what the tangent is written to, six by six numbers
    """
    side_of(F, space)
    stress = small_stress(entries(F, space), K, mu)
    lame = K - 2 * mu / 3
    none = torch.zeros_like(lame)
    rows = [
        (lame if max(i, j) < 3 else none) + (2 * mu if i == j else 0)
        for i in range(6)
        for j in range(6)
    ]
    return joined(stress, (6,), space), joined(rows, (6, 6), space)


def small_stress(f: Sequence[Tensor], bulk: Tensor, shear: Tensor) -> list[Tensor]:
    """The stress of isotropic elasticity for small strains, in Mandel order."""
    one, lame = eye(math.isqrt(len(f))), bulk - 2 * shear / 3
    strain = mandel([each - d for each, d in zip(f, one, strict=True)])
    volume = lame * add_up(strain[:3])
    return [2 * shear * e + (volume if k < 3 else 0) for k, e in enumerate(strain)]


def small_stress_matrix(f: Sequence[Tensor], bulk: Tensor, shear: Tensor) -> list[Tensor]:
    """The same as a matrix, or its first rows and columns."""
    return square_from_mandel(small_stress(f, bulk, shear), math.isqrt(len(f)))


STRESSES: dict[Callable[..., object], Callable[..., list[Tensor]]] = {
    HyperElasticIsotropic: first_stress,
    SmallStrainIsotropic: small_stress_matrix,
}
"""Laws by the entries of their stress at given moduli, whose derivative their tangent is."""
