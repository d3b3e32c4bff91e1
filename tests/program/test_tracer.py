"""Model -> Program: lines are shared and folded, axes named, and the text is the user's."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from ingot.catalog import Parameter, optional
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, along_direction, freeze, prepared, trace, with_jacobian
from ingot.types import (
    Scalar,
    Vec,
    abs,
    atan,
    cos,
    cosh,
    dev,
    eps,
    exp,
    heaviside,
    inv,
    log,
    macaulay,
    minimum,
    norm,
    sign,
    sin,
    sinh,
    sqrt,
    sym,
    tan,
    tanh,
    total,
    tr,
    trim,
    unit,
    where,
)  # fmt: skip
from tests.program.declared import declared, model_of, program_of

VOCE = """
[Models]
  [hardening]
    type = VoceIsotropicHardening
    saturated_hardening = {}
    saturation_rate = {}
  []
[]
"""


def voce(first: object = 100, second: object = 1.1) -> Program:
    return trace(build(read_text(VOCE.format(first, second)), "hardening"))


def operations(program: Program) -> list[str]:
    """What every line does, constants and inputs left out."""
    return [n.op for n in program.lines if n.args]


# lines are kept once


def written_twice(x: Scalar, y: Scalar) -> Scalar:
    return exp(x * y) + sqrt(exp(y * x))


def test_equal_lines_are_one_line() -> None:
    found = operations(program_of(written_twice))
    assert sorted(found) == ["add", "exp", "mul", "sqrt"]


def twice_in_other_words(x: Scalar, y: Scalar) -> Scalar:
    return (x + y) * (y + x) - (x - (-y)) * (x + y)


def test_the_same_in_other_words_is_one_line() -> None:
    """What is subtracted from itself stays: it is zero, but for infinities and NaN."""
    program = program_of(twice_in_other_words)
    assert operations(program) == ["add", "mul", "sub"]
    (difference,) = program.roots
    assert difference.args[0] is difference.args[1]


def does_nothing(x: Scalar, y: Scalar) -> Scalar:
    return -((-((x * 1.0 + 0.0) / 1.0)) ** 1.0) + 0.0 + y - 0.0 - y * 1.0 * 1.0


def test_what_does_nothing_leaves_no_line() -> None:
    program = program_of(does_nothing)
    assert operations(program) == ["add", "sub"]
    assert program.roots[0].args[1] is program.inputs[1].nodes[0]


def times_zero(x: Scalar, y: Scalar) -> Scalar:
    return x + 0.0 * y


def test_a_product_with_zero_stays_for_the_sake_of_infinities() -> None:
    assert sorted(operations(program_of(times_zero))) == ["add", "mul"]


def folds(x: Scalar, y: Scalar) -> Scalar:
    return x * (2.0 * 3.0) * 0.5 + exp(Scalar(0.0)) * y


def test_numbers_are_computed_beforehand() -> None:
    program = program_of(folds)
    assert sorted(operations(program)) == ["add", "mul"]
    assert str(program).splitlines()[1] in ("  out = (3 * x) + y", "  out = y + (3 * x)")


def unused(x: Scalar, y: Scalar) -> Scalar:
    exp(x) * y
    return x + y


def test_what_no_output_needs_is_not_run() -> None:
    assert operations(program_of(unused)) == ["add"]


def powers(x: Scalar, y: Scalar) -> Scalar:
    return x**4 + x**2


def test_whole_powers_share_their_squares() -> None:
    assert sorted(operations(program_of(powers))) == ["add", "mul", "mul"]


def test_two_models_share_what_both_compute() -> None:
    text = """
    [Models]
      [a]
        type = SR2Invariant
        tensor = 's'
        invariant_type = 'VONMISES'
        invariant = 'a'
      []
      [b]
        type = SR2Invariant
        tensor = 's'
        invariant_type = 'VONMISES'
        invariant = 'b'
      []
      [both]
        type = ComposedModel
        models = 'a b'
      []
    []
    """
    models = {name: prepared(build(read_text(text), name)) for name in ("a", "both")}
    assert models["both"].count() == models["a"].count()
    first, second = models["both"].outputs
    assert first.nodes == second.nodes


# freezing


def test_freezing_makes_parameters_constants() -> None:
    program = freeze(voce(), 1e-16)
    assert program.parameters == ()
    assert operations(program) == ["mul", "exp", "sub", "mul"]


def test_freezing_keeps_what_is_asked_for() -> None:
    program = freeze(voce(), 1e-16, keep=["saturation_rate"])
    assert [p.variable.name for p in program.parameters] == ["saturation_rate"]
    inputs = {"equivalent_plastic_strain": torch.tensor(0.5).double()}
    kept, _ = Interpreter(program)(inputs)
    frozen, _ = Interpreter(freeze(voce(), 1e-16))(inputs)
    torch.testing.assert_close(kept["isotropic_hardening"], frozen["isotropic_hardening"])


def test_a_batched_parameter_is_never_a_constant() -> None:
    program = freeze(voce("'100 200 300'"), 1e-16)
    assert [p.variable.name for p in program.parameters] == ["saturated_hardening"]
    assert program.parameters[0].batched
    results, _ = Interpreter(program)({"equivalent_plastic_strain": torch.tensor(0.5).double()})
    expected = torch.tensor([100.0, 200.0, 300.0]) * (1 - torch.exp(torch.tensor(-0.55)))
    torch.testing.assert_close(results["isotropic_hardening"], expected.double(), rtol=1e-6, atol=0)


def test_batches_that_do_not_fit_are_refused_with_both_shapes() -> None:
    run = Interpreter(freeze(voce("'100 200 300'"), 1e-16))
    with pytest.raises(IngotError) as raised:
        run({"equivalent_plastic_strain": torch.zeros(2, dtype=torch.float64)})
    told = str(raised.value)
    assert raised.value.problems[0].code == "batches-differ"
    assert "(2,)" in told and "(3,)" in told


def tiny(x: Scalar) -> Scalar:
    return x + eps(x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_epsilon_is_that_of_the_precision(dtype: torch.dtype) -> None:
    with declared(tiny):
        model = model_of(tiny)
    assert [n.op for n in trace(model).lines] == ["input", "eps", "add"]
    program = prepared(model, dtype=dtype)
    found, _ = Interpreter(program, dtype=dtype)({"x": torch.zeros(1, dtype=dtype)})
    assert found["out"].dtype == dtype
    assert float(found["out"]) == torch.finfo(dtype).eps


def test_a_changed_parameter_is_seen_by_the_next_trace() -> None:
    model = build(read_text(VOCE.format(100, 1.1)), "hardening")
    inputs = {"equivalent_plastic_strain": torch.tensor(0.5).double()}
    before, _ = Interpreter(prepared(model))(inputs)
    model.values["saturated_hardening"] = Scalar(200.0)
    after, _ = Interpreter(prepared(model))(inputs)
    torch.testing.assert_close(
        after["isotropic_hardening"], 2 * before["isotropic_hardening"], rtol=1e-15, atol=0
    )


# text


def test_program_prints_in_the_users_names() -> None:
    assert str(voce()) == (
        "given  equivalent_plastic_strain\n"
        "param  saturated_hardening = 100, saturation_rate = 1.1\n"
        "  isotropic_hardening ="
        " saturated_hardening * (1 - exp(-(equivalent_plastic_strain * saturation_rate)))\n"
        "gives  isotropic_hardening"
    )


def test_frozen_program_prints_its_numbers() -> None:
    assert str(freeze(voce(), 1e-16)) == (
        "given  equivalent_plastic_strain\n"
        "  isotropic_hardening = 100 * (1 - exp(-1.1 * equivalent_plastic_strain))\n"
        "gives  isotropic_hardening"
    )


def test_components_shared_values_and_axes_are_printed() -> None:
    program = program_of(on_cells, shapes={"x": (4,)})
    assert str(program).splitlines()[0] == "given  x<cell>, y"
    assert str(program).splitlines()[-1] == "gives  out<cell-1>"
    rows = str(program_of(shares)).splitlines()
    assert rows[1:-1] == [
        "  out[2] = x[2]",
        "  t1 = x[0] + y[0]",
        "  out[0] = 2 * t1",
        "  out[1] = t1 * t1",
    ]


def shares(x: Vec, y: Vec) -> Vec:
    both = x[0] + y[0]
    return Vec.of(both + both, both * both, x[2])


UPDATE = """
[Models]
  [rate]
    type = ScalarLinearCombination
    from = 'x'
    to = 'x_rate'
    weights = '-2'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [residual]
    type = ComposedModel
    models = 'rate integrate'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
