"""How values are written in C++: numbers, conditions, entries of arrays."""

import re
from collections.abc import Callable, Mapping

from ingot.program.graph import Node

__all__ = ["ENTRY", "MASKS", "Access", "Place", "bits", "number", "placed", "word"]

Place = Mapping[str, str]
Access = Callable[[Place], str]

MASKS = {"lt", "le", "gt", "ge", "eq", "and", "or", "not"}
"""Operations whose results are conditions."""
ENTRY = re.compile(r"(?:\(\(M\))?([\w.]+)\[(\d+)\]\)?")
"""An entry of an array, as lines write it."""


def number(x: float) -> str:
    """A constant as C++ writes it."""
    if x != x:
        return "real(nan)"
    if x in (float("inf"), float("-inf")):
        return "real(infinity)" if x > 0 else "real(-infinity)"
    return f"real({x!r})"


def bits(node: Node) -> str:
    """What makes a number of a condition, bit by bit."""
    return "(V)" if node.op in MASKS else ""


def placed(node: Node, text: str) -> Access:
    """A value in an array of numbers; conditions lie there as bits."""
    return word(f"((M){text})" if node.op in MASKS else text)


def word(text: str) -> Access:
    """A value that is written the same everywhere."""
    return lambda _: text
