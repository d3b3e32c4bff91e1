"""How a dense tensor lies in memory: the order of its axes, outermost first; () is row-major."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ingot.graphs.torch_private import hint_of

__all__ = ["Order", "arrange", "blank", "is_arranged", "number_of", "order_of"]

Order = tuple[int, ...]


def order_of(tensor: Tensor) -> Order:
    """The axes from the outermost to the innermost; () where that is row-major or not dense."""
    strides = [*map(number_of, tensor.stride())]
    order = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
    return order if not is_arranged(tensor, ()) and is_arranged(tensor, order) else ()


def is_arranged(tensor: Tensor, order: Order) -> bool:
    """Whether the axes of a tensor, which may be fake, lie in an order without gaps."""
    sizes, strides = tensor.shape, tensor.stride()
    expected = 1
    for axis in reversed(order or range(len(sizes))):
        size = number_of(sizes[axis])
        if size != 1 and number_of(strides[axis]) != expected:
            return False
        expected *= size
    return True


def number_of(size: Any) -> int:
    """A size, of an open one that of the example."""
    return size if isinstance(size, int) else hint_of(size)


def blank(
    sizes: Sequence[Any], order: Order, dtype: torch.dtype, device: torch.device | str
) -> Tensor:
    """A tensor without numbers whose axes lie in an order."""
    if not order:
        return torch.empty(sizes, dtype=dtype, device=device)
    strides: list[Any] = [1] * len(sizes)
    for outer, inner in reversed([*pairwise(order)]):
        strides[outer] = strides[inner] * sizes[inner]
    return torch.empty_strided(sizes, strides, dtype=dtype, device=device)


def arrange(tensor: Tensor, order: Order) -> Tensor:
    """The same numbers with the axes in an order; a copy only where they are not."""
    if not order:
        return tensor.contiguous()
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(inverse)
