"""Fracture by phase fields: crack geometry, degradation, strain energy."""

from typing import Literal

from ingot.catalog.declare import Fixed, Many, Parameter, model
from ingot.catalog.elasticity import MODULI, Modulus, bulk_and_shear, label_moduli
from ingot.options import Fraction
from ingot.types import SR2, Scalar, dev, inner, macaulay, tr


@model(gives="crack")
def CrackGeometricFunctionAT1(phase: Scalar) -> Scalar:
    r"""The crack surface of the first Ambrosio-Tortorelli functional, $\alpha = d$."""
    return phase


@model(gives="crack")
def CrackGeometricFunctionAT2(phase: Scalar) -> Scalar:
    r"""The crack surface of the second Ambrosio-Tortorelli functional, $\alpha = d^2$."""
    return phase * phase


@model(gives="degradation")
def PowerDegradationFunction(phase: Scalar, *, power: Fixed[Scalar], eta: Fraction = 0.0) -> Scalar:
    r"""Degradation by a power of what is intact, $g = (1 - d)^p (1 - \eta) + \eta$.

    power: exponent of the intact part, $p$
    eta: what is left of a broken point, $\eta$
    """
    return (1.0 - phase) ** power * (1.0 - eta) + eta


@model(gives="degradation")
def RationalDegradationFunction(
    phase: Scalar,
    *,
    power: Fixed[Scalar],
    b1: Fixed[Scalar],
    b2: Fixed[Scalar],
    b3: Fixed[Scalar],
    eta: Fraction = 0.0,
) -> Scalar:
    r"""Degradation of cohesive fracture, $g = \frac{f}{f + Q} (1 - \eta) + \eta$, $f = (1 - d)^p$,
    $Q = b_1 d (1 + b_2 d + b_2 b_3 d^2)$.

    power: exponent of the intact part, $p$
    b1: linear coefficient of the broken part
    b2: quadratic coefficient, relative to the linear one
    b3: cubic coefficient, relative to the quadratic one
    eta: what is left of a broken point, $\eta$
    """
    intact = (1.0 - phase) ** power
    broken = b1 * phase * (1.0 + b2 * phase * (1.0 + b3 * phase))
    return intact / (intact + broken) * (1.0 - eta) + eta


@model(
    gives=("active_strain_energy_density", "inactive_strain_energy_density"),
    labels={"coefficients": label_moduli},
    usual=MODULI,
)
def LinearIsotropicStrainEnergyDensity(
    strain: SR2,
    *,
    coefficients: Many[Parameter[Scalar]],
    coefficient_types: tuple[Modulus, ...],
    decomposition: Literal["NONE", "VOLDEV"] = "NONE",
) -> tuple[Scalar, Scalar]:
    r"""Elastic energy that drives cracks and that does not, $\tfrac12 K (\mathrm{tr}\,
    \varepsilon)^2 + G\, e : e$ with the deviator $e$, and zero.

    coefficients: two elastic constants
    coefficient_types: which constants they are
    decomposition: `VOLDEV` leaves the energy of compression, $\mathrm{tr}\, \varepsilon < 0$, out
    """
    bulk, shear = bulk_and_shear(coefficients, coefficient_types)
    change, part = tr(strain), dev(strain)
    # x <x> and not <x>^2: its second derivative at zero is the mean of both sides
    tension = change * macaulay(change) if decomposition == "VOLDEV" else change * change
    active = 0.5 * bulk * tension + shear * inner(part, part)
    return active, 0.5 * bulk * (change * change - tension)
