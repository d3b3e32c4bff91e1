"""Operations on fields with components: linear combinations, and fields joined as components.

Both are operations of torch, so that a compiled sequence can write them out for each component.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from ingot.fields.lbm.stencils import Matrix
from ingot.fields.spaces import Grid, Space
from ingot.graphs.torch_private import OpOverload

__all__ = ["clear", "combine", "join", "register", "shift"]


def combine(field: Grid, matrix: Matrix) -> Grid:
    """A component for each row of a matrix: the sum of those of a field, times its entries."""
    mix, _ = register()
    return mix(field, [x for row in matrix for x in row], len(matrix))


def join(parts: Sequence[Grid]) -> Grid:
    """Fields as the components of one, each of which lies in one piece."""
    _, pile = register()
    return pile(list(parts))


def shift(field: Grid, by: Sequence[int], space: Space) -> Grid:
    """A field moved by whole cells along the axes of space, which wrap around."""
    moved = [axis for axis, count in enumerate(by) if count]
    return space.roll(field, [by[axis] for axis in moved], moved) if moved else field


def clear(field: Grid, solid: Tensor | None) -> Grid:
    """A field that is zero in solid cells, where there are any."""
    if solid is None:
        return field
    inside = solid.reshape(*solid.shape, *[1] * (field.dim() - solid.dim()))
    return torch.where(inside, torch.zeros_like(field), field)


@functools.cache
def register() -> tuple[OpOverload, OpOverload]:
    """The operations behind `combine` and `join`, known to torch from the first use on."""

    @torch.library.custom_op("ingot::mix", mutates_args=())
    def mix(field: Tensor, matrix: list[float], rows: int) -> Tensor:
        weights = torch.tensor(matrix, dtype=field.dtype, device=field.device).reshape(rows, -1)
        # along the memory of each component, as a sum of whole fields is
        return torch.tensordot(weights, field.movedim(-1, 0), 1).movedim(0, -1)

    @mix.register_fake
    def _(field: Tensor, matrix: list[float], rows: int) -> Tensor:
        return field.new_empty((*field.shape[:-1], rows))

    @torch.library.custom_op("ingot::pile", mutates_args=())
    def pile(parts: list[Tensor]) -> Tensor:
        return torch.stack(torch.broadcast_tensors(*parts)).movedim(0, -1)

    @pile.register_fake
    def _(parts: list[Tensor]) -> Tensor:
        shape = torch.broadcast_shapes(*(part.shape for part in parts))
        return parts[0].new_empty((*shape, len(parts)))

    return torch.ops.ingot.mix.default, torch.ops.ingot.pile.default
