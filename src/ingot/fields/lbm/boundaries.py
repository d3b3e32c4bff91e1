"""[TensorComputes/Boundary]: what comes in at the faces of a box, at walls and in regions.

They run in the order of the file, after a distribution was streamed and before it is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from ingot.errors import Problem
from ingot.fields.blocks.options import place
from ingot.fields.declare import (
    BOUNDARIES,
    Cells,
    Compatible,
    Former,
    Lattice,
    Number,
    Solid,
    compute,
)
from ingot.fields.lbm.hydrodynamics import equilibrium
from ingot.fields.lbm.operators import clear, join, shift
from ingot.fields.lbm.stencils import CS2, Stencil
from ingot.fields.spaces import Grid, Space
from ingot.fields.step import Buffer, Step
from ingot.hit import Block

__all__ = [
    "LBMBounceBack", "LBMDirichletBC", "LBMFixedFirstOrderBC", "LBMFixedZerothOrderBC",
    "LBMMicroscopicZeroGradientBC", "LBMNeumannBC", "bounce_links", "with_first_links",
]  # fmt: skip

Face = Literal["top", "bottom", "left", "right", "front", "back", "wall", "regional"]

FACES = {
    "left": (0, False), "right": (0, True), "bottom": (1, False), "top": (1, True),
    "front": (2, False), "back": (2, True),
}  # fmt: skip
"""The axis of each face, and whether it is its upper end."""


def face_of(boundary: str) -> tuple[int, int]:
    """The axis of a face, and the place of its layer."""
    axis, upper = FACES[boundary]
    return axis, -1 if upper else 0


def components(layer: Tensor) -> list[Tensor]:
    """The numbers of each direction."""
    return [layer.select(-1, i) for i in range(layer.shape[-1])]


def check_face(*, wall: bool, regional: bool) -> Any:
    """A check that a boundary is one of those that a condition knows, and of the box."""

    def check(block: Block, values: dict[str, Any]) -> Iterator[Problem]:
        boundary, span = values["boundary"], place(block, "boundary")
        if (boundary == "wall" and not wall) or (boundary == "regional" and not regional):
            message = f"{block.type} does not work on boundary = {boundary}"
            known = [*FACES, *["wall"] * wall, *["regional"] * regional]
            yield Problem("wrong-value", message, span, f"choose one of: {', '.join(known)}")
        elif boundary in FACES and FACES[boundary][0] >= values["dim"]:
            message = f"a box of two axes has no {boundary}"
            yield Problem("wrong-value", message, span, "choose left, right, bottom or top")
        elif boundary == "regional" and values["region_id"] is None:
            message = f"{block.title} needs 'region_id' where boundary = regional"
            yield Problem("missing-option", message, block.span, "add 'region_id = ...'")

    return check


def idle_corners(values: dict[str, Any]) -> set[str]:
    """Corners along an axis that is not one of the face's; on a face all agree what comes back."""
    axis = FACES.get(values["boundary"], (None,))[0]
    tangents = {a for a in range(values["dim"]) if axis not in (None, a)}
    corners = {f"exclude_corners_{'xyz'[a]}" for a in range(3) if a not in tangents}
    return corners | (set() if axis is None else {"marlin_compatible"})


