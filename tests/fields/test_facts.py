"""Small inputs of the kinds that Marlin's tests have, against values that are known exactly."""

import math
from collections.abc import Callable

import pytest

from ingot.fields import Result

Simulate = Callable[..., Result]

SQUARE = """
[Domain]
  dim = 3
  nx = 16
  ny = 14
  nz = 12
  xmax = ${fparse 2*pi}
  ymax = ${fparse 4*pi}
  zmax = ${fparse 2*pi}
[]
[TensorComputes]
  [Initialize]
    [field]
      type = ParsedCompute
      buffer = field
      extra_symbols = true
      expression = 'sin(x) + sin(y) + sin(z)'
    []
    [spectrum]
      type = ForwardFFT
      buffer = spectrum
      input = field
    []
    [square]
      type = FFTGradientSquare
      buffer = square
      input = field
      factor = 2
    []
    [square_bar]
      type = FFTGradientSquare
      buffer = square_bar
      input = spectrum
      input_is_reciprocal = true
    []
    [miss]
      type = ParsedCompute
      buffer = miss
      inputs = 'square square_bar'
      extra_symbols = true
      expression = 'exact := cos(x)^2 + cos(y)^2 + cos(z)^2;
                    abs(square - 2*exact) + abs(square_bar - exact)'
    []
  []
[]
[Postprocessors]
  [miss]
    type = TensorIntegralPostprocessor
    buffer = miss
  []
  [square]
    type = TensorIntegralPostprocessor
    buffer = square
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
"""


def test_the_square_of_a_gradient_is_known(simulate: Simulate) -> None:
    values = simulate(SQUARE).values[-1]
    assert values["miss"] == pytest.approx(0.0, abs=1e-10)
    assert values["square"] == pytest.approx(2 * 1.5 * 16 * math.pi**3)


LOCALS = """
[Domain]
  dim = 1
  nx = 5
[]
[TensorBuffers]
  [slope]
  []
[]
[TensorComputes]
  [Initialize]
    [c]
      type = ConstantTensor
      buffer = c
      real = 3
    []
  []
  [Solve]
    [slope]
      type = ParsedCompute
      buffer = slope
      inputs = c
      expression = 'a := c^2; b := a*c; b + 2*a'
      derivatives = 'c c'
    []
  []
[]
[Postprocessors]
  [slope]
    type = TensorAveragePostprocessor
    buffer = slope
    execute_on = 'INITIAL TIMESTEP_END'
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
"""


def test_locals_are_differentiated_and_nothing_is_solved_at_first(simulate: Simulate) -> None:
    values = simulate(LOCALS).values
    assert [row["slope"] for row in values] == [0.0, 6 * 3 + 4]
    assert len(simulate(LOCALS, "Executioner/num_steps=0").values) == 1


ROUND_TRIP = """
[Domain]
  dim = 1
  nx = 10
  xmax = ${fparse 4*pi}
  ymax = ${fparse 4*pi}
[]
[TensorComputes]
  [Initialize]
    [start]
      type = ParsedCompute
      buffer = start
      extra_symbols = true
      expression = 'sin(x) + sin(y) + sin(z)'
    []
    [u]
      type = ParsedCompute
      buffer = u
      inputs = start
      expression = start
    []
    [none]
      type = ConstantReciprocalTensor
      buffer = none
      real = zero
      imaginary = zero
    []
  []
  [Solve]
    [u_bar]
      type = ForwardFFT
      buffer = u_bar
      input = u
    []
    [again]
      type = InverseFFT
      buffer = again
      input = u_bar
    []
  []
  [Postprocess]
    [miss]
      type = ParsedCompute
      buffer = miss
      inputs = 'u again start'
      expression = 'abs(u - again) + abs(u - start)'
    []
  []
[]
[TensorSolver]
  type = AdamsBashforthMoulton
  buffer = u
  reciprocal_buffer = u_bar
  linear_reciprocal = none
  nonlinear_reciprocal = none
[]
[Postprocessors]
  [miss]
    type = TensorIntegralPostprocessor
    buffer = miss
  []
  [evaluations]
    type = ComputeGroupExecutionCount
    compute_group = automatic_root_compute
  []
[]
[Problem]
  scalar_constant_names = 'zero'
  scalar_constant_values = '0'
[]
[Executioner]
  type = Transient
  num_steps = 4
[]
"""


@pytest.mark.parametrize(
    "sizes",
    [(10,), (11,), (10, 8), (9, 11), (10, 8, 12), (9, 13, 11)],
    ids=lambda sizes: " x ".join(map(str, sizes)),
)
def test_there_and_back_again_is_nothing(sizes: tuple[int, ...], simulate: Simulate) -> None:
    counts = (f"Domain/n{axis}={size}" for axis, size in zip("xyz", sizes, strict=False))
    values = simulate(ROUND_TRIP, f"Domain/dim={len(sizes)}", *counts).values
    assert [row["miss"] for row in values[1:]] == pytest.approx([0.0] * 4, abs=1e-10)
    assert [row["evaluations"] for row in values] == [0, 1, 2, 3, 4]


