"""Programs that also give derivatives: along a direction, or block by block."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from ingot.program.builder import Builder, sort_lines
from ingot.program.differentiate import differentiate_along, jacobian, pull, seed_axis
from ingot.program.operations import operation, refuse_coupled
from ingot.program.program import Program, Variable, find_dependent
from ingot.types import Value

__all__ = ["along_direction", "block", "is_batch_independent", "with_adjoint", "with_jacobian"]


def along_direction(program: Program) -> Program:
    """Adds an input `d.X` for every input X and an output `d.Y`, Y's derivative along them."""
    b = program.builder()
    extra = [_add_input(b, v, "d") for v in program.inputs]
    columns = [n for v in program.inputs for n in v.nodes]
    along = [n for v in extra for n in v.nodes]
    slopes = iter(differentiate_along(b, program.roots, columns, along))
    outputs = [
        replace(v, name=f"d.{v.name}", nodes=tuple(next(slopes) for _ in v.nodes), slope_of=v.name)
        for v in program.outputs
    ]
    return _extend(program, b, extra, outputs)


def _extend(
    program: Program, b: Builder, inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> Program:
    """The program with more inputs, and with derivatives as more outputs."""
    return replace(
        program, extents=b.extents, inputs=(*program.inputs, *inputs),
        outputs=(*program.outputs, *outputs), value_count=len(program.value_outputs),
    )  # fmt: skip


def _add_input(b: Builder, like: Variable, prefix: str) -> Variable:
    # no variable of a file has a space in its name, so its lines are those of no other
    own = f"{prefix} {like.name}"
    nodes = b.components("input", (own,), [like.axes for _ in like.nodes])
    return replace(like, name=f"{prefix}.{like.name}", nodes=nodes)


def with_adjoint(program: Program, outputs: Sequence[str], inputs: Sequence[str]) -> Program:
    """Adds an input `a.Y` for each output Y named, and an output `a.X` for each input or parameter
    X named: the adjoint of X, given those of the outputs.
    """
    b = program.builder()
    gives = {v.name: v for v in program.outputs}
    given = {v.name: v for v in program.given}
    extra = [_add_input(b, gives[y], "a") for y in outputs]
    roots = [n for y in outputs for n in gives[y].nodes]
    by = [n for x in inputs for n in given[x].nodes]
    bars = iter(pull(b, roots, [n for v in extra for n in v.nodes], by))
    added = [
        replace(given[x], name=f"a.{x}", nodes=tuple(next(bars) for _ in given[x].nodes))
        for x in inputs
    ]
    return _extend(program, b, extra, added)


def with_jacobian(program: Program, pairs: Sequence[tuple[str, str]]) -> Program:
    """Adds an output `Y:X` for every pair: (*axes of Y, *axes of X, *base of Y, *base of X).

    X is an input or a parameter that the program still has.
    """
    inputs = {v.name: v for v in program.given}
    outputs = {v.name: v for v in program.outputs}
    by = [(x, n) for x in dict.fromkeys(x for _, x in pairs) for n in inputs[x].nodes]
    rows = [(y, n) for y in dict.fromkeys(y for y, _ in pairs) for n in outputs[y].nodes]
    b = program.builder()
    inside = find_dependent([n for _, n in rows], [n for _, n in by])
    why = "which has no derivative by the inputs of one"
    refuse_coupled((n for n in program.lines if n.id in inside), why)
    tangents = jacobian(b, [n for _, n in rows], [n for _, n in by], dense=True)
    added: list[Variable] = []
    for y, x in pairs:
        lines = [t for (name, _), t in zip(rows, tangents, strict=True) if name == y]
        columns = [j for j, (name, _) in enumerate(by) if name == x]
        axes = (*outputs[y].axes, *(seed_axis(a) for a in inputs[x].axes))
        nodes = tuple(line.get((j, ()), b.zero) for line in lines for j in columns)
        kind = block(outputs[y].kind.base + inputs[x].kind.base)
        added.append(Variable(f"{y}:{x}", kind, axes, nodes, slope_of=y))
    return _extend(program, b, (), added)


@cache
def block(base: tuple[int, ...]) -> type[Value]:
    """The kind of a derivative block."""
    return type("Block", (Value,), {"base": base, "__slots__": ()})


def is_batch_independent(variable: Variable) -> bool:
    """Whether a value is the same for all points, whatever they are given."""
    rules = (operation(n.op) for n in sort_lines(variable.nodes))
    return not any(rule.is_placeholder or rule.is_block for rule in rules)
