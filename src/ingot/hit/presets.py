"""expand: blocks of a preset's type become the blocks that its template writes; Tree to Tree.

In: a Tree, and presets: files of a [Preset] block, which declares options, and a template below it.
Out: a Tree that names no preset, whose errors still point at what the user wrote.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nmhit

from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.hit.faults import parse_text
from ingot.hit.preset_options import PresetOption, read_option
from ingot.hit.reader import gather, read_text
from ingot.hit.resolve import Resolved
from ingot.hit.source import Draft, Source, outline, read_contents
from ingot.hit.tree import (
    Block,
    Field,
    Ranged,
    Tree,
    quote,
    unknown_blocks,
    unknown_fields,
    word_span,
)
from ingot.options import Range

__all__ = ["Preset", "all_presets", "expand", "list_presets", "presets_of"]

FOLDER = Path(__file__).parent / "templates"
SECTIONS = ("Models", "Drivers")
MAX_DEPTH = 8  # presets that write presets; a circle would never end

_LOADED: dict[str, Path] = {}
"""Presets of `--load`, by the type they are written for."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A type of block that stands for others: its options, and the template that writes them."""

    type: str
    section: str
    doc: str
    options: Mapping[str, PresetOption]
    template: str
    file: Path
    first: int
    """The line of the file on which the template begins."""


def preset_files() -> dict[str, Path]:
    """The files of all presets by type; the name of a file is the type."""
    return {**_shipped(), **_LOADED}


@functools.cache
def _shipped() -> dict[str, Path]:
    return {path.stem: path for path in sorted(FOLDER.glob("*.i"))}


def all_presets() -> dict[str, Preset]:
    """All presets by type."""
    return {kind: read_preset(file) for kind, file in preset_files().items()}


def list_presets(section: str) -> tuple[str, ...]:
    """The types of presets of a section."""
    return tuple(each.type for each in all_presets().values() if each.section == section)


@contextmanager
def presets_of(files: Sequence[Path]) -> Iterator[None]:
    """Know the presets of these files, and afterwards those of before."""
    before = dict(_LOADED)
    try:
        for file in files:
            read_preset(file)
            _LOADED[file.stem] = file
        yield
    finally:
        _LOADED.clear()
        _LOADED.update(before)


def read_preset(file: Path) -> Preset:
    """The preset that a file declares."""
    return _read_preset(file, read_contents(file))


@functools.lru_cache(maxsize=64)
def _read_preset(file: Path, text: str) -> Preset:
    depth = end = 0
    for mark, _ in outline(text):
        depth += bool(mark["open"]) - bool(mark["close"])
        if mark["close"] and depth == 0:
            end = mark.end()
            break
    head = read_text(_fill(text[:end], file, 1, {}), str(file))
    blocks = head.section("Preset")
    if not blocks:
        message = f"'{file}' does not begin with a [Preset]"
        raise IngotError([Problem("wrong-preset", message, None, "declare its options there")])
    (block,) = blocks
    raise_if(unknown_fields(block, ("section", "doc")))
    options = {each.name: read_option(each) for each in block.blocks}
    section = block.require("section").choice(block.require("section").string(), SECTIONS)
    doc = " ".join(block.require("doc").string().split())
    first = text.count("\n", 0, end) + 1
    return Preset(file.stem, section, doc, options, text[end:], file, first)


def expand(tree: Tree) -> Tree:
    """The tree with every block of a preset's type replaced by the blocks it stands for."""
    known = preset_files()
    writes = [b for s in SECTIONS for part in tree.section(s) for b in part.blocks]
    if not any(block.type in known for block in writes):
        return tree
    return _Expansion(tree).whole()


