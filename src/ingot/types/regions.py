"""Batch regions of values in input files: dynamic axes lead, structural (sub-batch) axes follow."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.types.value import Value, padded

__all__ = ["Region", "cat", "diff", "linspace", "logspace", "mean", "stack", "sum"]


class Region:
    """One region of a value's batch axes, for reshaping and reducing in tensor expressions."""

    def __init__(self, value: Value, name: str) -> None:
        self.value = value
        self.name = name

    @property
    def _span(self) -> tuple[int, int]:
        """First and last-plus-one axis of this region in the data."""
        batch = self.value.data.ndim - len(self.value.base)
        inner = batch - self.value.sub
        return (0, inner) if self.name == "dynamic" else (inner, batch)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of this region."""
        first, last = self._span
        return tuple(self.value.data.shape[first:last])

    @property
    def ndim(self) -> int:
        """The number of axes of this region."""
        return len(self.shape)

    def _new(self, data: Tensor, added: int = 0) -> Any:
        sub = self.value.sub + (added if self.name == "sub" else 0)
        return type(self.value)(data, sub_batch_ndim=sub)

    def unsqueeze(self, dim: int = -1, n: int = 1) -> Any:
        """Insert `n` axes of size one before axis `dim` of the region."""
        first, last = self._span
        at = first + dim if dim >= 0 else last + dim + 1
        data = self.value.data
        for _ in range(n):
            data = data.unsqueeze(at)
        return self._new(data, n)

    def squeeze(self, dim: int) -> Any:
        """Drop an axis of size one."""
        first, last = self._span
        return self._new(self.value.data.squeeze(first + dim if dim >= 0 else last + dim), -1)

    def expand(self, *shape: Any) -> Any:
        """Broadcast this region to a shape."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        first, last = self._span
        if len(wanted) < last - first:
            raise ValueError(f"a region of {last - first} axes does not expand to {tuple(wanted)}")
        data: Tensor = self.value.data
        for _ in range(len(wanted) - (last - first)):
            data = data.unsqueeze(first)
        full = (*data.shape[:first], *wanted, *data.shape[first + len(wanted) :])
        return self._new(data.expand(full), len(wanted) - (last - first))

    def expand_at(self, size: int, dim: int = 0) -> Any:
        """Insert an axis of `size` equal entries at `dim`."""
        grown = self.unsqueeze(dim)
        first, last = self._span
        shape = list(grown.data.shape)
        shape[first + dim if dim >= 0 else last + dim + 1] = size
        return type(self.value)(grown.data.expand(shape), sub_batch_ndim=grown.sub)

    def retag(self, count: int) -> Any:
        """Declare the last `count` batch axes structural; the data stay."""
        return self.value.with_sub_batch_ndim(count)

    def flatten(self) -> Any:
        """Declare no batch axis structural."""
        return self.retag(0)

    def __getitem__(self, index: Any) -> Any:
        places = index if isinstance(index, tuple) else (index,)
        first, last = self._span
        data: Tensor = self.value.data
        tail = (slice(None),) * (data.ndim - last)
        fill: tuple[Any, ...] = () if Ellipsis in places else (Ellipsis,)
        result = data[(slice(None),) * first + places + fill + tail]
        return self._new(result, result.ndim - data.ndim)


def linspace(start: Region, end: Region, n: int, dim: int = 0) -> Any:
    """`n` equally spaced values from start to end along a new axis of their region."""
    return _spaced(start, end, n, dim, lambda x: x)


def logspace(start: Region, end: Region, n: int, dim: int = 0, base: float = 10.0) -> Any:
    """`n` values whose exponents are equally spaced."""
    return _spaced(start, end, n, dim, lambda x: torch.pow(base, x))


def _spaced(start: Region, end: Region, n: int, dim: int, shape: Callable[[Tensor], Tensor]) -> Any:
    kind = type(start.value)
    sub = max(start.value.sub, end.value.sub)
    a, b = torch.broadcast_tensors(padded(start.value, sub), padded(end.value, sub))
    first, last = Region(kind(a, sub_batch_ndim=sub), start.name)._span
    at = first + dim if dim >= 0 else last + dim + 1
    fraction = torch.arange(n, dtype=a.dtype) / max(n - 1, 1)
    fraction = fraction.reshape((n,) + (1,) * (a.ndim - at))
    data = shape(a.unsqueeze(at) + fraction * (b - a).unsqueeze(at))
    return kind(data, sub_batch_ndim=sub + (start.name == "sub"))


def _join(regions: Sequence[Region], dim: int, how: Callable[..., Tensor], added: int) -> Any:
    first = regions[0]
    start, last = first._span
    at = start + dim if dim >= 0 else last + dim + added
    sub = first.value.sub + (added if first.name == "sub" else 0)
    return type(first.value)(how([r.value.data for r in regions], dim=at), sub_batch_ndim=sub)


def stack(regions: Sequence[Region], dim: int = 0) -> Any:
    """Join values along a new axis of their region."""
    return _join(regions, dim, torch.stack, 1)


def cat(regions: Sequence[Region], dim: int = 0) -> Any:
    """Join values along an axis of their region."""
    return _join(regions, dim, torch.cat, 0)


def _reduce(region: Region, dim: int, how: Callable[..., Tensor], lost: int) -> Any:
    first, last = region._span
    return region._new(how(region.value.data, dim=first + dim if dim >= 0 else last + dim), -lost)


def sum(region: Region, dim: int = 0) -> Any:
    """Add up an axis of a region."""
    return _reduce(region, dim, torch.sum, 1)


def mean(region: Region, dim: int = 0) -> Any:
    """Average an axis of a region."""
    return _reduce(region, dim, torch.mean, 1)


def diff(region: Region, n: int = 1, dim: int = 0) -> Any:
    """Difference of neighbours, `n` times, along an axis of a region."""
    return _reduce(region, dim, lambda data, dim: torch.diff(data, n=n, dim=dim), 0)
