"""A step that does not go forward in time is told as such, wherever points fail for it."""

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ingot
from ingot import IngotError, IngotWarning, Model, laws
from ingot.drivers import TransientDriver, require_converged
from ingot.execute import Transient
from ingot.hosts import State

NO_LENGTH = "leave one of the two times out: they are equal, and the step has no length"


def decay() -> Model:
    """A solve of x' = a - x that divides by the length of the step."""
    rate = laws.ScalarVariableRate(variable="x")
    sum_ = laws.ScalarLinearCombination(
        from_=["x_rate", "x", "a"], weights=[-1.0, -1.0, 1.0], to="x_residual"
    )
    return ingot.implicit(ingot.compose(rate, sum_), unknowns=["x"], guess="old", name="decay")


def driver_of(model: Model, times: Any, **given: Any) -> TransientDriver:
    """A driver of a file, which takes times that go back, as files of NEML2 do."""
    times = np.asarray(times, dtype=float)
    text = ingot.transient(model, time=np.sort(times, 0), **given).to_hit()
    shown = (repr(np.sort(times, 0).tolist()), repr(times.tolist()))
    assert text.count(shown[0]) == 1
    found = ingot.from_hit(text.replace(*shown), "driver")
    assert isinstance(found, TransientDriver)
    return found


def fixes_of(call: Callable[[], Any]) -> list[str | None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [w.message.problem.fix for w in caught if isinstance(w.message, IngotWarning)]


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_drivers_tell_steps_that_do_not_go_forward(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = decay()
    for seed in range(6):
        draws = random.Random(seed)
        times = sorted(draws.sample(range(50), 5))
        at = draws.randint(1, 4)
        times[at] = times[at - 1]
        driver = driver_of(model, times, a=1.0)
        assert fixes_of(lambda driver=driver: driver.run(backend)) == [NO_LENGTH]
        with pytest.raises(IngotError, match="the step has no length"):
            require_converged(driver, driver.compute(backend))
        assert "try    leave one of the two times out" in str(ingot.diagnose(driver, backend))


def test_points_with_times_of_their_own_are_told_apart() -> None:
    times = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    fine = driver_of(decay(), times[:, :1], a=np.ones((3, 1)))
    assert fixes_of(lambda: fine.run("interpret")) == []
    both = driver_of(decay(), times, a=np.ones((3, 2)))
    assert fixes_of(lambda: both.run("interpret")) == [NO_LENGTH]


def test_steps_that_go_back_are_told_where_they_fail() -> None:
    power = laws.ScalarVariableRate(variable="x")
    root = laws.ScalarLinearCombination(from_=["x_rate"], to="y")
    driver = driver_of(ingot.compose(power, root), [0.0, 2.0, 1.0, 1.0], x=[0.5, 1.0, 2.0, 3.0])
    assert fixes_of(lambda: driver.run("interpret")) == [NO_LENGTH]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the numbers are those that were asked for
        driver = driver_of(power, [0.0, 2.0, 1.0], x=[0.5, 1.0, 2.0])
        assert driver.run("interpret")["x_rate"].to_numpy()[2] == -1.0
    # a step of -1 leaves x - x~1 = dt (a - x) without a slope by x
    driver = driver_of(decay(), [0.0, 2.0, 1.0], a=3.0, initial={"x": 0.5})
    assert fixes_of(lambda: driver.run("interpret")) == ["sort the times: the step goes back by 1"]


def test_calls_and_states_tell_steps_without_length() -> None:
    one = torch.ones(3, dtype=torch.float64)
    inputs = {"a": one, "t": one, "t~1": one, "x~1": one}
    for made in (decay(), ingot.compile(decay())):
        for _ in range(3):  # the third call takes the shorter way
            assert fixes_of(lambda made=made: made(inputs)) == [NO_LENGTH]
        assert fixes_of(lambda made=made: made(inputs | {"t~1": 0 * one})) == []
    artifact = ingot.compile(decay(), derivative=("x:a",))
    assert fixes_of(lambda: artifact.jacobian(inputs)) == [NO_LENGTH]
    times = torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64)
    given = Transient(3, {"t": times, "a": times}, {"x": torch.zeros((), dtype=torch.float64)})
    assert fixes_of(lambda: artifact.transient(given)) == [NO_LENGTH]
    state = State(artifact, 2)
    fixes_of(lambda: state.update({"t": 0.0, "a": 1.0}))
    with pytest.raises(IngotError, match="the step has no length"):
        state.commit()
