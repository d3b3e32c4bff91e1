"""Precipitation by Kampmann and Wagner: driving forces, nucleation, growth of size classes.

Constants of nature are parameters: laws hold no units.
"""

import math

from ingot.catalog.declare import Fixed, Listed, Many, Parameter, model
from ingot.catalog.lists import pair
from ingot.types import Scalar, add_up, exp, log, sqrt, total


@model(gives="chemical_gibbs_free_energy")
def ChemicalGibbsFreeEnergyDifference(
    concentration_differences: Many[Scalar],
    *,
    chemical_potentials: Many[Parameter[Scalar]],
    equilibrium_potentials: Many[Parameter[Scalar]],
) -> Scalar:
    r"""The energy that a precipitate gains, $\Delta g = \sum_i \Delta x_i (\mu_i - \mu_i^{eq})$.

    chemical_potentials: potentials of the species, $\mu_i$
    equilibrium_potentials: potentials in equilibrium, $\mu_i^{eq}$
    """
    species = pair(
        concentration_differences=concentration_differences,
        chemical_potentials=chemical_potentials,
        equilibrium_potentials=equilibrium_potentials,
    )
    return add_up([dx * (potential - other) for dx, potential, other in species])


@model(gives="current_concentration")
def CurrentConcentration(
    precipitate_volume_fractions: Many[Scalar],
    *,
    initial_concentration: Parameter[Scalar],
    precipitate_concentrations: Many[Parameter[Scalar]],
) -> Scalar:
    r"""What precipitates leave in the matrix, $x = (x_0 - \sum_i f_i x_i^p) / (1 - \sum_i f_i)$.

    initial_concentration: concentration without precipitates, $x_0$
    precipitate_concentrations: concentrations in the precipitates, $x_i^p$
    """
    phases = pair(
        precipitate_volume_fractions=precipitate_volume_fractions,
        precipitate_concentrations=precipitate_concentrations,
    )
    bound = add_up([share * concentration for share, concentration in phases])
    return (initial_concentration - bound) / (1.0 - add_up(precipitate_volume_fractions))


@model(gives="driving_force")
def IdealSolutionVolumetricDrivingForce(
    temperature: Scalar,
    current_concentrations: Many[Scalar],
    *,
    gas_constant: Fixed[Scalar],
    equilibrium_concentrations: Many[Parameter[Scalar]],
    weights: Many[Fixed[Scalar]] = "1",
) -> Scalar:
    r"""The driving force in an ideal solution, $\Delta g = R T \sum_k w_k \ln(c_k / c_k^{eq})$.

    gas_constant: gas constant, $R$
    equilibrium_concentrations: concentrations in equilibrium, $c_k^{eq}$
    weights: one for every species, or one for all, $w_k$
    """
    species = pair(
        current_concentrations=current_concentrations,
        equilibrium_concentrations=equilibrium_concentrations,
        weights=weights * len(current_concentrations) if len(weights) == 1 else weights,
    )
    terms = [weight * log(now / equilibrium) for now, equilibrium, weight in species]
    return gas_constant * temperature * add_up(terms)


@model(gives="projected_diffusivity_sum")
def ProjectedDiffusivitySum(
    far_field_concentrations: Many[Scalar],
    *,
    concentration_differences: Many[Parameter[Scalar]],
    diffusivities: Many[Parameter[Scalar]],
) -> Scalar:
    r"""The resistance of all species to growth, $S = \sum_k \Delta x_k^2 / (D_k x_k)$.

    concentration_differences: from precipitate to matrix, $\Delta x_k$
    diffusivities: diffusivities in the matrix, $D_k$
    """
    species = pair(
        far_field_concentrations=far_field_concentrations,
        concentration_differences=concentration_differences,
        diffusivities=diffusivities,
    )
    return add_up([dx * dx / (diffusivity * far) for far, dx, diffusivity in species])


@model(gives=("nucleation_barrier", "critical_radius"))
def NucleationBarrierAndCriticalRadius(
    *,
    surface_energy: Parameter[Scalar],
    total_gibbs_free_energy_difference: Parameter[Scalar],
    molar_volume: Fixed[Scalar],
) -> tuple[Scalar, Scalar]:
    r"""A nucleus that neither grows nor shrinks, $\Delta G^* = \tfrac{16}{3} \pi \gamma^3 V_m^2 /
    \Delta g^2$ and $R^* = 2 \gamma V_m / \Delta g$.

    surface_energy: energy of the interface, $\gamma$
    total_gibbs_free_energy_difference: energy gained by an amount, $\Delta g$
    molar_volume: volume of an amount, $V_m$
    """
    ratio = surface_energy * molar_volume / total_gibbs_free_energy_difference
    return (16.0 / 3.0 * math.pi) * surface_energy * ratio * ratio, 2.0 * ratio


