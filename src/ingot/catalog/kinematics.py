"""Eigenstrains and deformation."""

import math

from ingot.catalog.declare import Fixed, Parameter, model
from ingot.types import (
    R2, SR2, Scalar, det, log1p3, matmul, r2_from_sr2, rotate, sym, transpose, where,
)  # fmt: skip


@model(gives="eigenstrain")
def ThermalEigenstrain(
    temperature: Scalar, *, reference_temperature: Fixed[Scalar], CTE: Parameter[Scalar]
) -> SR2:
    r"""Isotropic thermal strain, $\varepsilon = \alpha (T - T_0) I$.

    reference_temperature: temperature of zero strain, $T_0$
    CTE: coefficient of thermal expansion, $\alpha$
    """
    return SR2.fill(CTE * (temperature - reference_temperature))


@model(gives="eigenstrain")
def VolumeChangeEigenstrain(volume: Scalar, *, reference_volume: Fixed[Scalar]) -> SR2:
    r"""Isotropic strain of a change in volume, $\varepsilon = ((V / V_0)^{1/3} - 1) I$.

    reference_volume: volume of zero strain, $V_0$
    """
    return SR2.fill((volume / reference_volume) ** (1.0 / 3.0) - 1.0)


@model(gives="eigenstrain")
def PhaseTransformationEigenstrain(phase_fraction: Scalar, volume_fraction_change: Scalar) -> SR2:
    r"""Isotropic strain of a phase that grows, $\varepsilon = \Delta V f I$."""
    return SR2.fill(volume_fraction_change * phase_fraction)


@model(gives="jacobian")
def ThermalDeformationJacobian(
    temperature: Scalar, *, reference_temperature: Fixed[Scalar], CTE: Parameter[Scalar]
) -> Scalar:
    r"""The change of volume with temperature, $J = 1 + \alpha (T - T_0)$.

    reference_temperature: temperature of no change, $T_0$
    CTE: coefficient of thermal expansion, of the volume, $\alpha$
    """
    return 1.0 + CTE * (temperature - reference_temperature)


@model(gives="jacobian")
def SwellingAndPhaseChangeDeformationJacobian(
    fluid_fraction: Scalar,
    *,
    phase_fraction: Parameter[Scalar],
    swelling_coefficient: Fixed[Scalar],
    reference_volume_difference: Fixed[Scalar],
) -> Scalar:
    r"""The change of volume by a fluid, $J = 1 + \alpha c \varphi + (1 - c) \varphi \Delta\Omega$.

    phase_fraction: liquid part of the fluid, $c$
    swelling_coefficient: swelling by liquid, $\alpha$
    reference_volume_difference: change of volume as it turns solid, $\Delta\Omega$
    """
    swelling = swelling_coefficient * phase_fraction
    change = (1.0 - phase_fraction) * reference_volume_difference
    return 1.0 + fluid_fraction * (swelling + change)


@model(gives="output")
def VolumeAdjustDeformationGradient(input: R2, jacobian: Scalar) -> R2:
    r"""The deformation less a change of volume, $F_e = J^{-1/3} F$."""
    return input * jacobian ** (-1.0 / 3.0)


@model(gives="strain")
def HenckyStrain(deformation_gradient: R2) -> SR2:
    r"""The logarithmic strain of a deformation, $E = \tfrac{1}{2} \ln F^T F$; NaN unless
    $\det F > 0$.
    """
    return log1p3(_twice_green_strain(deformation_gradient)) * 0.5


@model(gives="second_piola_kirchhoff_stress")
def HenckyStressPullBack(deformation_gradient: R2, stress: SR2) -> SR2:
    r"""The stress $T$ that works on the logarithmic strain, on $C = F^T F$: $S = T : 2 dE/dC$.

    `HenckyStrain` gives that strain; $T : dE = \tfrac{1}{2} S : dC$ for every change.
    """
    return log1p3(_twice_green_strain(deformation_gradient), stress)


def _twice_green_strain(deformation_gradient: R2) -> SR2:
    """$F^T F - I$ of displacement gradients, so that small ones keep their digits.

    It is NaN where a body is turned inside out, of which $F^T F$ knows nothing: solves fail there.
    """
    h = deformation_gradient - R2.identity()
    return where(det(deformation_gradient) > 0.0, sym(h * 2.0 + matmul(transpose(h), h)), math.nan)


@model(gives="first_piola_kirchhoff_stress")
def FirstPiolaKirchhoffStress(deformation_gradient: R2, second_piola_kirchhoff_stress: SR2) -> R2:
    r"""The force on an area of the body before it deformed, $P = F S$."""
    return matmul(deformation_gradient, r2_from_sr2(second_piola_kirchhoff_stress))


@model(gives="kirchhoff_stress")
def KirchhoffStress(deformation_gradient: R2, second_piola_kirchhoff_stress: SR2) -> SR2:
    r"""The Cauchy stress times the change of volume, $\tau = F S F^T$."""
    return rotate(second_piola_kirchhoff_stress, deformation_gradient)


@model(gives="cauchy_stress")
def CauchyStress(deformation_gradient: R2, kirchhoff_stress: SR2) -> SR2:
    r"""The force on an area of the deformed body, $\sigma = \tau / \det F$."""
    return kirchhoff_stress / det(deformation_gradient)
