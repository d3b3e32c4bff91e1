"""On a GPU compiled sequences give what their steps give, at all sizes, and take less time.

Runs under pytest, and where that is not installed as `PYTHONPATH=src python3` and this file.
"""

import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import SkipTest

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))  # as a script, this file finds other tests so

from ingot.fields.jit import Jit, executor
from ingot.fields.jit.material import MODELS, tell_failures
from ingot.fields.spaces import Space, space
from ingot.fields.step import Ambient, Buffer, Eager, State, Step
from tests.fields.jit.cases import (
    cahn_hilliard,
    copied,
    largest_difference,
    state_of,
)
from tests.fields.jit.every import CALLS, STEP, fields
from tests.fields.jit.test_material import moved, sequence, state_of_material

INSIDE = ("mubar", "mu", "M", "kappa", "cbar")
"""Buffers of a Cahn-Hilliard step that nothing outside it reads."""


def needs_gpu() -> None:
    """Skip where there is none."""
    if not torch.cuda.is_available():
        raise SkipTest("torch sees no CUDA device")
    executor.GRAPHS.clear()


def judged(steps: tuple[Step, ...], *states: State, within: float = 1e-12) -> Jit:
    """Run steps both ways, three turns on each state, and compare what they give."""
    with tempfile.TemporaryDirectory() as folder:
        jit = Jit(folder=Path(folder))
        for state in states:
            for _ in range(3):
                eager = copied(state)
                jit.run(steps, state)
                Eager().run(steps, eager)
                gives = {name for step in steps for name in step.gives}
                assert state.buffers[next(iter(gives))].is_cuda
                found = largest_difference(state, eager, *gives)
                assert found < within, found
    assert jit.statistics.fallbacks == 0
    return jit


def test_a_sequence_captured_small_runs_at_other_sizes_as_it_is() -> None:
    needs_gpu()
    sizes = ((16, 16), (512, 512), (200, 120))
    jit = judged(cahn_hilliard(), *(state_of(each, "c", device="cuda") for each in sizes))
    assert jit.counts == {"captured": 1, "hits": 2, "calls": 9}


def test_a_sequence_in_three_dimensions_runs_at_other_sizes_as_it_is() -> None:
    needs_gpu()
    sizes = ((8, 8, 8), (12, 20, 9), (96, 64, 80))
    jit = judged(cahn_hilliard(), *(state_of(each, "c", device="cuda") for each in sizes))
    assert jit.counts == {"captured": 1, "hits": 2, "calls": 9}


def test_single_precision_is_compiled() -> None:
    needs_gpu()
    state = state_of((24, 20), "c", dtype=torch.float32, device="cuda")
    jit = judged(cahn_hilliard(), state, within=1e-5)
    assert jit.statistics.sequences == 1


def test_every_operation_gives_what_torch_gives() -> None:
    needs_gpu()
    jit = Jit()
    for sizes, turned in (((33, 129), False), ((48, 40), True)):
        given = fields(sizes, "cuda")
        given = {name: x[::2, ::3].T for name, x in given.items()} if turned else given
        state = State(space(tuple(given["a"].shape), device="cuda"), buffers=given)
        eager = copied(state)
        jit.run((STEP,), state)
        Eager().run((STEP,), eager)
        for k, name in enumerate([*(name for name, _ in CALLS), "to", "to", "to"]):
            one, two = state.buffers[f"r{k}"], eager.buffers[f"r{k}"]
            assert one.dtype == two.dtype, name
            assert torch.allclose(one, two, rtol=1e-12, atol=1e-12, equal_nan=True), name
    assert (jit.statistics.passes, jit.statistics.fallbacks) == (1, 0)


def with_numbers(a: Tensor, space: Space) -> Tensor:
    here = torch.tensor(3.0, dtype=a.dtype, device=a.device)
    return a * space.full(2.5) * torch.ones_like(a) + here + torch.tensor(0.5, dtype=a.dtype)


def test_numbers_on_either_side_are_part_of_the_loop() -> None:
    needs_gpu()
    arguments = {"a": Buffer("a"), "space": Ambient("space")}
    steps = (Step("numbers", with_numbers, arguments, ("b",)),)
    jit = judged(steps, state_of((9, 8), "a", device="cuda"))
    assert jit.statistics.passes == 1


