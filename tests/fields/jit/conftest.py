"""What tests of compiled sequences share: runs both ways, and no memory of other tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingot.fields.jit import Jit, executor, transforms
from ingot.fields.step import Eager, State, Step

from .cases import copied, largest_difference, state_of

__all__ = ["Both", "copied", "largest_difference", "state_of"]

Both = Callable[..., Jit]


@pytest.fixture(autouse=True)
def nothing_compiled() -> None:
    """No test profits from what another compiled."""
    executor.GRAPHS.clear()


@pytest.fixture
def torch_transforms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sequences transform as direct execution does, so that bits can be compared."""
    transforms.inverse_plans.cache_clear()
    monkeypatch.setattr(transforms, "find_dfti", lambda: None)
    yield
    transforms.inverse_plans.cache_clear()


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
