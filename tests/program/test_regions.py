"""Parts of equal code are found, eliminated and written once; what they compute stays the same."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

from benchmarks.chaboche import BackStress, back_stresses, chaboche, loading
from ingot.catalog import Parameter
from ingot.cli.main import status
from ingot.codegen import compiler
from ingot.codegen.source import write_section, write_source
from ingot.errors import IngotError
from ingot.execute import kernel
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read_text
from ingot.model import build
from ingot.options import Inline
from ingot.program import Choices, Node, Program, Solve, compile_passes, prepared, with_jacobian
from ingot.program.condense import condense, condense_safely, predict_operations
from ingot.program.eliminate import Attempt, Eliminated, eliminate, solve_again
from ingot.program.factor import Factored
from ingot.program.pipeline import clean
from ingot.program.probe import Probes
from ingot.program.regions import Region, find_regions, format_regions
from ingot.types import Scalar, add_up, exp, minimum, sqrt
from tests.program.declared import declared
from tests.systems import dense, evaluated, implicit, node_of, numbers_of, solved


def program_of(parts: Sequence[BackStress]) -> Program:
    return clean(prepared(build(read_text(chaboche(parts)), "model")), Choices())


@cache
def repeated(count: int) -> Program:
    return program_of(back_stresses(count))


def found(program: Program) -> tuple[Region, ...]:
    return find_regions(program.solves[0])


@cache
def source(count: int, inline: Inline) -> str:
    return write_source(compile_passes(repeated(count)), inline)


def compiled(program: Program, inline: Inline) -> Kernel:
    with mock.patch.object(kernel, "write_section", partial(write_section, inline=inline)):
        return Kernel(program)


# what is found


def test_equal_laws_with_other_names_and_parameters_are_one_region() -> None:
    parts = back_stresses(5)
    renamed = [replace(p, name=f"{'zyxwv'[i]}_stress") for i, p in enumerate(parts)]
    (region,) = found(program_of(renamed))
    assert region.instances == tuple(p.name for p in renamed)
    numbers = {tuple(t[k].attr for t in region.lifted) for k in range(5)}
    assert len(numbers) == 5
    for k, part in enumerate(parts):
        lifted = [t[k].attr for t in region.lifted]
        assert -part.g in lifted or part.g in lifted
        assert part.A in lifted or -part.A in lifted


def test_a_part_whose_exponent_makes_other_code_stays_apart() -> None:
    parts = back_stresses(5)
    parts[2] = replace(parts[2], a=2.0)
    (region,) = found(program_of(parts))
    assert region.instances == ("X1", "X2", "X4", "X5")


OPTION = """
[Models]
  {laws}
  [rates]
    type = ComposedModel
    models = '{models}'
  []
  [model]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'rates'
    unknowns = '{unknowns}'
    residuals = '{residuals}'
  []