@compute(
    registry=BOUNDARIES, check=check_face(wall=True, regional=False), idle=idle_corners
)  # fmt: skip
def LBMBounceBack(
    buffer: Grid,
    f_old: Former,
    solid: Solid,
    cells: Cells,
    space: Space,
    *,
    stencil: Lattice,
    compatible: Compatible,
    boundary: Face,
    exclude_corners_x: bool = False,
    exclude_corners_y: bool = False,
    exclude_corners_z: bool = False,
) -> Grid:
    """A wall at rest, half a cell outside: what left comes back.

    Among solid cells that is what would come out of them. Where other boundaries of the same
    distribution stand before, the reference lets it be if they gave anything in its first turn.

    buffer: the distribution
    f_old: the distribution after the last collision
    boundary: the face, or all solid cells
    exclude_corners_x: whether to leave the first and last cell along x of a face as they are
    exclude_corners_y: whether to leave the first and last cell along y of a face as they are
    exclude_corners_z: whether to leave the first and last cell along z of a face as they are
    """
    if boundary == "wall":
        assert cells is not None and solid is not None
        links = [cells & shift(solid, e[: stencil.dim], space) for e in stencil.directions]
        return bounce_links(buffer, f_old, join(links), solid, stencil=stencil)
    axis, at = face_of(boundary)
    if not space.reaches(axis, upper=at < 0):
        return clear(buffer, solid)
    now, old = components(buffer.select(axis, at)), components(f_old.select(axis, at))
    excluded = (exclude_corners_x, exclude_corners_y, exclude_corners_z)
    corners = [
        (a - (a > axis), end)
        for a in range(stencil.dim)
        for end in (0, -1)
        if a != axis and excluded[a] and space.reaches(a, upper=end < 0)
    ]
    for d in stencil.entering(axis, upper=at < 0):
        back = old[stencil.opposite[d]]
        for tangent, end in corners:
            back = torch.select_scatter(back, now[d].select(tangent, end), tangent, end)
        now[d] = back
    return clear(torch.select_scatter(buffer, join(now), axis, at), solid)


def bounce_links(
    buffer: Grid, f_old: Grid, links: Tensor, solid: Tensor, *, stencil: Stencil
) -> Grid:
    """A distribution whose marked directions take back what left against them."""
    f, old, marks = components(buffer), components(f_old), components(links)
    ways = zip(f, stencil.opposite, marks, strict=True)
    _, *moving = (torch.where(mark, old[back], now) for now, back, mark in ways)
    return clear(join([f[0], *moving]), solid)


def empty_links(buffer: Grid, cells: Tensor) -> Tensor:
    """The directions in which nothing comes to the cells beside solid ones."""
    return cells.unsqueeze(-1) & (buffer == 0)


def with_first_links(steps: Iterable[Step]) -> Iterator[Step]:
    """Boundaries in order; a wall after others has the links that it finds in its first turn."""
    before: set[str] = set()
    for step in steps:
        late = before.issuperset(step.gives)
        before |= set(step.gives)
        if not (late and step.options.get("compatible") and step.options["boundary"] == "wall"):
            yield step
            continue
        given, links = step.arguments, f"{step.name}#links"
        marked = {name: given[name] for name in ("buffer", "cells")}
        yield Step(f"{step.name}#", empty_links, marked, (links,), once=True, span=step.span)
        used = {name: given[name] for name in ("buffer", "f_old", "solid")}
        options = {"stencil": step.options["stencil"]}
        yield replace(
            step, function=bounce_links, arguments={**used, "links": Buffer(links)},
            options=options,
        )  # fmt: skip


@compute(registry=BOUNDARIES, check=check_face(wall=False, regional=False))
def LBMMicroscopicZeroGradientBC(
    buffer: Grid, solid: Solid, space: Space, *, boundary: Face
) -> Grid:
    """An open face: its layer is a copy of the next one.

    buffer: the distribution
    boundary: the face
    """
    axis, at = face_of(boundary)
    space.require_rows(axis, 2)
    if buffer.shape[axis] == 1:
        raise ValueError(f"the box has one layer of cells between {boundary} and its opposite")
    if not space.reaches(axis, upper=at < 0):
        return clear(buffer, solid)
    inner = buffer.select(axis, -2 if at < 0 else 1)
    return clear(torch.select_scatter(buffer, inner, axis, at), solid)


def idle_region(values: dict[str, Any]) -> set[str]:
    """The number of a region on another boundary."""
    return set() if values["boundary"] == "regional" else {"region_id"}


def idle_dirichlet(values: dict[str, Any]) -> set[str]:
    """The density, which the value stands for."""
    return {"rho", *idle_region(values)}