"""


def test_update_prints_as_a_block_of_its_residuals() -> None:
    program = prepared(build(read_text(UPDATE), "update"))
    text = str(program)
    assert "  solve [update] for x\n    x_residual = " in text
    assert text.startswith("given  x, x~1, t, t~1\n") and text.endswith("gives  x")


def test_derivatives_of_an_update_are_printed_too() -> None:
    program = prepared(build(read_text(UPDATE), "update"))
    assert "d.x" in str(along_direction(program)).splitlines()[-1]
    assert "x:t" in str(with_jacobian(program, [("x", "t")])).splitlines()[-1]


# axes


def on_cells(x: Scalar["cell"], y: Scalar) -> Scalar["cell-1"]:  # type: ignore  # noqa: F821
    return trim(x, "cell", first=1) * y


def over_cells(x: Scalar["cell"], y: Scalar) -> Scalar:  # type: ignore  # noqa: F821
    return total(x + y, "cell")


def test_an_axis_of_a_variable_takes_the_name_of_the_law_that_reads_it() -> None:
    program = program_of(on_cells, shapes={"x": (4,)})
    assert [str(a) for a in program.inputs[0].axes] == ["cell"]
    assert [str(a) for a in program.outputs[0].axes] == ["cell-1"]
    assert program.extents["cell"] == 4


def test_axes_that_the_file_adds_stand_left_of_the_laws() -> None:
    program = program_of(on_cells, shapes={"x": (7, 4)})
    assert [str(a) for a in program.outputs[0].axes] == ["axis2", "cell-1"]
    x, y = torch.rand(3, 7, 4).double(), torch.rand(3).double()
    results, _ = Interpreter(program)({"x": x, "y": y})
    torch.testing.assert_close(results["out"], x[..., 1:] * y[:, None, None])


def test_missing_axes_are_spread() -> None:
    program = program_of(over_cells, shapes={"x": (4,)})
    x, y = torch.rand(3, 4).double(), torch.rand(3).double()
    results, _ = Interpreter(program)({"x": x, "y": y})
    torch.testing.assert_close(results["out"], x.sum(1) + 4 * y)


def on_two_axes(x: Scalar["cell"], y: Scalar["slip"]) -> Scalar["cell", "slip"]:  # type: ignore  # noqa: F821
    return x * y


def test_axes_of_equal_extent_stay_apart() -> None:
    program = program_of(on_two_axes, shapes={"x": (4,), "y": (4,)})
    x, y = torch.rand(3, 4).double(), torch.rand(3, 4).double()
    results, _ = Interpreter(program)({"x": x, "y": y})
    torch.testing.assert_close(results["out"], x[:, :, None] * y[:, None, :])


FLOW = """
[Tensors]
  [widths]
    type = Python
    expr = 'Scalar(torch.full((5,), 0.5), sub_batch_ndim=1)'
  []
