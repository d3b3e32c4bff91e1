"""Work grows with the number of computes, long sequences are cut, and nothing is compiled twice."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import ingot
import ingot.fields.jit.fuse as fusion
from benchmarks.growth import CASES, grains
from ingot.codegen import build as libraries
from ingot.fields import build, prepared
from ingot.fields.computes.spectral import ForwardFFT, InverseFFT
from ingot.fields.jit import Jit, planner
from ingot.fields.jit.capture import capture
from ingot.fields.jit.executor import GRAPHS
from ingot.fields.jit.fuse import fuse
from ingot.fields.jit.program import write
from ingot.fields.jit.schema import schema_of
from ingot.fields.memory import needed_memory
from ingot.fields.step import Ambient, Buffer, Eager, State, Step
from ingot.hit import read_text

from .cases import copied, largest_difference, parsed, state_of

SOURCES = str(Path(str(ingot.__file__)).parent)
GROWN = 4
"""How many times more computes the larger input has."""


def instructions(work: Callable[[], object]) -> int:
    """How many instructions of Python code some work takes in this library, torch left out."""
    count = 0

    def look(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def work_of(text: str) -> dict[str, int]:
    """The instructions that it takes to build an input, to plan, to fuse and to print it."""
    counts = {"build": instructions(lambda: build(read_text(text, moose=True)))}
    simulation = build(read_text(text, moose=True))
    counts["memory"] = instructions(lambda: needed_memory(simulation, "cpu", jit=True))
    executor, run = Jit(), prepared(simulation, executor=Eager())
    run.start()
    executor.space = run.state.space
    steps = simulation.root.steps
    counts["plan"] = instructions(lambda: executor.planned(steps, whole=False))
    ((_, sequence),) = executor.planned(steps, whole=False)
    assert sequence is not None
    given = (*run.state.space.tensors(), *map(run.state.look_up, sequence.sources))
    schema = schema_of(given, run.state.space)
    assert schema is not None
    made = capture(steps, sequence.sources, sequence.wanted, schema, run.state.space)
    counts["fuse and print"] = instructions(lambda: write(fuse(made)))
    return counts


@pytest.mark.parametrize(
    ("case", "few"), [("chain", 15), ("parallel", 15), ("spectral", 16), ("grains", 3)]
)
def test_work_grows_no_faster_than_the_computes(case: str, few: int) -> None:
    small, large = (work_of(CASES[case](count, 8)) for count in (few, GROWN * few))
    growth = {name: large[name] / small[name] / GROWN for name in small}
    assert max(growth.values()) < 1.3, growth


def test_pairs_of_order_parameters_cost_what_their_terms_do() -> None:
    small, large = (work_of(CASES["pairs"](count, 8)) for count in (3, 12))
    # twelve have 66 pairs where three have 3; each of twelve energies is read and differentiated
    terms = (12 * (66 + 24)) / (3 * (3 + 6))
    assert large["build"] / small["build"] < 1.3 * terms
    # a derivative has a term for each other order parameter
    assert large["fuse and print"] / small["fuse and print"] < 1.3 * (12 * 13) / (3 * 4)


def drawn_steps(seed: int) -> tuple[tuple[Step, ...], list[str]]:
    """Random expressions, transforms and transforms back, each reading some of those before."""
    draw = random.Random(seed)
    fields, spectra, steps = ["a", "b"], list[str](), list[Step]()
    space = {"space": Ambient("space")}
    for at in range(30):
        name, kind = f"s{at}", draw.choice(["field", "field", "there", "filter", "back"])
        if kind == "field":
            x, y = draw.choices(fields, k=2)
            text = f"{draw.uniform(0.2, 0.9):.2f}*{x} - {y}/(2 + {x}^2)"
            steps.append(parsed(name, text, *dict.fromkeys((x, y))))
            fields.append(name)
        elif kind == "there" or not spectra:
            steps.append(Step(name, ForwardFFT, space | {"input": Buffer(draw.choice(fields))},
                              (name,)))  # fmt: skip
            spectra.append(name)
        elif kind == "filter":
            x = draw.choice(spectra)
            steps.append(parsed(name, f"{x}/(1 + 0.1*k2)", x, extra_symbols=True))
            spectra.append(name)
        else:
            steps.append(Step(name, InverseFFT, space | {"input": Buffer(draw.choice(spectra))},
                              (name,)))  # fmt: skip
            fields.append(name)
    return tuple(steps), [step.gives[0] for step in steps]


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_sequence_gives_what_its_steps_give(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(planner, "MAX_OPERATIONS", draw.choice([1, 20, 60]))
    monkeypatch.setattr(fusion, "MAX_LOOP_NODES", draw.choice([1, 5, 20]))
    steps, names = drawn_steps(seed)
    hidden = frozenset(draw.sample(names[:-1], 12))
    shown = [name for name in names if name not in hidden]
    sizes = draw.choice([(9, 14), (33, 8), (5, 6, 7)])
    state = state_of(sizes, "a", "b", seed=seed)
    executor = Jit(folder=tmp_path, private=hidden)
    for _ in range(3):
        direct = copied(state)
        Eager().run(steps, direct)
        executor.run(steps, state)
        assert largest_difference(state, direct, *shown) < 1e-12
    assert hidden.isdisjoint(state.buffers)
    (parts,) = executor.plans.values()
    assert len(parts) > 1
    assert executor.statistics.fallbacks == 0


def test_a_cut_leaves_no_run_longer_than_it_may_be_and_loses_no_step() -> None:
    steps, _ = drawn_steps(1)
    for most in (1, 13, 50, 10**6):
        runs = list(planner.cut(steps, most))
        assert [step for run in runs for step in run] == list(steps)
        sizes = [sum(map(planner.operations_of, run)) for run in runs]
        assert all(size <= most or len(run) == 1 for size, run in zip(sizes, runs, strict=True))
    assert list(planner.cut((), 5)) == []


def test_a_sequence_is_cut_where_few_buffers_are_read_later() -> None:
    wide = [parsed(f"w{at}", "2*a", "a") for at in range(4)]
    summed = parsed("sum", "w0 + w1 + w2 + w3", "w0", "w1", "w2", "w3")
    rest = (parsed("r0", "3*sum + 1", "sum"), parsed("r1", "sum + r0", "sum", "r0"),
            parsed("r2", "r0*r1", "r0", "r1"), parsed("r3", "r1 + r2", "r1", "r2"))  # fmt: skip
    first, _ = planner.cut((*wide, summed, *rest), 9)
    assert first[-1] is summed


@pytest.mark.parametrize("compatible", ["true", "false"])
@pytest.mark.parametrize("options", [{}, {"corrector_steps": 2, "corrector_order": 4}])
def test_nothing_is_compiled_again_while_an_order_is_reached(
    compatible: str, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []

    def compile_library(source: str, *_: Any) -> bytes:
        compiled.append(source)
        return made(source, *_)

    made = libraries.compile_library
    monkeypatch.setattr(libraries, "compile_library", compile_library)
    totals: dict[int, int] = {}
    for order in range(1, 6):
        GRAPHS.clear()
        written = [f"TensorSolver/{name}={value}" for name, value in options.items()]
        written += [
            f"TensorSolver/predictor_order={order}", f"Problem/marlin_compatible={compatible}",
            "TensorSolver/substeps=3",
        ]  # fmt: skip
        run = prepared(build(read_text(grains(2, 8), overrides=written, moose=True)))
        run.executor = Jit(private=run.executor.private)  # type: ignore[reportAttributeAccessIssue]
        run.start()
        counts: list[int] = []
        for _ in range(4):
            run.step()
            counts.append(len(compiled))
        # an implicit linear part lets every order start by Euler's step, in the first of substeps
        assert counts == counts[:1] * 4
        totals[order] = counts[0] - sum(totals.values())
    # order 1 has no old rates, so that its rates need not be stored
    assert len({totals[order] for order in range(2, 6)}) == 1
    assert totals[2] > 0


def test_a_state_holds_nothing_hidden_that_crosses_a_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "MAX_OPERATIONS", 1)
    steps = (parsed("x", "2*a", "a"), parsed("y", "3*x", "x"), parsed("z", "4*y", "y"))
    state: State = state_of((8, 8), "a")
    Jit(folder=tmp_path, private=("x", "y")).run(steps, state)
    assert set(state.buffers) == {"a", "z"}
    assert torch.allclose(state.buffers["z"], 24 * state.buffers["a"])
