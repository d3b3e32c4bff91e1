"""A Tree -> its sections, each one block, however often the file writes it."""

from __future__ import annotations

from dataclasses import dataclass

from ingot.hit import Block, Tree

__all__ = ["Sections"]


@dataclass(frozen=True, slots=True)
class Sections:
    """The sections of a file; a section written twice is read as one."""

    tree: Tree

    def one(self, name: str) -> Block | None:
        """A section, its parts joined."""
        parts = self.tree.section(name)
        if len(parts) < 2:
            return parts[0] if parts else None
        fields = tuple(field for part in parts for field in part.fields)
        blocks = tuple(block for part in parts for block in part.blocks)
        return Block(name, name, fields, blocks, parts[0].span)

    def blocks(self, name: str) -> tuple[Block, ...]:
        """The blocks of a section, none where there is no section."""
        found = self.one(name)
        return () if found is None else found.blocks
