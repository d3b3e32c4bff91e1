"""Any batch shape in, one flat batch inside, the same batch shape out."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.types import Value

__all__ = ["common", "flattened", "restored"]


def flattened(
    given: Sequence[tuple[type[Value], int, Tensor]],
) -> tuple[list[Tensor], tuple[int, ...]]:
    """Tensors `(*batch, *axes, *base)` as `(B, *axes, *base)`, or `(1, ...)` where unbatched.

    Each comes with its kind and its number of axes; the common batch shape is returned too.
    """
    ranks = [x.ndim - axes - len(kind.base) for kind, axes, x in given]
    batch = common([tuple(x.shape[:r]) for (_, _, x), r in zip(given, ranks, strict=True)])
    count = math.prod(batch)
    flat = []
    for (_, _, x), rank in zip(given, ranks, strict=True):
        rest = x.shape[rank:]
        if math.prod(x.shape[:rank]) == 1 and count != 0:
            flat.append(x.reshape(1, *rest))
        else:
            flat.append(x.expand((*batch, *rest)).reshape((count, *rest)))
    return flat, batch


def common(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The batch shape that all broadcast to; two that do not fit are named."""
    found: tuple[int, ...] = ()
    for shape in shapes:
        try:
            found = tuple(torch.broadcast_shapes(found, shape))
        except RuntimeError:
            raise IngotError([Problem(
                "batches-differ", f"batch shapes {found} and {shape} do not broadcast", None,
                "give every input, and every batched parameter, the same batch shape or none",
            )]) from None  # fmt: skip
    return found


def restored(x: Tensor, batch: tuple[int, ...], kind: type[Value], axes: int) -> Tensor:
    """A result `(B, *axes, components)` in the batch shape and base shape of its kind."""
    return x.reshape((*batch, *x.shape[1 : 1 + axes], *kind.base))
