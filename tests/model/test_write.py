"""A model is written as a file from what it was made of, and reads back as the same model."""

import copy
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ingot
from ingot import IngotError, Model, laws
from ingot.drivers import TransientDriver, transient_driver
from ingot.drivers.modelling import from_hit
from ingot.model import Factory, build
from ingot.program import prepared
from ingot.types import SR2, Scalar
from tests.program.test_modelling import at, draw

SOME = (
    "models/common", "models/solid_mechanics/elasticity", "regression/chemical_reactions",
    "regression/solid_mechanics/crystal_plasticity",
    "regression/solid_mechanics/rate_independent_plasticity", "aoti",
)  # fmt: skip
"""Folders of published cases, of each of which one file is read in the plain run."""


def digest(model: Model) -> str:
    return prepared(model, model.shapes).digest


def check_round_trip(model: Model) -> Model:
    """Written and read twice it is the same, to the parameter and to the letter."""
    text, before = model.to_hit(), model
    for _ in range(2):
        again = build(ingot.read_text(text), model.name)
        assert digest(again) == digest(before)
        assert again.to_hit() == text
        assert list(again.named_values()) == list(model.named_values())
        before = again
    return before


def models_of(file: Path) -> tuple[list[Model], list[Model]]:
    """The models of a file that can be traced, and those with an axis that a driver must give."""
    tree = ingot.read(file)
    factory = Factory(tree)
    traced: list[Model] = []
    open_axes: list[Model] = []
    for name in tree.names("Models"):
        try:
            model = factory.model(name)
        except IngotError:
            continue  # a file that is wrong on purpose
        model.shapes = factory.settings.extents(model)
        try:
            digest(model)
        except IngotError as error:
            assert {p.code for p in error.problems} <= {"unknown-extent", "unknown-axis"}
            open_axes.append(model)
        else:
            traced.append(model)
    return traced, open_axes  # and the tree is gone


@pytest.mark.parametrize("folder", SOME)
def test_published_model_is_read_back_as_it_was(folder: str, cases: Path) -> None:
    file = random.Random(folder).choice(sorted((cases / folder).rglob("*.i")))
    for model in models_of(file)[0][-1:]:
        check_round_trip(model)


@pytest.mark.exhaustive
def test_every_published_model_is_read_back_as_it_was(cases: Path) -> None:
    checked, written = 0, 0
    for file in sorted(cases.rglob("*.i")):
        traced, open_axes = models_of(file)
        for model in traced:
            check_round_trip(model)
        for model in open_axes:  # their drivers are read back too, below
            text = model.to_hit()
            assert build(ingot.read_text(text), model.name).to_hit() == text
        checked, written = checked + len(traced), written + len(open_axes)
    assert checked > 890 and written < 40


@pytest.mark.exhaustive
def test_every_published_driver_is_read_back_as_it_was(cases: Path) -> None:
    checked = 0
    for file in sorted(cases.rglob("*.i")):
        tree = ingot.read(file)
        for block in (b for part in tree.section("Drivers") for b in part.blocks):
            if block.type != "TransientDriver":
                continue
            try:
                driver = transient_driver(Factory(tree), block.name)
            except IngotError:
                continue  # a package that is not there
            again = from_hit(driver.to_hit(), block.name)
            assert isinstance(again, TransientDriver)
            assert again.program.digest == driver.program.digest
            for name, rows in driver.transient.prescribed.items():
                assert torch.equal(rows, again.transient.prescribed[name])
            for name, rows in driver.transient.initial.items():
                assert torch.equal(rows, again.transient.initial[name])
            assert again.to_hit() == driver.to_hit()
            checked += 1
    assert checked > 40


@pytest.mark.parametrize("seed", range(20, 28))
def test_model_of_python_is_read_back_as_it_was(seed: int) -> None:
    built, _ = draw(seed)
    check_round_trip(built)


def test_parameters_are_written_as_they_are_now() -> None:
    built, _ = draw(3)
    for i, (name, value) in enumerate(built.named_values().items()):
        built.set_parameter(name, value.data * 0 + 0.1 * i)
    again = check_round_trip(built)
    given = dict.fromkeys(built.inputs, 0.3)
    for name, value in at(built, **given).items():
        assert torch.equal(value, at(again, **given)[name])


