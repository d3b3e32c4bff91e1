"""Corners of porous flow, reactions, precipitation, fracture and finite volumes."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.catalog import load
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import Model, bind, build
from ingot.program import freeze, trace, with_jacobian
from ingot.types import Scalar

EPS = torch.finfo(torch.float64).eps


def bound(law: str, **options: Any) -> Model:
    return bind(load()[law], options, None)


def run(
    model: Model, shapes: dict[str, tuple[int, ...]] | None = None, *pairs: tuple[str, str],
    **inputs: Any,
) -> dict[str, Tensor]:  # fmt: skip
    program = with_jacobian(freeze(trace(model, shapes or {}), EPS), list(pairs))
    given = {name: torch.as_tensor(x, dtype=torch.float64) for name, x in inputs.items()}
    return Interpreter(program)(given)[0]


@pytest.mark.parametrize(
    ("law", "options", "told"),
    [
        (
            "EffectiveVolume",
            {"mass_fractions": ["a", "b", "c"], "densities": [1.0, 2.0], "reference_mass": 1.0},
            "not equally long: 3 mass_fractions, 2 densities",
        ),
        (
            "ProjectedDiffusivitySum",
            {"far_field_concentrations": ["a", "b"], "concentration_differences": [1.0],
             "diffusivities": [1.0, 2.0]},
            "2 far_field_concentrations, 1 concentration_differences, 2 diffusivities",
        ),
        (
            "IdealSolutionVolumetricDrivingForce",
            {"current_concentrations": ["a", "b", "c"], "gas_constant": 1.0,
             "equilibrium_concentrations": [1.0, 1.0, 1.0], "weights": [1.0, 2.0]},
            "3 equilibrium_concentrations, 2 weights",
        ),
        (
            "BrooksCoreyCapillaryPressure",
            {"threshold_pressure": 1.0, "exponent": 1.0, "log_extension": True},
            "log_extension needs a transition_saturation above 0",
        ),
        (
            "VanGenuchtenCapillaryPressure",
            {"a": 1.0, "m": 0.5, "log_extension": True, "transition_saturation": 1.5},
            "'transition_saturation' should be a finite number from 0 to 1",
        ),
        (
            "LinearIsotropicStrainEnergyDensity",
            {"coefficients": [1.0, 1.0], "coefficient_types": ["BULK_MODULUS", "SHEAR_MODULUS"],
             "decomposition": "SPECTRAL"},
            "'decomposition' is one of NONE, VOLDEV",
        ),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(law: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(IngotError, match=re.escape(told)):
        trace(bound(law, **options))


@pytest.mark.parametrize(
    ("law", "options"),
    [
        ("BrooksCoreyCapillaryPressure", {"threshold_pressure": 2.3, "exponent": 0.7}),
        ("VanGenuchtenCapillaryPressure", {"a": 0.5, "m": 0.7}),
    ],
)
def test_an_extension_has_the_value_and_slope_of_the_law_at_the_transition(
    law: str, options: dict[str, float]
) -> None:
    pair = ("capillary_pressure", "effective_saturation")
    at = {"effective_saturation": [0.25 - 1e-12, 0.25]}
    plain = run(bound(law, **options), None, pair, **at)
    options = {**options, "log_extension": True, "transition_saturation": 0.25}
    extended = run(bound(law, **options), None, pair, **at)
    for name, x in extended.items():
        torch.testing.assert_close(x, plain[name], rtol=1e-10, atol=0.0)
    low = run(bound(law, **options), None, pair, effective_saturation=[0.0, -0.5])
    assert all(bool(x.isfinite().all()) for x in low.values())


@pytest.mark.parametrize("threshold", ["P", "2.3"])
def test_capillary_pressure_has_slopes_by_its_parameters(threshold: str) -> None:
    pairs = [("capillary_pressure", name) for name in ("exponent", *threshold[: threshold == "P"])]
    model = bound(
        "BrooksCoreyCapillaryPressure", exponent="exponent", log_extension=True,
        threshold_pressure=threshold if threshold == "P" else float(threshold),
        transition_saturation=0.1,
    )  # fmt: skip
    given = {"P": 2.3} if threshold == "P" else {}
    found = run(model, None, *pairs, effective_saturation=[0.05, 0.5], exponent=0.7, **given)
    assert all(bool((found[f"{y}:{x}"].abs() > 0.1).all()) for y, x in pairs)


def test_a_traceless_strain_has_half_the_bulk_modulus_on_either_side() -> None:
    text = """
    [Models]
      [energy]
        type = LinearIsotropicStrainEnergyDensity
        coefficients = '1.4e5 7.8e4'
        coefficient_types = 'BULK_MODULUS SHEAR_MODULUS'
        decomposition = VOLDEV
      []
      [active]
        type = Normality
        model = 'energy'
        function = 'active_strain_energy_density'
        from = 'strain'
        to = 'active_stress'
      []
      [inactive]
        type = Normality
        model = 'energy'
        function = 'inactive_strain_energy_density'
        from = 'strain'
        to = 'inactive_stress'
      []
    []
    """
    strain = [0.016, -0.008, -0.008, 0.0, 0.0, 0.0]
    active = run(build(read_text(text), "active"), None, ("active_stress", "strain"), strain=strain)
    other = build(read_text(text), "inactive")
    inactive = run(other, None, ("inactive_stress", "strain"), strain=strain)
    bulk = torch.zeros(6, 6, dtype=torch.float64)
    bulk[:3, :3] = 0.7e5
    torch.testing.assert_close(inactive["inactive_stress:strain"], bulk)
    deviator = torch.eye(6, dtype=torch.float64)
    deviator[:3, :3] -= 1.0 / 3.0
    torch.testing.assert_close(active["active_stress:strain"], bulk + 2 * 7.8e4 * deviator)


GRID = """
[Tensors]
  [listed]
    type = Python
    expr = 'Scalar(torch.tensor([0.0, 0.5, 1.5]))'
  []
  [marked]
    type = Python
    expr = 'Scalar(torch.tensor([0.0, 0.5, 1.5]), sub_batch_ndim=1)'
  []
  [one]
    type = Python
    expr = 'Scalar(torch.tensor([7.0]), sub_batch_ndim=1)'
  []
