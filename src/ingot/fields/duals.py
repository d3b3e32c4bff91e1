"""Dual: a field and how it changes along a direction, for functions of sums and products.

Both are plain fields, so that a compiled sequence holds them whatever the sizes of the grid are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["Dual", "derivative_along"]

Number = Tensor | float


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """A value and its derivative along a direction; what else is added or multiplied is fixed."""

    value: Tensor
    slope: Tensor

    def __add__(self, other: Dual | Number) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    def __mul__(self, other: Dual | Number) -> Dual:
        if isinstance(other, Dual):
            slope = self.slope * other.value + self.value * other.slope
            return Dual(self.value * other.value, slope)
        return Dual(self.value * other, self.slope * other)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Dual | Number) -> Dual:
        return self + (-other)

    def __rsub__(self, other: Number) -> Dual:
        return -self + other

    def __truediv__(self, other: Number) -> Dual:
        return Dual(self.value / other, self.slope / other)

    __radd__, __rmul__ = __add__, __mul__

    @classmethod
    def __torch_function__(
        cls, function: Any, kinds: Any, args: Sequence[Any] = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Zeros are zeros all along; a tensor leaves operators to its right side."""
        if function is torch.zeros_like:
            return torch.zeros_like(args[0].value)
        return NotImplemented


def derivative_along(
    function: Callable[..., Sequence[Any]], start: Sequence[Tensor], along: Sequence[Tensor]
) -> list[Tensor]:
    """The derivatives of a function's results, of a sequence of fields, along a direction."""
    found = function([Dual(x, slope) for x, slope in zip(start, along, strict=True)])
    return [x.slope if isinstance(x, Dual) else torch.zeros_like(start[0]) for x in found]
