"""What NEML2 calls a stored parameter where that is not the name of its option, by type."""

__all__ = ["STORED_NAMES"]

STORED_NAMES: dict[str, dict[str, str]] = {
    "AdvectiveStress": {"coefficient": "coeff"},
    "ArrheniusParameter": {"reference_value": "p0", "activation_energy": "Q"},
    "AvramiErofeevNucleation": {"coef": "k", "order": "n"},
    "BenzeggaghKenaneFullSeparation": {
        "mode_mixity": "beta", "critical_separation": "delta_c", "penalty_stiffness": "K",
        "mode_I_fracture_toughness": "GIc", "mode_II_fracture_toughness": "GIIc",
        "shear_strength": "S",
    },
    "BilinearTraction": {
        "penalty_stiffness": "K", "critical_separation": "delta_c", "full_separation": "delta_f",
    },
    "BrooksCoreyCapillaryPressure": {"threshold_pressure": "Pt", "exponent": "p"},
    "BurgersElement": {
        "maxwell_modulus": "EM", "maxwell_viscosity": "etaM", "kelvin_modulus": "EK",
        "kelvin_viscosity": "etaK",
    },
    "CamanhoDavilaCriticalSeparation": {
        "mode_mixity": "beta", "penalty_stiffness": "K", "normal_strength": "N",
        "shear_strength": "S",
    },
    "ChemicalGibbsFreeEnergyDifference": {
        "chemical_potentials": "_mu_names", "equilibrium_potentials": "_mu_eq_names",
    },
    "ContractingGeometry": {"coef": "k", "order": "n"},
    "CurrentConcentration": {
        "initial_concentration": "x0", "precipitate_concentrations": "_xp_names",
    },
    "DiffusionLimitedReaction": {"diffusion_coefficient": "D"},
    "EffectiveSaturation": {"residual_saturation": "Sr", "max_fraction": "phi_max"},
    "EffectiveVolume": {"reference_mass": "M", "densities": "_rho_names"},
    "ExponentialLawPermeability": {
        "reference_permeability": "K0", "reference_porosity": "phi0", "scale": "a",
    },
    "GTNYieldFunction": {"yield_stress": "sy"},
    "GeneralElasticity": {"elastic_stiffness_tensor": "T"},
    "HermiteSmoothStep": {"lower_bound": "x0", "upper_bound": "x1"},
    "IdealSolutionVolumetricDrivingForce": {
        "gas_constant": "R_g", "equilibrium_concentrations": "_x_eq_names", "weights": "_w_names",
    },
    "KelvinVoigtElement": {"modulus": "K", "viscosity": "eta"},
    "KineticFactor": {"molar_volume": "V_m", "avogadro_number": "N_a"},
    "KocksMeckingActivationEnergy": {"shear_modulus": "mu"},
    "KocksMeckingFlowViscosity": {"shear_modulus": "mu"},
    "KocksMeckingRateSensitivity": {"shear_modulus": "mu"},
    "KocksMeckingYieldStress": {"shear_modulus": "mu"},
    "KozenyCarmanPermeability": {"reference_permeability": "K0", "reference_porosity": "phi0"},
    "LinearDashpot": {"viscosity": "eta"},
    "LinearIsotropicHardening": {"hardening_modulus": "K"},
    "LinearKinematicHardening": {"hardening_modulus": "H"},
    "MRPParameterToVariable": {"from": "param"},
    "MillerIndexParameterToVariable": {"from": "param"},
    "NucleationBarrierAndCriticalRadius": {
        "surface_energy": "gamma", "total_gibbs_free_energy_difference": "dg_total",
        "molar_volume": "V_m",
    },
    "NucleationFluxMagnitude": {"nucleation_site_density": "N0", "boltzmann_constant": "k"},
    "OlevskySinteringStress": {"surface_tension": "gamma", "particle_radius": "r"},
    "OrthotropicLinearTraction": {
        "normal_stiffness": "Kn", "tangential_stiffness": "Kt", "penalty_stiffness": "Kpen",
    },
    "PerzynaPlasticFlowRate": {"reference_stress": "eta", "exponent": "n"},
    "PowerDegradationFunction": {"power": "p"},
    "PowerLawFullSeparation": {
        "mode_mixity": "beta", "critical_separation": "delta_c", "penalty_stiffness": "K",
        "mode_I_fracture_toughness": "GIc", "mode_II_fracture_toughness": "GIIc",
        "shear_strength": "S",
    },
    "PowerLawPermeability": {
        "reference_permeability": "K0", "reference_porosity": "phi0", "exponent": "p",
    },
    "PrecipitateVolumeFraction": {"radius": "R"},
    "ProjectedDiffusivitySum": {
        "concentration_differences": "_dx_names", "diffusivities": "_D_names",
    },
    "R2ParameterToVariable": {"from": "param"},
    "RateLimitedPrecipitateGrowthRate": {
        "radius": "R", "equilibrium_concentration": "x_eq", "concentration_difference": "dx",
        "diffusivity": "D",
    },
    "RationalDegradationFunction": {"power": "p"},
    "SFFKPrecipitationGrowthRate": {
        "radius": "R", "gibbs_free_energy_difference": "dg", "gas_constant": "R_g",
    },
    "SR2LinearCombination": {"weights": "weight"},
    "SR2ParameterToVariable": {"from": "param"},
    "SSR4ParameterToVariable": {"from": "param"},
    "SalehaniIraniTraction": {
        "normal_characteristic_length": "delta_u0_n",
        "tangential_characteristic_length": "delta_u0_t", "normal_strength": "Tmax_n",
        "shear_strength": "Tmax_t", "penalty_stiffness": "Kpen",
    },
    "ScalarLinearCombination": {"weights": "weight"},
    "ScalarPNorm": {"exponent": "_p", "weights": "weight"},
    "ScalarParameterToVariable": {"from": "param"},
    "SemiInfiniteCoordinateTransform": {"shift": "s"},
    "SlopeSaturationVoceIsotropicHardening": {
        "saturated_hardening": "R", "initial_hardening_rate": "theta0",
    },
    "SwellingAndPhaseChangeDeformationJacobian": {
        "phase_fraction": "c", "swelling_coefficient": "alpha",
        "reference_volume_difference": "dOmega",
    },
    "SymmetricHermiteInterpolation": {"lower_bound": "x0", "upper_bound": "x1"},
    "ThermalDeformationJacobian": {"reference_temperature": "T0", "CTE": "alpha"},
    "ThermalEigenstrain": {"reference_temperature": "T0", "CTE": "alpha"},
    "VecParameterToVariable": {"from": "param"},
    "VoceIsotropicHardening": {"saturated_hardening": "R", "saturation_rate": "d"},
    "VolumeChangeEigenstrain": {"reference_volume": "V0"},
    "WR2ParameterToVariable": {"from": "param"},
    "WiechertElement": {
        "equilibrium_modulus": "Einf", "modulus_1": "E1", "viscosity_1": "eta1", "modulus_2": "E2",
        "viscosity_2": "eta2",
    },
    "YieldFunction": {"yield_stress": "sy"},
    "ZeldovichFactor": {
        "surface_energy": "gamma", "molar_volume": "V_m", "avogadro_number": "N_a",
        "boltzmann_constant": "k",
    },
    "ZenerElement": {
        "equilibrium_modulus": "Einf", "maxwell_modulus": "EM", "maxwell_viscosity": "etaM",
    },
}  # fmt: skip
"""Entries of a list are numbered: `weight_0` is the first of `weights`."""