[]
[Models]
  [edges]
    type = LinearlyInterpolateToCellEdges
    cell_values = 'marked'
    cell_centers = '{0}'
    cell_edges = '0 0.2 1 2'
  []
  [dump]
    type = DumpInSmallestBin
    cell_centers = '{0}'
  []
  [smear]
    type = SmearedDeltaSource
    width = 0.5
    cell_centers = '{0}'
  []
  [volume]
    type = PrecipitateVolumeFraction
    radius = '{0}'
  []
  [closed]
    type = FiniteVolumeAppendBoundaryCondition
    bc_value = 'one'
  []
[]
"""


@pytest.mark.parametrize("name", ["edges", "dump", "smear", "volume"])
def test_a_list_of_numbers_lies_along_the_cells_whether_marked_or_not(name: str) -> None:
    inputs = {"magnitude": 2.0, "location": 0.3, "number_density": [1.0, 2.0, 3.0]}
    found = []
    for spelled in ("listed", "marked", "0 0.5 1.5"):
        model = build(read_text(GRID.format(spelled)), name)
        given = {n: x for n, x in inputs.items() if n in model.inputs}
        found.append(run(model, {"number_density": (3,)}, **given))
    for other in found[1:]:
        assert all(torch.equal(x, other[n]) for n, x in found[0].items())
    assert [x.shape[-1:] for x in found[0].values()] == {
        "edges": [(2,)], "dump": [(3,)], "smear": [(3,)], "volume": [()],
    }[name]  # fmt: skip


def test_a_boundary_value_may_be_marked_as_one_cell() -> None:
    model = build(read_text(GRID), "closed")
    found = run(model, {"input": (2,)}, input=[[1.0, 2.0], [3.0, 4.0]])
    assert found["input_with_bc_left"].tolist() == [[7.0, 1.0, 2.0], [7.0, 3.0, 4.0]]


def test_an_edge_velocity_may_be_one_for_all_edges() -> None:
    found = run(
        bound("FiniteVolumeUpwindedAdvectiveFlux"), {"u": (3,)}, u=[1.0, 2.0, 4.0], v_edge=0.5
    )
    assert found["flux"].tolist() == [0.5, 1.0]


def test_cells_may_be_given_to_a_source_by_a_variable() -> None:
    model = bound("SmearedDeltaSource", width="w", cell_centers="x")
    pairs = [("state/smeared_source", name) for name in ("w", "x")]
    centers = [0.1, 0.5, 1.0]
    given = {"magnitude": 2.0, "location": 0.2, "w": 0.5, "x": centers}
    found = run(model, {"x": (3,)}, *pairs, **given)
    reference = run(
        bound("SmearedDeltaSource", width=0.5, cell_centers=Scalar(centers, sub_batch_ndim=1)),
        magnitude=2.0, location=0.2,
    )  # fmt: skip
    assert torch.equal(found["state/smeared_source"], reference["state/smeared_source"])
    assert bool((found["state/smeared_source:w"].abs() > 0.1).all())
