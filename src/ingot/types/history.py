"""Names of values in time: `x~1` is the value of `x` one step ago."""

__all__ = ["lag"]


def lag(name: str) -> tuple[str, int]:
    """A variable's name without its history suffix, and how many steps back it is."""
    base, mark, count = name.partition("~")
    return (base, int(count)) if mark and count.isdigit() else (name, 0)
