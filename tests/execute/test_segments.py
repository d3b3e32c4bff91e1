"""Programs cut where lines see all points: each back end runs the parts, and all agree."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from ingot import IngotError
from ingot.execute import Executor, executor
from ingot.execute.interpret import Interpreter
from ingot.execute.segments import compile_segments
from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Program,
    along_direction,
    freeze,
    prepared,
    trace,
    verify,
    with_adjoint,
)
from ingot.types import SR2
from tests.execute.test_substeps import TENSORS, filled, points_of, viscous
from tests.program.declared import declared

Tensors = dict[str, Tensor]
SUMMED = """
[Models]
  [mean]
    type = SR2DynamicMean
    from = 'stress'
    to = 'mean'
    dim = 0
  []
  [whole]
    type = ComposedModel
    models = 'update mean'
    additional_outputs = 'stress'
  []
[]
"""


def Twist(x: SR2) -> SR2:
    """Ordinary torch, which no trace sees."""
    return torch.sin(x) + 0.1 * x.flip(-1)


@pytest.fixture(autouse=True)
def laws() -> Iterator[None]:
    with declared(Twist, opaque=True):
        yield


@dataclass
class Drawn:
    """A composition of models drawn at random; sums: the values that have no batch left."""

    choose: random.Random
    blocks: str = ""
    systems: str = ""
    models: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=lambda: ["A", "B", "C"])
    sums: set[str] = field(default_factory=set)

    def add(self, type: str, options: str, gives: str, reads: list[str]) -> None:
        name = f"m{len(self.models)}"
        self.blocks += f"[{name}]\ntype = {type}\n{options}\n[]\n"
        self.models.append(name)
        self.values.append(gives)
        if set(reads) <= self.sums:
            self.sums.add(gives)

    def combine(self, gives: str) -> None:
        reads = self.choose.sample(self.values, 2)
        weights = " ".join(str(self.choose.choice([-1.0, 0.5, 2.0])) for _ in reads)
        options = f"from = '{' '.join(reads)}'\nweights = '{weights}'\nto = '{gives}'"
        self.add("SR2LinearCombination", options, gives, reads)

    def reduce(self, gives: str) -> None:
        what = self.choose.choice(["Sum", "Mean"])
        read = self.choose.choice([v for v in self.values if v not in self.sums])
        dim = self.choose.choice([0, -1])
        options = f"from = '{read}'\nto = '{gives}'\ndim = {dim}"
        self.add(f"SR2Dynamic{what}", options, gives, [])
        self.sums.add(gives)

    def twist(self, gives: str) -> None:
        read = self.choose.choice(self.values)
        self.add("Twist", f"x = '{read}'\nout = '{gives}'", gives, [read])

    def solve(self, gives: str) -> None:
        r"""$4 u = a + b$, or with a law of torch inside."""
        reads = self.choose.sample(self.values, 2)
        inside = self.choose.choice(["", f"{gives}_law"])
        if inside:
            self.blocks += f"[{inside}]\ntype = Twist\nx = '{gives}'\nout = '{gives}_in'\n[]\n"
        terms = f"{gives} {' '.join(reads)}" + (f" {gives}_in" if inside else "")
        weights = "4 -1 -1" + (" 0.5" if inside else "")
        self.blocks += (
            f"[{gives}_sum]\ntype = SR2LinearCombination\nfrom = '{terms}'\n"
            f"weights = '{weights}'\nto = '{gives}_residual'\n[]\n"
            f"[{gives}_system]\ntype = ComposedModel\nmodels = '{gives}_sum {inside}'\n[]\n"
        )
        self.systems += (
            f"[{gives}_equations]\ntype = NonlinearSystem\nmodel = '{gives}_system'\n"
            f"unknowns = '{gives}'\n[]\n"
        )
        options = f"equation_system = '{gives}_equations'\nsolver = 'newton'"
        self.add("ImplicitUpdate", options, gives, reads)

    def program(self) -> Program:
        models, gives = " ".join(self.models), " ".join(self.values[3:-1])
        text = (
            f"[Models]\n{self.blocks}[all]\ntype = ComposedModel\nmodels = '{models}'\n"
            f"additional_outputs = '{gives}'\n[]\n[]\n"
            f"[EquationSystems]\n{self.systems}[]\n"
            "[Solvers]\n[newton]\ntype = Newton\nabs_tol = 1e-13\nrel_tol = 1e-15\n[]\n[]\n"
        )
        return prepared(build(read_text(text), "all"))


def draw_program(seed: int, count: int) -> Program:
    drawn = Drawn(random.Random(seed))
    for i in range(count):
        make = drawn.choose.choice([drawn.combine, drawn.reduce, drawn.twist, drawn.solve])
        make(f"v{i}")
    return drawn.program()


def draw_values(program: Program, seed: int, batch: int, unbatched: set[str]) -> Tensors:
    g = torch.Generator().manual_seed(seed)
    return {
        v.name: torch.rand(
            (*(() if v.name in unbatched else (batch,)), *v.kind.base), generator=g,
            dtype=torch.float64,
        )
        for v in program.inputs
    }  # fmt: skip


def assert_same(program: Program, compiled: Executor, inputs: Tensors) -> Tensors:
    """A back end gives what the interpreter gives of the program as a whole, shapes included."""
    try:
        expected, told = Interpreter(program)(inputs)
    except IngotError as error:
        # what was summed already is summed again: it met nothing but values without a batch
        with pytest.raises(IngotError, match="has no axis") as raised:
            compiled(inputs)
        assert raised.value.problems[0].message == error.problems[0].message
        return {}
    found, statuses = compiled(inputs)
    assert [s.solve for s in statuses] == [s.solve for s in told]
    for a, b in zip(statuses, told, strict=True):
        assert a.converged.all() and a.reason.shape == b.reason.shape
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        torch.testing.assert_close(found[name], x, rtol=1e-10, atol=1e-10)
    return found


def interpret_parts(program: Program) -> Executor:
    """The segments of a program, each by the interpreter: what the cut alone does."""

    def compile(programs: Sequence[Program], dtype: torch.dtype) -> list[Interpreter]:
        return [Interpreter(verify(p), dtype=dtype) for p in programs]

    return compile_segments(program, compile, torch.float64)


def assert_all_alike(seed: int, count: int, make: Callable[[Program], Executor]) -> None:
    """Values, tangents, adjoints; and the two are transposes of each other."""
    program = draw_program(seed, count)
    choose = random.Random(seed)
    outs, ins = [[v.name for v in vs] for vs in (program.outputs, program.inputs)]
    forward, reverse = along_direction(program), with_adjoint(program, outs, ins)
    runs = [make(p) for p in (program, forward, reverse)]
    for batch in (5, 1):
        unbatched = {n for n in ins if choose.random() < 0.3}
        inputs = draw_values(program, seed, batch, unbatched)
        along = {f"d.{n}": x for n, x in draw_values(program, seed + 1, batch, unbatched).items()}
        values = assert_same(program, runs[0], inputs)
        if not values:
            continue
        tangents = assert_same(forward, runs[1], {**inputs, **along})
        bars = {f"a.{n}": torch.rand_like(values[n]) for n in outs}
        adjoints = assert_same(reverse, runs[2], {**inputs, **bars})
        for n in outs:
            assert torch.equal(values[n], tangents[n]) and torch.equal(values[n], adjoints[n])
        pushed = sum((bars[f"a.{n}"] * tangents[f"d.{n}"]).sum() for n in outs)
        pulled = sum((adjoints[f"a.{n}"] * along[f"d.{n}"]).sum() for n in ins)
        torch.testing.assert_close(pushed, pulled, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_composition_of_sums_solves_and_laws_of_torch_is_that_of_its_segments(seed: int) -> None:
    assert_all_alike(seed, 7, interpret_parts)


def test_such_a_composition_runs_by_kernels() -> None:
    assert_all_alike(2, 5, lambda p: executor(p, "kernel"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_compositions_are_those_of_their_segments(seed: int) -> None:
    assert_all_alike(seed, 9, interpret_parts)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_compositions_run_alike_by_kernels(seed: int) -> None:
    assert_all_alike(seed, 9, lambda p: executor(p, "kernel"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [2, 5])
def test_values_of_such_compositions_are_those_of_graphs(seed: int) -> None:
    program = draw_program(seed, 5)
    assert_same(program, executor(program, "inductor"), draw_values(program, seed, 4, set()))


def test_a_solve_in_parts_is_taken_in_the_same_parts_where_a_sum_stands_between() -> None:
    """Adjoints of a sum reach the parts of a step in another segment than its solve."""
    text = filled(viscous(), {"level": 5}) + SUMMED
    program = freeze(trace(build(read_text(text), "whole")), torch.finfo(torch.float64).eps)
    names = [v.name for v in program.inputs]
    inputs = {n: x for n, x in points_of(TENSORS).items() if n in names}
    inputs |= {n: torch.zeros(3, 4, 6).double() for n in names if n not in inputs}
    outputs, (status,) = Interpreter(program)(inputs)
    once = freeze(trace(build(read_text(filled(viscous(), {"level": 0}) + SUMMED), "whole")), 1e-16)
    assert not Interpreter(once)(inputs)[1][0].converged.all() and status.converged.all()
    adjoint = with_adjoint(program, ["mean"], ["E"])
    bars = {"a.mean": torch.rand_like(outputs["mean"])[None]}
    assert_same(adjoint, interpret_parts(adjoint), {**inputs, **bars})
