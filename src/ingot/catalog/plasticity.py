"""Plasticity: yield functions, flow, return, porosity."""

import math

from ingot.catalog.declare import Many, Parameter, model, old, optional
from ingot.catalog.elasticity import MODULI, Modulus, bulk_and_shear, label_moduli
from ingot.options import Range
from ingot.types import SR2, Scalar, cosh, dev, eps, macaulay, norm, tr

SQRT23 = math.sqrt(2.0 / 3.0)


@model(gives="mandel_stress")
def IsotropicMandelStress(cauchy_stress: SR2) -> SR2:
    r"""For small elastic strain and isotropy, Mandel and Cauchy stress are one, $M = \sigma$."""
    return cauchy_stress


@model(gives="yield_function", usual={"yield_stress": Range(ge=0)})
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


@model(gives="yield_function", usual={"yield_stress": Range(ge=0)})
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


@model(gives="flow_rate", usual={"reference_stress": Range(gt=0), "exponent": Range(gt=0)})
def PerzynaPlasticFlowRate(
    yield_function: Scalar, *, reference_stress: Parameter[Scalar], exponent: Parameter[Scalar]
) -> Scalar:
    r"""Viscoplastic overstress flow, $\dot\gamma = \langle f / \eta \rangle^n$.

    reference_stress: overstress at unit rate, $\eta$
    exponent: rate sensitivity, $n$
    """
    return macaulay(yield_function / reference_stress) ** exponent


@model(gives="flow_direction")
def AssociativeJ2FlowDirection(mandel_stress: SR2) -> SR2:
    r"""The direction of J2 flow, $N = \tfrac32 s / \bar\sigma$, of length $\sqrt{3/2}$."""
    part = dev(mandel_stress)
    return part * (math.sqrt(1.5) / norm(part, eps(tr(part))))


@model(gives="plastic_strain_rate")
def AssociativePlasticFlow(flow_rate: Scalar, flow_direction: SR2) -> SR2:
    r"""Plastic strain grows along the flow direction, $\dot\varepsilon_p = \dot\gamma N$."""
    return flow_direction * flow_rate


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


@model(gives="updated_trial_stress", labels={"coefficients": label_moduli}, usual=MODULI)
def LinearIsotropicElasticJ2TrialStressUpdate(
    elastic_trial_stress: Scalar,
    equivalent_plastic_strain: Scalar,
    equivalent_plastic_strain_old: Scalar = old("equivalent_plastic_strain"),
    *,
    coefficients: Many[Parameter[Scalar]],
    coefficient_types: tuple[Modulus, ...],
) -> Scalar:
    r"""The effective stress that plastic flow leaves, $\sigma_{tr} - 3 G \Delta\bar\varepsilon_p$.

    coefficients: two elastic constants
    coefficient_types: which constants they are
    """
    _, shear = bulk_and_shear(coefficients, coefficient_types)
    flow = equivalent_plastic_strain - equivalent_plastic_strain_old
    return elastic_trial_stress - 3.0 * shear * flow
