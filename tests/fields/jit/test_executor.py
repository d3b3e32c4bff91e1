"""Compiled sequences give what their steps give: at all sizes, in threads, and when they fail."""

import itertools
import logging
import random
import secrets
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.codegen.cache import Cache
from ingot.errors import IngotError, Problem
from ingot.fields import build, run
from ingot.fields.group import Group
from ingot.fields.jit import Jit, jit
from ingot.fields.jit.capture import Captured
from ingot.fields.jit.executor import GRAPHS
from ingot.fields.jit.fuse import Fused, fuse
from ingot.fields.solvers import SOLVERS
from ingot.fields.solvers.multistep import ForwardEulerSolver
from ingot.fields.spaces import Space, space
from ingot.fields.step import Ambient, Buffer, Constant, Eager, Old, State, Step
from ingot.hit import read_text

from .cases import cahn_hilliard, parsed, step
from .conftest import Both, copied, largest_difference, state_of


def test_a_sequence_captured_small_runs_at_other_sizes_as_it_is(both: Both) -> None:
    steps = cahn_hilliard()
    executor = both(steps, *(state_of(sizes, "c") for sizes in ((16, 16), (512, 512), (200, 120))))
    told = executor.statistics
    assert executor.counts == {"captured": 1, "hits": 2, "calls": 9}
    assert (told.sequences, told.fallbacks) == (1, 0)


def test_a_sequence_in_three_dimensions_runs_at_other_sizes_as_it_is(both: Both) -> None:
    sizes = ((8, 8, 8), (12, 20, 9), (32, 16, 40))
    executor = both(cahn_hilliard(), *(state_of(each, "c") for each in sizes))
    assert executor.counts["captured"] == 1


@pytest.mark.parametrize("mode", ["FFT_SLAB", "FFT_PENCIL"])
def test_other_layouts_of_spectra_are_compiled_too(both: Both, mode: str) -> None:
    states = [state_of(sizes, "c", mode=mode) for sizes in ((16, 14), (9, 12))]  # type: ignore[reportArgumentType]
    assert both(cahn_hilliard(), *states).counts["captured"] == 1


def test_one_dimension_is_compiled_too(both: Both) -> None:
    assert both(cahn_hilliard(), state_of((40,), "c"), state_of((33,), "c")).counts["captured"] == 1


def test_a_box_of_two_cells_runs_directly(both: Both) -> None:
    executor = both(cahn_hilliard(), state_of((2, 16), "c"))
    assert executor.statistics.sequences == 0
    assert executor.statistics.fallbacks == 0


def test_a_device_that_there_are_no_loops_for_runs_directly(tmp_path: Path) -> None:
    executor, state = Jit(folder=tmp_path), state_of((16, 12), "c", device="meta")
    executor.run(cahn_hilliard(), state)
    assert state.buffers["c"].is_meta
    assert (executor.statistics.sequences, executor.statistics.fallbacks) == (0, 0)


def test_single_precision_is_compiled(tmp_path: Path) -> None:
    box = space((24, 20), dtype=torch.float32)
    state = State(box, dt=1e-3, buffers={"c": torch.rand(24, 20)})
    other = copied(state)
    executor = Jit(folder=tmp_path)
    for _ in range(3):
        executor.run(cahn_hilliard(), state)
        Eager().run(cahn_hilliard(), other)
    assert state.buffers["c"].dtype == torch.float32
    assert largest_difference(state, other, "c", "rate") < 1e-5
    assert executor.statistics.fallbacks == 0


def test_changing_the_grid_in_one_run_gives_the_results_of_steps(both: Both) -> None:
    steps = cahn_hilliard()
    executor = both(steps, state_of((16, 16), "c"))
    both(steps, state_of((20, 24), "c"), executor=executor)
    both(steps, state_of((12, 14, 10), "c"), executor=executor)
    assert executor.counts["captured"] == 2


