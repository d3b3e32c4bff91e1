r"""Algebra of small values, written over components, with corners that are safe in value and slope.

Elementwise functions, invariants, products and rotations; each runs on tensors and on atoms alike.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch

from ingot.types.kinds import MRP, R2, SQRT2, SR2, SSR4, WR2, Quaternion, Vec
from ingot.types.value import Scalar, Value, apply, on_atoms, where

__all__ = [
    "abs", "acos", "asin", "atan", "below_one", "clamp", "compose", "cos", "cosh", "cross", "det",
    "dev", "eps", "euler_rodrigues", "exp", "exp_map", "heaviside", "inner", "inv", "log", "log10",
    "macaulay", "matmul", "maximum", "minimum", "norm", "outer", "pow", "r2_from_sr2",
    "r2_from_wr2", "rotate", "sign", "signed_power", "sin", "sinh", "skew", "sqrt", "sym", "tan",
    "tanh", "tr", "transpose", "unit", "vdot", "vol", "where",
]  # fmt: skip

T = TypeVar("T", bound=Value)

LIFT = 2.0**600  # brings every double whose square under- or overflows to where it does not
FAR = 2.0**-900  # a sum of squares below has lost digits; above its reciprocal it may be infinite


def exp(x: T) -> T:
    """$e^x$."""
    return apply("exp", x)


def log(x: T) -> T:
    """Natural logarithm."""
    return apply("log", x)


def log10(x: T) -> T:
    """Logarithm to base ten."""
    return apply("log10", x)


def sqrt(x: T) -> T:
    """Square root; its slope at zero is infinite, so guard the argument."""
    return apply("sqrt", x)


def sin(x: T) -> T:
    """Sine."""
    return apply("sin", x)


def cos(x: T) -> T:
    """Cosine."""
    return apply("cos", x)


def tan(x: T) -> T:
    """Tangent."""
    return apply("tan", x)


def asin(x: T) -> T:
    """Inverse sine."""
    return apply("asin", x)


def acos(x: T) -> T:
    """Inverse cosine."""
    return apply("acos", x)


def atan(x: T) -> T:
    """Inverse tangent."""
    return apply("atan", x)


def sinh(x: T) -> T:
    """Hyperbolic sine."""
    return apply("sinh", x)


def cosh(x: T) -> T:
    """Hyperbolic cosine."""
    return apply("cosh", x)


def tanh(x: T) -> T:
    """Hyperbolic tangent."""
    return apply("tanh", x)


def abs(x: T) -> T:
    """Absolute value; its slope at zero is zero."""
    return apply("abs", x)


def sign(x: T) -> T:
    """-1, 0 or 1; constant by pieces, so its slope is zero."""
    return apply("sign", x)


def pow(x: T, n: Any) -> T:
    """$x^n$; its slope by the exponent is zero where the base is zero."""
    return apply("pow", x, n)


def signed_power(x: T, n: Any) -> T:
    r"""$|x|^{n-1} x$, which has the sign of $x$; its slope at zero is zero, for $n = 1$ one."""
    size = maximum(abs(x), 1e-30)  # slope at 0 also for n < 2, not nan; a single holds the number
    return size ** (n - 1.0) * x


def heaviside(x: T) -> T:
    """0 below zero, 1 above, 1/2 at zero."""
    return (sign(x) + 1.0) * 0.5


def macaulay(x: T) -> T:
    r"""The positive part, $x H(x)$."""
    return x * heaviside(x)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two, NaN if one of them is; a tie takes the second."""
    return where(a <= b, b, _or_nan(a, b))


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two, NaN if one of them is; a tie takes the second."""
    return where(a >= b, b, _or_nan(a, b))


def _or_nan(a: Any, b: Any) -> Any:
    """The first, or the second if that is NaN; a second that is constant costs nothing."""
    return where(apply("eq", b, b), a, b)


def clamp(x: T, low: Any, high: Any) -> T:
    """`x` kept within bounds, NaN as it is; the slope is zero outside and at the bounds."""
    return minimum(maximum(x, low), high)


def below_one(x: Scalar) -> Scalar:
    r"""`x`, at most $1 - \epsilon$; its slope is one up to and at 1, where states start."""
    tiny = eps(x)
    return where(x > 1.0, 1.0 - tiny, where(x > 1.0 - tiny, x - tiny, x))


def eps(x: Value) -> Scalar:
    """The machine epsilon of the precision that `x` is computed in."""
    atom = on_atoms(x)
    if atom is not None:
        return Scalar((atom.emit("eps"),))
    return Scalar(torch.tensor(torch.finfo(x.data.dtype).eps, dtype=x.data.dtype))


def add_up(terms: Sequence[Any]) -> Any:
    """The sum of the terms, left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def inner(a: Value, b: Value) -> Scalar:
    """The sum of the products of components."""
    if type(a) is not type(b):
        raise TypeError(f"inner of {type(a).__name__} and {type(b).__name__}: the kinds differ")
    return add_up([x * y for x, y in zip(a.components, b.components, strict=True)])


