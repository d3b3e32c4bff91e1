"""Names of values: `x~1` is `x` one step ago; an input that is an output too has another inside."""

import re

__all__ = ["TIMES", "given_name", "lag", "source_name"]

TIMES = ("t", "time")
"""What hosts know as the time, whose steps are differences of it."""

# Names of a file hold no blanks, so a name with one is never a user's.
_GIVEN = " given"


def given_name(name: str) -> str:
    """How an input is known whose name is an output's."""
    return name + _GIVEN


def source_name(name: str) -> str:
    """What the user calls an input."""
    return name.removesuffix(_GIVEN)


def lag(name: str) -> tuple[str, int]:
    """A variable's name without its history suffix, and how many steps back it is."""
    base, mark, count = name.partition("~")
    counted = re.fullmatch(r"[0-9]{1,9}", count)  # as many steps as anyone stores
    return (base, int(count)) if mark and counted else (name, 0)
