"""Runs made to fail for a known cause: the diagnosis names the point, step, equation and cause."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import ingot
from ingot.catalog import Parameter
from ingot.drivers import TransientDriver, build_driver, diagnose, require_converged
from ingot.drivers.conditioning import equilibrate, find_conditioning, name_entries
from ingot.drivers.diagnosis import SolveDiagnosis
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.execute.newton_path import NewtonPath, PathRecorder
from ingot.hit import read_text
from ingot.model import build
from ingot.program import prepared
from ingot.types import Scalar, add_up
from tests import packages
from tests.compositions import NESTED
from tests.program.declared import declared
from tests.systems import implicit, viscoplasticity


def Power(base: Scalar, *, exponent: Parameter[Scalar]) -> Scalar:
    """A power.

    exponent: its exponent
    """
    return base**exponent


TEXT = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.arange({steps}.0))'
  []
  [loads]
    type = Python
    expr = 'Scalar(torch.tensor({loads}, dtype=torch.float64))'
  []
  [start]
    type = Python
    expr = 'Scalar(torch.tensor({start}, dtype=torch.float64))'
  []
[]
[Models]
  [power]
    type = Power
    base = 'x'
    exponent = {exponent}
  []
  [balance]
    type = ScalarLinearCombination
    from = 'out a'
    to = 'balance'
    weights = '1 -1'
  []
  [follow]
    type = ScalarLinearCombination
    from = 'x a y'
    to = 'tie'
    weights = '1 2 {weight}'
  []
  [residual]
    type = ComposedModel
    models = 'power balance follow'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x y'
  []
  [root]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    {predictor}
  []
  [power_after]
    type = Power
    base = 'z'
    exponent = 2
    out = 'z_squared'
  []
  [balance_after]
    type = ScalarLinearCombination
    from = 'z_squared x'
    to = 'after'
    weights = '1 -1'
  []
  [residual_after]
    type = ComposedModel
    models = 'power_after balance_after'
  []
  [guess_after]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'z'
  []
  [root_after]
    type = ImplicitUpdate
    equation_system = 'system_after'
    solver = 'newton'
    predictor = 'guess_after'
  []
  [series]
    type = ComposedModel
    models = 'root root_after'
    additional_outputs = 'x'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'x y'
    residuals = 'balance tie'
  []
  [system_after]
    type = NonlinearSystem
    model = 'residual_after'
    unknowns = 'z'
    residuals = 'after'
  []
[]
[Solvers]
  [newton]
    type = {solver}
    max_its = {max_its}
    abs_tol = {abs_tol}
    rel_tol = {rel_tol}
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = '{model}'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'a'
    prescribed_Scalar_values = 'loads'
    ic_Scalar_names = '{begun}'
    ic_Scalar_values = '{values}'
  []
[]
"""
USUAL = {
    "steps": 4, "loads": "[[1.0, 1.0], [1.1, 1.2], [1.2, 1.4], [1.3, 1.6]]", "exponent": 2,
    "start": 1.0, "weight": -1, "predictor": "predictor = 'guess'", "solver": "Newton",
    "max_its": 12, "abs_tol": 1e-10, "rel_tol": 1e-8, "model": "root", "begun": "x y",
    "values": "start start",
}  # fmt: skip
SERIES = {"model": "series", "begun": "x y z", "values": "start start start"}


@pytest.fixture(autouse=True)
def law() -> Iterator[None]:
    """The law of these files."""
    with declared(Power):
        yield


def driver_of(**other: object) -> TransientDriver:
    words = {**USUAL, **other}
    text = TEXT
    for name, word in words.items():
        text = text.replace("{" + name + "}", str(word))
    driver = build_driver(read_text(text), "driver")
    assert isinstance(driver, TransientDriver)
    return driver


def diagnosed(**other: object) -> SolveDiagnosis:
    """What there is to tell of the first solve."""
    return diagnose(driver_of(**other), "interpret").solves[0]


def test_an_easy_run_has_nothing_to_say() -> None:
    found = diagnose(driver_of(), "interpret")
    assert found.failed == 0
    assert found.solves[0].is_easy
    assert "all 2 points converged" in str(found)
    assert "nothing to say" in str(found)