def test_batches_tensors_and_crystals_are_written() -> None:
    crystal = laws.CubicCrystal(
        lattice_parameter=1.1, slip_directions=[[1, 1, 0]], slip_planes=[[1, 1, 1]]
    )
    shear = laws.ResolvedShear(crystal_geometry=crystal, name="shear")
    rule = laws.PowerLawSlipRule(gamma0=torch.tensor([1.0, 2.0]), n=Scalar(5.1), name="rule")
    hard = laws.VoceIsotropicHardening(saturated_hardening=0.1 + 0.2, saturation_rate="b")
    fixed = laws.SR2ConstantParameter(value=SR2(torch.arange(6.0)), name="fixed")
    both = laws.ResolvedShear(crystal_geometry=crystal, name="again", resolved_shears="more")
    again = check_round_trip(ingot.compose(shear, rule, hard, fixed, both, name="all"))
    text = again.to_hit()
    assert text.count("type = CubicCrystal") == 1
    assert "0.30000000000000004" in text
    assert again.inputs["b"] is Scalar


def test_variable_that_is_called_as_a_block_stays_a_variable() -> None:
    inner = laws.ScalarLinearCombination(from_=["a"], to="b", name="b")
    reads = laws.VoceIsotropicHardening(saturated_hardening="b", saturation_rate=1.0)
    alone = ingot.compose(reads, name="alone")
    whole = ingot.compose(alone, inner, name="whole")
    again = build(ingot.read_text(whole.to_hit()), "whole")
    assert list(again.inputs) == list(whole.inputs)
    assert list(again.parts["alone"].inputs) == list(alone.inputs)


def test_data_that_was_set_by_hand_is_told() -> None:
    crystal = laws.CubicCrystal(
        lattice_parameter=1.0, slip_directions=[[1, 1, 0]], slip_planes=[[1, 1, 1]]
    )
    shear = laws.ResolvedShear(crystal_geometry=crystal)
    shear.set_parameter("_cg.M_data", torch.ones(12, 6))
    with pytest.raises(IngotError, match="not-written"):
        shear.to_hit()


def test_from_hit_takes_text_a_path_and_finds_what_is_meant(tmp_path: Path) -> None:
    built, text = draw(5)
    file = tmp_path / "a file.i"
    file.write_text(text)
    for source in (text, file, str(file), ingot.read(file)):
        found = from_hit(source)
        assert isinstance(found, Model)
        assert digest(found) == digest(built)
    two = "[Models]" + "".join(
        f"[{n}]\ntype = ScalarLinearCombination\nfrom = {n}\nto = {n}2\n[]\n" for n in "ab"
    )
    with pytest.raises(IngotError, match="one of: a, b"):
        from_hit(two + "[]")


def test_copies_and_models_of_one_name_are_written() -> None:
    inner = [laws.ScalarLinearCombination(from_=[a], to=b, weights=[2.0]) for a, b in ("xy", "yz")]
    whole = ingot.compose(
        *(ingot.compose(each, name="my part") for each in inner), name="all of it"
    )
    text = whole.to_hit()
    again = from_hit(text)
    assert isinstance(again, Model)
    assert float(at(again, x=1.0)["z"]) == float(at(whole, x=1.0)["z"]) == 4.0
    assert len(again.named_values()) == len(whole.named_values())
    for copied in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        whole.set_parameter("my part.ScalarLinearCombination.weights_0", 5.0)
        assert copied.to_hit() == text != whole.to_hit()
        whole.set_parameter("my part.ScalarLinearCombination.weights_0", 2.0)


@pytest.mark.parametrize("name", ["my run", "a]b", "a/b", "x'y", "", " [", "1", "a#b", "${x}"])
def test_names_that_no_file_holds_are_written_by_others(name: str) -> None:
    model = laws.ScalarLinearCombination(from_=["a"], to="b", name=name)
    driver = ingot.transient(model, time=[0.0, 1.0], a=2.0, name=name)
    for text, kind in ((model.to_hit(), Model), (driver.to_hit(), TransientDriver)):
        assert isinstance(from_hit(text), kind)


