"""Presets: what they write says the same as published files, and errors point at the user."""

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

import ingot
from ingot.cli.main import status
from ingot.drivers import TransientDriver, build_driver
from ingot.errors import IngotError
from ingot.hit import Tree, all_presets, list_presets, presets_of, read, read_text
from ingot.model import build
from ingot.model.model import find_ranges
from ingot.options import Range
from ingot.program import prepared

CASES = Path(__file__).parents[3] / "shared" / "cases" / "neml2"
ELASTIC = "E = 200e3\nnu = 0.3\n"
VOCE = "isotropic_hardening = voce\nsaturated_hardening = 100\nsaturation_rate = 10\n"
LINEAR = "isotropic_hardening = linear\nhardening_modulus = 1000\n"
FLOW = "reference_stress = 200\nexponent = 5\n"


def block(kind: str, *lines: str, name: str = "m") -> str:
    return f"[Models]\n[{name}]\ntype = {kind}\n" + "\n".join(lines) + "\n[]\n[]\n"


def draw(kind: str, seed: int) -> str:
    """A block of a preset with options drawn at random, in their ranges."""
    rng = random.Random(seed)
    chosen: dict[str, str] = {}
    count = rng.randint(1, 3)
    numbers = {"nu": (0.1, 0.4), "exponent": (1.5, 8.0), "E": (1e5, 3e5)}
    for name, option in all_presets()[kind].options.items():
        if option.when is not None and chosen.get(option.when[0]) not in option.when[1]:
            continue
        low, high = numbers.get(name, (1.0, 100.0))
        one = lambda low=low, high=high: f"{rng.uniform(low, high):.4g}"  # noqa: E731
        if option.kind == "choice":
            chosen[name] = rng.choice(option.type.__args__)
        elif option.kind == "flag":
            chosen[name] = rng.choice(["true", "false"])
        elif option.kind == "parameters":
            entries = 1 if option.like and rng.random() < 0.3 else count
            chosen[name] = f"'{' '.join(one() for _ in range(entries))}'"
        elif option.required or rng.random() < 0.5:
            chosen[name] = one()
    return block(kind, *(f"{name} = {value}" for name, value in chosen.items()), name="steel")


def run(text: str) -> Mapping[str, torch.Tensor]:
    driver = build_driver(read_text(text), "test", strict=True)
    assert isinstance(driver, TransientDriver)
    result = driver.run("interpret")
    assert not result.failed
    return result.outputs


def uniaxial(model: str, *lines: str) -> Mapping[str, torch.Tensor]:
    head = "[Drivers]\n[test]\ntype = UniaxialTest\nmodel = m\n"
    return run(model + head + "\n".join(lines) + "\n[]\n[]\n")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("IsotropicElasticity", "E = {E}\nnu = 0.3"),
        ("ChabocheViscoplasticity",
         "E = {E}\nnu = 0.3\nyield_stress = {Y}\nreference_stress = {H}\nexponent = 2\n"
         "isotropic_hardening = voce\nsaturated_hardening = {Y}\nsaturation_rate = 1.2\n"
         "C = {H}\ng = 100"),
    ],
)  # fmt: skip
def test_uniaxial_test_converges_in_any_units(kind: str, options: str) -> None:
    found = []
    for unit in (1e-3, 1.0, 1e6, 1e9):
        given = options.format(E=1.2e5 * unit, Y=100 * unit, H=1000 * unit)
        outputs = uniaxial(block(kind, given), "strain = '0.01 -0.01'", "steps = 20")
        found.append(outputs["stress"][1:] / unit)
    largest = found[1].abs().max()
    for stress in found:
        assert (stress - found[1]).abs().max() < 1e-9 * largest
        assert stress[:, 1:].abs().max() < 1e-9 * largest


def test_the_update_of_a_model_inside_and_behind_the_test_is_one() -> None:
    options = "E = 1e5\nnu = 0.3\nyield_stress = 100\n"
    options += "kinematic_hardening = linear\nkinematic_modulus = 1000"
    head = "[Drivers]\n[test]\ntype = UniaxialTest\nmodel = m\nstrain = 0.01\n[]\n[]\n"
    driver = build_driver(read_text(block("J2Plasticity", options) + head), "test")
    assert isinstance(driver, TransientDriver)
    names = [status.solve for status in driver.run("interpret").statuses]
    assert sorted(names) == ["m_return_map", "test_update"]
    assert len(ingot.compile(driver.model).metadata.solvers) == 2


def test_six_models_and_a_driver() -> None:
    assert list_presets("Models") == (
        "ChabocheViscoplasticity", "GTNDamage", "IsotropicElasticity", "J2Plasticity",
        "PerzynaViscoplasticity", "SingleCrystal",
    )  # fmt: skip
    assert list_presets("Drivers") == ("UniaxialTest",)


