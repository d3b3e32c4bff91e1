"""What a prompt or a notebook shows of a model, an artifact or a driver; showing never fails."""

import ast
from pathlib import Path

import pytest
import torch

import ingot
from ingot import Model, laws
from tests.program.test_modelling import draw


def law() -> Model:
    return laws.VoceIsotropicHardening(saturated_hardening=1.5, saturation_rate=[1.0, 2.0])


def test_model_shows_variables_values_and_parts() -> None:
    model = ingot.compose(law(), name="<both>")
    assert str(model).splitlines() == [
        "ComposedModel [<both>]",
        "  given  equivalent_plastic_strain: Scalar",
        "  gives  isotropic_hardening: Scalar",
        "  param  VoceIsotropicHardening.saturated_hardening: Scalar = 1.5",
        "  param  VoceIsotropicHardening.saturation_rate: Scalar = shape (2,)",
        "  part  VoceIsotropicHardening: VoceIsotropicHardening",
    ]
    html = model._repr_html_()
    assert "&lt;both&gt;" in html
    assert "<svg" in html


@pytest.mark.parametrize("seed", [2, 3])
def test_drivers_and_drawn_models_show_their_names(seed: int) -> None:
    model, _ = draw(seed)
    given = dict.fromkeys({"a", "b"} & model.inputs.keys(), 1.0)
    driver = ingot.transient(model, time=[0.0, 1.0], inputs=given)
    for shown in (repr(model), model._repr_html_()):
        assert all(name in shown for name in (*model.inputs, *model.outputs, *model.parts))
    assert "2 steps" in repr(driver)
    assert all(name in driver._repr_html_() for name in (*driver.forces, *model.outputs))


def test_half_edited_models_are_shown_too() -> None:
    lost, empty, new = law(), law(), Model.__new__(Model)
    del lost._parameters["saturation_rate"]
    empty.inputs = None  # type: ignore[reportAttributeAccessIssue]
    for model in (lost, empty, new):
        assert "cannot be shown" in repr(model)
        assert "cannot be shown" in model._repr_html_()
    wired = ingot.compose(law())
    wired.body = torch.nn.Identity()
    assert "param" in wired._repr_html_()


def test_the_example_of_a_tour_is_short() -> None:
    text = (Path(__file__).parents[2] / "examples" / "j2.py").read_text()
    assert len(text.splitlines()) <= 25
    assert ast.parse(text)
