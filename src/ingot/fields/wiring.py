"""Which buffers of a simulation hold what, and who reads and writes them.

In: a Simulation. Out: problems: a solver on the wrong buffer, buffers that nobody writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from ingot.errors import Problem, Span, did_you_mean
from ingot.fields.blocks.bind import Bound
from ingot.fields.blocks.options import place
from ingot.fields.computes.parsed import ParsedCompute, formula_from
from ingot.fields.computes.spectral import ForwardFFT
from ingot.fields.postprocessors import (
    TensorAveragePostprocessor,
    TensorExtremeValuePostprocessor,
)
from ingot.fields.spaces import Grid, Spectrum
from ingot.fields.step import Buffer, Step
from ingot.hit import Block

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = ["SPECTRAL", "kinds_of", "solver_reads", "unwritten", "wrong_buffers", "wrong_measures"]

Kind = Literal["a field", "a spectrum"]

SPECTRAL = (
    "reciprocal_buffer", "linear_reciprocal", "nonlinear_reciprocal",
    "time_derivative_reciprocal", "linear_offdiag",
)  # fmt: skip
"""The options of solvers that name spectra."""

REAL = ("buffer", "time_derivative")
"""The options of solvers that name fields."""

EVERY_TURN = ("reciprocal_buffer",)
"""The options of solvers that name what each evaluation must give anew: the present spectra."""


def solver_reads(solver: Any, options: Sequence[str]) -> Iterator[str]:
    """The buffers that some options of a solver name."""
    for option in options:
        yield from (name for name in getattr(solver, option, ()) if name != "0")


def kinds_of(made: Simulation) -> dict[str, Kind]:
    """What buffers are seen to hold, from who writes them; nothing of those that may be either."""
    kinds: dict[str, set[Kind | None]] = {}
    for step in (*made.initialize, *made.root.steps, *made.postprocess):
        found = kind_given(step, kinds)
        for name in step.gives:
            kinds.setdefault(name, set()).add(found)
    sure: dict[str, Kind] = {}
    for name, (kind, *more) in kinds.items():
        if kind is not None and not more:
            sure[name] = kind
    return sure


def kind_said(function: Any, name: str) -> Kind | None:
    """What an argument of a declared function is, or what it returns."""
    hint = get_type_hints(function, include_extras=True).get(name)
    return "a field" if hint == Grid else "a spectrum" if hint == Spectrum else None


def kind_given(step: Step, kinds: dict[str, set[Kind | None]]) -> Kind | None:
    """What a step gives; an expression gives what its variables are, if they are all of one."""
    if step.function is not ParsedCompute:
        return kind_said(step.function, "return")
    expand = step.options["expand"]
    if expand != "NONE":
        return "a field" if expand == "REAL" else "a spectrum"
    used = set(formula_from({**step.options, "inputs": step.options["names"]}).names)
    if used & {"kx", "ky", "kz", "k2"}:
        return "a spectrum"
    # a field without axes, and one that transforms give, may be either
    if used & {"x", "y", "z"} and not used & set(step.reads):
        return "a field"
    found: set[Kind | None] = {
        kind for name in used & set(step.reads) for kind in kinds.get(name, {None})
    }
    return next(iter(found)) if len(found) == 1 else None


def wrong_buffers(made: Simulation, block: Block | None) -> Iterator[Problem]:
    """What is wrong with the medium of a problem, and with the buffers that a solver names."""
    solver, media = made.solver, getattr(made.problem, "binary_media", "")
    if media and media not in written_by(made):
        message = f"binary_media names '{media}', which nothing writes: no cell would be solid"
        fix = did_you_mean(media, written_by(made)) or f"declare it in [TensorBuffers/{media}]"
        yield Problem("unknown-buffer", message, made.span("Problem", "binary_media"), fix)
    if solver is None or block is None:
        return
    kinds, writers = kinds_of(made), written_by(made)
    anew = {name for step in made.root.steps for name in step.gives}
    for option in (*REAL, *SPECTRAL):
        needed: Kind = "a field" if option in REAL else "a spectrum"
        for name in solver_reads(solver, (option,)):
            span = place(block, option)
            if name not in writers and option != "buffer":
                message = f"{option} names '{name}', which nothing writes"
                fix = did_you_mean(name, writers) or "let a compute of [Solve] write it"
                yield Problem("unknown-buffer", message, span, fix)
            elif kinds.get(name, needed) != needed:
                message = f"{option} names '{name}', which is {kinds[name]}, not {needed}"
                fix = f"name {needed}: the transform of '{name}'"
                yield Problem("wrong-value", message, span, fix)
            elif option in EVERY_TURN and name not in anew:
                message = f"{option} names '{name}', which [Solve] does not compute anew"
                fix = "compute it in [Solve], in a group that the solver evaluates"
                yield Problem("wrong-value", message, span, fix)


TAKE_EITHER = (TensorAveragePostprocessor, TensorExtremeValuePostprocessor)
"""Postprocessors of a buffer's entries, whatever they are."""


