"""Small models as input files: sums and implicit updates of scalars, composed in many ways."""

from collections.abc import Mapping

__all__ = ["AFTER", "BEFORE", "NEWTON", "TEXTS", "X", "combination", "composed", "models", "update"]


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
