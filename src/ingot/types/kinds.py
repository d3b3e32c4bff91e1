"""The kinds of values: shapes, storage (Mandel for symmetric tensors) and their constructors."""

import importlib
import math
from typing import Any, ClassVar, Self

import torch

from ingot.types.value import Flag, Scalar, Value, assemble

__all__ = [
    "KINDS", "MRP", "R2", "SR2", "SSR4", "WR2", "Flag", "MillerIndex", "Quaternion", "Scalar",
    "Vec",
]  # fmt: skip

SQRT2 = math.sqrt(2.0)


class Vec(Value):
    """A Cartesian vector."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (3,)


class WR2(Value):
    r"""A skew tensor by its axial vector, $W v = w \times v$."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (3,)

    @classmethod
    def identity(cls) -> Self:
        """No rotation."""
        return cls.zeros()


class MRP(Value):
    r"""A rotation by modified Rodrigues parameters, $r = n \tan(\theta / 4)$; zero is none."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (3,)

    @classmethod
    def identity(cls) -> Self:
        """No rotation."""
        return cls.zeros()

    @classmethod
    def from_axis_angle(cls, axis: Vec, angle: Scalar) -> Self:
        """The rotation about an axis by an angle."""
        unit = axis.data / axis.data.norm(dim=-1, keepdim=True)
        return cls(unit * torch.tan(Scalar(angle).data / 4.0)[..., None])

    @classmethod
    def from_axis_angle_standard(cls, axis: Vec, angle: Scalar) -> Self:
        """The same, by way of the standard Rodrigues parameters."""
        unit = axis.data / axis.data.norm(dim=-1, keepdim=True)
        return cls._from_standard(unit * torch.tan(Scalar(angle).data / 2.0)[..., None])

    @classmethod
    def rotation_from_to(cls, start: Vec, end: Vec) -> Self:
        """The shortest rotation of one unit vector into another."""
        between = torch.linalg.cross(start.data, end.data)
        return cls._from_standard(between / (1.0 + (start.data * end.data).sum(-1, keepdim=True)))

    @classmethod
    def from_matrix(cls, matrix: "R2") -> Self:
        """The rotation of a matrix, by less than half a turn."""
        m = matrix.data
        half = torch.sqrt(1.0 + m.diagonal(dim1=-2, dim2=-1).sum(-1)) / 2.0
        skew = [m[..., i, j] - m[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
        return cls(torch.stack(skew, -1) / (4.0 * half * (1.0 + half))[..., None])

    @classmethod
    def rand(cls, *batch: int) -> Self:
        """Rotations that are spread evenly, after Shoemake."""
        share, first, second = torch.rand(3, *batch, dtype=torch.float64)
        low, high, turn = torch.sqrt(1.0 - share), torch.sqrt(share), 2.0 * math.pi
        vector = torch.stack([low * torch.sin(turn * first), low * torch.cos(turn * first),
                              high * torch.sin(turn * second)], -1)  # fmt: skip
        real = high * torch.cos(turn * second)
        # of q and -q, which are one rotation, the one by less than half a turn
        side = torch.where(real < 0.0, -1.0, 1.0)[..., None]
        return cls(side * vector / (1.0 + real.abs())[..., None])

    @classmethod
    def _from_standard(cls, standard: torch.Tensor) -> Self:
        square = (standard * standard).sum(-1, keepdim=True)
        return cls(standard / (1.0 + torch.sqrt(1.0 + square)))


class MillerIndex(Value):
    """Crystallographic indices (h, k, l)."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (3,)


class Quaternion(Value):
    """A rotation by a unit quaternion (w, x, y, z)."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (4,)

    @classmethod
    def identity(cls) -> Self:
        """No rotation."""
        return cls.fill(1.0, 0.0, 0.0, 0.0)


class R2(Value):
    """A second-order tensor, row index first."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (3, 3)

    @classmethod
    def identity(cls) -> Self:
        """The unit tensor."""
        return cls(torch.eye(3, dtype=torch.float64))


class SR2(Value):
    r"""A symmetric tensor in Mandel order: 11, 22, 33, then $\sqrt 2$ times 23, 13, 12."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (6,)

    @classmethod
    def fill(cls, *components: Any) -> Self:
        """From 1 (isotropic), 3 (diagonal) or 6 entries 11 22 33 23 13 12 of the full tensor."""
        if len(components) == 1:
            components *= 3
        if len(components) == 3:
            components = (*components, 0.0, 0.0, 0.0)
        shear = [SQRT2 * x for x in components[3:]]
        return assemble(cls, (*components[:3], *shear))

    @classmethod
    def identity(cls) -> Self:
        """The unit tensor."""
        return cls.fill(1.0)


class SSR4(Value):
    """A fourth-order tensor with minor symmetries, Mandel on both sides."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (6, 6)

    @classmethod
    def identity_sym(cls) -> Self:
        """Leaves a symmetric tensor as it is."""
        return cls(torch.eye(6, dtype=torch.float64))

    @classmethod
    def identity(cls) -> Self:
        r"""$I \otimes I$: a tensor becomes its trace times the unit tensor."""
        ones = torch.zeros(6, dtype=torch.float64)
        ones[:3] = 1.0
        return cls(torch.outer(ones, ones))

    @classmethod
    def identity_vol(cls) -> Self:
        """Keeps the volumetric part."""
        return cls(cls.identity().data / 3.0)

    @classmethod
    def identity_dev(cls) -> Self:
        """Keeps the deviatoric part."""
        return cls(cls.identity_sym().data - cls.identity_vol().data)

    @classmethod
    def identity_C1(cls) -> Self:
        """Keeps the normal components: what a cubic stiffness multiplies by its first constant."""
        return cls(torch.diag(torch.tensor([1.0, 1, 1, 0, 0, 0], dtype=torch.float64)))

    @classmethod
    def identity_C2(cls) -> Self:
        """Each normal component becomes the sum of the two others: of the second constant."""
        return cls(cls.identity().data - cls.identity_C1().data)

    @classmethod
    def identity_C3(cls) -> Self:
        """Keeps the shear components: of the third constant."""
        return cls(cls.identity_sym().data - cls.identity_C1().data)


KINDS: dict[str, type[Value]] = {
    kind.__name__: kind for kind in (Scalar, Vec, SR2, WR2, R2, MRP, SSR4, MillerIndex, Quaternion)
}

# Torch has no public way to say it, and its private names live in a room below this one.
_private = importlib.import_module("ingot.graphs.torch_private")
for _kind in (*KINDS.values(), Flag):
    _private.register_value(_kind)
