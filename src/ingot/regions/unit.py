"""Compiled code of one kind of block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from ingot.regions.plan import UnitInfo

__all__ = ["AheadUnit"]


@dataclass(frozen=True, slots=True)
class AheadUnit:
    """Compiled code for one kind of block; `run` takes lifted tensors, then inputs, unchecked.

    settled: a faster `run` for tensors that lie as those it is given, in the same mode.
    """

    info: UnitInfo
    run: Callable[..., Sequence[Tensor]]
    seconds: float
    settled: Callable[..., Callable[..., Sequence[Tensor]]] | None = None