@pytest.mark.parametrize("kind", list_presets("Models"))
def test_expanded_text_gives_the_same_program(kind: str) -> None:
    assert_same_program(draw(kind, 0))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 15))
@pytest.mark.parametrize("kind", list_presets("Models"))
def test_expanded_text_of_drawn_options_gives_the_same_program(kind: str, seed: int) -> None:
    assert_same_program(draw(kind, seed))


def assert_same_program(text: str) -> None:
    tree = read_text(text)
    again = read_text(str(tree))
    assert again == tree
    assert not again.written
    first, second = (prepared(build(each, "steel")) for each in (tree, again))
    assert first.digest == second.digest


def test_young_modulus_is_the_slope_of_a_uniaxial_test() -> None:
    found = uniaxial(block("IsotropicElasticity", ELASTIC), "strain = 0.01", "steps = 4")
    strain, stress = found["strain"][1:], found["stress"][1:]
    torch.testing.assert_close(stress[..., 0], 200e3 * strain[..., 0])
    torch.testing.assert_close(strain[..., 1], -0.3 * strain[..., 0])
    assert stress[..., 1:].abs().max() < 1e-8


@pytest.mark.parametrize(
    ("hardening", "radius"),
    [("", lambda p: 250.0 + 0 * p), (LINEAR, lambda p: 250 + 1000 * p),
     (VOCE, lambda p: 250 + 100 * (1 - torch.exp(-10 * p)))],
)  # fmt: skip
def test_j2_yields_where_it_hardens_to(
    hardening: str, radius: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    found = uniaxial(
        block("J2Plasticity", ELASTIC, "yield_stress = 250", hardening), "strain = 0.01", "steps=8"
    )
    stress, strain = found["stress"][1:, ..., 0].flatten(), found["strain"][1:, ..., 0].flatten()
    plastic = strain - stress / 200e3
    torch.testing.assert_close(stress[0], torch.tensor(250.0).double(), rtol=1e-9, atol=1e-6)
    torch.testing.assert_close(stress, radius(plastic), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("measure", "steady"),
    [("tensorial", 200 * 1.5**0.5 * (1.5**0.5 * 1e-2) ** (1 / 5)), ("uniaxial", 200 * 1e-2**0.2)],
)
def test_overstress_of_perzyna_is_steady(measure: str, steady: float) -> None:
    found = uniaxial(
        block("PerzynaViscoplasticity", ELASTIC, "yield_stress=100", FLOW, f"measure = {measure}"),
        "strain = 0.05", "rate = 1e-2", "steps = 10",
    )  # fmt: skip
    assert found["stress"][-1, ..., 0].item() == pytest.approx(100 + steady, rel=1e-5)


def test_back_stress_saturates_at_c_over_g_of_a_uniaxial_test() -> None:
    found = uniaxial(
        block("J2Plasticity", ELASTIC, "yield_stress = 100", "measure = uniaxial",
              "kinematic_hardening = armstrong_frederick", "C = 20e3", "g = 400"),
        "strain = 0.2", "steps = 30",
    )  # fmt: skip
    assert found["stress"][-1, ..., 0].item() == pytest.approx(100 + 20e3 / 400, rel=1e-6)


def test_two_presets_of_a_type_do_not_collide() -> None:
    text = block("J2Plasticity", ELASTIC, "yield_stress = 1", name="a")
    text += block("J2Plasticity", ELASTIC, "yield_stress = 2", VOCE, name="b")
    tree = read_text(text)
    assert build(tree, "a").outputs.keys() < build(tree, "b").outputs.keys()


def test_a_tensor_or_a_model_may_stand_for_a_number() -> None:
    tensors = (
        "[Tensors]\n[e]\ntype = Python\nexpr = 'Scalar(torch.linspace(1.0, 2.0, 3))'\n[]\n[]\n"
    )
    model = build(read_text(tensors + block("IsotropicElasticity", "E = e\nnu = 0.3")), "m")
    assert next(iter(model.values.values())).data.shape == (3,)


def test_overrides_reach_options_of_presets() -> None:
    text = block("J2Plasticity", ELASTIC, "yield_stress = 250")
    tree = read_text(text, overrides=["Models/m/yield_stress:=99"])
    assert tree.require("Models", "m_yield").require("yield_stress").number() == 99


def test_errors_inside_written_blocks_point_at_the_users_word() -> None:
    text = block("ChabocheViscoplasticity", ELASTIC, "yield_stress = 1", FLOW, "C = '1 c2'\ng = 1")
    tree = read_text(
        text + "[Tensors]\n[c2]\ntype = Python\nexpr = 'SR2(torch.zeros(6))'\n[]\n[]\n"
    )
    with pytest.raises(IngotError) as raised:
        build(tree, "m")
    (problem,) = raised.value.problems
    assert problem.span is not None
    assert problem.span.text == "C = '1 c2'"
    assert problem.span.block == "Models/m"


def test_a_user_writes_presets_on_presets(tmp_path: Path) -> None:
    preset = tmp_path / "Steel.i"
    preset.write_text(
        "[Preset]\nsection = Models\ndoc = 'our steel'\n"
        "[yield_stress]\nkind = parameter\ndoc = 'yield'\n[]\n[]\n"
        "[Models]\n[{{ name }}]\ntype = J2Plasticity\nE = 200e3\nnu = 0.3\n"
        "yield_stress = ${yield_stress}\n[]\n[]\n"
    )
    file = tmp_path / "model.i"
    file.write_text(block("Steel", "yield_stress = 250"))
    assert status(["show", str(file), "m", "--load", str(preset), "--untrusted"]) == 0
    assert status(["show", str(file), "m"]) == 1
    with presets_of([preset]), pytest.raises(IngotError, match="at least 0"):
        read_text(block("Steel", "yield_stress = -1"))


def test_ranges_hold_for_whatever_takes_the_place_of_a_number(tmp_path: Path) -> None:
    """Of a preset in a preset both; of a list each entry; of what a template computes none."""
    preset = tmp_path / "Steel.i"
    preset.write_text(
        "[Preset]\nsection = Models\ndoc = 'our steel'\n"
        "[E]\nkind = parameter\nfrom = 1\nto = 9\ndefault = 2\ndoc = stiffness\n[]\n"
        "[ratio]\nkind = parameter\nfrom = 0\nbelow = 9\ndefault = 0.3\ndoc = nu\n[]\n[]\n"
        "[Models]\n[{{ name }}]\ntype = J2Plasticity\nE = ${E}\nnu = ${ratio}\n"
        "yield_stress = ${fparse E*2}\n[]\n[]\n"
    )
    listed = "expr = 'Scalar(torch.tensor([0.3, 0.5]))'"
    tensors = f"[Tensors]\n[e]\ntype = Python\n{listed}\n[]\n[]\n"
    with presets_of([preset]):
        model = build(read_text(block("Steel", "")), "m")
        found = {name.rpartition(".")[2]: own for name, own in find_ranges(model).items()}
        assert found == {
            "E": Range(ge=1, le=9), "nu": Range(ge=0, lt=0.5), "yield_stress": Range(ge=0),
        }  # fmt: skip
        model.set_parameter("E", [1.0, 9.0])
        model.set_parameter("nu", 0.4)
        for name, value, told in (
            ("E", [1.0, 9.5], "a finite number from 1 to 9, but holds 9.5"),
            ("E", float("nan"), "a finite number from 1 to 9, but is nan"),
            ("nu", -0.1, "a finite number of at least 0 and below 0.5, but is -0.1"),
        ):
            with pytest.raises(IngotError, match=told):
                model.set_parameter(name, value)
        key = next(name for name in model.state_dict() if name.endswith(".nu"))
        with pytest.raises(IngotError, match=r"but is 0\.5"):
            model.load_state_dict({key: torch.tensor(0.5)}, strict=False)
        assert float(model.state_dict()[key]) == 0.4
        with pytest.raises(IngotError, match=r"but holds 0\.5") as refused:
            build(read_text(tensors + block("Steel", "ratio = e")), "m")
        (problem,) = refused.value.problems
        assert problem.span is not None and problem.span.text == "ratio = e"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[Models]\n[]", "does not begin with a [Preset]"),
        ("[Preset]\nsection = Models\ndoc = a\n[]\n{% if %}", "template of Bad is not understood"),
        ("[Preset]\nsection = Models\ndoc = a\n[]\n{{ nothing }}", "'nothing' is undefined"),
        ("[Preset]\nsection = Models\ndoc = a\n[]\n[Models]\n[x]\n[]\n[]", "writes no block [m]"),
        (
            "[Preset]\nsection = Models\ndoc = a\n[]\n[Models]\n[{{ name }}]\ntype = Bad\n[]\n[]",
            "writes itself",
        ),
    ],
)
def test_what_is_wrong_with_a_preset_is_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "Bad.i"
    file.write_text(text)
    with pytest.raises(IngotError, match=re.escape(said)), presets_of([file]):
        read_text(block("Bad"))


