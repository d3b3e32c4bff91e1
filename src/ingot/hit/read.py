"""read: a file and its overrides to a Tree.

In: HIT text. Out: a Tree with overrides applied and every ${...} resolved, or an IngotError.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nmhit

from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if
from ingot.hit.tree import Block, Field, Tree

__all__ = ["read", "read_text"]

COMMAND_LINE = "<command line>"
NAME = r"[\w./<>+\-*!~]+"
QUOTE = r"""'{3}.*?(?:'{3}|\Z)|"{3}.*?(?:"{3}|\Z)|'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)"""
BRACE = r"\$\{(?:[^{}]|\{[^{}]*\})*\}"
MARK = re.compile(
    rf"""(?P<comment>\#[^\n]*)
    |(?P<close>\[\]|\[\.\./\])
    |(?P<open>\[[^\]\n]*\]?)
    |(?P<include>!include[ \t]+(?P<target>[^\n#\0]*))
    |(?P<name>{NAME})[ \t]*(?P<operator>:override=|:=|=)[ \t]*
        (?P<value>(?P<quote>{QUOTE})|(?:{BRACE}|[^\s\[\#])*)
    |(?P<stray>'[^'\n]*'?|"[^"\n]*"?|[^\s\[\#'"]+)""",
    re.DOTALL | re.VERBOSE,
)


def read(path: str | Path, overrides: Sequence[str] = ()) -> Tree:
    """Read a file, then the overrides (`Models/elasticity/E:=210000`) as if they stood below it."""
    path = Path(path)
    sources = {str(path): Source(str(path), contents(path))}
    raise_if(gather_includes(sources[str(path)], path.parent, sources, (path.resolve(),)))
    return tree_of(lambda: nmhit.parse_file(path), sources, path, overrides)


def read_text(text: str, file: str = "<text>", overrides: Sequence[str] = ()) -> Tree:
    """Read text as if it were a file of that name in the working folder."""
    sources = {".": Source(file, text)}
    raise_if(gather_includes(sources["."], Path(), sources, ()))
    return tree_of(lambda: nmhit.parse_text(text), sources, None, overrides)


def tree_of(
    parse: Callable[[], nmhit.Root],
    sources: dict[str, Source],
    path: Path | None,
    overrides: Sequence[str],
) -> Tree:
    """Parse, put path fields and overrides into their blocks, resolve, freeze."""
    root = Draft((), Span("", 0))
    problems: list[Problem] = []
    scattered = gather(parsed(parse, sources), root, sources, problems)
    for number, text in enumerate(overrides, 1):
        scattered += override(Source(COMMAND_LINE, text, number), problems)
    problems += [problem for written in scattered for problem in assign(root, written)]
    raise_if([*problems, *repeated(root)])
    resolved = Resolved(root)
    fields, blocks = frozen(root, resolved)
    raise_if(resolved.problems)
    texts = "\0".join([*(source.text for source in sources.values()), *overrides])
    digest = hashlib.sha256(texts.encode()).hexdigest()
    return Tree(fields, blocks, path, tuple(overrides), digest)


@dataclass(frozen=True)
class Source:
    """A text, the name the user knows it by, and the number of its first line."""

    name: str
    text: str
    first: int = 1

    @functools.cached_property
    def starts(self) -> tuple[int, ...]:
        return (0, *(end.end() for end in re.finditer("\n", self.text)))

    def line(self, index: int) -> str:
        start, *after = self.starts[index : index + 2]
        return self.text[start : after[0] - 1 if after else None].rstrip("\r")

    def offset(self, line: int, column: int) -> int:
        """Where nmhit's line and column are; it counts columns in bytes."""
        index = min(max(line, 1), len(self.starts)) - 1
        before = self.line(index).encode()[: max(column, 1) - 1]
        return self.starts[index] + len(before.decode(errors="ignore"))

    def span(self, offset: int, length: int, block: str = "") -> Span:
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