def wrong_measures(made: Simulation) -> Iterator[Problem]:
    """Postprocessors of fields that name spectra, and the other way round: their numbers are none.

    The reference takes them, so that it is told where a run begins.
    """
    kinds = kinds_of(made)
    for measure in made.measures:
        rule = measure.rule
        if not isinstance(rule, Bound) or rule.declared.function in TAKE_EITHER:
            continue
        for option, source in rule.arguments.items():
            needed = kind_said(rule.declared.function, option)
            name = source.name if isinstance(source, Buffer) else ""
            if needed is not None and kinds.get(name, needed) != needed:
                message = f"'{measure.name}' reads '{name}', which is {kinds[name]}, not {needed}"
                fix = f"name {needed}: the transform of '{name}'"
                yield Problem("wrong-value", message, measure.span, fix)


def written_by(made: Simulation) -> set[str]:
    """The buffers that a step, a declaration or the solver fills."""
    steps = (*made.initialize, *made.root.steps, *made.postprocess)
    written = {name for step in steps for name in step.gives} | set(made.buffers)
    return written | set(getattr(made.solver, "buffer", ()))


@dataclass(frozen=True, slots=True)
class Reading:
    """That something reads a buffer, and where the file says so."""

    reader: str
    buffer: str
    span: Span | None = None


def readings(made: Simulation) -> Iterator[Reading]:
    """All that is read, by computes, measures and outputs."""
    for step in (*made.initialize, *made.root.steps, *made.postprocess):
        yield from (Reading(f"'{step.name}'", name, step.span) for name in step.reads)
    for measure in made.measures:
        yield from (Reading(f"'{measure.name}'", n, measure.span) for n in measure.reads())
    span = made.span("TensorOutputs", "buffer")
    for output in made.fields_out:
        yield from (Reading("[TensorOutputs]", name, span) for name in output.options.buffer)
    yield from (Reading("[AuxKernels]", each.buffer) for each in made.mapped if each.buffer)


def unwritten(made: Simulation) -> Iterator[Problem]:
    """Buffers that are read and hold zeros, for nothing writes, declares or starts them."""
    written = written_by(made)
    for each in dict.fromkeys(readings(made)):
        if each.buffer not in written and "#" not in each.buffer:
            message = f"{each.reader} reads '{each.buffer}', which nothing writes: it holds zeros"
            fix = did_you_mean(each.buffer, written) or "declare it in [TensorBuffers] if so meant"
            yield Problem("unwritten-buffer", message, each.span, fix)
    started = {name for step in made.initialize for name in step.gives} | set(made.buffers)
    read = {each.buffer for each in readings(made)}
    section = made.tree.section("TensorSolver")
    for name in getattr(made.solver, "buffer", ()):
        span = place(section[0], "buffer")
        if name not in read:
            message = f"[TensorSolver] moves '{name}', which nothing reads"
            yield Problem("unwritten-buffer", message, span, did_you_mean(name, read))
        elif name not in started:
            message = f"[TensorSolver] moves '{name}', which nothing starts: it holds zeros"
            fix = "fill it in [Initialize], or declare it in [TensorBuffers] if so meant"
            yield Problem("unwritten-buffer", message, span, fix)
    yield from swapped(made)


def swapped(made: Simulation) -> Iterator[Problem]:
    """Spectra of a solver that are transforms of other fields than those it moves by them."""
    inputs = {
        step.gives[0]: step.reads[0] for step in made.root.steps if step.function is ForwardFFT
    }
    section = made.tree.section("TensorSolver")
    fields, spectra = (getattr(made.solver, each, ()) for each in ("buffer", "reciprocal_buffer"))
    for field, spectrum in zip(fields, spectra, strict=False):
        other = inputs.get(spectrum, field)
        if other != field and other in fields:
            message = f"'{spectrum}' is the transform of '{other}', and moves '{field}'"
            span = place(section[0], "reciprocal_buffer")
            yield Problem("unwritten-buffer", message, span, "give both lists in one order")
