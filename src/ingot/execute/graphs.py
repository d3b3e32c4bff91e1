"""A segment -> the torch functions that its graphs are compiled from."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ingot.execute.derivative import Derivative, derivative
from ingot.execute.torch_source import Function, Printer
from ingot.program.graph import Axis, Graph, Node, ordered
from ingot.program.partition import Segment
from ingot.program.program import Program, Solve, Variable, dependent
from ingot.program.rewrite import renewed

__all__ = [
    "STEP_LENGTH", "UNKNOWNS", "Pair", "Printed", "Slopes", "forward", "guesses", "predictor",
    "residual", "sensitivity", "step", "tangents", "width",
]  # fmt: skip

STEP_LENGTH = "step length"
UNKNOWNS = "all unknowns"
"""Arguments that are no values of the model, and so have a blank in their names."""

_WRITTEN = {STEP_LENGTH: "alpha", UNKNOWNS: "u"}

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Printed:
    """A torch function as text: `graph(tables, index, *arguments)`.

    arguments: names and numbers of rows of (rows, batch) arrays, 0 for a (batch,) array;
    operations: how many lines it has.
    """

    arguments: tuple[tuple[str, int], ...]
    source: str
    tables: tuple[float, ...]
    index: tuple[int, ...]
    operations: int

    def __str__(self) -> str:
        names = ", ".join(f"{n} ({rows})" for n, rows in self.arguments)
        return f"# {names}; {self.operations} operations\n{self.source}"


class _Writing:
    """A function of a segment's values, under way."""

    def __init__(
        self, program: Program, first: Sequence[tuple[str, int]], roots: Iterable[Node],
        axes: Iterable[Axis], dtype: str,
    ) -> None:  # fmt: skip
        graph = program.graph
        self.reads = (*program.inputs, *(p.variable for p in program.parameters))
        self.arguments = [*first, *((v.name, width(graph, v)) for v in self.reads)]
        names = [_WRITTEN[name] for name, _ in first]
        inputs = [f"x{i}" for i in range(len(self.reads))]
        self.lines = ordered(roots)
        used = {a for n in self.lines for a in n.axes} | {a for v in self.reads for a in v.axes}
        self.function = Function(graph, [*names, *inputs], used | set(axes))
        self.printer = Printer(self.function, dtype)
        self.needed = {n.id for n in self.lines}
        for v, name in zip(self.reads, inputs, strict=True):
            self.printer.bind(v, name, self.needed)

    def bind(self, variables: Sequence[Variable], argument: str, printer: Printer) -> None:
        """Take variables from an array that holds all of them."""
        at = 0
        for v in variables:
            printer.bind(v, argument, self.needed, at)
            at += width(self.function.graph, v)

    def done(self, gives: Sequence[str]) -> Printed:
        f = self.function
        count = len(f.rows)
        return Printed(tuple(self.arguments), f.text(gives), tuple(f.tables), tuple(f.index), count)


def width(graph: Graph, variable: Variable) -> int:
    """The number of components of a variable, every entry of its axes counted."""
    return math.prod([*(graph.extent(a) for a in variable.axes), *variable.kind.base])


def _copied(program: Program) -> Program:
    """The same in a graph of its own, where seed axes and tangents disturb nobody."""
    return renewed(program, {}, Graph(program.graph.extents))


def forward(segment: Segment, dtype: str) -> Printed:
    """Values read -> values given."""
    program = segment.program
    axes = [a for v in program.outputs for a in v.axes]
    w = _Writing(program, (), program.roots, axes, dtype)
    w.printer.lines(w.lines)
    return w.done([w.printer.value(v) for v in program.outputs])


@dataclass(frozen=True, slots=True)
class Slopes:
    """The derivative blocks that a forward graph gives after its values, in order.

    constant: whether each is the same for all points, and has no batch.
    """

    pairs: tuple[Pair, ...]
    constant: tuple[bool, ...]


def tangents(segment: Segment, pairs: Sequence[Pair], dtype: str) -> tuple[Printed, Slopes]:
    """Values read -> values given, then one block (rows, columns, batch) for each pair."""
    program = _copied(segment.program)
    known = {v.name: v for v in (*program.inputs, *(p.variable for p in program.parameters))}
    gives = {v.name: v for v in program.outputs}
    found: dict[Pair, Derivative] = {}
    for x in dict.fromkeys(x for _, x in pairs):
        rows = [gives[y] for y, other in pairs if other == x]
        block = derivative(program.graph, rows, [known[x]], f"^{x}")
        found |= {(v.name, x): block for v in rows if not block.is_zero(v)}
    kept = [pair for pair in pairs if pair in found]
    axes = {a for v in program.outputs for a in v.axes}
    axes |= {a for d in found.values() for a in d.axes()}
    nodes = [n for d in found.values() for n in d.nodes()]
    w = _Writing(program, (), [*program.roots, *nodes], axes, dtype)
    w.printer.lines(w.lines)
    values = [w.printer.value(v) for v in program.outputs]
    flat = [found[pair].is_constant(gives[pair[0]]) for pair in kept]
    for pair, constant in zip(kept, flat, strict=True):
        block = found[pair].block(w.printer, gives[pair[0]], "1" if constant else "batch")
        values.append(w.function.write(f"{block}.select(-1, 0).clone()") if constant else block)
    return w.done(values), Slopes(tuple(kept), tuple(flat))


