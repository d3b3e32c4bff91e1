"""HIT text to Tree, and back: reading, includes, overrides, ${...}, formatting, editor support.

Here: what a file says, and where. Not here: what it means (types, models, shapes); never torch.
"""

from ingot.hit.read import read, read_text
from ingot.hit.tree import Block, Field, Tree, unknown_blocks, unknown_fields, unknown_sections

__all__ = [
    "Block",
    "Field",
    "Tree",
    "read",
    "read_text",
    "unknown_blocks",
    "unknown_fields",
    "unknown_sections",
]
