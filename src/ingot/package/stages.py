"""The seven stages from an input file to sources, each a function from Compilation to the next.

load -> select -> route -> freeze -> shape -> partition -> lower
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import torch

from ingot.errors import IngotError, Problem, raise_if
from ingot.hit import Tree, unknown_sections
from ingot.model import SECTIONS, Factory, spell_parameters
from ingot.model.model import find_ranges
from ingot.model.settings import settings_of_flags, undeclared
from ingot.package import Stage
from ingot.package.compilation import Compilation, Names, Shapes
from ingot.package.header import write_c_name
from ingot.package.lower import lower
from ingot.package.names import rename, resolve_pairs, split_histories
from ingot.package.target import IN_PROCESS, Target
from ingot.package.umat import list_pairs
from ingot.program import Parameter, Program, Variable, trace, with_adjoint, with_jacobian
from ingot.program import freeze as fold_parameters
from ingot.program.boundaries import find_segments
from ingot.program.opaque import find_misplaced
from ingot.program.partition import has_tangents
from ingot.types import Value
from ingot.types.ranges import find_outside
from ingot.types.spellings import Spellings, resolve_name, with_root

__all__ = [
    "STAGES", "advance", "freeze", "load", "lower", "partition", "route", "select",
    "shape",
]  # fmt: skip


def load(
    source: Tree | Factory, name: str, target: Target, *, driver: str | None = None,
    shapes: Shapes | None = None, command: str = "", untrusted: bool = False,
) -> Compilation:  # fmt: skip
    """Build the live model called `name`, unless the Factory has built it already.

    driver: the one that the stub keeps; shapes: the structural extents that its values show;
    untrusted: as a Factory takes it
    """
    factory = source if isinstance(source, Factory) else Factory(source, untrusted=untrusted)
    raise_if(unknown_sections(factory.tree, SECTIONS))
    raise_if(
        Problem("wrong-value", f"--c-prefix {prefix}: C has no such names", None,
                f"write --c-prefix {write_c_name(prefix)}")
        for prefix in [target.c_prefix] if prefix and write_c_name(prefix) != prefix
    )  # fmt: skip
    return Compilation(
        model=factory.model(name), target=target, device=target.device[0], tree=factory.tree,
        settings=factory.settings, driver=driver, driven=shapes or {}, command=command,
    )  # fmt: skip


def select(c: Compilation) -> Compilation:
    """Find the promoted parameters by any of their names, and copy their values.

    A package shows each under the name by which it was asked for.
    """
    spellings = with_root(spell_parameters(c.model), c.model.name)
    known = _constants(c)
    asked: dict[str, str] = {}
    problems: list[Problem] = []
    for word in c.target.parameter:
        try:
            missing = f"[{c.model.name}] has no parameter '{word}'"
            asked.setdefault(resolve_name(word, spellings, missing), word)
        except IngotError as error:
            problems += error.problems
    promoted = {n: _copy(known[n]) for n in asked}
    ranges = find_ranges(c.model)
    for n, value in promoted.items():
        problems += find_outside(asked[n], ranges.get(n), value.data)
    raise_if(problems)
    return replace(c, promoted=promoted, parameters=asked, spellings=spellings)


def _constants(c: Compilation) -> dict[str, Value]:
    """All that can be promoted."""
    return {**c.model.named_values(), **c.model.buffer_values()}


def route(c: Compilation) -> Compilation:
    """Make promoted parameters inputs, give all values their names outside, resolve the pairs."""
    problems: list[Problem] = []
    inputs = rename("--rename-input", c.target.rename_input, _alone(c.model.inputs), problems)
    others = {word: c.spellings[name] for name, word in c.parameters.items()}
    new = rename("--rename-parameter", c.target.rename_parameter, others, problems)
    parameters = {name: new[word] for name, word in c.parameters.items()}
    outputs = rename("--rename-output", c.target.rename_output, _alone(c.model.outputs), problems)
    if c.driver is not None:
        problems += split_histories(inputs, outputs)
    raise_if(problems)
    others = {new: c.spellings[name] for name, new in parameters.items()}
    pairs = resolve_pairs(
        c.target.derivative, [*outputs.values()], [*inputs.values()], others, c.spellings, c.command
    )
    if c.target.umat:
        wanted = list_pairs([*inputs.values()], [*outputs.values()])
        pairs = (*pairs, *(pair for pair in wanted if pair not in pairs))
    return replace(c, inputs=inputs, parameters=parameters, outputs=outputs, pairs=pairs)


def _alone(names: Iterable[str]) -> Spellings:
    return dict.fromkeys(names, ())


def freeze(c: Compilation) -> Compilation:
    """Copy the values of all parameters that are not promoted: these are compiled."""
    rest = {n: _copy(value) for n, value in _constants(c).items() if n not in c.promoted}
    batched = {n: value for n, value in rest.items() if value.dynamic_batch.ndim}
    return replace(
        c, batched=batched, constants={n: v for n, v in rest.items() if n not in batched}
    )


def shape(c: Compilation) -> Compilation:
    """Trace the model on structural extents from the flags, the file, or a driver's values.

    The rest follows from these and from the parameters; an axis that nothing gives is refused.
    """
    option = "example_batch_shape" if c.command == IN_PROCESS else "--example-batch-shape"
    asked = settings_of_flags(c.target.example_batch_shape, option)
    for declared in (c.settings, asked):
        raise_if(undeclared(declared, c.model))
    shapes = {**c.driven, **c.settings.extents(c.model), **asked.extents(c.model)}
    values = {**c.promoted, **c.constants, **c.batched}
    traced = trace(c.model, shapes, values)
    read = {p.variable.name for p in traced.parameters}
    raise_if(
        Problem("unknown-parameter", f"[{c.model.name}] does not read '{name}'", None,
                "promote others alone")
        for name in c.promoted if name not in read
    )  # fmt: skip
    held = tuple(replace(p, value=values[p.variable.name]) for p in traced.parameters)
    epsilon = torch.finfo(c.target.precision).eps
    program = fold_parameters(replace(traced, parameters=held), epsilon, c.promoted)
    for v in (*program.inputs, *program.outputs):
        for axis in v.axes:
            program.extent(axis)  # refuses one that nothing gives
    return replace(c, program=_show_outside(program, c))


def partition(c: Compilation) -> Compilation:
    """Differentiate the program, forwards by the pairs and backwards by all that is given, and cut
    it at every sum over points and at every implicit update; what is opaque is refused.
    """
    whole = find_misplaced(c.program, "a package")
    raise_if(problem for problem in whole if problem.code == "opaque-model")
    if "inductor" in c.target.backend and has_tangents(c.program):
        message = f"[{c.model.name}] gives derivatives of an implicit update, which no graph holds"
        fix = "give --backend kernel, or ask for them by -d OUT:IN instead"
        raise IngotError([Problem("wrong-backend", message, None, fix)])
    adjoint = None
    if c.target.train:
        by = [*c.inputs.values(), *c.parameters.values()]
        adjoint = with_adjoint(c.program, [*c.outputs.values()], by)
    slopes = with_jacobian(c.program, c.pairs)
    return replace(c, slopes=slopes, adjoint=adjoint, segments=find_segments(c.program))


STAGES = (select, route, freeze, shape, partition, lower)
"""The stages after load, in order."""


def advance(c: Compilation, last: Stage = "lower") -> Compilation:
    """What was loaded, after the stages up to the last one."""
    for stage in STAGES[: get_args(Stage).index(last)]:
        c = stage(c)
    return c


def _copy(value: Value) -> Value:
    return type(value)(value.data.detach().clone(), sub_batch_ndim=value.sub)


def _show_outside(program: Program, c: Compilation) -> Program:
    """The program under the names outside, promoted parameters first and in their order."""

    def named(v: Variable, names: Names) -> Variable:
        return replace(v, name=names.get(v.name, v.name))

    def place(p: Parameter) -> int:
        order = [*c.parameters]
        return order.index(p.variable.name) if p.variable.name in order else len(order)

    return replace(
        program,
        inputs=tuple(named(v, c.inputs) for v in program.inputs),
        outputs=tuple(named(v, c.outputs) for v in program.outputs),
        parameters=tuple(
            replace(p, variable=named(p.variable, c.parameters))
            for p in sorted(program.parameters, key=place)
        ),
    )
