"""How operands lie in memory, for a kernel: axes that lie as one are joined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

__all__ = ["Layout", "joined", "order_of"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of the axes that are left, and the strides of all operands along each of them."""

    rank: int
    extents: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def points(self) -> int:
        """How many points there are."""
        return math.prod(self.extents)

    @property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        """The strides of each operand along all axes."""
        return tuple(zip(*self.columns, strict=True))


def joined(
    sizes: tuple[int, ...], operands: Sequence[Tensor], order: Sequence[int] | None = None, *,
    join: bool = True,
) -> Layout:  # fmt: skip
    """The layout of operands that broadcast to some sizes, their axes taken in some order.

    The rank is that of the sizes, or 1. Unless `join`, all axes stay apart.
    """
    rank = len(sizes)
    taken = range(rank) if order is None else order
    every = [strides_of(x, rank) for x in operands]
    extents = [sizes[axis] for axis in taken] or [1]
    columns = [tuple(row[axis] for row in every) for axis in taken] or [(0,) * len(every)]
    at = len(extents) - 2
    while join and at >= 0:
        inner_fixed = at == len(extents) - 2 and extents[-1] == 1
        together = all(
            a == b * extents[at + 1] for a, b in zip(columns[at], columns[at + 1], strict=True)
        )
        if together and not inner_fixed:
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
            columns[at : at + 2] = [columns[at + 1]]
        at -= 1
    return Layout(max(rank, 1), tuple(extents), tuple(columns))


def strides_of(x: Tensor, rank: int) -> list[int]:
    """The strides of a tensor that broadcasts to a rank: 0 where it has one value."""
    pairs = zip(x.shape, x.stride(), strict=True)
    return [0] * (rank - x.dim()) + [0 if size == 1 else stride for size, stride in pairs]


def order_of(sizes: tuple[int, ...], operands: Sequence[Tensor]) -> tuple[int, ...]:
    """The axes from the outermost to the innermost, as most of the memory of operands has them."""
    bytes_with: dict[tuple[int, ...], int] = {}
    for x in operands:
        strides = x.stride()
        if x.shape == sizes and 0 not in strides:
            order = tuple(sorted(range(len(sizes)), key=strides.__getitem__, reverse=True))
            bytes_with[order] = bytes_with.get(order, 0) + x.element_size()
    return max(bytes_with, key=bytes_with.__getitem__, default=tuple(range(len(sizes))))