def test_one_point_of_a_batch_fails_and_is_named() -> None:
    found = diagnosed(loads="[[1, 1, 1], [1, 1, 1], [1, -0.1, 1], [1, 1, 1.0]]")
    assert (found.failed, found.points) == (1, 3)
    worst = found.worst[0]
    assert (worst.step, worst.point, worst.outcome) == (2, 1, "out of steps")
    (cause,) = found.causes
    assert cause.name in ("stalls", "diverges")
    assert "balance" in cause.message
    assert any("there may be no solution" in fix for fix in cause.fixes), "x^2 = -0.1 has none"
    norms = found.history["norm"]
    assert len(norms) == 12
    assert norms[-1] == pytest.approx(worst.residual)
    assert found.history["tie"][-1] < 1e-12 < found.history["balance"][-1]


def test_an_unknown_in_no_equation_is_named() -> None:
    found = diagnosed(weight=0)
    assert found.failed == 2
    assert found.conditioning is not None
    assert found.conditioning.inert == ("y",)
    (cause,) = found.causes
    assert (cause.name, cause.message) == ("singular", "no equation of [root] depends on y")


def test_a_slope_that_vanishes_at_the_guess_is_named_and_another_guess_is_tried() -> None:
    found = diagnosed(predictor="", loads="[[1.0, 1.0], [1.1, 1.2], [1.2, 1.4], [1.3, 1.6]]")
    (cause,) = found.causes
    assert cause.name == "singular"
    assert "balance does not determine x" in cause.message
    assert found.worst[0].step == 1
    assert "guess = old" in cause.fixes[0]
    assert diagnosed(predictor="guess = old").failed == 0, "what it advises helps"


def test_a_power_of_a_negative_number_is_shown() -> None:
    found = diagnosed(exponent=0.5, loads="[[1.0, 1.0], [1.0, 1.0], [1.0, 0.3], [1.0, 0.3]]")
    assert (found.failed, found.worst[0].step, found.worst[0].point) == (1, 2, 1)
    (cause,) = found.causes
    assert cause.name == "not-finite"
    assert cause.message == "balance is no number at update 1: sqrt(-0.4) is none"


def test_a_guess_that_is_no_number_is_told_as_such() -> None:
    found = diagnosed(exponent=0.5, start=-1.0)
    (cause,) = found.causes
    assert cause.name == "not-finite"
    assert "at the first guess" in cause.message
    assert "sqrt(-1)" in cause.message


def test_tolerances_below_rounding_are_told() -> None:
    found = diagnosed(abs_tol=1e-30, rel_tol=0, loads="[[2e8], [3e8], [5e8], [7e8]]", start=2e4)
    (cause,) = found.causes
    assert cause.name == "tolerance"
    assert "abs_tol = 1e-30" in cause.message
    advised = float(cause.fixes[0].split()[2].rstrip(","))
    assert 1e-8 < advised < 1e-4
    assert diagnosed(
        abs_tol=advised, rel_tol=0, loads="[[2e8], [3e8], [5e8], [7e8]]", start=2e4
    ).is_easy  # fmt: skip


def test_a_residual_that_still_falls_asks_for_more_updates() -> None:
    found = diagnosed(loads="[[1.0], [1e6], [1e6], [1e6]]", max_its=12)
    (cause,) = found.causes
    assert cause.name == "unfinished"
    assert "max_its above 12: it converges after " in cause.fixes[0]
    more = diagnosed(loads="[[1.0], [1e6], [1e6], [1e6]]", max_its=25)
    assert (more.failed, more.causes[0].name) == (0, "slow")
    assert more.worst[0].step == 1


def test_of_two_solves_in_series_the_one_that_fails_is_blamed() -> None:
    loads = "[[1.0, 1.0], [1.1, 1.2], [1.2, -1], [1.3, 1.6]]"
    first, after = diagnose(driver_of(loads=loads, **SERIES), "interpret").solves
    assert (first.solve, after.solve) == ("root", "root_after")
    assert (first.worst[0].step, first.worst[0].point) == (2, 1)
    assert first.causes[0].name in ("stalls", "diverges")
    assert (after.worst[0].step, after.worst[0].point) == (2, 1)
    (cause,) = after.causes
    assert (cause.name, cause.fixes) == ("follows", ("what helps [root]",))


