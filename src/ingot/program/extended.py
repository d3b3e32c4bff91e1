"""The extended system of a solve: one row for every intermediate; and which of them are arrows."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ingot.program.builder import Builder, Node, sort_lines
from ingot.program.implicit import Solve
from ingot.program.operations import operation
from ingot.program.program import find_dependent

__all__ = ["Matrix", "Pivot", "build_extended", "find_inside", "is_arrow"]

Matrix = list[dict[int, Node]]
Pivot = tuple[int, int]


def find_inside(solve: Solve) -> list[Node]:
    """The intermediates between unknowns and residuals, in order."""
    inside = find_dependent(solve.rows, solve.columns)
    own = {c.id for c in solve.columns}
    return [n for n in sort_lines(solve.rows) if n.id in inside and n.id not in own]


def build_extended(b: Builder, solve: Solve, lines: Sequence[Node]) -> tuple[Matrix, list[Pivot]]:
    """One row for every intermediate between unknowns and residuals, the residuals' rows last.

    Columns count the unknowns first, then the intermediates. Also the unit pivots of the latter.
    """
    column = {n.id: j for j, n in enumerate((*solve.columns, *lines))}
    rows: Matrix = []
    first: list[Pivot] = []
    for node in lines:
        row = {j: b.slopes.emit("neg", slope) for j, slope in _find_slopes(b, node, column).items()}
        row[column[node.id]] = b.one
        first.append((len(rows), column[node.id]))
        rows.append(row)
    for node in solve.rows:
        rows.append({column[node.id]: b.one} if node.id in column else {})
    return rows, first


def _find_slopes(b: Builder, node: Node, column: Mapping[int, int]) -> dict[int, Node]:
    """The slopes of a line by those of its operands that have columns.

    Of a sum over an axis they are those by every entry, on that axis.
    """
    rule = operation(node.op)
    if any(a not in node.axes for arg in node.args for a in arg.axes):
        found: dict[int, Node] = {}
        for arg, slope in rule.pull(b.slopes, node, b.one):
            if arg.id in column:
                j = column[arg.id]
                found[j] = b.slopes.emit("add", found[j], slope) if j in found else slope
        return found
    ones = {a.id: {(column[a.id], ()): b.one} for a in node.args if a.id in column}
    return {j: slope for (j, _), slope in rule.push(b.slopes, node, ones, ()).items()}


def is_arrow(solve: Solve) -> bool:
    """Whether entries along the axes of a solve's unknowns meet in sums alone, axis within axis.

    Its matrix is then an arrow: a block for every entry, and a border that they share; the blocks
    may be arrows again.
    """
    if any(set(r.axes) - set(c.axes) for r, c in zip(solve.rows, solve.columns, strict=True)):
        return False
    inside = find_inside(solve)
    nest = sorted({frozenset(n.axes) for n in (*solve.columns, *inside)}, key=len)
    if any(not a <= b for a, b in pairwise(nest)):
        return False
    return not any(operation(n.op).is_block or _reads_apart(n) for n in inside)


def _reads_apart(node: Node) -> bool:
    """Whether a line reads across an axis that it has, or along one that its operand lacks."""
    own = {a.key for a in node.axes}
    gone = {a for arg in node.args for a in arg.axes if a not in node.axes}
    return any(a.key in own for a in gone) or bool(
        gone and any(set(node.axes) - set(arg.axes) for arg in node.args if gone & set(arg.axes))
    )
