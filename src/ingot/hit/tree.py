"""Tree: what an input file says, as frozen blocks and fields that remember their lines.

In: text already read. Out: typed values, or an IngotError that points at the text.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from ingot.errors import IngotError, Problem, Span, did_you_mean, nearest, raise_if
from ingot.hit.arithmetic import shorten
from ingot.keywords import check_keywords
from ingot.messages import refuse, tell
from ingot.options import Range, allowed, find_example, find_no_choice, fits, plain

__all__ = ["Block", "Field", "Tree", "unknown_blocks", "unknown_fields", "unknown_sections"]

INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(
    # digits are taken all or none: thousands of them must not be tried at every length
    r"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:e[+-]?[0-9]++)?|inf|infinity|nan)",
    re.IGNORECASE,
)
WITH_UNIT = re.compile(r"([+-]?[0-9.]+(?:e[+-]?[0-9]+)?)\*?([A-Za-z]+)")
MAX_DIGITS = 40  # Python refuses to read 4300, and no option needs more than 64 bits hold
BARE = re.compile(r"[^\s\[#$'\"\\=:!]+")
Part = TypeVar("Part", "Field", "Block")
FLAGS = {"true": True, "false": False}
MEANT_TRUE, MEANT_FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Ranged(NamedTuple):
    """The range of a word, and where the user wrote it."""

    within: Range
    span: Span


@dataclass(frozen=True, slots=True)
class Field:
    """A name and its value: quotes off, every ${...} resolved; equal if they say the same.

    A `verbatim` value stood between three quotes, and is text and nothing else. `ranges` are those
    of its words where a preset has declared any, which holds for whatever takes their place too.
    """

    name: str
    text: str
    span: Span = dataclasses.field(compare=False)
    value_span: Span = dataclasses.field(compare=False)
    verbatim: bool = False
    ranges: tuple[Ranged | None, ...] = dataclasses.field(default=(), compare=False)

    def string(self) -> str:
        """The value as text."""
        return self.text

    def words(self) -> tuple[str, ...]:
        """The words of a flat list; none for an empty value."""
        self.refuse_verbatim("a list of words")
        if ";" in self.text:
            raise self.wrong("a flat list", fix="remove the ';'")
        return tuple(self.text.split())

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The rows of a list of lists, separated by ';'; a flat list is one row."""
        self.refuse_verbatim("rows of words")
        if not self.text.strip():
            return ()
        rows = tuple(tuple(row.split()) for row in self.text.split(";"))
        if not all(rows):
            raise self.wrong("rows that all hold a word", fix="remove the ';' beside the empty row")
        return rows

    def integer(self) -> int:
        """The value as a whole number."""
        self.refuse_verbatim("an integer")
        word = self.text.strip()
        if not INTEGER.fullmatch(word):
            raise self.wrong("an integer", word, whole_fix(word))
        if len(word) > MAX_DIGITS:
            raise self.wrong("an integer", shorten(word), f"write at most {MAX_DIGITS} digits")
        return int(word)

    def count(self) -> int:
        """The value as a whole number that may be written as one with a point or an exponent."""
        self.refuse_verbatim("a whole number")
        value = self.number()
        if not value.is_integer():
            raise self.wrong("a whole number", self.text.strip(), "write one such as 1000 or 1e3")
        return int(value)

    def number(self) -> float:
        """The value as a floating-point number."""
        self.refuse_verbatim("a number")
        return self.float_of(self.text.strip())

    def numbers(self) -> tuple[float, ...]:
        """The values of a flat list of numbers."""
        return tuple(self.float_of(word) for word in self.words())

    def flag(self) -> bool:
        """The value as true or false, spelled exactly so."""
        self.refuse_verbatim("true or false")
        word = self.text.strip()
        if word not in FLAGS:
            meant = "true" if word.lower() in MEANT_TRUE else "true or false"
            meant = "false" if word.lower() in MEANT_FALSE else meant
            raise self.wrong("true or false", word, f"write {meant}")
        return FLAGS[word]

    def option(self, kind: Any) -> Any:
        """The value as an annotated type says, in its range."""
        inner = plain(kind)
        if get_origin(inner) is tuple:
            each, *more = get_args(inner)
            words = self.words()
            if Ellipsis not in more and len(words) != 1 + len(more):
                raise self.wrong(f"{1 + len(more)} words", fix=f"give {1 + len(more)} of them")
            return tuple(self.choice(word, get_args(each)) if get_origin(each) is Literal else word
                         for word in words)  # fmt: skip
        if get_origin(inner) is Literal:
            return self.choice(self.string(), get_args(inner))
        reads = {bool: self.flag, int: self.integer, float: self.number, str: self.string}
        return self.within(reads[inner](), kind)

    def within(self, value: Any, kind: Any, word: str | None = None) -> Any:
        """The value, refused where it is out of the range of its type."""
        if not fits(value, kind):
            raise self.wrong(allowed(kind), word, f"write one such as {find_example(kind)}")
        return value

    def choice(self, word: str, choices: tuple[str, ...]) -> str:
        """A word of the value that is one of the choices."""
        raise_if(find_no_choice(self.name, word, choices, self.span))
        return word

    def float_of(self, word: str) -> float:
        """One word as a number that a 64-bit float can hold."""
        if not NUMBER.fullmatch(word):
            word = shorten(word)
            fix = "write a number such as 0.3 or 1e-5"
            fix = suggest_number(word) or fix
            raise self.wrong("a number", word, fix)
        value = float(word)
        digits = re.split("e", word, flags=re.IGNORECASE)[0]
        too_large = math.isinf(value) and "inf" not in word.lower()
        if too_large or (value == 0 and digits.strip("+-.0")):
            raise self.wrong("a number", word, "write a number between 1e-308 and 1e308 in size")
        return value

    def refuse_verbatim(self, expected: str) -> None:
        """Raise where the value stands in triple quotes, which hold text only."""
        if self.verbatim:
            raise self.wrong(expected, fix="write the value between single quotes: '...'")

    def wrong(self, expected: str, word: str | None = None, fix: str | None = None) -> IngotError:
        """The error to raise when this value, or one word of it, is not what was `expected`."""
        whole = shorten(self.text)
        found = whole if word is None else word
        shown = "text between three quotes" if self.verbatim else f"'{found}'" if found else "empty"
        told = {"expected": expected, "verb": "is" if found == whole else "holds", "shown": shown}
        span = word_span(self.value_span, found)
        return refuse("wrong value", span, name=self.name, **told, fix=fix)

    def __str__(self) -> str:
        return f"{self.name} = {quote(self.text, verbatim=self.verbatim)}"


