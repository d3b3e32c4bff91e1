r"""Functions of the principal values of 3x3 tensors: `eigh3`, `expm3` and `polar`.

No branch and no division meets equal principal values: slopes, of any order, are finite there, and
right wherever a derivative exists. Each has a fixed number of operations.
"""

import math
from typing import NamedTuple, TypeVar, cast

from ingot.types.algebra import (
    MANDEL, add_up, cofactors, det, eps, exp, inner, matmul, r2_from_sr2, sqrt, sym, tr, transpose,
    where,
)  # fmt: skip
from ingot.types.kinds import R2, SR2, Vec
from ingot.types.value import Flag, Scalar

__all__ = ["Eigen", "Polar", "eigh3", "expm3", "polar"]

T = TypeVar("T", R2, SR2)

SQUARINGS = 10  # of expm3: every exponential that double precision holds has a deviator below 2^10
TERMS = 19  # of its series: the next one is 4e-19 where the scaled deviator's norm is 1
TRACE_STEPS = 6
TINY = (
    1e-280  # squares below have lost digits to underflow, and their reciprocals' squares overflow
)


class Eigen(NamedTuple):
    """Principal values, ascending, and the directions that belong to them, as columns."""

    eigenvalues: Vec
    eigenvectors: R2


class Polar(NamedTuple):
    """A rotation and the symmetric stretch before it."""

    rotation: R2
    stretch: SR2


def eigh3(a: SR2) -> Eigen:
    r"""Principal values, ascending, and directions, the columns of a rotation: $A V = V \Lambda$.

    Equal values have the mean of their slopes, and their directions no slope towards each other. So
    a function of the tensor that is made of both has slopes at distinct values only.

    The norm of the deviator lies between 1e-139 and 1e153, in single precision between 1e-18 and
    1e18: its square would underflow below, where values are taken for equal or lose digits, and
    overflow above, where all is NaN. Scale tensors of other sizes first.
    """
    # Twice, so that the deviator has no trace to its own precision, not to that of the mean.
    mean = tr(a) / 3.0
    b = a - SR2.identity() * mean
    rest = tr(b) / 3.0
    b, mean = b - SR2.identity() * rest, mean + rest
    square = inner(b, b) / 6.0
    noise = 8.0 * eps(square)  # how far rounding alone parts equal values
    spherical = square <= noise * mean * (noise * mean) + TINY
    p = sqrt(where(spherical, 1.0, square))
    n = b / p
    m = r2_from_sr2(n)
    lode = det(m) * 0.5
    # The value farthest from the other two is the least where the determinant is negative.
    least = lode < 0.0
    flip = where(least, -1.0, 1.0)
    far = _third_of_angle(lode * flip) * flip * 2.0
    v = _kernel(m, far, spherical)
    u, w = _plane(v)
    mu = matmul(m, u)
    half, shear = (inner(u, mu) - inner(w, matmul(m, w))) * 0.5, inner(w, mu)
    apart = half * half + shear * shear
    equal = apart <= noise * noise
    radius = where(equal, 0.0, sqrt(where(equal, 1.0, apart)))
    # the smaller of the two angles between u, w and the directions, so that nothing cancels
    turned = half < 0.0
    sense = where(turned, -1.0, 1.0)
    tangent = where(equal, 0.0, sense * shear / where(equal, 1.0, sense * half + radius))
    c = 1.0 / sqrt(1.0 + tangent * tangent)
    s = c * tangent
    x, y = u * c + w * s, w * c - u * s
    small, large = where(turned, x, -y), where(turned, y, x)
    size = where(spherical, 0.0, p)
    middle, lone = mean - size * far * 0.5, mean + size * far
    low, high = middle - size * radius, middle + size * radius
    values = Vec.of(where(least, lone, low), where(least, low, high), where(least, high, lone))
    columns = (where(least, v, small), where(least, small, large), where(least, large, v))
    return Eigen(values, R2.of(*(column[i] for i in range(3) for column in columns)))


def _third_of_angle(r: Scalar) -> Scalar:
    r"""$\cos(\arccos(r)/3)$ for $0 \le r \le 1$, without the infinite slope of the arc at 1.

    A cubic, off by 4e-5, and two Newton steps of $4 c^3 - 3 c = r$, which square that twice.
    """
    c = ((0.00931968 * r - 0.0406912) * r + 0.16533035) * r + 0.86606633
    for _ in range(2):
        square = c * c
        c = (8.0 * c * square + r) / (12.0 * square - 3.0)
    return c


def _kernel(a: R2, value: Scalar, spherical: Flag) -> Vec:
    """The unit direction of a principal value that is far from the others; x if all are equal."""
    # The cofactors of A - value I are that direction's dyad: take the longest column.
    dyad = cofactors(a - R2.identity() * value)
    columns = [Vec.of(*(dyad[i, j] for i in range(3))) for j in range(3)]
    first = dyad[0, 0] >= dyad[1, 1]
    column = where(first, columns[0], columns[1])
    column = where(dyad[2, 2] > where(first, dyad[0, 0], dyad[1, 1]), columns[2], column)
    column = where(spherical, Vec.of(1.0, 0.0, 0.0), column)
    return column / sqrt(inner(column, column))