def test_fusion_leaves_transforms_and_two_loops() -> None:
    executor, state = Jit(private=("mubar", "mu", "M", "kappa", "cbar")), state_of((16, 16), "c")
    executor.run(cahn_hilliard(), state)
    told = executor.statistics
    assert told.passes == 5
    assert told.operations > 20


def test_a_second_process_starts_with_what_the_first_compiled(tmp_path: Path) -> None:
    code = """
import json, time
from pathlib import Path
import sys
sys.path.insert(0, sys.argv[2])
from jit.cases import cahn_hilliard
from jit.conftest import state_of
from ingot.fields.jit import Jit
state, executor = state_of((16, 16), "c"), Jit(folder=Path(sys.argv[1]))
begin = time.process_time()
executor.run(cahn_hilliard(), state)
took = time.process_time() - begin
print(json.dumps([executor.counts, took, "sympy" in sys.modules, float(state.buffers["c"].sum())]))
"""
    here = str(Path(__file__).parents[1])
    found = []
    for _ in range(2):
        command = [sys.executable, "-c", code, str(tmp_path), here]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(__import__("json").loads(done.stdout))
    (first, _, _, sums), (second, took, traced, again) = found
    assert first["captured"] == 1
    assert second == {"hits": 1, "calls": 1}
    assert took < 1.0
    assert not traced
    assert sums == again


def test_a_file_that_was_cut_short_is_compiled_anew(tmp_path: Path, both: Both) -> None:
    both(cahn_hilliard(), state_of((16, 16), "c"))
    (kept,) = (tmp_path / "sequence").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    GRAPHS.clear()
    assert both(cahn_hilliard(), state_of((16, 16), "c")).counts["captured"] == 1


