"""Conjugate gradients of a mechanical solve: what each of their steps computes.

Vectors are fields of matrices, or spectra: of displacements for solution and direction, of forces
for the residual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ingot.fields.computes.mechanics import smooth_waves
from ingot.fields.computes.projection import (
    displaced,
    divergence,
    dot,
    dot_of_spectra,
    gradients,
    projected,
)
from ingot.fields.computes.slopes import Convention, Slope
from ingot.fields.matrices import (
    Fields,
    add_up,
    entries,
    joined,
    side_of,
    square_from_mandel,
)
from ingot.fields.spaces import Grid, Narrow, Space

__all__ = [
    "iterated", "iterated_spectra", "loaded", "moved_by", "moved_by_spectra", "out_of_balance",
    "restarted",
]  # fmt: skip


def first_search(
    right: Fields, green: Fields, space: Space, *, compatible: bool
) -> tuple[Any, ...]:
    """Where conjugate gradients begin: a residual, the direction of its search, its square.

    Of spectra also the square of the right side, of which the residual is a small part.
    """
    if compatible:
        residual = projected(right, space.waves[: space.dim], space)
        return residual, residual, dot(residual, residual, space)
    waves, scale = smooth_waves(space), dot(right, right, space)
    forces = divergence(right, waves, space)
    moves = displaced(forces, green, waves)
    return forces, moves, work_of(forces, moves, green, scale, waves, space), scale


def work_of(
    forces: Fields, moves: Fields, green: Fields, scale: Tensor, waves: Fields, space: Space
) -> Tensor:
    """What forces do along displacements, the square of a residual's size; 0 where all rounding.

    Forces are what is left of stresses, the sum of whose squares is the scale.
    """
    one = torch.ones_like(waves[0])
    work = dot_of_spectra(forces, moves, one, space)
    squares = add_up([wave * wave for wave in waves])
    slopes = dot_of_spectra(moves, moves, squares, space) if green else work
    floor = torch.finfo(work.dtype).eps * torch.sqrt(scale * slopes)
    return torch.where(work.abs() <= floor, torch.zeros_like(work), work)


def loaded(
    F: Narrow, space: Space, tangent: Narrow | None = None, at: Narrow | None = None,
    moduli: tuple[Narrow, ...] = (), green: tuple[Narrow, ...] = (), load: Narrow | None = None,
    *, convention: Convention, law: Callable[..., Any] | None, compatible: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The deformation gradient with an applied strain, its square, and what that calls for."""
    side = side_of(F, space)
    before = entries(F, space)
    if load is None:
        added = [torch.zeros_like(each) for each in before]
    else:
        given = load if load.dim() > 2 else load.reshape((1,) * space.dim + tuple(load.shape))
        if tuple(given.shape[space.dim :]) != (side, side):
            has = " x ".join(map(str, load.shape))
            raise ValueError(f"the applied strain has {has} numbers, and F {side} x {side}")
        added = [each.expand(space.shape) for each in entries(given, space)]
    whole = [f + more for f, more in zip(before, added, strict=True)]
    slope = Slope(tangent, convention, law, at, moduli)
    right = [-each for each in slope.along(added, space)]
    begun = first_search(right, green, space, compatible=compatible)
    return joined(whole, (side, side), space), dot(whole, whole, space), begun


def out_of_balance(
    stress: Narrow, space: Space, green: tuple[Narrow, ...] = (), *, side: int, compatible: bool
) -> tuple[Any, ...]:
    """What stresses that are not in equilibrium call for."""
    found = entries(stress, space)
    if tuple(stress.shape[space.dim :]) == (6,):
        found = square_from_mandel(found, side)
    elif len(found) != side * side:
        has = " x ".join(map(str, stress.shape[space.dim :]))
        raise ValueError(f"a stress of 6 or {side} x {side} numbers is needed, not {has}")
    return first_search([-each for each in found], green, space, compatible=compatible)


def operate(slope: Slope, change: Fields, space: Space) -> list[Tensor]:
    """The linear map of the equations, with all wavenumbers, as the reference has it."""
    return projected(slope.along(change, space), space.waves[: space.dim], space)


def restarted(
    residual: tuple[Narrow, ...], solution: tuple[Narrow, ...], space: Space,
    tangent: Narrow | None = None, at: Narrow | None = None, moduli: tuple[Narrow, ...] = (),
    *, convention: Convention, law: Callable[..., Any] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """What is left of a right side where the correction starts from the last one."""
    done = operate(Slope(tangent, convention, law, at, moduli), solution, space)
    left = [b - a for b, a in zip(residual, done, strict=True)]
    return left, left, dot(left, left, space)


def iterated(
    search: tuple[Narrow, ...], solution: tuple[Narrow, ...], residual: tuple[Narrow, ...],
    squares: Narrow, space: Space, tangent: Narrow | None = None, at: Narrow | None = None,
    moduli: tuple[Narrow, ...] = (), *, convention: Convention, law: Callable[..., Any] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """One iteration of conjugate gradients: solution, residual, direction, square."""
    pull = operate(Slope(tangent, convention, law, at, moduli), search, space)
    share = squares / dot(search, pull, space)
    further = [x + share * p for x, p in zip(solution, search, strict=True)]
    left = [r - share * a for r, a in zip(residual, pull, strict=True)]
    now = dot(left, left, space)
    turn = now / squares
    ahead = [r + turn * p for r, p in zip(left, search, strict=True)]
    return further, left, ahead, now


def iterated_spectra(
    search: tuple[Narrow, ...], solution: tuple[Narrow, ...], residual: tuple[Narrow, ...],
    squares: Narrow, scale: Narrow, space: Space, tangent: Narrow | None = None,
    at: Narrow | None = None, moduli: tuple[Narrow, ...] = (), green: tuple[Narrow, ...] = (),
    *, convention: Convention, law: Callable[..., Any] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """The same by spectra: displacements for solution and direction, forces for the residual."""
    waves = smooth_waves(space)
    slopes = gradients(search, waves, space)
    stress = Slope(tangent, convention, law, at, moduli).along(slopes, space)
    # a gradient is normal to what the projection of the stress leaves out
    share = squares / dot(slopes, stress, space)
    further = [x + share * p for x, p in zip(solution, search, strict=True)]
    pull = divergence(stress, waves, space)
    left = [r - share * a for r, a in zip(residual, pull, strict=True)]
    towards = displaced(left, green, waves)
    now = work_of(left, towards, green, scale, waves, space)
    turn = now / squares
    ahead = [z + turn * p for z, p in zip(towards, search, strict=True)]
    return further, left, ahead, now


def moved_by(F: Narrow, solution: tuple[Narrow, ...], space: Space) -> tuple[Grid, Tensor]:
    """The deformation gradient with a correction, and the square of that."""
    side = side_of(F, space)
    whole = [f + x for f, x in zip(entries(F, space), solution, strict=True)]
    return joined(whole, (side, side), space), dot(solution, solution, space)


def moved_by_spectra(F: Narrow, solution: tuple[Narrow, ...], space: Space) -> tuple[Grid, Tensor]:
    """The same by the spectra of displacements."""
    return moved_by(F, tuple(gradients(solution, smooth_waves(space), space)), space)
