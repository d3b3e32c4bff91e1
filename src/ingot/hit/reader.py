"""read: a file and its overrides to a Tree.

In: HIT text. Out: a Tree with overrides applied and every ${...} resolved, or an IngotError.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import nmhit

from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.hit.doubts import find_unused, list_paths
from ingot.hit.faults import find_source, judge_header, parse_text
from ingot.hit.quotes import mask_text, quote_override, unmask
from ingot.hit.resolve import Resolved
from ingot.hit.source import (
    MARK,
    Draft,
    Source,
    Written,
    describe_doubled,
    gather_includes,
    list_fields,
    read_contents,
)
from ingot.hit.tree import Block, Field, Tree
from ingot.keywords import check_keywords

__all__ = ["read", "read_text"]

COMMAND_LINE = "<command line>"


@check_keywords
def read(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    moose: bool = False,
    text: str | None = None,
) -> Tree:
    """Read a file, then the overrides (`Models/elasticity/E:=210000`) as if they stood below it.

    With `moose` as MOOSE reads it: quoted values hold any letter and are joined, a ${name} is
    looked up in the blocks around before the top, and an override with a plain = replaces.
    text: the `contents` of the file, where they were read before.
    """
    path = Path(path)
    source = Source(str(path), read_contents(path) if text is None else text)
    sources = {str(path): source}
    raise_if(gather_includes(source, path.parent, sources, (path.resolve(),)))
    parse = functools.partial(nmhit.parse_file, path)  # which alone finds what is included
    if len(sources) == 1:
        parse, sources = functools.partial(nmhit.parse_text, source.text), {".": source}
    return build_tree(parse, sources, path, overrides, moose=moose)


@check_keywords
def read_text(
    text: str, file: str = "<text>", overrides: Sequence[str] = (), *, moose: bool = False
) -> Tree:
    """Read text as if it were a file of that name in the working folder."""
    sources = {".": Source(file, text)}
    raise_if(gather_includes(sources["."], Path(), sources, ()))
    parse = functools.partial(nmhit.parse_text, text)
    return build_tree(parse, sources, None, overrides, moose=moose)


def build_tree(
    parse: Callable[[], nmhit.Root],
    sources: dict[str, Source],
    path: Path | None,
    overrides: Sequence[str],
    *,
    moose: bool,
) -> Tree:
    """Parse, put path fields and overrides into their blocks, resolve, freeze."""
    overrides = (overrides,) if isinstance(overrides, str) else overrides
    root = Draft((), Span("", 0))
    problems: list[Problem] = []
    if moose:
        parse, sources = parse_masked(parse, sources)
    scattered = gather(parse_text(parse, sources), root, sources, problems)
    problems += [problem for written in scattered for problem in assign(root, written)]
    there, given = frozenset(list_paths(root)), list[Written]()
    for number, text in enumerate(overrides, 1):
        source = Source(COMMAND_LINE, quote_override(text) if moose else text, number)
        found = override(source, problems, moose=moose)
        given += [replace(each, replaces=True) for each in found] if moose else found
    problems += [problem for written in given for problem in assign(root, written)]
    raise_if([*problems, *find_repeated(root)])
    resolved = Resolved(root, moose=moose)
    fields, blocks = freeze(root, resolved)
    raise_if(resolved.problems)
    texts = "\0".join([*(source.text for source in sources.values()), *overrides])
    digest = hashlib.sha256(texts.encode()).hexdigest()
    doubts = tuple(find_unused(root, there, given, resolved))
    tree = Tree(fields, blocks, path, tuple(overrides), digest, doubts)
    if moose:
        return tree
    from ingot.hit.presets import expand  # which reads its own files by this module

    return expand(tree)


def parse_masked(
    parse: Callable[[], nmhit.Root], sources: dict[str, Source]
) -> tuple[Callable[[], nmhit.Root], dict[str, Source]]:
    """Parse the masked text of a file; one with includes is left to nmhit, which follows them."""
    if len(sources) > 1:
        return parse, sources
    (source,) = sources.values()
    return functools.partial(nmhit.parse_text, mask_text(source.text)), {".": source}


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
        source = find_source(child.filename, sources)
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
        wrong = judge_header(header or "[name]")
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
    value, quote = unmask(node.raw_val()), mark["quote"] or ""
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


def override(source: Source, problems: list[Problem], *, moose: bool = False) -> list[Written]:
    """The fields that one override sets."""
    sources, root = {".": source}, Draft((), source.span(0, 0))
    try:
        raise_if(gather_includes(source, Path(), sources, ()))
        parse = functools.partial(
            nmhit.parse_text, mask_text(source.text) if moose else source.text
        )
        scattered = gather(parse_text(parse, sources), root, sources, problems)
    except IngotError as error:
        problems += error.problems
        return []
    found = [*list_fields(root), *scattered]
    if not found:
        span = source.span(0, len(source.text))
        fix = "write path/to/option:=value"
        problems.append(Problem("parse-error", "this override sets nothing", span, fix))
    return found


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
        yield describe_doubled(written.span, earlier.span)
    else:
        draft.fields[written.name] = written


def find_repeated(root: Draft) -> Iterator[Problem]:
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
                yield describe_doubled(written.span, first)
        pending += block.blocks


def freeze(draft: Draft, resolved: Resolved) -> tuple[tuple[Field, ...], tuple[Block, ...]]:
    """The fields and blocks of a draft, with their values."""
    fields = tuple(
        Field(each.name, resolved.text(each), each.span, each.value_span, each.verbatim)
        for each in draft.fields.values()
    )
    blocks = tuple(
        Block(each.path[-1], "/".join(each.path), *freeze(each, resolved), each.span)
        for each in draft.blocks
    )
    return fields, blocks