def test_a_program_that_no_longer_fits_its_steps_is_compiled_anew(
    tmp_path: Path, both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    step = parsed("b", "2.5*a", "a")
    both((step,), state_of((9, 8), "a"))
    cache = Cache(tmp_path)
    (kept,) = cache.entries()
    content = cache.find("sequence", kept.key)
    assert content is not None
    cache.put("sequence", kept.key, content.replace(b"real(2.5)", b"real(2.75)"))
    GRAPHS.clear()
    executor = both((step,), state_of((9, 8), "a"))
    assert executor.counts["captured"] == 1
    assert executor.statistics.fallbacks == 0
    assert "Failed to trace" not in caplog.text


def test_two_threads_capture_and_run_at_once(tmp_path: Path) -> None:
    steps = [(parsed("b", f"{k}.5*a*a + {k}", "a"), parsed("d", "b*a", "a", "b")) for k in range(2)]
    wrong: list[str] = []

    def work(k: int) -> None:
        executor, state = Jit(folder=tmp_path), state_of((60 + k, 50), "a", seed=k)
        other = copied(state)
        Eager().run(steps[k], other)
        for _ in range(20):
            executor.run(steps[k], state)
            if largest_difference(state, other, "b", "d") > 1e-14 or executor.counts.get(
                "fallbacks"
            ):
                wrong.append(f"thread {k}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_executor_serves_two_threads(tmp_path: Path) -> None:
    steps = cahn_hilliard()
    box = space((40, 30))
    executor = Jit(folder=tmp_path)
    states = [State(box, dt=1e-3, buffers={"c": torch.rand(40, 30).double()}) for _ in range(2)]
    others = [copied(state) for state in states]

    def work(state: State) -> None:
        for _ in range(10):
            executor.run(steps, state)

    threads = [threading.Thread(target=work, args=(state,)) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for state, other in zip(states, others, strict=True):
        for _ in range(10):
            Eager().run(steps, other)
        assert largest_difference(state, other, "c") < 1e-12


HOST = {"value": 1.0}


def frozen(a: Tensor) -> Tensor:
    return a * HOST["value"]


def test_a_value_frozen_at_the_first_step_is_caught_at_the_second(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steps = (parsed("b", "a+1", "a"), Step("frozen", frozen, {"a": Buffer("b")}, ("d",)))
    executor, state = Jit(folder=tmp_path), state_of((9, 8), "a")
    for turn in range(4):
        HOST["value"] = 1.0 + turn
        executor.run(steps, state)
        expected = (state.buffers["a"] + 1) * HOST["value"]
        assert torch.allclose(state.buffers["d"], expected, rtol=1e-14, atol=0)
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "Failed to trace compute sequence 'b frozen'" in warnings[0]
    assert "'d' differs by" in warnings[0]
    assert executor.statistics.fallbacks == 1


COUNT = itertools.count(1)
SOURCES: dict[str, Callable[[], object]] = {
    "random": random.random,
    "numpy": np.random.rand,
    "array": lambda: torch.from_numpy(np.random.rand(1, 1)),
    "clock": time.perf_counter,
    "secrets": lambda: secrets.randbelow(10**9),
    "uuid": lambda: uuid.uuid4().int % 10**9,
    "counter": lambda: next(COUNT),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_value_that_is_no_tensor_and_changes_is_not_frozen(
    source: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def drawing(a: Tensor) -> Tensor:
        return a * SOURCES[source]()

    steps = (parsed("b", "a+1", "a"), Step("drawing", drawing, {"a": Buffer("b")}, ("d",)))
    executor, state, seen = Jit(folder=tmp_path), state_of((9, 8), "a"), set()
    for _ in range(5):
        executor.run(steps, state)
        seen.add(float(state.buffers["d"][0, 0]))
    assert len(seen) == 5
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1 and "'d' differs by" in warnings[0]


def reading(a: Tensor) -> Tensor:
    return a * 2 if float(a.mean()) > 0 else a


def test_a_step_that_reads_a_value_runs_directly_and_the_rest_is_compiled(
    both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    steps = (
        parsed("b", "a+1", "a"),
        Step("reading", reading, {"a": Buffer("b")}, ("d",)),
        parsed("e", "d*d", "d"),
    )
    executor = both(steps, state_of((9, 8), "a"))
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert (
        "Failed to trace compute sequence 'b reading e': reading: it reads the value" in warnings[0]
    )
    assert executor.statistics.sequences == 2


def test_without_a_compiler_steps_run_directly(
    both: Both, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(_: object) -> None:
        raise IngotError([Problem("no-compiler", "no C++ compiler is on the path")])

    monkeypatch.setattr("ingot.fields.jit.executor.ready", missing)
    executor = both(cahn_hilliard(), state_of((16, 16), "c"))
    assert executor.statistics.fallbacks == 1
    assert "no C++ compiler is on the path; it runs directly" in caplog.text


def sized(a: Tensor, space: Space) -> Tensor:
    return a * 2 if space.size(0) > 12 else a


def test_a_step_that_decides_by_sizes_runs_directly(
    both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = {"a": Buffer("a"), "space": Ambient("space")}
    steps = (Step("sized", sized, arguments, ("d",)),)
    executor = both(steps, state_of((9, 8), "a"), state_of((16, 8), "a"))
    assert "it holds for some sizes of the grid only: n0 > 12 (test_executor.py:" in caplog.text
    assert executor.statistics.sequences == 0


def test_a_graph_that_was_rewritten_for_one_size_is_not_run(
    both: Both, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fixing(captured: Captured) -> Fused:
        field = next(n for n in captured.module.graph.nodes if n.meta["val"].dim() == 2)
        assert len(range(field.meta["val"].shape[0])) > 0
        return fuse(captured)

    monkeypatch.setattr("ingot.fields.jit.executor.fuse", fixing)
    executor = both(cahn_hilliard(), state_of((16, 16), "c"))
    assert "it holds for some sizes of the grid only: n0 = " in caplog.text
    assert executor.statistics.sequences == 0


def counted(a: Tensor, space: Space) -> Tensor:
    return a * space.size(0) / (space.size(1) + 1) + space.volume


def test_sizes_are_open_while_capturing(both: Both) -> None:
    arguments = {"a": Buffer("a"), "space": Ambient("space")}
    steps = (Step("counted", counted, arguments, ("d",)),)
    executor = both(steps, state_of((9, 8), "a"), state_of((16, 7), "a"))
    assert executor.counts["captured"] == 1
    assert executor.statistics.fallbacks == 0


def in_place(a: Tensor) -> Tensor:
    total = torch.zeros_like(a)
    for power in range(3):
        total += a**power
    total[..., 0] = 1
    return total


def test_writes_inside_a_step_are_compiled(both: Both) -> None:
    steps = (Step("sums", in_place, {"a": Buffer("a")}, ("d",)), parsed("e", "d*2", "d"))
    executor = both(steps, state_of((9, 8), "a"), state_of((6, 7), "a"))
    assert executor.statistics.fallbacks == 0


def test_constants_time_and_old_states_are_inputs(tmp_path: Path) -> None:
    def function(a: Tensor, old: Tensor, factor: Tensor, time: Tensor, dt: Tensor) -> Tensor:
        return a * factor + old * time - dt

    arguments = {
        "a": Buffer("a"), "old": Old("a"), "factor": Constant("factor"), "time": Ambient("time"),
        "dt": Ambient("dt"),
    }  # fmt: skip
    steps = (Step("all", function, arguments, ("d",)),)
    state = state_of((9, 8), "a")
    state.constants, state.old = {"factor": 3.0}, {"a": (state.buffers["a"] ** 2,)}
    executor = Jit(folder=tmp_path)
    for turn in range(4):
        state.time, state.dt = 0.1 * turn, 0.01 * (turn + 1)
        executor.run(steps, state)
        a = state.buffers["a"]
        assert torch.allclose(state.buffers["d"], a * 3 + a**2 * state.time - state.dt, rtol=1e-14)
    assert executor.counts == {"captured": 1, "calls": 4}


def test_a_step_that_runs_once_is_left_out_afterwards(both: Both) -> None:
    once = Step("once", lambda a: a * 2, {"a": Buffer("a")}, ("b",), once=True)
    executor = both((once, parsed("d", "b+a", "a", "b")), state_of((9, 8), "a"))
    assert executor.statistics.fallbacks == 0


def test_a_group_drops_its_graphs(both: Both) -> None:
    steps = (parsed("b", "a+1", "a"),)
    executor = both(steps, state_of((9, 8), "a"))
    assert executor.statistics.sequences == 1
    Group("whole", steps).invalidate()
    assert executor.statistics.sequences == 0
    both(steps, state_of((9, 8), "a"), executor=executor)
    assert executor.counts["captured"] == 1


INPUT = """
[Domain]
  dim = 2
  nx = 12
  ny = 10
  debug = true
[]
[TensorComputes]
  [Initialize]
    [c]
      type = RandomTensor
      buffer = c
      min = 0.4
      max = 0.6
      seed = 1
    []
  []
  [Solve]
    [mu]
      type = ParsedCompute
      buffer = mu
      expression = 'c*(c-1)*(c-0.5)'
      inputs = c
    []
    [noise]
      type = RandomTensor
      buffer = noise
      min = 0
      max = 1e-3
      seed = 2
    []
    [kick]
      type = ParsedCompute
      buffer = kick
      expression = 'noise - mu'
      inputs = 'noise mu'
    []
    [cbar]
      type = ForwardFFT
      buffer = cbar
      input = c
    []
    [rate]
      type = ForwardFFT
      buffer = rate
      input = kick
    []
  []
[]
[TensorSolver]
  type = ForwardEulerSolver
  buffer = c
  reciprocal_buffer = cbar
  time_derivative_reciprocal = rate
[]
[Executioner]
  type = Transient
  num_steps = 3
  dt = 0.1
[]
"""


def test_debugging_prints_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulation = build(read_text(INPUT, moose=True))
    result = run(simulation, tmp_path)
    said = capsys.readouterr().out
    assert "JIT executor built: 2 traced sequences, 1 non-JITable computes" in said
    assert "mu | noise* | kick cbar rate c by euler" in said
    direct = run(simulation, tmp_path, jit=False)
    assert torch.allclose(result.state.buffers["c"], direct.state.buffers["c"], rtol=1e-13)


def test_what_nothing_reads_does_not_leave_its_sequence(tmp_path: Path) -> None:
    simulation = build(read_text(INPUT, overrides=("Domain/debug=false",), moose=True))
    executor = jit(simulation)
    assert executor.private == {"mu", "kick", "cbar", "rate", "noise"}
    result = run(simulation, tmp_path, executor=executor)
    # mu and noise are read by a later part, and leave the state after it
    assert {*result.state.buffers} & {*executor.private, "c"} == {"c"}
    assert executor.statistics.calls == 6


def test_a_group_without_jit_runs_directly(tmp_path: Path) -> None:
    text = INPUT.replace("[Solve]\n", "[Solve]\n[all]\nenable_jit = false\n").replace(
        "[]\n[TensorSolver]", "[]\n[]\n[TensorSolver]"
    )
    simulation = build(read_text(text, overrides=("Domain/debug=false",), moose=True))
    executor = jit(simulation)
    run(simulation, tmp_path, executor=executor)
    assert executor.statistics.operations <= 4  # the solver's own update


@pytest.mark.parametrize("draw", [torch.bernoulli, torch.rand_like, torch.dropout, torch.normal])
def test_a_step_that_draws_runs_directly_and_alone(draw: object) -> None:
    more = {"dropout": (0.5, True), "normal": (1.0,)}.get(draw.__name__, ())  # type: ignore[reportAttributeAccessIssue]

    def drawn(c: Tensor) -> Tensor:
        return draw(c, *more) - draw(c, *more)  # type: ignore[reportCallIssue]

    steps = (
        parsed("a", "c/2", "c"),
        step("d", drawn, "d", c=Buffer("a")),
        parsed("e", "d+c", "d", "c"),
    )
    one, other = state_of((8, 6), "c"), state_of((8, 6), "c")
    executor = Jit()
    torch.manual_seed(3)
    Eager().run(steps, one)
    torch.manual_seed(3)
    executor.run(steps, other)
    assert torch.equal(one.buffers["e"], other.buffers["e"]), "checking draws nothing"
    assert [step.name for step in executor.apart] == ["d"]
    assert float(one.buffers["d"].abs().max()) > 0


def test_solvers_say_whether_they_evaluate_once() -> None:
    names = {"buffer": ("u",), "reciprocal_buffer": ("v",), "linear_reciprocal": ("0",),
             "nonlinear_reciprocal": ("n",)}  # fmt: skip
    once = {
        name: solver(**names).evaluates_once
        for name, solver in SOLVERS.items()
        if "nonlinear_reciprocal" in solver.__dataclass_fields__
    }
    few = {name for name, said in once.items() if said}
    assert few == {"AdamsBashforthMoulton", "AdamsBashforthMoultonCoupled", "SemiImplicitSolver"}
    assert not SOLVERS["AdamsBashforthMoulton"](**names, corrector_steps=1).evaluates_once
    assert ForwardEulerSolver().evaluates_once


def scaled(a: Tensor) -> Tensor:
    return a * torch.tensor([1.0, 2.0, 3.0]).to(a)[1]


def test_constants_are_kept_as_they_are_copied(both: Both) -> None:
    state = state_of((6, 5), "a")
    made = both((Step("scaled", scaled, {"a": Buffer("a")}, ("b",)),), state)
    assert made.statistics.fallbacks == 0
    (graph,) = {
        id(b.graph): b.graph
        for parts in made.plans.values() for _, one in parts if one is not None
        for b in one.bound.values() if b is not None
    }.values()  # fmt: skip
    assert "aten._to_copy" not in graph.program.text and "aten.lift" not in graph.program.text