class _Expansion:
    """A tree that grows by what its presets write."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.files = preset_files()
        self.problems: list[Problem] = []
        self.more: dict[str, list[Block]] = {}
        self.there = {
            (part.name, block.name): block.span for part in tree.blocks for block in part.blocks
        }
        self.written: list[str] = []

    def whole(self) -> Tree:
        """The tree without presets, or all that is wrong with them."""
        blocks = [
            dataclasses.replace(part, blocks=tuple(self.opened(part)))
            if part.name in SECTIONS else part
            for part in self.tree.blocks
        ]  # fmt: skip
        raise_if(self.problems)
        for index, part in enumerate(blocks):
            added = self.more.pop(part.name, [])
            blocks[index] = dataclasses.replace(part, blocks=(*part.blocks, *added))
        for name, added in self.more.items():
            blocks.append(Block(name, name, (), tuple(added), added[0].span))
        written = frozenset(self.written)
        return dataclasses.replace(self.tree, blocks=tuple(blocks), written=written)

    def opened(self, part: Block) -> Iterator[Block]:
        """The blocks of a section, presets replaced by what they write there."""
        for block in part.blocks:
            try:
                yield from self.replaced(block, part.name, ())
            except IngotError as error:
                self.problems += error.problems

    def replaced(self, block: Block, section: str, chain: tuple[str, ...]) -> Iterator[Block]:
        """A block itself, or what stands for it in its section; the rest is kept for later."""
        kind = block.type
        if kind not in self.files or kind is None:
            yield block
            return
        preset = read_preset(self.files[kind])
        raise_if(_find_misplaced(block, preset, section, chain))
        for written_section, written in write_blocks(block, preset):
            own = written_section == section and written.name == block.name
            place = (written_section, written.name)
            if not own and place in self.there:
                raise IngotError([_describe_taken(block, place, self.there[place])])
            self.there[place] = block.span
            self.written.append(written.path)
            inner = [written]
            if written_section in SECTIONS:
                inner = list(self.replaced(written, written_section, (*chain, kind)))
            if written_section == section:
                yield from inner
            else:
                self.more.setdefault(written_section, []).extend(inner)


def _find_misplaced(
    block: Block, preset: Preset, section: str, chain: tuple[str, ...]
) -> Iterator[Problem]:
    span = block.require("type").span
    if section != preset.section:
        message = f"{preset.type} is a type of [{preset.section}], not of [{section}]"
        yield Problem("unknown-type", message, span, f"move this block to [{preset.section}]")
    if preset.type in chain or len(chain) == MAX_DEPTH:
        message = f"the preset {preset.type} writes itself: {' -> '.join((*chain, preset.type))}"
        yield Problem("wrong-preset", message, span, "let one of them write other types")


def _describe_taken(block: Block, place: tuple[str, str], first: Span) -> Problem:
    path = "/".join(place)
    message = f"{block.title} writes a block '{path}', and there is one already, of line"
    fix = f"rename [{block.name}] or the other"
    return Problem("duplicate-block", f"{message} {first.line}", block.span, fix)


def write_blocks(block: Block, preset: Preset) -> Iterator[tuple[str, Block]]:
    """The blocks that stand for one of a preset's type, each with its section."""
    values = read_values(block, preset)
    fields = {field.name: field for field in block.fields}
    ranges = {name: option.range for name, option in preset.options.items()}
    variables = dict(_variables(values, fields, ranges, block))
    draft = _draft(_render(preset, block, values), variables, preset, block)
    resolved = Resolved(draft)
    written = list(_freeze(draft, resolved, variables, block))
    raise_if(dataclasses.replace(each, span=block.span) for each in resolved.problems)
    if not any(s == preset.section and each.name == block.name for s, each in written):
        message = f"the preset {preset.type} writes no block [{block.name}] of [{preset.section}]"
        fix = "write one in its template: [{{ name }}]"
        raise IngotError([Problem("wrong-preset", message, block.span, fix)])
    yield from written


Values = dict[str, tuple[str, ...] | None]


def read_values(block: Block, preset: Preset) -> Values:
    """The words of every option, None for one that does not count; problems are told at once."""
    problems = [*unknown_fields(block, ("type", *preset.options)), *unknown_blocks(block)]
    values: Values = {}
    wrong: set[str] = set()
    for name, option in preset.options.items():
        if option.leans_on & wrong:
            continue  # what is wrong there says nothing about this one
        try:
            values[name] = option.words(block.field(name), block, values)
        except IngotError as error:
            problems += error.problems
            wrong.add(name)
    raise_if(problems)
    return values


class _Variable(NamedTuple):
    """What ${...} of a template stands for: its text, the field and the word of it that the user
    wrote, and the range of each word of the text.
    """

    text: str
    field: Field | None = None
    word: str = ""
    ranges: tuple[Range | None, ...] = (None,)


_Variables = Mapping[str, _Variable]


