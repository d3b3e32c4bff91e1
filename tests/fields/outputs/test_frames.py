"""What a run writes for viewers is read back as it was."""

from pathlib import Path

import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields import build, run
from ingot.fields.outputs.frames import read_frames
from ingot.hit import read_text

INPUT = """
[Domain]
  dim = 3
  nx = 2
  ny = 3
  nz = 4
  ymin = -1
  zmax = 2
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ParsedCompute
      buffer = u
      extra_symbols = true
      expression = 'x + 10*y + 100*z'
    []
    [v]
      type = GradientTensor
      buffer = v
      input = u
    []
  []
[]
[TensorOutputs]
  [fields]
    type = XDMFTensorOutput
    buffer = 'u v'
  []
[]
[Executioner]
  type = Transient
  num_steps = 5
  dt = 0.5
[]
"""


@pytest.mark.parametrize(
    "overrides",
    [(), ("TensorOutputs/fields/enable_hdf5=true",), ("Domain/parallel_mode=FFT_SLAB",)],
    ids=" ".join,
)
def test_fields_are_read_back(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    result = run(build(read_text(INPUT, overrides=overrides, moose=True)), tmp_path)
    frames = read_frames(tmp_path)
    assert frames.names == ("u", "v_x", "v_y", "v_z")
    assert frames.times == (0, 0.5, 1, 1.5, 2, 2.5)
    assert frames.lower == (0, -1, 0) and frames.upper == pytest.approx((1, 1, 2))
    for name, buffer in {
        "u": result.state.buffers["u"],
        "v_z": result.state.buffers["v"][..., 2],
    }.items():
        array = frames.array(name, 3)
        assert array.shape == (4, 3, 2)
        assert np.array_equal(array.transpose(2, 1, 0), buffer.numpy())


@pytest.mark.parametrize(
    ("asked", "times"),
    [("INITIAL TIMESTEP_END", (0, 1, 2)), ("TIMESTEP_END FINAL", (1, 2, 2.5)), ("FINAL", (2.5,))],
)
def test_some_steps_are_written(tmp_path: Path, asked: str, times: tuple[float, ...]) -> None:
    values = ("time_step_interval=2", f"execute_on='{asked}'")
    overrides = [f"TensorOutputs/fields/{value}" for value in values]
    run(build(read_text(INPUT, overrides=overrides, moose=True)), tmp_path)
    assert read_frames(tmp_path).times == times


def test_an_interval_of_no_steps_is_told() -> None:
    overrides = ["TensorOutputs/fields/time_step_interval=0"]
    with pytest.raises(
        IngotError, match="'time_step_interval' should be a whole number of at least 1"
    ):
        build(read_text(INPUT, overrides=overrides, moose=True))
