"""Hostile inputs: whatever is wrong with a file is told as a problem of it, never a traceback."""

from pathlib import Path

import pytest

from ingot.cli.main import status

INPUT = (Path(__file__).parent / "inputs" / "every_compute.i").read_text()
MU = "TensorComputes/Solve/mu"
X = "Postprocessors/x"
OUT = "TensorOutputs/x"
Captured = pytest.CaptureFixture[str]


def found(text: str, overrides: list[str], tmp_path: Path, capsys: Captured) -> str:
    """What is told of a run that fails; it may be told by nothing but problems."""
    file = tmp_path / "wrong.i"
    file.write_text(text)
    assert status(["run", str(file), "--eager", *overrides]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["Domain/nx=0"], "'nx' should be a whole number of at least 1"),
        (["Domain/nx=1e6", "Domain/ny=1e6"], "the fields of 1000000 x 1000000 cells take at least"),
        (["Domain/nx=1e30"], "at most 2147483647, but is '1e30'"),
        (["Domain/xmax=nan"], "'xmax' should be a finite number, but is 'nan'"),
        (["Domain/xmax=inf"], "'xmax' should be a finite number, but is 'inf'"),
        (["Domain/dim=1", "Domain/parallel_mode=FFT_SLAB"], "FFT_SLAB cuts no box of dim = 1"),
        (["Domain/parallel_mode=FFT_PENCIL"], "FFT_PENCIL cuts no box of dim = 2"),
        (["Domain/ny=1", "Domain/parallel_mode=FFT_SLAB"],
         "ny = 1 rows cannot be shared among 2 ranks"),
        (["Domain/device_names=cpu cpu", "Domain/device_weights=1 0",
          "Domain/parallel_mode=FFT_SLAB"], "but holds '0'"),
        (["Domain/device_names=gpu"], "'gpu' is no device"),
        (["TensorComputes/Solve/steep/type=FFTGradient", "TensorComputes/Solve/steep/buffer=steep",
          "TensorComputes/Solve/steep/input=c", "TensorComputes/Solve/steep/direction=Z"],
         "a box of dim = 2 has no axis Z"),
        (["Domain/parallel_mode=REAL_SPACE", "Domain/periodic_directions=X Y"],
         "parallel_mode = REAL_SPACE has no Fourier transform"),
        (["Executioner/dt=nan"], "'dt' should be a finite number above 0, but is 'nan'"),
        (["Executioner/dt=0"], "'dt' should be a finite number above 0, but is '0'"),
        (["Executioner/num_steps=-1"], "'num_steps' should be a whole number of at least 0"),
        (["Executioner/end_time=nan"], "'end_time' should be a finite number, but is 'nan'"),
        (["Executioner/TimeStepper/type=IterationAdaptiveDT", "Executioner/TimeStepper/dt=1",
          "Executioner/TimeStepper/growth_factor=nan"],
         "'growth_factor' should be a finite number of at least 1, but is 'nan'"),
        (["Executioner/TimeStepper/type=TensorSolveIterationAdaptiveDT",
          "Executioner/TimeStepper/dt=1", "Executioner/TimeStepper/min_iterations=1",
          "Executioner/TimeStepper/max_iterations=2",
          "Executioner/TimeStepper/timestep_limiting_postprocessor=totl"],
         "did you mean 'total'?"),
        (["TensorSolver/buffer=''", "TensorSolver/reciprocal_buffer=''",
          "TensorSolver/linear_reciprocal=''", "TensorSolver/nonlinear_reciprocal=''"],
         "AdamsBashforthMoulton has no field to move"),
        (["TensorSolver/type=BroydenSolver", "TensorSolver/max_iterations=0"],
         "'max_iterations' should be a whole number of at least 1"),
        (["TensorSolver/nonlinear_reciprocal=c"],
         "nonlinear_reciprocal names 'c', which is a field, not a spectrum"),
        (["TensorSolver/linear_reciprocal=mu"],
         "linear_reciprocal names 'mu', which is a field, not a spectrum"),
        (["TensorSolver/buffer=cbar"], "buffer names 'cbar', which is a spectrum, not a field"),
        (["TensorSolver/reciprocal_buffer=stiffness"],
         "reciprocal_buffer names 'stiffness', which [Solve] does not compute anew"),
        (["TensorSolver/reciprocal_buffer=c_bar"], "did you mean 'cbar'?"),
        (["Executioner/dtmin=2", "Executioner/dtmax=1"],
         "dtmin = 2 does not lie below dtmax = 1"),
        (["Executioner/start_time=2", "Executioner/end_time=1"],
         "start_time = 2 does not lie below end_time = 1"),
        (["Executioner/end_time=-1"], "start_time = 0 does not lie below end_time = -1"),
        (["Executioner/TimeStepper/type=TensorSolveIterationAdaptiveDT",
          "Executioner/TimeStepper/dt=1", "Executioner/TimeStepper/min_iterations=5",
          "Executioner/TimeStepper/max_iterations=2"],
         "min_iterations = 5 lies above max_iterations"),
        ([f"{MU}/inputs=mubar", f"{MU}/expression=mubar", f"{MU}/derivatives=''"],
         "these computes wait for each other: mu <- mubar <- mu"),
        ([f"{MU}/expression=0.1*c^^2"], "line 1, column 7: a value was expected, but here is '^'"),
        ([f"{MU}/expression={'(' * 3000}c{')' * 3000}"], "it is nested too deeply"),
        ([f"{MU}/expression=FFT(c)"], "FFT cannot be differentiated"),
        ([f"{MU}/constant_names=a", f"{MU}/constant_expressions=b"],
         "'constant_expressions' is not understood: line 1, column 1: there is no 'b' here"),
        ([f"{MU}/constant_names=a", f"{MU}/constant_expressions=(-1)^0.5"], "'a' is not a number"),
        ([f"{MU}/expand=RECIPROCAL"], "'mu' cannot be computed: The expanded size"),
        (["TensorComputes/Solve/mubar/input=cbar"],
         "'cbar' is a spectrum of 8 x 4"),
        ([f"{X}/type=TensorAveragePostprocessor", f"{X}/buffer=cbar"], "'x' cannot be computed"),
        ([f"{X}/type=ParsedPostprocessor", f"{X}/expression=a*total", f"{X}/pp_names=total",
          f"{X}/constant_names=a", f"{X}/constant_expressions=2*"],
         "'constant_expressions' is not understood: line 1, column 3: a value was expected"),
        (["VectorPostprocessors/histogram/buffer=cbar"], "'histogram' cannot be computed"),
        ([f"{OUT}/type=XDMFTensorOutput", f"{OUT}/buffer=cbar"],
         "'cbar' is a spectrum, which cannot be written as a field"),
        (["Outputs/file_base=wrong.i/out"], "cannot be written: "),
        (["Outputs/cp/type=Checkpoint", "Outputs/cp/time_step_interval=0"],
         "'time_step_interval' should be a whole number of at least 1"),
        (["Outputs/checkpoint=true", "Outputs/cp/type=Checkpoint"],
         "two checkpoints are stored in one folder"),
        (["Functions/far/type=ShiftedFunction", "Functions/far/function=wave",
          "Functions/far/shift=1 2"], "'shift' has 2 entries, not 3"),
        (["TensorBuffers/c/value_dimensions=-1"], "'value_dimensions' should be a whole"),
    ],
    ids=lambda each: None if isinstance(each, str) else " ".join(each)[:60],
)  # fmt: skip
def test_a_hostile_option_is_told(
    overrides: list[str], message: str, tmp_path: Path, capsys: Captured
) -> None:
    assert message in found(INPUT, overrides, tmp_path, capsys)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type = ForwardFFT", "type = ForwardFTT", "did you mean 'ForwardFFT'?"),
        ("      type = ForwardFFT\n", "", "[TensorComputes/Solve/mubar] has no option 'buffer'"),
        ("[Executioner]", "[TensorSolver]\n  type = ForwardEulerSolver\n[]\n[Executioner]",
         "'type' is already set on line "),
        ("  [Solve]\n", "  [Solve]\n    [g]\n      computes = g\n    []\n",
         "the group 'g' contains itself"),
        ("  csv = true\n[]\n", "  csv = true\n", "this block is not closed"),
    ],
)  # fmt: skip
def test_a_hostile_block_is_told(
    old: str, new: str, message: str, tmp_path: Path, capsys: Captured
) -> None:
    assert message in found(INPUT.replace(old, new, 1), [], tmp_path, capsys)
