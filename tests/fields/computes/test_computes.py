"""Computes against formulas."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ingot.catalog import laws_of
from ingot.errors import IngotError
from ingot.fields import Result, build, run, run_file, space
from ingot.fields.computes.basic import ConstantReciprocalTensor, RandomTensor
from ingot.fields.computes.boundary import (
    ReciprocalAllenCahn,
    ReciprocalMatDiffusion,
    region,
    region_slopes,
)
from ingot.fields.computes.models import LibtorchGibbsEnergy, load_model
from ingot.fields.computes.spectral import (
    DeAliasingTensor,
    FiniteDifferenceLaplacian,
    ReciprocalLaplacianFactor,
    ReciprocalLaplacianSquareFactor,
    SwiftHohenbergLinear,
)
from ingot.hit import read, read_text

Simulate = Callable[..., Result]
TWO_PI = (2 * math.pi,) * 3


def test_random_numbers_are_those_of_torch() -> None:
    found = RandomTensor(space((3, 4)), min=0.44, max=0.56, seed=7)
    torch.manual_seed(7)
    torch.testing.assert_close(found, torch.rand(3, 4, dtype=torch.float64) * (0.56 - 0.44) + 0.44)


def test_a_constant_spectrum_is_its_number_to_the_last_digit() -> None:
    found = ConstantReciprocalTensor(space((3, 4)), real=0.1, imaginary=-0.7)
    assert (found == complex(0.1, -0.7)).all()


def test_every_slab_draws_the_same_random_numbers() -> None:
    found = RandomTensor(space((3, 4), slabs=(2, 2)), min=0.0, max=1.0, seed=7)
    assert torch.equal(found[:, :2], found[:, 2:])
    torch.manual_seed(7)
    assert torch.equal(found[:, :2], torch.rand(3, 2, dtype=torch.float64))


def test_operators_on_spectra_are_those_of_a_wave() -> None:
    box = space((8, 8), upper=TWO_PI)
    x, y, _ = box.axes
    wave = torch.sin(2 * x) * torch.cos(y)  # k^2 = 5
    spectrum = box.forward(wave)
    for operator, factor in (
        (ReciprocalLaplacianFactor(box, factor=0.2), -5 * 0.2),
        (ReciprocalLaplacianSquareFactor(box, factor=0.2), 25 * 0.2),
        (SwiftHohenbergLinear(box, r=0.1, alpha=2.0), 0.1 - 4 * 16),
    ):
        torch.testing.assert_close(box.inverse(operator * spectrum), factor * wave)


@pytest.mark.parametrize(("width", "order"), [("3", 2), ("5", 4)])
def test_differences_have_their_order(width: str, order: int) -> None:
    errors = []
    for n in (16, 32):
        box = space((n, n), upper=TWO_PI)
        wave = torch.sin(box.axes[0]) * torch.sin(box.axes[1])
        found = FiniteDifferenceLaplacian(wave, box, factor=3.0, stencil_width=width)  # type: ignore[reportArgumentType]
        errors.append(float((found + 6 * wave).abs().max()))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


def test_filters_cut_high_wavenumbers() -> None:
    box = space((12, 12), upper=TWO_PI)
    sharp = DeAliasingTensor(box, method="SHARP")
    k = torch.maximum(box.waves[0].abs(), box.waves[1].abs())
    assert torch.equal(sharp == 1, k <= 4)
    smooth = DeAliasingTensor(box, method="HOULI", p=16.0, alpha=36.0)
    expected = -36 * ((box.waves[0].abs() / 6) ** 16 + (box.waves[1].abs() / 6) ** 16)
    torch.testing.assert_close(smooth, torch.exp(expected))


def test_diffusion_without_a_boundary_is_a_laplacian() -> None:
    box = space((8, 8), upper=TWO_PI)
    wave, psi = torch.sin(box.axes[0]) * torch.sin(2 * box.axes[1]), box.full(1.0)
    found = ReciprocalMatDiffusion(wave, box.full(3.0), psi, box, prepared=region_slopes(psi, box))
    torch.testing.assert_close(box.inverse(found), -15 * wave)


def test_nothing_reacts_outside_a_region() -> None:
    box = space((8,))
    psi = (box.axes[0] > 0.5).double()
    found = ReciprocalAllenCahn(box.full(2.0), box.full(5.0), psi, box, prepared=region(psi))
    torch.testing.assert_close(box.inverse(found), -10 * psi)


REGION = """
[Domain]
  dim = 1
  nx = 4
