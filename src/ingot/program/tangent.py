"""Programs that also give derivatives: along a direction, or block by block."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from ingot.program.differentiate import directional, jacobian, seed_axis
from ingot.program.graph import ordered
from ingot.program.program import Program, Variable
from ingot.types import Value

__all__ = ["along_direction", "batch_independent", "block", "with_jacobian"]


def along_direction(program: Program) -> Program:
    """Adds an input `d.X` for every input X and an output `d.Y`, Y's derivative along them."""
    graph = program.graph
    extra = []
    for v in program.inputs:
        nodes = tuple(
            graph.node("input", (), (f"d.{v.name}", i), v.axes) for i in range(len(v.nodes))
        )
        extra.append(replace(v, name=f"d.{v.name}", nodes=nodes))
    columns = [n for v in program.inputs for n in v.nodes]
    slopes = iter(directional(program.roots, columns, [n for v in extra for n in v.nodes]))
    outputs = [
        replace(v, name=f"d.{v.name}", nodes=tuple(next(slopes) for _ in v.nodes))
        for v in program.outputs
    ]
    return replace(program, inputs=(*program.inputs, *extra), outputs=(*program.outputs, *outputs))


def with_jacobian(program: Program, pairs: Sequence[tuple[str, str]]) -> Program:
    """Adds an output `Y:X` for every pair: (*axes of Y, *axes of X, *base of Y, *base of X).

    X is an input or a parameter that the program still has.
    """
    inputs = {v.name: v for v in program.inputs}
    inputs.update({p.variable.name: p.variable for p in program.parameters})
    outputs = {v.name: v for v in program.outputs}
    by = [(x, n) for x in dict.fromkeys(x for _, x in pairs) for n in inputs[x].nodes]
    rows = [(y, n) for y in dict.fromkeys(y for y, _ in pairs) for n in outputs[y].nodes]
    tangents = jacobian([n for _, n in rows], [n for _, n in by], dense=True)
    added: list[Variable] = []
    for y, x in pairs:
        lines = [t for (name, _), t in zip(rows, tangents, strict=True) if name == y]
        columns = [j for j, (name, _) in enumerate(by) if name == x]
        axes = (*outputs[y].axes, *(seed_axis(a) for a in inputs[x].axes))
        nodes = tuple(line.get((j, ()), program.graph.zero) for line in lines for j in columns)
        kind = block(outputs[y].kind.base + inputs[x].kind.base)
        added.append(Variable(f"{y}:{x}", kind, axes, nodes))
    return replace(program, outputs=(*program.outputs, *added))


@cache
def block(base: tuple[int, ...]) -> type[Value]:
    """The kind of a derivative block."""
    return type("Block", (Value,), {"base": base, "__slots__": ()})


def batch_independent(variable: Variable) -> bool:
    """Whether a value is the same for all points, whatever they are given."""
    free = ("input", "parameter", "item")
    return not any(n.op in free for n in ordered(variable.nodes))
