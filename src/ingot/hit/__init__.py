"""HIT text to Tree, and back: reading, includes, overrides, ${...}, formatting, editor support.

Here: what a file says, and where. Not here: what it means (types, models, shapes); never torch.
"""

from ingot.hit.arithmetic import Fault, evaluate
from ingot.hit.moose import activate, find_unused_globals, sections_in, sections_of, with_globals
from ingot.hit.presets import Preset, all_presets, list_presets, presets_of
from ingot.hit.reader import read, read_text
from ingot.hit.source import read_contents
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
    "Preset",
    "Tree",
    "activate",
    "all_presets",
    "evaluate",
    "find_unused_globals",
    "list_presets",
    "presets_of",
    "read",
    "read_contents",
    "read_text",
    "sections_in",
    "sections_of",
    "unknown_blocks",
    "unknown_fields",
    "unknown_sections",
    "with_globals",
]
