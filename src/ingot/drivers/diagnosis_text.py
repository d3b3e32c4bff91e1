"""A diagnosis for people to read: a SolveDiagnosis in, lines out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ingot.drivers.conditioning import Conditioning

if TYPE_CHECKING:
    from ingot.drivers.diagnosis import SolveDiagnosis

__all__ = ["format_solve"]

NOTES = ("slow", "pivoted", "cut-back")  # causes that no point fails for
SCALED_BADLY = 1e6  # between the largest and the smallest row: six digits of the smaller are lost


def format_solve(solve: "SolveDiagnosis") -> Iterator[str]:
    """The lines that tell of a solve: its causes, worst places, residuals and Jacobian."""
    count, points = solve.failed, solve.points
    became = f"{count} of {points} points failed" if count else f"all {points} points converged"
    updates = f"{solve.mean_updates:.2g} updates a step, {solve.most_updates} at most"
    yield f"[{solve.solve}] {became}; {updates}"
    if solve.is_easy and not solve.worst:
        yield "  nothing to say"
        return
    for cause in solve.causes:
        yield f"  {'note ' if cause.name in NOTES else 'cause'}  {cause.message}"
        yield from (f"  try    {fix}" for fix in cause.fixes)
    yield ""
    yield "  step  point  updates  residual  outcome"
    for at in solve.worst:
        pivots = f", {at.pivoted} by pivoting" if at.pivoted else ""
        row = f"{at.step:>6}  {at.point:>5}  {at.updates:>7}  {at.residual:>8.1e}"
        yield f"{row}  {at.outcome}{pivots}"
    yield from _format_history(solve)
    if solve.conditioning is not None:
        yield ""
        yield from _format_conditioning(solve.conditioning)
    if solve.pivoted:
        yield f"  pivoting  {solve.pivoted} updates of {solve.pivoted_points} points"
    if solve.in_parts:
        yield f"  in parts  steps of {solve.in_parts} points"
    for begin, end, converged in solve.parts:
        became = "converged" if converged else "failed"
        yield f"  part from {begin:g} to {end:g} of the step {became}"


def _format_history(solve: "SolveDiagnosis") -> Iterator[str]:
    """The table of residuals, a column for each equation."""
    if not solve.history:
        return
    at = solve.worst[0]
    yield ""
    yield f"  residuals at step {at.step}, point {at.point}"
    cut = min(solve.history["taken"]) < 1.0
    names = [n for n in solve.history if n != "taken" or cut]
    widths = [max(len(n), 8) for n in names]
    yield "  update  " + "  ".join(n.rjust(w) for n, w in zip(names, widths, strict=True))
    for k in range(len(solve.history["norm"])):
        cells = (f"{solve.history[n][k]:.1e}".rjust(w) for n, w in zip(names, widths, strict=True))
        yield f"  {k:>6}  " + "  ".join(cells)


def _format_conditioning(found: Conditioning) -> Iterator[str]:
    yield f"  Jacobian  condition {found.number:.1e}, {found.scaled:.1e} once scaled"
    (top, largest), (low, smallest) = found.largest, found.smallest
    if largest > SCALED_BADLY * smallest:
        yield f"            its rows reach from {smallest:.1e} ({low}) to {largest:.1e} ({top})"
