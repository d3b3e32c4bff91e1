"""Laws of no particular physics: combinations, invariants, complementarity, parameters."""

from typing import Literal

from ingot.catalog.declare import Fixed, Many, Parameter, T, model, named
from ingot.options import Positive
from ingot.types import (
    MRP, R2, SR2, SSR4, WR2, MillerIndex, Scalar, Vec, add_up, dev, eps, euler_rodrigues, exp,
    inner, macaulay, minimum, sqrt, tr,
)  # fmt: skip

Inequality = Literal["LE", "GE"]
Yes = Literal["false", "true"]


@model.family(ScalarLinearCombination=Scalar, SR2LinearCombination=SR2)(gives="to")
def LinearCombination(
    from_: Many[T], *, weights: Many[Parameter[Scalar]] = "1", offset: Parameter[Scalar] = 0
) -> T:
    r"""A weighted sum, $\sum_i w_i v_i + b$.

    weights: one for every term, or one for all
    offset: added to every component, $b$
    """
    scales = weights * len(from_) if len(weights) == 1 else weights
    if len(scales) != len(from_):
        raise ValueError(f"{len(weights)} weights for {len(from_)} terms")
    return add_up([v * w for v, w in zip(from_, scales, strict=True)]) + offset


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


@model(gives=("to_positive", "to_negative"))
def MacaulaySplit(from_: Scalar) -> tuple[Scalar, Scalar]:
    r"""The parts above and below zero, $\langle x \rangle$ and $x - \langle x \rangle$."""
    positive = macaulay(from_)
    return positive, from_ - positive


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


@model.family(
    ScalarConstantParameter=Scalar,
    VecConstantParameter=Vec,
    MRPConstantParameter=MRP,
    WR2ConstantParameter=WR2,
    R2ConstantParameter=R2,
    SR2ConstantParameter=SR2,
    SSR4ConstantParameter=SSR4,
    MillerIndexConstantParameter=MillerIndex,
)(gives=named("{block}", option="parameter"))
def ConstantParameter(*, value: Parameter[T]) -> T:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$
    """
    return value  # type: ignore[reportReturnType]


@model(gives=named("{block}", option="parameter"))
def ArrheniusParameter(
    temperature: Scalar,
    *,
    reference_value: Fixed[Scalar],
    activation_energy: Fixed[Scalar],
    ideal_gas_constant: Positive,
) -> Scalar:
    r"""A thermally activated parameter, $p = p_0 e^{-Q / R T}$.

    reference_value: limit at high temperature, $p_0$
    activation_energy: energy per amount, $Q$
    ideal_gas_constant: gas constant in matching units, $R$
    """
    return reference_value * exp(-activation_energy / (ideal_gas_constant * temperature))


@model(gives="to")
def RotationMatrix(from_: MRP) -> R2:
    r"""The matrix of a rotation, $R = I + (4 (1 - \rho) W + 8 W^2) / (1 + \rho)^2$."""
    return euler_rodrigues(from_)
