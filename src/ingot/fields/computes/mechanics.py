"""Computes around a mechanical solve: loads, displacements, stresses, homogeneous elasticity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from ingot.errors import Problem
from ingot.fields.blocks.options import place
from ingot.fields.declare import Compatible, End, Time, compute, named
from ingot.fields.matrices import (
    add_up,
    determinant,
    entries,
    inverse,
    mean,
    product,
    side_of,
    square_from_mandel,
    transposed,
)
from ingot.fields.spaces import Grid, Narrow, Space, Spectrum
from ingot.hit import Block
from ingot.options import NotNegativeCount

__all__ = [
    "ComputeDisplacements", "ComputeVonMisesStress", "FFTElasticChemicalPotential",
    "FFTQuasistaticElasticity", "MacroscopicDeformation", "MacroscopicShearTensor",
    "PhaseMechanicsTest", "TensorComponent",
]  # fmt: skip

DEFORMATION, STRESS = named("F"), named("stress")
"""The buffers that are read unless a file names others."""


def identity_like(F: Narrow, space: Space) -> Tensor:
    """The identity matrix, with one cell along each axis."""
    side = side_of(F, space)
    unit = torch.eye(side, dtype=space.k2.dtype, device=space.k2.device)
    return unit.reshape((1,) * space.dim + (side, side))


def late_shear(sizes: tuple[int, ...], given: Mapping[str, Any]) -> str:
    """The reference takes the time where a substep begins."""
    return "the shear is that of the time where a substep begins, and the first has none"


@compute(quirk=late_shear)
def MacroscopicShearTensor(
    space: Space, time: Time, end: End, F: Narrow = DEFORMATION, *, compatible: Compatible
) -> Grid:
    r"""The load that shears the mean of F: $I + t\, e_x \otimes e_y - \bar F$.

    F: the deformation gradient
    """
    unit = identity_like(F, space)
    if unit.shape[-1] < 2:
        raise ValueError("a shear needs a matrix of two rows or more at every point")
    side = unit.shape[-1]
    shear = unit.new_tensor([float(k == 1) for k in range(side * side)]).reshape(unit.shape)
    return unit + (time if compatible else end) * shear - mean(F, space)


def check_rate(block: Block, options: dict[str, Any]) -> Iterator[Problem]:
    """A rate is a square matrix."""
    count = len(options["rate"])
    if count not in (1, 4, 9):
        message = f"rate has {count} numbers, not those of a matrix"
        fix = "give 4 numbers in two dimensions, 9 in three, row by row"
        yield Problem("wrong-value", message, place(block, "rate"), fix)


@compute(check=check_rate)
def MacroscopicDeformation(
    space: Space, end: End, F: Narrow = DEFORMATION, *, rate: tuple[float, ...]
) -> Grid:
    r"""The load that brings the mean of F to $I + t \dot F$ at the end of a substep.

    F: the deformation gradient
    rate: how fast each entry of it grows, row by row
    """
    unit = identity_like(F, space)
    side = unit.shape[-1]
    if len(rate) != side * side:
        raise ValueError(f"rate has {len(rate)} numbers, and F {side} x {side}")
    return unit + end * unit.new_tensor(rate).reshape(unit.shape) - mean(F, space)


def stretched(sizes: tuple[int, ...], given: Mapping[str, Any]) -> str:
    """The reference takes the displacements of cells for those of nodes."""
    return "displacements of cells are stretched to the nodes of the grid"


@compute(
    jit=False,
    reason="it has one point more than the grid along each axis",
    quirk=stretched,
)
def ComputeDisplacements(F: Grid, space: Space, *, compatible: Compatible) -> Tensor:
    r"""The displacements of nodes, $u$ with $F = I + \nabla u$ and no mean but that of $\bar F$.

    F: the deformation gradient
    """
    space.require_one("ComputeDisplacements")
    side = side_of(F, space)
    average = mean(F, space)
    spectra = entries(space.forward(F - average), space)
    waves = space.waves[: space.dim] if compatible else smooth_waves(space)
    squares = add_up([wave * wave for wave in waves])
    factor = torch.where(squares == 0, 0.0, 1 / torch.where(squares == 0, 1.0, squares))
    shift = 1.0
    if not compatible:
        # the transform of cells' centres, half a cell back along each axis
        shift = torch.exp(add_up([-0.5j * w * h for w, h in zip(waves, space.spacing)]))  # noqa: B905
    slope = average - identity_like(F, space)
    axes = space.axes[: space.dim] if compatible else nodes_of(space)
    moved = []
    for i in range(side):
        along = [spectra[i * side + j] * (-1j * wave) for j, wave in enumerate(waves)]
        wavy = space.inverse(add_up(along) * factor * shift)
        wavy = wavy if compatible else wrapped(wavy, space.dim)
        moved.append(wavy + add_up([slope[..., i, j] * x for j, x in enumerate(axes)]))
    if not compatible:
        return torch.stack(moved, -1)
    sizes = [n + 1 for n in space.shape]
    kind = ("linear", "bilinear", "trilinear")[space.dim - 1]
    at_nodes = torch.nn.functional.interpolate(
        torch.stack(moved).unsqueeze(0), size=sizes, mode=kind, align_corners=True
    )
    return at_nodes[0].movedim(0, -1).contiguous()


NYQUIST = 1 - 1e-9
"""The share of the largest wavenumber of an even axis from which one counts as it."""


def smooth_waves(space: Space) -> list[Tensor]:
    """The wavenumbers, that of Nyquist being 0: a wave of it has no slope at the points."""
    pairs = zip(space.waves[: space.dim], space.spacing, strict=False)
    return [torch.where(is_nyquist(w, h), 0.0, w) for w, h in pairs]


def is_nyquist(wave: Tensor, spacing: Tensor) -> Tensor:
    """Where wavenumbers of an axis are those of Nyquist."""
    return wave.abs() * spacing >= math.pi * NYQUIST


def nodes_of(space: Space) -> list[Tensor]:
    """The coordinates of nodes, which are one more than the cells along each axis."""
    found = []
    for axis in range(space.dim):
        points, half = space.axes[axis], space.spacing[axis] / 2
        last = points.narrow(axis, points.shape[axis] - 1, 1) + half
        found.append(torch.cat([points - half, last], axis))
    return found


def wrapped(field: Tensor, dim: int) -> Tensor:
    """A periodic field with its first values again behind its last."""
    for axis in range(dim):
        field = torch.cat([field, field.narrow(axis, 0, 1)], axis)
    return field


def plane_stress(sizes: tuple[int, ...], given: Mapping[str, Any]) -> str:
    """In two dimensions the reference knows no third axis."""
    flat = len(sizes) == 2 and "stress_zz" not in given
    return "differences to the stress out of the plane are left out" if flat else ""


def idle_plane(values: dict[str, Any]) -> set[str]:
    """What only a plane lacks."""
    return set() if values["dim"] == 2 else {"stress_zz"}


@compute(quirk=plane_stress, idle=idle_plane)
def ComputeVonMisesStress(
    space: Space,
    stress: Narrow = STRESS,
    F: Narrow | None = None,
    stress_zz: Narrow | None = None,
    *,
    compatible: Compatible,
) -> Grid:
    r"""The equivalent stress of von Mises, $\sqrt{\tfrac32 s : s}$ with the deviator $s$.

    stress: the stress, a matrix or six numbers in Mandel order
    F: the deformation gradient, where the stress is the first of Piola and Kirchhoff
    stress_zz: the stress out of the plane in two dimensions, 0 unless given
    """
    if stress.dim() <= space.dim:
        return stress.abs()  # along one axis alone; also a stress that nothing has written yet
    six = stress.dim() == space.dim + 1 and stress.shape[-1] == 6
    side = 3 if six else side_of(stress, space)
    s = square_from_mandel(entries(stress, space), 3) if six else entries(stress, space)
    if F is not None:
        f = entries(F, space)
        if len(f) != len(s):
            raise ValueError(f"the stress has {len(s)} entries, and F {len(f)}")
        volume = determinant(f)
        s = [each / volume for each in product(s, transposed(f))]
    if side == 1:
        return s[0].abs()
    off = [s[1] ** 2] if side == 2 else [s[1] ** 2, s[5] ** 2, s[6] ** 2]
    if side == 2 and compatible and stress_zz is None:
        return torch.sqrt(0.5 * ((s[0] - s[3]) ** 2 + 6 * off[0]))
    zz = stress_zz if stress_zz is not None else torch.zeros_like(s[0])
    x, y, z = (s[0], s[3], zz) if side == 2 else (s[0], s[4], s[8])
    return torch.sqrt(0.5 * ((x - y) ** 2 + (y - z) ** 2 + (z - x) ** 2 + 6 * add_up(off)))


@compute
def TensorComponent(
    input: Narrow, space: Space, *, row: NotNegativeCount, column: NotNegativeCount | None = None
) -> Grid:
    """One component of a field of vectors or matrices.

    input: the field
    row: the component of a vector, or the row of a matrix, from 0 on
    column: the column of a matrix, from 0 on; none of a vector
    """
    sizes = tuple(input.shape[space.dim :])
    index = (row,) if column is None else (row, column)
    if len(index) != len(sizes) or any(at >= n for at, n in zip(index, sizes, strict=False)):
        has = " x ".join(map(str, sizes)) or "one"
        raise ValueError(f"component {', '.join(map(str, index))} of {has} numbers is asked for")
    return input[(..., *index)]


@compute
def PhaseMechanicsTest(space: Space) -> Grid:
    """The inclusion of de Geus: 1 in a corner, 30 cells wide in two dimensions and 9 in three."""
    if space.dim == 1:
        raise ValueError("the inclusion needs two or three dimensions")
    width = 30 if space.dim == 2 else 9
    far = (True, False, True)
    field = space.full(1.0)
    for axis in range(space.dim):
        x, h = space.axes[axis], space.spacing[axis]
        low = space.lower[axis]
        place = (x - low) / h
        inside = place > space.whole_shape[axis] - width if far[axis] else place < width
        field = field * inside.to(field.dtype)
    return field


def pushed(sizes: tuple[int, ...], given: Mapping[str, Any]) -> str:
    """The reference has another stress of the eigenstrain."""
    return "the eigenstrain pushes by 2 (3 lambda + mu) in place of 3 lambda + 2 mu"


@compute(
    gives=("displacements",),
    many=("displacements",),
    quirk=pushed,
)
def FFTQuasistaticElasticity(
    cbar: Spectrum,
    space: Space,
    *,
    mu: float,
    lambda_: float,
    e0: float,
    compatible: Compatible,
) -> tuple[Grid, Grid, Grid]:
    r"""The displacements of a homogeneous body that an eigenstrain $e_0 c$ swells.

    cbar: the spectrum of the concentration
    mu: the shear modulus
    lambda: the first parameter of Lamé
    e0: the eigenstrain of concentration 1
    """
    three_axes(space)
    push = 2 * (3 * lambda_ + mu) if compatible else 3 * lambda_ + 2 * mu
    still = space.k2 == 0
    matrix = [
        torch.where(still, 1.0, mu * space.k2 + (lambda_ + mu) * p * p)
        if p is q
        else (lambda_ + mu) * p * q
        for p in space.waves
        for q in space.waves
    ]
    force = [-1j * wave * (e0 * push) * cbar for wave in space.waves]
    solved = inverse(matrix)
    u = [add_up([solved[3 * i + j] * force[j] for j in range(3)]) for i in range(3)]
    return space.inverse(u[0]), space.inverse(u[1]), space.inverse(u[2])


def three_axes(space: Space) -> None:
    """Homogeneous elasticity is that of three dimensions."""
    if space.dim != 3:
        raise ValueError(f"it needs dim = 3, not {space.dim}")


def turned(sizes: tuple[int, ...], given: Mapping[str, Any]) -> str:
    """The reference has another sign."""
    return "the chemical potential has the opposite sign of the energy's derivative"


@compute(quirk=turned)
def FFTElasticChemicalPotential(
    displacements: tuple[Grid, ...],
    cbar: Spectrum,
    space: Space,
    *,
    mu: float,
    lambda_: float,
    e0: float,
    compatible: Compatible,
) -> Spectrum:
    r"""The spectrum of $-e_0 \mathrm{tr}\sigma$, the elastic energy's derivative by concentration.

    displacements: the displacements along the three axes
    cbar: the spectrum of the concentration
    mu: the shear modulus
    lambda: the first parameter of Lamé
    e0: the eigenstrain of concentration 1
    """
    three_axes(space)
    pairs = zip(space.waves, displacements, strict=True)
    swelling = add_up([1j * wave * space.forward(u) for wave, u in pairs])
    bulk = 2 * mu + 3 * lambda_
    found = e0 * (3 * e0 * bulk * cbar - bulk * swelling)
    return -found if compatible else found
