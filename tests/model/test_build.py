"""Blocks become models: parameters found in four ways, variables named, parts wired."""

import math

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.execute import Transient
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import Factory, Law, Model, build
from ingot.program import prepared
from ingot.types import SR2, Scalar

FILE = """
[Tensors]
  [typed]
    type = Python
    expr = 'Scalar(3.0)'
  []
  [raw]
    type = Python
    expr = 'torch.tensor(4.0, dtype=torch.float32)'
  []
  [several]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, 2.0]))'
  []
  [structural]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, 2.0, 3.0]), sub_batch_ndim=1)'
  []
  [shadow]
    type = Python
    expr = 'Scalar(7.0)'
  []
[]
[Models]
  [law]
    type = VoceIsotropicHardening
    saturated_hardening = '{value}'
    saturation_rate = 1
  []
  [shadow]
    type = ScalarLinearCombination
    from = 'x'
    to = 'shadowed'
  []
  [provider]
    type = ScalarLinearCombination
    from = 'x'
    to = 'provided'
    weights = '2'
    offset = 'deeper'
  []
  [deeper]
    type = ArrheniusParameter
    reference_value = 5
    activation_energy = 0
    ideal_gas_constant = 1
  []
  [composed]
    type = ComposedModel
    models = 'law'
  []
[]
"""
HALF = torch.tensor(0.5, dtype=torch.float64)
VOCE = 1.0 - math.exp(-0.5)


def law(value: str) -> Model:
    return build(read_text(FILE.format(value=value)), "law")


def run(model: Model, **inputs: float | Tensor) -> dict[str, Tensor]:
    given = {name: torch.as_tensor(x, dtype=torch.float64) for name, x in inputs.items()}
    return Interpreter(prepared(model))(given)[0]


def hardening(model: Model, **inputs: float) -> Tensor:
    return run(model, equivalent_plastic_strain=0.5, **inputs)["isotropic_hardening"]


# parameters


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2", 2.0),
        ("2.5e2", 250.0),
        ("-inf", -math.inf),
        ("typed", 3.0),
        ("raw", 4.0),
        ("shadow", 7.0),
    ],
)
def test_parameter_is_a_number_or_a_tensor(value: str, expected: float) -> None:
    model = law(value)
    assert list(model.inputs) == ["equivalent_plastic_strain"]
    found = model.values["saturated_hardening"]
    assert type(found) is Scalar and found.data.dtype == torch.float64
    assert float(found) == expected
    assert float(hardening(model)) == pytest.approx(expected * VOCE, rel=1e-15)


@pytest.mark.parametrize("value", ["1 2", "several"])
def test_several_numbers_are_a_batch(value: str) -> None:
    found = hardening(law(value))
    torch.testing.assert_close(found, torch.tensor([VOCE, 2 * VOCE]).double(), rtol=1e-7, atol=0)


def test_a_tensor_keeps_its_structural_axes() -> None:
    model = law("structural")
    assert model.values["saturated_hardening"].sub == 1
    program = prepared(model)
    assert [str(a) for a in program.outputs[0].axes] == ["axis1"]
    assert hardening(model).shape == (3,)


EMPTY = """
[Tensors]
  [none]
    type = Python
    expr = 'Scalar(torch.zeros(0), sub_batch_ndim=1)'
  []
[]
[Models]
  [table]
    type = ScalarLinearInterpolation
    argument = 'x'
    abscissa = 'none'
    ordinate = 'none'
  []
  [sum]
    type = ScalarLinearCombination
    from = 'a b'
    to = 'c'
    weights = ''
  []
  [nothing]
    type = ScalarLinearCombination
    from = ''
    to = 'c'
  []
  [hardening]
    type = VoceIsotropicHardening
    saturated_hardening = 'none'
    saturation_rate = 1
  []
[]
"""


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("table", ["abscissa", "ordinate"]),
        ("sum", ["weights"]),
        ("nothing", ["from"]),
        ("hardening", ["saturated_hardening"]),
    ],
)
def test_a_list_or_parameter_without_an_entry_is_told(name: str, options: list[str]) -> None:
    with pytest.raises(IngotError) as error:
        build(read_text(EMPTY), name)
    problems = error.value.problems
    assert [p.message.split("'")[1] for p in problems] == options
    assert all(p.code == "wrong-value" and p.span is not None and p.fix for p in problems)


