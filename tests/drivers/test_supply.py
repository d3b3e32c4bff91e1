"""What nobody gives, carries or reads is told; what the peers mean by zero is not."""

import math
import random
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ingot.drivers import TransientDriver, build_driver
from ingot.drivers.supply import not_finite
from ingot.errors import IngotError, IngotWarning, Problem, Span
from ingot.execute import Backend
from ingot.hit import read_text
from ingot.model import Factory

SPAN = Span("model.i", 1, 1)
PLASTIC = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 6))'
  []
  [strains]
    type = Python
    expr = 'SR2.fill(Scalar(torch.linspace(0, 0.02, 6)), 0.0, 0.0)'
  []
  [zero]
    type = Python
    expr = 'Scalar(0.0)'
  []
[]
[Models]
  [elastic_strain]
    type = SR2LinearCombination
    from = 'strain plastic_strain'
    to = 'elastic_strain'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [mandel]
    type = IsotropicMandelStress
    cauchy_stress = 'stress'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = VONMISES
    tensor = 'mandel_stress'
    invariant = 'effective_stress'
  []
  [yield]
    type = YieldFunction
    yield_stress = 150
  []
  [flow]
    type = ComposedModel
    models = 'vonmises yield'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'mandel_stress'
    to = 'flow_direction'
  []
  [rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 500
    exponent = 3
  []
  [plastic_rate]
    type = AssociativePlasticFlow
  []
  [integrate]
    type = SR2BackwardEulerTimeIntegration
    variable = 'plastic_strain'
  []
  [residual]
    type = ComposedModel
    models = 'elastic_strain elasticity mandel vonmises yield normality rate plastic_rate integrate'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
  [model]
    type = ComposedModel
    models = 'update elastic_strain elasticity'
    additional_outputs = 'plastic_strain'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'plastic_strain'
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-10
    rel_tol = 1e-12
    max_its = 50
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'model'
    prescribed_time = 'times'
    prescribed_SR2_names = 'strain'
    prescribed_SR2_values = 'strains'
  []
[]
"""


def driver_of(text: str, *, strict: bool = False) -> TransientDriver:
    driver = build_driver(Factory(read_text(text), strict=strict), "driver")
    assert isinstance(driver, TransientDriver)
    return driver


def told(text: str, backend: Backend = "interpret") -> list[Problem]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        driver_of(text).run(backend)
    return [each.message.problem for each in caught if isinstance(each.message, IngotWarning)]


def replaced(old: str, new: str, count: int = 1) -> str:
    assert PLASTIC.count(old) >= 1
    return PLASTIC.replace(old, new, count)


def test_a_file_that_gives_all_it_reads_is_not_warned_of() -> None:
    assert told(PLASTIC) == []


def test_a_misspelt_output_is_told_with_the_name_that_was_meant() -> None:
    text = replaced("to = 'elastic_strain'", "to = 'elastic_strian'")
    (problem,) = told(text)
    assert problem.code == "unprescribed-input"
    assert "'elastic_strain' of [model]" in problem.message
    assert problem.fix == "did you mean 'elastic_strian'?"
    assert problem.span is not None
    assert problem.span.block == "Models/elasticity"
    with pytest.raises(IngotError, match="unprescribed-input"):
        driver_of(text, strict=True).run("interpret")
    with pytest.raises(IngotError, match="unprescribed-input"):
        driver_of(text + "[Settings]\n  strict = true\n[]\n").run("interpret")


def test_a_history_that_nobody_carries_is_told_with_the_line_to_add() -> None:
    text = replaced("    additional_outputs = 'plastic_strain'\n", "")
    (problem,) = told(text)
    assert problem.code == "lost-history"
    assert "'plastic_strain~1' is zero at every step" in problem.message
    assert problem.fix == "add 'additional_outputs = plastic_strain' to [model]"
    with pytest.raises(IngotError, match="lost-history"):
        driver_of(text, strict=True).run("interpret")


def test_an_initial_value_that_nobody_reads_is_told() -> None:
    start = "    ic_SR2_names = 'elastic_strain'\n    ic_SR2_values = 'strain0'\n"
    tensor = "  [strain0]\n    type = Python\n    expr = 'SR2.fill(0.0, 0.0, 0.0)'\n  []\n"
    text = replaced("    prescribed_SR2_names", start + "    prescribed_SR2_names")
    text = text.replace("[Tensors]\n", f"[Tensors]\n{tensor}").replace(
        "additional_outputs = 'plastic_strain'",
        "additional_outputs = 'plastic_strain elastic_strain'",
    )
    (problem,) = told(text)
    assert problem.code == "unread-value"
    assert problem.fix == "did you mean 'plastic_strain'?"
    good = text.replace("ic_SR2_names = 'elastic_strain'", "ic_SR2_names = 'plastic_strain'")
    assert told(good) == []


def test_a_parameter_that_names_no_tensor_is_told() -> None:
    text = replaced("yield_stress = 150", "yield_stress = zreo")
    (problem,) = told(text)
    assert problem.code == "unprescribed-input"
    assert problem.fix == "did you mean 'zero'?"
    assert problem.span is not None
    assert problem.span.text.strip() == "yield_stress = zreo"


def test_values_of_as_many_points_that_are_crossed_are_told() -> None:
    text = replaced("linspace(0, 0.02, 6)", "linspace(0, 0.02, 6).reshape(6, 1, 1).expand(6, 3, 1)")
    text = text.replace("Scalar(0.0)", "Scalar(torch.tensor([1.0, 2.0, 3.0]))")
    text = text.replace("yield_stress = 150", "yield_stress = zero")
    (problem,) = told(text)
    assert problem.code == "batches-crossed"
    assert "(3,) and (3, 1)" in problem.message
    assert "(3, 3)" in problem.message


def test_a_result_that_is_not_finite_is_told_although_nothing_failed() -> None:
    text = replaced("linspace(0, 0.02, 6)", "linspace(0, 1e305, 6)")
    text = text.replace("models = 'update elastic_strain elasticity'", "models = 'elasticity'")
    text = text.replace("strain = 'elastic_strain'", "strain = 'strain'", 1)
    text = text.replace("    additional_outputs = 'plastic_strain'\n", "")
    (problem,) = told(text)
    assert problem.code == "not-finite"
    assert "'stress' is not finite from step 1 on" in problem.message


def test_large_numbers_whose_sum_overflows_are_finite() -> None:
    result = driver_of(PLASTIC).compute("interpret")
    large = replace(result, outputs={"stress": torch.full((6, 2), 1.7e308, dtype=torch.float64)})
    assert not list(not_finite(large, {}, SPAN))
    large.outputs["stress"][3, 1] = math.inf
    (problem,) = not_finite(large, {}, SPAN)
    assert "'stress' is not finite from step 3 on: 1 of 12 numbers" in problem.message


def test_points_that_fail_are_a_warning_from_python_and_an_error_where_strict() -> None:
    text = replaced("max_its = 50", "max_its = 2")
    assert [problem.code for problem in told(text)] == ["not-converged"]
    with pytest.raises(IngotError, match="not-converged"):
        driver_of(text, strict=True).run("interpret")


def test_what_a_driver_doubts_is_told_once() -> None:
    driver = driver_of(replaced("to = 'elastic_strain'", "to = 'elastic_strian'"))
    with pytest.warns(IngotWarning):
        driver.run("interpret")
    with warnings.catch_warnings():
        warnings.simplefilter("error", IngotWarning)
        driver.run("interpret")


NUMBER_LIKE = (
    "150MPa",
    "1e3x",
    "1,5",
    "0x10",
    ".5.",
    "1/3",
    "-5MPa",
    "+2E",
    "5%",
    "1.5.2",
    "1e",
    "150_MPa",
)


@pytest.mark.parametrize("word", NUMBER_LIKE)
def test_a_word_like_a_number_is_no_variable(word: str) -> None:
    with pytest.raises(IngotError, match="number-like") as caught:
        driver_of(replaced("yield_stress = 150", f"yield_stress = '{word}'"))
    (problem,) = caught.value.problems
    assert word in problem.message
    assert problem.span is not None
    assert problem.span.length == len(word)


@pytest.mark.parametrize("name", ["tensor = '1.5'", "tensor = '2x'", "invariant = '7'"])
def test_a_number_is_no_name_of_a_variable(name: str) -> None:
    key = name.split(" = ")[0]
    old = {"tensor": "mandel_stress", "invariant": "effective_stress"}[key]
    with pytest.raises(IngotError, match="number-like"):
        driver_of(replaced(f"{key} = '{old}'", name))


def names_in(text: str) -> list[tuple[int, int]]:
    """Where variables are named in [Models] and [EquationSystems]."""
    variables = ("strain", "plastic_strain", "elastic_strain", "mandel_stress", "effective_stress",
                 "yield_function", "flow_direction")  # fmt: skip
    begin, end = text.index("[Models]"), text.index("[Solvers]")
    places = []
    for row in text[begin:end].splitlines(keepends=True):
        if " = '" in row and "models" not in row:
            at = row.index("'") + 1
            for word in row[at:].rstrip().rstrip("'").split():
                where = row.index(word, at)
                if word in variables:
                    places.append((begin + where, begin + where + len(word)))
        begin += len(row)
    return places


def test_no_misspelling_of_a_variable_changes_results_silently() -> None:
    """Every name in turn, with two letters swapped: refused, warned of, or the same numbers."""
    right = driver_of(PLASTIC).run("interpret").outputs["stress"]
    assert float(right.abs().max()) > 100
    draw = random.Random(10)
    outcomes = {"refused": 0, "warned": 0, "same": 0}
    places = names_in(PLASTIC)
    assert len(places) > 10
    for begin, end in places * 3:
        name = PLASTIC[begin:end]
        swaps = [i for i in range(len(name) - 1) if name[i] != name[i + 1]]
        i = draw.choice(swaps)
        wrong = name[:i] + name[i + 1] + name[i] + name[i + 2 :]
        try:
            problems = told(PLASTIC[:begin] + wrong + PLASTIC[end:])
        except IngotError:
            outcomes["refused"] += 1
            continue
        if problems:
            outcomes["warned"] += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = driver_of(PLASTIC[:begin] + wrong + PLASTIC[end:]).run("interpret").outputs
        assert torch.equal(found["stress"], right), (name, wrong)
        outcomes["same"] += 1
    assert outcomes["warned"] > 0


def test_published_cases_that_run_are_not_warned_of(cases: Path) -> None:
    checked = 0
    for file in sorted(cases.rglob("*.i")):
        try:
            factory = Factory(read_text(file.read_text(), str(file)))
            names = [n for n in factory.tree.names("Drivers") if _steps(factory, n)]
            drivers = [build_driver(factory, name) for name in names]
        except IngotError:
            continue  # of types that do not exist yet
        for driver in drivers:
            assert isinstance(driver, TransientDriver)
            assert driver.doubts == (), file
            checked += 1
    assert checked > 10


def _steps(factory: Factory, name: str) -> bool:
    return factory.tree.require("Drivers", name).type == "TransientDriver"


GUESSED = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 3, dtype=torch.float64))'
  []
[]
[Models]
  [residual]
    type = ScalarLinearCombination
    from = 'x force'
    weights = '1 -1'
    to = 'x_residual'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    {predictor}
  []
  [twice]
    type = ScalarLinearCombination
    from = 'x x'
    to = 'y'
  []
  [model]
    type = ComposedModel
    models = 'update twice'
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
[Drivers]
  [driver]
    type = TransientDriver
    model = 'model'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'force'
    prescribed_Scalar_values = 'times'
  []
[]
"""


def test_a_history_that_a_predictor_alone_reads_decides_nothing() -> None:
    assert told(GUESSED.format(predictor="predictor = 'guess'")) == []
    (problem,) = told(GUESSED.format(predictor="guess = 'old'"))
    assert problem.code == "lost-history"
