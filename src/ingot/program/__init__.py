"""Model -> Program: tracing, combinators, derivatives, the compiler's passes.

Here: everything that knows lines. Not here: what a law says (catalog), how lines run (execute).
"""

import torch

from ingot.model import Model
from ingot.program.program import Newton, Parameter, Program, Solve, Variable, check
from ingot.program.rewrite import freeze
from ingot.program.tangent import along_direction, batch_independent, with_jacobian
from ingot.program.trace import trace

__all__ = [
    "Newton", "Parameter", "Program", "Solve", "Variable", "along_direction", "batch_independent",
    "check", "freeze", "prepared", "trace", "with_jacobian",
]  # fmt: skip


def prepared(
    model: Model,
    shapes: dict[str, tuple[int, ...]] | None = None,
    dtype: torch.dtype = torch.float64,
) -> Program:
    """A model traced and frozen for a precision: ready to run or to compile."""
    return freeze(trace(model, shapes), torch.finfo(dtype).eps)
