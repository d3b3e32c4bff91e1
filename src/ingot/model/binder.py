"""A block, or what Python gives, and a declared law -> the law's Model: names, numbers, options."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import torch

from ingot.catalog import Declared, Input, Name, Option, ParameterSlot, key
from ingot.catalog.declare import REQUIRED
from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if, warn_of
from ingot.hit import Block, Field, unknown_blocks, unknown_fields
from ingot.hit.tree import NUMBER, Ranged, suggest_number, word_span
from ingot.model.given import Given, GivenField, OutputOf, describe
from ingot.model.model import Law, Model
from ingot.options import Range
from ingot.types import Value
from ingot.types.ranges import find_outside

if TYPE_CHECKING:
    from ingot.model.factory import Factory

__all__ = ["Holder", "bind_law", "find_no_name", "find_unknown", "read_constant", "read_name"]

Holder = Block | Given
"""What holds options: a block of a file, or what Python gives."""

_NUMBER_LIKE = re.compile(r"[+-]?\.?\d")
_STRANGE = re.compile(r"[\s;#$'\"\0-\x1f]")
"""Letters that part words, or begin something else, in a file."""


def find_unknown(block: Holder, known: Sequence[str]) -> Iterator[Problem]:
    """A problem for each option and sub-block that is not known."""
    answers = cast(Block, block)  # a Given answers as a Block does
    yield from unknown_fields(answers, known)
    yield from unknown_blocks(answers)


def bind_law(factory: "Factory", block: Holder, declared: Declared) -> Model:
    """The model of a law with the names, numbers and options that a block gives."""
    known = declared.known if isinstance(block, Block) else declared.options_known
    problems = list(find_unknown(block, known))
    found = len(problems)
    options = {o.argument: _option(factory, block, o, problems) for o in declared.options}
    chosen = len(problems) == found  # names and labels depend on the options, the rest does not
    names: dict[str, str] = {}
    try:
        names = _names(block, declared, options) if chosen else {}
    except IngotError as error:
        problems += error.problems
        chosen = False
    model = Model(block.name, declared.name, block.span, {}, {}, None)
    for option in declared.options:
        if option.data is not None and options[option.argument] is not None:
            # "_cg" is what the peer calls crystal geometry
            model.hold_data("_cg", factory.data_tensors(options[option.argument], block.span))
    inputs: dict[str, Any] = {}
    for slot in declared.inputs:
        try:
            inputs[slot.argument] = _input(block, slot, names) if chosen or slot.many else None
            for name in _each(inputs[slot.argument]):
                _declare(model.inputs, name, slot.kind, block)
        except IngotError as error:
            problems += error.problems
    bound = {
        p.argument: _parameters(factory, block, model, declared, p, options, problems)
        for p in declared.parameters
        if chosen or p.argument not in declared.labels or block.field(key(p.argument)) is None
    }
    raise_if(problems)
    outputs = tuple(names[o.name.option or o.name.template or ""] for o in declared.outputs)
    for name, output in zip(outputs, declared.outputs, strict=True):
        raise_if(find_no_name(name, block))
        model.outputs[name] = output.kind
    model.body = Law(declared, inputs, bound, options, outputs)
    return model


def _each(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return names if isinstance(names, tuple) else (names,)


def _declare(kinds: dict[str, type[Value]], name: str, kind: type[Value], block: Holder) -> None:
    raise_if(find_no_name(name, block))
    if kinds.get(name, kind) is not kind:
        raise IngotError([Problem(
            "kinds-differ",
            f"'{name}' is read as {kinds[name].__name__} and as {kind.__name__}", block.span,
            "rename one of the two",
        )])  # fmt: skip
    kinds[name] = kind


def find_no_name(name: str, block: Holder) -> Iterator[Problem]:
    """A problem where what would be a variable begins as a number does (`150MPa`, `1,5`, `.5.`), or
    holds a letter that no list of names in a file can.
    """
    strange = _STRANGE.search(name)
    if strange is not None or not name:
        holds = f"holds {strange[0]!r}" if strange is not None else "is empty"
        message = f"{name!r} is no name of a variable: it {holds}"
        span = block.span
        yield Problem("wrong-value", message, span, "name it by one word, such as 'plastic_strain'")
    elif _NUMBER_LIKE.match(name):
        field = next((f for f in block.fields if name in f.text.split()), None)
        message = f"'{name}' is no number, and no name of a variable begins like one"
        if NUMBER.fullmatch(name):
            message = f"'{name}' is a number where the name of a variable belongs"
        span = word_span(field.value_span, name) if isinstance(field, Field) else block.span
        fix = "write the number alone, such as 150, 1.5 or 1e3, or a name that begins with a letter"
        yield Problem("number-like", message, span, suggest_number(name) or fix)


def _names(block: Holder, declared: Declared, options: dict[str, Any]) -> dict[str, str]:
    """The variable of every single input and output, keyed by its argument or option."""
    slots: list[tuple[str, Name]] = [
        (i.argument, i.name) for i in declared.inputs if not i.many and not i.name.absent()
    ]
    slots += [(o.name.option or o.name.template or "", o.name) for o in declared.outputs]
    names: dict[str, str] = {}
    plain = {"block": block.name, **options}
    waiting = []
    for argument, name in slots:
        field = block.field(name.option) if name.option else None
        if field is not None:
            names[argument] = read_name(field)
        elif name.template is not None and "{" not in name.template:
            names[argument] = name.template
        else:
            waiting.append((argument, name))
    by_key = {key(a): v for a, v in names.items()}
    for argument, name in waiting:
        assert name.template is not None
        names[argument] = name.template.format(**plain, **by_key)
    return declared.rewire(names, options) if declared.rewire else names


def read_name(field: Field | GivenField | None, default: str = "") -> str:
    """The one variable that a field names, or the default where there is no field."""
    if field is None:
        return default
    name = field.string()
    if len(name.split()) != 1:
        raise IngotError([Problem(
            "wrong-value", f"'{field.name}' should name one variable, not '{name}'", field.span,
            "write one word",
        )])  # fmt: skip
    return name.strip() if isinstance(field, Field) else name


def _input(block: Holder, slot: Input, names: dict[str, str]) -> Any:
    if slot.many:
        field = block.require(key(slot.argument))
        if not field.words():
            raise _wrong_field("is a list without an entry", slot, field, block, "give one")
        return field.words()
    if slot.name.absent():
        field = block.field(key(slot.argument))
        return read_name(field) if field is not None else None
    return names[slot.argument]


def _option(factory: "Factory", block: Holder, option: Option, problems: list[Problem]) -> Any:
    field = block.field(key(option.argument))
    try:
        if field is None and option.default is REQUIRED:
            block.require(key(option.argument))
        if option.data is not None and isinstance(block, Given):
            return _given_data(block.require(key(option.argument)), option.data)
        if option.data is not None:
            name = field.string() if field is not None else str(option.default)
            return factory.data(name, field.span if field is not None else block.span)
        return option.default if field is None else field.option(option.type)
    except IngotError as error:
        problems += error.problems
        return None


def _given_data(field: GivenField, kind: str) -> Any:
    """The object that Python gives in the place of a `[Data]` block."""
    if type(field.value).__name__ != kind:
        raise field.wrong(f"a {kind}", fix=f"give ingot.laws.{kind}(...)")
    return field.value


def _parameters(
    factory: "Factory", block: Holder, model: Model, declared: Declared, slot: ParameterSlot,
    options: dict[str, Any], problems: list[Problem],
) -> Any:  # fmt: skip
    field = block.field(key(slot.argument))
    if field is None and slot.default is None:
        try:
            block.require(key(slot.argument))
        except IngotError as error:
            problems += error.problems
        return None
    try:
        words = _entries(field, slot)
        ranges: tuple[Ranged | None, ...] = field.ranges if isinstance(field, Field) else ()
        if not slot.many:
            alike = len({own and own.within for own in ranges}) == 1
            same = next(iter(ranges), None) if alike else None
            stored = key(slot.argument)
            usual = declared.usual.get(stored)
            return _bound(factory, block, model, slot, field, tuple(words), stored, same, usual)
        if not words:
            raise _wrong_field("is a list without an entry", slot, field, block, "give one")
        names = [f"{key(slot.argument)}_{i}" for i in range(len(words))]
        if slot.argument in declared.labels:
            names = declared.labels[slot.argument](options)
        if len(names) != len(words):
            raise IngotError([Problem(
                "wrong-value",
                f"'{key(slot.argument)}' has {len(words)} entries, not {len(names)}",
                field.span if field else block.span, f"give {', '.join(names)}",
            )])  # fmt: skip
        return tuple(
            _bound(factory, block, model, slot, field, (word,), name, own, declared.usual.get(name))
            for word, name, own in zip(words, names, ranges or (None,) * len(words), strict=True)
        )
    except IngotError as error:
        problems += error.problems
        return None


def _entries(field: Field | GivenField | None, slot: ParameterSlot) -> tuple[Any, ...]:
    """The words of a parameter; what Python gives is a value of its own, or a list of them."""
    if field is None:
        return tuple((slot.default or "").split())
    if isinstance(field, Field):
        return field.words()
    return field.entries() if slot.many else (field.value,)


def _bound(
    factory: "Factory", block: Holder, model: Model, slot: ParameterSlot,
    field: Field | GivenField | None, words: tuple[Any, ...], stored: str, own: Ranged | None,
    usual: Range | None,
) -> tuple[str, str]:  # fmt: skip
    """A constant stored with the model, and its range, or the variable that stands in for it."""
    try:
        value = read_constant(factory, field, slot.kind, words)
    except LookupError:
        return "variable", _variable(factory, block, model, slot, field, words)
    value = _on_own_axes(value, len(slot.axes)) if slot.listed else value
    if 0 in value.sub_batch.shape:
        raise _wrong_field("holds no numbers", slot, field, block, "give one for each entry")
    if slot.ascending:
        warn_of(_find_descent(value, slot, field, block), strict=factory.strict)
    if own is not None:
        raise_if(find_outside(stored, own.within, value.data, own.span))
        model.ranges[stored] = own.within
    elif usual is not None:
        span = field.span if field is not None else block.span
        found = find_outside(stored, usual, value.data, span)
        warn_of((replace(each, code="unusual-value") for each in found), strict=factory.strict)
    model.values[stored] = value
    return "value", stored


def _wrong_field(
    what: str,
    slot: Input | ParameterSlot,
    field: Field | GivenField | None,
    block: Holder,
    fix: str,
) -> IngotError:
    span = field.span if field is not None else block.span
    return IngotError([Problem("wrong-value", f"'{key(slot.argument)}' {what}", span, fix)])


def _find_descent(
    value: Value, slot: ParameterSlot, field: Field | GivenField | None, block: Holder
) -> Iterator[Problem]:
    """A problem where a number is smaller than the one before; a table may jump at equal ones."""
    rows = torch.atleast_1d(value.data)
    falls = rows.diff() < 0
    if falls.any():
        before, after = rows[..., :-1][falls][0], rows[..., 1:][falls][0]
        message = f"'{key(slot.argument)}' does not ascend: {after:g} follows {before:g}"
        span = field.span if field is not None else block.span
        yield Problem("not-ascending", message, span, "sort the table by it")


def _on_own_axes(value: Value, count: int) -> Value:
    """The last axes as structural ones; of more that are marked, those of one entry are dropped."""
    data, rank = value.data, value.data.ndim - len(value.base)
    sub = max(value.sub, min(count, rank))
    while sub > count and data.shape[rank - sub] == 1:
        data, rank, sub = data.squeeze(rank - sub), rank - 1, sub - 1
    return type(value)(data, sub_batch_ndim=sub)


def read_constant(
    factory: "Factory", field: Field | GivenField | None, kind: type[Value], words: Sequence[Any]
) -> Value:
    """Numbers, a `[Tensors]` entry or what Python gives; LookupError where it is none of these."""
    if isinstance(field, GivenField):
        if isinstance(words[0], str | Model | OutputOf):
            raise LookupError(words)
        data, sub = field.constant(kind, words[0])
        return kind(_wrapped(kind, data, field).data, sub_batch_ndim=sub)
    if words and all(NUMBER.fullmatch(word) for word in words):
        numbers = [float(w) if field is None else field.float_of(w) for w in words]
        data = torch.tensor(numbers[0] if len(numbers) == 1 else numbers, dtype=torch.float64)
        return _wrapped(kind, data, field)
    if len(words) != 1 or words[0] not in factory.tensors:
        raise LookupError(words)
    found = factory.tensors.read_real(words[0])
    if isinstance(found, torch.Tensor):
        return _wrapped(kind, found.double(), field)
    if type(found) is not kind:
        raise IngotError([Problem(
            "kinds-differ",
            f"[Tensors/{words[0]}] is of kind {type(found).__name__}, not {kind.__name__}",
            field.span if field else None, f"write {kind.__name__}(...) in [Tensors/{words[0]}]",
        )])  # fmt: skip
    if kind.__name__ == "MillerIndex":
        return found
    return kind(_wrapped(kind, found.data.double(), field).data, sub_batch_ndim=found.sub)


def _wrapped(kind: type[Value], data: torch.Tensor, field: Field | GivenField | None) -> Value:
    data = data.expand(kind.base) if data.ndim == 0 else data
    name, span = (field.name, field.span) if field else ("default", None)
    if data.isnan().any():
        raise IngotError([Problem(
            "wrong-value", f"'{name}' should be numbers, but one is nan", span, "give a number",
        )])  # fmt: skip
    try:
        return kind(data)
    except ValueError:
        raise IngotError([Problem(
            "wrong-value",
            f"'{name}' has shape {tuple(data.shape)}, which does not end in {kind.base}"
            f" as a {kind.__name__} does", span, f"give {math.prod(kind.base)} numbers",
        )]) from None  # fmt: skip


def _variable(
    factory: "Factory", block: Holder, model: Model, slot: ParameterSlot,
    field: Field | GivenField | None, words: Sequence[Any],
) -> str:  # fmt: skip
    where = field.span if field is not None else block.span
    if not slot.variable or len(words) != 1:
        told = "a number" if isinstance(block, Given) else "a number or a name in [Tensors]"
        shown = " ".join(w if isinstance(w, str) else describe(w) for w in words)
        raise IngotError([Problem(
            "wrong-value",
            f"'{key(slot.argument)}' is {told}, not '{shown}'",
            where, did_you_mean(shown, factory.tree.names("Tensors")) or "write a number",
        )])  # fmt: skip
    word: Any = words[0]
    if isinstance(word, Model | OutputOf):
        provider, output = word if isinstance(word, OutputOf) else (word, "")
        return _provided(provider, output, block, model, slot, where)
    if isinstance(field, GivenField):
        field.variable(word)
    name, _, output = word.partition(".")
    if factory.tree.find("Models", name) is None:
        _declare(model.inputs, word, slot.kind, block)
        return word
    return _provided(factory.model(name, where), output, block, model, slot, where)


def _provided(
    provider: Model, output: str, block: Holder, model: Model, slot: ParameterSlot,
    where: Span | None,
) -> str:  # fmt: skip
    """The output of another model that stands in for a parameter."""
    of = f"[Models/{provider.name}]" if isinstance(block, Block) else f"[{provider.name}]"
    if not output and len(provider.outputs) != 1:
        first = next(iter(provider.outputs))
        fix = f"write {provider.name}.{first}"
        if isinstance(block, Given):
            fix = f'give model["{first}"], the output of that name'
        raise IngotError([Problem(
            "many-outputs", f"{of} has outputs {', '.join(provider.outputs)}", where, fix,
        )])  # fmt: skip
    variable = output or next(iter(provider.outputs))
    if variable not in provider.outputs:
        raise IngotError([Problem(
            "unknown-output", f"{of} has no output '{variable}'", where,
            did_you_mean(variable, provider.outputs),
        )])  # fmt: skip
    if provider.outputs[variable] is not slot.kind and isinstance(block, Given):
        given = provider.outputs[variable].__name__
        message = f"'{key(slot.argument)}' is a {slot.kind.__name__}, but '{variable}' a {given}"
        raise IngotError([Problem("kinds-differ", message, where, "give a model of its kind")])
    if model.providers.get(variable, provider) is not provider:
        raise IngotError([Problem(
            "two-providers",
            f"'{key(slot.argument)}' is given by {of}, and what gives another parameter of"
            f" [{block.name}] calls its output '{variable}' too", where,
            _suggest_rename(provider, variable),
        )])  # fmt: skip
    _declare(model.inputs, variable, slot.kind, block)
    model.providers[variable] = provider
    return variable


def _suggest_rename(provider: Model, variable: str) -> str:
    """How one of two models that give the same output is told to call it otherwise."""
    law = provider.body
    pairs = zip(law.outputs, law.declared.outputs, strict=True) if isinstance(law, Law) else ()
    option = next((output.name.option for name, output in pairs if name == variable), None)
    return f"give one of the two another '{option}'" if option else "rename one output"
