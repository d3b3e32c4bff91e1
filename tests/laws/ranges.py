"""Where laws are defined: what tests draw from, where the physics allows no zero or no sign.

Keys are arguments, or `Law.argument` for one law alone. What is not here is drawn from the usual
ranges, its corners are zeros, ones, either sign and underflow.
"""

from typing import Any

USUAL_INPUT, USUAL_PARAMETER, FACTOR = (-1.5, 1.5), (0.5, 2.0), (0.5, 1.5)

ANYWHERE: dict[str, tuple[float, float]] = {
    "conversion_degree": (0.05, 0.9),
    "isotropic_hardening": (0.0, 1.0),
    "time": (1.0, 2.0),
    "time_old": (0.0, 0.9),
    "void_fraction": (0.05, 0.9),
}
"""Inputs that are drawn from a range, though the law is defined outside it too."""

WITHIN: dict[str, tuple[float, float]] = {
    "AvramiErofeevNucleation.conversion_degree": (0.05, 0.9),
    "CylindricalChannelGeometry.product_fraction": (0.1, 0.45),
    "CylindricalChannelGeometry.solid_fraction": (0.1, 0.45),
    "DiffusionLimitedReaction.product_inner_radius": (0.2, 0.5),
    "DiffusionLimitedReaction.solid_inner_radius": (0.6, 0.9),
    "VariableRate.time": (1.0, 2.0),
    "VariableRate.time_old": (0.0, 0.9),
    "coordinate": (0.1, 2.0),
    "critical_radius": (0.5, 2.0),
    "current_concentrations": (0.1, 0.9),
    "dislocation_density": (0.5, 2.0),
    "effective_saturation": (0.15, 0.85),
    "far_field_concentrations": (0.1, 0.9),
    "js": (0.5, 1.5),
    "jt": (0.5, 1.5),
    "VolumeAdjustDeformationGradient.jacobian": (0.5, 1.5),
    "open_volume_fraction": (0.1, 0.6),
    "phase": (0.1, 0.9),
    "porosity": (0.1, 0.8),
    "precipitate_volume_fractions": (0.05, 0.25),
    "projected_diffusivity_sum": (0.5, 2.0),
    "slip_strengths": (0.5, 2.0),
    "strain_rate": (0.1, 2.0),
    "temperature": (0.5, 2.0),
    "volume": (0.5, 1.5),
}
"""Inputs outside whose range the law has no value or no slope: corners keep to it."""

INVERTIBLE = {
    "CauchyStress.deformation_gradient",
    "CrystalPlasticityDeformationGradientPredictor.deformation_gradient",
    "CrystalPlasticityDeformationGradientPredictor.plastic_deformation_gradient_old",
    "HenckyStrain.deformation_gradient",
    "HenckyStressPullBack.deformation_gradient",
}
"""Matrices that are drawn around the identity; so are those that options say to invert."""

PARAMETERS: dict[str, tuple[float, float]] = {
    "a": (1.0, 4.0),
    "VanGenuchtenCapillaryPressure.a": (0.5, 2.0),
    "VanGenuchtenCapillaryPressure.m": (0.3, 0.8),
    "cell_values": (-1.5, 1.5),
    "coefficients": (0.1, 0.4),
    "critical_separation": (0.3, 0.6),
    "equilibrium_concentrations": (0.1, 0.9),
    "exponent": (1.0, 4.0),
    "full_separation": (0.8, 1.4),
    "lower_bound": (-1.0, -0.5),
    "n": (1.0, 4.0),
    "order": (1.0, 4.0),
    "ordinate": (-1.5, 1.5),
    "phase_fraction": (0.1, 0.9),
    "power": (2.0, 4.0),
    "reference_porosity": (0.1, 0.8),
    "residual_saturation": (0.05, 0.3),
    "T1": (0.8, 1.0),
    "T2": (1.2, 1.5),
    "upper_bound": (0.5, 1.0),
}
"""Parameters that are not drawn from the usual range."""

ASCENDING = {"abscissa", "abscissa1", "abscissa2", "cell_centers", "cell_edges"}
"""Tables of places along an axis; those of edges lie between those of centres."""

OPTIONS: dict[str, list[Any]] = {
    "reciprocal": [("false",), ("true",), ("true", "false", "true")],
    "transition_saturation": [0.3],
    "dim": [0],
    "reduces": ["grain"],
    "to": [("first", "second", "third")],
}
"""What options are that neither a list of words nor a range tells."""

USUAL_OPTION = {float: 0.7, int: 2, str: "word"}
"""What options without a default are, of these types."""