def test_any_other_word_is_a_free_variable() -> None:
    model = law("Q")
    assert model.inputs == {"equivalent_plastic_strain": Scalar, "Q": Scalar}
    assert "saturated_hardening" not in model.values
    assert float(hardening(model, Q=3.0)) == pytest.approx(3.0 * VOCE)


def test_the_name_of_a_model_stands_for_its_output() -> None:
    model = law("provider")
    assert list(model.inputs) == ["equivalent_plastic_strain", "provided"]
    assert law("provider.provided").inputs == model.inputs


def test_a_composition_takes_in_what_provides_its_parameters() -> None:
    composed = build(read_text(FILE.format(value="provider")), "composed")
    assert list(composed.parts) == ["law", "provider", "deeper"]
    assert set(composed.inputs) == {"equivalent_plastic_strain", "x", "temperature"}
    assert list(composed.outputs) == ["isotropic_hardening"]
    found = run(composed, equivalent_plastic_strain=0.5, x=1.5, temperature=1.0)
    assert float(found["isotropic_hardening"]) == pytest.approx((2 * 1.5 + 5) * VOCE)


def test_parameters_are_named_by_the_blocks_that_lead_to_them() -> None:
    composed = build(read_text(FILE.format(value="provider")), "composed")
    names = {name for name, _ in composed.named_parameters()}
    assert {"law.saturation_rate", "deeper.reference_value"} <= names
    assert "law.saturated_hardening" not in names


def test_every_entry_of_a_list_is_found_by_itself() -> None:
    text = """
    [Tensors]
      [two]
        type = Python
        expr = 'Scalar(2.0)'
      []
    []
    [Models]
      [sum]
        type = SR2LinearCombination
        from = 'a b c'
        weights = 'two w -1'
        offset = 0.5
      []
    []
    """
    model = build(read_text(text), "sum")
    assert model.inputs == {"a": SR2, "b": SR2, "c": SR2, "w": Scalar}
    ones = torch.ones(6, dtype=torch.float64)
    found = run(model, a=ones, b=10 * ones, c=100 * ones, w=3.0)["to"]
    torch.testing.assert_close(found, (2 + 30 - 100 + 0.5) * ones)


def test_one_weight_serves_all_terms() -> None:
    text = "[Models]\n[s]\ntype = ScalarLinearCombination\nfrom = 'a b c'\nweights = '{}'\n[]\n[]"
    model = build(read_text(text.format("2")), "s")
    assert float(run(model, a=1.0, b=2.0, c=3.0)["to"]) == 12.0
    with pytest.raises(IngotError, match="2 weights for 3 terms"):
        prepared(build(read_text(text.format("2 3")), "s"))


# names

NAMES = {
    "stress = 'S'": (["strain"], ["S"]),
    "strain = 'E'": (["E"], ["stress"]),
    "strain = 'E'\nrate_form = true": (["E_rate"], ["stress_rate"]),
    "compliance = true": (["stress"], ["strain"]),
    "compliance = true\nstrain = 'E'": (["stress"], ["E"]),
    "compliance = true\nrate_form = true\nstress = 'S'": (["S_rate"], ["strain_rate"]),
}


@pytest.mark.parametrize("rows", NAMES)
def test_options_rename_and_turn_round_a_law(rows: str) -> None:
    block = f"""[Models]
    [e]
      type = LinearIsotropicElasticity
      coefficients = '1 0.3'
      coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
      {rows}
    []
    []"""
    model = build(read_text(block), "e")
    assert (list(model.inputs), list(model.outputs)) == NAMES[rows]


