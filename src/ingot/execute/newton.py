"""Newton's method on a batch in torch: equations, a start and rules -> unknowns and a status.

Arrays are (unknowns, points). A point that has converged is frozen, one that failed is set aside.
newton.h does the same for the points of a lane block.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ingot.execute.status import Reason, Status, find_criteria
from ingot.options import Newton

__all__ = ["Rhs", "Step", "Watch", "compute_norms", "find_stalled", "run_newton"]

Rhs = Callable[[Tensor], Tensor]
"""Unknowns u -> the right-hand side $-r(u)$ of Newton's linear system."""

Step = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""u, $-r(u)$, active points (points,) -> $u + \\Delta u$ and $-r$ there; others stay at u."""


Watch = Callable[[Tensor, Tensor, Tensor, Tensor], None]
"""u, $-r(u)$, the points that an update has brought there, and the part of it that was taken, all
(points,): told at the start and after every update."""


def run_newton(
    name: str, start: Tensor, rhs: Rhs, step: Step, rules: Newton, *, in_parts: bool = False,
    watch: Watch | None = None,
) -> tuple[Tensor, Status]:  # fmt: skip
    """The unknowns, NaN where a point did not converge, and what became of every point.

    in_parts: this is a part of a step, where a residual that is small in parts of the first is
    accepted only if the update was small too. watch: is told every iterate.
    """
    u, right = start, rhs(start)
    size = first = compute_norms(right)
    reason = torch.full_like(size, Reason.OUT_OF_STEPS, dtype=torch.int8)
    reason.masked_fill_(size < rules.abs_tol, Reason.CONVERGED)
    reason.masked_fill_(~torch.isfinite(size), Reason.NOT_FINITE)
    iterations = torch.zeros_like(size, dtype=torch.int32)
    whole = torch.ones_like(size)
    if watch is not None:
        watch(u, right, torch.ones_like(size, dtype=torch.bool), whole)
    for _ in range(1, rules.max_its):
        active = reason == Reason.OUT_OF_STEPS
        if not bool(active.any()):
            break
        if rules.stop == "batch":
            active = reason != Reason.NOT_FINITE
        moved, after = full, _ = step(u, right, active)
        if rules.linesearch == "NONE":
            now, taken = compute_norms(after), whole
        else:
            moved, after, now, taken = _cut_back(
                rhs, rules, (u, right, size), (moved, after), active
            )
        iterations += active
        down = now < rules.rel_tol * first
        if in_parts:
            allowed = rules.substep_del_tol * (compute_norms(moved) + rules.abs_tol)
            down &= compute_norms(moved - u) < allowed
        done = active & ((now < rules.abs_tol) | down)
        if u.dtype == torch.float32:
            norms = compute_norms(full - u), compute_norms(u)
            stalled = active & ~done & find_stalled(size, now, first, *norms)
            if bool(stalled.any()):
                moved, after = torch.where(stalled, u, moved), torch.where(stalled, right, after)
                now = torch.where(stalled, size, now)
                done |= stalled
        u, right, size = moved, after, torch.where(active, now, size)
        reason.masked_fill_(done, Reason.CONVERGED)
        reason.masked_fill_(active & ~torch.isfinite(size), Reason.NOT_FINITE)
        if watch is not None:
            watch(u, right, active, taken)
    u = torch.where(reason == Reason.CONVERGED, u, math.nan)
    accepted = find_criteria(reason, size, first, rules)
    return u, Status(name, reason, iterations, size, torch.zeros_like(iterations), accepted)


def _cut_back(
    rhs: Rhs, rules: Newton, before: tuple[Tensor, Tensor, Tensor], full: tuple[Tensor, Tensor],
    active: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The new unknowns, $-r$ there, its norm, and the part of the update that is left, after the
    cutbacks that each point needs.

    before: u, $-r(u)$ and its norm; full: u after the whole update, and $-r$ there. The decrease
    is judged in parts of the norm before, whose square may be no number.
    """
    (u, right, size), (moved, after) = before, full
    update = moved - u
    enough = rules.linesearch_stopping_criteria
    promised = 1.0
    if rules.linesearch == "BACKTRACKING":
        promised = 2.0 * ((right / size) * (update / size)).sum(0)
    alpha = torch.ones_like(size)
    now = compute_norms(after)
    for _ in range(2, rules.max_linesearch_iterations):
        decreased = (now / size).square() <= 1.0 - enough * alpha * promised
        accepted = decreased | (now <= rules.abs_tol) | ~active
        if bool(accepted.all()):
            break
        alpha = torch.where(accepted, alpha, alpha / rules.linesearch_cutback)
        moved = torch.where(accepted, moved, u + alpha * update)
        after = rhs(moved)
        now = compute_norms(after)
    return moved, after, now, alpha


def compute_norms(x: Tensor) -> Tensor:
    """The Euclidean norm of each column of (rows, points), wherever a norm itself is a number."""
    plain = torch.linalg.vector_norm(x, dim=0)
    info = torch.finfo(x.dtype)
    # Squares below the smallest normal number lose digits; from here on rounding hides n of those.
    safe = math.sqrt(len(x) * info.tiny / info.eps)
    least, most = torch.aminmax(plain)
    if float(least) > safe and float(most) < math.inf:
        return plain
    scale = torch.linalg.vector_norm(x, math.inf, dim=0).clamp(info.tiny, info.max)
    return scale * torch.linalg.vector_norm(x / scale, dim=0)


def find_stalled(
    before: Tensor, now: Tensor, first: Tensor, update: Tensor, unknowns: Tensor
) -> Tensor:
    """Which points had come as far as single precision lets them before the update.

    before, now, first: norms of the residual; update, unknowns: norms of what was added, and to
    what. All (points,). Tolerances of a file are meant for doubles: no residual in single precision
    reaches 1e-8 of its first.
    """
    # Newton's method at least halves a residual that is not yet rounding (eps is 1.2e-7), but far
    # from the solution it may stall too: so the residual must be down by what single precision has
    # digits for, or the update be lost in the unknowns, or a good part of both. A residual of zero,
    # which no update halves, is below no tolerance of zero, and ends here too.
    down = before <= 1e-5 * first
    lost = update <= 1e-6 * unknowns
    both = (before <= 1e-2 * first) & (update <= 1e-4 * unknowns)
    return ~(now < 0.5 * before) & (down | lost | both)
