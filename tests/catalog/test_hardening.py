"""Hardening and recovery say what NEML2 3.1.0 says, also where exponents are small."""

import pytest
import torch

from ingot.catalog import load
from ingot.execute import executor
from ingot.model import bind
from ingot.program import prepared, with_jacobian
from tests.catalog.reference import BACK_STRESS, DIRECTION, assert_agrees, output

FLOW = {"flow_rate": 1e-3, "flow_direction": DIRECTION, "back_stress": BACK_STRESS}


def test_back_stress_with_static_recovery() -> None:
    options = {"C": 1e4, "g": 100.0, "A": 1e-4, "a": 2.2}
    assert_agrees(
        output("ChabochePlasticHardening", options, **FLOW),
        4.31185182101564, -2.25807406173959, -2.05377775927605, 0.360222212971359,
        -0.204296302463539, 1.4354814845651,
    )  # fmt: skip


def test_back_stress_without_static_recovery_is_chaboche_without() -> None:
    chaboche = {"C": 1e4, "g": 100.0, "A": 0.0, "a": 2.2}
    ours = output("FredrickArmstrongPlasticHardening", {"C": 1e4, "g": 100.0}, **FLOW)
    assert_agrees(ours, *output("ChabochePlasticHardening", chaboche, **FLOW).tolist())


def test_recovery_of_back_stress() -> None:
    law = "PowerLawKinematicHardeningStaticRecovery"
    assert_agrees(
        output(law, {"tau": 1000.0, "n": 2.5}, back_stress=BACK_STRESS),
        -1.46245013201694e-05, 5.84980052806777e-06, 8.77470079210165e-06, -4.38735039605083e-06,
        -2.92490026403388e-06, 1.46245013201694e-06,
    )  # fmt: skip


@pytest.mark.parametrize(("exponent", "slope"), [(1.0, -0.25), (1.5, 0.0), (2.0, 0.0), (3.0, 0.0)])
def test_slope_of_recovery_without_hardening(exponent: float, slope: float) -> None:
    law = load()["PowerLawIsotropicHardeningStaticRecovery"]
    program = prepared(bind(law, {"tau": 4.0, "n": exponent}, None))
    pair = ("isotropic_hardening_rate", "isotropic_hardening")
    found, _ = executor(with_jacobian(program, [pair]))(
        {"isotropic_hardening": torch.zeros(1, dtype=torch.float64)}
    )
    assert float(found[":".join(pair)]) == pytest.approx(slope, abs=1e-14)


def test_recovery_is_odd() -> None:
    law = "PowerLawIsotropicHardeningStaticRecovery"
    rates = [output(law, {"tau": 2.0, "n": 1.5}, isotropic_hardening=h) for h in (6.0, -6.0)]
    assert_agrees(rates[0], -(3.0**1.5))
    assert_agrees(rates[1], 3.0**1.5)


@pytest.mark.parametrize(("temperature", "rate"), [(0.5, 3.0), (1.0, 0.0), (1.5, 0.0), (2.0, -4.0)])
def test_annealing_stops_hardening_and_then_undoes_it(temperature: float, rate: float) -> None:
    options = {"T1": 1.0, "T2": 2.0, "tau": 0.5}
    point = {"base_rate": 3.0, "base": 2.0, "temperature": temperature}
    assert float(output("ScalarTwoStageThermalAnnealing", options, **point)) == rate


@pytest.mark.parametrize("saturated", [2.0, -2.0])
def test_hardening_saturates_from_either_side(saturated: float) -> None:
    options = {"saturated_hardening": saturated, "initial_hardening_rate": 5.0}
    law = "SlopeSaturationVoceIsotropicHardening"
    half = output(law, options, flow_rate=0.1, isotropic_hardening=saturated / 2)
    assert float(half) == pytest.approx(0.25 * saturated / 2)
    assert not output(law, options, flow_rate=0.1, isotropic_hardening=saturated)