vdot = inner


def norm(a: Value, eps: Any = 0.0) -> Scalar:
    r"""$\sqrt{a \cdot a + \epsilon}$; without an epsilon, value and slope at zero are zero.

    Without one, no square of a double over- or underflows; with one, components are below 1e153.
    """
    if isinstance(eps, Value) or eps != 0.0:
        return sqrt(inner(a, a) + eps)
    # A power of two, so that no digit changes, and chosen by comparison, so that it has no slope.
    rough = inner(a, a)
    large, small = rough > 1.0 / FAR, rough < FAR
    a = a * where(large, 1.0 / LIFT, where(small, LIFT, 1.0))
    square = inner(a, a)
    zero = square <= 0.0
    length = where(zero, 0.0, sqrt(where(zero, 1.0, square)))
    return length * where(large, LIFT, where(small, 1.0 / LIFT, 1.0))


def unit(a: T, eps: Any = 0.0) -> T:
    """The value divided by its norm."""
    return a / norm(a, eps)


def tr(a: SR2 | R2) -> Scalar:
    """The trace."""
    if isinstance(a, R2):
        return a[0, 0] + a[1, 1] + a[2, 2]
    return a[0] + a[1] + a[2]


def vol(a: SR2) -> SR2:
    """The volumetric part."""
    mean = tr(a) / 3.0
    return SR2.of(mean, mean, mean, 0.0, 0.0, 0.0)


def dev(a: SR2) -> SR2:
    """The deviatoric part, which has no trace."""
    mean = tr(a) / 3.0
    return SR2.of(a[0] - mean, a[1] - mean, a[2] - mean, a[3], a[4], a[5])


def outer(a: SR2, b: SR2) -> SSR4:
    """The dyadic product."""
    return SSR4.of(*(x * y for x in a.components for y in b.components))


