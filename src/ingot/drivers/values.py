"""The lists of a driver's block, `<list>_<kind>_names` and `_values` -> Given, or problems."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ingot.errors import IngotError, Problem, Span, did_you_mean
from ingot.hit import Block, Field
from ingot.hit.tree import word_span
from ingot.model import Factory, Model, lag
from ingot.model.given import GivenField
from ingot.model.settings import Settings, undeclared
from ingot.types import KINDS, Scalar, Value

__all__ = [
    "DRIVEN",
    "Given",
    "Shapes",
    "drop_steps",
    "find_declared_shapes",
    "find_unknown",
    "find_wrong_kinds",
    "gather_problems",
    "list_options",
    "read_entries",
    "read_list",
    "read_model",
    "read_tensor",
    "spread",
]  # fmt: skip

DRIVEN = ("Scalar", "Vec", "SR2", "WR2", "R2", "MRP", "SSR4", "MillerIndex")
"""The kinds of values that drivers take."""

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Given:
    """A value that a block gives to a variable, and the words that say so."""

    name: str
    value: Value
    name_span: Span | None
    value_span: Span | None

    @property
    def structural(self) -> tuple[int, ...]:
        """The extents of the value's structural axes."""
        return self.value.sub_batch.shape

    @property
    def batch(self) -> tuple[int, ...]:
        """The extents of the value's dynamic axes, a step axis included."""
        return self.value.dynamic_batch.shape