def test_the_second_of_two_solves_may_fail_alone() -> None:
    # x^3 = a has a negative root where a is negative, of which z^2 = x has none
    loads = "[[1.0, 1.0], [1.1, 1.2], [1.2, -1], [1.3, 1.6]]"
    found = diagnose(driver_of(loads=loads, exponent=3, max_its=40, **SERIES), "interpret")
    first, after = found.solves
    assert (first.failed, after.failed, found.failed) == (0, 1, 1)
    assert (after.worst[0].step, after.worst[0].point) == (2, 1)
    assert "after" in after.causes[0].message


def test_what_is_prescribed_and_no_number_is_named() -> None:
    found = diagnosed(loads="[[1.0, 1.0], [1.0, math.nan], [1.0, 1.0], [1.0, 1.0]]")
    (cause,) = found.causes
    assert (cause.name, cause.message) == ("given", "it is given a, which is no number")
    assert (found.worst[0].step, found.worst[0].point) == (1, 1)


NESTED_DRIVER = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.arange(3.0))'
  []
  [forces]
    type = Python
    expr = 'Scalar(torch.tensor([[0.0, 0.0], [1.0, {force}], [1.0, 1.0]], dtype=torch.float64))'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'model'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'f'
    prescribed_Scalar_values = 'forces'
  []
[]
"""


@pytest.mark.parametrize(
    ("force", "max_its", "causes"),
    [("1.5", 25, []), ("math.nan", 25, ["given", "given"]), ("1.5", 2, ["unfinished", "follows"])],
)
def test_a_solve_inside_another_is_blamed_where_it_fails(
    force: str, max_its: int, causes: list[str]
) -> None:
    text = NESTED.replace("type = Newton\n", f"type = Newton\n    max_its = {max_its}\n")
    driver = build_driver(read_text(text + NESTED_DRIVER.replace("{force}", force)), "driver")
    assert isinstance(driver, TransientDriver)
    found = diagnose(driver, "interpret")
    assert [cause.name for solve in found.solves for cause in solve.causes] == causes
    if causes:
        assert (found.solves[0].worst[0].step, found.solves[0].worst[0].point) == (1, 1)


def test_updates_that_a_line_search_shortened_are_told() -> None:
    found = diagnosed(
        exponent=2, loads="[[1.0], [-1.0], [1.0], [1.0]]", solver="NewtonWithLineSearch"
    )
    names = [cause.name for cause in found.causes]
    assert "cut-back" in names
    assert min(found.history["taken"]) < 1
    assert "taken" in str(found)


STRAIN = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 2, 3))'
  []
  [strains]
    type = Python
    expr = '
      size = torch.tensor([[0.0, 0.0], [0.1, 1.0], [0.2, 2.0]], dtype=torch.float64)
      result = SR2(SR2.fill(0.02, -0.01, -0.01).data * size[..., None])
    '
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'update'
    prescribed_time = 'times'
    prescribed_SR2_names = 'E'
    prescribed_SR2_values = 'strains'
  []
[]
"""


def viscous(*, parts: str = "") -> TransientDriver:
    """Two Chaboche back stresses; the second point is stretched ten times as much as the first."""
    text = viscoplasticity().replace("type = Newton\n", "type = Newton\n    max_its = 16\n")
    text = text.replace("predictor = 'guess'", f"predictor = 'guess'\n{parts}")
    driver = build_driver(read_text(text + STRAIN), "driver")
    assert isinstance(driver, TransientDriver)
    return driver


def test_too_large_a_step_of_chaboche_is_told_with_the_parts_that_help() -> None:
    (found,) = diagnose(viscous(), "interpret").solves
    assert found.failed == 1
    assert (found.worst[0].step, found.worst[0].point) == (1, 1)
    (cause,) = found.causes
    assert "stress_residual" in cause.message
    advice = next(fix for fix in cause.fixes if "max_substepping_level" in fix)
    assert "incremental_variables = 'E' in [update]" in advice
    assert found.conditioning is not None
    assert 1 < found.conditioning.scaled <= found.conditioning.number
    level = advice.split("=")[1].split(",")[0]
    options = f"max_substepping_level = {level}\n incremental_variables = 'E'\n"
    (again,) = diagnose(viscous(parts=options), "interpret").solves
    assert again.failed == 0, "what it advises helps"
    assert again.in_parts == 1
    begins, ends, converged = zip(*again.parts, strict=True)
    assert (min(begins), max(ends)) == (0.0, 1.0)
    assert any(converged)