LAPLACIAN = """
[Domain]
  dim = 2
  nx = 80
  ny = 60
  xmin = -1
  ymin = -1
  zmin = -1
  parallel_mode = REAL_SPACE
  periodic_directions = 'X Y Z'
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ParsedCompute
      buffer = u
      extra_symbols = true
      expression = 'sin(pi*(x+0.5))*sin(pi*(y+0.5))'
    []
  []
  [Solve]
    [laplacian]
      type = FiniteDifferenceLaplacian
      buffer = laplacian
      input = u
    []
    [miss]
      type = ParsedCompute
      buffer = miss
      inputs = 'laplacian u'
      constant_names = 'square'
      constant_expressions = '3.141592653589793^2'
      expression = 'abs(laplacian + 2*square*u)'
    []
  []
[]
[Postprocessors]
  [miss]
    type = TensorExtremeValuePostprocessor
    buffer = miss
    value_type = MAX
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
"""
DEEP = (
    "Domain/dim=3", "Domain/nx=30", "Domain/ny=24", "Domain/nz=17",
    "TensorComputes/Initialize/u/expression='sin(pi*(x+0.5))*sin(pi*(y+0.5))*sin(pi*(z+0.5))'",
    "TensorComputes/Solve/miss/expression='abs(laplacian + 3*square*u)'",
)  # fmt: skip


@pytest.mark.parametrize(
    ("deep", "width", "largest"),
    [
        ((), 3, 0.014058256633884),
        ((), 5, 1.7308147992168e-05),
        (DEEP, 3, 0.20125391301873),
        (DEEP, 5, 0.0027053648562578),
    ],
)
def test_differences_miss_by_what_is_published(
    deep: tuple[str, ...], width: int, largest: float, simulate: Simulate
) -> None:
    chosen = f"TensorComputes/Solve/laplacian/stencil_width={width}"
    found = simulate(LAPLACIAN, *deep, chosen).values[-1]["miss"]
    assert found == pytest.approx(largest, rel=1e-8)


PLANE = """
[Domain]
  dim = 2
  nx = 40
  ny = 40
  xmax = 2
  ymax = 3
[]
[TensorComputes]
  [Initialize]
    [plane]
      type = ParsedCompute
      buffer = plane
      extra_symbols = true
      expression = -x+y+0.3
    []
    [plane_bar]
      type = ForwardFFT
      buffer = plane_bar
      input = plane
    []
  []
[]
[Postprocessors]
  [least]
    type = TensorExtremeValuePostprocessor
    buffer = plane
    value_type = MIN
    execute_on = INITIAL
  []
  [most]
    type = TensorExtremeValuePostprocessor
    buffer = plane
    value_type = max
    execute_on = INITIAL
  []
  [mean]
    type = TensorAveragePostprocessor
    buffer = plane
    execute_on = INITIAL
  []
  [whole]
    type = TensorIntegralPostprocessor
    buffer = plane
    execute_on = INITIAL
  []
  [whole_bar]
    type = ReciprocalIntegral
    buffer = plane_bar
    execute_on = INITIAL
  []
  [scaled]
    type = ParsedPostprocessor
    expression = 'a*mean + b'
    pp_names = mean
    constant_names = 'a b'
    constant_expressions = '2*3 a/2'
    execute_on = INITIAL
  []
[]
[Executioner]
  type = Transient
  num_steps = 0
[]
"""


def test_numbers_of_a_plane_are_those_published(simulate: Simulate) -> None:
    (values,) = simulate(PLANE).values
    published = {"least": -1.6375, "most": 3.2375, "mean": 0.8, "whole": 4.8, "whole_bar": 4.8}
    assert {name: values[name] for name in published} == pytest.approx(published)
    assert values["scaled"] == pytest.approx(6 * 0.8 + 3)


SHIFTED = """
[Domain]
  dim = 2
  nx = 4
  ny = 3
  xmin = 1
  xmax = 3
  ymax = 2
[]
[Functions]
  [cubic]
    type = ParsedFunction
    expression = 'x^3*y^2 + t'
  []
  [moved]
    type = ShiftedFunction
    function = cubic
    shift = '1 0.5 0'
    delta_t = 2
  []
  [miss]
    type = ParsedFunction
    expression = 'moved - ((x + 1)^3*(y + 0.5)^2 + t + 2)'
    symbol_names = moved
    symbol_values = moved
  []
[]
[Postprocessors]
  [whole]
    type = FunctionElementIntegral
    function = cubic
    execute_on = 'INITIAL TIMESTEP_END'
  []
  [miss]
    type = FunctionElementIntegral
    function = miss
  []
[]
[Executioner]
  type = Transient
  num_steps = 2
  dt = 0.5
[]
"""


def test_a_shifted_function_is_seen_from_elsewhere(simulate: Simulate) -> None:
    values = simulate(SHIFTED).values
    exact = (3**4 - 1) / 4 * 2**3 / 3
    assert [row["whole"] for row in values] == pytest.approx([exact, exact + 2, exact + 4])
    assert [row["miss"] for row in values] == pytest.approx([0.0] * 3, abs=1e-12)


def test_a_spectrum_may_be_looked_at_before_it_is_written(simulate: Simulate) -> None:
    # nothing has been solved at the start: all spectra are zeros over wavenumbers
    look = (
        "TensorComputes/Postprocess/field/type=InverseFFT",
        "TensorComputes/Postprocess/field/buffer=field",
        "TensorComputes/Postprocess/field/input=product",
        "TensorComputes/Postprocess/product/type=ParsedCompute",
        "TensorComputes/Postprocess/product/buffer=product",
        "TensorComputes/Postprocess/product/inputs='u_bar none'",
        "TensorComputes/Postprocess/product/expression='u_bar*(1 + none)'",
        "Postprocessors/least/type=TensorExtremeValuePostprocessor",
        "Postprocessors/least/buffer=field",
        "Postprocessors/least/value_type=MIN",
        "Postprocessors/least/execute_on='INITIAL TIMESTEP_END'",
    )
    values = simulate(ROUND_TRIP, "Domain/dim=2", "Domain/ny=7", *look).values
    assert values[0]["least"] == 0.0
    assert values[1]["least"] < -1.0
