"""Time integration: residuals of backward Euler, forward updates, rates."""

from ingot.catalog.declare import T, derived, model, named, old
from ingot.types import MRP, R2, SR2, WR2, Scalar, Vec, compose, exp_map


@model.family(
    ScalarBackwardEulerTimeIntegration=Scalar,
    SR2BackwardEulerTimeIntegration=SR2,
    R2BackwardEulerTimeIntegration=R2,
    VecBackwardEulerTimeIntegration=Vec,
)(gives=derived("{variable}_residual"))
def BackwardEulerTimeIntegration(
    variable: T,
    rate: T = derived("{variable}_rate"),
    variable_old: T = old("variable"),
    time: Scalar = named("t"),
    time_old: Scalar = old("time"),
) -> T:
    r"""The residual of backward Euler, $r = s - s_n - (t - t_n) \dot s$."""
    return variable - variable_old - rate * (time - time_old)


@model.family(
    ScalarForwardEulerTimeIntegration=Scalar,
    SR2ForwardEulerTimeIntegration=SR2,
    R2ForwardEulerTimeIntegration=R2,
)(gives=named("variable", option="variable"))
def ForwardEulerTimeIntegration(
    rate: T = derived("{variable}_rate"),
    old_variable: T = derived("{variable}~1"),
    time: Scalar = named("t"),
    time_old: Scalar = old("time"),
) -> T:
    r"""Forward Euler, $s = s_n + (t - t_n) \dot s$."""
    return old_variable + rate * (time - time_old)


@model.family(
    ScalarVariableRate=Scalar, VecVariableRate=Vec, SR2VariableRate=SR2, R2VariableRate=R2
)(gives=derived("{variable}_rate"))
def VariableRate(
    variable: T,
    variable_old: T = old("variable"),
    time: Scalar = named("t"),
    time_old: Scalar = old("time"),
) -> T:
    r"""The rate over a step, $(f - f_n) / (t - t_n)$."""
    return (variable - variable_old) / (time - time_old)


@model(gives=derived("{variable}_residual"))
def WR2ImplicitExponentialTimeIntegration(
    variable: MRP,
    rate: WR2 = derived("{variable}_rate"),
    variable_old: MRP = old("variable"),
    time: Scalar = named("t"),
    time_old: Scalar = old("time"),
) -> MRP:
    r"""The residual of a rotation update, $r = s - \exp((t - t_n) \dot s) \circ s_n$."""
    return variable - compose(exp_map(rate * (time - time_old)), variable_old)


@model(gives=named("variable", option="variable"))
def WR2ExplicitExponentialTimeIntegration(
    rate: WR2 = derived("{variable}_rate"),
    variable_old: MRP = old("variable"),
    time: Scalar = named("t"),
    time_old: Scalar = old("time"),
) -> MRP:
    r"""A rotation update, $s = \exp((t - t_n) \dot s) \circ s_n$."""
    return compose(exp_map(rate * (time - time_old)), variable_old)