[]
[TensorComputes]
  [Initialize]
    [one]
      type = ConstantTensor
      buffer = one
      real = 1
    []
  []
  [Solve]
    [psi]
      type = ParsedCompute
      buffer = psi
      extra_symbols = true
      expression = 'x - t'
    []
    [react]
      type = ReciprocalAllenCahn
      buffer = rate
      dF_chem_deta = one
      L = one
      psi = psi
    []
    [inverse]
      type = InverseFFT
      buffer = field
      input = rate
    []
  []
[]
[Executioner]
  type = Transient
  dt = 0.5
  num_steps = 2
[]
"""


def test_a_region_is_found_once_unless_it_moves(simulate: Simulate) -> None:
    still = simulate(REGION).state.buffers["field"]
    moving = simulate(REGION, "TensorComputes/Solve/react/always_update_psi=true")
    assert still.tolist() == pytest.approx([-1, -1, -1, -1])
    assert moving.state.buffers["field"].tolist() == pytest.approx([0, 0, -1, -1], abs=1e-12)


FUNCTION = """
[Domain]
  dim = 2
  nx = 4
  ny = 1
  xmin = -2
  xmax = 2
[]
[Functions]
  [scale]
    type = ConstantFunction
    value = 10
  []
  [base]
    type = ParsedFunction
    expression = 'if(x > a, s*x, 0) + t'
    symbol_names = 'a s'
    symbol_values = '0 scale'
  []
  [moved]
    type = ShiftedFunction
    function = base
    shift = '1 0 0'
    delta_t = 3
  []
[]
[TensorComputes]
  [Solve]
    [f]
      type = MooseFunctionTensor
      buffer = f
      function = base
    []
    [g]
      type = MooseFunctionTensor
      buffer = g
      function = moved
    []
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
  dt = 0.25
[]
"""


def test_functions_of_compatible_runs_see_a_shifted_place_and_no_time(
    simulate: Simulate,
) -> None:
    buffers = simulate(FUNCTION).state.buffers
    assert buffers["f"].flatten().tolist() == [5.0, 15.0, 25.0, 35.0]
    assert buffers["g"].flatten().tolist() == [18.0, 28.0, 38.0, 48.0]


def test_functions_see_their_place_and_time_otherwise(simulate: Simulate) -> None:
    buffers = simulate(FUNCTION, "Problem/marlin_compatible=false").state.buffers
    assert buffers["f"].flatten().tolist() == [0.25, 0.25, 5.25, 15.25]
    assert buffers["g"].flatten().tolist() == [3.25, 8.25, 18.25, 28.25]


def test_a_function_that_is_not_there_is_told(simulate: Simulate) -> None:
    with pytest.raises(IngotError, match=r"\[Functions\] has no block 'bas'"):
        simulate(FUNCTION, "TensorComputes/Solve/f/function=bas")
    with pytest.raises(IngotError, match="refers to itself"):
        simulate(FUNCTION, "Functions/base/symbol_values='0 base'")


class Energy(torch.nn.Module):
    """An energy whose slopes are known."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x[:, 0] ** 2 * x[:, 1]).unsqueeze(-1)


def test_an_energy_comes_with_its_slopes() -> None:
    box = space((3, 2))
    h, c = torch.rand(2, 3, 2, dtype=torch.float64)
    module = torch.jit.script(Energy())
    energy, by_h, by_c = LibtorchGibbsEnergy((h,), (c,), box, module=module, libtorch_model_file="")
    torch.testing.assert_close(energy, h**2 * c)
    torch.testing.assert_close(by_h, 2 * h * c)
    torch.testing.assert_close(by_c, h**2)


def test_the_published_energy_is_its_formula(marlin: Path, tmp_path: Path) -> None:
    overrides = ["Executioner/num_steps=0", "TensorOutputs/active="]
    buffers = run_file(marlin / "kks" / "KKS_libtorch.i", overrides, tmp_path).state.buffers
    a, b = (float(torch.tensor(value)) for value in (0.3, 0.7))
    h, c = buffers["h_eta"], buffers["c"]
    ca, cb = c + (1 - h) * (a - b), c - h * (a - b)
    torch.testing.assert_close(buffers["G"], h * (ca - a) ** 2 + (1 - h) * (cb - b) ** 2)


MATERIAL = """
[Models]
  [sum]
    type = ScalarLinearCombination
    from_var = 'forces/A forces/B'
    to_var = 'state/C'
    weights = '2 3'
  []
[]
"""

