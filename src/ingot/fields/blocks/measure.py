"""[Postprocessors], [VectorPostprocessors], [UserObjects] -> measures taken after steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, Span, did_you_mean
from ingot.fields.blocks.bind import Binder, Bound
from ingot.fields.blocks.domain import Domain
from ingot.fields.blocks.options import place
from ingot.fields.blocks.sections import Sections
from ingot.fields.calls import Refused, call, described, told_of
from ingot.fields.declare import POSTPROCESSORS, DeclaredCompute
from ingot.fields.expressions.formulas import Formula, constants_of, formula
from ingot.fields.expressions.parse import ExpressionError
from ingot.fields.outputs.table import Event
from ingot.fields.postprocessors import histogram
from ingot.fields.step import Buffer, State, looked_up
from ingot.hit import Block
from ingot.options import Count

__all__ = ["Measure", "measured", "read_measures", "stops", "vectors"]

ALSO = ("type", "execute_on", "outputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPostprocessor:
    """A number computed from other postprocessors.

    expression: what to compute
    pp_names: the postprocessors that it uses
    pp_symbols: what the expression calls them, their names unless given
    constant_names: names for numbers
    constant_expressions: those numbers; each may use the ones before it
    """

    expression: str
    pp_names: tuple[str, ...] = ()
    pp_symbols: tuple[str, ...] = ()
    constant_names: tuple[str, ...] = ()
    constant_expressions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeGroupExecutionCount:
    """How often a group of computes has been evaluated.

    compute_group: the group
    """

    compute_group: str = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestepSize:
    """The size of the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorHistogram:
    """How many entries of a buffer lie in each of equal bins.

    buffer: the buffer
    min: where the first bin begins
    max: where the last bin ends
    bins: how many bins there are
    """

    buffer: str
    min: float
    max: float
    bins: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminator:
    """Ends the run when an expression of postprocessors is true.

    expression: the expression
    message: accepted: the run ends without words
    fail_mode: accepted, without effect: the run always ends
    """

    expression: str
    message: str = ""
    fail_mode: str = "HARD"


HOST = {"ParsedPostprocessor": ParsedPostprocessor, "TimestepSize": TimestepSize,
        "ComputeGroupExecutionCount": ComputeGroupExecutionCount}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measure:
    """A number or a table to take at some events: a bound function, or options of the engine."""

    name: str
    rule: Any
    events: tuple[Event, ...]
    formula: Formula | None = None
    span: Span | None = None
    shown: bool = True
    """Whether files show it; `outputs = none` hides what only others are made of."""

    def histories(self) -> Iterator[tuple[str, int]]:
        """Which buffers need how many old states."""
        if isinstance(self.rule, Bound):
            for name in self.rule.past.values():
                yield name, self.rule.declared.history

    def reads(self) -> Iterator[str]:
        """The buffers that are looked at."""
        if isinstance(self.rule, TensorHistogram):
            yield self.rule.buffer
        if isinstance(self.rule, Bound):
            yield from self.rule.reads


def read_measures(
    whole: Sections, binder: Binder, groups: list[str], domain: Domain
) -> tuple[Measure, ...]:
    """All measures of a file; those made of others come after them."""
    reader = binder.reader
    found: list[Measure] = []
    sections = (
        ("Postprocessors", {**POSTPROCESSORS, **HOST}),
        ("VectorPostprocessors", {"TensorHistogram": TensorHistogram}),
        ("UserObjects", {"Terminator": Terminator}),
    )
    for section, known in sections:
        for block in whole.blocks(section):
            kind: Any = reader.type_of(block, known)
            if kind is None:
                continue
            events = reader.either(block, "execute_on", tuple[Event, ...], ("TIMESTEP_END",))
            if isinstance(kind, DeclaredCompute):
                rule = binder.bound(block, kind, ALSO)
                if rule is not None:
                    reader.problems += wrong_variable(rule, block, events, domain)
            else:
                rule = reader.made(block, kind, ALSO)
            if isinstance(rule, TensorHistogram) and (rule.min > rule.max or rule.bins < 1):
                message = f"there are no bins between min = {rule.min:g} and max = {rule.max:g}"
                fix = "give min below max, and bins above 0"
                reader.problems.append(Problem("wrong-value", message, block.span, fix))
            if rule is not None:
                places = reader.either(block, "outputs", tuple[str, ...], ())
                shown = not places or not {"none", "console"}.issuperset(places)
                made = Measure(block.name, rule, events, span=block.span, shown=shown)
                found.append(bound_formula(made, block, binder) or made)
    names = [measure.name for measure in found]
    for measure in found:
        binder.reader.problems += wrong_names(measure, names, groups)
    try:
        return in_turn(found)
    except IngotError as error:
        reader.problems += error.problems
        return tuple(found)


