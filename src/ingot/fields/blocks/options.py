"""A block and the options of its type -> values; all that is wrong with it is told at once."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from ingot.errors import IngotError, Problem, Span, did_you_mean
from ingot.fields.declare import REQUIRED, ComputeOption, options_of
from ingot.fields.step import Constant
from ingot.hit import NUMBER, Block, Field, Tree, unknown_blocks, unknown_fields, with_globals
from ingot.options import plain

__all__ = ["Reader", "place"]

Made = TypeVar("Made")
IDLE = "accepted, without effect"
"""What the sentence of an option begins with that is read for the sake of old files."""

FLAGS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
         "on": True, "off": False}  # fmt: skip


@dataclass(slots=True)
class Reader:
    """Reads the blocks of one file; problems are gathered, and raised once at the end."""

    tree: Tree
    problems: list[Problem] = field(default_factory=list)
    constants: dict[str, Field] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    doubts: list[Problem] = field(default_factory=list)
    """Options that are set and change nothing."""

    def values(
        self, block: Block, options: Iterable[ComputeOption], also: Iterable[str] = ("type",),
        blocks: Iterable[str] | None = (),
    ) -> dict[str, Any] | None:  # fmt: skip
        """The values of a block's options, by name; None where one of them is wrong.

        `also` are keys read elsewhere; `blocks` are the sub-blocks it may have, None being any.
        """
        options = tuple(options)
        before = len(self.problems)
        self.asked |= {option.name for option in options}
        known = [*(option.name for option in options), *also]
        block = with_globals(block, self.tree, [option.name for option in options])
        self.problems += unknown_fields(block, known)
        if blocks is not None:
            self.problems += unknown_blocks(block, tuple(blocks))
        values: dict[str, Any] = {}
        for option in options:
            try:
                values[option.name] = self.value(block, option)
                if option.doc.startswith(IDLE):
                    self.tell_idle(block, option, values[option.name])
            except IngotError as error:
                self.problems += error.problems
        return values if len(self.problems) == before else None

    def value(self, block: Block, option: ComputeOption) -> Any:
        """The value of one option, or its default."""
        found = block.field(option.name)
        if found is None:
            return option.default if option.default is not REQUIRED else block.require(option.name)
        return self.read(found, option.type)

    def tell_idle(self, block: Block, option: ComputeOption, value: Any) -> None:
        """Keep a doubt about an option without effect, if the block sets it to anything."""
        if block.field(option.name) is None or value == option.default:
            return
        message = f"'{option.name}' of {block.title} has no effect"
        message += option.doc.removeprefix(IDLE) if option.doc.startswith(IDLE) else " here"
        span = place(block, option.name)
        self.doubts.append(Problem("idle-option", message, span, "leave it out"))

    def tell_idle_fields(self, block: Block | None, made: Any, names: Iterable[str]) -> None:
        """Keep a doubt about each of some options that were read into a dataclass."""
        for option in options_of(type(made)):
            if block is not None and option.name in names:
                self.tell_idle(block, option, getattr(made, option.name))

    def either(self, block: Block, name: str, kind: Any, default: Any) -> Any:
        """One option by itself, or its default, also where it is wrong."""
        try:
            return self.value(block, ComputeOption(name, kind, default))
        except IngotError as error:
            self.problems += error.problems
            return default

    def read(self, found: Field, kind: Any) -> Any:
        """A field as a value of an annotated type."""
        if get_origin(kind) is Annotated:
            if "constant" in kind.__metadata__:
                return self.constant(found)
            if "constants" in kind.__metadata__:
                return tuple(self.constant_of(found, word) for word in found.words())
            numeric = plain(kind) in (int, float)
            return word_as(found, found.string().strip(), kind) if numeric else found.string()
        if get_origin(kind) in (Union, types.UnionType):
            return self.read(found, get_args(kind)[0])
        if get_origin(kind) is Literal:
            return choice(found, found.string().strip(), get_args(kind))
        if get_origin(kind) is tuple:
            inner = get_args(kind)[0]
            return tuple(word_as(found, word, inner) for word in found.words())
        return word_as(found, found.string().strip(), kind)

    def constant(self, found: Field) -> float | Constant:
        """A number, or a constant that the problem names."""
        return self.constant_of(found, found.string().strip())

    def constant_of(self, found: Field, name: str) -> float | Constant:
        """A word of a field as a number or a constant."""
        try:
            return word_as(found, name, float)
        except IngotError:
            if not re.fullmatch(r"[A-Za-z_]\w*", name) or NUMBER.fullmatch(name):
                raise
            self.constants.setdefault(name, found)
            return Constant(name)

    def made(
        self, block: Block, cls: type[Made], also: Iterable[str] = ("type",),
        blocks: Iterable[str] | None = (),
    ) -> Made | None:  # fmt: skip
        """A frozen dataclass of options, read from a block; what its `find_idle` names is told."""
        values = self.values(block, options_of(cls), also, blocks)
        if values is None:
            return None
        slots = getattr(cls, "__dataclass_fields__", {})
        made = cls(**{n if n in slots else f"{n}_": value for n, value in values.items()})
        find_idle: Callable[[], Iterable[str]] = getattr(made, "find_idle", tuple)
        self.tell_idle_fields(block, made, find_idle())
        return made

    def type_of(self, block: Block, known: Mapping[str, Made], default: str = "") -> Made | None:
        """The entry of a registry that a block's `type` names."""
        found = block.field("type")
        kind = default if found is None else found.string()
        if not kind:
            message = f"{block.title} needs the option 'type'"
            fix = f"add 'type = ...', one of: {', '.join(sorted(known)[:12])}"
            self.problems.append(Problem("missing-option", message, block.span, fix))
            return None
        if kind not in known:
            span = block.span if found is None else found.value_span
            message = f"no type '{kind}' in [{block.path.rpartition('/')[0] or block.path}]"
            fix = did_you_mean(kind, known) or f"choose one of: {', '.join(sorted(known)[:12])}"
            self.problems.append(Problem("unknown-type", message, span, fix))
            return None
        return known[kind]


def place(block: Block, name: str) -> Span:
    """Where an option is written: in its block, or else, for all blocks, in [GlobalParams]."""
    found = block.field(name)
    return block.span if found is None else found.value_span


def word_as(found: Field, word: str, kind: Any) -> Any:
    """One word of a field as a value of a plain type."""
    if get_origin(kind) is Literal:
        return choice(found, word, get_args(kind))
    if plain(kind) is bool:
        if word.lower() not in FLAGS:
            raise found.wrong("true or false", word, "write true or false")
        return FLAGS[word.lower()]
    if plain(kind) is int:
        value = found.float_of(word)
        if not math.isfinite(value) or not value.is_integer():
            raise found.wrong("a whole number", word, "write a whole number such as 10 or 1e3")
        return found.within(int(value), kind, word)
    return found.within(found.float_of(word), kind, word) if plain(kind) is float else word


def choice(found: Field, word: str, choices: tuple[str, ...]) -> str:
    """One of the choices, whatever its capitals."""
    by_lower = {each.lower(): each for each in choices}
    if word.lower() not in by_lower:
        fix = did_you_mean(word, choices) or f"choose one of: {', '.join(choices)}"
        raise found.wrong(f"one of {', '.join(choices)}", word, fix)
    return by_lower[word.lower()]