@model(gives="zeldovich_factor")
def ZeldovichFactor(
    critical_radius: Scalar,
    temperature: Scalar,
    *,
    surface_energy: Parameter[Scalar],
    molar_volume: Fixed[Scalar],
    avogadro_number: Fixed[Scalar],
    boltzmann_constant: Fixed[Scalar],
) -> Scalar:
    r"""The share of nuclei that go on growing, $Z = \frac{V_m}{2 \pi N_a R^2}
    \sqrt{\gamma / k T}$.

    surface_energy: energy of the interface, $\gamma$
    molar_volume: volume of an amount, $V_m$
    avogadro_number: particles of an amount, $N_a$
    boltzmann_constant: energy of a particle by temperature, $k$
    """
    area = 2.0 * math.pi * critical_radius * critical_radius
    root = sqrt(surface_energy / (boltzmann_constant * temperature))
    return molar_volume / avogadro_number / area * root


@model(gives="kinetic_factor")
def KineticFactor(
    critical_radius: Scalar,
    projected_diffusivity_sum: Scalar,
    *,
    molar_volume: Parameter[Scalar],
    avogadro_number: Parameter[Scalar],
) -> Scalar:
    r"""How fast a nucleus takes up atoms, $\beta = 4 \pi (N_a / V_m)^{4/3} R^2 / S$.

    molar_volume: volume of an amount, $V_m$
    avogadro_number: particles of an amount, $N_a$
    """
    density = (avogadro_number / molar_volume) ** (4.0 / 3.0)
    area = 4.0 * math.pi * critical_radius * critical_radius
    return area * density / projected_diffusivity_sum


@model(gives="nucleation_flux_magnitude")
def NucleationFluxMagnitude(
    zeldovich_factor: Scalar,
    kinetic_factor: Scalar,
    nucleation_barrier: Scalar,
    temperature: Scalar,
    *,
    nucleation_site_density: Parameter[Scalar],
    boltzmann_constant: Fixed[Scalar],
) -> Scalar:
    r"""Nuclei formed by time, $J = Z \beta N_0 e^{-\Delta G^* / k T}$.

    nucleation_site_density: sites for nuclei, $N_0$
    boltzmann_constant: energy of a particle by temperature, $k$
    """
    share = exp(-nucleation_barrier / (boltzmann_constant * temperature))
    return zeldovich_factor * kinetic_factor * nucleation_site_density * share


@model(gives="volume_fraction")
def PrecipitateVolumeFraction(
    number_density: Scalar["cell"], *, radius: Listed[Parameter[Scalar["cell"]]]
) -> Scalar:
    r"""The volume of spheres of all sizes, $f = \sum_i \tfrac43 \pi R_i^3 n_i$.

    radius: radius in each class, or in all, $R_i$
    """
    return total(radius * radius * radius * number_density, "cell") * (4.0 / 3.0 * math.pi)


@model(gives="growth_rate")
def RateLimitedPrecipitateGrowthRate(
    current_concentration: Scalar,
    *,
    radius: Parameter[Scalar],
    equilibrium_concentration: Parameter[Scalar],
    concentration_difference: Parameter[Scalar],
    diffusivity: Parameter[Scalar],
) -> Scalar:
    r"""Growth by the slowest species, $\dot R = \frac{D}{R} \frac{x - x_{eq}}{\Delta x}$.

    radius: radius of the precipitate, $R$
    equilibrium_concentration: concentration at its surface, $x_{eq}$
    concentration_difference: from precipitate to matrix, $\Delta x$
    diffusivity: diffusivity in the matrix, $D$
    """
    excess = current_concentration - equilibrium_concentration
    return diffusivity / radius * excess / concentration_difference


@model(gives="growth_rate")
def SFFKPrecipitationGrowthRate(
    projected_diffusivity_sum: Scalar,
    temperature: Scalar,
    *,
    radius: Parameter[Scalar],
    gibbs_free_energy_difference: Parameter[Scalar],
    gas_constant: Parameter[Scalar],
) -> Scalar:
    r"""Growth by Svoboda, Fischer, Fratzl and Kozeschnik, $\dot R = \Delta g / (R R_g T S)$.

    radius: radius of the precipitate, $R$
    gibbs_free_energy_difference: energy that drives growth, $\Delta g$
    gas_constant: gas constant, $R_g$
    """
    heat = gas_constant * temperature
    return gibbs_free_energy_difference / (radius * heat * projected_diffusivity_sum)