[]
[Models]
  [gradient]
    type = FiniteVolumeGradient
    u = '{}'
    dx = 'widths'
    grad_u = 'g'
  []
[]
"""


def flow(variable: str, shapes: Mapping[str, tuple[int, ...]]) -> Program:
    return prepared(build(read_text(FLOW.format(variable)), "gradient"), dict(shapes))


def test_extents_that_differ_are_told_by_name() -> None:
    with pytest.raises(IngotError) as raised:
        flow("u", {"u": (9,)})
    (problem,) = raised.value.problems
    assert problem.code == "extents-differ"
    assert problem.message == ("an axis of 'dx' with 5 entries meets 'cell-1' with 8 in [gradient]")


def test_a_variable_may_be_called_like_a_parameter() -> None:
    u = torch.rand(2, 6).double()
    results, _ = Interpreter(flow("dx", {"dx": (6,)}))({"dx": u})
    torch.testing.assert_close(results["g"], -u.diff(dim=1) / 0.5)


def test_history_has_the_axes_of_its_variable() -> None:
    text = """
    [Models]
      [integrate]
        type = ScalarBackwardEulerTimeIntegration
        variable = 'x'
      []
    []
    """
    model = build(read_text(text), "integrate")
    program = prepared(model, {"x": (4,), "x_rate": (4,)})
    assert {v.name: len(v.axes) for v in program.inputs} == {
        "x": 1, "x_rate": 1, "x~1": 1, "t": 0, "t~1": 0,
    }  # fmt: skip
    with pytest.raises(IngotError) as raised:
        trace(model, {"x": (4,), "x~1": (5,)})
    assert raised.value.problems[0].code == "shapes-differ"


CRYSTAL = """
[Tensors]
  [direction]
    type = Python
    expr = 'MillerIndex(torch.tensor([1.0, 1.0, 0.0]))'
  []
  [plane]
    type = Python
    expr = 'MillerIndex(torch.tensor([1.0, 1.0, 1.0]))'
  []
