"""What a solve accepted, and by which tolerance, is told; `guess = old` starts where it ended."""

import json
import random
import warnings
from pathlib import Path

import pytest
import torch

from ingot.cli.main import status as command
from ingot.drivers import Result, TransientDriver, build_driver
from ingot.errors import IngotError, IngotWarning, Problem
from ingot.execute import Backend, Criterion
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read_text
from ingot.model import Factory, build
from ingot.program import prepared
from tests.drivers.test_supply import PLASTIC
from tests.execute.test_inductor import printing

LOOSE = PLASTIC.replace("rel_tol = 1e-12", "rel_tol = 3e-2").replace("1e-10", "1e-8")
OLD = "solver = 'newton'\n    guess = old"
PREDICTED = LOOSE.replace("solver = 'newton'", "solver = 'newton'\n    predictor = 'last'").replace(
    "  [model]\n", "  [last]\n    type = ConstantExtrapolationPredictor\n"
    "    unknowns_SR2 = 'plastic_strain'\n  []\n  [model]\n",
)  # fmt: skip


def run(
    text: str, backend: Backend = "interpret", *, strict: bool = False
) -> tuple[Result, list[Problem]]:
    """A driver's result, and what it warned of."""
    driver = build_driver(Factory(read_text(text, "model.i"), strict=strict), "driver")
    assert isinstance(driver, TransientDriver)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = driver.run(backend)
    told = [each.message.problem for each in caught if isinstance(each.message, IngotWarning)]
    return result, told


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_what_rel_tol_accepts_from_a_zero_guess_is_told(backend: Backend) -> None:
    exact, none = run(PLASTIC, backend)
    found, told = run(LOOSE, backend)
    off = (found.outputs["plastic_strain"] - exact.outputs["plastic_strain"]).abs().max()
    assert off > 0.02 * exact.outputs["plastic_strain"].abs().max(), "the case shows no error"
    assert [p.code for p in none] == [] and [p.code for p in told] == ["loose-convergence"]
    assert "'update' starts from zero, and rel_tol = 0.03" in told[0].message
    assert told[0].span is not None and told[0].span.block == "Models/update"
    assert told[0].fix is not None and "'guess = old'" in told[0].fix
    with pytest.raises(IngotError, match="loose-convergence"):
        run(LOOSE, backend, strict=True)


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_old_values_as_guesses_are_those_of_the_predictor(backend: Backend) -> None:
    found, told = run(LOOSE.replace("solver = 'newton'", OLD), backend)
    predicted, _ = run(PREDICTED, backend)
    assert told == []
    for name, value in predicted.outputs.items():
        assert torch.equal(found.outputs[name], value)
    (a,), (b,) = found.statuses, predicted.statuses
    assert torch.equal(a.iterations, b.iterations) and torch.equal(a.accepted, b.accepted)


def test_old_values_are_inputs_and_new_ones_are_not() -> None:
    model = build(read_text(LOOSE.replace("solver = 'newton'", OLD)), "model")
    assert "plastic_strain~1" in model.inputs and "plastic_strain" not in model.inputs
    given = LOOSE.replace("solver = 'newton'", OLD.replace("old", "given"))
    assert "plastic_strain" in build(read_text(given), "model").inputs
    with pytest.raises(IngotError, match="'guess' is one of given, old, not 'new'"):
        build(read_text(LOOSE.replace("solver = 'newton'", OLD.replace("old", "new"))), "model")


def test_every_executor_starts_from_old_values_and_tells_what_accepted() -> None:
    program = prepared(build(read_text(LOOSE.replace("solver = 'newton'", OLD)), "model"))
    draw = torch.Generator().manual_seed(2)
    inputs = {
        v.name: 1e-3 * torch.randn(20, *v.kind.base, generator=draw).double()
        for v in program.inputs
    }
    inputs |= {"t~1": torch.zeros(20).double(), "t": torch.linspace(0.1, 1, 20).double()}
    expected, (told,) = Interpreter(program)(inputs)
    assert {Criterion.REL_TOL} <= set(told.accepted.tolist())
    for other in (Kernel(program), printing(program)):
        outputs, (status,) = other(inputs)
        assert torch.equal(status.accepted, told.accepted)
        assert torch.equal(status.iterations, told.iterations)
        torch.testing.assert_close(outputs["plastic_strain"], expected["plastic_strain"])


def test_worst_accepted_residual_is_the_largest_of_what_converged() -> None:
    result, _ = run(LOOSE)
    (status,) = result.statuses
    worst = status.find_worst_accepted()
    assert worst is not None and worst.residual == float(status.residual.max())
    assert float(status.residual[worst.step - status.begin, worst.point]) == worst.residual
    assert status.find_worst_accepted(Criterion.ROUNDING) is None
    draw = random.Random(3)
    for _ in range(50):
        step, point = draw.randrange(len(status.residual)), 0
        small = status.residual[step, point] < 1e-8
        assert (status.accepted[step, point] == Criterion.ABS_TOL) == bool(small)


def test_run_prints_what_was_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "loose.i"
    file.write_text(LOOSE)
    assert command(["run", str(file), "--backend", "interpret"]) == 0
    shown = capsys.readouterr()
    assert ", accepted by rel_tol" in shown.out and "warning[loose-convergence]" in shown.err
    assert command(["run", str(file), "--backend", "interpret", "--json"]) == 0
    solve = json.loads(capsys.readouterr().out)["solves"]["update"]
    assert solve["worst_accepted_by"] == "rel_tol" and solve["worst_accepted_residual"] > 1e-5
    assert sum(solve["accepted_by"].values()) == 5
    assert command(["run", str(file), "--backend", "interpret", "--strict"]) == 1
    assert "error[loose-convergence]" in capsys.readouterr().err
