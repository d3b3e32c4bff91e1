"""Phase fields on a lattice: gradients, potential, surface forces, equilibrium."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ingot.errors import Problem
from ingot.fields.declare import Compatible, Lattice, Number, Solid, compute
from ingot.fields.lbm.hydrodynamics import weighted
from ingot.fields.lbm.operators import clear, combine, join, shift
from ingot.fields.lbm.stencils import CS2, Stencil
from ingot.fields.spaces import Grid, Space
from ingot.hit import Block

__all__ = [
    "LBMComputeChemicalPotential", "LBMComputeSurfaceForces", "LBMIsotropicGradient",
    "LBMIsotropicLaplacian", "LBMPhaseEquilibrium",
]  # fmt: skip


def check_plane(block: Block, values: dict[str, Any]) -> Iterator[Problem]:
    """The reference's kernels have two axes."""
    if values["compatible"] and values["dim"] != 2:
        message = f"{block.title} works in two dimensions, as the reference does"
        fix = "set marlin_compatible = false in it, which works in three"
        yield Problem("wrong-value", message, block.span, fix)


def neighbours(stencil: Stencil, field: Grid, space: Space, *, compatible: bool) -> list[Grid]:
    """A field at the end of each direction; the reference's has another place and no wrap."""
    if not compatible:
        return [shift(field, [-x for x in e[: stencil.dim]], space) for e in stencil.directions]
    # its kernels have rows along y from top to bottom, and are applied with rows along x
    found = {y: beyond(field, 0, -y, space) for y in (-1, 0, 1)}
    return [beyond(found[e[1]], 1, e[0], space) for e in stencil.directions]


def beyond(field: Grid, axis: int, step: int, space: Space) -> Grid:
    """A field one cell on along an axis, its end repeated."""
    if step == 0:
        return field
    moved = space.roll(field, [-step], [axis])
    if not space.reaches(axis, upper=step > 0):
        return moved
    end = -1 if step > 0 else 0
    return torch.select_scatter(moved, field.select(axis, end), axis, end)


def along_directions(stencil: Stencil, parts: Sequence[Grid], weights: Sequence[float]) -> Grid:
    """The weighted sum of a field at the ends of directions."""
    total = weights[0] * parts[0]
    for weight, part in zip(weights[1:], parts[1:], strict=True):
        if weight:
            total = total + weight * part
    return total


@compute(check=check_plane)
def LBMIsotropicGradient(
    scalar_field: Grid, solid: Solid, space: Space, *, stencil: Lattice, compatible: Compatible
) -> Grid:
    r"""The gradient of a field by the directions of the lattice, $\sum_i w_i e_i \phi_i / c_s^2$.

    scalar_field: the field
    """
    parts = neighbours(stencil, scalar_field, space, compatible=compatible)
    slopes = [
        along_directions(
            stencil, parts,
            [w * e[axis] / CS2 for w, e in zip(stencil.weights, stencil.directions, strict=True)],
        )
        for axis in range(stencil.dim)
    ]  # fmt: skip
    return clear(join(slopes), solid)


@compute(check=check_plane)
def LBMIsotropicLaplacian(
    scalar_field: Grid, space: Space, *, stencil: Lattice, compatible: Compatible
) -> Grid:
    r"""The Laplacian of a field by the directions, $2 (\sum_i w_i \phi_i - \phi) / c_s^2$.

    scalar_field: the field
    """
    parts = neighbours(stencil, scalar_field, space, compatible=compatible)
    return (along_directions(stencil, parts, stencil.weights) - scalar_field) * (2 / CS2)


@compute
def LBMComputeChemicalPotential(
    phi: Grid, laplacian_phi: Grid, *, compatible: Compatible, thickness: Number, sigma: Number
) -> Grid:
    r"""The potential of a phase field, that of a double well; the reference's has no minimum.

    $48 \sigma / D\, \phi (\phi - 1) (\phi - 1/2) - \frac32 \sigma D \nabla^2 \phi$, and as Marlin
    has it $\sigma / D\, \phi (\phi - 1) - \sigma D \nabla^2 \phi$.

    phi: the phase field, 0 in one phase and 1 in the other
    laplacian_phi: its Laplacian
    thickness: the width of the interface, $D$
    sigma: the surface tension
    """
    if compatible:
        return sigma / thickness * phi * (phi - 1) - thickness * sigma * laplacian_phi
    well = phi * (phi - 1) * (phi - 0.5)
    return 48 * sigma / thickness * well - 1.5 * thickness * sigma * laplacian_phi


@compute
def LBMComputeSurfaceForces(chemical_potential: Grid, grad_phi: Grid, solid: Solid) -> Grid:
    r"""The force of an interface on the flow, $\mu \nabla \phi$.

    chemical_potential: the potential
    grad_phi: the gradient of the phase field
    """
    return clear(chemical_potential.unsqueeze(-1) * grad_phi, solid)


SMALLEST_SLOPE = 1e-12
"""The gradient below which a field has no interface whose normal could be told."""


@compute
def LBMPhaseEquilibrium(
    phi: Grid,
    grad_phi: Grid,
    solid: Solid,
    *,
    stencil: Lattice,
    compatible: Compatible,
    tau_phi: Number,
    thickness: Number,
) -> Grid:
    r"""The distribution of a phase field at rest, $w_i \phi$, and of what keeps its interface thin.

    That is $w_i (\tau_\phi - 1/2)\, 4 \phi (1 - \phi) / D\; e_i \nabla\phi / |\nabla\phi|$, which
    the reference leaves out.

    phi: the phase field
    grad_phi: its gradient
    tau_phi: the relaxation time of its collision
    thickness: the width of the interface, $D$
    """
    found = weighted(stencil, phi)
    if not compatible:
        length = (grad_phi * grad_phi).sum(-1).sqrt()
        flat = length < SMALLEST_SLOPE
        strength = (tau_phi - 0.5) * 4 / thickness * phi * (1 - phi)
        strength = torch.where(flat, torch.zeros_like(length), strength / length)
        along = combine(grad_phi, stencil.velocities) * strength.unsqueeze(-1)
        found = found + weighted(stencil, torch.ones_like(phi)) * along
    return clear(found, solid)