def _variables(
    values: Values, fields: Mapping[str, Field], ranges: Mapping[str, Range | None], block: Block
) -> Iterator[tuple[str, _Variable]]:
    """What ${...} of a template may name: options, and entries of lists as NAME_1, NAME_2, ..."""
    yield "name", _Variable(block.name)
    for name, words in values.items():
        if words is None:
            continue
        field, own = fields.get(name), ranges[name]
        outer = field.ranges if field is not None else ()
        outer = outer if len(outer) == len(words) else (None,) * len(words)
        each = tuple(_join_ranges(own, x and x.within) for x in outer)
        yield name, _Variable(" ".join(words), field, "", each)
        for number, (word, one) in enumerate(zip(words, each, strict=True), 1):
            yield f"{name}_{number}", _Variable(word, field, word, (one,))


def _join_ranges(own: Range | None, outer: Range | None) -> Range | None:
    return outer if own is None else own & outer


def _render(preset: Preset, block: Block, values: Values) -> str:
    """The template with its choices made: text with ${...} for values."""

    def refuse(option: str, message: str, fix: str) -> None:
        field = block.field(option)
        span = block.span if field is None else field.value_span
        raise IngotError([Problem("wrong-value", message, span, fix)])

    shown = {each: preset.options[each].shown(words) for each, words in values.items()}
    given = {"name": block.name, "refuse": refuse, **shown}
    return _fill(preset.template, preset.file, preset.first, given)


def _fill(template: str, file: Path, first: int, values: Mapping[str, Any]) -> str:
    """What a template of Jinja, which begins on a line of a file, says for some values."""
    from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        loader=FileSystemLoader([file.parent, FOLDER]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    try:
        return environment.from_string(template).render(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        line = first + getattr(error, "lineno", 1) - 1
        message = f"the template of {file.stem} is not understood: {error}"
        fix = "mend it: it is a template of Jinja that writes HIT"
        problem = Problem("wrong-preset", message, Span(str(file), line), fix)
        raise IngotError([problem]) from error


def _draft(text: str, variables: _Variables, preset: Preset, block: Block) -> Draft:
    """What a template wrote, with its variables at the top."""
    given = "".join(
        f"{name} = {quote(value, verbatim=False)} " if value else f"{name} = '' "
        for name, (value, *_) in variables.items()
    )
    source = Source(f"{preset.file} for [{block.path}]", f"{given}\n{text}")
    draft, problems = Draft((), Span("", 0)), list[Problem]()
    parse = functools.partial(nmhit.parse_text, source.text)
    sources = {".": source}
    scattered = gather(parse_text(parse, sources), draft, sources, problems)
    problems += [
        Problem("wrong-preset", "a template writes blocks, no path", each.span, "write its block")
        for each in scattered
    ]
    raise_if(problems)
    return draft


def _freeze(
    draft: Draft,
    resolved: Resolved,
    variables: _Variables,
    block: Block,
) -> Iterator[tuple[str, Block]]:
    for section in draft.blocks:
        for each in section.blocks:
            yield section.path[-1], _freeze_block(each, resolved, variables, block)


def _find_ranges(
    value: str, text: str, variables: _Variables, asked: Span
) -> tuple[Ranged | None, ...]:
    """The range of each word that a template writes: of those that are an option's, as it stands.

    asked: where the preset is named, of options that the user has left out.
    """
    ranges: list[Ranged | None] = []
    for word in re.findall(r"(?:\$\{[^}]*\}|[^\s$])+", value.strip("'\"")):
        name = re.fullmatch(r"\$\{\s*(\w+)\s*\}", word)
        known = variables.get(name[1], _Variable("")) if name is not None else _Variable("")
        field = known.field
        span = asked if field is None else word_span(field.value_span, known.word)
        ranges += [None if own is None else Ranged(own, span) for own in known.ranges]
    return tuple(ranges) if any(ranges) and len(ranges) == len(text.split()) else ()


def _freeze_block(
    draft: Draft,
    resolved: Resolved,
    variables: _Variables,
    block: Block,
) -> Block:
    """A block that stands where the user wrote the preset."""
    fields: list[Field] = []
    asked = block.require("type")
    for each in draft.fields.values():
        span, value_span = asked.span, asked.value_span
        for name in re.findall(r"\w+", " ".join(re.findall(r"\$\{[^}]*\}", each.value))):
            _, field, word, _ = variables.get(name, _Variable(""))
            if field is not None:
                span, value_span = field.span, word_span(field.value_span, word)
                break
        text = resolved.text(each)
        ranges = _find_ranges(each.value, text, variables, asked.value_span)
        fields.append(Field(each.name, text, span, value_span, each.verbatim, ranges))
    inner = tuple(_freeze_block(each, resolved, variables, block) for each in draft.blocks)
    return Block(draft.path[-1], "/".join(draft.path), tuple(fields), inner, block.span)
