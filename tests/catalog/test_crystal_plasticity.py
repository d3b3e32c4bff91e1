"""Crystal plasticity says what NEML2 3.1.0 says, and its slip systems are numbered alike."""

from dataclasses import replace

import pytest
import torch

from ingot.catalog import load
from ingot.execute import executor
from ingot.model import bind
from ingot.program import freeze, prepared, trace, with_adjoint, with_jacobian
from ingot.types import MRP, R2, SR2, euler_rodrigues, rotate
from tests.catalog.reference import (
    ROTATION,
    STIFFNESS,
    STRAIN,
    STRESS,
    assert_agrees,
    face_centred,
    output,
    tensor,
)  # fmt: skip

CRYSTAL = {"crystal_geometry": face_centred()}
TURN = euler_rodrigues(MRP(ROTATION)).data
SLIP = {
    "orientation_matrix": TURN,
    "slip_rates": torch.linspace(-0.1, 0.2, 12, dtype=torch.float64),
}
PLASTIC = tensor(
    0.050524132251751, 0.0312109677040322, -0.0817350999557832, 0.101681814360831,
    -0.122584444845266, 0.137036639555123,
)  # fmt: skip
SPIN = tensor(-0.0548945965095033, -0.128006668987326, 0.0108987295092636)
RATE = tensor(0.1, -0.05, -0.05, 0.01, 0.02, 0.03)
VORTICITY = tensor(0.1, -0.05, -0.05)


def test_rotation() -> None:
    assert_agrees(
        TURN,
        0.19975377039089, -0.917205293936596, -0.344721452754694,
        0.6709756848261, 0.384425977223761, -0.634041243459526,
        0.714065866420437, -0.104647583871961, 0.692212988611881,
    )  # fmt: skip


def test_resolved_shears() -> None:
    assert_agrees(
        output("ResolvedShear", CRYSTAL, stress=STRESS, orientation_matrix=TURN),
        -84.2970298549625, -32.8286862263963, -17.4140281604889, 60.8168157440221,
        -31.2851174153354, -58.0476176912803, 93.6455019704185, 66.8830016944736,
        -53.0119124396271, 25.218931464884, 40.6335895307914, 92.1019331593576,
    )  # fmt: skip


def test_plastic_rates() -> None:
    assert_agrees(output("PlasticDeformationRate", CRYSTAL, **SLIP), *PLASTIC.tolist())
    assert_agrees(output("PlasticVorticity", CRYSTAL, **SLIP), *SPIN.tolist())
    assert_agrees(
        output("PlasticSpatialVelocityGradient", CRYSTAL, **SLIP),
        0.050524132251751, 0.0860008075911806, -0.214686961205402,
        0.107798266609708, 0.0312109677040322, 0.126794496967399,
        0.0413263767692499, 0.0170053039483918, -0.0817350999557831,
    )  # fmt: skip


def test_rates_of_the_lattice() -> None:
    known = {"elastic_strain": STRAIN, "vorticity": VORTICITY, "plastic_deformation_rate": PLASTIC}
    assert_agrees(
        output("ElasticStrainRate", {}, deformation_rate=RATE, **known),
        0.0494475834770016, -0.081218038771844, 0.0317704552948425, -0.0916876722252072,
        0.142670510862444, -0.107155634504489,
    )  # fmt: skip
    assert_agrees(
        output("OrientationRate", {}, plastic_vorticity=SPIN, **known),
        0.154897349348228, 0.0781749975017597, -0.060741630681235,
    )  # fmt: skip


def test_elastic_interaction_of_slip_systems() -> None:
    options = {**CRYSTAL, "elastic_stiffness_tensor": STIFFNESS}
    law = "SlipSystemElasticInteraction"
    coupling = output(law, options, orientation=ROTATION, t=0.3, **{"t~1": 0.2})
    torch.testing.assert_close(coupling, coupling.T, rtol=1e-13, atol=1e-9)
    assert_agrees(
        coupling[0],
        5333.33333333333, -1333.33333333333, 2666.66666666667, -666.666666666666,
        2666.66666666666, -666.666666666664, 666.666666666664, -2666.66666666666,
        2666.66666666667, -666.666666666667, 3333.33333333333, -3333.33333333333,
    )  # fmt: skip