def test_presets_are_not_the_files_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.i"
    file.write_text(
        block("IsotropicElasticity", ELASTIC)
        + "[Drivers]\n[test]\ntype = UniaxialTest\nmodel = m\nstrain = '0.01 -0.01'\n[]\n[]\n"
    )
    for more in ([], ["--untrusted"]):
        assert status(["run", str(file), "--backend", "interpret", *more]) == 0
        assert "Python" not in capsys.readouterr().err
    assert status(["show", str(file), "--expand"]) == 0
    expanded = tmp_path / "expanded.i"
    expanded.write_text(capsys.readouterr().out)
    assert status(["run", str(expanded), "--backend", "interpret"]) == 0


PUBLISHED = {
    "verification/solid_mechanics/rate_independent/perfect.i": (
        "J2Plasticity", "E = 120000\nnu = 0.3\nyield_stress = 100"),
    "verification/solid_mechanics/rate_independent/voceisolinkin.i": (
        "J2Plasticity", "E = 120000\nnu = 0.3\nyield_stress = 100\nisotropic_hardening = voce\n"
        "saturated_hardening = 100\nsaturation_rate = 10\nkinematic_hardening = linear\n"
        "kinematic_modulus = 1000"),
    "regression/solid_mechanics/rate_independent_plasticity/isoharden/model.i": (
        "J2Plasticity", "E = 1e5\nnu = 0.3\nyield_stress = 1000\nisotropic_hardening = voce\n"
        "saturated_hardening = 100\nsaturation_rate = 1.2"),
    "regression/solid_mechanics/viscoplasticity/chaboche/model.i": (
        "ChabocheViscoplasticity", "E = 1e5\nnu = 0.3\nyield_stress = 5\nreference_stress = 100\n"
        "exponent = 2\nisotropic_hardening = voce\nsaturated_hardening = 100\n"
        "saturation_rate = 1.2\nC = '10000 1000'\ng = '100 9'\nstatic_recovery = true\n"
        "A = '1e-8 1e-10'\na = '1.2 3.2'"),
    "regression/solid_mechanics/viscoplasticity/perfect/model.i": (
        "PerzynaViscoplasticity", "E = 1e5\nnu = 0.3\nyield_stress = 5\nreference_stress = 100\n"
        "exponent = 2"),
    "verification/solid_mechanics/perzyna/voce.i": (
        "PerzynaViscoplasticity", "E = 124000\nnu = 0.32\nyield_stress = 10\n"
        "reference_stress = 500\nexponent = 5\nisotropic_hardening = voce\n"
        "saturated_hardening = 100\nsaturation_rate = 1.1"),
    "regression/solid_mechanics/rate_independent_plasticity/gurson/model.i": (
        "GTNDamage", "E = 3e4\nnu = 0.3\nyield_stress = 60\nq1 = 1.25\nq2 = 1.0\nq3 = 1.57\n"
        "isotropic_hardening = voce\nsaturated_hardening = 100\nsaturation_rate = 1.2"),
    "regression/solid_mechanics/crystal_plasticity/single_crystal_coupled/model.i": (
        "SingleCrystal", "E = 1e5\nnu = 0.25\nstrength = 50\nreference_rate = 2e-1\nexponent = 8\n"
        "hardening = voce\ninitial_slope = 500\nsaturated_hardening = 50"),
}  # fmt: skip