LETTERS = "ab_1.~-+/:=[](){}!\\%&*,<>?@^`| #$'\";\t\n\r\x0b\x1f\x00\x85\u00a0\u2028\u200bé😀"


def draw_name(draws: random.Random) -> str:
    """A word of odd letters, or one that is almost a name."""
    if draws.random() < 0.3:
        return draws.choice(["x", "ab", "strain"]) + draws.choice([*LETTERS, "${x}", "'''", '"""'])
    return "".join(draws.choices(LETTERS, k=draws.randint(0, 4)))


NAMED: dict[str, Callable[[str], Model]] = {
    "input of a list": lambda n: laws.ScalarLinearCombination(from_=["u", n], to="v"),
    "input": lambda n: laws.YieldFunction(yield_stress=1.0, effective_stress=n),
    "parameter": lambda n: laws.YieldFunction(yield_stress=n),
    "output": lambda n: laws.ScalarLinearCombination(from_=["u"], to=n),
    "output of a block's name": lambda n: laws.ScalarConstantParameter(value=1.0, name=n),
    "history": lambda n: laws.ScalarBackwardEulerTimeIntegration(variable=n),
    "slope": lambda n: laws.Normality(
        model=laws.YieldFunction(yield_stress=1.0), function="yield_function",
        from_=["effective_stress"], to=[n],
    ),
    "sum over points": lambda n: laws.SR2DynamicSum(from_="u", to=n, dim=0),
    "axis": lambda n: laws.SR2IntermediateSum(from_=n, to="v", reduces="u"),
    "composition": lambda n: ingot.compose(laws.YieldFunction(yield_stress=1.0), name=n),
}  # fmt: skip


@pytest.mark.parametrize("place", NAMED)
def test_name_is_refused_where_it_is_given_or_is_read_back(place: str) -> None:
    draws, taken = random.Random(place), 0
    for _ in range(150):
        name = draw_name(draws)
        try:
            model = NAMED[place](name)
        except IngotError as error:
            assert all(p.code in ("wrong-value", "number-like") for p in error.problems)
            continue
        again = from_hit(model.to_hit())
        assert isinstance(again, Model)
        assert (again.inputs, again.outputs) == (model.inputs, model.outputs)
        assert again.to_hit() == model.to_hit()
        taken += 1
    assert taken > 10


def test_driver_is_read_back_whatever_it_is_called_and_saved_as() -> None:
    draws = random.Random(3)
    law = laws.ScalarLinearCombination(from_=["a"], to="b")
    for _ in range(150):
        name, path = draw_name(draws), f"r{draw_name(draws)}{draw_name(draws)}z.csv"
        try:
            driver = ingot.transient(law, time=[0.0, 1.0], a=2.0, name=name, save_as=path)
            text = driver.to_hit()
        except IngotError as error:
            assert {p.code for p in error.problems} <= {"wrong-value", "not-written"}
            continue
        again = from_hit(text)
        assert isinstance(again, TransientDriver)
        assert again.save_as == driver.save_as, (path, text)


@pytest.mark.parametrize("name", [3, b"x", ["x"]])
def test_name_that_is_no_string_is_refused(name: Any) -> None:
    law = laws.ScalarLinearCombination(from_=["a"], to="b")
    for make in (
        lambda: laws.YieldFunction(yield_stress=1.0, name=name),
        lambda: ingot.compose(law, name=name),
        lambda: ingot.transient(law, time=[0.0, 1.0], a=2.0, name=name),
    ):
        with pytest.raises(IngotError, match="'name' should be a string"):
            make()


def test_only_model_of_a_file_may_be_called_as_what_it_gives() -> None:
    found = from_hit("[Models]\n[c]\ntype = ScalarLinearCombination\nfrom = a\nto = c\n[]\n[]\n")
    assert isinstance(found, Model) and found.name == "c"
