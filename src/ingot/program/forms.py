"""The form that a solve is eliminated in: all are counted, the cheapest that is safe is taken."""

from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.program.builder import sort_lines
from ingot.program.eliminate import SAFE_FORMS, TIES, Attempt, Eliminated, NotWorth, Ties, eliminate
from ingot.program.implicit import Solve
from ingot.program.operations import operation

__all__ = ["BORDERS", "EXTENDED_WORTH", "choose_form", "tell_states"]

EXTENDED_WORTH = 2 / 3
"""The part of the best form's operations that the extended one may take to be chosen: it divides
by derivatives of intermediates, which loses digits on stiff states, and is checked at run time.
With the substitution to come it takes at least 1.07 times the operations of its factors (published
cases), so that factors longer than this are given up."""
BORDERS = (None, -1, 1)
"""How many entries net the elimination of an intermediate may add to go first in the extended form:
what stays, the border, is what many lines read and what reads many (a norm, a trace). None: no
intermediate goes first. Which is shortest differs (benchmarks.spine)."""
MIN_DENSE_UNKNOWNS = 32
"""From so many unknowns on a dense Jacobian is not eliminated where it need not be: 2/3 n^3 lines
are 20 000, which take tens of seconds to write and minutes to compile."""
MAX_DENSE_OPERATIONS = 200_000
"""What a dense Jacobian may take: 67 unknowns, a minute to write and more to compile."""
DENSE_SHARE = 1 / 4
"""The part of a Jacobian's entries from which on it counts as dense: its factors fill up."""


def tell_states(attempt: Attempt, safe: Eliminated) -> bool:
    """Whether most probe states are states of the model: there the safe update is a number.

    Where few are (a temperature or a porosity that must be positive), pivots that seem safe may
    lose their digits at states that were never seen, as a bordered form did for free sintering.
    """
    probes = attempt.probes.fork()
    finite = reduce(np.logical_and, [np.isfinite(probes.values(x)) for x in safe.update])
    return bool(np.mean(finite) > 0.5)


def choose_form(attempt: Attempt) -> tuple[Eliminated, dict[str, int]]:
    """The cheapest form that is worth its risk, and what each costs that was finished.

    With lines on axes, which remain loops, and with solves inside the residuals, only the
    Jacobian's entries are plain lines; those of an arrow are sums over its axes.
    """
    solve = attempt.solve
    on_axes = any(c.axes for c in solve.columns)
    if not on_axes and any(n.axes or operation(n.op).is_block for n in sort_lines(solve.rows)):
        best = eliminate(attempt, "jacobian")
        return best, {"jacobian": best.operations}
    if not on_axes and is_dense(solve):
        expected = 2 / 3 * len(solve.columns) ** 3
        free = _choose_extended(attempt, BORDERS[1:], EXTENDED_WORTH * expected, 0)
        if free is not None and tell_states(attempt, free):
            return free, {"extended": free.operations}
        if expected > MAX_DENSE_OPERATIONS:
            count = len(solve.columns)
            message = f"the {count} unknowns of [{solve.name}] all meet in each other's residuals"
            raise IngotError([Problem("program-too-long", message, None, "solve for fewer")])
    tries = [eliminate(attempt, form) for form in (SAFE_FORMS[1:] if on_axes else SAFE_FORMS)]
    costs: dict[str, int] = {tried.form: tried.operations for tried in tries}
    best = min(tries, key=lambda e: e.operations)
    borders = _find_borders(attempt, best)
    free = _choose_extended(attempt, borders, best.operations * EXTENDED_WORTH, best.risk)
    if free is None:
        return best, costs
    return free, {**costs, "extended": free.operations}


def is_dense(solve: Solve) -> bool:
    """Whether many unknowns meet in most residuals, as sizes of precipitates do in what is left of
    the solution: then the Jacobian's own elimination is known to be long without being written.
    """
    if len(solve.columns) < MIN_DENSE_UNKNOWNS:
        return False
    read = {c.id: 1 << j for j, c in enumerate(solve.columns)}
    for node in sort_lines(solve.rows):
        for arg in node.args:
            read[node.id] = read.get(node.id, 0) | read.get(arg.id, 0)
    entries = sum(read.get(row.id, 0).bit_count() for row in solve.rows)
    return entries > DENSE_SHARE * len(solve.columns) ** 2


def _choose_extended(
    attempt: Attempt, borders: Iterable[int | None], limit: float, max_risk: int
) -> Eliminated | None:
    """The extended form within some operations and risk, or None if none is.

    Of ways to settle ties the safest is taken, then the shortest; of borders the first that is
    worth it, for another may be somewhat shorter, but takes as long again to find.
    """
    for border in borders:
        best = _try_extended(attempt, border, TIES[0], limit, max_risk)
        if best is None:
            continue
        for ties in TIES[1:]:
            most = best.operations if best.risk == 0 else limit
            other = _try_extended(attempt, border, ties, most, best.risk)
            best = min(filter(None, (best, other)), key=lambda e: (e.risk, e.operations))
        return best
    return None


def _find_borders(attempt: Attempt, safe: Eliminated) -> Iterator[int | None]:
    yield BORDERS[0]
    if tell_states(attempt, safe):
        yield from BORDERS[1:]


def _try_extended(
    attempt: Attempt, border: int | None, ties: Ties, limit: float, max_risk: int
) -> Eliminated | None:
    """An extended form within these bounds, or None."""
    try:
        found = eliminate(
            attempt, "extended", limit=limit, max_risk=max_risk, ties=ties, border=border
        )
    except NotWorth:
        return None
    return found if found.operations <= limit else None