def _system(program: Program) -> tuple[Solve, int]:
    (solve,) = program.solves()
    return solve, sum(width(program.graph, v) for v in solve.unknowns)


def guesses(segment: Segment) -> tuple[str, ...] | None:
    """The value that each unknown starts from, or None where a guess is computed."""
    program = segment.program
    known = {v.nodes: v.name for v in (*program.inputs, *(p.variable for p in program.parameters))}
    node = next(n for n in program.lines() if n.op == "solve")
    found, at = [], 0
    for v in segment.solve.unknowns:
        found.append(known.get(node.args[at : at + len(v.nodes)]))
        at += len(v.nodes)
    return tuple(n for n in found if n is not None) if None not in found else None


def predictor(segment: Segment, dtype: str) -> Printed:
    """Values read -> unknowns to start from."""
    program = segment.program
    solve = segment.solve
    node = next(n for n in program.lines() if n.op == "solve")
    first = node.args[: len(solve.columns)]
    axes = [a for v in solve.unknowns for a in v.axes]
    w = _Writing(program, (), first, axes, dtype)
    w.printer.lines(w.lines)
    left = iter(first)
    parts = [w.printer.stacked([next(left) for _ in v.nodes], v.axes) for v in solve.unknowns]
    return w.done([_laid(w, parts)])


def _laid(w: _Writing, parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else w.function.write(f"torch.cat([{', '.join(parts)}])")


def _rows(w: _Writing, printer: Printer, solve: Solve) -> str:
    """The residuals laid end to end, (rows, batch)."""
    if not any(v.axes for v in solve.residuals):
        return printer.stacked(solve.rows, ())
    return _laid(w, [printer.value(v) for v in solve.residuals])


def residual(segment: Segment, dtype: str) -> Printed:
    r"""Unknowns, values read -> $-r(u, g)$."""
    solve, size = _system(segment.program)
    axes = [a for v in solve.unknowns for a in v.axes]
    w = _Writing(segment.program, [(UNKNOWNS, size)], solve.rows, axes, dtype)
    w.bind(solve.unknowns, "u", w.printer)
    w.printer.lines(w.lines)
    return w.done([w.function.write(f"-{_rows(w, w.printer, solve)}")])


def step(segment: Segment, dtype: str) -> Printed:
    r"""Unknowns, step lengths, values read -> $u + \alpha \, \Delta u$ and $-r$ there.

    Points of step length 0 stay exactly where they are, whatever their update is.
    """
    program = _copied(segment.program)
    solve, size = _system(program)
    slope = derivative(program.graph, solve.residuals, solve.unknowns, "^u")
    arguments = [(UNKNOWNS, size), (STEP_LENGTH, 0)]
    roots = [*solve.rows, *slope.nodes()]
    w = _Writing(program, arguments, roots, slope.axes(), dtype)
    w.bind(solve.unknowns, "u", w.printer)
    w.printer.lines(w.lines)
    matrix = slope.matrix(w.printer)
    right = f"{_rows(w, w.printer, solve)}.permute(1, 0).unsqueeze(-1)"
    write = w.function.write
    solution = write(f"torch.linalg.solve_ex({matrix}.permute(2, 0, 1), {right})[0]")
    update = _in_order(w, slope, solve, write(f"{solution}.squeeze(-1).permute(1, 0)"))
    moved = write(f"torch.where(alpha != 0, u - alpha * {update}, u)")
    again = w.printer.without(dependent(solve.rows, solve.columns))
    w.bind(solve.unknowns, moved, again)
    again.lines(ordered(solve.rows))
    return w.done([moved, write(f"-{_rows(w, again, solve)}")])


def _in_order(w: _Writing, slope: Derivative, solve: Solve, x: str) -> str:
    """Rows that stand in the order of the matrix's columns, in the order of the unknowns."""
    if slope.columns[: len(solve.unknowns)] == solve.unknowns:
        return x
    starts, at = {}, 0
    for v in slope.columns:
        starts[v.name] = (at, at + slope.width(v))
        at += slope.width(v)
    return _laid(w, [f"{x}[{a}:{b}]" for a, b in (starts[v.name] for v in solve.unknowns)])


def sensitivity(segment: Segment, by: Sequence[str], dtype: str) -> tuple[Printed, tuple[str, ...]]:
    r"""Unknowns, values read -> $-A^{-1} B$ (unknowns, columns, batch); and whose columns."""
    program = _copied(segment.program)
    graph = program.graph
    solve, size = _system(program)
    known = {v.name: v for v in (*program.inputs, *(p.variable for p in program.parameters))}
    left = derivative(graph, solve.residuals, solve.unknowns, "^u")
    right = derivative(graph, solve.residuals, [known[x] for x in by], "^g")
    axes = left.axes() | right.axes()
    roots = [*left.nodes(), *right.nodes()]
    w = _Writing(program, [(UNKNOWNS, size)], roots, axes, dtype)
    w.bind(solve.unknowns, "u", w.printer)
    w.printer.lines(w.lines)
    a, b = (f"{d.matrix(w.printer)}.permute(2, 0, 1)" for d in (left, right))
    x = w.function.write(f"torch.linalg.solve_ex({a}, -{b})[0]")
    solution = _in_order(w, left, solve, w.function.write(f"{x}.permute(1, 2, 0)"))
    return w.done([solution]), tuple(v.name for v in right.columns)
