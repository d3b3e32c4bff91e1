"""What only the root reads is private; what a solver, an output or a history reads is not."""

import pytest

from ingot.fields import build
from ingot.fields.jit.planner import private_of
from ingot.hit import read_text

INPUT = """
[Domain]
  dim = 1
  nx = 8
[]
[TensorComputes]
  [Solve]
    [mu]
      type = ParsedCompute
      buffer = mu
      expression = 'c^3 - c + last'
      inputs = 'c last'
    []
    [last]
      type = ParsedCompute
      buffer = last
      expression = '2*seed'
      inputs = seed
    []
    [mubar]
      type = ForwardFFT
      buffer = mubar
      input = mu
    []
    [rate]
      type = ParsedCompute
      buffer = rate
      expression = '-k2*mubar'
      inputs = mubar
      extra_symbols = true
    []
    [cbar]
      type = ForwardFFT
      buffer = cbar
      input = c
    []
  []
[]
[TensorSolver]
  type = {solver}
  buffer = c
  reciprocal_buffer = cbar
  linear_reciprocal = 0
  nonlinear_reciprocal = rate
  {options}
[]
[Postprocessors]
  [mean]
    type = TensorAveragePostprocessor
    buffer = {shown}
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
  dt = 0.1
[]
"""


def private(solver: str = "AdamsBashforthMoulton", options: str = "", shown: str = "c") -> set[str]:
    text = INPUT.format(solver=solver, options=options, shown=shown)
    return set(private_of(build(read_text(text, moose=True))))


def test_old_rates_are_kept_and_the_rest_is_private() -> None:
    assert private() == {"mu", "mubar", "cbar", "last"}
    assert private(options="predictor_order = 1\ncorrector_order = 1") == {
        "mu", "mubar", "cbar", "last", "rate",
    }  # fmt: skip


def test_what_is_measured_is_not_private() -> None:
    assert private(shown="mu") == {"mubar", "cbar", "last"}


@pytest.mark.parametrize("how", ["corrector_steps = 1", "ETDRK4Solver", "SecantSolver"])
def test_solvers_that_look_at_buffers_between_evaluations_find_them(how: str) -> None:
    found = private(options=how) if "=" in how else private(how)
    assert found == {"mu", "mubar", "last"}
