"""Source: a text that was read, its lines and marks, and what is written in it before it is a Tree.

In: files. Out: texts with their includes, and the Draft that reading fills.
"""

from __future__ import annotations

import bisect
import functools
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if
from ingot.messages import tell

__all__ = [
    "BRACE",
    "MARK",
    "NAME",
    "Draft",
    "Source",
    "Written",
    "describe_doubled",
    "gather_includes",
    "list_fields",
    "outline",
    "read_contents",
]


def nest_pattern(depth: int) -> str:
    """A pattern for text that may hold braces inside braces."""
    return r"[^{}]*" if depth == 0 else rf"(?:[^{{}}]|\{{{nest_pattern(depth - 1)}\}})*"


MAX_DEPTH = 100
"""How deep blocks may nest: far beyond any file in use, and far from the end of the stack."""

MAX_LETTERS = 64_000_000
"""The longest input file; the longest published one has some 20 000 letters."""

CONTROL = re.compile(r"[\0-\x08\x0e-\x1f]")
NAME = r"[\w./<>+\-*!~]+"
QUOTE = r"""'{3}.*?(?:'{3}|\Z)|"{3}.*?(?:"{3}|\Z)|'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)"""
BRACE = rf"\$\{{{nest_pattern(3)}\}}"
MARK = re.compile(
    rf"""(?P<comment>\#[^\n]*)
    |(?P<close>\[\]|\[\.\./\])
    |(?P<open>\[[^\]\n]*\]?)
    |(?P<include>!include[ \t]+(?P<target>[^\n#\0]*))
    |(?P<name>{NAME})[ \t\r]*(?P<operator>:override=|:=|=)[ \t\r]*
        (?P<value>(?P<quote>{QUOTE})|(?:{BRACE}|[^\s\[\#])*)
    |(?P<stray>'[^'\n]*'?|"[^"\n]*"?|[^\s\[\#'"]+)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Source:
    """A text, the name the user knows it by, and the number of its first line."""

    name: str
    text: str
    first: int = 1

    @functools.cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each line begins."""
        return (0, *(end.end() for end in re.finditer("\n", self.text)))

    def line(self, index: int) -> str:
        """One line, counted from 0, without its end."""
        start, *after = self.starts[index : index + 2]
        return self.text[start : after[0] - 1 if after else None].rstrip("\r")

    def offset(self, line: int, column: int) -> int:
        """Where nmhit's line and column are; it counts columns in bytes."""
        index = min(max(line, 1), len(self.starts)) - 1
        before = self.line(index).encode()[: max(column, 1) - 1]
        return self.starts[index] + len(before.decode(errors="ignore"))

    def span(self, offset: int, length: int, block: str = "") -> Span:
        """The place of some letters, as far as their line goes."""
        index = bisect.bisect_right(self.starts, offset) - 1
        column, line = offset - self.starts[index], self.line(index)
        length = max(1, min(length, len(line) - column))
        return Span(self.name, self.first + index, column + 1, length, block, line)


@dataclass(frozen=True, slots=True)
class Written:
    """A field as it is written, its ${...} untouched; `at` is where its value begins."""

    name: str
    block: tuple[str, ...]
    value: str
    verbatim: bool
    replaces: bool
    source: Source
    span: Span
    value_span: Span
    at: int

    @property
    def path(self) -> str:
        """The name from the top of the file."""
        return "/".join((*self.block, self.name))


@dataclass(slots=True)
class Draft:
    """A block that is still being written."""

    path: tuple[str, ...]
    span: Span
    fields: dict[str, Written] = field(default_factory=dict)
    blocks: list[Draft] = field(default_factory=list)

    def at(self, path: Sequence[str]) -> list[Draft]:
        """All blocks under this one that have the relative path, in order."""
        if not path:
            return [self]
        same = (block for block in self.blocks if block.path[-1] == path[0])
        return [found for block in same for found in block.at(path[1:])]


def list_fields(draft: Draft) -> Iterator[Written]:
    """The fields of a draft and of all blocks in it."""
    yield from draft.fields.values()
    for block in draft.blocks:
        yield from list_fields(block)


def read_contents(path: Path, asked: Span | None = None) -> str:
    """The text of a file that the user, or an !include, `asked` for."""
    try:
        raise_if(find_unreadable(path, asked))
        text = path.read_bytes().decode()
        if not text.startswith("\ufeff"):
            return text
        message, fix = f"'{path}' begins with a byte order mark", "save it as UTF-8 without one"
        problem = Problem("parse-error", message, asked, fix)
    except FileNotFoundError:
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        fix = did_you_mean(path.name, beside)
        problem = replace(tell("no stub file", asked, file=path, fix=""), fix=fix)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        problem = Problem("file-not-found", f"'{path}' cannot be opened: {reason}", asked)
    except UnicodeDecodeError as error:
        message = f"'{path}' is not text: its byte {error.start + 1} is not UTF-8"
        problem = Problem("parse-error", message, asked, "save the file as UTF-8")
    except ValueError as error:
        problem = Problem("file-not-found", f"{str(path)!r} is no path: {error}", asked)
    raise IngotError([problem])


def find_unreadable(path: Path, asked: Span | None) -> Iterator[Problem]:
    """A problem where a path leads to something that is no file, or to one that is too large."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe"
        inside = sorted(entry.name for entry in path.glob("*.i"))[:3] if path.is_dir() else []
        fix = f"name a file in it, such as {', '.join(inside)}" if inside else "name a file"
        yield Problem("file-not-found", f"'{path}' is {what}, not a file", asked, fix)
    elif found.st_size > MAX_LETTERS:
        message = f"'{path}' holds {found.st_size >> 20} MB, too many for an input file"
        yield Problem("file-not-found", message, asked, "name an input file")


def find_too_deep(mark: re.Match[str], block: str, source: Source) -> Iterator[Problem]:
    """A problem where a mark lies deeper than blocks may nest."""
    path = mark["name"] or mark["open"] or ""
    if block.count("/") + path.count("/") >= MAX_DEPTH:
        message = f"blocks are nested deeper than {MAX_DEPTH}"
        span = source.span(mark.start(), 1)
        yield Problem("parse-error", message, span, "close blocks with [] before others open")


def resolve_path(path: Path) -> Path:
    """Where a path leads; a circle of links leads nowhere, which reading it tells."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def gather_includes(
    source: Source, folder: Path, sources: dict[str, Source], chain: tuple[Path, ...]
) -> Iterator[Problem]:
    """Add every included file to `sources`; nmhit crashes on a file that includes itself."""
    control = CONTROL.search(source.text)
    if control is not None:
        message = f"a file cannot hold the control letter {control[0]!r}"
        span = source.span(control.start(), 1)
        raise IngotError([Problem("parse-error", message, span, "remove it")])
    for mark, block in outline(source.text):
        raise_if(find_too_deep(mark, block, source))
        if mark["include"] is None:
            continue
        target = folder / mark["target"].strip()
        span = source.span(mark.start(), len(mark["include"].rstrip()), block)
        if resolve_path(target) in chain:
            message = f"'{target}' is included by itself"
            yield Problem("circular-include", message, span, "remove this line")
            continue
        try:
            sources[str(target)] = Source(str(target), read_contents(target, span))
        except IngotError as error:
            yield from error.problems
        else:
            deeper = (*chain, resolve_path(target))
            yield from gather_includes(sources[str(target)], target.parent, sources, deeper)


def outline(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The marks of a text, broken or not, each with the block it stands in."""
    blocks: list[str] = []
    for mark in MARK.finditer(text):
        yield mark, "/".join(blocks[: MAX_DEPTH + 1])
        if mark["open"]:
            blocks.append(mark["open"].strip("[]./ \t"))
        elif mark["close"] and blocks:
            blocks.pop()


def describe_doubled(span: Span, first: Span) -> Problem:
    """The problem of a field that is set twice."""
    name = span.text[span.column - 1 : span.column - 1 + span.length]
    place = f"on line {first.line}" if first.file == span.file else f"in {first.file}:{first.line}"
    fix = "write ':=' instead of '=' to replace it"
    return Problem("duplicate-field", f"'{name}' is already set {place}", span, fix)
