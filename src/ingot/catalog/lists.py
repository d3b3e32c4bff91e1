"""Lists of a law's inputs and parameters whose entries belong together."""

from typing import Any

__all__ = ["pair"]


def pair(**lists: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The entries of lists that are equally long, together; an error names those that are not."""
    if len({len(entries) for entries in lists.values()}) > 1:
        counts = ", ".join(f"{len(entries)} {name}" for name, entries in lists.items())
        raise ValueError(f"the lists are not equally long: {counts}")
    return list(zip(*lists.values(), strict=True))
