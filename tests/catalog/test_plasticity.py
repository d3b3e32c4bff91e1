"""Yield functions, flow and return say what NEML2 3.1.0 says."""

import pytest
import torch

from ingot.catalog import load
from ingot.execute import executor
from ingot.model import bind
from ingot.program import prepared, with_jacobian
from tests.catalog.reference import STRESS, assert_agrees, output, tensor


def test_direction_of_j2_flow() -> None:
    assert_agrees(
        output("AssociativeJ2FlowDirection", {}, mandel_stress=STRESS),
        0.389730918736122, -0.389730918736122, 0, 0.2204651003811, -0.551162750952751,
        0.918604584921251,
    )  # fmt: skip


def test_direction_of_j2_flow_where_epsilon_is_seen() -> None:
    assert_agrees(
        output("AssociativeJ2FlowDirection", {}, mandel_stress=tensor(1e-8, 0, 0, 0, 0, 0)),
        0.480532206721732, -0.240266103360866, -0.240266103360866, 0, 0, 0,
    )  # fmt: skip


def test_direction_of_j2_flow_without_stress() -> None:
    r"""The slope is $\tfrac{3}{2 v}$ of the deviator, with $v = \sqrt{1.5 \epsilon}$."""
    law = prepared(bind(load()["AssociativeJ2FlowDirection"], {}, None))
    found, _ = executor(with_jacobian(law, [("flow_direction", "mandel_stress")]))(
        {"mandel_stress": torch.zeros(6, dtype=torch.float64)}
    )
    assert not found["flow_direction"].any()
    deviator = torch.eye(6, dtype=torch.float64)
    deviator[:3, :3] -= 1.0 / 3.0
    size = (1.5 * torch.finfo(torch.float64).eps) ** 0.5
    torch.testing.assert_close(
        found["flow_direction:mandel_stress"], deviator * 1.5 / size, rtol=1e-14, atol=1e-7
    )


def test_yield_functions() -> None:
    options = {"yield_stress": 1000.0, "isotropic_hardening": "h"}
    assert_agrees(
        output("YieldFunction", options, effective_stress=1500.0, h=100.0), 326.5986323710904
    )
    options = {
        "yield_stress": 50.0, "q1": 1.5, "q2": 1.0, "q3": 2.25, "isotropic_hardening": "h",
    }  # fmt: skip
    point = {"flow_invariant": 70.0, "poro_invariant": 30.0, "void_fraction": 0.1, "h": 20.0}
    assert_agrees(output("GTNYieldFunction", options, **point), 0.284414151682015)


@pytest.mark.parametrize(("kind", "theirs"), [("VONMISES", 288.660700477221), ("I1", 75.0)])
def test_invariants(kind: str, theirs: float) -> None:
    assert_agrees(output("SR2Invariant", {"invariant_type": kind}, tensor=STRESS), theirs)


def test_trial_stress_falls_by_three_shear_moduli() -> None:
    options = {
        "coefficients": [200.0, 0.25], "coefficient_types": ["YOUNGS_MODULUS", "POISSONS_RATIO"],
    }  # fmt: skip
    point = {"equivalent_plastic_strain": 0.3, "equivalent_plastic_strain_old": 0.1}
    update = "LinearIsotropicElasticJ2TrialStressUpdate"
    assert_agrees(output(update, options, elastic_trial_stress=100.0, **point), 100 - 240 * 0.2)