[]
[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 1.0
    slip_directions = 'direction'
    slip_planes = 'plane'
  []
[]
[Models]
  [law]
    type = SingleSlipStrengthMap
    slip_hardening = 'h'
    constant_strength = 50
  []
  [rule]
    type = PowerLawSlipRule
    resolved_shears = 'shears'
    slip_strengths = 'slip_strengths'
    gamma0 = 1
    n = 3
  []
  [both]
    type = ComposedModel
    models = 'law rule'
  []
[]
"""


def test_data_gives_an_axis_its_extent() -> None:
    program = prepared(build(read_text(CRYSTAL), "law"))
    assert program.extents["slip"] == 12
    results, _ = Interpreter(program)({"h": torch.ones(3, dtype=torch.float64)})
    assert torch.equal(results["slip_strengths"], torch.full((3, 12), 51.0, dtype=torch.float64))


def test_an_axis_that_does_not_fit_the_data_is_refused() -> None:
    with pytest.raises(IngotError) as raised:
        prepared(build(read_text(CRYSTAL), "both"), {"shears": (11,)})
    assert {p.code for p in raised.value.problems} == {"extents-differ"}


def without(x: Scalar, y: Scalar = optional) -> Scalar:
    return x if y is None else x * y


def test_an_optional_input_is_absent_unless_named() -> None:
    assert [v.name for v in program_of(without).inputs] == ["x"]
    assert [v.name for v in program_of(without, y="z").inputs] == ["x", "z"]


def two_outputs(x: Scalar, *, factor: Parameter[Scalar]) -> tuple[Scalar, Vec]:  # type: ignore
    return x * factor, Vec.of(x, x, factor)


def test_a_law_may_give_several_outputs() -> None:
    program = program_of(two_outputs, gives=("first", "second"))
    assert [(v.name, v.kind) for v in program.outputs] == [("first", Scalar), ("second", Vec)]


def constant_result(x: Scalar["cell"]) -> Vec:  # type: ignore  # noqa: F821
    return Vec(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))


def test_a_law_may_give_a_constant() -> None:
    program = program_of(constant_result, shapes={"x": (4,)})
    results, _ = Interpreter(program)({"x": torch.zeros(2, 4, dtype=torch.float64)})
    assert results["out"].tolist() == [[1.0, 2.0, 3.0]] * 2


def constant_on_an_axis(x: Scalar["cell"]) -> Scalar["cell"]:  # type: ignore  # noqa: F821
    return Scalar(torch.arange(4, dtype=torch.float64), sub_batch_ndim=1)


def test_a_law_may_give_a_constant_on_its_axis() -> None:
    program = program_of(constant_on_an_axis, shapes={"x": (4,)})
    results, _ = Interpreter(program)({"x": torch.zeros(2, 4, dtype=torch.float64)})
    assert results["out"].tolist() == [[0.0, 1.0, 2.0, 3.0]] * 2


@pytest.mark.parametrize("exponent", ["inf", "-inf", "1e308", "64", "-8", "-9", "0"])
def test_any_exponent_is_folded(exponent: str) -> None:
    def Power(x: Scalar, *, n: Parameter[Scalar]) -> Scalar:
        """A power."""
        return x**n

    with declared(Power):
        program = prepared(model_of(Power, n=exponent))
    x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    torch.testing.assert_close(Interpreter(program)({"x": x})[0]["out"], x ** float(exponent))


ELEMENTWISE = (
    exp,
    log,
    sqrt,
    sin,
    cos,
    tan,
    sinh,
    cosh,
    tanh,
    atan,
    abs,
    sign,
    heaviside,
    macaulay,
)


@pytest.mark.parametrize("function", ELEMENTWISE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("number", [1.9, 2, np.float64(0.5), True])
def test_function_of_a_plain_number_is_a_constant(function: Any, number: Any) -> None:
    def Law(x: Scalar) -> Scalar:
        """A constant times x."""
        return x * function(number) + minimum(number, 1.5) + where(number > 1, 2.0, x)

    x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    factor = function(Scalar(float(number))).data
    wanted = x * factor + min(number, 1.5) + (2.0 if number > 1 else x)
    torch.testing.assert_close(Interpreter(program_of(Law))({"x": x})[0]["out"], wanted)


@pytest.mark.parametrize("wrong", [1.9, np.float64(1.9), "a", None, [1.0], torch.tensor(1.9)])
@pytest.mark.parametrize("function", [dev, tr, norm, unit, eps, inv, sym], ids=lambda f: f.__name__)
def test_what_is_no_value_of_its_kind_is_told_with_what_is(function: Any, wrong: Any) -> None:
    def Law(x: Scalar) -> Scalar:
        """Wrong."""
        return x * function(wrong)

    name = function.__name__
    with pytest.raises(IngotError) as raised:
        program_of(Law)
    told = str(raised.value)
    assert f"Law: '{name}' was given {type(wrong).__name__}" in told or "untraceable" in told
    assert "test_tracer.py" in told
    assert f"write {name}(" in told or "untraceable" in told
