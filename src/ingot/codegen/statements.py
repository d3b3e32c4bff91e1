"""Statements of C++ as data: lets, loops and functions; printed once, indented as they nest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Block", "Let", "Row", "count_up", "print_rows", "write_function"]


@dataclass(frozen=True, slots=True)
class Let:
    """A value under a name; one that is no constant is assigned again. reads: the names in it."""

    kind: str
    name: str
    value: str
    is_constant: bool = True
    reads: tuple[str, ...] = ()

    def __str__(self) -> str:
        kept = "const " if self.is_constant else ""
        return f"{kept}{self.kind} {self.name} = {self.value};"


@dataclass(frozen=True, slots=True)
class Block:
    """Statements inside braces: the body of a loop, of a choice, or of a function."""

    head: str
    rows: "Sequence[Row]"
    tail: str = "}"


Row = str | Let | Block
"""A statement; those that are one line of C++ may be its text."""


def count_up(index: str, begin: object, end: object) -> str:
    """The head of a loop from one number to before another."""
    return f"for (int {index} = {begin}; {index} < {end}; ++{index})"


def print_rows(rows: Sequence[Row], indent: str = "") -> Iterator[str]:
    """The lines of statements."""
    for row in rows:
        if isinstance(row, Block):
            yield f"{indent}{row.head} {{"
            yield from print_rows(row.rows, indent + "  ")
            yield f"{indent}{row.tail}"
        else:
            yield f"{indent}{row}"


def write_function(head: str, rows: Sequence[Row]) -> str:
    """The text of a function."""
    return "\n".join(print_rows([Block(head, rows)]))
