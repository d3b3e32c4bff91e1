"""Crystal plasticity: slip systems on the axis `slip`, lattice rotation, hardening."""

from ingot.catalog.declare import Data, Fixed, Parameter, model, named, old
from ingot.types import (
    R2, SR2, WR2, Scalar, abs, inner, matmul, maximum, norm, r2_from_sr2, r2_from_wr2, rotate,
    skew, sym, total, transpose, where,
)  # fmt: skip


@model(gives="resolved_shears")
def ResolvedShear(
    stress: SR2,
    orientation_matrix: R2,
    *,
    crystal_geometry: Data["CubicCrystal"] = "crystal_geometry",
) -> Scalar["slip"]:
    r"""Stress resolved on the slip systems, $\tau_i = \sigma : \mathrm{sym}(Q M_i Q^T)$.

    crystal_geometry: the crystal with its slip systems
    """
    return inner(rotate(stress, transpose(orientation_matrix)), crystal_geometry.schmid)


@model(gives="slip_rates")
def PowerLawSlipRule(
    resolved_shears: Scalar["slip"],
    slip_strengths: Scalar["slip"],
    *,
    gamma0: Parameter[Scalar],
    n: Parameter[Scalar],
) -> Scalar["slip"]:
    r"""Slip by a power law, $\dot\gamma_0 |\tau_i / \hat\tau_i|^{n-1} \tau_i / \hat\tau_i$.

    gamma0: slip rate at the strength, $\dot\gamma_0$
    n: rate sensitivity
    """
    ratio = resolved_shears / slip_strengths
    size = maximum(abs(ratio), 1e-30)  # slope 0 at 0 also for n < 2, not nan
    return gamma0 * size ** (n - 1.0) * ratio


@model(gives="sum_slip_rates")
def SumSlipRates(slip_rates: Scalar["slip"]) -> Scalar:
    r"""The total slip rate, $\sum_i |\dot\gamma_i|$."""
    return total(abs(slip_rates), "slip")


@model(gives="slip_strengths")
def SingleSlipStrengthMap(
    slip_hardening: Scalar,
    *,
    constant_strength: Parameter[Scalar],
    crystal_geometry: Data["CubicCrystal"] = "crystal_geometry",
) -> Scalar["slip"]:
    r"""One strength for every slip system, $\hat\tau_i = \bar\tau + \tau_0$.

    constant_strength: strength without hardening, $\tau_0$
    crystal_geometry: the crystal with its slip systems
    """
    return (slip_hardening + constant_strength) * crystal_geometry.ones


@model(gives="slip_hardening_rate")
def VoceSingleSlipHardeningRule(
    slip_hardening: Scalar,
    sum_slip_rates: Scalar,
    *,
    initial_slope: Parameter[Scalar],
    saturated_hardening: Parameter[Scalar],
) -> Scalar:
    r"""Hardening that saturates, $\theta_0 (1 - \bar\tau / \tau_f) \sum_i |\dot\gamma_i|$.

    initial_slope: slope without hardening, $\theta_0$
    saturated_hardening: hardening once saturated, $\tau_f$
    """
    return initial_slope * (1.0 - slip_hardening / saturated_hardening) * sum_slip_rates


@model(gives="plastic_deformation_rate")
def PlasticDeformationRate(
    orientation_matrix: R2,
    slip_rates: Scalar["slip"],
    *,
    crystal_geometry: Data["CubicCrystal"] = "crystal_geometry",
) -> SR2:
    r"""Plastic stretching, $d^p = \mathrm{sym}(Q (\sum_i \dot\gamma_i M_i) Q^T)$.

    crystal_geometry: the crystal with its slip systems
    """
    return rotate(total(crystal_geometry.schmid * slip_rates, "slip"), orientation_matrix)


@model(gives="plastic_vorticity")
def PlasticVorticity(
    orientation_matrix: R2,
    slip_rates: Scalar["slip"],
    *,
    crystal_geometry: Data["CubicCrystal"] = "crystal_geometry",
) -> WR2:
    r"""Plastic spin, $w^p = \mathrm{skew}(Q (\sum_i \dot\gamma_i W_i) Q^T)$.

    crystal_geometry: the crystal with its slip systems
    """
    return rotate(total(crystal_geometry.spin * slip_rates, "slip"), orientation_matrix)


@model(gives="elastic_strain_rate")
def ElasticStrainRate(
    elastic_strain: SR2, deformation_rate: SR2, vorticity: WR2, plastic_deformation_rate: SR2
) -> SR2:
    r"""The objective rate of elastic strain, $\dot e = d - d^p + W e - e W$."""
    turned = matmul(r2_from_wr2(vorticity), r2_from_sr2(elastic_strain))
    return deformation_rate - plastic_deformation_rate + sym(turned) * 2.0


@model(gives="orientation_rate")
def OrientationRate(
    elastic_strain: SR2, vorticity: WR2, plastic_deformation_rate: SR2, plastic_vorticity: WR2
) -> WR2:
    r"""The spin of the lattice, $\Omega = w - w^p + d^p e - e d^p$."""
    product = matmul(r2_from_sr2(plastic_deformation_rate), r2_from_sr2(elastic_strain))
    return vorticity - plastic_vorticity + skew(product) * 2.0


@model(gives="elastic_strain")
def CrystalPlasticityStrainPredictor(
    deformation_rate: SR2,
    time: Scalar = named("t"),
    time_old: Scalar = old("time"),
    elastic_strain_old: SR2 = old("elastic_strain"),
    *,
    scale: Fixed[Scalar] = 1.0,
    threshold: Fixed[Scalar] = 1e-3,
) -> SR2:
    r"""A guess that loads elastically while the strain is small, $e_n + s (t - t_n) d$.

    scale: part of the increment that is taken, $s$
    threshold: strain above which the old strain is kept
    """
    loaded = elastic_strain_old + deformation_rate * (scale * (time - time_old))
    return where(norm(elastic_strain_old) < threshold, loaded, elastic_strain_old)
