"""Types that are no laws, each in a small file: compositions, updates, gradients, predictors."""

from dataclasses import dataclass, field

__all__ = ["MODELS", "NOT_DRAWN", "NOT_ON_AN_AXIS", "Small"]


@dataclass(frozen=True)
class Small:
    """A file whose block `law` is of the type, and what its variables are drawn from.

    ranges: where it is not (-1.5, 1.5); axes: lengths, by variable; sloped: whether slopes are
    compared, which predictors have none of; whole: whether points are coupled.
    """

    text: str
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    axes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sloped: bool = True
    whole: bool = False


TIMES = {"t": (2.0, 3.0), "t~1": (1.0, 1.9), "t~2": (0.0, 0.9)}
POSITIVE = (0.5, 2.0)

NOT_DRAWN = {"AOTIModel": "it runs a package, and each side reads its own format alone"}

NOT_ON_AN_AXIS = {
    "BrooksCoreyCapillaryPressure": "with log_extension the peer's result has the axis twice",
    "VanGenuchtenCapillaryPressure": "with log_extension the peer's result has the axis twice",
}

COMPOSED = """
[Models]
  [product]
    type = ScalarMultiplication
    from = 'x y'
    to = 'z'
  []
  [slope]
    type = VoceIsotropicHardening
    equivalent_plastic_strain = 'y'
    isotropic_hardening = 'h'
    saturated_hardening = 'limit'
    saturation_rate = 0.7
  []
  [flow]
    type = PerzynaPlasticFlowRate
    yield_function = 'z'
    flow_rate = 'g'
    reference_stress = 'slope'
    exponent = 2.5
  []
  [law]
    type = ComposedModel
    models = 'flow product'
    additional_outputs = 'z'
  []
[]
"""
UPDATE = """
[Models]
  [hardening]
    type = VoceIsotropicHardening
    equivalent_plastic_strain = 'x'
    isotropic_hardening = 'h'
    saturated_hardening = 'limit'
    saturation_rate = 1.3
  []
  [over]
    type = ScalarLinearCombination
    from = 'f h'
    to = 'over'
    weights = '1 -1'
  []
  [rate]
    type = PerzynaPlasticFlowRate
    yield_function = 'over'
    flow_rate = 'x_rate'
    reference_stress = 0.8
    exponent = 2
  []
  [step]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [residual]
    type = ComposedModel
    models = 'hardening over rate step'
  []
  [start]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x'
  []
  [law]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'start'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-13
    rel_tol = 1e-13
    max_its = 50
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
"""
NORMALITY = """
[Models]
  [overstress]
    type = SR2LinearCombination
    from = 'mandel_stress back_stress'
    to = 'overstress'
    weights = '1 -1'
  []
  [vonmises]
    type = SR2Invariant
    tensor = 'overstress'
    invariant = 'effective_stress'
    invariant_type = VONMISES
  []
  [surface]
    type = YieldFunction
    yield_stress = 0.3
    isotropic_hardening = 'isotropic_hardening'
  []
  [flow]
    type = ComposedModel
    models = 'overstress vonmises surface'
  []
  [law]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'mandel_stress isotropic_hardening'
    to = 'direction hardening_direction'
  []
[]
"""
CONDENSATION = """
[Models]
  [strain]
    type = ScalarForwardEulerTimeIntegration
    variable = 'strain'
    rate = 'rate'
  []
  [hardening]
    type = VoceIsotropicHardening
    equivalent_plastic_strain = 'strain'
    isotropic_hardening = 'h'
    saturated_hardening = 1.7
    saturation_rate = 1.3
  []
  [force]
    type = ScalarLinearCombination
    from = 'f h'
    to = 'force'
    weights = '1 -1'
  []
  [path]
    type = ComposedModel
    models = 'strain hardening force'
  []
  [law]
    type = RateCondensation
    model = 'path'
    rate = 'rate'
    driving_force = 'force'
  []
[]
"""
DESCENT = """
[Models]
  [rule]
    type = PowerLawSlipRule
    gamma0 = 0.7
    n = 2.5
  []
  [law]
    type = CoordinateDescentPredictor
    rate_law = 'rule'
    driving_force_input = 'resolved_shears'
    sweeps = 4
  []
[]
"""
DESCENT_OF_ONE = DESCENT.replace("PowerLawSlipRule", "PerzynaPlasticFlowRate")
DESCENT_OF_ONE = DESCENT_OF_ONE.replace("gamma0", "reference_stress").replace("n =", "exponent =")
DESCENT_OF_ONE = DESCENT_OF_ONE.replace("resolved_shears", "yield_function")
EXTRAPOLATION = """
[Models]
  [law]
    type = {type}
    unknowns_SR2 = 's'
    unknowns_Scalar = 'x y'
    unknowns_MRP = 'r'
    unknowns_R2 = 'm'
    {more}
  []
[]
"""
COLD = "cold = 'x:first_x s:first_s'"
REDUCTION = """
[Models]
  [law]
    type = {type}
    dim = 0
  []
[]
"""
INTERMEDIATE = """
[Models]
  [law]
    type = {type}
    reduces = 'grain'
    {more}
  []
[]
"""


def extrapolations(name: str) -> list[Small]:
    """Warm, warm though a cold start is known, and cold."""
    cold = {**TIMES, "t~2": (0.5, 0.5), "t~1": (0.5, 0.5)}
    text = EXTRAPOLATION.replace("{type}", name)
    return [
        Small(text.replace("{more}", ""), TIMES, sloped=False),
        Small(text.replace("{more}", COLD), TIMES, sloped=False),
        Small(text.replace("{more}", COLD), cold, sloped=False),
    ]


DIFFERENCES = ("dim = 0", "dim = 0\n    n = 2")
MODELS: dict[str, list[Small]] = {
    "ComposedModel": [Small(COMPOSED, {"y": POSITIVE, "limit": POSITIVE})],
    "ImplicitUpdate": [Small(UPDATE, {**TIMES, "limit": POSITIVE, "f": (0.0, 2.0)})],
    "Normality": [Small(NORMALITY)],
    "RateCondensation": [Small(CONDENSATION, TIMES)],
    "CoordinateDescentPredictor": [
        Small(DESCENT_OF_ONE, {"coupling": POSITIVE}, sloped=False),
        Small(
            DESCENT,
            {"coupling": (0.1, 0.4), "slip_strengths": POSITIVE},
            {"coupling": (5, 5), "slip_strengths": (5,), "trial_driving_force": (5,)},
            sloped=False,
        ),
    ],
    "ConstantExtrapolationPredictor": extrapolations("ConstantExtrapolationPredictor"),
    "LinearExtrapolationPredictor": extrapolations("LinearExtrapolationPredictor"),
    **{
        name: [Small(REDUCTION.format(type=name), whole=True)]
        for name in ("SR2DynamicMean", "SR2DynamicSum")
    },
    **{
        name: [
            Small(INTERMEDIATE.format(type=name, more=more), axes={"from": (5,)})
            for more in (DIFFERENCES if name.endswith("Diff") else ("",))
        ]
        for name in ("SR2IntermediateDiff", "SR2IntermediateMean", "SR2IntermediateSum")
    },
}
"""The files of each type."""
