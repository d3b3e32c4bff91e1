"""What is wrong with an input file is told at its line, all at once."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingot.errors import IngotError, IngotWarning
from ingot.fields import build, prepared
from ingot.hit import read_text

GOOD = """
[Domain]
  dim = 2
  nx = 4
  ny = 4
[]
[TensorComputes]
  [Initialize]
    [c]
      type = ConstantTensor
      buffer = c
      real = 1
    []
  []
  [Solve]
    [root]
      [mu]
        type = ParsedCompute
        buffer = mu
        inputs = c
        expression = 'c^2*(c-1)^2'
        derivatives = c
      []
      [cbar]
        type = ForwardFFT
        buffer = cbar
        input = c
      []
      [rate]
        type = ForwardFFT
        buffer = rate
        input = mu
      []
    []
  []
[]
[TensorSolver]
  type = ForwardEulerSolver
  root_compute = root
  buffer = c
  reciprocal_buffer = cbar
  time_derivative_reciprocal = rate
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
"""


def told(*overrides: str, text: str = GOOD) -> str:
    with pytest.raises(IngotError) as error:
        build(read_text(text, "input.i", overrides, moose=True))
    return str(error.value)


def test_a_simulation_prints_its_steps_in_order() -> None:
    made = build(read_text(GOOD, moose=True))
    assert "  mu: c -> mu\n  cbar: c -> cbar\n  rate: mu -> rate" in str(made)


def test_all_problems_are_told_at_once() -> None:
    text = GOOD.replace("nx = 4", "nx = four").replace("input = mu", "inptu = mu")
    found = told(text=text.replace("type = ConstantTensor", "type = ConstnatTensor"))
    assert "'nx' should be a number, but is 'four'" in found
    assert "no type 'ConstnatTensor' in [TensorComputes/Initialize]" in found
    assert "did you mean 'ConstantTensor'?" in found
    assert "ForwardFFT has no option 'inptu'" in found
    assert "ForwardFFT needs the option 'input'" in found
    assert "input.i:4:8 in [Domain]" in found


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("Domain/xmax=0", "xmax = 0 does not lie above xmin = 0"),
        ("Domain/nx=2.5", "'nx' should be a whole number"),
        ("Domain/parallel_mode=SLAB", "should be one of NONE, REAL_SPACE, FFT_SLAB, FFT_PENCIL"),
        ("Domain/cells=3", "[Domain] has no option 'cells'"),
        ("Domian/dim=3", "there is no section 'Domian'"),
        ("TensorComputes/Solves/a/type=ForwardFFT", "[TensorComputes] has no sub-block 'Solves'"),
        ("TensorSolver/root_compute=roots", "[Solve] has no compute 'roots'"),
        ("TensorSolver/reciprocal_buffer='a b'", "buffer has 1, reciprocal_buffer has 2"),
        ("TensorSolver/substeps=0", "'substeps' should be a whole number of at least 1"),
        ("TensorSolver/type=Euler", "no type 'Euler' in [TensorSolver]"),
        ("TensorComputes/Solve/root/mu/expression='c*(d-1)'", "there is no 'd' here; known are: c"),
        ("TensorComputes/Solve/root/mu/derivatives=b", "cannot differentiate by 'b'"),
        ("TensorComputes/Solve/root/mu/inputs='c c'", "'c' is given 2 times"),
        ("TensorComputes/Initialize/c/real=alpha", "Constant alpha was requested but never"),
        ("GlobalParams/constants=1", "no block of this file has an option 'constants'"),
        ("Problem/scalar_constant_names='a b'", "there are 2 scalar_constant_names and 0 values"),
        ("Executioner/dt=fast", "'dt' should be a number, but is 'fast'"),
        ("Executioner/TimeStepper/type=Growing", "no type 'Growing' in [Executioner]"),
        ("TensorOutputs/x/type=XDMFTensorOutput", "XDMFTensorOutput needs the option 'buffer'"),
        ("Postprocessors/m/type=TensorExtremeValuePostprocessor", "needs the option 'value_type'"),
        ("Postprocessors/m/type=ParsedPostprocessor", "needs the option 'expression'"),
        ("Outputs/csv=maybe", "'csv' should be true or false, but is 'maybe'"),
        ("Mesh/type=GeneratedMesh", "a [Mesh] block needs mesh_mode = MANUAL, not DUMMY"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_told(override: str, message: str) -> None:
    assert message in told(override)


def test_a_constant_does_not_take_the_place_of_an_input() -> None:
    mu = "TensorComputes/Solve/root/mu"
    found = told(f"{mu}/constant_names=c", f"{mu}/constant_expressions=4")
    assert "'c' is given 2 times" in found


def test_several_missing_constants_are_told_together() -> None:
    options = ("TensorComputes/Initialize/z/type=ConstantReciprocalTensor",
               "TensorComputes/Initialize/z/buffer=z", "TensorComputes/Initialize/z/real=zero",
               "TensorComputes/Initialize/z/imaginary=null")  # fmt: skip
    assert "Constants null, zero were requested but never declared" in told(*options)


def test_a_reserved_name_is_told() -> None:
    found = told("TensorComputes/Solve/root/mu/extra_symbols=true",
                 "TensorComputes/Solve/root/mu/constant_names=pi",
                 "TensorComputes/Solve/root/mu/constant_expressions=3")  # fmt: skip
    assert "'pi' has a meaning of its own where extra_symbols = true" in found


def test_computes_that_wait_for_each_other_are_told() -> None:
    found = told("TensorComputes/Solve/root/mu/inputs='c rate'")
    assert "these computes wait for each other" in found


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("TensorComputes/Solve/root/cbar/input=cc",
         "'cbar' reads 'cc', which nothing writes: it holds zeros"),
        ("TensorComputes/Solve/root/cbar/input=cc", "did you mean 'c'?"),
        ("TensorSolver/buffer=cc", "moves 'cc', which nothing reads"),
        ("TensorComputes/Initialize/c/buffer=d", "moves 'c', which nothing starts"),
        ("Postprocessors/m/type=TensorAveragePostprocessor Postprocessors/m/buffer=muu",
         "'m' reads 'muu', which nothing writes"),
        ("TensorOutputs/x/type=XDMFTensorOutput TensorOutputs/x/buffer=muu",
         "[TensorOutputs] reads 'muu', which nothing writes"),
    ],
)  # fmt: skip
def test_a_buffer_that_nothing_writes_is_told(override: str, message: str, tmp_path: Path) -> None:
    made = build(read_text(GOOD, overrides=override.split(), moose=True))
    with pytest.warns(IngotWarning) as told_of:
        prepared(made, tmp_path)
    assert any(message in str(each.message) for each in told_of)
    with pytest.raises(IngotError, match=re.escape(message)):
        prepared(made, tmp_path, strict=True)


def test_nothing_is_told_of_a_file_that_names_its_buffers_right(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared(build(read_text(GOOD, moose=True)), tmp_path, strict=True)


def test_lists_of_a_solver_in_two_orders_are_told(tmp_path: Path) -> None:
    text = GOOD.replace("[Solve]", """[Solve]
    [dbar]
      type = ForwardFFT
      buffer = dbar
      input = d
    []""").replace("[Initialize]", """[Initialize]
    [d]
      type = ConstantTensor
      buffer = d
    []""")  # fmt: skip
    lists = ["buffer='c d'", "reciprocal_buffer='dbar cbar'", "root_compute=''",
             "time_derivative_reciprocal='rate rate'"]  # fmt: skip
    made = build(read_text(text, overrides=[f"TensorSolver/{each}" for each in lists], moose=True))
    with pytest.raises(IngotError, match="'dbar' is the transform of 'd', and moves 'c'"):
        prepared(made, tmp_path, strict=True)


def test_a_group_may_stay_out_of_compiled_sequences() -> None:
    off = "TensorComputes/Solve/root/enable_jit=false"
    steps = build(read_text(GOOD, overrides=[off], moose=True)).root.steps
    assert {step.reason for step in steps} == {"[root] has enable_jit = false"}
    assert all(step.jit for step in build(read_text(GOOD, moose=True)).root.steps)


def test_what_is_looked_at_from_outside_is_known(tmp_path: Path) -> None:
    look = ("Postprocessors/m/type=TensorAveragePostprocessor", "Postprocessors/m/buffer=mu")
    assert build(read_text(GOOD, overrides=look, moose=True)).observed == {"mu"}


def test_a_box_along_one_axis_ignores_what_it_must_be_given(simulate: Callable[..., Any]) -> None:
    text = """
    [Domain]
      dim = 1
      nx = 4
    []
    [TensorComputes/Initialize/u]
      type = SmoothRectangleCompute
      buffer = u
      x1 = 0.2
      x2 = 0.7
      y1 = 5
      y2 = 6
    []
    """
    assert simulate(text).state.buffers["u"].tolist() == [0, 1, 1, 0]
