"""Any batch shape in, one flat batch inside, the same batch shape out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from ingot.messages import refuse

if TYPE_CHECKING:
    from ingot.program import Program, Space, Variable

__all__ = [
    "ValueShape",
    "broadcast_shapes",
    "find_slopes",
    "flatten_batch",
    "join_batches",
    "shape_of",
]


@dataclass(frozen=True, slots=True)
class ValueShape:
    """A variable as arrays see it: `(*batch, *sizes, *base)`, sizes being those of its axes."""

    name: str
    sizes: tuple[int, ...]
    base: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of axes that are not batch."""
        return len(self.sizes) + len(self.base)

    @property
    def width(self) -> int:
        """The number of components, every entry of the axes counted."""
        return math.prod((*self.sizes, *self.base))


def shape_of(variable: "Variable", space: "Space") -> ValueShape:
    """The shape of a program's variable."""
    sizes = tuple(space.extent(a) for a in variable.axes)
    return ValueShape(variable.name, sizes, variable.kind.base)


def find_slopes(program: "Program") -> tuple[tuple[ValueShape, ValueShape], ...]:
    """The outputs of a program that are derivatives, each after the value it is of."""
    shapes = {v.name: shape_of(v, program) for v in program.outputs}
    return tuple(
        (shapes[v.slope_of], shapes[v.name]) for v in program.outputs if v.slope_of in shapes
    )


def flatten_batch(
    given: Sequence[tuple[ValueShape, Tensor]],
) -> tuple[list[Tensor], tuple[int, ...]]:
    """Tensors `(*batch, *sizes, *base)` as `(B, *sizes, *base)`, or `(1, ...)` where unbatched.

    The common batch shape is returned too.
    """
    ranks = [x.ndim - v.rank for v, x in given]
    batch = join_batches([tuple(x.shape[:r]) for (_, x), r in zip(given, ranks, strict=True)])
    count = math.prod(batch)
    flat = []
    for (_, x), rank in zip(given, ranks, strict=True):
        rest = x.shape[rank:]
        if math.prod(x.shape[:rank]) == 1 and count != 0:
            flat.append(x.reshape(1, *rest))
        else:
            flat.append(x.expand((*batch, *rest)).reshape((count, *rest)))
    return flat, batch


def join_batches(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The batch shape that all broadcast to; two that do not fit are named."""
    found: tuple[int, ...] = ()
    for shape in dict.fromkeys(shapes):
        both = broadcast_shapes(found, shape)
        if both is None:
            raise refuse("batches", first=found, second=shape)
        found = both
    return found


def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    """The shape that both broadcast to, if there is one; torch's own imports sympy, for 0.6 s."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    sizes = [(y if x == 1 else x, x == y or 1 in (x, y)) for x, y in pairs]
    return tuple(n for n, _ in sizes) if all(fits for _, fits in sizes) else None
