"""Newton's method on a batch in torch: equations, a start and rules -> unknowns and a status.

Arrays are (unknowns, points). A point that has converged is frozen, one that failed is set aside,
to take its step in parts. newton.h and parts.h do the same for the points of a lane block.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ingot.execute.status import STATUS_ROWS, Reason, Status, find_criteria
from ingot.options import Newton

__all__ = [
    "Rhs", "Step", "StepsInParts", "Watch", "compute_norms", "find_confirmed", "find_ended",
    "measure_updates", "run_newton",
]  # fmt: skip

Rhs = Callable[[Tensor], Tensor]
"""Unknowns u -> the right-hand side $-r(u)$ of Newton's linear system."""

Step = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""u, $-r(u)$, active points (points,) -> $u + \\Delta u$ and $-r$ there; others stay at u."""


Watch = Callable[[Tensor, Tensor, Tensor, Tensor], None]
"""u, $-r(u)$, the points that an update has brought there, and the part of it that was taken, all
(points,): told at the start and after every update."""


def run_newton(
    name: str, start: Tensor, rhs: Rhs, step: Step, rules: Newton, widths: Sequence[int], *,
    in_parts: bool = False, watch: Watch | None = None,
) -> tuple[Tensor, Status]:  # fmt: skip
    """The unknowns, NaN where a point did not converge, and what became of every point.

    widths: how many unknowns each variable has, in their order. in_parts: this is a part of a step,
    where a residual that is small in parts of the first is accepted only if the update was small
    too. watch: is told every iterate.
    """
    u, right = start, rhs(start)
    size = first = compute_norms(right)
    is_single = u.dtype == torch.float32
    reason = torch.full_like(size, Reason.OUT_OF_STEPS, dtype=torch.int8)
    met = size < rules.abs_tol
    reason.masked_fill_(size == 0.0 if is_single else met, Reason.CONVERGED)
    reason.masked_fill_(~torch.isfinite(size), Reason.NOT_FINITE)
    iterations = torch.zeros_like(size, dtype=torch.int32)
    whole = torch.ones_like(size)
    if watch is not None:
        watch(u, right, torch.ones_like(size, dtype=torch.bool), whole)
    near = torch.zeros_like(met)
    # In single precision one update more confirms what has met the tolerances, or two.
    for count in range(1, rules.max_its + 2 * is_single):
        active = reason == Reason.OUT_OF_STEPS
        if count >= rules.max_its:
            active &= met | near
        if not bool(active.any()):
            break
        if rules.stop == "batch" and not is_single:
            active = reason != Reason.NOT_FINITE
        moved, after = full, _ = step(u, right, active)
        reach = now = compute_norms(after)
        taken = whole
        if rules.linesearch != "NONE":
            moved, after, now, taken = _cut_back(
                rhs, rules, (u, right, size), (moved, after), active
            )
        iterations += active
        done = torch.zeros_like(active)
        if is_single:
            changes = change, _ = measure_updates(full - u, u, widths)
            ended = active & find_ended(size, now, first, changes, met)
            # rounding of one equation may hide what others have left: the next update mends it
            done = ended & (near | (change <= LOST))
            done &= find_confirmed(size, reach, first, changes, rules)
            near = ended
            if bool(done.any()):
                moved, after = torch.where(done, u, moved), torch.where(done, right, after)
                now = torch.where(done, size, now)
        met = now < rules.rel_tol * first
        if in_parts:
            allowed = rules.substep_del_tol * (compute_norms(moved) + rules.abs_tol)
            met &= compute_norms(moved - u) < allowed
        met |= now < rules.abs_tol
        met &= active  # a point that stopped stays as it is, however long others go on
        done |= active & (now == 0.0) if is_single else met
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


def measure_updates(
    update: Tensor, unknowns: Tensor, widths: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """The largest part by which an update changes a variable, of each point, and the next largest.

    Each variable is measured by the largest of its own entries: what is lost in a back stress of
    100 MPa may be all of a flow rate. One variable alone is the next as well.
    """
    tiny = torch.finfo(update.dtype).tiny
    parts = zip(update.split(list(widths)), unknowns.split(list(widths)), strict=True)
    changes = [x.abs().amax(0) / u.abs().amax(0).clamp(min=tiny) for x, u in parts]
    if len(changes) == 1:
        return changes[0], changes[0]
    largest, following = torch.stack(changes).topk(2, dim=0).values
    return largest, following


LOST = 1e-6
"""The part of a variable below which single precision loses an update, a few roundings."""


def find_ended(
    before: Tensor, now: Tensor, first: Tensor, changes: tuple[Tensor, Tensor], small: Tensor
) -> Tensor:
    """Which points had come as far as tolerances ask or single precision lets them.

    before, now, first: norms of the residual; changes: the largest parts by which the update
    changes a variable; small: where the residual before met the tolerances. All (points,).
    Tolerances of a file are meant for doubles: no residual in single precision reaches 1e-8 of its
    first, unless that was 1e9 and the root is far away still.
    """
    # Newton's method at least halves a residual that is not yet rounding (eps is 1.2e-7), but far
    # from the solution it may stall too: so the residual must be down by what single precision has
    # digits for, or the update be lost in the unknowns, or a good part of both. Residuals that
    # have grown are no rounding, however large the unknowns have grown with them.
    change, following = changes
    down = before <= 1e-5 * first
    lost = change <= LOST
    both = (before <= 1e-2 * first) & (change <= 1e-4)
    is_stuck = ~(now < 0.5 * before)
    ends = down | both | ((following <= LOST) & (before <= first))
    return (small & lost) | (is_stuck & (small | ends))


LARGEST_CHANGE = 1e-2
"""The part of a variable that an update from a solution may still change: rounding leaves flow
rates of short steps two digits, a point on the wrong branch changes them by all they are."""


def find_confirmed(
    before: Tensor, reach: Tensor, first: Tensor, changes: tuple[Tensor, Tensor], rules: Newton
) -> Tensor:
    """Which points an update from there confirms: it changes no variable by much, and the residual
    stays down; or it changes one alone, of which the equations see nothing.

    reach: the norm of the residual after the whole update. A residual may be small beside the first
    and its root far away still: where yield functions grow exponentially, the first is 1e9. A rate
    that should be zero is noise.
    """
    change, following = changes
    down = (reach <= max(1e-5, rules.rel_tol) * first) | (reach < rules.abs_tol)
    both = (reach <= 1e-2 * first) & (change <= 1e-4)
    is_unseen = (following <= LOST) & (before <= first) & (reach <= 8 * before)
    return (change <= LOST) | ((down | both) & (change <= LARGEST_CHANGE)) | is_unseen


class StepsInParts:
    """The steps of points that failed, each part halved until it converges.

    Iterating gives the parts to try. Their ends are counted in the shortest ones: after a part the
    next is as long as the largest power of two that divides where it begins, the other half of the
    shortest part that was halved.
    failed: the points; unknowns: of all, as far as parts have been kept.
    """

    def __init__(self, level: int, unknowns: Tensor, status: Status) -> None:
        self.failed = (~status.converged).nonzero()[:, 0]
        self.unknowns = unknowns.clone()
        self._whole = 1 << level
        self._begin = torch.zeros_like(self.failed)
        self._length = torch.full_like(self.failed, self._whole >> 1)
        self._status = status
        self._rows = {n: getattr(status, n).clone() for n in STATUS_ROWS}

    @property
    def done(self) -> Tensor:
        """The points among those that failed whose step is taken."""
        return self._begin == self._whole

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The points that go on, and where in the step their parts begin and end, from 0 to 1."""
        while len(index := (~self.done & (self._length > 0)).nonzero()[:, 0]):
            begin, length, dtype = self._begin[index], self._length[index], self.unknowns.dtype
            after = begin + length
            yield index, (begin / self._whole).to(dtype), (after / self._whole).to(dtype)

    def keep(self, index: Tensor, unknowns: Tensor, part: Status) -> Tensor:
        """What became of parts; returns the places of those that converged.

        Told is the part tried last, but for counts of updates, which are those of all.
        """
        points = self.failed[index]
        self.unknowns[:, points] = unknowns
        for name, row in self._rows.items():
            new = getattr(part, name)
            row[points] = row[points] + new if name in ("iterations", "pivoted") else new
        begin, length, converged = self._begin[index], self._length[index], part.converged
        after = begin + length
        self._begin[index] = torch.where(converged, after, begin)
        self._length[index] = torch.where(converged, after & -after, length >> 1)
        return converged.nonzero()[:, 0]

    def finish(self) -> tuple[Tensor, Status]:
        """The unknowns, NaN where a step could not be taken, and the status of all points."""
        self.unknowns[:, self.failed[~self.done]] = math.nan
        return self.unknowns, replace(self._status, **self._rows)
