"""What tests of compiled sequences share: states with fields in them, and runs both ways."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ingot.fields.jit import Jit, executor
from ingot.fields.space import Mode, space
from ingot.fields.step import Eager, State, Step

__all__ = ["Both", "copied", "state_of"]

Both = Callable[..., Jit]


def state_of(sizes: tuple[int, ...], *names: str, seed: int = 0, mode: Mode = "NONE") -> State:
    """A state on a box, with random fields between 0.2 and 0.8."""
    box = space(sizes, upper=(3.0, 2.0, 1.0), mode=mode)
    state = State(box, dt=1e-3, time=0.25)
    torch.manual_seed(seed)
    for name in names:
        state.buffers[name] = 0.2 + 0.6 * torch.rand(sizes, dtype=torch.float64)
    return state


def copied(state: State) -> State:
    """A state that shares nothing that a run replaces."""
    return dataclasses.replace(
        state, buffers=dict(state.buffers), old=dict(state.old), done=set(state.done)
    )


def largest_difference(one: State, other: State, *names: str) -> float:
    """How far buffers lie apart, measured by the largest value."""
    worst = 0.0
    for name in names:
        a, b = one.buffers[name], other.buffers[name]
        assert a.shape == b.shape and a.dtype == b.dtype
        scale = float(b.abs().max()) or 1.0
        worst = max(worst, float((a - b).abs().max()) / scale)
    return worst


@pytest.fixture(autouse=True)
def nothing_compiled() -> None:
    """No test profits from what another compiled."""
    executor.GRAPHS.clear()


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """Run steps both ways, some turns, and compare what they give to 1e-12; the executor."""

    def run(
        steps: tuple[Step, ...], *states: State, turns: int = 3, executor: Jit | None = None
    ) -> Jit:
        jit = executor or Jit(folder=tmp_path)
        for state in states:
            for _ in range(turns):
                eager = copied(state)
                jit.run(steps, state)
                Eager().run(steps, eager)
                gives = {name for step in steps for name in step.gives}
                assert largest_difference(state, eager, *gives) < 1e-12
        return jit

    return run
