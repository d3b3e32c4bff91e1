"""Forces on the cells of a lattice, and what they add to a distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ingot.errors import Problem
from ingot.fields.blocks.options import place
from ingot.fields.declare import Compatible, Lattice, Number, Solid, compute, named
from ingot.fields.lbm.hydrodynamics import weighted
from ingot.fields.lbm.operators import clear, combine, join
from ingot.fields.lbm.stencils import CS2
from ingot.fields.spaces import Grid, Space
from ingot.hit import Block
from ingot.options import NotNegativeCount

__all__ = ["LBMApplyForces", "LBMComputeForces"]


def idle_forces(values: dict[str, Any]) -> set[str]:
    """What belongs to a force that is not enabled."""
    heavy, buoyant = values["enable_gravity"], values["enable_buoyancy"]
    needed = {
        "rho": heavy, "temperature": buoyant, "rho0": buoyant, "T0": buoyant,
        "gravity": heavy or buoyant, "gravity_direction": heavy or buoyant,
    }  # fmt: skip
    return {name for name, used in needed.items() if not used}


def check_forces(block: Block, values: dict[str, Any]) -> Iterator[Problem]:
    """Surface forces are another compute, and the direction is an axis."""
    if values["enable_surface_forces"]:
        message = f"{block.title} has no surface forces"
        fix = "use LBMComputeSurfaceForces, and leave enable_surface_forces out"
        yield Problem("wrong-value", message, place(block, "enable_surface_forces"), fix)
    axes = values["dim"]
    if values["gravity_direction"] >= axes:
        message = f"gravity_direction = {values['gravity_direction']} is no axis"
        fix = "write 0, 1 or 2" if axes == 3 else "write 0 or 1: the box has two axes"
        yield Problem("wrong-value", message, place(block, "gravity_direction"), fix)


@compute(check=check_forces, idle=idle_forces)
def LBMComputeForces(
    space: Space,
    solid: Solid,
    temperature: Grid = named("T"),  # noqa: B008  a name, which the file may change
    rho: Grid = named("rho"),  # noqa: B008
    *,
    stencil: Lattice,
    rho0: Number = 1.0,
    T0: Number = 1.0,
    gravity: Number = 0.001,
    gravity_direction: NotNegativeCount = 1,
    enable_gravity: bool = False,
    enable_buoyancy: bool = False,
    enable_surface_forces: bool = False,
) -> Grid:
    r"""Gravity $g \rho$ and buoyancy $g \rho_0 (T - T_0)$ along an axis.

    temperature: the temperature, read where `enable_buoyancy` is set
    rho: the density, read where `enable_gravity` is set
    rho0: the density at the reference temperature
    T0: the reference temperature
    gravity: the acceleration, signed
    gravity_direction: the axis: 0, 1 or 2
    enable_gravity: whether there is gravity
    enable_buoyancy: whether there is buoyancy
    enable_surface_forces: not supported: use LBMComputeSurfaceForces
    """
    none = space.full(0.0)
    force = none
    if enable_gravity:
        force = force + gravity * rho
    if enable_buoyancy:
        force = force + gravity * rho0 * (temperature - T0)
    parts = (force if axis == gravity_direction else none for axis in range(stencil.dim))
    return clear(join(list(parts)), solid)


def idle_second_order(values: dict[str, Any]) -> set[str]:
    """The velocity, which the reference does not read."""
    return {"velocity"} if values["compatible"] else set()


@compute(idle=idle_second_order)
def LBMApplyForces(
    buffer: Grid,
    rho: Grid,
    forces: Grid,
    solid: Solid,
    velocity: Grid | None = None,
    *,
    stencil: Lattice,
    compatible: Compatible,
    tau0: Number,
) -> Grid:
    r"""Adds what a force does to a distribution, $(1 - 1 / 2 \tau_0) w_i e_i F / c_s^2$.

    With a velocity the second order is added too: $w_i (e_i u\, e_i F / c_s^4 - u F / c_s^2)$.

    buffer: the distribution
    rho: the density; the reference multiplies by it
    forces: the force on every cell
    velocity: the velocity; the reference does not read it
    tau0: the relaxation time of the collision before
    """
    along = combine(forces, stencil.velocities) * (1 / CS2)
    if compatible:
        source = weighted(stencil, rho) * along
    else:
        if velocity is not None:
            turned = combine(velocity, stencil.velocities) * (1 / CS2)
            work = (velocity * forces).sum(-1, keepdim=True) * (1 / CS2)
            along = along + along * turned - work
        source = weighted(stencil, torch.ones_like(rho)) * along
    return clear(buffer + (1 - 0.5 / tau0) * source, solid)
