"""Plain torch evaluation of a live model agrees with its program."""

import torch

from ingot.drivers.plain import plain
from ingot.execute import Backend, executor
from ingot.hit import read_text
from ingot.model import Factory, Model
from ingot.program import prepared

TEXT = """
[Tensors]
  [moduli]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, 2.0, 3.0]))'
  []
[]
[Models]
  [invariant]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'mandel_stress'
    invariant = 'effective_stress'
  []
  [yield_surface]
    type = YieldFunction
    yield_stress = 5
    isotropic_hardening = 'hardening'
  []
  [flow]
    type = ComposedModel
    models = 'invariant yield_surface'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'mandel_stress hardening'
    to = 'direction hardening_direction'
  []
  [scaled]
    type = SR2LinearCombination
    from = 'direction'
    to = 'scaled'
    weights = 'moduli'
  []
  [all]
    type = ComposedModel
    models = 'flow normality scaled'
    additional_outputs = 'direction'
  []
[]
"""


def model_of(name: str) -> Model:
    return Factory(read_text(TEXT)).model(name)


def test_composed_gradients_and_batched_parameters_agree(backend: Backend) -> None:
    model = model_of("all")
    generator = torch.Generator().manual_seed(1)
    stress = torch.randn(2, 3, 6, dtype=torch.float64, generator=generator)
    inputs = {"mandel_stress": stress, "hardening": torch.tensor(0.5, dtype=torch.float64)}
    evaluate = plain(model, {})
    assert evaluate is not None
    exact = evaluate(inputs)
    found, _ = executor(prepared(model), backend)(inputs)
    assert exact.keys() == found.keys() == model.outputs.keys()
    for name, value in exact.items():
        torch.testing.assert_close(found[name], value)


def test_structural_axes_are_kept() -> None:
    model = model_of("invariant")
    stress = torch.randn(3, 4, 6, dtype=torch.float64)
    evaluate = plain(model, {"mandel_stress": 1})
    assert evaluate is not None
    assert evaluate({"mandel_stress": stress})["effective_stress"].shape == (3, 4)


def test_a_model_that_solves_has_no_plain_evaluation() -> None:
    text = (
        TEXT
        + """
[Models]
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
  [outer]
    type = ComposedModel
    models = 'update'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'scaled'
    unknowns = 'direction'
    residuals = 'scaled'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
"""
    )
    assert plain(Factory(read_text(text)).model("outer"), {}) is None
