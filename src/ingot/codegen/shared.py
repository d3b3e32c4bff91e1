"""Definitions that kernels of one translation unit share: those that are the same are written once.

Values are the same bits in every entry of a library, and so are the functions that solve for them:
half of what a kernel of derivatives takes to compile.
"""

from collections.abc import Sequence

from ingot.codegen.values import Definition

__all__ = ["SharedDefinitions"]


class SharedDefinitions:
    """What was defined so far, each text with the namespaces of the names it reads."""

    def __init__(self) -> None:
        self.homes: dict[tuple[str, frozenset[tuple[str, str]]], str] = {}

    def write(self, definitions: Sequence[Definition], namespace: str) -> list[str]:
        """The definitions of a namespace; what stands in another already is used from there."""
        rows: list[str] = []
        home: dict[str, str] = {}
        for each in definitions:
            reads = frozenset((name, home[name]) for name in each.reads if name in home)
            where = self.homes.setdefault((each.text, reads), namespace)
            home |= dict.fromkeys(each.names, where)
            used = [f"using {where}::{name};" for name in each.names]
            rows += [each.text] if where == namespace else used
        return rows