def cross(a: Value, b: Value) -> Vec:
    """The vector product."""
    return Vec.of(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def transpose(a: R2) -> R2:
    """Rows and columns exchanged."""
    return R2.of(*(a[j, i] for i in range(3) for j in range(3)))


def matmul(a: Value, b: Value) -> Any:
    """The product of matrices, or of a matrix and the vector of a symmetric tensor."""
    if isinstance(a, R2) and isinstance(b, R2):
        return R2.of(
            *(add_up([a[i, k] * b[k, j] for k in range(3)]) for i in range(3) for j in range(3))
        )
    if isinstance(a, R2) and isinstance(b, Vec):
        return Vec.of(*(add_up([a[i, k] * b[k] for k in range(3)]) for i in range(3)))
    if isinstance(a, SSR4) and isinstance(b, SR2):
        return SR2.of(*(add_up([a[i, k] * b[k] for k in range(6)]) for i in range(6)))
    if isinstance(a, SSR4) and isinstance(b, SSR4):
        return SSR4.of(
            *(add_up([a[i, k] * b[k, j] for k in range(6)]) for i in range(6) for j in range(6))
        )
    raise TypeError(f"no product of {type(a).__name__} and {type(b).__name__}")


def det(a: R2 | SR2) -> Scalar:
    """The determinant of a 3x3 tensor."""
    m = r2_from_sr2(a) if isinstance(a, SR2) else a
    return add_up([m[0, j] * minor(m, 0, j) for j in range(3)])


def inv(a: Any) -> Any:
    r"""The inverse: $1/x$, of a matrix, of a fourth-order tensor, or the rotation back.

    A fourth-order tensor is parted into normal and shear components; the normal block must have
    an inverse too, as that of every positive stiffness has.
    """
    if isinstance(a, Scalar):
        return 1.0 / a
    if isinstance(a, R2):
        scale = 1.0 / det(a)
        return transpose(cofactors(a)) * scale
    if isinstance(a, SR2):
        m = r2_from_sr2(a)
        scale = 1.0 / det(m)
        return SR2.of(*(minor(m, i, j) * scale * root for i, j, root in MANDEL))
    if isinstance(a, SSR4):
        return _inverse_by_blocks(a)
    if isinstance(a, MRP):
        return -a
    if isinstance(a, Quaternion):
        return Quaternion.of(a[0], -a[1], -a[2], -a[3]) / inner(a, a)
    remedy = ": -w turns back" if isinstance(a, WR2) else ""
    raise TypeError(f"a {type(a).__name__} has no inverse{remedy}")


def _inverse_by_blocks(a: SSR4) -> SSR4:
    r"""The inverse of $\begin{pmatrix} N & M \\ L & S \end{pmatrix}$ by $S - L N^{-1} M$."""

    def block(row: int, column: int) -> R2:
        return R2.of(*(a[row + i, column + j] for i in range(3) for j in range(3)))

    normal = inv(block(0, 0))
    left, above = block(3, 0) @ normal, normal @ block(0, 3)
    shear = inv(block(3, 3) - left @ block(0, 3))
    across = -(above @ shear)
    corners = ((normal - across @ left, across), (-(shear @ left), shear))
    return SSR4.of(
        *(part[i, j] for row in corners for i in range(3) for part in row for j in range(3))
    )


def sym(a: R2) -> SR2:
    """The symmetric part."""
    half = SQRT2 / 2.0
    return SR2.of(
        a[0, 0],
        a[1, 1],
        a[2, 2],
        (a[1, 2] + a[2, 1]) * half,
        (a[0, 2] + a[2, 0]) * half,
        (a[0, 1] + a[1, 0]) * half,
    )


def skew(a: R2) -> WR2:
    """The skew part, as its axial vector."""
    return WR2.of((a[2, 1] - a[1, 2]) * 0.5, (a[0, 2] - a[2, 0]) * 0.5, (a[1, 0] - a[0, 1]) * 0.5)


def r2_from_sr2(a: SR2) -> R2:
    """The full matrix of a symmetric tensor."""
    yz, xz, xy = (a[i] * (1.0 / SQRT2) for i in (3, 4, 5))
    return R2.of(a[0], xy, xz, xy, a[1], yz, xz, yz, a[2])


def r2_from_wr2(w: Value) -> R2:
    """The full matrix of a skew tensor."""
    return R2.of(0.0, -w[2], w[1], w[2], 0.0, -w[0], -w[1], w[0], 0.0)


def euler_rodrigues(r: MRP) -> R2:
    r"""The rotation matrix, $I + (4 (1 - \rho) W + 8 W^2) / (1 + \rho)^2$, $\rho = r \cdot r$."""
    rho = inner(r, r)
    scale = 1.0 / ((1.0 + rho) * (1.0 + rho))
    w = r2_from_wr2(r)
    return (w * (4.0 * (1.0 - rho)) + matmul(w, w) * 8.0) * scale + R2.identity()


def compose(a: MRP, b: MRP) -> MRP:
    """The rotation `b` followed by `a`."""
    aa, bb, ab = inner(a, a), inner(b, b), inner(a, b)
    turned = cross(b, a)
    below = 1.0 / (1.0 + aa * bb - 2.0 * ab)
    parts = [((1.0 - bb) * a[i] + (1.0 - aa) * b[i] - 2.0 * turned[i]) * below for i in range(3)]
    return MRP.of(*parts)


def exp_map(w: WR2) -> MRP:
    r"""The rotation of a spin increment, in the form that the reference results were made with.

    With $s = w \cdot w$: $w \tan(s/2) / (2 s \cos(s/2))$, and its series below $\epsilon^{1/3}$.
    """
    s = inner(w, w)
    large = s > pow(eps(s), 1.0 / 3.0)
    safe = where(large, s, 1.0)
    closed = tan(safe * 0.5) / (2.0 * safe * cos(safe * 0.5))
    scale = where(large, closed, 0.25 + s * s * (5.0 / 96.0))
    return MRP.of(*(scale * x for x in w.components))


def rotate(a: Any, r: R2) -> Any:
    r"""The value turned by a rotation matrix.

    A rotation is turned as the tensor that it is, $R Q R^T$: `compose` puts one after another.
    """
    if isinstance(a, Scalar):
        return a
    if isinstance(a, Vec):
        return matmul(r, a)
    if isinstance(a, R2):
        return matmul(matmul(r, a), transpose(r))
    if isinstance(a, SR2):
        half = matmul(r, r2_from_sr2(a))
        return SR2.of(*(row_product(half, r, i, j) * scale for i, j, scale in MANDEL))
    if isinstance(a, WR2 | MRP):
        # R W R^T is the skew matrix of cof(R) w, for any R
        turned = matmul(cofactors(r), Vec.of(*a.components))
        return type(a).of(*turned.components)
    if isinstance(a, Quaternion):
        turned = matmul(cofactors(r), Vec.of(a[1], a[2], a[3]))
        return Quaternion.of(a[0], *turned.components)
    if isinstance(a, SSR4):
        q = _mandel_rotation(r)
        half = matmul(q, a)
        rows = range(6)
        return SSR4.of(*(add_up([half[i, k] * q[j, k] for k in rows]) for i in rows for j in rows))
    raise TypeError(f"no rotation of {type(a).__name__}: turn the Vec that it stands for")


MANDEL = ((0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (1, 2, SQRT2), (0, 2, SQRT2), (0, 1, SQRT2))


def _mandel_rotation(r: R2) -> SSR4:
    """The 6x6 matrix that turns a symmetric tensor in Mandel components."""
    return SSR4.of(
        *(
            r[i, k] * r[j, k] * scale
            if k == m
            else (r[i, k] * r[j, m] + r[i, m] * r[j, k]) * (scale / SQRT2)
            for i, j, scale in MANDEL
            for k, m, _ in MANDEL
        )
    )


def row_product(a: R2, b: R2, i: int, j: int) -> Scalar:
    """The product of row `i` of the first matrix and row `j` of the second."""
    return add_up([a[i, k] * b[j, k] for k in range(3)])


def minor(a: R2, i: int, j: int) -> Scalar:
    """The cofactor of entry (i, j) of a 3x3 tensor."""
    r, s = (i + 1) % 3, (i + 2) % 3
    u, v = (j + 1) % 3, (j + 2) % 3
    return a[r, u] * a[s, v] - a[r, v] * a[s, u]


def cofactors(a: R2) -> R2:
    r"""The cofactors, $\det(A) A^{-T}$."""
    return R2.of(*(minor(a, i, j) for i in range(3) for j in range(3)))