def with_preset(file: Path, kind: str, options: str) -> Tree:
    """A published file whose models are one preset; its driver and its values are as they were."""
    text = file.read_text()
    cut = re.split(r"^(?=\[(?:Models|EquationSystems|Solvers)\])", text, flags=re.MULTILINE)
    kept = [cut[0]] + [re.sub(r"\A\[.*?^\[\]$", "", part, flags=re.DOTALL | re.MULTILINE)
                       for part in cut[1:]]  # fmt: skip
    body = "".join(kept).replace("'E'", "'strain'")
    name = re.search(r"model = '(\w+)'", body)
    assert name is not None
    preset = block(kind, options, name=name[1])
    tree = read_text(body + preset)
    return Tree(tree.fields, tree.blocks, file, written=tree.written)


@pytest.mark.exhaustive
@pytest.mark.skipif(not CASES.is_dir(), reason="the published cases are not here")
@pytest.mark.parametrize("case", PUBLISHED)
def test_a_preset_gives_the_published_numbers(case: str) -> None:
    kind, options = PUBLISHED[case]
    file = CASES / case
    ours = build_driver(with_preset(file, kind, options), "driver")
    theirs = build_driver(read(file), "driver")
    assert isinstance(ours, TransientDriver)
    assert isinstance(theirs, TransientDriver)
    a, b = ours.run("kernel").outputs, theirs.run("kernel").outputs
    compared = a.keys() & b.keys()
    assert compared & {"stress", "cauchy_stress"}
    for name in compared:
        torch.testing.assert_close(a[name], b[name], rtol=1e-7, atol=1e-7, equal_nan=True)
