r"""Complementarity in like units: residuals of an update -> the same with multipliers scaled.

A residual that is the smaller of a stress and a flow rate, $\min(a, \lambda)$ or Fischer and
Burmeister's function of them, has the same roots with $\kappa \lambda$ for $\lambda$ if only
$\kappa > 0$. Where $\lambda$ is below the rounding of $a$, rounding chooses the branch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ingot.program.arrays import ArrayLayout, NumpyArrays
from ingot.program.builder import Builder, Node, sort_lines
from ingot.program.differentiate import Unstructured, differentiate_along, jacobian
from ingot.program.operations import operation
from ingot.program.probe import Probes
from ingot.program.program import find_dependent
from ingot.program.rewrite import substitute

__all__ = ["Surroundings", "balance_complements"]

SINGLE = 1e-10
"""A machine epsilon above this is that of single precision."""
MIN_DOUBLE_SCALE = 2.0**32
r"""The slope $|\mathrm{d}a / \mathrm{d}\lambda|$ up to which doubles are not scaled.

A stress $a$ near yield is known to some $10^{-18}$ of the stiffness, which is the slope over the
length of the step: below this slope a flow rate is lost in that only where less than 1e-8 of
plastic strain belongs to it. Stresses in MPa and steps of some hours are as they were, to the last
bit, and points that unload take no update more.
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the lines of a system depend on: the length of the step, if there is a clock, the names
    of clocks, the lines of inputs and unknowns by name, and the numbers of parameters along their
    axes.
    """

    duration: Node | None
    clocks: Sequence[str]
    variables: Mapping[str, Sequence[Node]]
    parameters: Mapping[Node, np.ndarray]


def balance_complements(
    builder: Builder, rows: Sequence[Node], columns: Sequence[Node], around: Surroundings
) -> list[Node]:
    """The residuals with every multiplier that is an unknown in units of what it complements."""
    if all(_find_complement(row, columns) is None for row in rows):
        return list(rows)
    scratch = builder.fork()
    named = _name_variables(scratch, around)
    system = substitute(scratch, rows, named)
    if any(operation(n.op).is_block for n in sort_lines(system)):
        return list(rows)
    unknowns = [named[c.id] for c in columns]
    sizes = (_measure(scratch, i, system, unknowns, around, named) for i in range(len(rows)))
    return [
        row if found is None else _scale(builder, row, columns[found[0]], found[1], around)
        for row, found in zip(rows, sizes, strict=True)
    ]


def _scale(
    builder: Builder, row: Node, multiplier: Node, size: float, around: Surroundings
) -> Node:
    """A residual with its multiplier scaled by a size for each second of the step."""
    emit = builder.emit
    scale = builder.const(size)
    if around.duration is not None:
        scale = emit("mul", scale, around.duration)
    is_single = emit("gt", builder.along("eps"), SINGLE)
    least = emit("where", is_single, 1e-30, MIN_DOUBLE_SCALE)
    usable = emit("and", emit("gt", scale, least), emit("lt", scale, 1e30))
    scale = emit("where", usable, scale, 1.0)
    (row,) = substitute(builder, [row], {multiplier.id: emit("mul", scale, multiplier)})
    return row


def _measure(
    builder: Builder, i: int, rows: Sequence[Node], columns: Sequence[Node], around: Surroundings,
    named: Mapping[int, Node],
) -> tuple[int, float] | None:  # fmt: skip
    """The multiplier of a residual, and how much what it complements answers to it in a second of
    the step: a power of two, which need not be exact.

    It is the median over probe states, so that nothing is left to compute at run time but the
    length of the step: the slope of a state has as many lines as the residuals.
    """
    found = _find_complement(rows[i], columns)
    if found is None:
        return None
    other, j = found
    if rows[i].axes or len(find_dependent([other], [columns[j]])) > 1:
        return None
    try:
        along = _respond(builder, i, j, rows, columns)
        lines = differentiate_along(builder, [other], columns, along)
    except Unstructured:
        return None
    if around.duration is not None:
        lines += substitute(builder, [around.duration], named)
    layout, read = ArrayLayout(builder, sort_lines(lines)), set(sort_lines(lines))
    table = NumpyArrays(layout, None).table
    numbers = {n.id: table(x, n.axes) for n, x in around.parameters.items() if n in read}
    states = Probes(layout, around.clocks, numbers)
    with np.errstate(all="ignore"):
        sizes = np.abs(states.numbers(lines[0]))
        for duration in lines[1:]:
            sizes = sizes / np.abs(states.numbers(duration))
        sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return (j, float(2.0 ** np.floor(np.log2(np.median(sizes))))) if sizes.size else None


def _name_variables(builder: Builder, around: Surroundings) -> dict[int, Node]:
    """Inputs in the place of variables, drawn by their names: a system that stands in two places
    must be scaled alike in both to be the same.
    """
    return {
        line.id: builder.node("input", (), (name, i), line.axes)
        for name, lines in around.variables.items() for i, line in enumerate(lines)
        if not line.is_number and line.op != "parameter"
    }  # fmt: skip


def _respond(
    builder: Builder, i: int, j: int, rows: Sequence[Node], columns: Sequence[Node]
) -> list[Node]:
    """How every unknown answers to the j-th at zero, each by its own equation, but for the i-th."""
    emit = builder.slopes.emit
    units = [builder.one if k == j else builder.zero for k in range(len(columns))]
    sides = differentiate_along(builder, rows, columns, units)
    at_zero = substitute(builder, [*rows, *sides], {columns[j].id: builder.zero})
    slopes, sides = jacobian(builder, at_zero[: len(rows)], columns), at_zero[len(rows) :]
    along: list[Node] = []
    for k, (column, side) in enumerate(zip(columns, sides, strict=True)):
        own = slopes[k].get((k, (0,) * len(column.axes)))
        if k == j:
            along.append(builder.one)
        elif k == i or own is None or side.is_constant(0.0):
            along.append(builder.zero)
        else:
            along.append(emit("neg", emit("div", side, own)))
    return along


def _find_complement(row: Node, columns: Sequence[Node]) -> tuple[Node, int] | None:
    """What a residual holds against an unknown, and which unknown, if it is complementarity."""
    places = {c.id: j for j, c in enumerate(columns)}
    for other, multiplier in _find_pairs(row):
        bare = multiplier.args[0] if multiplier.op == "neg" else multiplier
        if bare.id in places:
            return other, places[bare.id]
    return None


def _find_pairs(row: Node) -> list[tuple[Node, Node]]:
    """The two values of which a residual is the smaller, or Fischer and Burmeister's function."""
    match row.op, row.args:
        case "where", (condition, second, third) if condition.op == "ge":
            first = condition.args[0]
            # the first, or the second where that is NaN
            if third.op == "where" and third.args[0].op == "eq" and third.args[2] is second:
                third = third.args[1]
            if second is condition.args[1] and third is first:
                return [(first, second), (second, first)]
        case "sub", (total, root) if root.op == "sqrt" and total.op in ("add", "sub"):
            terms = _find_terms(root.args[0])
            squared = {_find_size(t.args[0]) for t in terms if _is_square(t)}
            others = [t for t in terms if not _is_square(t) and not t.is_number and t.op != "eps"]
            first, second = total.args
            if {_find_size(first), _find_size(second)} == squared and not others:
                return [(first, second), (second, first)]
    return []


def _find_terms(node: Node) -> list[Node]:
    return [t for a in node.args for t in _find_terms(a)] if node.op == "add" else [node]


def _is_square(node: Node) -> bool:
    return node.op == "mul" and node.args[0] is node.args[1]


def _find_size(node: Node) -> tuple[float, frozenset[int]]:
    """What two lines have in common that differ in sign alone: a factor, and what it multiplies."""
    if node.op == "neg":
        return _find_size(node.args[0])
    if node.op == "mul" and node.args[0].op == "const":
        factor, core = _find_size(node.args[1])
        return abs(node.args[0].attr) * factor, core
    return 1.0, frozenset(a.id for a in node.args) if node.op == "sub" else frozenset([node.id])