def contents(path: Path, asked: Span | None = None) -> str:
    """The text of a file that the user, or an !include, `asked` for."""
    try:
        text = path.read_bytes().decode()
        if not text.startswith("\ufeff"):
            return text
        message, fix = f"'{path}' begins with a byte order mark", "save it as UTF-8 without one"
        problem = Problem("parse-error", message, asked, fix)
    except FileNotFoundError:
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        fix = did_you_mean(path.name, beside)
        problem = Problem("file-not-found", f"there is no file '{path}'", asked, fix)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        problem = Problem("file-not-found", f"'{path}' cannot be opened: {reason}", asked)
    except UnicodeDecodeError as error:
        message = f"'{path}' is not text: its byte {error.start + 1} is not UTF-8"
        problem = Problem("parse-error", message, asked, "save the file as UTF-8")
    raise IngotError([problem])


def gather_includes(
    source: Source, folder: Path, sources: dict[str, Source], chain: tuple[Path, ...]
) -> Iterator[Problem]:
    """Add every included file to `sources`; nmhit crashes on a file that includes itself."""
    for mark, block in outline(source.text):
        if mark["include"] is None:
            continue
        target = folder / mark["target"].strip()
        span = source.span(mark.start(), len(mark["include"].rstrip()), block)
        if target.resolve() in chain:
            message = f"'{target}' is included by itself"
            yield Problem("circular-include", message, span, "remove this line")
            continue
        try:
            sources[str(target)] = Source(str(target), contents(target, span))
        except IngotError as error:
            yield from error.problems
        else:
            deeper = (*chain, target.resolve())
            yield from gather_includes(sources[str(target)], target.parent, sources, deeper)


