"""Values and slopes are finite at the corners, and a slope there is that of the value."""

import pytest
import torch
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.program import with_jacobian
from tests.laws.agreement import along_directions, blocks, interpret
from tests.laws.samples import Case, all_cases

every_case = pytest.mark.parametrize("case", [c for c in all_cases() if c.slots], ids=str)
STEPS = (1e-6, -1e-6, 2.5e-7, -2.5e-7)


@every_case
def test_values_and_slopes_are_finite_at_corners(case: Case) -> None:
    _, results = interpret(case)
    wild = {name: (~x.isfinite()).nonzero().tolist() for name, x in results.items()}
    assert {name: places for name, places in wild.items() if places} == {}


@every_case
def test_slope_at_a_smooth_corner_is_the_finite_difference(case: Case) -> None:
    given, results = interpret(case)
    inputs = {name: given[name] for name in case.slots}
    along = case.draw(9, len(next(iter(inputs.values()))))
    slopes = along_directions(blocks(case, results), along)
    here = {name: results[name] for name in case.law.outputs}
    for name, value in here.items():
        sides = torch.stack([
            (case.plain(moved(inputs, along, step))[name] - value) / step for step in STEPS
        ])  # fmt: skip
        slope = slopes[name]
        allowed = 1e-5 * (sides.abs().amax(0) + value.abs().max() + 1.0)
        smooth = sides.amax(0) - sides.amin(0) <= allowed
        assert bool(((slope - sides[2]).abs() <= 2 * allowed)[smooth].all()), name
        assert float(smooth.double().mean()) > 0.3, "hardly any corner was looked at"


def moved(point: dict[str, Tensor], along: dict[str, Tensor], step: float) -> dict[str, Tensor]:
    return {name: x + step * along[name] for name, x in point.items()}


@pytest.mark.parametrize(
    "case", [c for c in all_cases() if c.declared.name == "MinMapComplementarity"], ids=str
)
def test_a_tie_of_the_complementarity_takes_b(case: Case) -> None:
    sign_a = -1.0 if case.options["a_inequality"] == "LE" else 1.0
    sign_b = -1.0 if case.options["b_inequality"] == "LE" else 1.0
    level = torch.tensor([0.0, 0.7, -0.7], dtype=torch.float64)
    pairs = [("complementarity", "a"), ("complementarity", "b")]
    results, _ = Interpreter(with_jacobian(case.program(), pairs))(
        {"a": sign_a * level, "b": sign_b * level}
    )
    assert torch.equal(results["complementarity"], level)
    assert results["complementarity:a"].tolist() == [0.0] * 3
    assert results["complementarity:b"].tolist() == [sign_b] * 3
