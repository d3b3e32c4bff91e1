"""Where Newton's method ends in single precision: rounding, not a tolerance, sets its limit.

The same rule stands in newton.h. Double precision follows the tolerances of the file alone.
"""

import torch
from torch import Tensor

__all__ = ["settled"]


def settled(before: Tensor, now: Tensor, first: Tensor, update: Tensor, unknowns: Tensor) -> Tensor:
    """Which points had come as far as they can before an update that did not halve the residual.

    before, now, first: norms of the residual; update, unknowns: norms of what was added, and to
    what. All (points,).
    """
    if before.dtype != torch.float32:
        return torch.zeros_like(before, dtype=torch.bool)
    far = (before <= 1e-2 * first) & (update <= 1e-4 * unknowns)
    at_limit = (before <= 1e-5 * first) | far | (update <= 1e-6 * unknowns)
    return ~(now <= 0.5 * before) & at_limit
