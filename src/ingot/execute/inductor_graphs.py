"""A segment -> the torch functions that its graphs are compiled from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from ingot.execute.batch_shape import shape_of
from ingot.execute.derivative import Derivative, differentiate_rows
from ingot.execute.torch_source import PrintedGraph, TorchPrinter
from ingot.program import Axis, Node, Program, Space, Variable, sort_lines
from ingot.program.arrays import ArrayLayout
from ingot.program.differentiate import jacobian
from ingot.program.implicit import inline_residuals
from ingot.program.partition import Segment
from ingot.program.program import find_dependent

__all__ = [
    "STEP_LENGTH",
    "UNKNOWNS",
    "Pair",
    "find_columns",
    "find_guesses",
    "open_guesses",
    "open_residuals",
    "print_forward",
    "print_residual",
    "print_sensitivity",
    "print_step",
    "print_tangents",
]

STEP_LENGTH = "step length"
UNKNOWNS = "all unknowns"
"""Arguments that are no values of the model, and so have a blank in their names."""

Pair = tuple[str, str]


def _open_printer(
    space: Space, first: Mapping[str, tuple[str, int]], reads: Sequence[Variable],
    roots: Iterable[Node], axes: Iterable[Axis], dtype: str,
) -> TorchPrinter:  # fmt: skip
    """A function of a segment's values, in which the lines that the roots need will stand."""
    lines = sort_lines(roots)
    inputs = {f"x{i}": (v.name, shape_of(v, space).width) for i, v in enumerate(reads)}
    layout = ArrayLayout(space, lines, [*axes, *(a for v in reads for a in v.axes)])
    printer = TorchPrinter(layout, {**first, **inputs}, lines, dtype)
    for v, name in zip(reads, inputs, strict=True):
        printer.bind([v], name)
    return printer


# forward segments


def print_forward(program: Program, dtype: str, *, is_joined: bool = False) -> PrintedGraph:
    """Values read -> values given, or an array of all of them."""
    axes = [a for v in program.outputs for a in v.axes]
    to = _open_printer(program, {}, program.given, program.roots, axes, dtype)
    to.write_lines(to.lines)
    gives = [to.write_stack(v.nodes, v.axes) for v in program.outputs]
    return to.finish([to.join(gives)] if is_joined else gives)


def print_tangents(
    segment: Segment, pairs: Sequence[Pair], dtype: str
) -> tuple[PrintedGraph, dict[Pair, bool]]:
    """Values read -> one block (rows, columns, batch) for each pair that is not zero.

    Also the pairs, in order, and whether each is the same for all points, and has no batch.
    """
    program = segment.program
    builder = program.builder()
    known = {v.name: v for v in program.given}
    gives = {v.name: v for v in program.outputs}
    found: dict[Pair, Derivative] = {}
    for x in dict.fromkeys(x for _, x in pairs):
        rows = [gives[y] for y, other in pairs if other == x]
        block = differentiate_rows(builder, rows, [known[x]], f"all of {x}")
        found |= {(v.name, x): block for v, t in zip(rows, block.tangents, strict=True) if any(t)}
    axes = {a for d in found.values() for a in d.axes()}
    nodes = [n for d in found.values() for n in d.nodes()]
    to = _open_printer(builder, {}, program.given, nodes, axes, dtype)
    to.write_lines(to.lines)
    constant = {p: found[p].is_constant(gives[p[0]]) for p in pairs if p in found}
    blocks = []
    for pair, same in constant.items():
        block = found[pair].write_block(to, gives[pair[0]], "1" if same else "batch")
        blocks.append(to.write(f"{block}.select(-1, 0).clone()") if same else block)
    return to.finish(blocks), constant


# implicit segments


def find_guesses(segment: Segment) -> tuple[str, ...] | None:
    """The value that each unknown starts from, or None where a guess is computed."""
    known = {v.nodes: v.name for v in segment.program.given}
    starts = [v.nodes for v in open_guesses(segment).outputs]
    found = [known.get(tuple(n.args[0] if n.op == "part" else n for n in x)) for x in starts]
    return tuple(n for n in found if n is not None) if None not in found else None


def open_guesses(segment: Segment) -> Program:
    """What the unknowns start from as a program: `start X` for each unknown X, of what is read."""
    left = iter(segment.node.args)
    starts = tuple(
        replace(v, name=f"start {v.name}", nodes=tuple(next(left) for _ in v.nodes))
        for v in segment.solve.unknowns
    )
    return replace(segment.program, outputs=starts)


def open_residuals(segment: Segment) -> Program:
    """The residuals as a program: of `unknown X` for each unknown X, then of what is read."""
    program, node, solve = segment.program, segment.node, segment.solve
    builder = program.builder()
    unknowns = []
    for v in solve.unknowns:
        name = f"unknown {v.name}"
        nodes = builder.components("input", (name,), [n.axes for n in v.nodes])
        unknowns.append(replace(v, name=name, nodes=nodes))
    columns = [n for v in unknowns for n in v.nodes]
    rows = iter(inline_residuals(builder, solve, columns, node.args[len(columns) :]))
    outputs = tuple(
        replace(v, name=f"residual {v.name}", nodes=tuple(next(rows) for _ in v.nodes))
        for v in solve.residuals
    )
    inputs = (*unknowns, *program.inputs)
    return Program(builder.extents, inputs, program.parameters, outputs)


