"""Whole runs against numbers that the catalogue of the reference gives."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
import torch

from ingot.cli.main import status
from ingot.errors import IngotError, IngotWarning
from ingot.fields import Result, build, prepared, run, run_file
from ingot.fields.blocks.executioner import ConstantDT, Progress
from ingot.hit import read_text

INPUTS = Path(__file__).parent / "inputs"
Simulate = Callable[..., Result]

DECAY = """
[Domain]
  dim = 1
  nx = 8
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ConstantTensor
      buffer = u
      real = 1
    []
  []
  [Solve]
    [ubar]
      type = ForwardFFT
      buffer = ubar
      input = u
    []
    [rate]
      type = ParsedCompute
      buffer = rate
      inputs = ubar
      expression = '-ubar'
    []
  []
[]
[TensorSolver]
  type = ForwardEulerSolver
  buffer = u
  reciprocal_buffer = ubar
  time_derivative_reciprocal = rate
[]
[Postprocessors]
  [u]
    type = TensorAveragePostprocessor
    buffer = u
    execute_on = 'INITIAL TIMESTEP_END'
  []
[]
[Executioner]
  type = Transient
  dt = 0.1
  num_steps = 3
[]
"""


def test_a_secant_solve_with_steps_that_adapt_meets_the_published_digest(tmp_path: Path) -> None:
    result = run_file(INPUTS / "rotating_grain.i", folder=tmp_path)
    psi = result.state.buffers["psi"]
    found = [psi.min(), psi.max(), psi.mean(), psi[13, 13]]
    expected = [-0.192529500713, 0.336285682577, 0.00166582232588, 0.287767763887]
    assert [float(each) for each in found] == pytest.approx(expected, rel=0, abs=2e-12)
    assert result.values[-1]["dt"] == pytest.approx(20.661046784)


def test_diffusion_without_transforms_meets_the_published_row(tmp_path: Path) -> None:
    values = run_file(INPUTS / "diffusion.i", folder=tmp_path).values[-1]
    assert values["U"] == pytest.approx(0.0314159265359, rel=1e-11)
    assert values["max_u"] == pytest.approx(0.198383458011, rel=1e-11)


def test_a_gradient_written_at_nodes_meets_the_published_digest(tmp_path: Path) -> None:
    result = run_file(INPUTS / "gradient.i", folder=tmp_path)
    assert result.values[0]["wrong"] < 1e-11
    expected = {
        "c": (-2.90211303259, 2.71113002697, 0.199500982123, -0.309016994375),
        "grad_c_x": (-25.1327412287, 20.3328147693, 0.968229274727, -25.1327412287),
        "grad_c_y": (-11.951328659, 11.951328659, -0.671484301997, 11.951328659),
        "grad_c_z": (-6.28318530718, 5.08320369232, 0.847200615386, -6.28318530718),
    }
    with h5py.File(tmp_path / "gradient.h5") as file:
        assert sorted(file) == sorted(f"{name}.{frame}" for name in expected for frame in (0, 1))
        for name, numbers in expected.items():
            a = file[f"{name}.1"][()]
            assert a.shape == (6, 11, 21)
            assert (a.min(), a.max(), a.mean(), a[2, 3, 7]) == pytest.approx(numbers, abs=1e-10)


def test_a_masked_kks_solve_meets_its_first_frames(marlin: Path, tmp_path: Path) -> None:
    file = marlin / "kks" / "KKS_no_flux_bc.i"
    result = run_file(file, ["Executioner/num_steps=1"], tmp_path)
    first = {"total_C": 5148.96325124, "total_eta": 2926.9813065}
    assert result.values[1] == pytest.approx(first, rel=1e-11)
    golds = file.parent / "gold" / "KKS_no_flux_bc.h5"
    with h5py.File(tmp_path / "KKS_no_flux_bc.h5") as ours, h5py.File(golds) as gold:
        assert len(ours) == 8
        for name in ours:
            assert abs(ours[name][()] - gold[name][()]).max() < 1e-12


def test_a_step_is_shortened_to_hit_the_end(simulate: Simulate) -> None:
    result = simulate(DECAY, "Executioner/num_steps=100", "Executioner/end_time=0.25")
    assert result.times == pytest.approx((0.0, 0.1, 0.2, 0.25))
    assert result.values[-1]["u"] == pytest.approx(0.9 * 0.9 * 0.95)


def test_steps_grow_up_to_a_bound(simulate: Simulate) -> None:
    stepper = (
        "Executioner/TimeStepper/type=IterationAdaptiveDT", "Executioner/TimeStepper/dt=0.1",
        "Executioner/TimeStepper/growth_factor=1.5", "Executioner/dtmax=0.2",
    )  # fmt: skip
    result = simulate(DECAY, "Executioner/num_steps=4", *stepper)
    sizes = [b - a for a, b in zip(result.times, result.times[1:], strict=False)]
    assert sizes == pytest.approx([0.1, 0.15, 0.2, 0.2])


def test_a_terminator_ends_the_run(simulate: Simulate) -> None:
    stop = ("UserObjects/stop/type=Terminator", "UserObjects/stop/expression='u < 0.85'")
    assert simulate(DECAY, "Executioner/num_steps=50", *stop).steps == 2


def test_a_run_can_be_taken_step_by_step(tmp_path: Path) -> None:
    run = prepared(build(read_text(DECAY, moose=True)), tmp_path)
    seen = [(now.number, now.values["u"]) for now in run.steps()]
    assert seen == [(k, pytest.approx(0.9**k)) for k in (1, 2, 3)]


def test_single_precision_runs_in_single_precision(simulate: Simulate) -> None:
    result = simulate(DECAY, "Domain/floating_precision=SINGLE")
    assert result.state.buffers["u"].dtype == torch.float32
    assert result.values[-1]["u"] == pytest.approx(0.729, rel=1e-5)


def test_a_solver_that_cannot_converge_says_so(simulate: Simulate, tmp_path: Path) -> None:
    overrides = ["TensorSolver/max_iterations=1", "Executioner/dtmin=0.3"]
    with pytest.raises(IngotError, match="the solver fails at time 0 even with dt"):
        run_file(INPUTS / "rotating_grain.i", overrides, tmp_path)


def test_a_run_is_strict_where_its_settings_or_the_caller_say_so() -> None:
    simulation = build(read_text(DECAY, moose=True))
    assert not prepared(simulation, jit=False).strict
    assert prepared(simulation, jit=False, strict=True).strict
    said = build(read_text(DECAY + "[Settings]\n  strict = true\n[]\n", moose=True))
    assert prepared(said, jit=False).strict
    with pytest.raises(IngotError, match="no option 'dynamic_batch'"):
        build(read_text(DECAY + "[Settings]\n  dynamic_batch = true\n[]\n", moose=True))


FAILING = """
[Domain]
  dim = 1
  nx = 4
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ConstantTensor
      buffer = u
      real = 1
    []
  []
  [Solve]
    [ubar]
      type = ForwardFFT
      buffer = ubar
      input = u
    []
    [rate]
      type = ParsedCompute
      buffer = rate
      inputs = 'u'
      extra_symbols = true
      expression = 'if(t<0.5, 0.3*u^3, -u)'
    []
    [ratebar]
      type = ForwardFFT
      buffer = ratebar
      input = rate
    []
  []
