"""Model -> Program: tracing, combinators, derivatives, the compiler's passes.

Here: everything that knows lines. Not here: what a law says (catalog), how lines run (execute).
"""

import torch

from ingot.keywords import check_keywords
from ingot.model import Model
from ingot.program import axis_operations as axis_operations
from ingot.program import contraction as contraction
from ingot.program import interpolation as interpolation
from ingot.program import logarithm as logarithm
from ingot.program import repeat_operation as repeat_operation
from ingot.program.builder import Axis, Builder, Node, Space, sort_lines
from ingot.program.derivatives import (
    along_direction,
    is_batch_independent,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.program.implicit import Solve
from ingot.program.invariants import verify
from ingot.program.operations import Operation, operation
from ingot.program.pipeline import PASSES, Choices, compile_passes, walk_passes
from ingot.program.program import (
    Newton,
    Parameter,
    Program,
    Variable,
    find_first_guesses,
    is_shift_invariant,
)  # fmt: skip
from ingot.program.rewrite import freeze
from ingot.program.solve_operations import Linear
from ingot.program.tracer import trace

__all__ = [
    "PASSES",
    "Axis",
    "Builder",
    "Choices",
    "Linear",
    "Newton",
    "Node",
    "Operation",
    "Parameter",
    "Program",
    "Solve",
    "Space",
    "Variable",
    "along_direction",
    "compile_passes",
    "find_first_guesses",
    "freeze",
    "is_batch_independent",
    "is_shift_invariant",
    "operation",
    "prepared",
    "sort_lines",
    "trace",
    "verify",
    "walk_passes",
    "with_adjoint",
    "with_jacobian",
]  # fmt: skip


@check_keywords
def prepared(
    model: Model,
    shapes: dict[str, tuple[int, ...]] | None = None,
    dtype: torch.dtype = torch.float64,
) -> Program:
    """A model traced and frozen for a precision: ready to run or to compile."""
    return freeze(trace(model, shapes), torch.finfo(dtype).eps)
