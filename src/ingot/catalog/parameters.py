"""Parameters and variables of every kind: constants, inputs, copies, thermal activation."""

from ingot.catalog.declare import Fixed, Parameter, T, model, named
from ingot.options import Positive
from ingot.types import MRP, R2, SR2, SSR4, WR2, MillerIndex, Scalar, Vec, exp


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


@model.family(
    ScalarInputParameter=Scalar,
    VecInputParameter=Vec,
    MRPInputParameter=MRP,
    WR2InputParameter=WR2,
    R2InputParameter=R2,
    SR2InputParameter=SR2,
    SSR4InputParameter=SSR4,
    MillerIndexInputParameter=MillerIndex,
)(gives="parameter")
def InputParameter(variable: T) -> T:
    r"""A parameter that is read as an input, $p = x$."""
    return variable


@model.family(
    ScalarParameterToVariable=Scalar,
    VecParameterToVariable=Vec,
    MRPParameterToVariable=MRP,
    WR2ParameterToVariable=WR2,
    R2ParameterToVariable=R2,
    SR2ParameterToVariable=SR2,
    SSR4ParameterToVariable=SSR4,
    MillerIndexParameterToVariable=MillerIndex,
)(gives="to")
def ParameterToVariable(*, from_: Parameter[T]) -> T:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$
    """
    return from_  # type: ignore[reportReturnType]


@model.family(
    CopyScalar=Scalar,
    CopyVec=Vec,
    CopyMRP=MRP,
    CopyWR2=WR2,
    CopyR2=R2,
    CopySR2=SR2,
    CopySSR4=SSR4,
    CopyMillerIndex=MillerIndex,
)(gives="to")
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
