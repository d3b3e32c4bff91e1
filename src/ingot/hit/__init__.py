"""HIT text to Tree, and back: reading, includes, overrides, ${...}, formatting, editor support.

Here: what a file says, and where. Not here: what it means (types, models, shapes); never torch.
"""

from ingot.hit.arithmetic import Fault, evaluate
from ingot.hit.moose import activated, sections_in, sections_of, unused_globals, with_globals
from ingot.hit.reader import read, read_text
from ingot.hit.source import contents
from ingot.hit.tree import (
    NUMBER,
    Block,
    Field,
    Tree,
    unknown_blocks,
    unknown_fields,
    unknown_sections,
)

__all__ = [
    "NUMBER",
    "Block",
    "Fault",
    "Field",
    "Tree",
    "activated",
    "contents",
    "evaluate",
    "read",
    "read_text",
    "sections_in",
    "sections_of",
    "unknown_blocks",
    "unknown_fields",
    "unknown_sections",
    "unused_globals",
    "with_globals",
]