def test_an_orientation_is_fixed() -> None:
    assert_agrees(
        output("FixOrientation", {}, input=tensor(1, -0.1, -0.05)),
        -0.987654320987654, 0.0987654320987654, 0.0493827160493827,
    )  # fmt: skip
    assert_agrees(output("FixOrientation", {}, input=ROTATION), *ROTATION.tolist())


def test_slope_of_no_rotation_is_one_in_both_modes() -> None:
    law = prepared(bind(load()["FixOrientation"], {}, None))
    none = {"input": torch.zeros(3, dtype=torch.float64)}
    forward, _ = executor(with_jacobian(law, [("output", "input")]))(none)
    assert torch.equal(forward["output:input"], torch.eye(3, dtype=torch.float64))
    bar = {"a.output": tensor(1, 2, 3)}
    reverse, _ = executor(with_adjoint(law, ["output"], ["input"]))(none | bar)
    assert torch.equal(reverse["a.input"], bar["a.output"])


@pytest.mark.parametrize(("exponent", "slope"), [(1.0, 0.5), (1.5, 0.0), (2.0, 0.0), (5.0, 0.0)])
def test_slope_of_slip_without_stress(exponent: float, slope: float) -> None:
    law = prepared(
        bind(load()["PowerLawSlipRule"], {"gamma0": 1.0, "n": exponent}, None),
        {"resolved_shears": (2,), "slip_strengths": (2,)},
    )
    point = {"resolved_shears": tensor(0, 0), "slip_strengths": tensor(2, 2)}
    found, _ = executor(with_jacobian(law, [("slip_rates", "resolved_shears")]))(point)
    expected = slope * torch.eye(2, dtype=torch.float64)
    torch.testing.assert_close(found["slip_rates:resolved_shears"], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("stretch", "kept"), [(1.0 + 1e-4, True), (1.5, False)])
def test_a_large_elastic_deformation_is_taken_as_plastic(stretch: float, kept: bool) -> None:
    old = torch.diag(tensor(1.1, 1.0, 0.9))
    total = torch.diag(tensor(stretch, 1.0, 1.0)) @ old
    law = "CrystalPlasticityDeformationGradientPredictor"
    guess = output(law, {}, deformation_gradient=total, plastic_deformation_gradient_old=old)
    expected = old if kept else torch.diag(tensor(1.5 / 1.05, 1.0, 1.0)) @ old
    torch.testing.assert_close(guess, expected, rtol=1e-14, atol=1e-15)


def test_strength_and_growth_of_dislocations() -> None:
    density = tensor(4, 9)
    options = {"constant_strength": 1.0, "alpha": 0.5, "mu": 2.0, "b": 3.0}
    strength = output("DislocationObstacleStrengthMap", options, dislocation_density=density)
    assert_agrees(strength, 7, 10)
    rates = {"dislocation_density": density, "slip_rates": tensor(0.1, -0.1)}
    growth = output("PerSlipForestDislocationEvolution", {"k1": 2.0, "k2": 0.1}, **rates)
    assert_agrees(growth, 0.36, 0.51)


def test_geometry_can_be_promoted_with_slopes() -> None:
    model = bind(load()["ResolvedShear"], CRYSTAL, None)
    assert [n for n, _ in model.named_buffers()] == ["_cg.A_data", "_cg.M_data", "_cg.W_data"]
    assert not list(model.named_parameters())
    program = freeze(trace(model), torch.finfo(torch.float64).eps, ["_cg.M_data"])
    (schmid,) = program.parameters
    assert torch.equal(schmid.value.data, face_centred().schmid.data)
    other = torch.randn(12, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    moved = replace(schmid, value=SR2(other, sub_batch_ndim=1))
    pair = ("resolved_shears", "_cg.M_data")
    sloped = with_jacobian(replace(program, parameters=(moved,)), [pair])
    found, _ = executor(sloped)({"stress": STRESS, "orientation_matrix": TURN})
    local = rotate(SR2(STRESS), R2(TURN.T)).data
    torch.testing.assert_close(found["resolved_shears"], other @ local)
    expected = torch.eye(12, dtype=torch.float64)[..., None] * local
    torch.testing.assert_close(found[":".join(pair)], expected)
