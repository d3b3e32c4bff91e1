"""Eigenstrains and deformation."""

from ingot.catalog.declare import Fixed, Parameter, model
from ingot.types import R2, SR2, Scalar


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
