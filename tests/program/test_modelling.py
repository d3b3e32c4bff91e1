"""Models composed in Python are those that a file describes: the same builders make both."""

import copy
import math
import pickle
import random
from typing import Any

import pytest
import torch

import ingot
from ingot import IngotError, Model, laws
from ingot.catalog import Parameter, model
from ingot.program import prepared
from ingot.types import Scalar
from tests.compositions import NEWTON, combination, composed, models
from tests.program.declared import declared


def draw(seed: int) -> tuple[Model, str]:
    """A random chain of sums and updates that read one another, in Python and as a file."""
    draws = random.Random(seed)
    known = ["a", "b"]
    parts: list[Model] = []
    text = NEWTON
    for i in range(draws.randint(1, 5)):
        chosen = draws.sample(known, draws.randint(1, min(3, len(known))))
        terms = {name: draws.uniform(-2, 2) for name in chosen}
        if draws.random() < 0.5:
            parts.append(_combine(f"part{i}", terms, f"v{i}"))
            text += models(combination(f"part{i}", terms, f"v{i}"))
        else:
            terms[f"v{i}"] = -1.0
            parts.append(_update(i, terms))
            text += _update_text(i, terms)
        known.append(f"v{i}")
    more = draws.sample(known[2:], draws.randint(0, len(known) - 2))
    listed = draws.sample(parts, len(parts))
    names = " ".join(part.name for part in listed)
    built = ingot.compose(*listed, additional_outputs=more, name="model")
    states = (f"v{i}" for i, part in enumerate(parts) if part.type_name == "ImplicitUpdate")
    return built, text + composed(names, " ".join(dict.fromkeys([*more, *states])))


def _combine(name: str, terms: dict[str, float], to: str) -> Model:
    return laws.ScalarLinearCombination(
        name=name, from_=[*terms], to=to, weights=[*terms.values()]
    )  # fmt: skip


def _update(i: int, terms: dict[str, float]) -> Model:
    residual = ingot.compose(
        _combine(f"rate{i}", terms, f"v{i}_rate"),
        laws.ScalarBackwardEulerTimeIntegration(variable=f"v{i}", name=f"integrate{i}"),
        name=f"residual{i}",
    )
    return ingot.implicit(residual, unknowns=[f"v{i}"], guess="old", name=f"part{i}")


def _update_text(i: int, terms: dict[str, float]) -> str:
    return f"""
[Models]{combination(f"rate{i}", terms, f"v{i}_rate")}
  [integrate{i}]
    type = ScalarBackwardEulerTimeIntegration
    variable = v{i}
  []
  [residual{i}]
    type = ComposedModel
    models = 'rate{i} integrate{i}'
  []
  [part{i}]
    type = ImplicitUpdate
    equation_system = system{i}
    solver = newton
    guess = old
  []
[]
[EquationSystems]
  [system{i}]
    type = NonlinearSystem
    model = residual{i}
    unknowns = v{i}
  []
[]
"""


def at(model: Model, **given: float) -> dict[str, torch.Tensor]:
    """The outputs of a model at one point."""
    with torch.no_grad():
        return model({n: torch.tensor(x, dtype=torch.float64) for n, x in given.items()})


def refused(make: Any, *arguments: Any, **options: Any) -> str:
    """What is told at the line of this file that calls."""
    with pytest.raises(IngotError) as caught:
        make(*arguments, **options)
    assert all(p.fix for p in caught.value.problems)
    assert f"--> {__file__}" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("seed", range(12))
def test_python_and_a_file_describe_the_same_program(seed: int) -> None:
    built, text = draw(seed)
    read = ingot.build(ingot.read_text(text), "model")
    assert prepared(built).digest == prepared(read).digest
    assert {n: v.data.tolist() for n, v in built.named_values().items()} == {
        n: v.data.tolist() for n, v in read.named_values().items()
    }


def test_models_of_one_name_are_told_apart_in_their_composition() -> None:
    first, second = (laws.ScalarLinearCombination(from_=[x], to=f"{x}y") for x in "ab")
    both = ingot.compose(first, second)
    assert list(both.parts) == ["ScalarLinearCombination", "ScalarLinearCombination_2"]
    both.set_parameter("ScalarLinearCombination_2.weights_0", 3.0)
    assert float(at(both, a=1.0, b=1.0)["by"]) == 3.0


def test_model_stands_in_for_a_parameter() -> None:
    modulus = laws.ScalarLinearInterpolation(
        name="modulus", argument="T", abscissa=[0.0, 10.0], ordinate=[1.0, 3.0]
    )
    law = laws.VoceIsotropicHardening(saturated_hardening=modulus, saturation_rate=2.0)
    both = ingot.compose(law)
    assert list(both.inputs) == ["T", "equivalent_plastic_strain"]
    given = {"T": 5.0, "equivalent_plastic_strain": 100.0}
    assert float(at(both, **given)["isotropic_hardening"]) == pytest.approx(2.0)
    picked = laws.VoceIsotropicHardening(saturated_hardening=modulus["modulus"], saturation_rate=1)
    assert picked.providers == {"modulus": modulus}


def interpolate(ordinate: list[float], **options: Any) -> Model:
    """A line in the temperature from 300 to 900."""
    return laws.ScalarLinearInterpolation(
        argument="temperature", abscissa=[300.0, 900.0], ordinate=ordinate, **options
    )


