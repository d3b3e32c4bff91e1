"""Kocks and Mecking's laws say what NEML2 3.1.0 says."""

import math

import pytest

from tests.catalog.reference import assert_agrees, output

METAL = {"shear_modulus": 7e4, "k": 1.38064e-20, "b": 2.474e-7}


def test_activation_energy() -> None:
    options = {**METAL, "eps0": 1e10}
    point = {"temperature": 700.0, "strain_rate": 1e-3}
    assert_agrees(output("KocksMeckingActivationEnergy", options, **point), 0.272923169879771)


def test_rate_sensitivity() -> None:
    options = {**METAL, "A": -8.679}
    theirs = 12.6371443367009
    assert_agrees(output("KocksMeckingRateSensitivity", options, temperature=700.0), theirs)


def test_viscosity() -> None:
    options = {**METAL, "eps0": 1e10, "A": -8.679, "B": -0.744}
    model = {"temperature": 700.0}
    assert_agrees(output("KocksMeckingFlowViscosity", options, **model), 5378.5465073489)


def test_what_has_no_input_is_a_number() -> None:
    constants = {"A": -8.679, "B": -0.744, "C": -5.41}
    assert_agrees(output("KocksMeckingIntercept", constants), (-5.41 + 0.744) / -8.679)
    options = {"C": -5.41, "shear_modulus": 7e4}
    assert_agrees(output("KocksMeckingYieldStress", options), 7e4 * math.exp(-5.41))


@pytest.mark.parametrize(("energy", "rate"), [(-50.0, 2.0), (0.5, 2.5), (50.0, 3.0)])
def test_flow_depends_on_rate_above_the_intercept(energy: float, rate: float) -> None:
    point = {"rate_independent_flow_rate": 2.0, "rate_dependent_flow_rate": 3.0}
    options = {"g0": 0.5, "sharpness": 10.0}
    found = output("KocksMeckingFlowSwitch", options, activation_energy=energy, **point)
    assert float(found) == pytest.approx(rate, rel=1e-12)
