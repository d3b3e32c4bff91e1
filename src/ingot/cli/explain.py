"""`ingot explain`: what an error code means."""

from ingot.cli.explained import EXPLAIN
from ingot.errors import IngotError, Problem, did_you_mean

__all__ = ["explain"]


def explain(code: str) -> None:
    """Say what an error code means and how to mend it.

    Example: ingot explain not-converged

    Parameters
    ----------
    code
        The words between the brackets of `error[...]`.
    """
    if code not in EXPLAIN:
        fix = did_you_mean(code, EXPLAIN) or "copy the words between the brackets of error[...]"
        raise IngotError([Problem("unknown-code", f"there is no error code '{code}'", fix=fix)])
    print(EXPLAIN[code])