def test_models_that_stand_in_for_parameters_of_one_law_are_told_apart() -> None:
    law = laws.VoceIsotropicHardening
    told = refused(
        law, saturated_hardening=interpolate([80.0, 20.0]), saturation_rate=interpolate([40.0, 10])
    )
    assert "two-providers" in told
    assert "'saturation_rate' is given by [ScalarLinearInterpolation]" in told
    assert "give one of the two another 'output'" in told
    told = refused(
        laws.ScalarLinearCombination, from_=["a", "b"], to="c",
        weights=[interpolate([1.0, 2.0]), interpolate([3.0, 4.0])],
    )  # fmt: skip
    assert "two-providers" in told
    shared = interpolate([40.0, 10.0])
    law(saturated_hardening=shared, saturation_rate=shared["ScalarLinearInterpolation"])
    for rename in ("output", "name"):
        rate = interpolate([40.0, 10.0], **{rename: "rate"})
        model = law(saturated_hardening=interpolate([80.0, 20.0]), saturation_rate=rate)
        both = ingot.compose(model, name="both")
        found = at(both, equivalent_plastic_strain=0.01, temperature=600.0)
        assert float(found["isotropic_hardening"]) == pytest.approx(50 * -math.expm1(-0.25))
        again = ingot.from_hit(both.to_hit(), "both")
        assert isinstance(again, Model)
        assert prepared(again).digest == prepared(both).digest


def test_law_without_the_model_of_its_parameter_says_how_it_is_complete() -> None:
    law = laws.VoceIsotropicHardening(
        saturated_hardening=interpolate([80.0, 20.0], name="modulus"), saturation_rate=40.0
    )
    given = {"equivalent_plastic_strain": 0.01, "temperature": 600.0}
    wanted = 50 * -math.expm1(-0.4)
    for told in (refused(at, law, **given), refused(ingot.compile, law)):
        assert "missing-input" in told
        assert "'modulus' is given by a model that is no part of [VoceIsotropicHardening]" in told
        assert "ingot.compose(law)" in told
    found = at(law, equivalent_plastic_strain=0.01, modulus=50.0)
    assert float(found["isotropic_hardening"]) == pytest.approx(wanted)
    assert float(at(ingot.compose(law), **given)["isotropic_hardening"]) == pytest.approx(wanted)
    driver = ingot.transient(law, time=[0.0, 1.0], inputs=given)
    assert float(driver.run("interpret")["isotropic_hardening"].to_numpy()[1]) == pytest.approx(
        wanted
    )
    slope = laws.Normality(
        model=law, function="isotropic_hardening", from_=["equivalent_plastic_strain"], to=["slope"]
    )
    found = at(ingot.compose(slope), **given)["slope"]
    assert float(found) == pytest.approx(50 * 40 * math.exp(-0.4))


def test_model_that_is_called_with_keywords_says_how_it_is_called() -> None:
    law = laws.ScalarLinearCombination(from_=["a", "b"], to="c")
    for named in ({}, {"a": 1.0, "b": 2.0}):
        with pytest.raises(IngotError, match="called with one dictionary") as caught:
            law(**named)
        assert caught.value.problems[0].fix == 'write model({"a": ..., "b": ...})'


def test_single_residual_is_taken_with_the_model_of_its_parameter() -> None:
    residual = laws.ScalarLinearCombination(
        from_=["x"], weights=[interpolate([2.0, 4.0], name="factor")], offset=-6.0,
        to="x_residual",
    )  # fmt: skip
    solve = ingot.implicit(residual, unknowns=["x"])
    assert float(at(solve, x=1.0, temperature=600.0)["x"]) == pytest.approx(2.0)


def test_law_of_a_cell_composes_and_is_replaced_by_the_next() -> None:
    def Doubled(x: Scalar, *, by: Parameter[Scalar]) -> Scalar:
        return by * x

    with declared():
        model(gives="y")(Doubled)
        first = laws.of(Doubled)(x="a", by=2.0)
        before = ingot.compose(first, laws.ScalarLinearCombination(from_=["y"], to="z"))

        def Tripled(x: Scalar, *, by: Parameter[Scalar]) -> Scalar:
            return by * x * x

        Tripled.__name__ = "Doubled"
        model(gives="y")(Tripled)
        after = laws.Doubled(x="a", by=3.0)  # type: ignore[reportAttributeAccessIssue]
        assert float(at(before, a=1.0)["z"]) == 2.0
        assert float(at(after, a=1.0)["y"]) == 3.0
        for keep in (Model.to_hit, pickle.dumps):
            with pytest.raises(IngotError, match="'Doubled' was declared again since the model"):
                keep(before)
        assert float(at(copy.deepcopy(before), a=1.0)["z"]) == 2.0
        assert "by = 3.0" in after.to_hit()
        assert "'Doubled' is not declared" in refused(laws.of, Doubled)


def test_crystal_is_shared_by_laws_that_read_it() -> None:
    crystal = laws.CubicCrystal(
        lattice_parameter=1.0, slip_directions=[1, 1, 0], slip_planes=[1, 1, 1]
    )
    shear = laws.ResolvedShear(crystal_geometry=crystal)
    assert len(crystal.systems) == 12
    assert shear.data["_cg"].source is crystal
    assert shear.data["_cg"] is laws.ResolvedShear(crystal_geometry=crystal).data["_cg"]


def test_arrays_of_parameters_are_batches() -> None:
    law = laws.VoceIsotropicHardening(
        saturated_hardening=torch.tensor([1.0, 2.0]), saturation_rate=1e9
    )
    assert at(law, equivalent_plastic_strain=1.0)["isotropic_hardening"].tolist() == [1.0, 2.0]
