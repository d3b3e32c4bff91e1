"""Crystal plasticity: slip systems on the axis `slip`, lattice rotation, hardening."""

from ingot.catalog.declare import Data, Fixed, Parameter, derived, model, named, old
from ingot.options import Range
from ingot.types import (
    MRP, R2, SR2, SSR4, WR2, Scalar, abs, inner, inv, matmul, norm, r2_from_sr2, r2_from_wr2,
    rotate, signed_power, skew, sqrt, sym, total, transpose, where,
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


@model(gives="slip_rates", usual={"gamma0": Range(gt=0), "n": Range(gt=0)})
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
    return gamma0 * signed_power(resolved_shears / slip_strengths, n)


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


@model(gives="slip_strengths")
def DislocationObstacleStrengthMap(
    dislocation_density: Scalar["slip"],
    *,
    constant_strength: Parameter[Scalar],
    alpha: Parameter[Scalar],
    mu: Parameter[Scalar],
    b: Parameter[Scalar],
) -> Scalar["slip"]:
    r"""Strength by the dislocations in the way, $\hat\tau_i = \tau_0 + \alpha \mu b \sqrt{\rho_i}$.

    constant_strength: strength without dislocations, $\tau_0$
    alpha: strength of an obstacle, $\alpha$
    mu: shear modulus, $\mu$
    b: length of the Burgers vector
    """
    return constant_strength + alpha * mu * b * sqrt(dislocation_density)


@model(gives=derived("{dislocation_density}_rate"))
def PerSlipForestDislocationEvolution(
    dislocation_density: Scalar["slip"],
    slip_rates: Scalar["slip"],
    *,
    k1: Parameter[Scalar],
    k2: Parameter[Scalar],
) -> Scalar["slip"]:
    r"""Dislocations that multiply and recover with slip,
    $\dot\rho_i = (k_1 \sqrt{\rho_i} - k_2 \rho_i) |\dot\gamma_i|$.

    k1: multiplication by the forest
    k2: dynamic recovery
    """
    density = dislocation_density
    return (k1 * sqrt(density) - k2 * density) * abs(slip_rates)


@model(gives="slip_hardening_rate")
def LinearSingleSlipHardeningRule(
    slip_hardening: Scalar, sum_slip_rates: Scalar, *, hardening_slope: Parameter[Scalar]
) -> Scalar:
    r"""Hardening in proportion to slip, $\theta \sum_i |\dot\gamma_i|$, whatever it is by now.

    hardening_slope: hardening per slip, $\theta$
    """
    return hardening_slope * sum_slip_rates


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


@model(gives="plastic_spatial_velocity_gradient")
def PlasticSpatialVelocityGradient(
    orientation_matrix: R2,
    slip_rates: Scalar["slip"],
    *,
    crystal_geometry: Data["CubicCrystal"] = "crystal_geometry",
) -> R2:
    r"""Plastic velocity gradient, $l^p = Q (\sum_i \dot\gamma_i\, s_i \otimes m_i) Q^T$.

    crystal_geometry: the crystal with its slip systems
    """
    return rotate(total(crystal_geometry.dyads * slip_rates, "slip"), orientation_matrix)


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


@model(gives="plastic_deformation_gradient")
def CrystalPlasticityDeformationGradientPredictor(
    deformation_gradient: R2,
    plastic_deformation_gradient_old: R2 = old("plastic_deformation_gradient"),
    *,
    scale: Fixed[Scalar] = 0.1,
    threshold: Fixed[Scalar] = 1e-3,
) -> R2:
    r"""A guess that takes most of a large elastic deformation as plastic: with
    $F_e = F P_n^{-1}$, $P = (I + s (F_e - I))^{-1} F$.

    scale: part of the elastic deformation that stays elastic, $s$
    threshold: elastic strain up to which the old plastic deformation is kept
    """
    kept = plastic_deformation_gradient_old
    elastic = deformation_gradient @ inv(kept)
    large = norm(sym(elastic) - SR2.identity()) > threshold
    less = R2.identity() + (elastic - R2.identity()) * scale
    return where(large, inv(less) @ deformation_gradient, kept)


@model(gives="coupling")
def SlipSystemElasticInteraction(
    orientation: MRP,
    time: Scalar = named("t"),
    time_old: Scalar = old("time"),
    *,
    elastic_stiffness_tensor: Parameter[SSR4],
    crystal_geometry: Data["CubicCrystal"] = "crystal_geometry",
) -> Scalar["driven", "slip"]:
    r"""How slip relaxes the stress resolved on another system, $(t - t_n) M_i : C : M_j$.

    elastic_stiffness_tensor: stiffness along the axes of the crystal, $C$
    crystal_geometry: the crystal with its slip systems
    """
    # Crystal and stiffness turn together, so the orientation does not count.
    return inner(elastic_stiffness_tensor, crystal_geometry.pairs) * (time - time_old)


@model(gives=named("output", option="output", overrides=True))
def FixOrientation(input: MRP, *, threshold: float = 1.0) -> MRP:
    r"""The same rotation by its other parameters, $-r / r \cdot r$, from a threshold on.

    threshold: size of $r \cdot r$ from which they are changed
    """
    square = inner(input, input)
    small = square < threshold
    return where(small, input, -(input / where(small, 1.0, square)))
