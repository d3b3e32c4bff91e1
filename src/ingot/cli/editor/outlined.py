"""Outlined: blocks and fields of a text that need not parse, across includes, with their places.

In: a text, its path, and how to read another file. Out: blocks, fields, and what is at an offset.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ingot.hit.source import outline

__all__ = ["Place", "Reader", "WrittenBlock", "WrittenField", "gather_blocks", "outline_text"]

Reader = Callable[[Path], str | None]
"""The text of a file, as an editor has it or as it is stored; None where there is none."""

MAX_FILES = 50  # of includes in includes

WORD = re.compile(r"[^\s'\";]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Letters of a file, by offset."""

    file: Path
    start: int
    end: int

    def __contains__(self, offset: int) -> bool:
        return self.start <= offset <= self.end


@dataclass(frozen=True, slots=True)
class WrittenField:
    """A field as it is written; `value` is without its quotes."""

    name: str
    value: str
    place: Place
    value_place: Place


@dataclass(slots=True)
class WrittenBlock:
    """A block as it is written: `place` is its header, `whole` all of it as far as it goes."""

    path: tuple[str, ...]
    place: Place
    whole: Place
    fields: list[WrittenField] = field(default_factory=list)
    blocks: list["WrittenBlock"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its own name, empty at the top."""
        return self.path[-1] if self.path else ""

    @property
    def type(self) -> str | None:
        """What its `type` says, if it has one."""
        return next((each.value for each in self.fields if each.name == "type"), None)

    def value(self, name: str) -> str | None:
        """The text of a field."""
        return next((each.value for each in self.fields if each.name == name), None)

    def walk(self) -> Iterator["WrittenBlock"]:
        """This block and all inside it."""
        yield self
        for block in self.blocks:
            yield from block.walk()

    def at(self, offset: int) -> "WrittenBlock":
        """The innermost block around an offset; what follows a header is inside."""
        for block in self.blocks:
            if block.place.end <= offset <= block.whole.end:
                return block.at(offset)
        return self


def outline_text(text: str, file: Path) -> tuple[WrittenBlock, list[tuple[str, Place]]]:
    """The top of a text with all that it holds, and the files that it includes."""
    top = WrittenBlock((), Place(file, 0, 0), Place(file, 0, len(text)))
    opened, includes = [top], list[tuple[str, Place]]()
    for mark, _ in outline(text):
        here = opened[-1]
        if mark["open"]:
            name = mark["open"].strip("[]./ \t")
            place = Place(file, mark.start(), mark.end())
            block = WrittenBlock((*here.path, name), place, Place(file, mark.start(), len(text)))
            here.blocks.append(block)
            opened.append(block)
        elif mark["close"] and len(opened) > 1:
            closed = opened.pop()
            # the cursor before the [] is still inside
            closed.whole = Place(file, closed.place.start, mark.start())
        elif mark["include"]:
            place = Place(file, mark.start("target"), mark.start("target") + len(mark["target"]))
            includes.append((mark["target"].strip(), place))
        elif mark["name"]:
            quote = mark["quote"] or ""
            width = 3 if quote[:3] in ("'''", '"""') else 1 if quote else 0
            inner = mark["value"][width : len(mark["value"]) - width or None]
            start, end = mark.span("value")
            here.fields.append(WrittenField(
                mark["name"], inner if width else mark["value"],
                Place(file, *mark.span("name")), Place(file, start + width, end - width),
            ))  # fmt: skip
    return top, includes


def gather_blocks(text: str, file: Path, read: Reader) -> list[WrittenBlock]:
    """The top of a text, and those of all files that it includes, directly or not."""
    tops, waiting, seen = list[WrittenBlock](), [(text, file)], {file}
    while waiting and len(tops) < MAX_FILES:
        contents, path = waiting.pop(0)
        top, includes = outline_text(contents, path)
        tops.append(top)
        for target, _ in includes:
            other = path.parent / target
            found = None if other in seen or not target else read(other)
            seen.add(other)
            if found is not None:
                waiting.append((found, other))
    return tops


def word_at(text: str, offset: int, place: Place) -> tuple[str, Place] | None:
    """The word of a value that holds an offset."""
    for found in WORD.finditer(text, place.start, place.end):
        if found.start() <= offset <= found.end():
            return found[0], Place(place.file, found.start(), found.end())
    return None
