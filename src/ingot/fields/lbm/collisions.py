"""Collisions: distributions relax towards equilibrium, at one rate, by moments, with eddies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ingot.fields.declare import Compatible, Lattice, Number, Solid, compute
from ingot.fields.lbm.operators import clear, combine
from ingot.fields.lbm.stencils import CS2, Matrix, Stencil
from ingot.fields.spaces import Grid, Space

__all__ = [
    "LBMBGKCollision", "LBMMRTCollision", "LBMSmagorinskyCollision", "LBMSmagorinskyMRTCollision",
]  # fmt: skip


def departure(stencil: Stencil, f: Grid, feq: Grid, *, projection: bool) -> Grid:
    """What a distribution is beside its equilibrium, or the part of it that is a stress."""
    rest = f - feq
    return combine(rest, hermite(stencil)) if projection else rest


def hermite(stencil: Stencil) -> Matrix:
    r"""$w_i / 2 c_s^2 \sum_{ab} e_{ja} e_{jb} (e_{ia} e_{ib} / c_s^2 - \delta_{ab})$."""
    rows = []
    for w, e in zip(stencil.weights, stencil.directions, strict=True):
        # three axes also where two are in use
        tensor = [[e[a] * e[b] / CS2 - (a == b) for b in range(3)] for a in range(3)]
        rows.append(
            tuple(
                w / (2 * CS2)
                * sum(d[a] * d[b] * tensor[a][b] for a in range(3) for b in range(3))
                for d in stencil.directions
            )
        )  # fmt: skip
    return tuple(rows)


def relax(stencil: Stencil, rest: Grid, tau: Tensor | float, *, compatible: bool) -> Grid:
    r"""$M^{-1} S M$ of a departure, the rows of shear relaxing by $1 / \tau$."""
    fixed, shear = stencil.relaxation(compatible=compatible)
    if isinstance(tau, float):
        both = zip(fixed, shear, strict=True)
        whole = tuple(tuple(a + b / tau for a, b in zip(*rows, strict=True)) for rows in both)
        return combine(rest, whole)
    return combine(rest, fixed) + combine(rest, shear) * (1 / tau)


def stress_products(stencil: Stencil) -> Matrix:
    """The rows that sum a departure to its stress, those beside the diagonal counted twice."""
    pairs = [(a, b) for a in range(stencil.dim) for b in range(a, stencil.dim)]
    return tuple(
        tuple((1.0 if a == b else math.sqrt(2.0)) * e[a] * e[b] for e in stencil.directions)
        for a, b in pairs
    )


def reference_product(stencil: Stencil) -> tuple[float, ...]:
    """What the reference takes eddies from: one product of the components of each direction."""
    return tuple(float(math.prod(e[: stencil.dim])) for e in stencil.directions)


def eddy_time(
    stencil: Stencil, f: Grid, rest: Grid, space: Space, tau0: Tensor | float,
    cs: Tensor | float, *, compatible: bool,
) -> Grid:  # fmt: skip
    r"""The relaxation time with eddies, which solves $\tau = \tau_0 + C_s Q / c_s^4 \rho \tau$."""
    if compatible:
        product, rho = combine(rest, (reference_product(stencil),)), space.mean(f.sum(-1))
        size = product.squeeze(-1).abs()
    else:
        stress = combine(rest, stress_products(stencil))
        size, rho = (0.5 * (stress * stress).sum(-1)).sqrt(), f.sum(-1)
    # solid cells hold nothing
    rho = torch.where(rho == 0, torch.ones_like(rho), rho)
    root = (tau0 * tau0 + (4 / CS2**2) * cs * size / rho).sqrt()
    return (0.5 * (tau0 + root)).unsqueeze(-1)


@compute
def LBMBGKCollision(
    f: Grid,
    feq: Grid,
    solid: Solid,
    *,
    stencil: Lattice,
    tau0: Number,
    Cs: Number = 0.1,
    projection: bool = False,
) -> Grid:
    r"""Relaxation at one rate, $f^{eq} + (1 - 1 / \tau_0) (f - f^{eq})$.

    f: the distribution
    feq: its equilibrium
    tau0: the relaxation time
    Cs: accepted, without effect: there are no eddies
    projection: whether only the stress of the departure is kept
    """
    rest = departure(stencil, f, feq, projection=projection)
    return clear(feq + (1 - 1 / tau0) * rest, solid)


@compute
def LBMMRTCollision(
    f: Grid,
    feq: Grid,
    solid: Solid,
    *,
    stencil: Lattice,
    compatible: Compatible,
    tau0: Number,
    Cs: Number = 0.1,
    projection: bool = False,
) -> Grid:
    r"""Relaxation of moments, $f^{eq} + (1 - M^{-1} S M) (f - f^{eq})$.

    f: the distribution
    feq: its equilibrium
    tau0: the relaxation time of shear
    Cs: accepted, without effect: there are no eddies
    projection: whether only the stress of the departure is kept
    """
    rest = departure(stencil, f, feq, projection=projection)
    return clear(feq + rest - relax(stencil, rest, tau0, compatible=compatible), solid)


def idle_eddies(values: dict[str, Any]) -> set[str]:
    """Eddies, where the sum that the reference takes them from is zero for any departure."""
    if values["stencil"] is None or not values["compatible"]:
        return set()
    row = np.array(reference_product(values["stencil"]))
    row = row @ np.array(hermite(values["stencil"])) if values["projection"] else row
    return {"Cs"} if np.allclose(row, 0) else set()


@compute(idle=idle_eddies)
def LBMSmagorinskyCollision(
    f: Grid,
    feq: Grid,
    solid: Solid,
    space: Space,
    *,
    stencil: Lattice,
    compatible: Compatible,
    tau0: Number,
    Cs: Number = 0.1,
    projection: bool = False,
) -> Grid:
    r"""Relaxation at the rate of molecules and eddies, whose viscosity is $C_s |S|$.

    f: the distribution
    feq: its equilibrium
    tau0: the relaxation time without eddies
    Cs: the strength of eddies, a length squared
    projection: whether only the stress of the departure is kept
    """
    rest = departure(stencil, f, feq, projection=projection)
    tau = eddy_time(stencil, f, rest, space, tau0, Cs, compatible=compatible)
    return clear(feq + (1 - 1 / tau) * rest, solid)


@compute(idle=idle_eddies)
def LBMSmagorinskyMRTCollision(
    f: Grid,
    feq: Grid,
    solid: Solid,
    space: Space,
    *,
    stencil: Lattice,
    compatible: Compatible,
    tau0: Number,
    Cs: Number = 0.1,
    projection: bool = False,
) -> Grid:
    r"""Relaxation of moments, that of shear at the rate of molecules and eddies.

    f: the distribution
    feq: its equilibrium
    tau0: the relaxation time of shear without eddies
    Cs: the strength of eddies, a length squared
    projection: whether only the stress of the departure is kept
    """
    rest = departure(stencil, f, feq, projection=projection)
    tau = eddy_time(stencil, f, rest, space, tau0, Cs, compatible=compatible)
    return clear(feq + rest - relax(stencil, rest, tau, compatible=compatible), solid)
