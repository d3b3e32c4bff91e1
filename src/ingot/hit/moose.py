"""What MOOSE's files mean beyond their text: blocks that are switched off, and [GlobalParams].

In: a Tree. Out: a Tree without the blocks that are off; a Block with the defaults of the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from ingot.errors import Problem, did_you_mean, raise_if
from ingot.hit.quotes import mask_text
from ingot.hit.source import outline, read_contents
from ingot.hit.tree import Block, Field, Tree

__all__ = [
    "GLOBALS",
    "activate",
    "find_unused_globals",
    "sections_in",
    "sections_of",
    "with_globals",
]

GLOBALS = "GlobalParams"
ALL = "__all__"


def sections_of(path: str | Path) -> tuple[str, ...]:
    """The top-level blocks of a file as they are written, without reading what they hold."""
    return sections_in(read_contents(Path(path)))


def sections_in(text: str) -> tuple[str, ...]:
    """The top-level blocks of a text as they are written."""
    marks = outline(mask_text(text))
    return tuple(
        mark["open"].strip("[]./ \t") for mark, block in marks if mark["open"] and not block
    )


def activate(tree: Tree) -> Tree:
    """The tree without blocks that an `active` or `inactive` field switches off, nor that field."""
    problems: list[Problem] = []
    blocks = tuple(switch(block, problems) for block in tree.blocks)
    raise_if(problems)
    return replace(tree, blocks=blocks)


def switch(block: Block, problems: list[Problem]) -> Block:
    """A block whose children are only those that are on."""
    active, inactive = block.field("active"), block.field("inactive")
    names = [child.name for child in block.blocks]
    if active is not None and inactive is not None:
        message = f"[{block.path}] has both 'active' and 'inactive'"
        problems.append(Problem("wrong-value", message, inactive.span, "remove one of them"))
    on = set(names)
    if active is not None and ALL not in active.words():
        problems += find_strangers(active, names, block)
        on = set(active.words())
    if inactive is not None:
        problems += find_strangers(inactive, names, block)
        on -= set(inactive.words())
    kept = (child for child in block.blocks if child.name in on)
    fields = tuple(field for field in block.fields if field.name not in ("active", "inactive"))
    return replace(block, fields=fields, blocks=tuple(switch(child, problems) for child in kept))


def find_strangers(field: Field, names: Collection[str], block: Block) -> Iterator[Problem]:
    """A problem for each word of `active` or `inactive` that is no block."""
    for word in field.words():
        if word not in names:
            fix = did_you_mean(word, names) or "remove it"
            message = f"[{block.path}] has no sub-block '{word}'"
            yield Problem("unknown-block", message, field.value_span, fix)


def with_globals(block: Block, tree: Tree, known: Collection[str]) -> Block:
    """The block with every [GlobalParams] field that it knows and does not set itself."""
    own = {field.name for field in block.fields}
    given = (field for part in tree.section(GLOBALS) for field in part.fields)
    added = tuple(each for each in given if each.name in known and each.name not in own)
    return replace(block, fields=(*block.fields, *added)) if added else block


def find_unused_globals(tree: Tree, known: Collection[str]) -> Iterator[Problem]:
    """A problem for each [GlobalParams] field that is no option of any block of the file."""
    for part in tree.section(GLOBALS):
        for field in part.fields:
            if field.name not in known:
                message = f"no block of this file has an option '{field.name}'"
                fix = did_you_mean(field.name, known) or "remove it"
                yield Problem("unknown-option", message, field.span, fix)
