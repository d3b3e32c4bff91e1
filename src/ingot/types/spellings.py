"""What a user calls a parameter -> its name: in full, or by as much of the end as is unique."""

from collections.abc import Collection, Mapping
from collections import Counter

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.messages import refuse

__all__ = ["Spellings", "find_named", "resolve_name", "shorten_name", "with_root"]

MAX_NAMES_SHOWN = 30  # a screenful; `ingot show` lists all

Spellings = Mapping[str, Collection[str]]
"""Of every name all others that mean the same, in full."""


def with_root(spellings: Spellings, root: str) -> dict[str, list[str]]:
    """The same, also in names that begin with the model itself, as `elasticity.E` of a law."""
    return {
        name: [*(every := dict.fromkeys((name, *others))), *(f"{root}.{each}" for each in every)]
        for name, others in spellings.items()
    }


def find_named(word: str, spellings: Spellings) -> list[str]:
    """The names that a word may mean: the same, else one in full, else all that end in it."""
    if word in spellings:
        return [word]
    in_full = [name for name, others in spellings.items() if word in others]
    if in_full:
        return in_full
    end = f".{word}"
    return [
        name for name, others in spellings.items()
        if any(other.endswith(end) for other in (name, *others))
    ]  # fmt: skip


def resolve_name(
    word: str, spellings: Spellings, missing: str, *, code: str = "unknown-parameter",
    fix: str | None = None,
) -> str:  # fmt: skip
    """The one name that a word means; `missing` tells that there is none, and `fix` what then."""
    if not isinstance(word, str):
        told = f"a parameter is named by a string, not by {word!r}"
        raise IngotError([Problem(code, told, None, f"one of: {_list_names(spellings)}")])
    found = find_named(word, spellings)
    if len(found) == 1:
        return found[0]
    if found:
        ends = sorted(shorten_name(name, spellings) for name in found)
        raise refuse("ambiguous", name=word, found=" or ".join(ends), first=ends[0])
    ends = Counter(name.rpartition(".")[2] for name in spellings)
    known = [*spellings, *(end for end, count in ends.items() if count == 1)]
    told = did_you_mean(word, known) or fix or f"one of: {_list_names(spellings)}"
    raise IngotError([Problem(code, missing, None, told)])


def _list_names(spellings: Spellings) -> str:
    shown = [shorten_name(name, spellings) for name in list(spellings)[:MAX_NAMES_SHOWN]]
    left = len(spellings) - len(shown)
    return ", ".join(shown or ["none"]) + (f" and {left} more" if left else "")


def shorten_name(name: str, spellings: Spellings) -> str:
    """As much of the end of a name as means it alone."""
    parts = name.split(".")
    ends = (".".join(parts[-count:]) for count in range(1, len(parts)))
    return next((end for end in ends if find_named(end, spellings) == [name]), name)
