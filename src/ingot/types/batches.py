"""Batches of which some values lose axes: sums over points, and the transposes of what they do.

Tensors here are `(*batch, *rest)`. `dims` are the axes of the batch that a value was summed over,
from the left; None says that it has no batch, and is the same at all points.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from torch import Tensor

from ingot.errors import IngotError, Problem, Span

__all__ = [
    "EVERY_POINT", "Dims", "Level", "PointRule", "Reduced", "apply_rule", "find_dims", "join_dims",
    "reduce_dims", "refuse_reduction", "remove_axes",
    "spread_points",
]  # fmt: skip

Dims = tuple[int, ...]
PointRule = Literal["sum", "mean", "spread sum", "spread mean", "fit", "collect"]
"""What is done with points.

sum, mean: over an axis of the batch; spread: the transpose, an adjoint for every point of the
operand; fit: an adjoint that is given, for the batch of its value; collect: the transpose of a
broadcast, of a value that was read together with values of more points.
"""

EVERY_POINT = "every point"
"""A source that always has the whole batch; no variable of a file has a blank in its name."""


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values of a batch that no input has: what they were made from, and how.

    sources: the inputs and levels that were summed; dim: the axis that is gone; what: the model
    that sums, as errors call it.
    """

    sources: tuple[str, ...]
    dim: int
    what: str


class Reduced:
    """The axes of the batch that values of one call have lost, by what they depend on.

    unbatched: the inputs that have no batch in this call.
    """

    def __init__(
        self, levels: Mapping[str, Level], batch: tuple[int, ...], unbatched: Iterable[str]
    ) -> None:
        self.levels, self.batch = levels, batch
        self._known: dict[str, Dims | None] = dict.fromkeys(unbatched)
        self._joined: dict[tuple[str, ...], Dims | None] = {}

    def dims(self, sources: tuple[str, ...]) -> Dims | None:
        """Those of a value that depends on such inputs and levels."""
        if sources not in self._joined:
            self._joined[sources] = self._join(sources)
        return self._joined[sources]

    def _join(self, sources: tuple[str, ...]) -> Dims | None:
        several = {name: self._of(name) for name in sources}

        def tell() -> tuple[str, None]:
            return next(self.levels[n].what for n in several if n in self.levels), None

        return join_dims(several.values(), self.batch, tell)

    def left(self, sources: tuple[str, ...]) -> tuple[int, ...]:
        """The batch of such a value."""
        dims = self.dims(sources)
        return () if dims is None else remove_axes(self.batch, dims)

    def _of(self, name: str) -> Dims | None:
        if name not in self._known:
            level = self.levels.get(name)
            self._known[name] = () if level is None else self._reduce(level)
        return self._known[name]

    def _reduce(self, level: Level) -> Dims:
        held = self.dims(level.sources) or ()
        return reduce_dims(held, level.dim, self.batch, (level.what, None))


def find_dims(own: Sequence[int], batch: Sequence[int]) -> Dims | None:
    """Those of an input of a batch shape of its own, in a call of that batch."""
    same = math.prod(own) == 1 and tuple(own) != tuple(batch)
    return None if same and math.prod(batch) else ()


def remove_axes(batch: Sequence[int], dims: Iterable[int]) -> tuple[int, ...]:
    """A batch shape without the axes that were summed over."""
    gone = set(dims)
    return tuple(n for i, n in enumerate(batch) if i not in gone)


def join_dims(
    several: Iterable[Dims | None],
    batch: Sequence[int],
    tell: Callable[[], tuple[str, Span | None]],
) -> Dims | None:
    """Those of a result, given those of all that it reads.

    A sum that meets values of every point has one value at every point, where it has no batch of
    its own left; otherwise the two do not go together. tell: what sums, and where it is written.
    """
    batched = set(several) - {None}
    if len(batched) <= 1:
        return batched.pop() if batched else None
    for left in (remove_axes(batch, dims) for dims in batched if dims):
        if left:
            why = f"of batch {left}, and meets values of batch {tuple(batch)}"
            raise refuse_reduction(tell(), why, "sum over all axes of the batch before")
    return ()


def reduce_dims(dims: Dims, dim: int, batch: Sequence[int], what: tuple[str, Span | None]) -> Dims:
    """Those of a sum over one more axis, counted among those that are left."""
    left = [i for i in range(len(batch)) if i not in dims]
    if not -len(left) <= dim < len(left):
        why = f"and the batch {remove_axes(batch, dims)} has no axis {dim}"
        raise refuse_reduction(what, why, "choose another 'dim'")
    return tuple(sorted((*dims, left[dim])))


def refuse_reduction(what: tuple[str, Span | None], why: str, fix: str) -> IngotError:
    """The error of a sum over points that cannot be."""
    return IngotError([Problem("batch-reduction", f"{what[0]}, {why}", what[1], fix)])


def apply_rule(
    rule: PointRule, dim: int, x: Tensor, dims: Dims | None, like: Dims | None,
    batch: tuple[int, ...],
) -> Tensor:  # fmt: skip
    """What a rule makes of a value `(*left, *rest)`, of which `dims` are gone.

    like: the axes that are gone from the value whose adjoint is made; `sum` and `mean` have none.
    """
    if rule in ("sum", "mean"):
        shape = remove_axes(batch, dims or ())
        whole = _expand(x, dims, shape)
        return whole.mean(dim % len(shape)) if rule == "mean" else whole.sum(dim % len(shape))
    shape = remove_axes(batch, like or ())
    if rule == "fit":
        if dims is None:
            return _expand(x, None, shape)
        # it is given at every point, and the same along the axes that its value has lost
        for gone in reversed(like or ()):
            x = x.select(gone, 0)
        return x
    if rule == "collect":
        if like and dims == ():
            return x.sum(tuple(range(len(batch))))
        if like is None and dims:
            # the value was the same at all points: each has an equal part in what it did
            whole = spread_points(x, dims, batch)
            return whole * (math.prod(remove_axes(batch, dims)) / math.prod(batch))
        return x
    place = dim % len(shape)
    whole = _expand(x.unsqueeze(place), (), shape)
    return whole / shape[place] if rule == "spread mean" else whole


def spread_points(x: Tensor, dims: Dims | None, batch: tuple[int, ...]) -> Tensor:
    """A value at every point of the batch, the same along the axes that it had lost."""
    for axis in dims or ():
        x = x.unsqueeze(axis)
    return _expand(x, None if dims is None else (), batch)


def _expand(x: Tensor, dims: Dims | None, shape: tuple[int, ...]) -> Tensor:
    """A value at all points of a batch."""
    rest = x.shape if dims is None else x.shape[len(shape) :]
    return x.expand((*shape, *rest))
