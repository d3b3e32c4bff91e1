"""Numbers taken after steps."""

import math
from collections.abc import Callable

import pytest

from ingot.errors import IngotError, IngotWarning
from ingot.fields import Result

Simulate = Callable[..., Result]

INPUT = """
[Domain]
  dim = 1
  nx = 4
  xmax = 8
[]
[TensorComputes]
  [Initialize]
    [c]
      type = ParsedCompute
      buffer = c
      extra_symbols = true
      expression = 'x - 4'
    []
    [L]
      type = ReciprocalLaplacianFactor
      buffer = L
    []
    [cbar]
      type = ForwardFFT
      buffer = cbar
      input = c
    []
  []
[]
[Postprocessors]
  [ratio]
    type = ParsedPostprocessor
    expression = '2*a/high'
    pp_names = 'twice high'
    pp_symbols = 'a high'
  []
  [twice]
    type = ParsedPostprocessor
    expression = 'high*2 + one'
    pp_names = high
    constant_names = one
    constant_expressions = 1
  []
  [high]
    type = TensorExtremeValuePostprocessor
    buffer = c
    value_type = MAX
  []
  [mean]
    type = TensorAveragePostprocessor
    buffer = c
  []
  [whole]
    type = ReciprocalIntegral
    buffer = cbar
  []
  [stable]
    type = SemiImplicitCriticalTimeStep
    buffer = L
  []
  [dt]
    type = TimestepSize
  []
  [reynolds]
    type = ComputeReynoldsNumber
    buffer = c
    tau = 0.8
    diameter = D
  []
[]
[Problem]
  scalar_constant_names = D
  scalar_constant_values = 2
[]
[Executioner]
  type = Transient
  num_steps = 1
  dt = 0.25
[]
"""


def test_numbers_are_taken_and_made_of_others(simulate: Simulate) -> None:
    values = simulate(INPUT).values
    assert set(values[0].values()) == {0.0}
    found = values[1]
    assert found["high"] == 3.0
    assert found["twice"] == 7.0
    assert found["ratio"] == pytest.approx(14 / 3)
    assert found["mean"] == found["reynolds"] == found["whole"] == 0.0
    assert found["stable"] == pytest.approx(1 / (3.141592653589793 / 2) ** 2)
    assert found["dt"] == 0.25


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("Postprocessors/twice/pp_names=ratio", "made of each other: ratio <- twice <- ratio"),
        ("Postprocessors/twice/pp_names='high mean'", "there is no 'one' here"),
        ("Postprocessors/ratio/pp_symbols=a", "pp_symbols and pp_names"),
        ("Postprocessors/ratio/pp_names='twice hihg'", "uses the postprocessor 'hihg'"),
        ("Postprocessors/high/value_type=MID", "'value_type' should be one of MIN, MAX"),
        ("Postprocessors/high/execute_on=SOMETIMES", "'execute_on' should be one of INITIAL"),
        (
            "Postprocessors/n/type=ComputeGroupExecutionCount",
            "counts the group 'root', which is not",
        ),
        ("UserObjects/t/type=Terminator", "Terminator needs the option 'expression'"),
        ("UserObjects/t/type=Stop", "no type 'Stop' in [UserObjects]"),
    ],
)
def test_a_wrong_measure_is_told(override: str, message: str, simulate: Simulate) -> None:
    constants = ["Postprocessors/twice/constant_names="] if "mean" in override else []
    constants += ["Postprocessors/twice/constant_expressions="] if constants else []
    with pytest.raises(IngotError) as error:
        simulate(INPUT, override, *constants)
    assert message in str(error.value)


def test_a_histogram_needs_bins(simulate: Simulate) -> None:
    histogram = {"type": "TensorHistogram", "buffer": "c", "min": "1", "max": "0", "bins": "3"}
    overrides = [f"VectorPostprocessors/h/{key}={value}" for key, value in histogram.items()]
    with pytest.raises(IngotError, match="there are no bins between min = 1 and max = 0"):
        simulate(INPUT, *overrides)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("[only]\n[d]\ntype=ConstantTensor\nbuffer=d\n[]\n[]", "one of these: 'only'"),
        ("[d]\ntype=ConstantTensor\nbuffer=d\n[]", "put the computes of [Solve] into a group"),
    ],
)
def test_a_count_of_no_group_says_which_there_are(text: str, fix: str, simulate: Simulate) -> None:
    whole = f"""
[Domain]
  dim = 1
  nx = 4
[]
[TensorComputes]
  [Solve]
    {text}
  []
[]
[Postprocessors]
  [n]
    type = ComputeGroupExecutionCount
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
"""
    with pytest.raises(IngotError) as error:
        simulate(whole)
    assert fix in str(error.value)