DERIVED = [
    ("ScalarBackwardEulerTimeIntegration", "variable = 's'",
     ["s", "s_rate", "s~1", "t", "t~1"], ["s_residual"]),
    ("ScalarBackwardEulerTimeIntegration", "variable = 's'\nvariable_residual = 'R'",
     ["s", "s_rate", "s~1", "t", "t~1"], ["R"]),
    ("ScalarBackwardEulerTimeIntegration", "variable = 's'\nrate = 'r'\ntime = 'tau'",
     ["s", "r", "s~1", "tau", "tau~1"], ["s_residual"]),
    ("ScalarForwardEulerTimeIntegration", "variable = 's'",
     ["s_rate", "s~1", "t", "t~1"], ["s"]),
    ("ScalarForwardEulerTimeIntegration", "variable = 's'\nold_variable = 'o'",
     ["s_rate", "o", "t", "t~1"], ["s"]),
    ("SR2VariableRate", "variable = 's'", ["s", "s~1", "t", "t~1"], ["s_rate"]),
    ("SR2VariableRate", "variable = 's'\nvariable_rate = 'v'", ["s", "s~1", "t", "t~1"], ["v"]),
    ("ScalarBackwardEulerTimeIntegration", "",
     ["variable", "variable_rate", "variable~1", "t", "t~1"], ["variable_residual"]),
    ("ChabochePlasticHardening", "back_stress = 'X1'\nC = 1\ng = 1\nA = 1\na = 1",
     ["flow_rate", "flow_direction", "X1"], ["X1_rate"]),
    ("ArrheniusParameter", "reference_value = 1\nactivation_energy = 1\nideal_gas_constant = 1",
     ["temperature"], ["m"]),
    ("ArrheniusParameter",
     "reference_value = 1\nactivation_energy = 1\nideal_gas_constant = 1\nparameter = 'k'",
     ["temperature"], ["k"]),
    ("FiniteVolumeAppendBoundaryCondition", "input = 'q'\nbc_value = 1\nside = 'right'",
     ["q"], ["q_with_bc_right"]),
    ("FiniteVolumeAppendBoundaryCondition", "input = 'q'\nbc_value = 1\noutput = 'z'",
     ["q"], ["z"]),
    ("CrystalPlasticityStrainPredictor", "elastic_strain = 'e'",
     ["deformation_rate", "t", "t~1", "e~1"], ["e"]),
    ("RotationMatrix", "from = 'r'\nto = 'R'", ["r"], ["R"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "rows", "inputs", "outputs"), DERIVED)
def test_names_follow_from_others(
    kind: str, rows: str, inputs: list[str], outputs: list[str]
) -> None:
    model = build(read_text(f"[Models]\n[m]\ntype = {kind}\n{rows}\n[]\n[]"), "m")
    assert (list(model.inputs), list(model.outputs)) == (inputs, outputs)


# parts


def test_every_block_is_built_once() -> None:
    factory = Factory(read_text(FILE.format(value="provider")))
    composed = factory.model("composed")
    assert composed.parts["law"] is factory.model("law")
    assert composed.parts["provider"] is factory.model("provider")


def test_a_model_may_be_called_like_its_data() -> None:
    text = """
    [Data]
      [crystal]
        type = CubicCrystal
        lattice_parameter = 1
        slip_directions = '1 1 0'
        slip_planes = '1 1 1'
      []
    []
    [Models]
      [crystal]
        type = SingleSlipStrengthMap
        constant_strength = 50
        crystal_geometry = 'crystal'
      []
    []
    """
    model = build(read_text(text), "crystal")
    assert isinstance(model.body, Law)
    assert model.body.options["crystal_geometry"].extents["slip"] == 12


def test_order_of_models_in_a_list_does_not_matter() -> None:
    text = """
    [Models]
      [one]
        type = ScalarLinearCombination
        from = 'a'
        to = 'b'
        weights = '2'
      []
      [two]
        type = ScalarLinearCombination
        from = 'b'
        to = 'c'
        weights = '3'
      []
      [forwards]
        type = ComposedModel
        models = 'one two'
      []
      [backwards]
        type = ComposedModel
        models = 'two one'
        additional_outputs = 'b'
      []
    []
    """
    forwards, backwards = (build(read_text(text), n) for n in ("forwards", "backwards"))
    assert list(forwards.inputs) == list(backwards.inputs) == ["a"]
    assert list(forwards.outputs) == ["c"] and set(backwards.outputs) == {"b", "c"}
    assert float(run(backwards, a=1.0)["c"]) == float(run(forwards, a=1.0)["c"]) == 6.0


def test_printed_model_tells_variables_and_parameters() -> None:
    assert str(law("2")) == (
        "VoceIsotropicHardening [law]\n"
        "  given  equivalent_plastic_strain: Scalar\n"
        "  gives  isotropic_hardening: Scalar\n"
        "  param  saturated_hardening: Scalar = 2\n"
        "  param  saturation_rate: Scalar = 1"
    )


# the worked example of the reference; its ScalarMultiplication is written as a weighted sum

EXAMPLE = """
nb = 2
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0.0, 1.0, 5, dtype=torch.float64).unsqueeze(-1).expand(5, ${nb}))'
  []
  [temps]
    type = Python
    expr = '''
      base = torch.tensor([300.0, 600.0], dtype=torch.float64)
      result = Scalar(base.expand(times.data.shape[0], ${nb}))
    '''
  []
  [x0]
    type = Python
    expr = 'Scalar(1.0)'
  []
[]
[Models]
  [k]
    type = ArrheniusParameter
    temperature = 'T'
    reference_value = 5.0
    activation_energy = 1e4
    ideal_gas_constant = 8.314
  []
  [decay]
    type = ScalarLinearCombination
    from = 'x'
    to = 'x_rate'
    weights = 'minus_k'
  []
  [minus_k]
    type = ScalarLinearCombination
    from = 'k'
    to = 'mk'
    weights = '-1'
  []
  [be]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [residual]
    type = ComposedModel
    models = 'k decay be'
  []
[]
[EquationSystems]
  [sys]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = Newton
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
[Models]
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x'
  []
  [model]
    type = ImplicitUpdate
    equation_system = 'sys'
    solver = 'newton'
    predictor = 'guess'
  []
[]
"""


def test_worked_example_has_the_variables_of_the_reference() -> None:
    factory = Factory(read_text(EXAMPLE))
    assert set(factory.model("residual").inputs) == {"T", "x", "x~1", "t", "t~1"}
    assert list(factory.model("model").inputs) == ["T", "x~1", "t", "t~1"]
    assert list(factory.model("model").outputs) == ["x"]
    decay = factory.model("decay")
    assert set(decay.inputs) == {"x", "mk"} and list(decay.values) == ["offset"]


def test_worked_example_ends_where_the_reference_does() -> None:
    factory = Factory(read_text(EXAMPLE))
    program = prepared(factory.model("model"))
    tensors = {name: factory.tensors[name].data for name in ("times", "temps", "x0")}
    prescribed = {"t": tensors["times"], "T": tensors["temps"]}
    history = Interpreter(program).transient(Transient(5, prescribed, {"x": tensors["x0"]}))
    assert all(bool(s.converged.all()) for s in history.statuses)
    expected = torch.tensor([0.9141902087867716, 0.5366082639439448], dtype=torch.float64)
    torch.testing.assert_close(history.outputs["x"][-1], expected, rtol=1e-9, atol=0.0)
    rate = 5.0 * torch.exp(-1e4 / (8.314 * tensors["temps"][0]))
    torch.testing.assert_close(history.outputs["x"][-1], (1 + 0.25 * rate) ** -4, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("plane", "told"),
    [
        ("1.0, 0.0, 0.0", "no slip direction lies in a slip plane"),
        ("0.0, 0.0, 0.0", "is no Miller index"),
        ("1e999, 0.0, 0.0", "is no Miller index"),
        ("0.0, 1e999 - 1e999, 1.0", "is no Miller index"),
        ("1e300, -1e300, 0.0", None),
    ],
)
def test_a_crystal_without_slip_systems_is_told_where_it_is_read(
    plane: str, told: str | None
) -> None:
    text = """
[Tensors]
  [index]
    type = Python
    expr = 'MillerIndex(torch.tensor([1.0, 1.0, 1.0]))'
  []
[]
[Data]
  [crystal]
    type = CubicCrystal
    lattice_parameter = 1.0
    slip_directions = 'index'
    slip_planes = 'axis'
  []
[]
[Models]
  [shear]
    type = ResolvedShear
    crystal_geometry = 'crystal'
  []
[]
"""
    axis = text.replace("[index]", "[axis]").replace("1.0, 1.0, 1.0", plane)
    factory = Factory(read_text(axis[: axis.index("[Data]")] + text))
    if told is None:  # a plane however long its index is
        factory.model("shear")
        return
    with pytest.raises(IngotError, match=f"CubicCrystal: .*{told}"):
        factory.model("shear")