def test_a_new_thread_and_another_stream_run_a_sequence() -> None:
    needs_gpu()
    steps, state, jit = cahn_hilliard(), state_of((64, 48), "c", device="cuda"), Jit()
    eager = copied(state)
    jit.run(steps, state)

    def others() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(4):
                jit.run(steps, state)
            torch.cuda.current_stream().synchronize()

    torch.cuda.synchronize()
    thread = threading.Thread(target=others)
    thread.start()
    thread.join()
    for _ in range(5):
        Eager().run(steps, eager)
    assert largest_difference(state, eager, "c") < 1e-12
    assert jit.counts["calls"] == 5


def recorded(run: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """A run as a CUDA graph, which takes no time of the CPU."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def test_a_sequence_can_be_part_of_a_cuda_graph() -> None:
    needs_gpu()
    steps, state, jit = cahn_hilliard(), state_of((64, 48), "c", device="cuda"), Jit()
    for _ in range(3):
        jit.run(steps, state)
    begin = state.buffers["c"].clone()
    state.buffers["c"] = held = begin.clone()
    whole = recorded(partial(jit.run, steps, state))
    held.copy_(0.5 * begin)
    whole.replay()
    eager = copied(state)
    eager.buffers["c"] = 0.5 * begin
    Eager().run(steps, eager)
    assert largest_difference(state, eager, "c", "rate") < 1e-12


def test_a_material_is_a_kernel_inside_one_launch() -> None:
    needs_gpu()
    steps, jit = sequence(), Jit()
    states = [state_of_material((9, 8, 7), device) for device in ("cuda", "cpu")]
    for _ in range(10):
        for run, state in zip((jit.run, Eager().run), states, strict=True):
            run(steps, state)
            moved(state)
        for name in ("s", "p", "energy"):
            one, two = (state.buffers[name].cpu() for state in states)
            assert torch.allclose(one, two, rtol=1e-9, atol=1e-9), name
    model = MODELS["viscoplastic"]
    assert {type(each).__name__ for each in model.executors.values()} == {"Kernel"}
    (sized,) = (b for p in jit.plans.values() for _, s in p if s for b in s.bound.values() if b)
    assert isinstance(sized.run, executor.Recorded) and sized.run.dispatcher is not None
    assert sized.run.dispatcher.replayed > 4, sized.run.dispatcher.plain


def test_points_of_a_material_that_fail_are_told_when_somebody_looks() -> None:
    needs_gpu()
    steps, jit, state = sequence(), Jit(), state_of_material((4, 3, 3), "cuda")
    for _ in range(6):
        jit.run(steps, state)
        moved(state)
    tell_failures()  # nothing failed yet
    state.time = 1e300
    jit.run(steps, state)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tell_failures()
        tell_failures()
    assert len(told) == 1 and "points of the grid did not converge" in str(told[0].message)


def microseconds(run: Callable[[], object], turns: int = 50) -> float:
    """How long one turn takes on the GPU's own clock."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(turns):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / turns * 1e3


def test_a_compiled_step_takes_less_time() -> None:
    needs_gpu()
    for sizes in ((512, 512), (96, 96, 96)):
        steps, state = cahn_hilliard(), state_of(sizes, "c", device="cuda")
        jit = Jit(private=INSIDE)
        runs = [partial(Eager().run, steps, copied(state)), partial(jit.run, steps, state)]
        turns = [[microseconds(run) for run in runs] for _ in range(6)]
        slow, fast = (min(each) for each in zip(*turns, strict=True))
        plain = Jit(private=INSIDE, cuda_graphs=False)
        launched = min(microseconds(partial(plain.run, steps, copied(state))) for _ in range(6))
        box = "x".join(map(str, sizes))
        print(f"Cahn-Hilliard {box}: {slow:.0f} us -> {fast:.0f} us, {slow / fast:.2f} times")
        print(f"  launched plainly: {launched:.0f} us, {launched / fast:.2f} times")
        slow, fast = (min(microseconds(recorded(run).replay) for _ in range(3)) for run in runs)
        print(f"  as CUDA graphs: {slow:.0f} us -> {fast:.0f} us, {slow / fast:.2f} times")
        assert jit.statistics.fallbacks == 0
        assert fast < slow


if __name__ == "__main__":
    for name, each in list(globals().items()):
        if name.startswith("test_"):
            try:
                each()
                print(f"passed  {name}")
            except SkipTest as why:
                print(f"skipped {name}: {why}")
