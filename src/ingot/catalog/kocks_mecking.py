"""Kocks and Mecking: flow of metals from the energy that activates it."""

import math

from ingot.catalog.declare import Parameter, model, named
from ingot.options import Positive
from ingot.types import Scalar, exp, log, tanh


@model(gives="yield_stress")
def KocksMeckingYieldStress(*, C: Parameter[Scalar], shear_modulus: Parameter[Scalar]) -> Scalar:
    r"""The stress of rate-independent flow, $\sigma_y = \mu e^C$.

    C: logarithm of the stress over the shear modulus
    shear_modulus: shear modulus, $\mu$
    """
    return shear_modulus * exp(C)


@model(gives="rate_sensitivity")
def KocksMeckingRateSensitivity(
    temperature: Scalar,
    *,
    A: Parameter[Scalar],
    shear_modulus: Parameter[Scalar],
    k: Positive,
    b: Positive,
) -> Scalar:
    r"""The exponent of viscoplastic flow, $n = -\mu b^3 / (k T A)$.

    A: slope of the logarithm of stress by activation energy, negative
    shear_modulus: shear modulus, $\mu$
    k: Boltzmann's constant
    b: length of the Burgers vector
    """
    return -(shear_modulus * (b * b * b / k)) / (temperature * A)


@model(gives=named("{block}", option="viscosity"))
def KocksMeckingFlowViscosity(
    temperature: Scalar,
    *,
    A: Parameter[Scalar],
    B: Parameter[Scalar],
    shear_modulus: Parameter[Scalar],
    eps0: Positive,
    k: Positive,
    b: Positive,
) -> Scalar:
    r"""The viscosity of flow, $\eta = e^B \mu \dot\varepsilon_0^{k T A / \mu b^3}$.

    A: slope of the logarithm of stress by activation energy
    B: its value without activation energy
    shear_modulus: shear modulus, $\mu$
    eps0: reference strain rate, $\dot\varepsilon_0$
    k: Boltzmann's constant
    b: length of the Burgers vector
    """
    power = temperature * A * (k / (b * b * b)) / shear_modulus
    return exp(B) * shear_modulus * exp(power * math.log(eps0))


@model(gives="activation_energy")
def KocksMeckingActivationEnergy(
    temperature: Scalar,
    strain_rate: Scalar,
    *,
    shear_modulus: Parameter[Scalar],
    eps0: Positive,
    k: Positive,
    b: Positive,
) -> Scalar:
    r"""The energy that activates flow, $k T / (\mu b^3) \ln(\dot\varepsilon_0/\dot\varepsilon)$.

    shear_modulus: shear modulus, $\mu$
    eps0: reference strain rate, $\dot\varepsilon_0$
    k: Boltzmann's constant
    b: length of the Burgers vector
    """
    return temperature * (k / (b * b * b)) / shear_modulus * log(eps0 / strain_rate)


@model(gives="intercept")
def KocksMeckingIntercept(
    *, A: Parameter[Scalar], B: Parameter[Scalar], C: Parameter[Scalar]
) -> Scalar:
    r"""The energy where both kinds of flow meet, $g_0 = (C - B) / A$.

    A: slope of the logarithm of stress by activation energy
    B: its value without activation energy
    C: its value in rate-independent flow
    """
    return (C - B) / A


@model(gives="flow_rate")
def KocksMeckingFlowSwitch(
    activation_energy: Scalar,
    rate_independent_flow_rate: Scalar,
    rate_dependent_flow_rate: Scalar,
    *,
    g0: Parameter[Scalar],
    sharpness: float = 1.0,
) -> Scalar:
    r"""Flow that depends on rate above an energy, by $\tfrac12 (1 + \tanh s (g - g_0))$.

    g0: energy where both kinds of flow meet, $g_0$
    sharpness: how sharp the change is, $s$
    """
    part = 0.5 * (1.0 + tanh(sharpness * (activation_energy - g0)))
    return part * rate_dependent_flow_rate + (1.0 - part) * rate_independent_flow_rate