[]
[Solvers]
  [newton]
    type = Newton
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
"""


def Decay(x: Scalar, load: Scalar, *, rate: Parameter[Scalar], curved: bool = False) -> Scalar:
    """A residual, straight or curved.

    rate: how fast
    curved: whether the load saturates
    """
    return x - rate * (exp(load * x) if curved else load * x) - load


def test_a_law_with_another_option_is_not_merged() -> None:
    names = ["a", "b", "c", "d"]
    laws = "".join(
        f"[{n}]\n type = Decay\n x = '{n}x'\n rate = {0.1 + 0.1 * i}\n out = '{n}x_residual'\n"
        f" curved = {'true' if n in 'cd' else 'false'}\n[]\n"
        for i, n in enumerate(names)
    )
    text = OPTION.format(
        laws=laws, models=" ".join(names), unknowns=" ".join(f"{n}x" for n in names),
        residuals=" ".join(f"{n}x_residual" for n in names),
    )  # fmt: skip
    with declared(Decay):
        program = prepared(build(read_text(text), "model"))
    assert [r.instances for r in found(program)] == [("ax", "bx"), ("cx", "dx")]


def test_a_line_that_two_instances_compute_belongs_to_neither() -> None:
    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        return [x * x * 2.0 - exp(add_up(u)) - sqrt(g[0]) for x in u]

    program = implicit(residual, 3, 1)
    (region,) = found(program)
    assert {n.op for n in region.shared} == {"exp", "given"}, "a root is taken outside of the solve"
    assert all(len(set(t)) == 3 for t in region.lines)
    assert not region.lifted


def test_the_stage_tells_functions_instances_parameters_and_lines_saved() -> None:
    told = format_regions(repeated(6))
    assert told.splitlines()[:5] == [
        "solve [model]: 555 lines, 1 repeated blocks, 6 instances",
        "  region 0: X1, X2, X3, X4, X5, X6 (a function of its own in --inline auto)",
        "    69 lines for each of 6, 345 lines saved",
        "    12 values of its own for each, 8 shared by all",
        "    5 lifted parameters:",
    ]
    assert "written out in --inline auto" in format_regions(repeated(2))
    assert format_regions(prepared(build(read_text(SINGLE), "law"))) == "no solve"


SINGLE = "[Models]\n[law]\ntype = IsotropicMandelStress\n[]\n[]\n"


# elimination


def attempt_of(program: Program) -> Attempt:
    node = node_of(program)
    return Attempt(program, node.attr, Probes.of_program(program).enter(node, node.attr))


def factored_of(program: Program) -> Factored:
    (solve,) = compile_passes(program).solves
    assert solve.factored is not None
    return solve.factored


def states(program: Program, solve: Solve, count: int) -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(7)
    variables = [*program.inputs, *solve.unknowns]
    made = [{v.name: random.standard_normal(len(v.nodes)) for v in variables} for _ in range(count)]
    return [{**state, "t": np.ones(1), "t~1": np.zeros(1)} for state in made]


def assert_solves(
    program: Program, chosen: Eliminated, count: int, *, rtol: float, atol: float = 0.0
) -> None:
    """An elimination for any right-hand side is a dense solve."""
    attempt = attempt_of(program)
    size = len(attempt.solve.columns)
    sides: list[Node] = [chosen.builder.node("unknown", (), ("side", i)) for i in range(size)]
    update = solve_again(attempt, chosen, sides).update
    numbers = numbers_of(program, states(program, attempt.solve, count))
    right = np.random.default_rng(3).standard_normal((size, count))
    numbers |= {n.id: row for n, row in zip(sides, right, strict=True)}
    ours = np.stack([np.broadcast_to(x, count) for x in evaluated(update, numbers)], axis=1)
    matrix, _ = dense(attempt.solve, numbers)
    for k in range(count):
        np.testing.assert_allclose(ours[k], solved(matrix[k], right[:, k]), rtol=rtol, atol=atol)


def test_regions_eliminated_first_solve_what_a_dense_solve_solves() -> None:
    program = repeated(5)
    chosen = condense(attempt_of(program), found(program))
    assert chosen is not None
    assert_solves(program, chosen[0], 3, rtol=1e-7, atol=1e-9)


def test_an_instance_takes_no_more_operations_in_company() -> None:
    costs = {}
    for count in (6, 10):
        factored = factored_of(repeated(count))
        assert "condensed" in factored.costs
        costs[count] = factored.costs["condensed"]
    assert costs[10] / 10 < costs[6] / 6 * 1.05


def test_the_prediction_is_below_what_the_jacobian_takes() -> None:
    factored = factored_of(repeated(2))
    predicted = predict_operations(repeated(2).solves[0])
    assert predicted <= factored.costs["jacobian"]
    assert predicted > factored.costs["jacobian"] / 8


def test_few_instances_are_eliminated_as_before() -> None:
    factored = factored_of(repeated(2))
    assert "condensed" not in factored.costs


def test_two_instances_are_eliminated_first_where_only_that_is_both_short_and_safe() -> None:
    program = repeated(2)
    attempt = attempt_of(program)
    safe = eliminate(attempt, "accumulated")
    chosen = condense_safely(attempt, found(program), safe)
    assert chosen is not None
    assert chosen.risk == 0 and chosen.operations < safe.operations / 3
    assert condense_safely(attempt, found(program), chosen) is None, "extended as it is"
    short = replace(safe, operations=chosen.operations)
    assert condense_safely(attempt, found(program), short) is None, "not worth it"
    assert_solves(program, chosen, 3, rtol=1e-7, atol=1e-9)


def test_equations_that_are_singular_in_every_instance_are_told() -> None:
    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        return [(u[0] - u[1] + x - x) * 2.0 + g[0] * c for c, x in enumerate(u)]

    with pytest.raises(IngotError, match="singular"):
        compile_passes(implicit(residual, 5, 1))


# writing


def lines_of(count: int, inline: Inline) -> int:
    return source(count, inline).count("\n")


def test_the_source_grows_by_a_fraction_of_an_instance() -> None:
    grown = {mode: lines_of(12, mode) - lines_of(8, mode) for mode in ("all", "auto")}
    assert grown["auto"] < grown["all"] / 3
    assert lines_of(12, "auto") < lines_of(12, "all") / 2


def test_inline_all_writes_no_function_and_none_writes_one_for_two() -> None:
    assert "region_" not in source(8, "all")
    assert "region_" in source(8, "auto")
    assert "region_" not in source(2, "auto")
    assert "region_" in source(2, "none")


def same_bits(program: Program, run: Callable[[Kernel], dict[str, torch.Tensor]]) -> None:
    """All modes give the same bits."""
    texts = {m: write_source(compile_passes(program), m) for m in ("all", "none")}
    assert texts["all"] != texts["none"]
    plain = run(compiled(program, "all"))
    for mode in ("auto", "none"):
        for name, values in run(compiled(program, mode)).items():
            assert torch.equal(values.nan_to_num(-1.0), plain[name].nan_to_num(-1.0)), (mode, name)
    assert any(bool((v != 0).any()) for v in plain.values())


@pytest.fixture(scope="module")
def sloped() -> Program:
    """Six back stresses; one number has two roles, in one instance only."""
    parts = back_stresses(6)
    parts[0] = replace(parts[0], A=parts[0].g)
    return with_jacobian(program_of(parts), [("stress", "E"), ("X2", "X3~1")])


def test_values_and_slopes_are_the_same_bits_in_every_mode(sloped: Program) -> None:
    def run(kernel: Kernel) -> dict[str, torch.Tensor]:
        history = kernel.transient(loading(6, 11, 8))
        assert history.statuses[0].converged.all()
        return history.outputs

    same_bits(sloped, run)


def test_values_and_slopes_are_the_interpreter_s(sloped: Program) -> None:
    random = torch.Generator().manual_seed(2)
    inputs = {
        v.name: 1e-2 * torch.randn(5, *v.kind.base, generator=random, dtype=torch.float64)
        for v in sloped.inputs
    }
    inputs |= {"t": torch.full((5,), 2.0, dtype=torch.float64), "t~1": torch.zeros(5).double()}
    ours, status = compiled(sloped, "none")(inputs)
    theirs, _ = Interpreter(sloped)(inputs)
    assert status[0].converged.all()
    for name, values in theirs.items():
        torch.testing.assert_close(
            ours[name], values, rtol=1e-7, atol=1e-9 * float(values.abs().max())
        )


def test_instances_that_read_each_other_give_the_same_bits() -> None:
    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        rows = []
        for k, x in enumerate(u):
            before = sqrt(u[k - 1] * u[k - 1] + 1.0)
            bent = minimum(exp(x * (0.1 + 0.01 * k)), 1.0 + x * x)
            own = bent * g[0] + before * (0.2 + 0.03 * k)
            rows.append(x - own / (own * own + 3.0) - g[1] * add_up([y * 0.01 for y in u]))
        return rows

    program = implicit(residual, 7, 2)
    assert "(V)x" in write_source(compile_passes(program), "none")  # a mask passed as bits
    random = torch.Generator().manual_seed(5)
    inputs = {v.name: torch.rand(9, generator=random, dtype=torch.float64) for v in program.inputs}
    same_bits(program, lambda kernel: kernel(inputs)[0])


def test_two_unknowns_an_instance_that_share_lines_give_the_same_bits() -> None:
    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        rows = []
        mean = add_up([x * 0.1 for x in u])
        for k in range(6):
            x, y = u[k], u[6 + k]
            both = exp((x + y * (0.3 + 0.1 * k)) * 0.1) * g[0]
            rows.append((x * 2.0 - both / (1.0 + both) - mean, both * y * 0.2 + y - g[1] * mean))
        return [r for r, _ in rows] + [r for _, r in rows]

    program = implicit(residual, 12, 2)
    x, y = found(program)
    assert x.instances == tuple(f"u{k}" for k in range(6))
    assert not {n for t in x.lines for n in t} & {n for t in y.lines for n in t}
    tried = condense(attempt_of(program), found(program), worth=0)
    assert tried is not None
    assert_solves(program, tried[0], 2, rtol=1e-9)
    inputs = {v.name: torch.linspace(0.1, 0.9, 9, dtype=torch.float64) for v in program.inputs}
    same_bits(program, lambda kernel: kernel(inputs)[0])


# commands


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.i"
    path.write_text(chaboche(back_stresses(6)))
    return path


def test_show_prints_regions(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["show", str(file), "model", "--stage", "regions"]) == 0
    assert "345 lines saved" in capsys.readouterr().out
    assert status(["show", str(file), "model", "--stage", "regions", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["distinct"], row["instances"]) == (1, 6)
    assert row["blocks"][0]["function"] and row["lines"] > row["blocks"][0]["lines"] > 10
    assert status(["show", str(file), "model", "--stage", "source", "--json"]) == 2
    assert "--stage source is text only" in capsys.readouterr().err
    assert status(["show", str(file), "model", "--stage", "source", "--inline", "all"]) == 0
    assert "region_" not in capsys.readouterr().out
    assert status(["show", str(file), "model", "--stage", "source"]) == 0
    assert "region_0(" in capsys.readouterr().out


def test_compile_writes_the_source_that_inline_asks_for(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "translate", lambda source, flags, to: to.write_bytes(b""))
    for mode, once in (("none", True), ("all", False)):
        words = ["compile", str(file), "--model", "model", "--inline", mode]
        assert status([*words, "--output-dir", str(tmp_path / mode)]) == 0
        (text,) = (tmp_path / mode).rglob("*.cpp")
        assert ("region_0(" in text.read_text()) == once