[]
[TensorSolver]
  type = SecantSolver
  buffer = u
  reciprocal_buffer = ubar
  linear_reciprocal = 0
  nonlinear_reciprocal = ratebar
  max_iterations = 12
[]
[Executioner]
  type = Transient
  num_steps = 20
  dt = 1
[]
"""
"""A field that an implicit step of 1 cannot follow while it grows, and can while it decays."""


def test_failed_steps_are_told_and_grow_back(tmp_path: Path) -> None:
    with pytest.warns(IngotWarning) as told:
        result = run(build(read_text(FAILING, moose=True)), tmp_path, jit=False)
    sizes = [b - a for a, b in itertools.pairwise(result.times)]
    assert min(sizes) < 1 and sizes[-1] == 1
    assert all(b <= a or b == min(1, 2 * a) for a, b in itertools.pairwise(sizes))
    texts = [str(each.message) for each in told]
    assert "fails with dt = 1" in texts[0]
    assert re.search(r"of 20 steps failed and were taken smaller, down to dt = 0\.", texts[-1])
    assert len(texts) == 2
    with pytest.raises(IngotError, match="fails with dt = 1"):
        run(build(read_text(FAILING, moose=True)), tmp_path, jit=False, strict=True)


def test_a_stepper_that_adapts_may_fail_under_strict(tmp_path: Path) -> None:
    stepper = ["type=TensorSolveIterationAdaptiveDT", "dt=1", "min_iterations=0",
               "max_iterations=30"]  # fmt: skip
    overrides = [f"Executioner/TimeStepper/{each}" for each in stepper]
    made = build(read_text(FAILING, overrides=overrides, moose=True))
    with pytest.warns(IngotWarning, match="steps failed and were taken smaller"):
        assert run(made, tmp_path, jit=False, strict=True).steps == 20


def test_a_cut_step_grows_by_the_factors_of_the_file() -> None:
    stepper = ConstantDT(dt=1.0, growth_factor=3.0, cutback_factor_at_failure=0.1)
    assert stepper.retry(Progress(1, 0.0, 1.0)) == 0.1
    assert stepper.next(Progress(1, 0.0, 0.1)) == pytest.approx(0.3)
    assert stepper.next(Progress(1, 0.0, 0.5)) == 1.0


BLOWING_UP = FAILING.replace("if(t<0.5, 0.3*u^3, -u)", "exp(u^3)")
BLOWING_UP = BLOWING_UP.replace("SecantSolver", "ETDRK4Solver").replace("max_iterations = 12", "")


@pytest.mark.parametrize("jit", [False, True])
def test_a_run_that_becomes_nan_is_told_and_stops_under_strict(jit: bool, tmp_path: Path) -> None:
    made = build(read_text(BLOWING_UP, overrides=["Executioner/dt=0.01"], moose=True))
    with pytest.warns(IngotWarning, match=r"not finite: 'u' in 4 of 4 numbers") as told:
        result = run(made, tmp_path, jit=jit)
    assert result.steps == 20 and len(told) == 1
    with pytest.raises(
        IngotError, match=r"after step \d+, at time 0\.\d+, not finite: 'u' in 4 of 4"
    ):
        run(made, tmp_path, jit=jit, strict=True)


def test_a_run_that_becomes_nan_says_so_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nan.i").write_text(BLOWING_UP)
    assert status(["run", "nan.i", "--eager", "Executioner/dt=0.01"]) == 0
    assert "warning[not-finite]" in capsys.readouterr().err
    assert status(["run", "nan.i", "--eager", "--strict", "Executioner/dt=0.01"]) == 1
    assert "error[not-finite]" in capsys.readouterr().err