def wrong_variable(
    bound: Bound, block: Block, events: tuple[Event, ...], domain: Domain
) -> Iterator[Problem]:
    """What is wrong with a measure of a variable of the mesh."""
    if bound.mapped is None:
        return
    name, mapped = bound.mapped.variable, bound.mapped
    if domain.mesh_mode != "DOMAIN":
        message = f"the variable '{name}' shows no field where mesh_mode = {domain.mesh_mode}"
        fix = "set mesh_mode = DOMAIN in [Domain]"
        yield Problem("wrong-value", message, place(block, "variable"), fix)
    if {*events} & {"TIMESTEP_END", "FINAL"} and "TIMESTEP_END" not in mapped.events:
        message = f"the variable '{name}' is not renewed after steps, when it is measured"
        fix = "let its execute_on in [AuxKernels] hold TIMESTEP_END"
        yield Problem("wrong-value", message, place(block, "variable"), fix)
    point, box = bound.options.get("point"), tuple(zip(domain.lower, domain.upper, strict=True))
    if point is not None and len(point) != 3:
        message = f"'point' has {len(point)} numbers, not 3"
        yield Problem("wrong-value", message, place(block, "point"), "write x y z")
    elif point is not None:
        for axis, at, (low, high) in zip("xyz", point, box[: len(domain.sizes)], strict=False):
            if not low <= at <= high:
                message = f"'point' lies outside the box: {axis} = {at:g}"
                fix = f"give {axis} from {low:g} to {high:g}"
                yield Problem("wrong-value", message, place(block, "point"), fix)


def in_turn(measures: list[Measure]) -> tuple[Measure, ...]:
    """The measures in an order in which each comes after those it is made of."""
    by_name = {measure.name: measure for measure in measures}
    order: dict[str, Measure] = {}

    def place(name: str, inside: tuple[str, ...]) -> None:
        if name in inside:
            message = f"postprocessors are made of each other: {' <- '.join((*inside, name))}"
            raise IngotError([Problem("circular-computes", message)])
        if name in by_name and name not in order:
            rule = by_name[name].rule
            for used in rule.pp_names if isinstance(rule, ParsedPostprocessor) else ():
                place(used, (*inside, name))
            order[name] = by_name[name]

    for name in by_name:
        place(name, ())
    return tuple(order.values())


def bound_formula(measure: Measure, block: Block, binder: Binder) -> Measure | None:
    """A measure whose expression is understood."""
    match measure.rule:
        case ParsedPostprocessor() as rule:
            symbols = rule.pp_symbols or rule.pp_names
            names, texts = rule.constant_names, rule.constant_expressions
            if len(symbols) != len(rule.pp_names) or len(names) != len(texts):
                message = "pp_symbols and pp_names, or constants and their values, do not pair up"
                fix = "give as many of the one as of the other"
                binder.reader.problems.append(Problem("wrong-value", message, block.span, fix))
                return None
        case Terminator() as rule:
            symbols, names, texts = tuple(names_of(rule.expression)), (), ()
        case _:
            return None
    option = "constant_expressions"
    try:
        constants = tuple(constants_of(names, texts).items())
        option = "expression"
        found = formula(rule.expression, symbols, (), constants)
    except ExpressionError as error:
        message = f"'{option}' is not understood: {error}"
        span = place(block, option)
        binder.reader.problems.append(Problem("bad-expression", message, span))
        return None
    return replace(measure, formula=found)


