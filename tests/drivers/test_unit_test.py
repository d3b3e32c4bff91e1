"""A unit test sees a wrong value and a wrong derivative."""

import pytest
import torch

from ingot.drivers import Verdict, build_driver, unit_test
from ingot.errors import IngotError
from ingot.execute import Backend
from ingot.hit import read_text

ELASTIC = """
[Tensors]
  [strain]
    type = Python
    expr = 'SR2.fill(0.09, 0.04, -0.02)'
  []
  [stress]
    type = Python
    expr = 'SR2.fill(13.26923, 9.42308, 4.80769)'
  []
[]
[Models]
  [model]
    type = LinearIsotropicElasticity
    coefficients = '100 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
[Drivers]
  [unit]
    type = ModelUnitTest
    model = 'model'
    input_SR2_names = 'strain'
    input_SR2_values = 'strain'
    output_SR2_names = 'stress'
    output_SR2_values = 'stress'
  []
[]
"""
SOLVED = """
[Models]
  [square]
    type = ScalarLinearCombination
    from = 'x'
    to = 'y'
    weights = 'x'
  []
  [residual]
    type = ScalarLinearCombination
    from = 'y a'
    to = 'x_residual'
    weights = '1 -1'
  []
  [both]
    type = ComposedModel
    models = 'square residual'
  []
  [root]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'both'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-14
    rel_tol = 0
  []
[]
[Drivers]
  [unit]
    type = ModelUnitTest
    model = 'root'
    input_Scalar_names = 'x a'
    input_Scalar_values = '1.5 2.0'
    output_Scalar_names = 'x'
    output_Scalar_values = '1.4142135623730951'
  []
[]
"""


def judged(text: str, *overrides: str, backend: Backend = "interpret") -> Verdict:
    return build_driver(read_text(text, "model.i", overrides), "unit").run(backend)


def test_values_and_derivatives_are_checked(backend: Backend) -> None:
    verdict = judged(ELASTIC, backend=backend)
    assert verdict.passed, verdict.problems
    assert verdict.checks == 2


def test_a_wrong_value_fails() -> None:
    (problem,) = judged(ELASTIC, "Models/model/coefficients:='100 0.2'").problems
    assert "stress: max abs error" in problem.message


def test_a_wrong_derivative_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = torch.func.jvp
    monkeypatch.setattr(
        torch.func, "jvp", lambda f, x, t: exact(f, x, tuple(2.0 * each for each in t))
    )
    (problem,) = judged(ELASTIC).problems
    assert "d(stress)/d(strain)" in problem.message


def test_the_direction_counts_up() -> None:
    assert torch.equal(
        unit_test.choose_direction(torch.zeros(2, 2)), torch.tensor([[0.2, 0.4], [0.6, 0.8]])
    )


def test_a_model_that_solves_is_checked_by_differences(backend: Backend) -> None:
    verdict = judged(SOLVED, backend=backend)
    assert verdict.passed, verdict.problems
    assert verdict.checks == 3


def test_differences_see_a_wrong_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = unit_test.choose_direction
    monkeypatch.setattr(unit_test, "difference_centrally", lambda f, x, t: {"x": exact(x)})
    assert not judged(SOLVED).passed


def test_a_solve_that_fails_is_told() -> None:
    (problem,) = judged(SOLVED, "Solvers/newton/max_its=2").problems
    assert problem.code == "not-converged"


@pytest.mark.exhaustive
def test_a_law_is_checked_by_compiled_graphs() -> None:
    verdict = judged(ELASTIC, backend="inductor")
    assert verdict.passed, verdict.problems
    assert verdict.checks == 2


def test_derivatives_through_a_solve_are_not_checked_by_graphs() -> None:
    with pytest.raises(IngotError, match=r"wrong-backend.*which graphs lack"):
        judged(SOLVED, backend="inductor")
