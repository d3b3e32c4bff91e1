"""Laws of no particular physics: combinations, invariants, limits, complementarity."""

from collections.abc import Sequence
from typing import Any, Literal

from ingot.catalog.declare import Fixed, Many, Parameter, T, model, old
from ingot.types import (
    R2, SR2, Scalar, abs, add_up, det, dev, eps, inner, inv, macaulay, maximum, minimum, sqrt, tr,
    transpose, where,
)  # fmt: skip

Inequality = Literal["LE", "GE"]
Yes = Literal["false", "true"]


def _pair_up(terms: Sequence[Any], weights: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Every term with its weight, or with the one of all."""
    scales = weights * len(terms) if len(weights) == 1 else weights
    if len(scales) != len(terms):
        raise ValueError(f"{len(weights)} weights for {len(terms)} terms")
    return list(zip(terms, scales, strict=True))


@model.family(ScalarLinearCombination=Scalar, SR2LinearCombination=SR2)(gives="to")
def LinearCombination(
    from_: Many[T], *, weights: Many[Parameter[Scalar]] = "1", offset: Parameter[Scalar] = 0
) -> T:
    r"""A weighted sum, $\sum_i w_i v_i + b$.

    weights: one for every term, or one for all
    offset: added to every component, $b$
    """
    return add_up([v * w for v, w in _pair_up(from_, weights)]) + offset


@model(gives="to")
def ScalarMultiplication(
    from_: Many[Scalar], *, scaling: Parameter[Scalar] = 1, reciprocal: tuple[Yes, ...] = ("false",)
) -> Scalar:
    r"""A scaled product, $s \prod_i v_i^{\pm 1}$.

    scaling: multiplies the product, $s$
    reciprocal: whether to divide by a factor; one for every factor, or one for all
    """
    inverted = reciprocal * len(from_) if len(reciprocal) == 1 else reciprocal
    if len(inverted) != len(from_):
        raise ValueError(f"{len(reciprocal)} entries of 'reciprocal' for {len(from_)} factors")
    product = scaling
    for factor, below in zip(from_, inverted, strict=True):
        product = product / factor if below == "true" else product * factor
    return product  # type: ignore[reportReturnType]


@model(gives="to")
def ScalarPNorm(
    from_: Many[Scalar], *, exponent: Fixed[Scalar], weights: Many[Fixed[Scalar]] = "1"
) -> Scalar:
    r"""A weighted norm, $(\sum_i w_i |v_i|^p + \epsilon)^{1/p}$.

    exponent: which norm, $p$
    weights: one for every term, or one for all
    """
    pairs = _pair_up(from_, weights)
    total = add_up([w * abs(v) ** exponent for v, w in pairs])
    return (total + eps(total)) ** (1.0 / exponent)


@model(gives="to")
def R2Multiplication(
    A: R2,
    B: R2,
    *,
    invert_A: bool = False,
    invert_B: bool = False,
    transpose_A: bool = False,
    transpose_B: bool = False,
) -> R2:
    r"""A product of matrices, $A B$, $A^{-1} B$, $A^T B$, $A^{-T} B$ and so on.

    invert_A: take the inverse of A
    invert_B: take the inverse of B
    transpose_A: transpose A, once inverted
    transpose_B: transpose B, once inverted
    """
    left, right = (inv(A) if invert_A else A), (inv(B) if invert_B else B)
    left = transpose(left) if transpose_A else left
    return left @ (transpose(right) if transpose_B else right)  # type: ignore[reportReturnType]


@model.family(R2Determinant=R2, SR2Determinant=SR2)(gives="determinant")
def Determinant(input: T) -> Scalar:
    r"""The determinant, $\det A$."""
    return det(input)  # type: ignore[reportArgumentType]


@model(gives=("to_positive", "to_negative"))
def MacaulaySplit(from_: Scalar) -> tuple[Scalar, Scalar]:
    r"""The parts above and below zero, $\langle x \rangle$ and $x - \langle x \rangle$."""
    positive = macaulay(from_)
    return positive, from_ - positive


@model(gives="to")
def IrreversibleScalar(from_: Scalar, to_old: Scalar = old("to")) -> Scalar:
    r"""A value that never decreases, $\max(x, y_n)$."""
    return maximum(from_, to_old)


@model(gives=("y", "z"))
def MixedControlSetup(
    control: SR2, x_above: SR2, x_below: SR2, *, threshold: float = 0.5
) -> tuple[SR2, SR2]:
    r"""Two tensors that exchange the components whose control is not above a threshold.

    threshold: the control above which $y$ takes a component of the first
    """
    above = control > threshold
    return where(above, x_above, x_below), where(above, x_below, x_above)


@model(gives="invariant")
def SR2Invariant(
    tensor: SR2, *, invariant_type: Literal["VONMISES", "EFFECTIVE_STRAIN", "I1"]
) -> Scalar:
    r"""An invariant: $\sqrt{\tfrac32 s:s}$, $\sqrt{\tfrac23 e:e}$ of the deviator, or the trace.

    invariant_type: which one
    """
    if invariant_type == "I1":
        return tr(tensor)
    part = dev(tensor)
    scale = 1.5 if invariant_type == "VONMISES" else 2.0 / 3.0
    return sqrt(scale * inner(part, part) + eps(part))


def _signed(value: Scalar, inequality: Inequality) -> Scalar:
    return -value if inequality == "LE" else value


@model(gives="complementarity")
def MinMapComplementarity(
    a: Scalar, b: Scalar, *, a_inequality: Inequality = "LE", b_inequality: Inequality = "GE"
) -> Scalar:
    r"""$a \perp b$ as $\min(\pm a, \pm b)$; a tie takes $b$.

    a_inequality: whether a stays below or above zero
    b_inequality: whether b stays below or above zero
    """
    return minimum(_signed(a, a_inequality), _signed(b, b_inequality))


@model(gives="complementarity")
def FBComplementarity(
    a: Scalar, b: Scalar, *, a_inequality: Inequality = "LE", b_inequality: Inequality = "GE"
) -> Scalar:
    r"""$a \perp b$ by Fischer and Burmeister, $\pm a \pm b - \sqrt{a^2 + b^2 + \epsilon}$.

    a_inequality: whether a stays below or above zero
    b_inequality: whether b stays below or above zero
    """
    return _signed(a, a_inequality) + _signed(b, b_inequality) - sqrt(a * a + b * b + eps(a))
