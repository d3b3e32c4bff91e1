r"""Complementarity in like units: residuals of an update -> the same with multipliers scaled.

A residual that is the smaller of a stress and a flow rate, $\min(a, \lambda)$ or Fischer and
Burmeister's function of them, has the same roots with $\kappa \lambda$ for $\lambda$ if only
$\kappa > 0$. Where $\lambda$ is below the rounding of $a$, rounding chooses the branch.
"""

from collections.abc import Sequence

from ingot.program.builder import Builder, Node, sort_lines
from ingot.program.differentiate import Unstructured, differentiate_along, jacobian
from ingot.program.operations import operation
from ingot.program.program import find_dependent
from ingot.program.rewrite import substitute

__all__ = ["balance_complements"]

SINGLE = 1e-10
"""A machine epsilon above this is that of single precision."""


def balance_complements(
    builder: Builder, rows: Sequence[Node], columns: Sequence[Node], guesses: Sequence[Node]
) -> list[Node]:
    """The residuals with every multiplier that is an unknown in units of what it complements."""
    if any(operation(n.op).is_block for n in sort_lines(rows)):
        return list(rows)
    return [_balance(builder, i, rows, columns, guesses) for i in range(len(rows))]


def _balance(
    builder: Builder, i: int, rows: Sequence[Node], columns: Sequence[Node],
    guesses: Sequence[Node],
) -> Node:  # fmt: skip
    found = _find_complement(rows[i], columns)
    if found is None:
        return rows[i]
    other, j = found
    if rows[i].axes or len(find_dependent([other], [columns[j]])) > 1:
        return rows[i]
    try:
        along = _respond(builder, i, j, rows, columns)
        (slope,) = differentiate_along(builder, [other], columns, along)
    except Unstructured:
        return rows[i]
    if slope.is_constant(0.0):
        return rows[i]
    start = {c.id: g for c, g in zip(columns, guesses, strict=True)}
    (slope,) = substitute(builder, [slope], start)
    emit = builder.emit
    size = emit("abs", slope)
    usable = emit("and", emit("gt", size, 1e-30), emit("lt", size, 1e30))
    exponent = emit("floor", emit("log2", emit("where", usable, size, 1.0)))
    # a power of two scales without rounding; like all that is constant by pieces, it has no slope
    is_single = emit("gt", builder.along("eps"), SINGLE)
    scale = emit("where", is_single, emit("pow", 2.0, exponent), 1.0)
    (row,) = substitute(builder, [rows[i]], {columns[j].id: emit("mul", scale, columns[j])})
    return row


def _respond(
    builder: Builder, i: int, j: int, rows: Sequence[Node], columns: Sequence[Node]
) -> list[Node]:
    """How every unknown answers to the j-th, each by its own equation, but for the i-th."""
    emit = builder.slopes.emit
    units = [builder.one if k == j else builder.zero for k in range(len(columns))]
    sides = differentiate_along(builder, rows, columns, units)
    slopes = jacobian(builder, rows, columns)
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