def test_a_nan_that_was_cast_to_an_integer_is_told(simulate: Simulate) -> None:
    text = """
[Domain]
  dim = 1
  nx = 4
[]
[TensorComputes]
  [Initialize]
    [r]
      type = ParsedCompute
      buffer = r
      expression = 'sqrt(x - 0.5)'
      extra_symbols = true
      is_integer = true
    []
  []
[]
[Postprocessors]
  [low]
    type = TensorExtremeValuePostprocessor
    buffer = r
    value_type = MIN
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
"""
    with pytest.warns(IngotWarning, match="not finite: 'r' in 2 of 4 numbers"):
        simulate(text)


def test_whole_numbers_have_a_mean_and_an_integral(simulate: Simulate) -> None:
    blocks = "".join(
        f"[{name}]\ntype = {kind}\nbuffer = n\n{more}\n[]\n"
        for name, kind, more in (
            ("mean", "TensorAveragePostprocessor", ""),
            ("whole", "TensorIntegralPostprocessor", ""),
            ("most", "TensorExtremeValuePostprocessor", "value_type = MAX"),
            ("change", "TensorIntegralChangePostprocessor", ""),
            ("speed", "TensorInterfaceVelocityPostprocessor", ""),
            ("number", "ComputeReynoldsNumber", "tau = 1\ndiameter = 2"),
        )
    )
    text = f"""[Domain]
dim = 2
nx = 3
ny = 4
xmax = 2
[]
[TensorComputes]
[Solve]
[n]
type = ParsedCompute
buffer = n
expression = 'x > 1 & t > 0.5'
extra_symbols = true
is_integer = true
expand = REAL
[]
[]
[]
[Postprocessors]
{blocks}[]
[Executioner]
type = Transient
num_steps = 3
[]
"""
    last = simulate(text).values[2]
    # the cells that change lie where the field is level
    assert last == pytest.approx(
        {"mean": 1 / 3, "whole": 2 / 3, "most": 1, "change": 2 / 3, "speed": 0, "number": 4}
    )


WAVE = """
[Domain]
  dim = 2
  nx = 32
  ny = 32
  xmax = 8
  ymax = 8
[]
[Problem]
  marlin_compatible = {compatible}
[]
[TensorComputes]
  [Solve]
    [c]
      type = ParsedCompute
      buffer = c
      extra_symbols = true
      expression = 'sin(2*pi*({along})/8 - 0.3*t)'
    []
    [cbar]
      type = ForwardFFT
      buffer = cbar
      input = c
    []
  []
[]
[Postprocessors]
  [v]
    type = {kind}
    buffer = {buffer}
  []
[]
[Executioner]
  type = Transient
  num_steps = 3
  dt = 1e-3
[]
"""


@pytest.mark.parametrize("along", [(1, 0), (1, 1), (2, -1), (0, 3)])
def test_level_lines_move_across_themselves(along: tuple[int, int], simulate: Simulate) -> None:
    m, n = along
    given = {"along": f"{m}*x + {n}*y", "buffer": "c",
             "kind": "TensorInterfaceVelocityPostprocessor\ngradient_threshold = 0.3"}  # fmt: skip
    speed = 0.3 * 8 / (2 * math.pi)
    found = simulate(WAVE.format(compatible="false", **given)).values[-1]["v"]
    assert found == pytest.approx(speed / math.hypot(m, n), rel=1e-3)
    with pytest.warns(IngotWarning, match="speeds along the axes are added up"):
        found = simulate(WAVE.format(compatible="true", **given)).values[-1]["v"]
    assert found == pytest.approx(speed * math.hypot(*(1 / k for k in along if k)), rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "buffer", "told"),
    [
        ("ReciprocalIntegral", "c", "'v' reads 'c', which is a field, not a spectrum"),
        ("SemiImplicitCriticalTimeStep", "c", "which is a field, not a spectrum"),
        ("TensorIntegralChangePostprocessor", "cbar", "'cbar', which is a spectrum, not a field"),
    ],
)
def test_a_measure_of_the_other_kind_is_told(
    kind: str, buffer: str, told: str, simulate: Simulate
) -> None:
    text = WAVE.format(compatible="false", along="x", kind=kind, buffer=buffer)
    with pytest.warns(IngotWarning, match=told):
        simulate(text)
