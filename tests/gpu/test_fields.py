"""Simulations on a GPU give what they give on the CPU.

Runs under pytest, and where that is not installed as `PYTHONPATH=src python3` and this file.
"""

import sys
import tempfile
from itertools import product
from typing import Any
from unittest import SkipTest

import torch

from ingot.fields import build, run
from ingot.hit import read_text

WITHOUT = "needs a CUDA device, which torch does not see here"
LIMIT = 1e-10

FLAT = """
[Domain]
  dim = 2
  nx = 24
  ny = 18
  xmax = 4
  ymax = 3
[]
[TensorComputes]
  [Initialize]
    [start]
      type = RandomTensor
      buffer = c
      min = 0.4
      max = 0.6
      seed = 3
    []
    [mobility]
      type = ReciprocalLaplacianFactor
      buffer = mobility
      factor = 0.5
    []
    [stiffness]
      type = ReciprocalLaplacianSquareFactor
      buffer = stiffness
      factor = -0.002
    []
  []
  [Solve]
    [potential]
      type = ParsedCompute
      buffer = potential
      inputs = c
      expression = 'c^2*(1 - c)^2'
      derivatives = c
    []
    [potential_bar]
      type = ForwardFFT
      buffer = potential_bar
      input = potential
    []
    [rate]
      type = ParsedCompute
      buffer = rate
      inputs = 'mobility potential_bar'
      expression = 'mobility*potential_bar'
    []
    [c_bar]
      type = ForwardFFT
      buffer = c_bar
      input = c
    []
  []
[]
[TensorSolver]
  {solver}
  buffer = c
  reciprocal_buffer = c_bar
  linear_reciprocal = stiffness
  nonlinear_reciprocal = rate
  substeps = 5
[]
[Postprocessors]
  [mass]
    type = TensorIntegralPostprocessor
    buffer = c
  []
  [steepest]
    type = TensorExtremeValuePostprocessor
    buffer = c
    value_type = MAX
  []
[]
[Executioner]
  type = Transient
  dt = 0.01
  num_steps = 6
[]
"""
DEEP = ("Domain/dim=3", "Domain/nx=12", "Domain/ny=10", "Domain/nz=9", "Domain/zmax=2")
MULTISTEP = "type = AdamsBashforthMoulton\n  predictor_order = 3"
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "2D": (MULTISTEP, ()),
    "3D": (MULTISTEP, DEEP),
    "2D corrected": (MULTISTEP, ("TensorSolver/corrector_steps=1",)),
    "2D exponential": ("type = ETDRK4Solver", ()),
    "3D secant": ("type = SecantSolver", DEEP),
}


def fields(case: str, device: str, *, jit: bool) -> tuple[torch.Tensor, dict[str, float]]:
    """The last field of a case, and its last numbers."""
    solver, overrides = CASES[case]
    text = FLAT.replace("{solver}", solver)
    made = build(read_text(text, overrides=overrides, moose=True))
    with tempfile.TemporaryDirectory() as folder:
        result = run(made, folder, jit=jit, device=device)
    field = result.state.buffers["c"]
    assert field.device.type == device
    assert field.dtype == torch.float64
    return field.cpu(), result.values[-1]


def check(case: str, *, jit: bool) -> float:
    """The largest difference between the GPU and the CPU, which is within the limit."""
    expected, numbers = fields(case, "cpu", jit=False)
    found, measured = fields(case, "cuda", jit=jit)
    worst = float((found - expected).abs().max())
    assert worst < LIMIT, f"{case}: fields differ by {worst:.2e}"
    for name, value in numbers.items():
        assert abs(measured[name] - value) < LIMIT, f"{case}: {name} is {measured[name]}"
    return worst


def main() -> int:
    """Check all cases, a line each; 1 where one fails."""
    if not torch.cuda.is_available():
        print(f"skipped: {WITHOUT}")
        return 0
    failed = 0
    for case, jit in product(CASES, (False, True)):
        name = f"{case}, {'compiled' if jit else 'direct'}"
        try:
            print(f"{name}: passed, {check(case, jit=jit):.1e}")
        except Exception as error:  # the others are still of interest
            failed = 1
            print(f"{name}: failed: {type(error).__name__}: {error}")
    return failed


def pytest_generate_tests(metafunc: Any) -> None:
    """Every case, direct and compiled."""
    metafunc.parametrize("case", CASES)
    metafunc.parametrize("jit", [False, True], ids=["direct", "compiled"])


def test_a_gpu_gives_what_the_cpu_gives(case: str, jit: bool) -> None:
    if not torch.cuda.is_available():
        raise SkipTest(WITHOUT)
    check(case, jit=jit)


if __name__ == "__main__":
    sys.exit(main())
