"""Completion, hover, definition and symbols: what an editor asks at an offset of a text.

In: a text that need not parse, its path, an offset. Out: plain data; nothing is built or run.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ingot.cli.editor.outlined import (
    Place,
    Reader,
    WrittenBlock,
    WrittenField,
    gather_blocks,
    outline_text,
    word_at,
)
from ingot.cli.editor.types_of_blocks import (
    GROUPS,
    TOP,
    KnownOption,
    known_types,
    options_of,
    sections,
    types_of,
)

__all__ = ["Offer", "complete", "define", "describe"]

HEADER = re.compile(r"^\s*\[([\w./]*)$")
VALUE = re.compile(r"^\s*([\w./<>+\-*!~]+)\s*:?=\s*(.*)$", re.DOTALL)
SUBSTITUTION = re.compile(r"\$\{[^}]*$")
REFERENCE = re.compile(r"\$\{([^}]*)\}?")

Kind = Literal["section", "type", "option", "choice", "block", "variable", "value"]


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that may be typed: `insert` replaces the word before the cursor."""

    label: str
    kind: Kind
    detail: str = ""
    doc: str = ""
    insert: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where in a text somebody types: the block around, and the line up to there."""

    text: str
    file: Path
    offset: int
    top: WrittenBlock
    tops: list[WrittenBlock]

    @property
    def block(self) -> WrittenBlock:
        """The block around."""
        return self.top.at(self.offset)

    @property
    def line(self) -> str:
        """The line up to here."""
        return self.text[self.text.rfind("\n", 0, self.offset) + 1 : self.offset]

    @property
    def field(self) -> WrittenField | None:
        """The field whose name or value is here."""
        for block in self.top.walk():
            for each in block.fields:
                if self.offset in each.place or self.offset in each.value_place:
                    return each
        return None

    def holder(self, field: WrittenField) -> WrittenBlock:
        """The block of a field."""
        return next(b for b in self.top.walk() if any(f is field for f in b.fields))

    def named(self, *wanted: str) -> Iterator[WrittenBlock]:
        """The blocks of sections, in all files."""
        for top in self.tops:
            for part in top.blocks:
                if part.name in wanted or not wanted:
                    yield from part.blocks


def look(text: str, file: Path, offset: int, read: Reader) -> Cursor:
    """The cursor at an offset."""
    tops = gather_blocks(text, file, read)
    return Cursor(text, file, offset, tops[0], tops)


def complete(text: str, file: Path, offset: int, read: Reader) -> list[Offer]:
    """What may be typed here."""
    cursor = look(text, file, offset, read)
    if SUBSTITUTION.search(cursor.line):
        return list(_values(cursor))
    header = HEADER.match(cursor.line)
    if header is not None:
        return list(_headers(cursor, header[1]))
    # of a value that goes on over lines the field tells, else the line
    field = cursor.field
    inside = field is not None and cursor.offset in field.value_place
    typed = VALUE.match(cursor.line)
    name = field.name if field is not None and inside else typed[1] if typed else None
    if name is not None:
        return list(_words(cursor, name))
    return list(_options(cursor))


def _headers(cursor: Cursor, typed: str) -> Iterator[Offer]:
    """Names of blocks that may open here; the bracket is already there."""
    around = _around_header(cursor)
    if not around:
        for name, doc in sections().items():
            yield Offer(name, "section", doc, insert=f"{name}]")
    for name in GROUPS.get("/".join(around), ()):
        yield Offer(name, "section", insert=f"{name}]")
    prefix = "/".join((*around, ""))
    for name in known_types():
        if around and name.startswith(prefix):
            yield Offer(name.removeprefix(prefix), "section", insert=f"{name.split('/')[-1]}]")


def _around_header(cursor: Cursor) -> tuple[str, ...]:
    """The path of the block that a header being typed stands in."""
    start = cursor.text.rfind("\n", 0, cursor.offset) + 1
    top, _ = outline_text(cursor.text[:start], cursor.file)
    return top.at(start).path


def _values(cursor: Cursor) -> Iterator[Offer]:
    """What a ${...} may name: variables at the top, and paths to fields."""
    for top in cursor.tops:
        for each in top.fields:
            yield Offer(each.name, "value", each.value)
        for block in top.walk():
            for each in block.fields if block.path else ():
                yield Offer("/".join((*block.path, each.name)), "value", each.value, rank=1)
    for command in ("fparse", "units", "env", "raw"):
        yield Offer(command, "value", "a command", insert=f"{command} ", rank=2)


def _options(cursor: Cursor) -> Iterator[Offer]:
    """Names of options of the block around, those required first; or blocks that may open."""
    block = cursor.block
    if not block.path:
        for name, doc in sections().items():
            yield Offer(f"[{name}]", "section", doc, insert=f"[{name}]\n  \n[]")
        return
    if block.path[0] in TOP and len(block.path) == 1:
        yield Offer("[...]", "section", "a block", insert="[name]\n  type = \n[]")
        return
    given = {each.name for each in block.fields}
    known = types_of(block.path)
    if "type" not in given and any(known) and len(block.path) > 1:
        yield Offer("type", "option", "which type of block this is", insert="type = ")
    for option in options_of(block.path, block.type).values():
        if option.name not in given:
            detail = "required" if option.required else option.default and f"= {option.default}"
            rank = 0 if option.required else 1
            yield Offer(option.name, "option", detail, option.describe(), f"{option.name} = ", rank)


def _words(cursor: Cursor, name: str) -> Iterator[Offer]:
    """Words that the value of an option may hold."""
    block = cursor.block
    if name == "type":
        for kind, known in types_of(block.path).items():
            if kind:
                yield Offer(kind, "type", known.doc.split("\n")[0], known.describe())
        return
    option = options_of(block.path, block.type).get(name, KnownOption(name, "", "", ""))
    for word in option.choices:
        yield Offer(word, "choice", "default" if word == option.default else "")
    names = set[str]()
    for found in cursor.named(*option.sections) if option.sections else ():
        if found.path != block.path and found.name not in names:
            names.add(found.name)
            yield Offer(found.name, "block", f"{found.type or ''} of [{found.path[0]}]", rank=1)
    if option.is_variable:
        for variable in sorted(_variables(cursor) - names):
            yield Offer(variable, "variable", rank=2)


def _variables(cursor: Cursor) -> set[str]:
    """All variables that blocks of models name, by their options or by default."""
    found: set[str] = set()
    for block in cursor.named("Models"):
        kind = types_of(block.path).get(block.type or "")
        found |= set(kind.variables) if kind is not None else set()
        for option in options_of(block.path, block.type).values():
            value = block.value(option.name)
            if value and option.is_variable and not re.search(r"number", option.value):
                found |= set(re.findall(r"[A-Za-z_]\w*", value))
    return found


def describe(text: str, file: Path, offset: int, read: Reader) -> tuple[str, Place] | None:
    """What is under the cursor, as Markdown."""
    cursor = look(text, file, offset, read)
    for block in cursor.top.walk():
        if block.path and offset in block.place:
            doc = sections().get(block.name, "") if len(block.path) == 1 else block.type or ""
            return f"**[{'/'.join(block.path)}]** {doc}", block.place
    field = cursor.field
    if field is None:
        return None
    block = cursor.holder(field)
    reference = _reference(cursor, field)
    if reference is not None:
        found = _find_field(cursor, reference[0])
        return None if found is None else (f"`{reference[0]} = {found.value}`", reference[1])
    if field.name == "type":
        known = types_of(block.path).get(field.value)
        return None if known is None else (known.describe(), field.value_place)
    option = options_of(block.path, block.type).get(field.name)
    if offset in field.place:
        return None if option is None else (option.describe(), field.place)
    return _describe_word(cursor, field, option)


def _describe_word(
    cursor: Cursor, field: WrittenField, option: KnownOption | None
) -> tuple[str, Place] | None:
    word = word_at(cursor.text, cursor.offset, field.value_place)
    for found in cursor.named(*(option.sections if option else ())) if word else ():
        if word and found.name == word[0]:
            known = types_of(found.path).get(found.type or "")
            doc = "" if known is None else f"\n\n{known.doc}"
            return f"**[{'/'.join(found.path)}]** {found.type or ''}{doc}", word[1]
    return None if option is None else (option.describe(), field.place)


def _reference(cursor: Cursor, field: WrittenField) -> tuple[str, Place] | None:
    """The name in a ${...} under the cursor."""
    place = field.value_place
    for found in REFERENCE.finditer(cursor.text, place.start, place.end):
        for word in re.finditer(r"[\w/]+", found[1]):
            start, end = found.start(1) + word.start(), found.start(1) + word.end()
            if start <= cursor.offset <= end:
                return word[0], Place(cursor.file, start, end)
    return None


def _find_field(cursor: Cursor, path: str) -> WrittenField | None:
    *block, name = path.strip("/").split("/")
    for top in cursor.tops:
        for each in top.walk():
            if each.path == tuple(block):
                for field in each.fields:
                    if field.name == name:
                        return field
    return None


def define(text: str, file: Path, offset: int, read: Reader) -> Place | None:
    """Where what is under the cursor is written: a block, a value, or an included file."""
    cursor = look(text, file, offset, read)
    for target, place in outline_text(text, file)[1]:
        if offset in place and target and read(file.parent / target) is not None:
            return Place(file.parent / target, 0, 0)
    field = cursor.field
    if field is None or offset not in field.value_place:
        return None
    reference = _reference(cursor, field)
    if reference is not None:
        found = _find_field(cursor, reference[0])
        return None if found is None else found.place
    word = word_at(text, offset, field.value_place)
    block = cursor.holder(field)
    option = options_of(block.path, block.type).get(field.name)
    wanted = option.sections if option is not None else ()
    name = word[0].partition(".")[0].partition(":")[0] if word else ""
    found = [each for each in cursor.named(*wanted) if each.name == name]
    found = found or [each for each in cursor.named() if each.name == name]
    return found[0].place if found else None
