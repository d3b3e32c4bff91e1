"""Flow through porous media: permeability, saturation, capillary pressure, advective stress."""

from collections.abc import Callable

from ingot.catalog.declare import Fixed, Parameter, model, named, optional
from ingot.options import Fraction
from ingot.types import R2, Scalar, below_one, eps, exp, inner, minimum, where


@model(gives="permeability")
def ExponentialLawPermeability(
    porosity: Scalar,
    *,
    reference_permeability: Fixed[Scalar],
    reference_porosity: Fixed[Scalar],
    scale: Fixed[Scalar],
) -> Scalar:
    r"""Permeability that decays with porosity, $K = K_0 e^{-a (\phi - \phi_0)}$.

    reference_permeability: permeability at the reference porosity, $K_0$
    reference_porosity: porosity that it is known at, $\phi_0$
    scale: how fast it decays, $a$
    """
    return reference_permeability * exp(-scale * (porosity - reference_porosity))


@model(gives="permeability")
def PowerLawPermeability(
    porosity: Scalar,
    *,
    reference_permeability: Fixed[Scalar],
    reference_porosity: Fixed[Scalar],
    exponent: Fixed[Scalar],
) -> Scalar:
    r"""Permeability as a power of porosity, $K = K_0 (\phi / \phi_0)^p$.

    reference_permeability: permeability at the reference porosity, $K_0$
    reference_porosity: porosity that it is known at, $\phi_0$
    exponent: the power, $p$
    """
    return reference_permeability * (porosity / reference_porosity) ** exponent


@model(gives="permeability")
def KozenyCarmanPermeability(
    porosity: Scalar,
    *,
    reference_permeability: Fixed[Scalar],
    reference_porosity: Fixed[Scalar],
    n: Fixed[Scalar],
    m: Fixed[Scalar],
) -> Scalar:
    r"""Kozeny and Carman by void ratios $e = \phi / (1 - \phi)$, $K = K_0\, e^n / e_0^m$.

    reference_permeability: factor of the permeability, $K_0$
    reference_porosity: porosity of the reference void ratio, $\phi_0$
    n: power of the void ratio
    m: power of the reference void ratio
    """
    reference = (reference_porosity / (1.0 - reference_porosity)) ** m
    return reference_permeability * (porosity / (1.0 - porosity)) ** n / reference


@model(gives="effective_saturation")
def EffectiveSaturation(
    fluid_fraction: Scalar, *, residual_saturation: Fixed[Scalar], max_fraction: Parameter[Scalar]
) -> Scalar:
    r"""The share of the mobile fluid, $S = (\phi / \phi_{max} - S_r) / (1 - S_r)$.

    residual_saturation: saturation that does not flow, $S_r$
    max_fraction: largest fraction of fluid, $\phi_{max}$
    """
    return (fluid_fraction / max_fraction - residual_saturation) / (1.0 - residual_saturation)


def _extend(
    pressure: Callable[[Scalar], Scalar], saturation: Scalar, transition: Scalar, decay: Scalar
) -> Scalar:
    r"""The pressure above a transition, below it $P(S_p) e^{q (1 - S / S_p)}$."""
    below = saturation < transition
    extension = pressure(transition) * exp(decay * (1.0 - saturation / transition))
    return where(below, extension, pressure(where(below, transition, saturation)))


def _transition(saturation: float) -> Scalar:
    """A transition that a logarithm can start at."""
    if saturation <= 0.0:
        raise ValueError("log_extension needs a transition_saturation above 0")
    return Scalar(saturation)


@model(gives="capillary_pressure")
def BrooksCoreyCapillaryPressure(
    effective_saturation: Scalar,
    *,
    threshold_pressure: Parameter[Scalar],
    exponent: Parameter[Scalar],
    log_extension: bool = False,
    transition_saturation: Fraction = 0.0,
) -> Scalar:
    r"""Capillary pressure of Brooks and Corey, $P = P_t S^{-1/p}$.

    threshold_pressure: pressure at full saturation, $P_t$
    exponent: distribution of pore sizes, $p$
    log_extension: go on below the transition as an exponential of the same value and slope
    transition_saturation: where it starts
    """

    def pressure(saturation: Scalar) -> Scalar:
        return threshold_pressure * saturation ** (-1.0 / exponent)

    if not log_extension:
        return pressure(effective_saturation)
    transition = _transition(transition_saturation)
    return _extend(pressure, effective_saturation, transition, 1.0 / exponent)


@model(gives="capillary_pressure")
def VanGenuchtenCapillaryPressure(
    effective_saturation: Scalar,
    *,
    a: Parameter[Scalar],
    m: Parameter[Scalar],
    log_extension: bool = False,
    transition_saturation: Fraction = 0.0,
) -> Scalar:
    r"""Capillary pressure of van Genuchten, $P = a (S^{-1/m} - 1)^{1-m}$ for $S < 1$.

    a: scale of the pressure
    m: distribution of pore sizes
    log_extension: go on below the transition as an exponential of the same value and slope
    transition_saturation: where it starts
    """

    def pressure(saturation: Scalar) -> Scalar:
        return a * (saturation ** (-1.0 / m) - 1.0) ** (1.0 - m)

    saturation = below_one(effective_saturation)
    if not log_extension:
        return pressure(saturation)
    transition = minimum(_transition(transition_saturation), 1.0 - eps(effective_saturation))
    decay = (1.0 - m) / (m * (1.0 - transition ** (1.0 / m)))
    return _extend(pressure, saturation, transition, decay)


@model(gives="advective_stress")
def AdvectiveStress(
    js: Scalar = optional,
    jt: Scalar = optional,
    deformation_gradient: R2 = named("deformation_gradient"),
    pk1_stress: R2 = named("pk1_stress"),
    *,
    coefficient: Parameter[Scalar],
) -> Scalar:
    r"""The stress that drives a flow, $p_s = -\tfrac{c}{3} J_s^{-5/3} J_t^{-2/3}\, P : F$.

    The volume ratios of swelling, $J_s$, and of temperature, $J_t$, are 1 unless they are named.

    coefficient: scale of the stress, $c$
    """
    stress = -(coefficient / 3.0) * inner(pk1_stress, deformation_gradient)
    stress = stress if js is None else stress * js ** (-5.0 / 3.0)
    return stress if jt is None else stress * jt ** (-2.0 / 3.0)
