"""parsed: what nmhit makes of a text, its errors told in our words and at the place to mend.

In: texts that were read. Out: nmhit's nodes, or an IngotError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nmhit

from ingot.errors import IngotError, Problem
from ingot.hit.source import BRACE, NAME, Source, describe_doubled, outline

__all__ = ["find_source", "judge_header", "parse_text"]

REST_OF_LINE = re.compile(r"[^\n#]*")
SECTIONS = ("Tensors", "Data", "Models", "EquationSystems", "Solvers", "Drivers", "Settings")
"""Sections of materials: never inside a block, and blocks in them hold no others."""

TYPOGRAPHIC = "\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb"
MAX_DOUBLES = 40  # each is looked for in the whole text, and nobody reads more at once


def parse_text(parse: Callable[[], nmhit.Root], sources: dict[str, Source]) -> nmhit.Root:
    """What nmhit makes of the text; its errors are told in our words."""
    try:
        return parse()
    except nmhit.Error as error:
        problems: list[Problem] = []
        doubles = [each for each in error.messages if each.message.startswith("duplicate field")]
        # Of several syntax errors all but the first are consequences.
        for each in doubles[:MAX_DOUBLES] or error.messages[:1]:
            source = find_source(each.filename, sources)
            problems.append(translate(source, source.offset(each.line, each.column), each.message))
        # nmhit tells a double twice.
        raise IngotError(dict.fromkeys(problems)) from error
    except UnicodeDecodeError as error:
        # nmhit cuts a letter in two where it wants to name it.
        found = [
            each for source in sources.values() for each in find_faults(source, len(source.text))
        ]
        unknown = Problem("parse-error", "the file holds a letter that is not understood")
        raise IngotError(found[:1] or [unknown]) from error


def find_source(file: Path, sources: dict[str, Source]) -> Source:
    """The source nmhit means; it may spell the path of an included file in its own way."""
    if str(file) in sources:
        return sources[str(file)]
    here = file.resolve()
    same = (source for name, source in sources.items() if Path(name).resolve() == here)
    return next(same, next(iter(sources.values())))


def translate(source: Source, at: int, message: str) -> Problem:
    """One error of nmhit, told at the place where the user has to mend it."""
    marks = [(mark, block) for mark, block in outline(source.text) if mark.start() <= at]
    mark, block = marks[-1] if marks else (None, "")
    if message.startswith("duplicate field") and mark is not None and mark["name"]:
        path = f"{block}/{mark['name']}"
        first = next(each for each, inside in marks if f"{inside}/{each['name']}" == path)
        span = source.span(mark.start(), len(mark["name"]), block)
        return describe_doubled(span, source.span(first.start(), 1))
    told, fix = message.removeprefix("syntax error, "), None
    if source.text[at : at + 2] == "${":
        told, fix = "a number cannot be joined to ${ without quotes", "put the value in quotes"
    return next(
        find_faults(source, at), Problem("parse-error", told, source.span(at, 1, block), fix)
    )


def find_faults(source: Source, until: int) -> Iterator[Problem]:
    """What is wrong with the marks of a text that nmhit refused at `until`."""
    opened: list[tuple[re.Match[str], str]] = []
    before: re.Match[str] | None = None
    for mark, block in outline(source.text):
        found = find_complaint(mark, before, source.text, inside=bool(opened))
        if found is not None and mark.start() <= until:
            start, end, message, fix = found
            yield Problem("parse-error", message, source.span(start, end - start, block), fix)
        if mark["open"]:
            opened.append((mark, block))
        elif mark["close"] and opened:
            opened.pop()
        before = mark
    if opened:
        yield describe_unclosed(source, *opened[-1])


def describe_unclosed(source: Source, last: re.Match[str], inside: str) -> Problem:
    """The problem of a text with too few []: the block whose [] was forgotten, and before what."""
    found = find_forgotten(source.text)
    mark, block, after = found or (last, inside, None)
    span = source.span(mark.start(), len(mark["open"]), block)
    if after is None:
        return Problem("parse-error", "this block is not closed", span, "close it with []")
    line = source.span(after.start(), 1).line
    message = f"this block is not closed before {after[0].strip()} on line {line}"
    return Problem("parse-error", message, span, f"write [] above line {line}")


def find_forgotten(text: str) -> tuple[re.Match[str], str, re.Match[str]] | None:
    """The first block that must have ended, by how lines are indented or by what may not nest.

    The header, the block it stands in, and the mark that shows it: a header or a [] that lies as
    far left as the block's own or further, a section, or a block in one that holds none.
    """
    opened: list[tuple[re.Match[str], str, bool]] = []
    for mark, block in outline(text):
        if mark["name"] == "type" and opened:
            header, inside, _ = opened[-1]
            opened[-1] = (header, inside, True)
        if not (mark["open"] or mark["close"]):
            continue
        if opened and begins_line(text, mark):
            header, inside, typed = opened[-1]
            left = find_indent(text, mark) - find_indent(text, header)
            if begins_line(text, header) and (left < 0 or (left == 0 and mark["open"] and inside)):
                return header, inside, mark
            if mark["open"] and ends_parent(mark, inside, typed=typed):
                return header, inside, mark
        if mark["open"]:
            opened.append((mark, block, False))
        elif opened:
            opened.pop()
    return None


def ends_parent(mark: re.Match[str], inside: str, *, typed: bool) -> bool:
    """Whether a header cannot stand in the block around it, which lies inside another or none."""
    section = inside.split("/")[0]
    return mark["open"].strip("[] \t") in SECTIONS or (typed and section in SECTIONS)


def begins_line(text: str, mark: re.Match[str]) -> bool:
    """Whether only blanks stand before a mark on its line."""
    return not text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()].strip()


def find_indent(text: str, mark: re.Match[str]) -> int:
    """The columns before a mark, a tab being up to eight."""
    start = text.rfind("\n", 0, mark.start()) + 1
    return len(text[start : mark.start()].expandtabs())


def find_complaint(
    mark: re.Match[str], before: re.Match[str] | None, text: str, *, inside: bool
) -> tuple[int, int, str, str] | None:
    """Where a mark is wrong (from, to), why, and the fix."""
    name = (mark["name"] or mark["stray"] or "").rstrip(":")
    between = text[before.end() : mark.start()] if before is not None else "\n"
    valued = before["name"] if before is not None and "\n" not in between else None
    if mark["open"] and valued and not between:
        return *mark.span(), "an unquoted value cannot hold [", "put the value in quotes"
    if mark["open"] or mark["close"] == "[../]":
        found = judge_header(mark[0])
        return None if found is None else (*mark.span(), *found)
    if mark["close"] and not inside:
        fix = "remove it, or open a block above with [name]"
        return *mark.span(), "this [] closes no block", fix
    curly = next((letter for letter in mark[0] if letter in TYPOGRAPHIC), None)
    if curly is not None and (not mark["quote"]):
        at = mark.start() + mark[0].index(curly)
        return at, at + 1, f"{curly} is a typographic quote", "write a plain one: '"
    if not name.isascii():
        letter = next(letter for letter in name if not letter.isascii())
        fix = "use plain letters, digits and _"
        return mark.start(), mark.start() + len(name), f"a name cannot hold {letter!r}", fix
    if mark["name"]:
        return judge_value(mark)
    if mark["stray"] and valued and before is not None:
        line = REST_OF_LINE.match(text, before.start("value"))
        words = "" if line is None else line[0].replace("'", "").strip()
        fix = f"put a value of several words in quotes: '{words}'"
        return *mark.span(), f"'{name}' stands after the value of '{valued}'", fix
    if mark["stray"]:
        return *mark.span(), f"'{name}' is not followed by '='", f"write '{name} = value'"
    return None


def judge_header(header: str) -> tuple[str, str] | None:
    """Why a text cannot open a block, and the fix."""
    name = header.strip("[]./ \t")
    if header == "[../]":
        return "[../] is the old way to close a block", "write []"
    if header.startswith("[./"):
        return f"{header} is the old way to open a block", f"write [{name}], and [] to close it"
    if not header.endswith("]"):
        return f"{header} has no closing bracket", f"write [{name}]"
    if len(name.split()) != 1:
        return "a block has a name of one word", f"write [{'_'.join(name.split()) or 'name'}]"
    return None


def judge_value(mark: re.Match[str]) -> tuple[int, int, str, str] | None:
    """Where the value of a field is wrong (from, to), why, and the fix."""
    value, quote = mark["value"], mark["quote"]
    plain = re.sub(BRACE, "", value, flags=re.DOTALL)
    if not value:
        fix = "write a value after the '=', or '' for an empty list"
        return *mark.span("name"), f"'{mark['name']}' has no value", fix
    place = mark.span("value")
    if "${" in plain:
        return *place, "this ${ is not closed", "close it with }"
    if not quote:
        wrong = re.search(r"[$'\"\\]", plain)
        told = f"an unquoted value cannot hold {wrong[0]}" if wrong else ""
        return (*place, told, "put the value in quotes") if wrong else None
    delimiter = quote[:3] if quote[:3] in ("'''", '"""') else quote[0]
    closed = len(quote) >= 2 * len(delimiter) and quote.endswith(delimiter)
    # the quote that seems to end it begins the next value, whose first letter follows at once
    goes_on = mark.string[mark.end() : mark.end() + 1].strip()
    runs_on = len(delimiter) == 1 and re.search(rf"\n\s*(?:\[[\w/]*\]|{NAME}\s*:?=)", quote)
    if not closed or (runs_on and goes_on):
        return *place, "this quote is not closed", f"write {delimiter} where the value ends"
    if len(delimiter) == 3:
        return None
    inner = plain[1:-1]
    wrong = re.search(r"[#$'\"]", inner)
    if wrong is not None:
        fix = "write it between three quotes: '''...'''"
        return *place, f"a quoted value cannot hold {wrong[0]}", fix
    if ";" in inner and not all(row.split() for row in inner.split(";")):
        return *place, "a row of this list is empty", "remove the ';' beside it"
    return None
