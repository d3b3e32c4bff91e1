"""`[Settings]` or flags -> Settings: declared shapes of variables, whether warnings are errors."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if
from ingot.hit import Field, Tree, unknown_blocks, unknown_fields
from ingot.model.model import Model, lag

__all__ = ["LEGACY", "Settings", "Shape", "settings", "settings_of_flags", "undeclared"]

LOG = logging.getLogger("ingot")

LEGACY = ("aoti_mode", "aoti_cache_dir", "aoti_device")
"""Keys of older files, which say what the command line says now."""

KNOWN = ("example_batch_shape", "dynamic_batch", "strict", *LEGACY)

_SHAPE = re.compile(r"\(\s*([^();]*?)\s*(?:(;)\s*([^();]*?)\s*)?\)")
_FLAGS = {"true": True, "1": True, "yes": True, "on": True,
          "false": False, "0": False, "no": False, "off": False}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """What `(2; 12)` says: a nominal batch, and structural extents (None where it is silent)."""

    batch: tuple[int, ...]
    structural: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Declared shapes: one for all variables, or one for each of some; histories go with theirs.

    strict: whether what is warned of is an error.
    """

    shared: Shape | None = None
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)
    dynamic_batch: bool = True
    strict: bool = False

    def structural(self, name: str) -> tuple[int, ...] | None:
        """The structural extents declared for a variable or its history, if any are."""
        shape = self.shapes.get(lag(name)[0], self.shared)
        return None if shape is None else shape.structural

    def extents(self, model: Model) -> dict[str, tuple[int, ...]]:
        """The structural extents declared for variables of a model and of the models in it."""
        names = (lag(name)[0] for name in variables(model))
        return {name: shape for name in names if (shape := self.structural(name))}


def settings(tree: Tree) -> Settings:
    """What the `[Settings]` of a file declare."""
    shared: Shape | None = None
    shapes: dict[str, Shape] = {}
    spans: dict[str, Span] = {}
    dynamic, strict = True, False
    problems: list[Problem] = []
    for block in tree.section("Settings"):
        problems += unknown_fields(block, KNOWN)
        for key in (f for f in block.fields if f.name in LEGACY):
            LOG.warning(
                "%s: '%s' has no effect; ingot compile has flags for it", key.span, key.name
            )
        problems += unknown_blocks(block, ("example_batch_shape",))
        whole, parts = block.field("example_batch_shape"), block.block("example_batch_shape")
        if whole is not None and parts is not None:
            message = "'example_batch_shape' is both a value and a block"
            problems.append(Problem("wrong-value", message, parts.span, "keep one of the two"))
        try:
            shared = shape_of(whole) if whole is not None else shared
            dynamic = flag_of(block.field("dynamic_batch"), default=dynamic)
            strict = flag_of(block.field("strict"), default=strict)
        except IngotError as error:
            problems += error.problems
        if parts is not None:
            problems += [*unknown_blocks(parts), *enter_shapes(parts.fields, shapes, spans)]
    raise_if(problems)
    return Settings(shared, shapes, spans, dynamic, strict)


def settings_of_flags(words: Sequence[str], option: str = "--example-batch-shape") -> Settings:
    """What an option declares: `(2; 12)` for all variables, VAR=(2; 12) for one."""
    fields: dict[str, Field] = {}
    problems: list[Problem] = []
    for number, word in enumerate(words, 1):
        name, mark, text = word.partition("=") if "=" in word else ("", "", word)
        span = Span("<command line>", number, len(name + mark) + 1, len(text), "", word)
        if name in fields:
            message = f"{option} is given twice for {name or 'all variables'}"
            problems.append(Problem("duplicate-field", message, span, "keep one of the two"))
        fields[name] = Field(name or option, text, span, span)
    whole, parts = fields.pop("", None), fields.values()
    if whole is not None and fields:
        message = f"{option} is given for all variables and for one"
        problems.append(Problem("wrong-value", message, whole.span, "name every variable, or none"))
    shapes: dict[str, Shape] = {}
    spans: dict[str, Span] = {}
    problems += enter_shapes(parts, shapes, spans)
    raise_if(problems)
    return Settings(None if whole is None else shape_of(whole), shapes, spans)


def enter_shapes(
    fields: Iterable[Field], shapes: dict[str, Shape], spans: dict[str, Span]
) -> Iterator[Problem]:
    """Enter the shape of each variable; the histories of one variable must agree."""
    for found in fields:
        name, _ = lag(found.name)
        try:
            shape = shape_of(found)
        except IngotError as error:
            yield from error.problems
            continue
        if shapes.setdefault(name, shape).structural != shape.structural:
            message = f"'{found.name}' and '{name}' have different structural extents"
            yield Problem("shapes-differ", message, found.value_span, "give both the same")
        spans.setdefault(name, found.span)


def shape_of(found: Field) -> Shape:
    """The shape that a value such as `(2; 12)` spells."""
    match = _SHAPE.fullmatch(found.string().strip())
    fix = "write (batch; structural), such as (2; 12), (2,) or (; 100)"
    if match is None:
        raise found.wrong("a shape", fix=fix)
    batch, mark, structural = match.groups()
    try:
        return Shape(extents(batch), extents(structural) if mark else None)
    except ValueError:
        raise found.wrong("a shape of whole numbers", fix=fix) from None


def extents(text: str) -> tuple[int, ...]:
    """The numbers of a comma-separated list; a comma may close it."""
    words = [word.strip() for word in text.split(",")]
    words = words[:-1] if words[-1] == "" else words
    if not all(word.isdigit() for word in words):
        raise ValueError(text)
    return tuple(int(word) for word in words)


def flag_of(found: Field | None, *, default: bool) -> bool:
    """Like a flag, in the more generous spelling that settings have."""
    if found is None:
        return default
    if found.string().strip().lower() not in _FLAGS:
        raise found.wrong("true or false", fix="write true or false")
    return _FLAGS[found.string().strip().lower()]


def undeclared(declared: Settings, model: Model) -> Iterator[Problem]:
    """A problem for each declared name that no variable of the model or its parts has."""
    known = {lag(name)[0] for name in variables(model)}
    for name in declared.shapes:
        if name not in known:
            message = f"[{model.name}] has no variable '{name}'"
            yield Problem(
                "unknown-variable", message, declared.spans[name], did_you_mean(name, known)
            )


def variables(model: Model) -> Iterator[str]:
    """The names of all variables of a model and of the models it contains."""
    yield from (*model.inputs, *model.outputs)
    for child in model.parts.values():
        yield from variables(child)
