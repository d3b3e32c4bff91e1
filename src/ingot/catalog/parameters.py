"""Parameters and variables of every kind: constants, inputs, copies, thermal activation."""

from ingot.catalog.declare import Fixed, Parameter, T, model, named
from ingot.options import Positive
from ingot.types import MRP, R2, SR2, SSR4, WR2, MillerIndex, Scalar, Value, Vec, exp

KINDS: tuple[type[Value], ...] = (Scalar, Vec, MRP, WR2, R2, SR2, SSR4, MillerIndex)


def over_kinds(pattern: str) -> dict[str, type[Value]]:
    """The types of a family by their names, in which `{}` is a kind."""
    return {pattern.format(kind.__name__): kind for kind in KINDS}


@model.family(**over_kinds("{}ConstantParameter"))(gives=named("{block}", option="parameter"))
def ConstantParameter(*, value: Parameter[T]) -> T:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$
    """
    return value  # type: ignore[reportReturnType]


@model.family(**over_kinds("{}InputParameter"))(gives="parameter")
def InputParameter(variable: T) -> T:
    r"""A parameter that is read as an input, $p = x$."""
    return variable


@model.family(**over_kinds("{}ParameterToVariable"))(gives="to")
def ParameterToVariable(*, from_: Parameter[T]) -> T:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$
    """
    return from_  # type: ignore[reportReturnType]


@model.family(**over_kinds("Copy{}"))(gives="to")
def Copy(from_: T) -> T:
    r"""A variable under another name, $y = x$."""
    return from_


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