@compute(
    registry=BOUNDARIES, check=check_face(wall=True, regional=True), idle=idle_dirichlet
)  # fmt: skip
def LBMDirichletBC(
    buffer: Grid,
    f_old: Former,
    feq: Grid,
    velocity: Grid,
    solid: Solid,
    cells: Cells,
    space: Space,
    rho: Grid | None = None,
    *,
    stencil: Lattice,
    boundary: Face,
    value: float,
    region_id: int | None = None,
) -> Grid:
    """A fixed density or temperature: its equilibrium, and the departure after the last collision.

    buffer: the distribution
    f_old: the distribution after the last collision
    feq: the equilibrium that it collided with
    velocity: the velocity there
    rho: not read, but Marlin asks for it
    boundary: the face, all walls, or the region of that number
    value: the fixed value
    region_id: the number of the region
    """
    if cells is not None:
        bulk = torch.full_like(velocity.select(-1, 0), value)
        fixed = equilibrium(stencil, bulk, velocity) + f_old - feq
        return clear(torch.where(cells.unsqueeze(-1), fixed, buffer), solid)
    axis, at = face_of(boundary)
    if not space.reaches(axis, upper=at < 0):
        return clear(buffer, solid)
    u, old, eq = (x.select(axis, at) for x in (velocity, f_old, feq))
    bulk = torch.full_like(u.select(-1, 0), value)
    layer = equilibrium(stencil, bulk, u) + old - eq
    return clear(torch.select_scatter(buffer, layer, axis, at), solid)


@compute(registry=BOUNDARIES, check=check_face(wall=True, regional=True), idle=idle_region)
def LBMNeumannBC(
    buffer: Grid,
    f_old: Former,
    feq: Grid,
    velocity: Grid,
    rho: Grid,
    solid: Solid,
    cells: Cells,
    space: Space,
    *,
    stencil: Lattice,
    boundary: Face,
    gradient: float,
    region_id: int | None = None,
) -> Grid:
    """A fixed slope of a density or temperature: the equilibrium of the value one cell on.

    buffer: the distribution
    f_old: the distribution after the last collision
    feq: the equilibrium that it collided with
    velocity: the velocity there
    rho: the density or temperature there
    boundary: the face, all walls, or the region of that number
    gradient: the slope outwards, per cell
    region_id: the number of the region
    """
    if cells is not None:
        fixed = equilibrium(stencil, rho + gradient, velocity) + f_old - feq
        return clear(torch.where(cells.unsqueeze(-1), fixed, buffer), solid)
    axis, at = face_of(boundary)
    if not space.reaches(axis, upper=at < 0):
        return clear(buffer, solid)
    u, old, eq, bulk = (x.select(axis, at) for x in (velocity, f_old, feq, rho))
    fixed = components(equilibrium(stencil, bulk + gradient, u) + old - eq)
    now = components(buffer.select(axis, at))
    for d in stencil.entering(axis, upper=at < 0):
        now[d] = fixed[d]
    return clear(torch.select_scatter(buffer, join(now), axis, at), solid)


def leaving_total(
    stencil: Stencil, f: list[Tensor], axis: int, *, upper: bool, compatible: bool
) -> Tensor:
    """The numbers along a face, and twice those that leave through it."""
    along = stencil.neutral(axis)
    if compatible and stencil.dim == 3:
        # the reference counts these from the end of the list of directions
        along = tuple(-i % stencil.q for i in along)
    total = f[along[0]]
    for i in along[1:]:
        total = total + f[i]
    for d in stencil.entering(axis, upper=upper):
        total = total + 2 * f[stencil.opposite[d]]
    return total


def enter(
    stencil: Stencil, f: list[Tensor], axis: int, momentum: Tensor, *, upper: bool
) -> list[Tensor]:
    r"""The numbers of a face through which a momentum $\rho v$ enters, positive along the axis."""
    sign, found = -1.0 if upper else 1.0, list(f)
    for d in stencil.entering(axis, upper=upper):
        back, e = f[stencil.opposite[d]], stencil.directions[d]
        if stencil.dim == 2:
            tangent = 1 - axis
            ahead, behind = (
                f[next(i for i in stencil.neutral(axis) if stencil.directions[i][tangent] == way)]
                for way in (1, -1)
            )
            if e[tangent]:
                back = back - 0.5 * e[tangent] * (ahead - behind)
            found[d] = back + sign * (1 / 6 if e[tangent] else 2 / 3) * momentum
        else:
            found[d] = back + sign * (2 * stencil.weights[d] / CS2) * momentum
    return found