@dataclass(frozen=True, slots=True)
class Block:
    """A named block of fields and blocks; `path` is its name from the top of the file."""

    name: str
    path: str
    fields: tuple[Field, ...]
    blocks: tuple[Block, ...]
    span: Span = dataclasses.field(compare=False)

    @property
    def type(self) -> str | None:
        """What the block's `type` field says, if it has one."""
        found = self.field("type")
        return None if found is None else found.string()

    @property
    def title(self) -> str:
        """The name to use in messages: the type, or the path where there is none."""
        return self.type or f"[{self.path}]"

    def field(self, name: str) -> Field | None:
        """The field of that name."""
        return named(self.fields, name)

    def block(self, name: str) -> Block | None:
        """The sub-block of that name."""
        return named(self.blocks, name)

    def require(self, name: str) -> Field:
        """The field of that name; its absence is an error."""
        found = self.field(name)
        if found is None:
            raise refuse("missing option", self.span, title=self.title, name=name)
        return found

    def __str__(self) -> str:
        return f"[{self.name}]\n{print_blocks(self, depth=1)}[]"


@check_keywords
@dataclass(frozen=True, slots=True)
class Tree:
    """All that a file and its overrides say; equal if they say the same, wherever it is written.

    Top-level fields are variables for ${...}. `digest` is the sha256 of the texts that were read,
    `doubts` are overrides that change nothing, `written` the paths of blocks that presets wrote.
    """

    fields: tuple[Field, ...]
    blocks: tuple[Block, ...]
    file: Path | None = dataclasses.field(default=None, compare=False)
    overrides: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    digest: str = dataclasses.field(default="", compare=False)
    doubts: tuple[Problem, ...] = dataclasses.field(default=(), compare=False)
    written: frozenset[str] = dataclasses.field(default=frozenset(), compare=False)

    def field(self, name: str) -> Field | None:
        """The top-level variable of that name."""
        return named(self.fields, name)

    def section(self, name: str) -> tuple[Block, ...]:
        """All top-level blocks of that name, in order."""
        return tuple(block for block in self.blocks if block.name == name)

    def names(self, section: str) -> tuple[str, ...]:
        """The names of the blocks in a section, in order."""
        return tuple(block.name for part in self.section(section) for block in part.blocks)

    def find(self, section: str, name: str) -> Block | None:
        """The block of that name in a section, whichever of its parts holds it."""
        return named((block for part in self.section(section) for block in part.blocks), name)

    def require(self, section: str, name: str, asked: Span | None = None) -> Block:
        """The block of that name in a section; its absence is an error where it was `asked` for."""
        found = self.find(section, name)
        if found is None:
            names = self.names(section)
            fix = f"add a block [{name}] to [{section}]"
            if asked is None and names:
                fix = f"choose one of: {', '.join(names)}"
            fix = did_you_mean(name, names) or fix
            raise refuse("missing block", asked, section=section, name=name, fix=fix)
        return found

    def __str__(self) -> str:
        return print_blocks(self, depth=0)


