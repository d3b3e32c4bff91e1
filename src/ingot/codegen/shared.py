"""Definitions that kernels of one translation unit share: those that are the same are written once.

Values are the same bits in every entry of a library, and so are the functions that solve for them:
half of what a kernel of derivatives takes to compile.
"""

import re
from collections.abc import Sequence

__all__ = ["SharedDefinitions"]

_DEFINED = re.compile(
    r"^(?:\[\[maybe_unused\]\] )?(?:INGOT_(?:CALL|COLD|HOT|INLINE)|constexpr) \w+ (\w+)",
    re.MULTILINE,
)
_WORD = re.compile(r"\w+")


class SharedDefinitions:
    """What was defined so far, each text with the namespaces of the names it reads."""

    def __init__(self) -> None:
        self.homes: dict[tuple[str, frozenset[tuple[str, str]]], str] = {}

    def write(self, definitions: Sequence[str], namespace: str) -> list[str]:
        """The definitions of a namespace; what stands in another already is used from there."""
        rows: list[str] = []
        home: dict[str, str] = {}
        for text in definitions:
            reads = frozenset((w, home[w]) for w in _WORD.findall(text) if w in home)
            where = self.homes.setdefault((text, reads), namespace)
            names = _DEFINED.findall(text)
            home |= dict.fromkeys(names, where)
            rows += [text] if where == namespace else [f"using {where}::{n};" for n in names]
        return rows
