"""Drivers: transients, regression, verification and unit tests of models.

Here: what a `[Drivers]` block means, running it, and judging what came out. Not here: how a step is
computed (execute), what is printed of it (cli).
"""

from ingot.drivers.build import (
    SELF_CHECKING,
    Checker,
    build_driver,
    self_checking,
    structural_shapes,
)
from ingot.drivers.diagnosis import Diagnosis, diagnose
from ingot.drivers.failure import require_converged
from ingot.drivers.formats.choice import read_result
from ingot.drivers.parameter_sweep import Sweep, sweep
from ingot.drivers.result import Result
from ingot.drivers.transient import TransientDriver, transient_driver
from ingot.drivers.verdict import Verdict

__all__ = [
    "SELF_CHECKING", "Checker", "Diagnosis", "Result", "Sweep", "TransientDriver",
    "Verdict", "build_driver", "diagnose", "read_result", "require_converged", "self_checking",
    "structural_shapes", "sweep", "transient_driver",
]  # fmt: skip
