"""Viscoelastic elements: springs and dashpots that act on all of a tensor alike."""

from ingot.catalog.declare import Parameter, derived, follows, model
from ingot.types import SR2, Scalar


@model(gives="viscous_strain_rate")
def LinearDashpot(stress: SR2, *, viscosity: Parameter[Scalar]) -> SR2:
    r"""A dashpot, $\dot\varepsilon_v = \sigma / \eta$.

    viscosity: stress per strain rate, $\eta$
    """
    return stress / viscosity


@model(gives="stress")
def KelvinVoigtElement(
    strain: SR2,
    strain_rate: SR2 = follows("strain", "_rate"),
    *,
    modulus: Parameter[Scalar],
    viscosity: Parameter[Scalar],
) -> SR2:
    r"""A spring beside a dashpot, $\sigma = E \varepsilon + \eta \dot\varepsilon$.

    modulus: stiffness of the spring, $E$
    viscosity: viscosity of the dashpot, $\eta$
    """
    return strain * modulus + strain_rate * viscosity


@model(gives=("stress", derived("{viscous_strain}_rate")))
def ZenerElement(
    strain: SR2,
    viscous_strain: SR2,
    *,
    equilibrium_modulus: Parameter[Scalar],
    maxwell_modulus: Parameter[Scalar],
    maxwell_viscosity: Parameter[Scalar],
) -> tuple[SR2, SR2]:
    r"""A spring beside a spring with a dashpot, $\sigma = E_\infty \varepsilon + \sigma_M$,
    $\sigma_M = E_M (\varepsilon - \varepsilon_v) = \eta_M \dot\varepsilon_v$.

    equilibrium_modulus: stiffness of the lone spring, $E_\infty$
    maxwell_modulus: stiffness of the spring before the dashpot, $E_M$
    maxwell_viscosity: viscosity of the dashpot, $\eta_M$
    """
    relaxing = (strain - viscous_strain) * maxwell_modulus
    return strain * equilibrium_modulus + relaxing, relaxing / maxwell_viscosity


@model(gives=("stress", derived("{viscous_strain_1}_rate"), derived("{viscous_strain_2}_rate")))
def WiechertElement(
    strain: SR2,
    viscous_strain_1: SR2,
    viscous_strain_2: SR2,
    *,
    equilibrium_modulus: Parameter[Scalar],
    modulus_1: Parameter[Scalar],
    viscosity_1: Parameter[Scalar],
    modulus_2: Parameter[Scalar],
    viscosity_2: Parameter[Scalar],
) -> tuple[SR2, SR2, SR2]:
    r"""A spring beside two springs with dashpots,
    $\sigma = E_\infty \varepsilon + \sigma_1 + \sigma_2$,
    $\sigma_i = E_i (\varepsilon - \varepsilon_{v i}) = \eta_i \dot\varepsilon_{v i}$.

    equilibrium_modulus: stiffness of the lone spring, $E_\infty$
    modulus_1: stiffness of the first branch, $E_1$
    viscosity_1: viscosity of the first branch, $\eta_1$
    modulus_2: stiffness of the second branch, $E_2$
    viscosity_2: viscosity of the second branch, $\eta_2$
    """
    first = (strain - viscous_strain_1) * modulus_1
    second = (strain - viscous_strain_2) * modulus_2
    stress = strain * equilibrium_modulus + first + second
    return stress, first / viscosity_1, second / viscosity_2


@model(gives=(
    "stress", derived("{maxwell_viscous_strain}_rate"), derived("{kelvin_voigt_strain}_rate")
))  # fmt: skip
def BurgersElement(
    strain: SR2,
    maxwell_viscous_strain: SR2,
    kelvin_voigt_strain: SR2,
    *,
    maxwell_modulus: Parameter[Scalar],
    maxwell_viscosity: Parameter[Scalar],
    kelvin_modulus: Parameter[Scalar],
    kelvin_viscosity: Parameter[Scalar],
) -> tuple[SR2, SR2, SR2]:
    r"""A spring, a dashpot and a Kelvin-Voigt element in line,
    $\sigma = E_M (\varepsilon - \varepsilon_{vM} - \varepsilon_K) = \eta_M \dot\varepsilon_{vM}
    = E_K \varepsilon_K + \eta_K \dot\varepsilon_K$.

    maxwell_modulus: stiffness of the spring, $E_M$
    maxwell_viscosity: viscosity of the dashpot, $\eta_M$
    kelvin_modulus: stiffness of the Kelvin-Voigt element, $E_K$
    kelvin_viscosity: viscosity of the Kelvin-Voigt element, $\eta_K$
    """
    stress = (strain - maxwell_viscous_strain - kelvin_voigt_strain) * maxwell_modulus
    creep = (stress - kelvin_voigt_strain * kelvin_modulus) / kelvin_viscosity
    return stress, stress / maxwell_viscosity, creep
