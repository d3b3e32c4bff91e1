"""Traction-separation laws say what NEML2 3.1.0 says, and have slopes at the corners."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.catalog import load
from ingot.execute import executor
from ingot.model import bind
from ingot.program import prepared, with_adjoint, with_jacobian
from tests.catalog.reference import assert_agrees, output, outputs

TOUGHNESS = {
    "mode_mixity": 1.5, "critical_separation": 0.0125, "penalty_stiffness": 1000.0,
    "mode_I_fracture_toughness": 1.0, "mode_II_fracture_toughness": 2.0, "shear_strength": 15.0,
    "eta": 2.3,
}  # fmt: skip
STRENGTH = {
    "mode_mixity": 1.5, "penalty_stiffness": 1000.0, "normal_strength": 10.0,
    "shear_strength": 15.0,
}  # fmt: skip
BILINEAR = {"penalty_stiffness": 1000.0, "critical_separation": 0.0125, "full_separation": 0.2}
SEPARATION = {
    "effective_separation": 0.05, "normal_separation": 0.03, "tangential_separation_1": 0.03,
    "tangential_separation_2": -0.0264575131106459,
}  # fmt: skip


@pytest.mark.parametrize(
    ("law", "options", "opening", "closed"),
    [
        ("CamanhoDavilaCriticalSeparation", STRENGTH, 0.0127475487839788, 0.015),
        ("BenzeggaghKenaneFullSeparation", TOUGHNESS, 0.228676482638125, 4 / 15),
        ("PowerLawFullSeparation", TOUGHNESS, 0.361258095337999, 4 / 15),
    ],
)
def test_criteria(law: str, options: dict[str, Any], opening: float, closed: float) -> None:
    assert_agrees(output(law, options, normal_separation=0.1), opening)
    for shut in (0.0, -0.1):
        assert_agrees(output(law, options, normal_separation=shut), closed)


def test_bilinear_traction() -> None:
    found = outputs("BilinearTraction", BILINEAR, **SEPARATION, damage_old=0.1)
    assert_agrees(found["damage"], 0.8)
    assert_agrees(found["traction"], 6, 6, -5.29150262212918)


@pytest.mark.parametrize(("size", "damage"), [(0.0, 0.1), (0.0125, 0.1), (0.2, 1.0), (9.0, 1.0)])
def test_damage_begins_and_ends(size: float, damage: float) -> None:
    point = {**SEPARATION, "effective_separation": size, "damage_old": 0.1}
    assert float(outputs("BilinearTraction", BILINEAR, **point)["damage"]) == damage


def test_decaying_traction() -> None:
    options = {
        "normal_characteristic_length": 1.0, "tangential_characteristic_length": 1.2,
        "normal_strength": 3.0, "shear_strength": 4.0,
    }  # fmt: skip
    point = {"tangential_separation_1": 0.4, "tangential_separation_2": -0.3, "damage_old": 0.1}
    found = outputs("SalehaniIraniTraction", options, normal_separation=0.5, **point)
    assert_agrees(found["damage"], 0.443899116226791)
    assert_agrees(found["traction"], 2.26745839072609, 1.22247380764271, -0.916855355732029)


def test_penetration_meets_a_stiffness_of_its_own() -> None:
    options = {
        "normal_stiffness": 2.0, "tangential_stiffness": 3.0, "penalty_stiffness": 100.0,
        "normal_penetration": "inside",
    }  # fmt: skip
    point = {"tangential_separation_1": 0.4, "tangential_separation_2": -0.3, "inside": -0.01}
    found = output("OrthotropicLinearTraction", options, normal_separation=0.5, **point)
    assert_agrees(found, 1.0 - 1.0, 1.2, -0.9)


@pytest.mark.parametrize(
    ("law", "options", "inputs", "slopes"),
    [
        ("ModeMixity", {}, {"normal_separation": 0.0, "tangential_separation": 0.3}, [0.0, 0.0]),
        ("ModeMixity", {}, {"normal_separation": 0.5, "tangential_separation": 0.0}, [0.0, 2.0]),
        (
            "BilinearTraction", BILINEAR,
            {**SEPARATION, "effective_separation": 0.0, "damage~1": 0.0}, [0.0] * 4 + [1.0],
        ),
    ],
)  # fmt: skip
def test_slopes_at_corners_in_both_modes(
    law: str, options: dict[str, Any], inputs: dict[str, float], slopes: list[float]
) -> None:
    program = prepared(bind(load()[law], options, None))
    by = [v.name for v in program.inputs]
    (scalar,) = (v.name for v in program.outputs if not v.kind.base)
    given: dict[str, Tensor] = {n: torch.tensor(inputs[n], dtype=torch.float64) for n in by}
    forward, _ = executor(with_jacobian(program, [(scalar, x) for x in by]))(given)
    assert [float(forward[f"{scalar}:{x}"]) for x in by] == slopes
    ones = {f"a.{scalar}": torch.ones((), dtype=torch.float64)}
    reverse, _ = executor(with_adjoint(program, [scalar], by))(given | ones)
    assert [float(reverse[f"a.{x}"]) for x in by] == slopes
