"""Density, velocity and speed of distributions, the equilibrium of both, and what starts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ingot.errors import Problem
from ingot.fields.blocks.options import place
from ingot.fields.declare import Lattice, Number, Numbers, Past, Solid, compute, named
from ingot.fields.lbm.operators import clear, combine, join
from ingot.fields.lbm.stencils import CS2, Stencil
from ingot.fields.spaces import Grid, Narrow, Space
from ingot.hit import Block

__all__ = [
    "RESIDUAL", "LBMComputeDensity", "LBMComputeResidual", "LBMComputeVelocity",
    "LBMComputeVelocityMagnitude", "LBMConstantTensor", "LBMEquilibrium", "LBMStackTensors",
    "equilibrium",
]  # fmt: skip

RESIDUAL = "#residual"
"""Where the change of the speed over the last step of the lattice is kept."""


@compute
def LBMConstantTensor(space: Space, *, constants: Numbers) -> Grid:
    """The same numbers everywhere.

    constants: one for each component, or the names of constants; one alone fills a scalar field
    """
    if len(constants) == 1:
        return space.full(constants[0])
    return join([space.full(each) for each in constants])


@compute
def LBMStackTensors(inputs: tuple[Narrow, ...], space: Space) -> Grid:
    """Scalar fields as the components of one.

    inputs: the fields, in order
    """
    return join([space.whole(each) for each in inputs])


def weighted(stencil: Stencil, bulk: Grid) -> Grid:
    """A scalar times the weight of each direction."""
    return combine(bulk.unsqueeze(-1), tuple((w,) for w in stencil.weights))


def equilibrium(stencil: Stencil, bulk: Grid, velocity: Grid) -> Grid:
    r"""$w_i \rho (1 + e_i u / c_s^2 + (e_i u)^2 / 2 c_s^4 - u^2 / 2 c_s^2)$."""
    along = combine(velocity, stencil.velocities) * (1 / CS2)
    square = (velocity * velocity).sum(-1, keepdim=True) * (0.5 / CS2)
    return weighted(stencil, bulk) * (1 - square + along * (1 + 0.5 * along))


@compute
def LBMEquilibrium(bulk: Grid, velocity: Grid, solid: Solid, *, stencil: Lattice) -> Grid:
    r"""The distribution at rest with a flow, to second order in the velocity.

    bulk: what is distributed: the density, or a temperature
    velocity: the velocity, in cells per step
    """
    return clear(equilibrium(stencil, bulk, velocity), solid)


@compute
def LBMComputeDensity(f: Grid, solid: Solid) -> Grid:
    r"""The sum of a distribution, $\sum_i f_i$.

    f: the distribution
    """
    return clear(f.sum(-1), solid)


def idle_velocity(values: dict[str, Any]) -> set[str]:
    """Forces that are not enabled, or along an axis that the box has not."""
    axes = "xyz"[values["dim"] if values["add_body_force"] else 0 :]
    forces = set() if values["enable_forces"] else {"forces"}
    return forces | {f"body_force_{axis}" for axis in axes}


@compute(idle=idle_velocity)
def LBMComputeVelocity(
    f: Grid,
    rho: Grid,
    solid: Solid,
    forces: Grid = named("forces"),  # noqa: B008  a name, which the file may change
    *,
    stencil: Lattice,
    enable_forces: bool = False,
    add_body_force: bool = False,
    body_force_x: Number = 0.0,
    body_force_y: Number = 0.0,
    body_force_z: Number = 0.0,
) -> Grid:
    r"""The velocity of a distribution, $(\sum_i e_i f_i + F / 2) / \rho$.

    f: the distribution
    rho: its density
    forces: the force on every cell, read where `enable_forces` is set
    enable_forces: whether to add half of the forces
    add_body_force: whether to add half of the same force everywhere
    body_force_x: that force along x
    body_force_y: that force along y
    body_force_z: that force along z
    """
    momentum = combine(f, tuple(zip(*stencil.velocities, strict=True)))
    if enable_forces:
        momentum = momentum + 0.5 * forces
    if add_body_force:
        body = (body_force_x, body_force_y, body_force_z)[: stencil.dim]
        momentum = momentum + join([torch.zeros_like(rho) + 0.5 * each for each in body])
    return clear(momentum / rho.unsqueeze(-1), solid)


@compute
def LBMComputeVelocityMagnitude(velocity: Grid, solid: Solid) -> Grid:
    r"""The length of a velocity, $|u|$.

    velocity: the velocity
    """
    return clear((velocity * velocity).sum(-1).sqrt(), solid)


def only_solved(block: Block, values: dict[str, Any]) -> Iterator[Problem]:
    """A residual compares two steps of the lattice, so it belongs to [Solve]."""
    if "Solve" not in block.path.split("/"):
        message = f"{block.title} has no step before it to compare with"
        yield Problem("wrong-value", message, place(block, "type"), "move it to [Solve]")


@compute(gives=(), hidden=(RESIDUAL,), check=only_solved)
def LBMComputeResidual(speed: Grid, past: Past, space: Space, *, buffer: str) -> Tensor:
    r"""How much the speed has changed over a step of the lattice, $\sum |s - s'| / \sum s$.

    The run ends once it falls below the tolerance of the problem.

    speed: the speed
    buffer: not written, but Marlin asks for it
    """
    change, total = space.sum((speed - past[0]).abs()), space.sum(speed)
    usable = (change != 0) & (total != 0)
    safe = torch.where(usable, total, torch.ones_like(total))
    return torch.where(usable, change / safe, torch.ones_like(change))