def find_columns(segment: Segment, by: Iterable[str]) -> tuple[str, ...]:
    """The values among those read that the residuals have a derivative by."""
    program = open_residuals(segment)
    known = {v.name: v for v in program.given}
    owner = [(x, n) for x in by for n in known[x].nodes]
    rows = jacobian(program.builder(), program.roots, [n for _, n in owner], dense=True)
    return tuple(dict.fromkeys(owner[j][0] for j in sorted({j for row in rows for j, _ in row})))


class _SegmentEquations:
    """The residuals of a segment's solve, in a builder where derivatives disturb nobody."""

    def __init__(self, segment: Segment) -> None:
        program = open_residuals(segment)
        count = len(segment.solve.unknowns)
        self.builder = program.builder()
        self.unknowns, self.reads = program.given[:count], program.given[count:]
        self.residuals, self.rows = program.outputs, program.roots
        self.size = sum(shape_of(v, program).width for v in self.unknowns)

    def differentiate(self) -> Derivative:
        """That of the residuals by the unknowns, the Jacobian $A$."""
        return differentiate_rows(self.builder, self.residuals, self.unknowns, UNKNOWNS)

    def write(
        self, first: Mapping[str, tuple[str, int]], roots: Iterable[Node], axes: Iterable[Axis],
        dtype: str,
    ) -> TorchPrinter:  # fmt: skip
        """A function of the unknowns and of what is read, with the lines that the roots need."""
        first = {"u": (UNKNOWNS, self.size), **first}
        to = _open_printer(self.builder, first, self.reads, roots, axes, dtype)
        to.bind(self.unknowns, "u")
        to.write_lines(to.lines)
        return to

    def write_residual(self, to: TorchPrinter) -> str:
        """The residuals laid end to end, (rows, batch)."""
        if not any(v.axes for v in self.residuals):
            return to.write_stack(self.rows, ())
        return to.join([to.write_stack(v.nodes, v.axes) for v in self.residuals])

    def restore_order(self, to: TorchPrinter, slope: Derivative, x: str) -> str:
        """Rows that stand in the order of the matrix's columns, in the order of the unknowns."""
        if slope.columns == self.unknowns:
            return x
        ends = [0, *accumulate(shape_of(v, self.builder).width for v in slope.columns)]
        starts = {v.name: edges for v, edges in zip(slope.columns, pairwise(ends), strict=True)}
        return to.join([f"{x}[{a}:{b}]" for a, b in (starts[v.name] for v in self.unknowns)])


def print_residual(segment: Segment, dtype: str) -> PrintedGraph:
    r"""Unknowns, values read -> $-r(u, g)$."""
    e = _SegmentEquations(segment)
    to = e.write({}, e.rows, [a for v in e.residuals for a in v.axes], dtype)
    return to.finish([to.write(f"-{e.write_residual(to)}")])


def print_step(segment: Segment, dtype: str) -> PrintedGraph:
    r"""Unknowns, step lengths, values read -> $u + \alpha \, \Delta u$ and $-r$ there.

    Points of step length 0 stay exactly where they are, whatever their update is.
    """
    e = _SegmentEquations(segment)
    slope = e.differentiate()
    first = {"alpha": (STEP_LENGTH, 0)}
    to = e.write(first, [*e.rows, *slope.nodes()], slope.axes(), dtype)
    matrix = slope.write_matrix(to)
    right = f"{e.write_residual(to)}.permute(1, 0).unsqueeze(-1)"
    solution = to.write(f"torch.linalg.solve_ex({matrix}.permute(2, 0, 1), {right})[0]")
    update = e.restore_order(to, slope, to.write(f"{solution}.squeeze(-1).permute(1, 0)"))
    moved = to.write(f"torch.where(alpha != 0, u - alpha * {update}, u)")
    columns = [n for v in e.unknowns for n in v.nodes]
    again = to.forget(find_dependent(e.rows, columns))
    again.bind(e.unknowns, moved)
    again.write_lines(sort_lines(e.rows))
    return to.finish([moved, to.write(f"-{e.write_residual(again)}")])


def print_sensitivity(
    segment: Segment, by: Sequence[str], dtype: str
) -> tuple[PrintedGraph, tuple[str, ...]]:
    r"""Unknowns, values read -> $-A^{-1} B$ (unknowns, columns, batch); and whose columns."""
    e = _SegmentEquations(segment)
    known = {v.name: v for v in e.reads}
    left = e.differentiate()
    right = differentiate_rows(e.builder, e.residuals, [known[x] for x in by], "all given")
    to = e.write({}, [*left.nodes(), *right.nodes()], left.axes() | right.axes(), dtype)
    a, b = (f"{d.write_matrix(to)}.permute(2, 0, 1)" for d in (left, right))
    x = to.write(f"torch.linalg.solve_ex({a}, -{b})[0]")
    solution = e.restore_order(to, left, to.write(f"{x}.permute(1, 2, 0)"))
    return to.finish([solution]), tuple(v.name for v in right.columns)
