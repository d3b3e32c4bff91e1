"""The slope of every law, by every input and parameter, is that of its value; none is lost."""

from functools import cache

import pytest
import torch
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.program import along_direction
from tests.laws.samples import Case, all_cases, corners

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


@every_case
def test_batch_is_a_loop_to_a_few_ulp(case: Case) -> None:
    inputs = corners(case)
    run = Interpreter(case.program())
    whole, _ = run(inputs)
    for i in range(len(next(iter(inputs.values())))):
        alone, _ = run({name: x[i] for name, x in inputs.items()})
        for name, x in whole.items():
            assert alone[name].shape == x[i].shape
            torch.testing.assert_close(alone[name], x[i], rtol=1e-15, atol=0.0)


@every_case
def test_an_input_that_is_not_batched_is_spread(case: Case) -> None:
    inputs = case.draw(2, 4)
    run = Interpreter(case.program())
    for name in inputs:
        one = {n: x[0] if n == name else x for n, x in inputs.items()}
        same = {n: x[:1].expand_as(x) if n == name else x for n, x in inputs.items()}
        ours, theirs = run(one)[0], run(same)[0]
        assert all(torch.equal(ours[n].expand_as(x), x) for n, x in theirs.items()), name