def names_of(expression: str) -> list[str]:
    """The words of an expression that may be names of postprocessors."""
    return list(dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\s*\()", expression)))


def wrong_names(measure: Measure, names: list[str], groups: list[str]) -> Iterator[Problem]:
    """A problem for each measure or group that is not there."""
    match measure.rule:
        case ParsedPostprocessor() | Terminator() as rule:
            used = measure.formula.names if measure.formula is not None else ()
            for name in rule.pp_names if isinstance(rule, ParsedPostprocessor) else used:
                if name not in names:
                    fix = did_you_mean(name, names)
                    message = (
                        f"'{measure.name}' uses the postprocessor '{name}', which is not there"
                    )
                    yield Problem("missing-block", message, measure.span, fix)
        case ComputeGroupExecutionCount(compute_group=name) if name not in groups:
            message = f"'{measure.name}' counts the group '{name}', which is not there"
            listed = ", ".join(f"'{each}'" for each in dict.fromkeys(groups))
            fix = "put the computes of [Solve] into a group, such as [root]"
            fix = f"set compute_group to one of these: {listed}" if groups else fix
            yield Problem("missing-block", message, measure.span, fix)


def measured(
    measures: tuple[Measure, ...], state: State, values: dict[str, float], event: Event,
    previous: Mapping[str, Tensor] | None = None,
) -> None:  # fmt: skip
    """Take all numbers that are due at an event; the others keep their last value.

    `previous` are the fields at the start of the step, where they are to stand for old states.
    """
    for measure in measures:
        match measure.rule:
            case TensorHistogram() | Terminator():
                continue
            case _ if event not in measure.events:
                values.setdefault(measure.name, 0.0)
            case Bound() as bound:
                with told_of(measure.name, measure.span, state, bound.reads):
                    values[measure.name] = taken(bound, state, previous, event)
            case ComputeGroupExecutionCount(compute_group=name):
                values[measure.name] = float(state.counts.get(name, 0))
            case TimestepSize():
                values[measure.name] = state.dt
            case ParsedPostprocessor() as rule:
                symbols = zip(rule.pp_symbols or rule.pp_names, rule.pp_names, strict=True)
                values[measure.name] = computed(
                    measure, {s: values.get(n, 0.0) for s, n in symbols}
                )


def taken(
    bound: Bound,
    state: State,
    previous: Mapping[str, Tensor] | None,
    event: Event = "TIMESTEP_END",
) -> float:
    """The number that a declared postprocessor gives."""
    arguments = looked_up(bound.declared.function, bound.arguments, state.look_up)
    if bound.mapped is not None and event == "INITIAL" and event not in bound.mapped.events:
        arguments["variable"] = state.space.full(bound.mapped.initial)  # it is not set yet
    for name, buffer in bound.past.items():
        if previous is None:
            arguments[name] = state.old.get(buffer, ())
        else:
            arguments[name] = (previous[buffer],) if buffer in previous else ()
    function = bound.declared.function
    with torch.no_grad():
        found = call(function, arguments, bound.options, bound)
    if not isinstance(found, Real) and not (isinstance(found, Tensor) and found.numel() == 1):
        message = f"{function.__name__} returns {described(found)}, not one number"
        fix = "return a tensor of one number, such as a sum, a mean or a maximum"
        raise Refused([Problem("wrong-result", message, None, fix)])
    return float(found)


def computed(measure: Measure, values: Mapping[str, float]) -> float:
    """The value of an expression of numbers."""
    assert measure.formula is not None
    like = torch.zeros((), dtype=torch.float64)
    return float(measure.formula({n: like + v for n, v in values.items()}, like))


def stops(measures: tuple[Measure, ...], values: Mapping[str, float]) -> bool:
    """Whether a terminator ends the run."""
    asked = (measure for measure in measures if isinstance(measure.rule, Terminator))
    return any(computed(measure, values) != 0 for measure in asked)


def vectors(
    measures: Sequence[Measure], state: State
) -> Iterator[tuple[Measure, dict[str, list[float]]]]:
    """The tables of all vector postprocessors: their columns."""
    for measure in measures:
        if isinstance(measure.rule, TensorHistogram):
            rule = measure.rule
            field = state.space.whole(state.look_up(Buffer(rule.buffer)))
            with told_of(measure.name, measure.span, state, (rule.buffer,)):
                middles, counts = histogram(field, rule.min, rule.max, rule.bins)
            yield measure, {"bin": middles, "count": counts}
