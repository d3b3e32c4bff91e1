"""Sequences that are replayed give what their steps give, whatever is kept of their results.

The CPU has no graphs to replay: `Replayed` runs a call again on the same memory instead.
"""

import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.fields import build
from ingot.fields.jit import Jit, executor, jit
from ingot.fields.runs import prepared
from ingot.fields.step import Eager
from ingot.graphs.recorded import Dispatcher
from ingot.hit import read_text
from tests.gpu.test_fields import CASES, FLAT
from tests.graphs.recording import Replayed

from .cases import cahn_hilliard, copied, largest_difference, state_of
from .test_material import moved, sequence, state_of_material


@pytest.fixture(autouse=True)
def replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sequences be recorded on the CPU."""
    monkeypatch.setattr(executor, "place_of", lambda device: place)
    place = Replayed()


def dispatchers(made: Jit) -> list[Dispatcher]:
    """What runs the sequences of an executor."""
    sequences = [one for parts in made.plans.values() for _, one in parts if one is not None]
    bound = [each for one in sequences for each in one.bound.values() if each is not None]
    found = [each.run.dispatcher for each in bound if isinstance(each.run, executor.Recorded)]
    return [each for each in found if each is not None]


@pytest.mark.parametrize("case", CASES)
def test_a_simulation_by_replays_is_the_same(case: str, tmp_path: Path) -> None:
    solver, overrides = CASES[case]
    text = FLAT.replace("{solver}", solver)
    made = build(read_text(text, overrides=overrides, moose=True))
    compiled = jit(made)
    runs = [prepared(made, tmp_path, executor=each, device="cpu") for each in (compiled, Eager())]
    for _ in zip(*(run.steps() for run in runs), strict=True):
        one, two = (run.state.buffers["c"] for run in runs)
        assert float((one - two).abs().max()) < 1e-10
    assert runs[0].rows[-1] == pytest.approx(runs[1].rows[-1], abs=1e-10)
    assert sum(each.replayed for each in dispatchers(compiled)) > 10


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_edited_or_replaced_between_turns_is_right(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    steps, state = cahn_hilliard(), state_of((12, 10), "c")
    made, eager = Jit(folder=tmp_path), copied(state)
    kept: list[tuple[Tensor, Tensor]] = []
    for turn in range(30):
        match draw.choice(("nothing", "nothing", "keep", "drop", "replace", "transpose", "step")):
            case "keep":
                now = state.buffers["c"]
                kept.append((now, now.clone()))
            case "drop":
                kept.clear()
            case "replace":
                both = torch.rand_like(state.buffers["c"])
                state.buffers["c"], eager.buffers["c"] = both, both.clone()
            case "transpose":
                turned = state.buffers["c"].T.contiguous().T
                state.buffers["c"], eager.buffers["c"] = turned, turned.clone()
            case "step":
                state.dt = eager.dt = draw.choice((1e-3, 2e-3, 1e-4))
        made.run(steps, state)
        Eager().run(steps, eager)
        found = largest_difference(state, eager, "c", "rate")
        assert found < 1e-12, (turn, found)
        assert all(torch.equal(x, copy) for x, copy in kept), turn
    (one,) = dispatchers(made)
    assert one.replayed > 12, one.plain


def test_numbers_are_copied_where_they_change_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_in: list[float] = []
    copy = Tensor.copy_

    def counting(self: Tensor, source: Tensor) -> Tensor:
        copied_in.extend([float(source)] if source.ndim == 0 else [])
        return copy(self, source)

    steps, state, made = cahn_hilliard(), state_of((12, 10), "c"), Jit(folder=tmp_path)
    eager = copied(state)
    monkeypatch.setattr(Tensor, "copy_", counting)
    sizes = [1e-3] * 12 + [2e-3] * 12 + [1e-3 / k for k in range(2, 80)]
    for state.dt in sizes:
        eager.dt = state.dt
        made.run(steps, state)
        Eager().run(steps, eager)
        assert largest_difference(state, eager, "c", "rate") < 1e-12
    (one,) = dispatchers(made)
    recordings = sum(len(i.recordings) for i in one.instances.values())
    assert one.replayed > len(sizes) - 8, one.plain  # whatever changes, it is not recorded again
    assert copied_in.count(1e-3) <= recordings and copied_in.count(2e-3) <= recordings
    assert set(copied_in) == set(sizes)


# where a GPU captures nothing runs; here the call runs on memory that nobody has filled yet
@pytest.mark.filterwarnings("ignore::ingot.errors.IngotWarning")
def test_a_material_is_replayed_with_its_sequence(tmp_path: Path) -> None:
    steps, state, made = sequence(), state_of_material((5, 6, 4)), Jit(folder=tmp_path)
    eager = copied(state)
    for _ in range(8):
        for run, each in ((made.run, state), (Eager().run, eager)):
            run(steps, each)
            moved(each)
        assert largest_difference(state, eager, "s", "p", "energy") < 1e-10
    (one,) = dispatchers(made)
    assert one.replayed > 3, one.plain