def outline(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The marks of a text, broken or not, each with the block it stands in."""
    blocks: list[str] = []
    for mark in MARK.finditer(text):
        yield mark, "/".join(blocks)
        if mark["open"]:
            blocks.append(mark["open"].strip("[]./ \t"))
        elif mark["close"] and blocks:
            blocks.pop()


def parsed(parse: Callable[[], nmhit.Root], sources: dict[str, Source]) -> nmhit.Root:
    """What nmhit makes of the text; its errors are told in our words."""
    try:
        return parse()
    except nmhit.Error as error:
        problems: list[Problem] = []
        for each in error.messages:
            source = source_of(each.filename, sources)
            problems.append(translated(source, source.offset(each.line, each.column), each.message))
        # nmhit tells a double twice; of several syntax errors all but the first are consequences.
        doubles = dict.fromkeys(each for each in problems if each.code == "duplicate-field")
        raise IngotError(doubles or problems[:1]) from error
    except UnicodeDecodeError as error:
        # nmhit cuts a letter in two where it wants to name it.
        found = [each for source in sources.values() for each in faults(source, len(source.text))]
        unknown = Problem("parse-error", "the file holds a letter that is not understood")
        raise IngotError(found[:1] or [unknown]) from error


def source_of(file: Path, sources: dict[str, Source]) -> Source:
    """The source nmhit means; it may spell the path of an included file in its own way."""
    if str(file) in sources:
        return sources[str(file)]
    here = file.resolve()
    same = (source for name, source in sources.items() if Path(name).resolve() == here)
    return next(same, next(iter(sources.values())))


def translated(source: Source, at: int, message: str) -> Problem:
    """One error of nmhit, told at the place where the user has to mend it."""
    marks = [(mark, block) for mark, block in outline(source.text) if mark.start() <= at]
    mark, block = marks[-1] if marks else (None, "")
    if message.startswith("duplicate field") and mark is not None and mark["name"]:
        path = f"{block}/{mark['name']}"
        first = next(each for each, inside in marks if f"{inside}/{each['name']}" == path)
        span = source.span(mark.start(), len(mark["name"]), block)
        return doubled(span, source.span(first.start(), 1))
    told, fix = message.removeprefix("syntax error, "), None
    if source.text[at : at + 2] == "${":
        told, fix = "a number cannot be joined to ${ without quotes", "put the value in quotes"
    return next(faults(source, at), Problem("parse-error", told, source.span(at, 1, block), fix))


def faults(source: Source, until: int) -> Iterator[Problem]:
    """What is wrong with the marks of a text that nmhit refused at `until`."""
    opened: list[tuple[re.Match[str], str]] = []
    before: re.Match[str] | None = None
    for mark, block in outline(source.text):
        found = complaint(mark, before, source.text, inside=bool(opened))
        if found is not None and mark.start() <= until:
            start, end, message, fix = found
            yield Problem("parse-error", message, source.span(start, end - start, block), fix)
        if mark["open"]:
            opened.append((mark, block))
        elif mark["close"] and opened:
            opened.pop()
        before = mark
    for mark, block in opened[-1:]:
        span = source.span(mark.start(), len(mark["open"]), block)
        yield Problem("parse-error", "this block is not closed", span, "close it with []")


def complaint(
    mark: re.Match[str], before: re.Match[str] | None, text: str, *, inside: bool
) -> tuple[int, int, str, str] | None:
    """Where a mark is wrong (from, to), why, and the fix."""
    name = (mark["name"] or mark["stray"] or "").rstrip(":")
    between = text[before.end() : mark.start()] if before is not None else "\n"
    valued = before["name"] if before is not None and "\n" not in between else None
    if mark["open"] and valued and not between:
        return *mark.span(), "an unquoted value cannot hold [", "put the value in quotes"
    if mark["open"] or mark["close"] == "[../]":
        found = header_complaint(mark[0])
        return None if found is None else (*mark.span(), *found)
    if mark["close"] and not inside:
        fix = "remove it, or open a block above with [name]"
        return *mark.span(), "this [] closes no block", fix
    if not name.isascii():
        letter = next(letter for letter in name if not letter.isascii())
        fix = "use plain letters, digits and _"
        return mark.start(), mark.start() + len(name), f"a name cannot hold {letter!r}", fix
    if mark["name"]:
        return value_complaint(mark)
    if mark["stray"] and valued and before is not None:
        words = re.split(r"[\n#]", text[before.start("value") :])[0].replace("'", "").strip()
        fix = f"put a value of several words in quotes: '{words}'"
        return *mark.span(), f"'{name}' stands after the value of '{valued}'", fix
    if mark["stray"]:
        return *mark.span(), f"'{name}' is not followed by '='", f"write '{name} = value'"
    return None


def header_complaint(header: str) -> tuple[str, str] | None:
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


def value_complaint(mark: re.Match[str]) -> tuple[int, int, str, str] | None:
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
    runs_on = len(delimiter) == 1 and re.search(rf"\n\s*(?:\[[\w/]*\]|{NAME}\s*:?=)", quote)
    if not closed or runs_on:
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


def gather(
    node: nmhit.Node, draft: Draft, sources: dict[str, Source], problems: list[Problem]
) -> list[Written]:
    """Write what nmhit read into a draft; fields written as a path are returned, to be assigned.

    nmhit puts those into the last section of a name, where they would not reach a block of an
    earlier one, and lets `:=` not reach an included file.
    """
    scattered: list[Written] = []
    for child in node.children():
        if not isinstance(child, nmhit.Section | nmhit.Field):
            continue
        source = source_of(child.filename, sources)
        at = source.offset(child.line(), child.column())
        mark = MARK.match(source.text, at)
        assert mark is not None, f"nmhit found '{child.path()}' where there is nothing"
        if isinstance(child, nmhit.Field):
            written = written_of(child, mark, draft.path, source)
            if "/" in mark["name"].strip("/"):
                scattered.append(written)
            else:
                problems += put(draft, written)
            continue
        path = (*draft.path, child.path())
        header = mark["open"] or mark["close"]
        inner = Draft(path, source.span(at, len(header or mark["name"]), "/".join(path)))
        wrong = header_complaint(header or "[name]")
        if wrong is not None:
            message, fix = wrong
            problems.append(Problem("parse-error", message, inner.span, fix))
            continue
        scattered += gather(child, inner, sources, problems)
        if header or inner.fields or inner.blocks:
            draft.blocks.append(inner)
    return scattered


def written_of(
    node: nmhit.Field, mark: re.Match[str], block: tuple[str, ...], source: Source
) -> Written:
    value, quote = node.raw_val(), mark["quote"] or ""
    verbatim = quote.startswith(("'''", '"""'))
    inside = "/".join(block)
    return Written(
        name=node.path(),
        block=block,
        value=value[1:-1] if quote and not verbatim else value,
        verbatim=verbatim,
        replaces=mark["operator"] != "=",
        source=source,
        span=source.span(mark.start(), len(mark["name"]), inside),
        value_span=source.span(mark.start("value"), len(mark["value"].split("\n")[0]), inside),
        at=mark.start("value"),
    )


def override(source: Source, problems: list[Problem]) -> list[Written]:
    """The fields that one override sets."""
    sources, root = {".": source}, Draft((), source.span(0, 0))
    try:
        raise_if(gather_includes(source, Path(), sources, ()))
        parse = functools.partial(nmhit.parse_text, source.text)
        scattered = gather(parsed(parse, sources), root, sources, problems)
    except IngotError as error:
        problems += error.problems
        return []
    found = [*every_field(root), *scattered]
    if not found:
        span = source.span(0, len(source.text))
        fix = "write path/to/option:=value"
        problems.append(Problem("parse-error", "this override sets nothing", span, fix))
    return found


def every_field(draft: Draft) -> Iterator[Written]:
    yield from draft.fields.values()
    for block in draft.blocks:
        yield from every_field(block)


def assign(root: Draft, written: Written) -> Iterator[Problem]:
    """Put a field into the block of its path: the one that has the field, or the first."""
    target = root
    for depth in range(1, len(written.block) + 1):
        path = written.block[:depth]
        found = root.at(path)
        if not found:
            found = [Draft(path, written.span)]
            target.blocks += found
        target = found[0]
    having = (block for block in root.at(written.block) if written.name in block.fields)
    yield from put(next(having, target), written)


def put(draft: Draft, written: Written) -> Iterator[Problem]:
    earlier = draft.fields.get(written.name)
    if earlier is not None and not written.replaces:
        yield doubled(written.span, earlier.span)
    else:
        draft.fields[written.name] = written


def doubled(span: Span, first: Span) -> Problem:
    """The problem of a field that is set twice."""
    name = span.text[span.column - 1 : span.column - 1 + span.length]
    place = f"on line {first.line}" if first.file == span.file else f"in {first.file}:{first.line}"
    fix = "write ':=' instead of '=' to replace it"
    return Problem("duplicate-field", f"'{name}' is already set {place}", span, fix)


def repeated(root: Draft) -> Iterator[Problem]:
    """A problem for each block or field that is written twice; sections may be repeated."""
    seen: dict[tuple[str, ...], Span] = {}
    pending = list(root.blocks)
    while pending:
        block = pending.pop(0)
        first = seen.setdefault(block.path, block.span)
        if first is not block.span and len(block.path) > 1:
            place = f"line {first.line}" + (f" of {first.file}" * (first.file != block.span.file))
            message = f"there is already a block '{'/'.join(block.path)}' on {place}"
            yield Problem("duplicate-block", message, block.span, "rename one, or join the two")
            continue
        for written in block.fields.values():
            first = seen.setdefault((*block.path, "", written.name), written.span)
            if first is not written.span:
                yield doubled(written.span, first)
        pending += block.blocks


class Resolved:
    """The values of a draft's fields, every ${...} replaced; what cannot be is a problem."""

    def __init__(self, root: Draft) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self.texts: dict[str, str] = {}
        self.active: list[str] = []

    def text(self, written: Written) -> str:
        path = written.path
        if path in self.active:
            circle = " -> ".join([*self.active[self.active.index(path) :], path])
            message = f"'{path}' refers to itself: {circle}"
            fix = "give one of them a plain value"
            problem = Problem("circular-substitution", message, written.value_span, fix)
            self.problems.append(problem)
            return ""
        if path not in self.texts:
            self.active.append(path)
            self.texts[path] = self.expanded(written.value, written)
            self.active.pop()
        return self.texts[path]

    def expanded(self, text: str, written: Written) -> str:
        """A text with its ${...} replaced by their values."""
        done, rest = "", text
        while "${" in rest:
            before, _, rest = rest.partition("${")
            end = closing(rest)
            if end is None:
                self.report(rest, written, "this ${ is not closed", "close it with }")
                return ""
            done += before + self.value(rest[:end], written)
            rest = rest[end + 1 :]
        return done + rest

    def value(self, inside: str, written: Written) -> str:
        """The value of one ${inside}; nested ones are replaced in the order they are written."""
        words = outer_words(inside)
        command = words[0] if words else ""
        if command == "raw":
            return "".join(self.expanded(word, written) for word in words[1:])
        if command == "env" and len(words) == 2:
            # The language has it so: an unset variable is empty.
            return os.environ.get(self.expanded(words[1], written), "")
        if len(words) == 1 or (command == "replace" and len(words) == 2):
            return self.looked_up(self.expanded(words[-1], written), inside, written)
        message = f"${{{inside}}} is not understood: '{command}' is not a command"
        fix = "write the value itself, or use ${name}, ${env NAME}, ${raw a b}"
        self.report(inside, written, message, fix)
        return ""

    def looked_up(self, name: str, inside: str, written: Written) -> str:
        """The value of the field at a path from the top of the file."""
        *block, last = (part for part in name.split("/") if part or "/" not in name)
        for found in self.root.at(block):
            if last in found.fields:
                return self.text(found.fields[last])
        known = (each.path for each in every_field(self.root))
        message, fix = f"there is no value '{name}'", did_you_mean(name, known)
        if self.root.at([*block, last]):
            message, fix = f"'{name}' is a block, not a value", f"write ${{{name}/option}}"
        self.report(inside, written, message, fix or f"add '{name} = ...' at the top of the file")
        return ""

    def report(self, inside: str, written: Written, message: str, fix: str) -> None:
        at = written.source.text.find("${" + inside, written.at)
        span = written.source.span(at, len(inside) + 3, written.span.block)
        span = span if at >= 0 else written.value_span
        self.problems.append(Problem("unresolved-substitution", message, span, fix))


def closing(text: str) -> int | None:
    """Where the } stands that closes a ${ just before the text."""
    depth = 1
    for mark in re.finditer(r"\$\{|\}", text):
        depth += 1 if mark[0] == "${" else -1
        if depth == 0:
            return mark.start()
    return None


def outer_words(text: str) -> list[str]:
    """The words of a text; blanks inside ${...} do not separate."""
    words, depth = [""], 0
    for piece in re.findall(r"\$\{|\}|\s+|[^\s$}]+|\$", text):
        depth += (piece == "${") - (piece == "}")
        if piece.isspace() and depth == 0:
            words.append("")
        else:
            words[-1] += piece
    return [word for word in words if word]


def frozen(draft: Draft, resolved: Resolved) -> tuple[tuple[Field, ...], tuple[Block, ...]]:
    """The fields and blocks of a draft, with their values."""
    fields = tuple(
        Field(each.name, resolved.text(each), each.span, each.value_span, each.verbatim)
        for each in draft.fields.values()
    )
    blocks = tuple(
        Block(each.path[-1], "/".join(each.path), *frozen(each, resolved), each.span)
        for each in draft.blocks
    )
    return fields, blocks
