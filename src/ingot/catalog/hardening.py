"""Hardening: isotropic and kinematic, by strain or by rate, with recovery and annealing."""

from ingot.catalog.declare import Fixed, Parameter, T, derived, model
from ingot.options import Range
from ingot.types import SR2, Scalar, eps, exp, norm, sign, signed_power, where


@model(gives="equivalent_plastic_strain_rate")
def AssociativeIsotropicPlasticHardening(
    flow_rate: Scalar, isotropic_hardening_direction: Scalar
) -> Scalar:
    r"""Growth of the equivalent plastic strain, $\dot{\bar\varepsilon}_p = -\dot\gamma N_k$."""
    return -(flow_rate * isotropic_hardening_direction)


@model(gives="kinematic_plastic_strain_rate")
def AssociativeKinematicPlasticHardening(
    flow_rate: Scalar, kinematic_hardening_direction: SR2
) -> SR2:
    r"""Growth of the kinematic plastic strain, $\dot K_p = -\dot\gamma N_X$."""
    return -(kinematic_hardening_direction * flow_rate)


@model(gives="isotropic_hardening")
def LinearIsotropicHardening(
    equivalent_plastic_strain: Scalar, *, hardening_modulus: Parameter[Scalar]
) -> Scalar:
    r"""Hardening in proportion to plastic strain, $h = K \bar\varepsilon_p$.

    hardening_modulus: hardening per strain, $K$
    """
    return hardening_modulus * equivalent_plastic_strain


@model(gives="isotropic_hardening", usual={"saturation_rate": Range(ge=0)})
def VoceIsotropicHardening(
    equivalent_plastic_strain: Scalar,
    *,
    saturated_hardening: Parameter[Scalar],
    saturation_rate: Parameter[Scalar],
) -> Scalar:
    r"""Hardening that saturates exponentially with plastic strain, $h = Q (1 - e^{-b p})$.

    saturated_hardening: hardening once saturated, $Q$
    saturation_rate: how fast it saturates, $b$
    """
    return saturated_hardening * (1.0 - exp(-saturation_rate * equivalent_plastic_strain))


@model(gives=derived("{isotropic_hardening}_rate"))
def SlopeSaturationVoceIsotropicHardening(
    flow_rate: Scalar,
    isotropic_hardening: Scalar,
    *,
    saturated_hardening: Parameter[Scalar],
    initial_hardening_rate: Parameter[Scalar],
) -> Scalar:
    r"""The rate of hardening that saturates, $\mathrm{sign}(R)\,\theta_0 (1 - h/R) \dot\gamma$.

    saturated_hardening: hardening once saturated, $R$, also negative
    initial_hardening_rate: hardening per flow at first, $\theta_0$
    """
    rate = sign(saturated_hardening) * initial_hardening_rate
    return rate * (1.0 - isotropic_hardening / saturated_hardening) * flow_rate


@model(gives=derived("{isotropic_hardening}_rate"))
def PowerLawIsotropicHardeningStaticRecovery(
    isotropic_hardening: Scalar, *, tau: Parameter[Scalar], n: Parameter[Scalar]
) -> Scalar:
    r"""Hardening recovers at rest, $\dot h = -|h / \tau|^{n-1} h / \tau$.

    tau: hardening that recovers at unit rate, $\tau$
    n: exponent
    """
    return -signed_power(isotropic_hardening / tau, n)


@model(gives="back_stress")
def LinearKinematicHardening(
    kinematic_plastic_strain: SR2, *, hardening_modulus: Parameter[Scalar]
) -> SR2:
    r"""Back stress in proportion to plastic strain, $X = H K_p$.

    hardening_modulus: back stress per strain, $H$
    """
    return kinematic_plastic_strain * hardening_modulus


@model(gives=derived("{back_stress}_rate"))
def FredrickArmstrongPlasticHardening(
    flow_rate: Scalar,
    flow_direction: SR2,
    back_stress: SR2,
    *,
    C: Parameter[Scalar],
    g: Parameter[Scalar],
) -> SR2:
    r"""Back stress with dynamic recovery, $\dot X = (\tfrac23 C N - g X) \dot\gamma$.

    C: growth along the flow direction
    g: dynamic recovery
    """
    return (flow_direction * (C * (2.0 / 3.0)) - back_stress * g) * flow_rate


@model(gives=derived("{back_stress}_rate"))
def ChabochePlasticHardening(
    flow_rate: Scalar,
    flow_direction: SR2,
    back_stress: SR2,
    *,
    C: Parameter[Scalar],
    g: Parameter[Scalar],
    A: Parameter[Scalar],
    a: Parameter[Scalar],
) -> SR2:
    r"""Back stress with dynamic and static recovery,
    $\dot X = (\tfrac23 C N - g X) \dot\gamma - A \|X\|^{a-1} X$.

    C: growth along the flow direction
    g: dynamic recovery
    A: static recovery
    a: exponent of the static recovery
    """
    growth = flow_direction * (C * (2.0 / 3.0)) - back_stress * g
    recovery = A * norm(back_stress, eps(flow_rate)) ** (a - 1.0)
    return growth * flow_rate - back_stress * recovery


@model(gives=derived("{back_stress}_rate"))
def PowerLawKinematicHardeningStaticRecovery(
    back_stress: SR2, *, tau: Parameter[Scalar], n: Parameter[Scalar]
) -> SR2:
    r"""Back stress recovers at rest, $\dot X = -(\|X\| / \tau)^{n-1} X / \tau$.

    tau: back stress that recovers at unit rate, $\tau$
    n: exponent
    """
    return -(back_stress * ((norm(back_stress, eps(tau)) / tau) ** (n - 1.0) / tau))


@model.family(ScalarTwoStageThermalAnnealing=Scalar, SR2TwoStageThermalAnnealing=SR2)(
    gives="modified_rate"
)
def TwoStageThermalAnnealing(
    base_rate: T,
    base: T,
    temperature: Scalar,
    *,
    T1: Fixed[Scalar],
    T2: Fixed[Scalar],
    tau: Fixed[Scalar],
) -> T:
    r"""Hardening as it is below $T_1$, none below $T_2$, and recovery, $-s / \tau$, above.

    T1: temperature from which nothing hardens, $T_1$
    T2: temperature from which hardening recovers, $T_2$
    tau: time of the recovery, $\tau$
    """
    hardened = where(temperature < T1, base_rate, 0.0)
    return hardened - where(temperature >= T2, base / tau, 0.0)