def _plane(v: Vec) -> tuple[Vec, Vec]:
    """Two unit vectors at right angles to a third and to each other, right-handed before it."""
    s = where(v[2] < 0.0, -1.0, 1.0)
    a = -1.0 / (s + v[2])
    b = v[0] * v[1] * a
    u = Vec.of(1.0 + s * v[0] * v[0] * a, s * b, -(s * v[0]))
    return u, Vec.of(b, s + v[1] * v[1] * a, -v[1])


def expm3(a: T) -> T:
    r"""The exponential of a tensor, $e^A$, where its deviator's norm is at most 1024; NaN beyond.

    Scaled and squared, every power of $A$ written in $1, A, A^2$ by Cayley and Hamilton.
    """
    full = r2_from_sr2(a) if isinstance(a, SR2) else a
    mean = tr(full) / 3.0
    x = (full - R2.identity() * mean) * 0.5**SQUARINGS
    xx = matmul(x, x)
    # X^3 = first X + last, as X has no trace
    first, last = tr(xx) * 0.5, det(x)
    # coefficients of e^X - 1, not of e^X, as squaring doubles what is lost to the 1
    c0, c1, c2 = 1.0 / math.factorial(TERMS), 0.0, 0.0
    for k in range(TERMS - 1, 0, -1):
        c0, c1, c2 = c2 * last + 1.0 / math.factorial(k), c0 + c2 * first, c1
    c0, c1, c2 = c2 * last, c0 + c2 * first, c1
    for _ in range(SQUARINGS):
        cubic, quartic, linear = 2.0 * c1 * c2, c2 * c2, 2.0 + c0 + c0
        c0, c1, c2 = (
            c0 * (2.0 + c0) + cubic * last,
            c1 * linear + cubic * first + quartic * last,
            c2 * linear + c1 * c1 + quartic * first,
        )
    scale = where(inner(x, x) <= 1.0, exp(mean), math.nan)
    power = (R2.identity() * (1.0 + c0) + x * c1 + xx * c2) * scale
    return cast(T, sym(power) if isinstance(a, SR2) else power)


def polar(f: R2) -> Polar:
    r"""The rotation and the right stretch of a tensor, $F = R U$; $R$ reflects if $\det F < 0$.

    Of rank two, $R$ is the rotation and its slopes are those from $\det F > 0$; of rank one or
    zero, $R$ is the unit with no slope. $R$ has derivatives wherever $\det F \neq 0$.
    """
    adjoint = cofactors(f)
    volume = add_up([f[0, j] * adjoint[0, j] for j in range(3)])
    # invariants of F^T F, none of them a difference
    squares, areas = inner(f, f), inner(adjoint, adjoint)
    noise = 16.0 * eps(squares)
    flat = areas <= noise * noise * (squares * squares) + TINY
    # of rank two, rounding is not to choose between a rotation and a reflection
    reflects = (volume < 0.0) & (volume * volume > noise * noise * (squares * squares) * squares)
    sense = where(reflects, -1.0, 1.0)
    i3 = where(flat, 1.0, sense * volume)
    squares, areas = where(flat, 3.0, squares), where(flat, 3.0, areas)
    i1 = _trace_of_root(squares, areas, i3)
    i2 = (i1 * i1 - squares) * 0.5
    # R = a F + b cof F - c F F^T F, which on principal stretches is Cayley and Hamilton's theorem
    c = where(flat, 0.0, 1.0 / (i1 * i2 - i3))
    start = f * ((i1 * i1 - i2) * c) + adjoint * (sense * i1 * c) - f @ (transpose(f) @ f) * c
    start = start + R2.identity() * where(flat, 1.0, 0.0)
    # what rounding left of the stretch squares away in one Newton step of (R + R^-T) / 2
    turned = cofactors(start)
    r = (start + turned / add_up([start[0, j] * turned[0, j] for j in range(3)])) * 0.5
    entries = [add_up([r[k, i] * f[k, j] for k in range(3)]) * scale for i, j, scale in MANDEL]
    return Polar(r, SR2.of(*entries))


def _trace_of_root(squares: Scalar, areas: Scalar, i3: Scalar) -> Scalar:
    r"""The sum $x$ of three stretches from the sums of their squares and of their areas' squares.

    The largest root of $(x^2 - I_1)^2 = 8 i_3 x + 4 I_2$, simple unless two stretches are zero.
    """
    x = sqrt(squares + 2.0 * sqrt(3.0 * areas))  # never below the root, so that Newton descends
    for _ in range(TRACE_STEPS):
        q = x * x - squares
        x = x - (q * q - 8.0 * i3 * x - 4.0 * areas) / (4.0 * x * q - 8.0 * i3)
    return x