def test_recording_changes_no_result_and_keeps_one_point() -> None:
    driver = viscous()
    given = {
        v.name: torch.zeros(2, *v.kind.base, dtype=torch.float64) for v in driver.program.inputs
    }
    given |= {"E": driver.transient.prescribed["E"][1], "t": torch.ones(2, dtype=torch.float64)}
    recorder = PathRecorder(1, 2)
    plain, (status,) = Interpreter(driver.program)(given)
    watched, (same,) = Interpreter(driver.program, recorder=recorder)(given)
    for name, x in plain.items():
        assert torch.equal(x.nan_to_num(), watched[name].nan_to_num())
    assert torch.equal(status.residual, same.residual)
    (path,) = recorder.paths
    assert len(path.iterates) == int(status.iterations[1]) + 1
    assert path.iterates[-1].norm == pytest.approx(float(status.residual[1]))
    last = path.iterates[2]
    update = torch.linalg.solve(last.jacobian, -last.residuals)
    torch.testing.assert_close(last.unknowns + update, path.iterates[3].unknowns)


@pytest.mark.exhaustive
def test_a_package_tells_what_it_can() -> None:
    stub = packages.decay().package.stub
    assert stub is not None
    driver = build_driver(ingot.read(stub, ["Solvers/newton/max_its:=2"]), "driver")
    assert isinstance(driver, TransientDriver)
    (found,) = diagnose(driver).solves
    assert found.failed > 0
    assert found.history == {}
    assert found.causes[0].name == "package"


def test_updates_that_fell_back_to_pivoting_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = driver_of()
    result = driver.compute("interpret")
    (status,) = result.statuses
    pivoted = torch.zeros_like(status.pivoted)
    pivoted[1, 1] = 3
    changed = replace(result, statuses=(replace(status, pivoted=pivoted),))
    monkeypatch.setattr(TransientDriver, "compute", lambda self, backend: changed)
    (found,) = diagnose(driver, "kernel").solves
    assert (found.failed, found.pivoted, found.pivoted_points) == (0, 3, 1)
    assert (found.worst[0].step, found.worst[0].point, found.worst[0].pivoted) == (2, 1, 3)
    assert [cause.name for cause in found.causes] == ["pivoted"]
    assert "3 by pivoting" in str(found)


