"""The slope of every law, by every input and parameter, is that of its value; none is lost."""

from functools import cache

import pytest
import torch
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.program import along_direction
from tests.laws.samples import Case, all_cases

every_case = pytest.mark.parametrize("case", [c for c in all_cases() if c.slots], ids=str)
STEP = 1e-6
POINTS = 40


@cache
def by_input(case: Case) -> tuple[dict[str, Tensor], ...]:
    """Slopes along one input at a time, differences of values, where there is a kink; values."""
    point, along = case.draw(17, POINTS), case.draw(18, POINTS)
    count = len(point)
    moving = {
        name: torch.cat([along[name] * float(i == place) for i in range(count)])
        for place, name in enumerate(point)
    }
    at = {name: torch.cat([x] * count) for name, x in point.items()}
    slopes, _ = Interpreter(along_direction(case.program()))(
        {**at, **{f"d.{name}": x for name, x in moving.items()}}
    )
    ahead, here, behind = (
        case.plain({name: x + step * moving[name] for name, x in at.items()})
        for step in (STEP, 0.0, -STEP)
    )
    expected = {n: (ahead[n] - behind[n]) / (2 * STEP) for n in here}
    # a difference across a kink is no slope: there the two one-sided ones disagree
    kinks = {
        n: (ahead[n] - 2 * here[n] + behind[n]).abs()
        > 1e-3 * (ahead[n] - behind[n]).abs() + 1e-15 * (1 + here[n].abs().max())
        for n in here
    }
    return {n: slopes[f"d.{n}"] for n in here}, expected, kinks, here


@every_case
def test_slope_agrees_with_finite_difference(case: Case) -> None:
    slopes, expected, kinks, values = by_input(case)
    for name, slope in slopes.items():
        scale = values[name].abs().flatten(1).amax(1) if slope.ndim > 1 else values[name].abs()
        noise = (1e-9 * scale + 1e-9).reshape(-1, *(1,) * (slope.ndim - 1))
        close = (slope - expected[name]).abs() <= 1e-5 * expected[name].abs() + noise
        assert bool((close | kinks[name]).all()), name
        assert float(kinks[name].double().mean()) < 0.2, "hardly any point was looked at"


@every_case
def test_no_slope_is_silently_zero(case: Case) -> None:
    slopes, expected, kinks, values = by_input(case)
    for name, slope in slopes.items():
        moves = expected[name].abs() > 1e-8 * (1.0 + values[name].abs().max())
        assert not bool((moves & ~kinks[name] & (slope == 0.0)).any()), name
