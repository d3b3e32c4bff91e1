"""Steps of a host reach their times, whatever fails on the way."""

import random

import pytest

from ingot import IngotError
from ingot.hosts import Increments


@pytest.mark.parametrize("seed", range(20))
def test_steps_meet_and_reach_every_time(seed: int) -> None:
    """Whichever steps fail, those that are taken join, ascend, and stop at all times given."""
    draw = random.Random(seed)
    times = sorted(draw.uniform(-5, 5) for _ in range(draw.randint(1, 6)))
    increments = Increments(times)
    taken, cuts, last = [times[0]], 0, None
    for old, new in increments:
        assert old == taken[-1]
        assert old < new
        if last is not None:
            assert new - old == pytest.approx(last / 2)
        last = None
        if draw.random() < 0.4:
            increments.cut()
            cuts, last = cuts + 1, new - old
        else:
            taken.append(new)
    assert set(times) <= set(taken)
    assert taken[-1] == times[-1]
    assert increments.cuts == cuts
    assert len(taken) - 1 <= len(times) - 1 + 2 * cuts


def test_a_step_grows_again() -> None:
    increments, lengths = Increments([0, 1, 2, 3]), []
    for old, new in increments:
        if not lengths and increments.cuts < 3:
            increments.cut()
            continue
        lengths.append(new - old)
    assert lengths == [0.125, 0.25, 0.5, 0.125, 1.0, 1.0]


def test_a_step_that_always_fails_ends() -> None:
    increments = Increments([0, 1], smallest=0.01)
    with pytest.raises(IngotError, match="step-too-small"):
        for _ in increments:
            increments.cut()
    assert increments.cuts == 7
    endless = Increments([0, 1])
    with pytest.raises(IngotError, match="the step from 0 failed"):
        for _ in endless:
            endless.cut()


@pytest.mark.parametrize("times", [[1, 0], [0, 0], [0, float("nan")]], ids=str)
def test_times_that_do_not_ascend_are_refused(times: list[float]) -> None:
    with pytest.raises(IngotError, match="do not ascend"):
        Increments(times)
