"""What was prepared for a call -> the same for calls that lie alike: one cache for all that is
called with tensors.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from ingot.graphs.torch_private import same_layout

__all__ = ["CallCache", "Layouts", "layouts_of"]

T = TypeVar("T")

GUARDED = 4  # guards are asked in turn; a fifth costs as much as the look-up by key
KEPT = 256  # layouts known by their key: batches that keep changing must not fill memory

Layouts = tuple[
    tuple[torch.Size, tuple[int, ...], torch.dtype, torch.layout, torch.device, bool], ...
]


def layouts_of(values: Sequence[Tensor]) -> Layouts:
    """The key of a call: shapes, strides, precisions and devices, but no addresses."""
    return tuple([(x.shape, x.stride(), x.dtype, x.layout, x.device, x.is_neg()) for x in values])


class CallCache(Generic[T]):
    """Values by the layout of a call: the last few by torch's guards, the others by their key.

    Threads may share it: each field is replaced whole, and what is lost is prepared again.
    """

    __slots__ = ("_guarded", "_keyed")

    def __init__(self) -> None:
        self._guarded: tuple[tuple[object, Callable[..., bool], T], ...] = ()
        self._keyed: dict[Hashable, T] = {}

    def match(self, mode: object, tensors: Sequence[Tensor]) -> T | None:
        """What is guarded for tensors that lie as these; modes are compared by identity."""
        for known, same, value in self._guarded:
            if known is mode and same(*tensors):
                return value
        return None

    def find(self, key: Hashable) -> T | None:
        """What is kept under a key."""
        return self._keyed.get(key)

    def keep(self, key: Hashable, value: T) -> T:
        """Keep a value under a key; all go once there are too many."""
        if len(self._keyed) >= KEPT:
            self._keyed = {}
        self._keyed[key] = value
        return value

    def guard(self, mode: object, tensors: Sequence[Tensor], value: T) -> None:
        """Find a value by guards from now on; the oldest is dropped."""
        entry = (mode, same_layout(tensors), value)
        self._guarded = (entry, *self._guarded[: GUARDED - 1])

    @property
    def is_guarding(self) -> bool:
        """Whether anything is found by guards."""
        return bool(self._guarded)

    def values(self) -> list[T]:
        """All that is kept under a key."""
        return [*self._keyed.values()]
