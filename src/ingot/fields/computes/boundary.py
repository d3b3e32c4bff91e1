"""The smooth boundary method: diffusion and reaction inside a region that a field marks."""

from __future__ import annotations

import torch
from torch import Tensor

from ingot.fields.declare import Prepared, compute
from ingot.fields.spaces import Grid, Space, Spectrum

__all__ = ["ReciprocalAllenCahn", "ReciprocalMatDiffusion"]


def region(psi: Grid) -> tuple[Tensor]:
    """Where the marking field is above zero."""
    return (psi > 0,)


def region_slopes(psi: Grid, space: Space) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""The region, and $\nabla\psi / \psi$ in it along each axis."""
    inside = psi > 0
    safe = torch.where(inside, psi, torch.ones_like(psi))
    spectrum = space.forward(psi)
    slopes = [
        torch.where(inside, space.derivative(spectrum, axis) / safe, torch.zeros_like(psi))
        for axis in range(space.dim)
    ]
    slopes += [torch.zeros_like(space.axes[2])] * (3 - space.dim)
    return inside, slopes[0], slopes[1], slopes[2]


@compute(prepare=(region, 1), always="always_update_psi")
def ReciprocalAllenCahn(
    dF_chem_deta: Grid,
    L: Grid,
    psi: Grid,
    space: Space,
    *,
    prepared: Prepared,
    always_update_psi: bool = False,
) -> Spectrum:
    r"""The spectrum of $-L\, \partial F / \partial \eta$ inside the region where $\psi > 0$.

    dF_chem_deta: the driving force
    L: the mobility
    psi: the field that marks the region
    always_update_psi: whether the region moves; else it is found once
    """
    rate = -L * dF_chem_deta
    return space.forward(torch.where(prepared[0], rate, torch.zeros_like(rate)))


@compute(prepare=(region_slopes, 4), always="always_update_psi")
def ReciprocalMatDiffusion(
    chemical_potential: Grid,
    mobility: Grid,
    psi: Grid,
    space: Space,
    *,
    prepared: Prepared,
    always_update_psi: bool = False,
) -> Spectrum:
    r"""The spectrum of $\frac1\psi \nabla\cdot(\psi M \nabla\mu)$ inside the region of $\psi > 0$.

    chemical_potential: the potential whose gradient drives the flux
    mobility: the mobility
    psi: the field that marks the region
    always_update_psi: whether the region moves; else it is found once
    """
    inside, *slopes = prepared
    active = mobility * inside
    potential = space.forward(chemical_potential)
    fluxes = [active * space.derivative(potential, axis) for axis in range(space.dim)]
    divergence = space.forward(sum((s * j for s, j in zip(slopes, fluxes, strict=False))))  # type: ignore[reportArgumentType]
    for axis, flux in enumerate(fluxes):
        divergence = divergence + 1j * space.waves[axis] * space.forward(flux)
    return divergence