@contextmanager
def gather_problems(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of what is done inside to those found before, and go on."""
    try:
        yield
    except IngotError as error:
        problems += [p for p in error.problems if p not in problems]


def read_model(block: Block, factory: Factory) -> Model:
    """The model that a driver's block names."""
    asked = block.require("model")
    return factory.model_of(asked, asked.value_span)


def list_options(prefixes: Iterable[str], kinds: Iterable[str] = DRIVEN) -> tuple[str, ...]:
    """The options that lists of these prefixes have."""
    kinds = tuple(kinds)
    return tuple(f"{p}{k}_{end}" for p in prefixes for k in kinds for end in ("names", "values"))


def read_list(
    block: Block, factory: Factory, prefix: str, problems: list[Problem],
    kinds: Iterable[str] = DRIVEN,
) -> dict[str, Given]:  # fmt: skip
    """All values of one list by their variables; what is wrong is added to the problems."""
    found: dict[str, Given] = {}
    for kind in kinds:
        names, values = (block.field(f"{prefix}{kind}_{end}") for end in ("names", "values"))
        for given in pairs(names, values, KINDS[kind], factory, problems):
            if given.name in found:
                message = f"'{given.name}' is listed twice"
                problems.append(
                    Problem("duplicate-variable", message, given.name_span, "remove one of the two")
                )
            found[given.name] = given
    return found


def pairs(
    names: Field | None, values: Field | None, kind: type[Value], factory: Factory,
    problems: list[Problem],
) -> Iterator[Given]:  # fmt: skip
    """The values of one kind."""
    one = names or values
    if one is None:
        return
    if names is None or values is None:
        end, missing = ("_values", "_names") if names is None else ("_names", "_values")
        other = one.name.removesuffix(end) + missing
        message = f"'{one.name}' is given without '{other}'"
        problems.append(Problem("missing-option", message, one.span, f"add '{other} = ...'"))
        return
    left, right = names.words(), read_entries(values)
    if len(left) != len(right):
        message = f"'{names.name}' lists {len(left)} variables, but '{values.name}' {len(right)}"
        fix = "give one value to each"
        problems.append(Problem("wrong-value", message, values.value_span, fix))
    for name, word in zip(left, right, strict=False):
        with gather_problems(problems):
            value = read_tensor(factory, values, word, kind)
            yield Given(name, value, find_word(names, name), find_word(values, word))


def read_entries(field: Field | GivenField) -> tuple[Any, ...]:
    """The words of a list of values, or the values that Python gives."""
    return field.entries() if isinstance(field, GivenField) else field.words()


def find_word(field: Field | GivenField, word: Any) -> Span | None:
    """Where a word of a field stands; what Python gives stands where the call does."""
    return field.span if isinstance(field, GivenField) else word_span(field.value_span, word)


def read_tensor(factory: Factory, field: Field | GivenField, word: Any, kind: type[Value]) -> Value:
    """A `[Tensors]` entry, or a number for a Scalar, as a float64 value of that kind."""
    if isinstance(field, GivenField):
        data, sub = field.constant(kind, word)
        return kind(data, sub_batch_ndim=sub)
    span = word_span(field.value_span, word)
    if word not in factory.tensors:
        if kind is Scalar:
            try:
                return Scalar(float(word))
            except ValueError:
                pass
        names = factory.tree.names("Tensors")
        fix = did_you_mean(word, names) or f"add a block [{word}] to [Tensors]"
        raise IngotError([Problem("missing-block", f"[Tensors] has no block '{word}'", span, fix)])
    found = factory.tensors.read_real(word)
    try:
        if isinstance(found, Tensor):
            return kind(found.detach().double())
        if type(found) is kind:
            return kind(found.data.detach().double(), sub_batch_ndim=found.sub)
        message = f"[Tensors/{word}] is a {type(found).__name__}, not a {kind.__name__}"
    except ValueError as error:
        message = f"[Tensors/{word}] is no {kind.__name__}: {error}"
    fix = f"write {kind.__name__}(...) in its expression"
    raise IngotError([Problem("kinds-differ", message, span, fix)])


def find_unknown(given: Iterable[Given], known: Collection[str], what: str) -> Iterator[Problem]:
    """A problem for each value whose variable is not known."""
    for each in given:
        if each.name not in known:
            fix = did_you_mean(each.name, known) or f"choose one of: {', '.join(known)}"
            yield Problem("unknown-variable", f"{what} '{each.name}'", each.name_span, fix)


def find_wrong_kinds(
    given: Iterable[Given], kinds: Mapping[str, type[Value]], model: Model
) -> Iterator[Problem]:
    """A problem for each value that is of another kind than its variable."""
    for each in given:
        wanted = kinds.get(each.name)
        if wanted is not None and type(each.value) is not wanted:
            message = (
                f"'{each.name}' of [{model.name}] is a {wanted.__name__},"
                f" not a {type(each.value).__name__}"
            )
            fix = f"list it under '{wanted.__name__}'"
            yield Problem("kinds-differ", message, each.name_span, fix)


def find_declared_shapes(
    model: Model, factory: Factory, given: Iterable[Given], problems: list[Problem]
) -> Shapes:
    """The structural shape of every variable that has one, as declared or as its value shows.

    A value must have the shape declared for it, or no axes at all: then it is spread.
    """
    declared = factory.settings
    problems += undeclared(declared, model)
    shapes = declared.extents(model)
    for each in given:
        problem = find_shape_problem(each, declared)
        if problem is not None:
            problems.append(problem)
        elif each.structural:
            name = lag(each.name)[0]
            if shapes.setdefault(name, each.structural) != each.structural:
                found = f"'{each.name}' has structural shape {each.structural}"
                message = f"{found}, but {shapes[name]} elsewhere"
                problems.append(Problem("shapes-differ", message, each.value_span))
    return shapes


def find_shape_problem(each: Given, declared: Settings) -> Problem | None:
    """What is wrong where a value does not fit the structural extents declared for its variable."""
    wanted = declared.structural(each.name)
    if wanted is None or each.structural == wanted or not (each.structural or each.batch):
        return None
    message = f"'{each.name}' has structural shape {each.structural}, but {wanted} is declared"
    fix = f"mark the last axes: sub_batch_ndim={len(wanted)}"
    return Problem("shapes-differ", message, each.value_span, fix)


def spread(each: Given, shape: tuple[int, ...]) -> Tensor:
    """The data of a value, contiguous, on all structural axes of its variable."""
    data: Tensor = each.value.data
    if each.structural or not shape:
        return data.contiguous()
    base = type(each.value).base
    ones = data.reshape(*each.batch, *(1 for _ in shape), *base)
    return ones.expand(*each.batch, *shape, *base).contiguous()


def drop_steps(each: Given) -> Given:
    """The value of one step, for checks of its shape."""
    if not each.batch:
        return each
    data = each.value.data
    one = data[0] if len(data) else data.new_zeros(data.shape[1:])
    return replace(each, value=type(each.value)(one, sub_batch_ndim=each.value.sub))