def check_normal(block: Block, values: dict[str, Any]) -> Iterator[Problem]:
    """A face, in three dimensions one along x, as in the reference."""
    yield from check_face(wall=False, regional=False)(block, values)
    boundary = values["boundary"]
    other = boundary in FACES and FACES[boundary][0] > 0
    if values["compatible"] and values["dim"] == 3 and other:
        message = f"{block.type} works on left and right in three dimensions, as the reference does"
        fix = "set marlin_compatible = false in it, which works on every face"
        yield Problem("wrong-value", message, place(block, "boundary"), fix)


def idle_sums(values: dict[str, Any]) -> set[str]:
    """Which directions are added up along a face: in two dimensions the reference's are right."""
    return {"marlin_compatible"} if values["dim"] == 2 else set()


def idle_ripple(values: dict[str, Any]) -> set[str]:
    """The ripple, where it is not that of the left face of D2Q9."""
    ripples = values["dim"] == 2 and values["boundary"] == "left"
    return idle_sums(values) | (set() if ripples else {"perturb"})


@compute(registry=BOUNDARIES, check=check_normal, idle=idle_ripple)
def LBMFixedFirstOrderBC(
    buffer: Grid,
    f: Grid,
    space: Space,
    solid: Solid,
    *,
    stencil: Lattice,
    compatible: Compatible,
    boundary: Face,
    value: Number,
    perturb: bool = False,
) -> Grid:
    """A fixed velocity through a face.

    buffer: the distribution
    f: the distribution that the condition is worked out from
    boundary: the face
    value: the velocity, positive along the axis
    perturb: whether the velocity has a ripple of a millionth along the left face of D2Q9
    """
    axis, at = face_of(boundary)
    if not space.reaches(axis, upper=at < 0):
        return clear(buffer, solid)
    now, sign = components(f.select(axis, at)), -1.0 if at < 0 else 1.0
    speed: Any = value
    if perturb:
        rows = torch.arange(space.size(1), dtype=buffer.dtype, device=buffer.device)
        if space.share is not None:
            rows = rows + space.share.box[1].start
        speed = value * (1 + 1e-6 * torch.sin(2 * math.pi * rows / space.whole_shape[1]))
    total = leaving_total(stencil, now, axis, upper=at < 0, compatible=compatible)
    momentum = total / (1 - sign * speed) * speed
    return clear(faced(stencil, buffer, now, axis, at, momentum), solid)


@compute(registry=BOUNDARIES, check=check_normal, idle=idle_sums)
def LBMFixedZerothOrderBC(
    buffer: Grid,
    f: Grid,
    space: Space,
    solid: Solid,
    *,
    stencil: Lattice,
    compatible: Compatible,
    boundary: Face,
    value: Number,
) -> Grid:
    """A fixed density at a face.

    buffer: the distribution
    f: the distribution that the condition is worked out from
    boundary: the face
    value: the density
    """
    axis, at = face_of(boundary)
    if not space.reaches(axis, upper=at < 0):
        return clear(buffer, solid)
    now, sign = components(f.select(axis, at)), -1.0 if at < 0 else 1.0
    total = leaving_total(stencil, now, axis, upper=at < 0, compatible=compatible)
    momentum = sign * (value - total)
    return clear(faced(stencil, buffer, now, axis, at, momentum), solid)


def faced(
    stencil: Stencil, buffer: Grid, now: list[Tensor], axis: int, at: int, momentum: Tensor
) -> Grid:
    """A distribution into which a momentum enters at a face."""
    entered = enter(stencil, now, axis, momentum, upper=at < 0)
    own = components(buffer.select(axis, at))
    for d in stencil.entering(axis, upper=at < 0):
        own[d] = entered[d]
    return torch.select_scatter(buffer, join(own), axis, at)
