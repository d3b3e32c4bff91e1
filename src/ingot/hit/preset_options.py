"""PresetOption: what a preset says of one of its options, and the words that a block gives it.

In: a block of [Preset]. Out: words that are of its kind and in its range, or an IngotError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from ingot.errors import IngotError, Problem, raise_if
from ingot.hit.tree import NUMBER, Block, Field, unknown_blocks, unknown_fields
from ingot.options import Range, name_type

__all__ = ["PresetOption", "read_option"]

Kind = Literal["parameter", "parameters", "number", "numbers", "count", "choice", "flag", "name",
               "names"]  # fmt: skip
BOUNDS = ("above", "from", "to", "below")
MAX_COUNT = 10_000  # of cycles, steps or entries: a template writes or computes each
LISTS = ("parameters", "numbers", "names")
RANGED = ("parameter", "parameters", "number", "numbers")


@dataclass(frozen=True, slots=True)
class PresetOption:
    """An option of a preset.

    kind: `parameter` is a number in the range, or the name of a tensor, a model or a variable;
    when: an option and its values for which this one counts; like: a list of as many entries.
    """

    name: str
    kind: Kind
    doc: str
    default: tuple[str, ...] | None
    required: bool
    type: Any
    when: tuple[str, tuple[str, ...]] | None
    like: str | None

    @property
    def range(self) -> Range | None:
        """The range of its numbers, if they have one."""
        return Range.of(self.type) if self.kind in RANGED else None

    @property
    def leans_on(self) -> set[str]:
        """The options that decide whether this one counts, and how long it is."""
        return {each for each in (self.like, self.when and self.when[0]) if each}

    def words(
        self, field: Field | None, block: Block, before: Mapping[str, tuple[str, ...] | None]
    ) -> tuple[str, ...] | None:
        """The words of the option in a block; `before` are those of options declared before."""
        if not self.counts(before):
            if field is None:
                return None
            assert self.when is not None
            other, wanted = self.when
            message = f"'{self.name}' has no effect: '{other}' is '{' '.join(before[other] or ())}'"
            fix = f"remove it, or write '{other} = {wanted[0]}'"
            raise IngotError([Problem("unknown-option", message, field.span, fix)])
        if field is None:
            if self.required:
                block.require(self.name)
            return self.spread(self.default, before)
        words = field.words() if self.kind in LISTS else (field.string().strip(),)
        for word in words:
            self.judge(field, word)
        if self.kind not in LISTS and len(field.text.split()) != 1:
            raise field.wrong("one word", fix="write one")
        if self.like is not None and len(words) == 1:
            return self.spread(words, before)
        self.judge_count(field, words, before)
        return words

    def counts(self, before: Mapping[str, tuple[str, ...] | None]) -> bool:
        """Whether the option has a meaning beside those before it."""
        if self.when is None:
            return True
        other, wanted = self.when
        found = before.get(other)
        return found is not None and " ".join(found) in wanted

    def spread(
        self, words: tuple[str, ...] | None, before: Mapping[str, tuple[str, ...] | None]
    ) -> tuple[str, ...] | None:
        """One word for every entry of the list that this one is like."""
        if words is None or self.like is None:
            return words
        return words * len(before.get(self.like) or ())

    def judge(self, field: Field, word: str) -> None:
        """Raise where a word is not of the kind, or out of range."""
        if self.kind == "choice":
            field.choice(word, get_args(self.type))
        elif self.kind == "flag":
            field.flag()
        elif self.kind == "count":
            field.option(self.type)
        elif self.kind in ("number", "numbers") or (
            self.kind in ("parameter", "parameters") and NUMBER.fullmatch(word)
        ):
            field.within(field.float_of(word), self.type, word)
        elif self.kind in ("parameter", "parameters") and word[:1] in "+-.0123456789":
            field.float_of(word)

    def judge_count(
        self, field: Field, words: tuple[str, ...], before: Mapping[str, tuple[str, ...] | None]
    ) -> None:
        """Raise where a list is empty, or not as long as the one it is like."""
        if self.kind in LISTS and not words:
            raise field.wrong("a list with an entry", fix="give one")
        wanted = len(before.get(self.like) or ()) if self.like is not None else len(words)
        if len(words) != wanted:
            message = f"'{self.name}' has {len(words)} entries, but '{self.like}' {wanted}"
            problem = Problem("wrong-value", message, field.value_span, f"give {wanted}, or one")
            raise IngotError([problem])

    def shown(self, words: tuple[str, ...] | None) -> Any:
        """The value as a template sees it: a list, a count, a flag or a word."""
        if words is None:
            return None
        if self.kind in LISTS:
            return list(words)
        (word,) = words
        if self.kind == "count":
            return int(word)
        return word == "true" if self.kind == "flag" else word

    @property
    def values(self) -> str:
        """What the option may be, in words."""
        kind = name_type(self.type) if self.kind != "flag" else "true | false"
        if self.kind.startswith("parameter"):
            kind += ", or the name of a tensor, model or variable"
        return f"list of {kind}" if self.kind in LISTS else kind


def read_option(block: Block) -> PresetOption:
    """An option as a block of [Preset] declares it."""
    known = ("kind", "doc", "default", "choices", "when", "like", "optional", *BOUNDS)
    raise_if([*unknown_fields(block, known), *unknown_blocks(block)])
    kind: Kind = block.require("kind").option(Literal[get_args(Kind)])  # type: ignore[valid-type]
    default, when, like = block.field("default"), block.field("when"), block.field("like")
    optional = block.field("optional") is not None
    condition = None
    if when is not None:
        option, *values = when.words()
        condition = (option, tuple(values))
    return PresetOption(
        name=block.name,
        kind=kind,
        doc=" ".join(block.require("doc").string().split()),
        default=None if default is None else default.words(),
        required=default is None and not optional,
        type=_type_of(block, kind),
        when=condition,
        like=None if like is None else like.string(),
    )


def _type_of(block: Block, kind: Kind) -> Any:
    """The type that a word of the option is read as."""
    if kind == "choice":
        return Literal[block.require("choices").words()]
    above, least, most, below = (_read_bound(block.field(name)) for name in BOUNDS)
    if kind == "count":
        return Annotated[int, Meta(ge=least or 1, le=most or MAX_COUNT)]
    if kind in ("name", "names"):
        return str
    if kind == "flag":
        return bool
    return Annotated[float, bound_numbers(above, least, most, below)]


def bound_numbers(above: Any, least: Any, most: Any, below: Any) -> Meta:
    """The range of a number, open or closed at either side."""
    if above is not None:
        return Meta(gt=above, le=most) if below is None else Meta(gt=above, lt=below)
    return Meta(ge=least, le=most) if below is None else Meta(ge=least, lt=below)


def _read_bound(field: Field | None) -> Any:
    """A bound of a number, whole where it is."""
    if field is None:
        return None
    return int(field.number()) if field.number().is_integer() else field.number()
