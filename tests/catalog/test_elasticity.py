"""Elastic laws say what NEML2 3.1.0 says."""

import pytest
import torch

from ingot.errors import IngotError
from ingot.types import MRP, SR2, SSR4, euler_rodrigues, matmul, rotate
from tests.catalog.reference import ROTATION, STIFFNESS, STRAIN, assert_agrees, output, tensor

HOOKE = {"coefficients": [1e5, 0.3], "coefficient_types": ["YOUNGS_MODULUS", "POISSONS_RATIO"]}


def test_hookes_law() -> None:
    assert_agrees(
        output("LinearIsotropicElasticity", HOOKE, strain=STRAIN),
        82.6923076923077, -25, -32.6923076923077, 15.3846153846154, 7.69230769230769,
        -23.0769230769231,
    )  # fmt: skip


def test_isotropic_stiffness_is_hookes_law() -> None:
    stiffness = output("IsotropicElasticityTensor", HOOKE)
    stress = output("LinearIsotropicElasticity", HOOKE, strain=STRAIN)
    assert_agrees(stiffness @ STRAIN, *stress.tolist())


def test_cubic_stiffness() -> None:
    words = ["SHEAR_MODULUS", "POISSONS_RATIO", "YOUNGS_MODULUS"]
    stiffness = output(
        "CubicElasticityTensor",
        {"coefficients": [60000.0, 0.25, 125000.0], "coefficient_types": words},
    )
    torch.testing.assert_close(stiffness, STIFFNESS, rtol=1e-15, atol=0.0)


def test_two_constants_make_no_cube() -> None:
    with pytest.raises(IngotError, match="'coefficient_types' should be 3 words"):
        output("CubicElasticityTensor", HOOKE)


def test_elasticity_of_a_crystal() -> None:
    options = {"elastic_stiffness_tensor": STIFFNESS}
    assert_agrees(
        output("GeneralElasticity", options, strain=STRAIN, orientation=ROTATION),
        110.879489307896, -38.7975918464551, -47.0818974614409, 22.4657022263857,
        7.0831003721177, -22.3273190391765,
    )  # fmt: skip


def test_any_stiffness_turns_with_the_crystal() -> None:
    source = torch.Generator().manual_seed(1)
    stiffness = torch.randn(6, 6, generator=source, dtype=torch.float64)
    turned = rotate(SSR4(stiffness), euler_rodrigues(MRP(ROTATION)))
    stress = output(
        "GeneralElasticity",
        {"elastic_stiffness_tensor": stiffness}, strain=STRAIN, orientation=ROTATION,
    )  # fmt: skip
    assert_agrees(stress, *matmul(turned, SR2(STRAIN)).data.tolist())


def test_a_turn_is_no_strain() -> None:
    turn = euler_rodrigues(MRP(ROTATION)).data
    assert float(output("GreenLagrangeStrain", {}, deformation_gradient=turn).abs().max()) < 1e-15
    stretch = torch.diag(tensor(1.2, 1.0, 0.5))
    assert_agrees(
        output("GreenLagrangeStrain", {}, deformation_gradient=turn @ stretch),
        0.22, 0, -0.375, 0, 0, 0,
    )  # fmt: skip
