"""Plasticity: yield functions, flow, hardening, porosity."""

import math

from ingot.catalog.declare import Parameter, derived, model, optional
from ingot.types import SR2, Scalar, cosh, eps, exp, macaulay, norm, tr

SQRT23 = math.sqrt(2.0 / 3.0)


@model(gives="mandel_stress")
def IsotropicMandelStress(cauchy_stress: SR2) -> SR2:
    r"""For small elastic strain and isotropy, Mandel and Cauchy stress are one, $M = \sigma$."""
    return cauchy_stress


@model(gives="yield_function")
def YieldFunction(
    effective_stress: Scalar,
    isotropic_hardening: Scalar = optional,
    *,
    yield_stress: Parameter[Scalar],
) -> Scalar:
    r"""A yield surface in stress, $f = \sqrt{2/3}\,(\bar\sigma - \sigma_y - h)$.

    yield_stress: initial size of the surface, $\sigma_y$
    """
    size = yield_stress if isotropic_hardening is None else yield_stress + isotropic_hardening
    return (effective_stress - size) * SQRT23


@model(gives="yield_function")
def GTNYieldFunction(
    flow_invariant: Scalar,
    poro_invariant: Scalar,
    void_fraction: Scalar,
    isotropic_hardening: Scalar = optional,
    *,
    yield_stress: Parameter[Scalar],
    q1: Parameter[Scalar],
    q2: Parameter[Scalar],
    q3: Parameter[Scalar],
) -> Scalar:
    r"""The Gurson-Tvergaard-Needleman surface of a porous metal,
    $f = (\sigma_e/\sigma_f)^2 + 2 q_1 \phi \cosh(q_2 \sigma_p / 2 \sigma_f) - (1 + q_3 \phi^2)$.

    yield_stress: flow stress of the matrix, to which hardening is added
    q1: weight of the porosity
    q2: weight of the pressure
    q3: weight of the squared porosity
    """
    flow = yield_stress if isotropic_hardening is None else yield_stress + isotropic_hardening
    shear = flow_invariant / flow
    pressure = cosh(q2 * 0.5 * poro_invariant / flow)
    closure = 1.0 + q3 * void_fraction * void_fraction
    return shear * shear + 2.0 * q1 * void_fraction * pressure - closure


@model(gives="flow_rate")
def PerzynaPlasticFlowRate(
    yield_function: Scalar, *, reference_stress: Parameter[Scalar], exponent: Parameter[Scalar]
) -> Scalar:
    r"""Viscoplastic overstress flow, $\dot\gamma = \langle f / \eta \rangle^n$.

    reference_stress: overstress at unit rate, $\eta$
    exponent: rate sensitivity, $n$
    """
    return macaulay(yield_function / reference_stress) ** exponent


@model(gives="plastic_strain_rate")
def AssociativePlasticFlow(flow_rate: Scalar, flow_direction: SR2) -> SR2:
    r"""Plastic strain grows along the flow direction, $\dot\varepsilon_p = \dot\gamma N$."""
    return flow_direction * flow_rate


@model(gives="equivalent_plastic_strain_rate")
def AssociativeIsotropicPlasticHardening(
    flow_rate: Scalar, isotropic_hardening_direction: Scalar
) -> Scalar:
    r"""Growth of the equivalent plastic strain, $\dot{\bar\varepsilon}_p = -\dot\gamma N_k$."""
    return -(flow_rate * isotropic_hardening_direction)


@model(gives="isotropic_hardening")
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


@model(gives="void_fraction_rate")
def GursonCavitation(plastic_strain_rate: SR2, void_fraction: Scalar) -> Scalar:
    r"""Void growth by plastic volume change, $(1 - \phi)\, \mathrm{tr}\, \dot\varepsilon_p$."""
    return (1.0 - void_fraction) * tr(plastic_strain_rate)


@model(gives="sintering_stress")
def OlevskySinteringStress(
    void_fraction: Scalar,
    *,
    surface_tension: Parameter[Scalar],
    particle_radius: Parameter[Scalar],
) -> Scalar:
    r"""The driving stress of sintering, $\sigma_s = 3 \gamma \phi^2 / r$.

    surface_tension: surface tension, $\gamma$
    particle_radius: radius of the powder particles, $r$
    """
    return 3.0 * surface_tension * void_fraction * void_fraction / particle_radius
