"""Chemical reactions and reactive infiltration."""

from ingot.catalog.declare import Fixed, Many, Parameter, model, named, optional
from ingot.catalog.lists import pair
from ingot.options import NotNegative, Positive
from ingot.types import Scalar, add_up, below_one, eps, log, maximum, sqrt


@model(gives="reaction_rate")
def ContractingGeometry(
    conversion_degree: Scalar, *, coef: Parameter[Scalar], order: Fixed[Scalar]
) -> Scalar:
    r"""Reaction on a shrinking core, $f = k (1 - \alpha)^n$.

    The core $1 - \alpha$ is kept within $[\epsilon, 1 - \epsilon]$.

    coef: rate coefficient, $k$
    order: order of the reaction, $n$
    """
    core = below_one(1.0 - conversion_degree)
    return coef * maximum(core, eps(conversion_degree)) ** order


@model(gives="reaction_rate")
def AvramiErofeevNucleation(
    conversion_degree: Scalar, *, coef: Parameter[Scalar], order: Parameter[Scalar]
) -> Scalar:
    r"""Nucleation by Avrami and Erofeev, $f = k (1 - \alpha) (-\ln(1 - \alpha))^n$.

    coef: rate coefficient, $k$
    order: order of the reaction, $n$
    """
    left = 1.0 - conversion_degree
    return coef * left * (-log(left)) ** order


@model(gives=("inner_radius", "outer_radius"))
def CylindricalChannelGeometry(
    solid_fraction: Scalar, product_fraction: Scalar
) -> tuple[Scalar, Scalar]:
    r"""Radii of the product around a channel, $\sqrt{1 - \phi_s - \phi_p}$ and $\sqrt{1 - \phi_s}$.

    The square of the inner radius is kept within $[\epsilon, 1 - \epsilon]$.
    """
    channel = below_one(1.0 - solid_fraction - product_fraction)
    return sqrt(maximum(channel, eps(solid_fraction))), sqrt(1.0 - solid_fraction)


@model(gives="reaction_rate")
def DiffusionLimitedReaction(
    product_inner_radius: Scalar,
    solid_inner_radius: Scalar,
    liquid_reactivity: Scalar,
    solid_reactivity: Scalar,
    *,
    diffusion_coefficient: Parameter[Scalar],
    molar_volume: Positive,
    product_dummy_thickness: NotNegative = 0.01,
) -> Scalar:
    r"""Reaction by diffusion through a product layer,
    $\dot r = \frac{2 D R_l R_s}{\Omega} \frac{r_o}{r_o - r_i + \delta}$.

    diffusion_coefficient: diffusion through the product, $D$
    molar_volume: volume of an amount of product, $\Omega$
    product_dummy_thickness: keeps the rate finite without a product, $\delta$
    """
    scale = 2.0 * diffusion_coefficient * liquid_reactivity * solid_reactivity / molar_volume
    thickness = solid_inner_radius - product_inner_radius + product_dummy_thickness
    return scale * solid_inner_radius / thickness


@model(gives="composite_volume")
def EffectiveVolume(
    open_volume_fraction: Scalar = optional,
    mass_fractions: Many[Scalar] = named("mass_fractions"),
    *,
    reference_mass: Parameter[Scalar],
    densities: Many[Fixed[Scalar]],
) -> Scalar:
    r"""The volume of a composite, $V = \frac{M}{1 - \phi_o} \sum_i w_i / \rho_i$.

    reference_mass: mass of the composite, $M$
    densities: densities of its parts, $\rho_i$
    """
    parts = pair(mass_fractions=mass_fractions, densities=densities)
    volume = reference_mass * add_up([mass / density for mass, density in parts])
    return volume if open_volume_fraction is None else volume / (1.0 - open_volume_fraction)
