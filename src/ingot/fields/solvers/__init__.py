"""The solvers that a [TensorSolver] block may name."""

from typing import Any

from ingot.fields.solvers.coupled import AdamsBashforthMoultonCoupled
from ingot.fields.solvers.exponential import ETDRK4Solver
from ingot.fields.solvers.implicit import BroydenSolver, SecantSolver
from ingot.fields.solvers.lattice import LBMStream
from ingot.fields.solvers.multistep import (
    AdamsBashforthMoulton,
    ForwardEulerSolver,
    RealSpaceForwardEuler,
)

__all__ = ["SOLVERS"]

SOLVERS: dict[str, Any] = {
    "AdamsBashforthMoulton": AdamsBashforthMoulton,
    "SemiImplicitSolver": AdamsBashforthMoulton,
    "AdamsBashforthMoultonCoupled": AdamsBashforthMoultonCoupled,
    "BroydenSolver": BroydenSolver,
    "ETDRK4Solver": ETDRK4Solver,
    "ForwardEulerSolver": ForwardEulerSolver,
    "LBMStream": LBMStream,
    "RealSpaceForwardEuler": RealSpaceForwardEuler,
    "SecantSolver": SecantSolver,
}
