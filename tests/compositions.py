"""Small models as input files: sums and implicit updates of scalars, composed in many ways."""

from collections.abc import Mapping

__all__ = [
    "AFTER", "BEFORE", "NESTED", "NEWTON", "TEXTS", "TOGETHER", "X", "combination", "composed",
    "models", "update",
]  # fmt: skip


def combination(name: str, terms: Mapping[str, float], to: str) -> str:
    names, weights = " ".join(terms), " ".join(map(str, terms.values()))
    return f"""
  [{name}]
    type = ScalarLinearCombination
    from = '{names}'
    to = '{to}'
    weights = '{weights}'
  []"""


def update(x: str, terms: Mapping[str, float], *, predicted: bool = True) -> str:
    """`solve_x`: backward Euler for `x`, whose rate is a sum of terms."""
    guess = f"predictor = 'guess_{x}'" if predicted else ""
    return f"""
[Models]{combination(f"rate_{x}", terms, f"{x}_rate")}
  [integrate_{x}]
    type = ScalarBackwardEulerTimeIntegration
    variable = '{x}'
  []
  [residual_{x}]
    type = ComposedModel
    models = 'rate_{x} integrate_{x}'
  []
  [guess_{x}]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = '{x}'
  []
  [solve_{x}]
    type = ImplicitUpdate
    equation_system = 'system_{x}'
    solver = 'newton'
    {guess}
  []
[]
[EquationSystems]
  [system_{x}]
    type = NonlinearSystem
    model = 'residual_{x}'
    unknowns = '{x}'
    residuals = '{x}_residual'
  []
[]
"""


NEWTON = """
[Solvers]
  [newton]
    type = Newton
  []
[]
"""


def composed(models: str, more: str = "", name: str = "model") -> str:
    extra = f"additional_outputs = '{more}'" if more else ""
    return f"""
[Models]
  [{name}]
    type = ComposedModel
    models = '{models}'
    {extra}
  []
[]
"""


def models(*blocks: str) -> str:
    return "[Models]" + "".join(blocks) + "\n[]\n"


BEFORE = models(combination("before", {"a": 1.0, "b": 2.0}, "drive"))
AFTER = models(combination("after", {"x": 3.0, "drive": -1.0}, "y"))
X = update("x", {"x": -2.0, "drive": 1.0}) + NEWTON

TEXTS = {
    "explicit": BEFORE + composed("before"),
    "root": update("x", {"x": -2.0, "f": 1.0}) + NEWTON + composed("solve_x"),
    "no predictor": update("x", {"x": -2.0, "f": 1.0}, predicted=False)
    + NEWTON
    + composed("solve_x"),
    "after": X + AFTER + composed("solve_x after"),
    "before": BEFORE + X + composed("before solve_x"),
    "middle": BEFORE + X + AFTER + composed("before solve_x after", "x drive"),
    "two": BEFORE
    + X
    + update("z", {"z": -1.0, "x": 0.5, "drive": 0.1})
    + AFTER
    + composed("before solve_x solve_z after", "x"),
    "two apart": BEFORE
    + X
    + update("z", {"z": -1.0, "g": 0.5})
    + models(combination("scale", {"a": 4.0, "drive": 0.2}, "g"))
    + composed("before scale solve_x solve_z"),
    "chained": BEFORE
    + X
    + AFTER
    + update("z", {"z": -1.0, "y": 0.5})
    + models(combination("last", {"z": 2.0, "a": 0.2}, "w"))
    + composed("before solve_x after solve_z last", "x"),
}


def _flow(more: str) -> str:
    """`z` flows under `f`, hardened by `x`; `x` saturates and is driven by `z`."""
    return f"""
[Models]{combination("overstress", {"f": 1.0, "z": -0.8, "x": -0.5}, "yield_function")}
  [flow]
    type = PerzynaPlasticFlowRate
    reference_stress = 0.7
    exponent = 2.5
    flow_rate = 'z_rate'
  []
  [integrate_z]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'z'
  []
  [harden]
    type = VoceIsotropicHardening
    saturated_hardening = 2
    saturation_rate = 3
    equivalent_plastic_strain = 'x'
  []{combination("rate_x", {"isotropic_hardening": -1.0, "z": 0.6, "f": 0.1}, "x_rate")}
  [integrate_x]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []{combination("last", {"x": 2.0, "f": 0.3}, "y")}
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-13
    rel_tol = 1e-14
  []
[]
{composed("solve_x last", "x")}{more}"""


def _solve(x: str, unknowns: str, residual: str, start: str = "guess = 'old'") -> str:
    return f"""
[Models]
  [residual_{x}]
    type = ComposedModel
    models = '{residual}'
  []
  [solve_{x}]
    type = ImplicitUpdate
    equation_system = 'system_{x}'
    solver = 'newton'
    {start}
  []
[]
[EquationSystems]
  [system_{x}]
    type = NonlinearSystem
    model = 'residual_{x}'
    unknowns = '{unknowns}'
  []
[]
"""


NESTED = _flow(
    _solve("z", "z", "overstress flow integrate_z")
    + _solve("x", "x", "solve_z harden rate_x integrate_x")
)
"""An update whose residual holds another one."""
TOGETHER = _flow(_solve("x", "x z", "overstress flow integrate_z harden rate_x integrate_x"))
"""The same as one equation system of both unknowns."""
