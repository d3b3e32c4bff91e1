"""C++ spellings of values: numbers, lane masks, entries of arrays."""

import re
from collections.abc import Callable, Collection

from ingot.program import Node
from ingot.program.operations import Place

__all__ = [
    "ARRAY_ENTRY",
    "Access",
    "cast_mask",
    "find_operands",
    "read_entry",
    "read_name",
    "write_number",
]

Access = Callable[[Place], str]
"""How a value is written at a place."""

ARRAY_ENTRY = re.compile(r"(?:\(\(M\))?([\w.]+)\[(\d+)\]\)?")
"""An entry of an array, as lines write it."""


def write_number(x: float) -> str:
    """A constant as C++ writes it."""
    if x != x:
        return "real(nan)"
    if x in (float("inf"), float("-inf")):
        return "real(infinity)" if x > 0 else "real(-infinity)"
    return f"real({x!r})"


def cast_mask(node: Node) -> str:
    """The C++ cast that stores a lane mask in a vector of numbers; nothing for a number."""
    return "(V)" if node.is_condition else ""


def read_entry(node: Node, text: str) -> Access:
    """A value in an array of numbers; conditions lie there as bits."""
    return read_name(f"((M){text})" if node.is_condition else text)


def find_operands(node: Node, fused: Collection[int]) -> list[Node]:
    """The lines that a line reads, through products that are fused with it."""
    return [x for a in node.args for x in (a.args if a.id in fused else (a,))]


def read_name(text: str) -> Access:
    """A value that is written the same everywhere."""
    return lambda _: text
