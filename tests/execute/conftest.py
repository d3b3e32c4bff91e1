"""Programs that several tests of executors run, each traced and compiled once."""

import pytest

from ingot.execute.kernel import Kernel
from ingot.program import Program
from tests.systems import plasticity, program_of


@pytest.fixture(scope="session")
def plastic() -> Program:
    """A rate-independent model with isotropic hardening."""
    return program_of(plasticity("MinMapComplementarity", isotropic=True, kinematic=False))


@pytest.fixture(scope="session")
def plastic_kernel(plastic: Program) -> Kernel:
    """That model as native code."""
    return Kernel(plastic)