def path_of(matrix: Tensor) -> NewtonPath:
    """The way of the second of three points through a linear system."""
    size = len(matrix)

    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        rows = [[float(a) * x for a, x in zip(row, u, strict=True)] for row in matrix]
        return [add_up(row) - b for row, b in zip(rows, g, strict=True)]

    recorder = PathRecorder(1, 3)
    program = implicit(residual, size, size)
    draw = torch.Generator().manual_seed(size)
    given = {v.name: torch.rand(3, generator=draw, dtype=torch.float64) for v in program.inputs}
    Interpreter(program, recorder=recorder)(given)
    return recorder.paths[0]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_of_a_jacobian_is_what_numpy_tells(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    size = 3 + seed % 3
    matrix = torch.randn(size, size, generator=draw, dtype=torch.float64)
    matrix[seed % size] *= 10.0 ** (2 * seed)
    found = find_conditioning(path_of(matrix))
    assert found is not None
    assert found.number == pytest.approx(np.linalg.cond(matrix.numpy()), rel=1e-6)
    assert found.scaled < found.number or seed < 3, "a row that is large is scaled"
    sizes = matrix.abs().amax(1)
    assert found.largest == (f"r{int(sizes.argmax())}", pytest.approx(float(sizes.max())))
    assert found.smallest == (f"r{int(sizes.argmin())}", pytest.approx(float(sizes.min())))
    assert (found.inert, found.idle, found.equations) == ((), (), ())

    row, column = seed % size, (seed + 1) % size
    for dim, index, name in ((1, column, "inert"), (0, row, "idle")):
        broken = matrix.clone()
        broken.select(dim, index).zero_()
        told = find_conditioning(path_of(broken))
        assert told is not None
        assert told.scaled > 1e13
        letter = "u" if name == "inert" else "r"
        assert getattr(told, name) == (f"{letter}{index}",)
    matrix[seed % size] /= 10.0 ** (2 * seed)
    twice = matrix.clone()
    twice[row] = 2.0 * twice[column]
    told = find_conditioning(path_of(twice))
    assert told is not None
    assert set(told.equations) == {f"r{row}", f"r{column}"}
    null = np.linalg.svd(equilibrate(twice).numpy())[2][-1]
    assert set(told.unknowns) == {f"u{i}" for i in range(size) if abs(null[i]) > 0.3}
    assert (told.inert, told.idle) == ((), ())


def test_entries_along_an_axis_are_named_by_their_place() -> None:
    program = prepared(build(read_text(packages.DIFFUSION), "diffusion"), {"c": (5,)})
    recorder = PathRecorder(0, 1)
    given = {v.name: torch.ones(5 if v.axes else ()).double() for v in program.inputs}
    given["t"] += 1.0
    Interpreter(program, recorder=recorder)(given)
    names = name_entries(recorder.paths[0].solve.unknowns, recorder.paths[0])
    assert names == [f"c[{i}]" for i in range(5)]
    found = find_conditioning(recorder.paths[0])
    assert found is not None
    assert found.number < 1e6


def test_a_report_is_plain_data() -> None:
    found = diagnose(driver_of(exponent=0.5, start=-1.0), "interpret")
    text = json.dumps(found.report(), allow_nan=False)
    (solve,) = json.loads(text)["solves"]
    assert solve["worst"][0]["step"] == 1
    assert solve["worst"][0]["residual"] is None
    assert solve["causes"][0]["name"] == "not-finite"


def test_the_error_of_a_run_leads_to_the_diagnosis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    driver = viscous()
    with pytest.raises(IngotError) as raised:
        require_converged(driver, driver.compute("interpret"))
    told = str(raised.value)
    assert "why: ingot diagnose failed/update.i" in told
    assert "max_substepping_level" in told
    saved = build_driver(ingot.read("failed/update.i"), "driver")
    assert isinstance(saved, TransientDriver)
    (found,) = diagnose(saved, "interpret").solves
    assert (found.failed, found.worst[0].step, found.worst[0].point) == (1, 1, 0)


@pytest.mark.exhaustive
def test_published_cases_with_too_few_updates_are_told_so(cases: Path) -> None:
    failed = 0
    for file in sorted(cases.rglob("*.i")):
        tree = ingot.read(file)
        solvers = [b for part in tree.section("Solvers") for b in part.blocks]
        newton = [b.name for b in solvers if (b.type or "").startswith("Newton")]
        drivers = [b for part in tree.section("Drivers") for b in part.blocks]
        names = [b.name for b in drivers if b.type == "TransientDriver"]
        if not newton or not names:
            continue
        tree = ingot.read(file, [f"Solvers/{name}/max_its:=3" for name in newton])
        driver = build_driver(tree, names[0])
        assert isinstance(driver, TransientDriver)
        for solve in diagnose(driver, "interpret").solves:
            failed += solve.failed > 0
            causes = {cause.name for cause in solve.causes} - {"cut-back"}
            assert causes == ({"unfinished"} if solve.failed else set()) or causes == {"follows"}
            if solve.failed and causes == {"unfinished"}:
                assert any(name in solve.causes[0].message for name in solve.history)
    assert failed > 20


@pytest.mark.exhaustive
def test_pivots_of_a_kernel_that_fell_back_are_counted(cases: Path) -> None:
    file = cases / "regression/solid_mechanics/viscoplasticity/chaboche/model.i"
    driver = build_driver(ingot.read(file), "driver")
    assert isinstance(driver, TransientDriver)
    (found,) = diagnose(driver, "kernel").solves
    (status,) = driver.compute("kernel").statuses
    assert found.pivoted == int(status.pivoted.sum()) > 0
    assert {cause.name for cause in found.causes} == {"slow", "pivoted"}
