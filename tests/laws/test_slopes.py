"""The slope of every law is that of its value, and a batch of points is a loop over them."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import integers
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.program import along_direction
from tests.laws.samples import Case, all_cases, corners

CASES = all_cases()
every_case = pytest.mark.parametrize("case", [c for c in CASES if c.slots], ids=str)
few = settings(
    max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
STEP = 1e-6


@every_case
@few
@given(seed=integers(0, 2**31))
def test_slope_agrees_with_finite_difference(case: Case, seed: int) -> None:
    point, along = case.draw(seed, 8), case.draw(seed + 1, 8)
    slopes = Interpreter(along_direction(case.program()))
    results, _ = slopes({**point, **{f"d.{name}": x for name, x in along.items()}})
    ahead, behind = (moved(case, point, along, step) for step in (STEP, -STEP))
    for name in ahead:
        expected = (ahead[name] - behind[name]) / (2 * STEP)
        scale = ahead[name].abs().flatten(1).amax(1) if ahead[name].ndim > 1 else ahead[name].abs()
        allowed = 1e-5 * expected.abs() + shaped(1e-9 * scale + 1e-9, expected)
        close = (results[f"d.{name}"] - expected).abs() <= allowed
        # a difference across a kink is no slope: there the two one-sided ones disagree
        kink = kinked(case, point, along, name)
        assert bool((close | kink).all()), name
        assert float(kink.double().mean()) < 0.2, "hardly any point was looked at"


def moved(
    case: Case, point: dict[str, Tensor], along: dict[str, Tensor], step: float
) -> dict[str, Tensor]:
    return case.plain({name: x + step * along[name] for name, x in point.items()})


def kinked(case: Case, point: dict[str, Tensor], along: dict[str, Tensor], name: str) -> Tensor:
    ahead, here, behind = (moved(case, point, along, s)[name] for s in (2 * STEP, 0.0, -2 * STEP))
    jump = (ahead - here) - (here - behind)
    return jump.abs() > 1e-3 * ((ahead - behind).abs() + 1e-12)


def shaped(x: Tensor, like: Tensor) -> Tensor:
    return x.reshape(-1, *(1,) * (like.ndim - 1))


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
def test_any_batch_shape_is_a_flat_batch(case: Case) -> None:
    inputs = case.draw(2, 6)
    run = Interpreter(case.program())
    flat, _ = run(inputs)
    folded, _ = run({name: x.reshape(2, 3, *x.shape[1:]) for name, x in inputs.items()})
    for name, x in flat.items():
        assert torch.equal(folded[name].reshape(x.shape), x)
        assert folded[name].shape[:2] == (2, 3)
    none, _ = run({name: x[:0] for name, x in inputs.items()})
    assert all(none[name].shape == (0, *x.shape[1:]) for name, x in flat.items())


@every_case
def test_an_input_that_is_not_batched_is_spread(case: Case) -> None:
    inputs = case.draw(2, 4)
    run = Interpreter(case.program())
    for name in inputs:
        one = {n: x[0] if n == name else x for n, x in inputs.items()}
        same = {n: x[:1].expand_as(x) if n == name else x for n, x in inputs.items()}
        ours, theirs = run(one)[0], run(same)[0]
        assert all(torch.equal(ours[n].expand_as(x), x) for n, x in theirs.items()), name