def unknown_fields(block: Block, known: Collection[str]) -> Iterator[Problem]:
    """A problem for each field that is not known; `known` includes `type` where there is one."""
    for found in block.fields:
        if found.name not in known:
            told = {"title": block.title, "name": found.name, "fix": choice(found.name, known)}
            yield tell("unknown option", found.span, **told)


def unknown_blocks(block: Block, known: Collection[str] = ()) -> Iterator[Problem]:
    """A problem for each sub-block that is not known."""
    for found in block.blocks:
        if found.name not in known:
            told = {"title": block.title, "name": found.name, "fix": choice(found.name, known)}
            yield tell("unknown block", found.span, **told)


def unknown_sections(tree: Tree, known: Collection[str]) -> Iterator[Problem]:
    """A problem for each top-level block that is no known section."""
    for found in tree.blocks:
        if found.name not in known:
            message = f"there is no section '{found.name}'"
            fix = choice(found.name, known)
            if found.field("type") is not None and nearest(found.name, known) is None:
                fix = f"a block with a type stands in a section: [Models] [{found.name}] ... [] []"
            yield Problem("unknown-section", message, found.span, fix)


def choice(word: str, known: Collection[str]) -> str:
    """The fix for a word that is not known."""
    few = f"choose one of: {', '.join(sorted(known))}" if 0 < len(known) <= 8 else "remove it"
    return did_you_mean(word, known) or few


def named(parts: Iterable[Part], name: str) -> Part | None:
    return next((part for part in parts if part.name == name), None)


def word_span(span: Span, word: str) -> Span:
    """The part of a span that holds one word, or the whole span where it is not written there."""
    end = span.column - 1 + span.length
    found = re.compile(rf"(?<![^\s'\";]){re.escape(word)}(?![^\s'\";])").search(
        span.text, span.column - 1, end
    )
    if not word or found is None:
        return span
    return dataclasses.replace(span, column=found.start() + 1, length=len(word))


def suggest_number(word: str) -> str | None:
    """The fix for a word that is almost a number: with a comma, or with its unit."""
    if "," in word:
        return "write a point for decimals, and blanks between numbers"
    unit = WITH_UNIT.fullmatch(word)
    if unit is None:
        return None
    number, name = unit.groups()
    return f"write {number} alone, or convert it: '${{units {number} {name} -> Pa}}'"


def whole_fix(word: str) -> str:
    """How to write as an integer what was written as a number."""
    if NUMBER.fullmatch(word) and float(word).is_integer():
        return f"write {int(float(word))}"
    return "write a whole number, without a point or an exponent"


def quote(text: str, *, verbatim: bool) -> str:
    """A value as it is written in a file."""
    if verbatim or any(letter in text for letter in "#'\"$"):
        for mark in ("'''", '"""'):
            if mark not in text and not text.endswith(mark[0]):
                return f"{mark}{text}{mark}"
        message = f"no file can hold {shorten(text)!r}, which has all kinds of quotes"
        raise IngotError([Problem("not-written", message, None, "leave some of them out")])
    return text if BARE.fullmatch(text) else f"'{text}'"


def print_blocks(holder: Block | Tree, depth: int) -> str:
    """What a block or tree holds, a line each; the further lines of a value are not indented."""
    margin = "  " * depth
    fields = (f"{margin}{found}\n" for found in holder.fields)
    blocks = (
        f"{margin}[{found.name}]\n{print_blocks(found, depth + 1)}{margin}[]\n"
        for found in holder.blocks
    )
    return "".join((*fields, *blocks))
