"""Crystal geometry: symmetry, slip systems and Schmid tensors of a cubic crystal."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ingot.types import R2, SR2, SSR4, WR2, MillerIndex, Scalar, Value

__all__ = ["CubicCrystal"]

_H, _C = 0.5, math.sqrt(0.5)

# Unit quaternions of the 24 rotations of a cube; their order numbers the slip systems.
_CUBIC = (
    (1, 0, 0, 0), (_H, _H, _H, _H), (-_H, _H, _H, _H), (_H, -_H, _H, _H), (_H, _H, -_H, _H),
    (-_H, -_H, -_H, _H), (_H, -_H, -_H, _H), (-_H, -_H, _H, _H), (-_H, _H, -_H, _H), (0, 0, 1, 0),
    (0, 0, 0, 1), (0, 1, 0, 0), (0, -_C, 0, _C), (0, _C, 0, _C), (_C, 0, _C, 0), (_C, 0, -_C, 0),
    (0, 0, -_C, _C), (_C, _C, 0, 0), (_C, -_C, 0, 0), (0, 0, _C, _C), (0, -_C, _C, 0),
    (_C, 0, 0, -_C), (0, _C, _C, 0), (_C, 0, 0, _C),
)  # fmt: skip


def _matrix(q: tuple[float, ...]) -> Tensor:
    w, x, y, z = q
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return torch.tensor(rows, dtype=torch.float64)


def _family(index: Tensor) -> list[Tensor]:
    """All images of a direction under the symmetry, each once up to its sign."""
    numbers = [int(i) for i in index.tolist()]
    divisor = math.gcd(*numbers) or 1
    start = torch.tensor([i // divisor for i in numbers], dtype=torch.float64)
    kept: list[Tensor] = []
    for q in _CUBIC:
        image = torch.round(_matrix(q) @ start)
        if not any(torch.equal(image, v) or torch.equal(image, -v) for v in kept):
            kept.append(image)
    return kept


@dataclass(frozen=True)
class CubicCrystal:
    """A cubic lattice with families of slip systems (directions and planes, pair by pair).

    lattice_parameter: edge of the unit cell
    slip_directions: one direction a family
    slip_planes: one plane a family
    """

    lattice_parameter: Scalar
    slip_directions: MillerIndex
    slip_planes: MillerIndex

    @cached_property
    def systems(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Unit slip direction and plane normal of every system, families one after another."""
        directions = self.slip_directions.data.reshape(-1, 3)
        planes = self.slip_planes.data.reshape(-1, 3)
        for index in (*directions.tolist(), *planes.tolist()):
            if not all(map(math.isfinite, index)) or not any(map(math.trunc, index)):
                raise ValueError(f"{index} is no Miller index of a direction or plane")
        if directions.shape != planes.shape:
            raise ValueError(
                f"{len(directions)} slip directions and {len(planes)} slip planes do not pair up"
            )
        found = [
            (d / d.norm(), n / n.norm())
            for direction, plane in zip(directions, planes, strict=True)
            for d in _family(direction)
            for n in _family(plane)
            if float(d @ n) == 0.0
        ]
        if not found:
            raise ValueError("no slip direction lies in a slip plane")
        return tuple(found)

    @property
    def stored(self) -> dict[str, str]:
        """What NEML2 calls the tensors that can be promoted."""
        return {"dyads": "A_data", "schmid": "M_data", "spin": "W_data"}

    @cached_property
    def values(self) -> dict[str, Value]:
        """The tensors that can be promoted, by what NEML2 calls them."""
        return {key: getattr(self, name) for name, key in self.stored.items()}

    @cached_property
    def dyads(self) -> R2:
        """Schmid tensors, slip direction first, on the axis `slip`."""
        return R2(torch.stack([torch.outer(d, n) for d, n in self.systems]), sub_batch_ndim=1)

    @cached_property
    def schmid(self) -> SR2:
        """Symmetric Schmid tensors, on the axis `slip`."""
        a = self.dyads.data
        half = math.sqrt(0.5)
        shear = [a[:, i, j] + a[:, j, i] for i, j in ((1, 2), (0, 2), (0, 1))]
        parts = [a[:, i, i] for i in range(3)] + [half * s for s in shear]
        return SR2(torch.stack(parts, dim=-1), sub_batch_ndim=1)

    @cached_property
    def spin(self) -> WR2:
        """Skew Schmid tensors, on the axis `slip`."""
        a = self.dyads.data
        parts = [(a[:, j, i] - a[:, i, j]) * 0.5 for i, j in ((1, 2), (2, 0), (0, 1))]
        return WR2(torch.stack(parts, dim=-1), sub_batch_ndim=1)

    @cached_property
    def pairs(self) -> SSR4:
        """Dyads of symmetric Schmid tensors, on the axes `driven` and `slip`."""
        a = self.schmid.data
        return SSR4(torch.einsum("ik,jl->ijkl", a, a), sub_batch_ndim=2)

    @cached_property
    def ones(self) -> Scalar:
        """One, on the axis `slip`."""
        return Scalar(torch.ones(len(self.systems), dtype=torch.float64), sub_batch_ndim=1)

    @property
    def extents(self) -> dict[str, int]:
        """The axes that these values carry, and their lengths."""
        return dict.fromkeys(("slip", "driven"), len(self.systems))