MATERIAL_USE = """
[Domain]
  dim = 2
  nx = 3
  ny = 2
[]
[TensorComputes]
  [Initialize]
    [a]
      type = ParsedCompute
      buffer = a
      extra_symbols = true
      expression = 'x + y'
    []
    [b]
      type = ConstantTensor
      buffer = b
      real = 5
    []
    [c]
      type = NEML2TensorCompute
      neml2_input_file = material.i
      neml2_model = sum
      marlin_inputs = 'a b'
      neml2_inputs = 'forces/A forces/B'
      neml2_outputs = 'state/C'
      marlin_outputs = c
    []
  []
[]
"""


def test_a_material_runs_at_every_point(tmp_path: Path) -> None:
    (tmp_path / "material.i").write_text(MATERIAL)
    (tmp_path / "use.i").write_text(MATERIAL_USE)
    buffers = run_file(tmp_path / "use.i", folder=tmp_path).state.buffers
    torch.testing.assert_close(buffers["c"], 2 * buffers["a"] + 15)


LAW = """
from ingot.catalog import Parameter, model
from ingot.types import Scalar

@model(gives="out")
def WeightedSum(a: Scalar, b: Scalar) -> Scalar:
    return {weight} * a + 3 * b
"""
OWN = """
[Models]
  [sum]
    type = WeightedSum
    a = 'forces/A'
    b = 'forces/B'
    out = 'state/C'
  []
[]
"""


TABLED = """
[Tensors]
  [weight]
    type = CSVScalar
    csv_file = weight.csv
    variable = weight
  []
[]
[Models]
  [sum]
    type = ScalarLinearCombination
    from = 'forces/A forces/B'
    to = 'state/C'
    weights = 'weight 3'
  []
[]
"""


@pytest.mark.parametrize("text", [OWN, TABLED], ids=["a law", "a table"])
def test_materials_of_what_changed_under_its_name_stay_apart(text: str, tmp_path: Path) -> None:
    (tmp_path / "material.i").write_text(text)
    (tmp_path / "use.i").write_text(MATERIAL_USE)
    simulations = {}
    for weight in (2, 4):
        (tmp_path / "laws.py").write_text(LAW.replace("{weight}", str(weight)))
        (tmp_path / "weight.csv").write_text(f"weight\n{weight}\n")
        with laws_of([tmp_path / "laws.py"]):
            simulations[weight] = build(read(tmp_path / "use.i", moose=True))
    for weight, simulation in simulations.items():
        buffers = run(simulation, tmp_path).state.buffers
        torch.testing.assert_close(buffers["c"], weight * buffers["a"] + 15)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("neml2_input_file=materials.i", "there is no file 'materials.i'"),
        ("neml2_model=summ", "[Models] has no block 'summ'"),
        ("neml2_inputs=forces/A", "marlin_inputs has 2 entries, neml2_inputs 1"),
        ("neml2_outputs=state/D", "the model has no variable 'state/D'"),
    ],
)
def test_what_is_wrong_with_a_material_is_told(override: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "material.i").write_text(MATERIAL)
    (tmp_path / "use.i").write_text(MATERIAL_USE)
    with pytest.raises(IngotError) as error:
        run_file(tmp_path / "use.i", [f"TensorComputes/Initialize/c/{override}"], tmp_path)
    assert message in str(error.value)


RATES = """
[Models]
  [rate]
    type = ScalarVariableRate
    variable = 'x'
  []
  [total]
    type = ScalarLinearCombination
    from = 'x_rate t'
    to = 'y'
    weights = '1 1'
  []
  [aged]
    type = ComposedModel
    models = 'rate total'
  []
[]
"""


@pytest.mark.parametrize(("name", "output"), [("rate", "x_rate"), ("aged", "y")])
def test_a_substep_is_not_lost_in_the_time_unless_that_is_read(
    tmp_path: Path, name: str, output: str
) -> None:
    (tmp_path / "material.i").write_text(RATES)
    block = read_text("[c]\nneml2_input_file = material.i\n[]").blocks[0]
    none: dict[str, Any] = dict.fromkeys(
        ("cli_args", "neml2_derivatives", "marlin_derivatives"), ()
    )
    options = none | {"neml2_model": name, "neml2_inputs": ("x",), "neml2_outputs": (output,)}
    model = load_model(
        block, options | {"marlin_inputs": ("x",), "marlin_outputs": ("y",)}, tmp_path
    )
    end, dt, old = (torch.tensor(x, dtype=torch.float32) for x in (1e4, 1e-3, 0.0))
    found = model([torch.full((4,), 2e-3)], [end, dt, old.expand(4)])[0]
    assert model.is_autonomous == (name == "rate")
    if model.is_autonomous:
        torch.testing.assert_close(found, torch.full((4,), 2.0))
