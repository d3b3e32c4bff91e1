"""What tensor expressions of NEML2's files call beside the vocabulary of laws: rotations, tables,
comparisons under the names that they have there.
"""

import math
from typing import Any

from ingot.types.algebra import abs, acos, asin, clamp, inner, inv, minimum, norm, pow, sqrt
from ingot.types.interpolation import interpolate
from ingot.types.kinds import MRP, R2, Quaternion, Vec
from ingot.types.value import Flag, Scalar, Value

__all__ = [
    "bilinear_interpolation", "dV", "dist", "gdist", "gt", "inverse", "linear_interpolation", "lt",
    "opaque_pow", "quaternion_dist", "quaternion_rotation_matrix", "reciprocal", "shadow",
    "to_quaternion", "vec_component", "vec_from_scalars",
]  # fmt: skip

opaque_pow, inverse = pow, inv


def gt(a: Value, b: Any) -> Flag:
    """Whether the first is larger."""
    return a > b


def lt(a: Value, b: Any) -> Flag:
    """Whether the first is smaller."""
    return a < b


def reciprocal(x: Value) -> Value:
    """$1/x$."""
    return 1.0 / x


def vec_component(v: Vec, i: int) -> Scalar:
    """A component of a vector."""
    return v[i]


def vec_from_scalars(x: Scalar, y: Scalar, z: Scalar) -> Vec:
    """The vector with these components."""
    return Vec.of(x, y, z)


def shadow(r: MRP) -> MRP:
    r"""The other parameters of the same rotation, $-r / r \cdot r$."""
    return -r / inner(r, r)


def gdist(a: MRP, b: MRP) -> Scalar:
    r"""The angle between rotations, $4 \arcsin(\|a - b\| / \sqrt{(1 + a^2)(1 + b^2)})$."""
    scale = sqrt((inner(a, a) + 1.0) * (inner(b, b) + 1.0))
    return asin(clamp(norm(a - b) / scale, -1.0, 1.0)) * 4.0


def dist(a: MRP, b: MRP) -> Scalar:
    """The smallest angle between rotations, whichever parameters stand for them."""
    angles = [gdist(x, y) for x in (a, shadow(a)) for y in (b, shadow(b))]
    return minimum(minimum(angles[0], angles[1]), minimum(angles[2], angles[3]))


def dV(r: MRP) -> Scalar:
    r"""The density of rotations by their parameters, $8 / \pi (1 + r^2)^3$."""
    return (8.0 / math.pi) * (inner(r, r) + 1.0) ** -3.0


def to_quaternion(r: MRP) -> Quaternion:
    """The quaternion of a rotation."""
    square = inner(r, r)
    scale = 1.0 / (square + 1.0)
    return Quaternion.of((1.0 - square) * scale, *(2.0 * x * scale for x in r.components))


def quaternion_rotation_matrix(q: Quaternion) -> R2:
    """The matrix of a unit quaternion."""
    w, x, y, z = q.components
    return R2.of(
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w),
        2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w),
        2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip


def quaternion_dist(a: Quaternion, b: Quaternion) -> Scalar:
    r"""The angle between rotations, $2 \arccos |a \cdot b|$."""
    return acos(minimum(abs(inner(a, b)), 1.0)) * 2.0


def linear_interpolation(x: Scalar, abscissa: Scalar, ordinate: Scalar) -> Scalar:
    """A table at x, its knots along the last axis, going on as it ends."""
    return interpolate(x, _tabled(abscissa, 1), _tabled(ordinate, 1), "knot")


def bilinear_interpolation(
    x1: Scalar, x2: Scalar, abscissa1: Scalar, abscissa2: Scalar, ordinate: Any
) -> Any:
    """A table of two variables, rows and columns along the last axes, going on as it ends."""
    knots = _tabled(abscissa1, 1), _tabled(abscissa2, 1)
    return interpolate((x1, x2), knots, _tabled(ordinate, 2), ("row", "column"))


def _tabled(value: Any, count: int) -> Any:
    """The value with its last axes declared those of a table."""
    return value.with_sub_batch_ndim(max(value.sub, count))
