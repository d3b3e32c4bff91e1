"""The kinds of values: shapes, storage (Mandel for symmetric tensors) and their constructors."""

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


class MillerIndex(Value):
    """Crystallographic indices (h, k, l)."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (3,)


class Quaternion(Value):
    """A rotation by a unit quaternion (w, x, y, z)."""

    __slots__ = ()
    base: ClassVar[tuple[int, ...]] = (4,)


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


KINDS: dict[str, type[Value]] = {
    kind.__name__: kind for kind in (Scalar, Vec, SR2, WR2, R2, MRP, SSR4, MillerIndex, Quaternion)
}
