"""The medium of a lattice -> its solid cells, those beside them, and those of a region.

Once it is filled, what it leaves without effect is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.fields.blocks.problem import LatticeOptions
from ingot.fields.lbm.operators import shift
from ingot.fields.lbm.stencils import Stencil
from ingot.fields.spaces import Space
from ingot.fields.step import State

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = ["idle_media", "region_cells", "solid_cells", "wall_cells"]

MOST_REGIONS = 12
"""How many regions a message lists, so that it stays a line."""


def solid_cells(media: Tensor, space: Space) -> Tensor:
    """Where a medium is 0, if it is anything elsewhere."""
    return (media == 0) & (space.sum(media) > 0)


def wall_cells(media: Tensor, space: Space, *, stencil: Stencil) -> Tensor:
    """The open cells next to solid ones."""
    beside = [shift(media == 0, e[: stencil.dim], space) for e in stencil.directions[1:]]
    return (media >= 1) & torch.stack(beside).any(0)


def region_cells(media: Tensor, space: Space, *, number: int) -> Tensor:
    """The cells of one region of a medium."""
    return media == number


def idle_media(made: Simulation, state: State) -> Iterator[Problem]:
    """What has no effect beside a medium that is filled: itself, or walls; a missing region raises.

    Every rank must ask, since they count cells together.
    """
    if not isinstance(made.problem, LatticeOptions) or not made.problem.binary_media:
        return
    media, solid = made.problem.binary_media, state.buffers["#solid"]
    masks = [step for step in made.initialize if step.function in (wall_cells, region_cells)]
    for step in masks:
        if float(state.space.sum(state.buffers[step.name] & ~solid)) > 0:
            continue
        if step.function is region_cells:
            known = ", ".join(regions_of(state.buffers[media], state.space)) or "none"
            message = f"region_id = {step.options['number']} is no region of '{media}'"
            fix = f"choose the number of open cells in it: {known}"
            raise IngotError([Problem("wrong-value", message, step.span, fix)])
        message = f"'boundary = wall' has no effect here: no cell of '{media}' is a wall"
        yield Problem("idle-option", message, step.span, "leave the block out")
    regional = any(step.function is region_cells for step in masks)
    if not regional and not float(state.space.sum(solid)):
        message = f"'binary_media' has no effect here: no cell of '{media}' is solid"
        fix = "write 0 in solid cells and 1 or more in open ones, or leave it out"
        yield Problem("idle-option", message, made.span("Problem", "binary_media"), fix)


def regions_of(media: Tensor, space: Space) -> list[str]:
    """The numbers of a medium beside 0, over all ranks; the first few of them."""
    own = media.unique().tolist()
    said = [own] if space.share is None else space.share.agree(own)
    found = sorted({number for each in said for number in each} - {0})
    return [f"{number:g}" for number in found[:MOST_REGIONS]]
