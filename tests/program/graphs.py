"""Random programs: lines over all operations, with arguments kept where they are smooth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.program import Axis, Builder, Newton, Node, Program, Solve, Variable, verify
from ingot.program.implicit import close_solve, read_items
from ingot.program.repetition import repeat_lines
from ingot.types import Scalar

CELL, EDGE = Axis("cell"), Axis("cell", -1)
KNOT = Axis("knot")
EXTENTS = {"cell": 5, "knot": 4}


def inside(g: Builder, a: Node) -> Node:
    """Between -0.9 and 0.9."""
    return g.emit("mul", 0.9, g.emit("tanh", a))


def above(g: Builder, a: Node) -> Node:
    """Above one half."""
    return g.emit("add", 0.5, g.emit("mul", a, a))


UNARY = (
    "neg", "abs", "sign", "sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "square", "whole power", "root", "inverse power",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "pow", "less", "greater", "equal", "either", "both")
OF_FIELDS = (
    "log1p", "expm1", "log2", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "round", "ne",
    "minimum", "maximum", "atan2", "hypot", "remainder",
)  # fmt: skip
"""Operations that fields alone have; laws have no names for them."""
STRUCTURED = ("table", "loop")
ALONG = ("sum", "contract", "pick", "first", "last", "pad left", "pad right", "append", "spread")


def unary(g: Builder, op: str, a: Node) -> Node:
    """An operation on one node, its argument kept safe."""
    match op:
        case "sqrt" | "log" | "log10":
            return g.emit(op, above(g, a))
        case "exp" | "tan" | "asin" | "acos" | "sinh" | "cosh":
            return g.emit(op, inside(g, a))
        case "square":
            return g.emit("mul", inside(g, a), inside(g, a))
        case "whole power":
            return g.emit("pow", inside(g, a), 5.0)
        case "root":
            return g.emit("pow", above(g, a), 0.5)
        case "inverse power":
            return g.emit("pow", above(g, a), -2.0)
        case "table":
            g.add_axis(KNOT.name, EXTENTS[KNOT.name])
            knots, heights = (
                g.table(np.array(x), (KNOT,))
                for x in ([-2.0, -0.4, 0.1, 3.0], [0.5, 1.0, -1.0, 0.0])
            )
            return g.along("interpolate", a, knots, heights, axis=("knot",))
        case "loop":

            def body(carried: list[Node]) -> list[Node]:
                moved = inside(g, g.emit("add", carried[0], carried[1]))
                return [moved, g.emit("mul", a, carried[0])]

            return repeat_lines(g, 3, body, [g.one, a])[1]
        case _:
            return g.emit(op, a)


def binary(g: Builder, op: str, a: Node, b: Node) -> Node:
    """An operation on two nodes, its arguments kept safe."""
    match op:
        case "mul":
            return g.emit("mul", inside(g, a), b)
        case "div":
            return g.emit("div", a, above(g, b))
        case "pow":
            return g.emit("pow", above(g, inside(g, a)), inside(g, b))
        case "less":
            return g.emit("where", g.emit("lt", a, b), a, g.emit("mul", 2.0, b))
        case "greater":
            return g.emit("where", g.emit("not", g.emit("ge", a, b)), b, g.emit("sin", a))
        case "equal":
            return g.emit("where", g.emit("eq", a, b), 3.0, g.emit("cos", b))
        case "either":
            flag = g.emit("or", g.emit("gt", a, 0.0), g.emit("le", b, 0.0))
            return g.emit("where", flag, a, g.emit("sub", b, a))
        case "both":
            flag = g.emit("and", g.emit("gt", a, 0.0), g.emit("gt", b, 0.0))
            return g.emit("where", flag, g.emit("neg", a), b)
        case _:
            return g.emit(op, a, b)


def along(g: Builder, op: str, a: Node) -> Node | None:
    """An operation along the axis, None where the node does not have the axis for it."""
    if op == "spread" and not a.axes:
        return g.emit("mul", a, g.table(torch.arange(1.0, 6.0).numpy(), (CELL,)))
    if a.axes == (CELL,) and op in ("first", "last"):
        first, last = (0, 1) if op == "first" else (1, 0)
        return g.along("window", a, axis="cell", first=first, last=last)
    if a.axes == (EDGE,) and op in ("pad left", "pad right"):
        first, last = (1, 0) if op == "pad left" else (0, 1)
        return g.along("pad", a, axis="cell", first=first, last=last)
    if a.axes == (EDGE,) and op == "append":
        return g.along("append", a, 0.5, axis="cell", side="left", own=(CELL,))
    if a.axes == (CELL,) and op == "contract":
        matrix = torch.arange(20.0).cos().reshape(4, 5).numpy()
        heights = g.along("contract", g.table(matrix, (KNOT, CELL)), a, axis="cell")
        return g.along("contract", heights, g.table(matrix.T / 9.0, (CELL, KNOT)), axis="knot")
    if a.axes == (CELL,) and op == "pick":
        knots = g.table(np.array([-1.0, -0.2, 0.0, 0.4, 1.0]), a.axes)
        at = inside(g, g.along("sum", a, axis="cell"))
        return g.along("interpolate", at, knots, a, axis=("cell",))
    if a.axes and op == "sum":
        return g.along("sum", a, axis="cell", own=(CELL,))
    return None


@dataclass(frozen=True)
class Drawn:
    """A random program with one scalar output, its other lines, and where to evaluate it."""

    builder: Builder
    inputs: tuple[Node, ...]
    lines: tuple[Node, ...]
    output: Node
    point: tuple[Tensor, ...]

    @property
    def program(self) -> Program:
        """The output as a program."""
        given = [Variable(str(i), Scalar, n.axes, (n,)) for i, n in enumerate(self.inputs)]
        gives = (Variable("out", Scalar, (), (self.output,)),)
        return verify(Program(self.builder.extents, tuple(given), (), gives))

    def numbers(self) -> dict[str, np.ndarray]:
        """The point as inputs of the program, one point long."""
        return {str(i): x.numpy()[None] for i, x in enumerate(self.point)}

    def run(self, nodes: Sequence[Node], point: Sequence[Tensor] | None = None) -> list[Tensor]:
        """The values of lines, at the point or elsewhere."""
        return values(self.builder, self.inputs, nodes, self.point if point is None else point)


def values(
    builder: Builder, inputs: Sequence[Node], nodes: Sequence[Node], point: Sequence[Tensor]
) -> list[Tensor]:
    """The values of nodes, given those of the inputs."""
    given = [Variable(str(i), Scalar, n.axes, (n,)) for i, n in enumerate(inputs)]
    gives = [Variable(f"out {i}", Scalar, n.axes, (n,)) for i, n in enumerate(nodes)]
    program = verify(Program(builder.extents, tuple(given), (), tuple(gives)))
    results, _ = Interpreter(program)({str(i): x for i, x in enumerate(point)})
    return [results[v.name] for v in gives]


# implicit updates

NEIGHBOURS = 0.2
NEWTON = Newton(abs_tol=1e-13, rel_tol=1e-15)


def update(g: Builder, name: str, a: Node, b: Node, *, nested: bool = False) -> list[Node]:
    """Two unknowns on the axes of `a` and `b`, coupled to each other and to their neighbours.

    nested: one of the residuals reads an update of its own, which reads an unknown.
    """
    axes = g.union((a, b))
    u, v = (g.placeholder("unknown", axes, name) for _ in range(2))
    first = g.emit("add", g.emit("mul", 3.0, u), g.emit("mul", 0.5, g.emit("tanh", u)))
    coupled = g.emit("mul", 0.3, g.emit("mul", inside(g, a), v))
    if nested:
        (w,) = update_once(g, f"inside {name}", u, b)
        coupled = g.emit("add", coupled, g.emit("mul", 0.4, w))
    first = g.emit("sub", g.emit("add", first, coupled), inside(g, b))
    second = g.emit("add", g.emit("mul", 2.0, v), g.emit("mul", 0.4, g.emit("sin", u)))
    second = g.emit("sub", second, inside(g, a))
    if axes:
        kept = g.along("window", u, axis="cell", first=0, last=1)
        moved = g.along("pad", kept, axis="cell", first=1, last=0)
        second = g.emit("add", second, g.emit("mul", NEIGHBOURS, moved))
    return closed(g, name, axes, (u, v), (first, second))


def update_once(g: Builder, name: str, a: Node, b: Node) -> list[Node]:
    """One unknown that reads two lines."""
    axes = g.union((a, b))
    w = g.placeholder("unknown", axes, name)
    bent = g.emit("mul", 0.3, g.emit("tanh", g.emit("mul", w, inside(g, a))))
    row = g.emit("sub", g.emit("add", g.emit("mul", 2.0, w), bent), inside(g, g.emit("add", a, b)))
    return closed(g, name, axes, (w,), (row,))


def closed(
    g: Builder, name: str, axes: tuple[Axis, ...], columns: Sequence[Node], rows: Sequence[Node]
) -> list[Node]:
    """The unknowns that make the rows zero, from zero."""

    def variables(title: str, nodes: Sequence[Node]) -> tuple[Variable, ...]:
        return tuple(Variable(f"{title} {i}", Scalar, axes, (n,)) for i, n in enumerate(nodes))

    residuals = variables(f"residual of {name}", rows)
    solve = Solve(name, variables(name, columns), residuals, (), NEWTON)
    return read_items(g, close_solve(g, solve, [g.zero for _ in columns]))


@st.composite
def programs(
    draw: st.DrawFn, *, axes: bool, sums: bool = True, solves: int = 0, nested: bool = False
) -> Drawn:
    """A program of a dozen operations or so over three inputs, with or without axes and sums.

    solves: how many updates stand in it, each reading the one before; nested: the last of them
    has another inside its residuals.
    """
    g = Builder(EXTENTS)
    wanted = [(), (CELL,), (EDGE,)] if axes else [(), (), ()]
    inputs = tuple(g.node("input", (), (f"x{i}", 0), a) for i, a in enumerate(wanted))
    pool = list(inputs)
    steps = draw(st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), min_size=6, max_size=20))
    names = (*UNARY, *STRUCTURED, *BINARY, *(("add", *ALONG, "sum") * 3 if axes else ()))
    for which, i, j in steps:
        op, a, b = names[which % len(names)], pool[i % len(pool)], pool[j % len(pool)]
        if op in (*UNARY, *STRUCTURED):
            pool.append(unary(g, op, a))
        elif op in ALONG:
            moved = along(g, op, a) if sums or op not in ("sum", "contract", "pick") else None
            pool += [] if moved is None else [moved]
        elif len({a.axes, b.axes} - {()}) <= 1:
            pool.append(binary(g, op, a, b))
    for k in range(solves):
        i, j = draw(st.tuples(*[st.integers(0, 10**6)] * 2))
        before = pool[-1] if k else pool[i % len(pool)]
        fitting = [n for n in pool if len({n.axes, before.axes} - {()}) <= 1]
        deep = nested and k == solves - 1
        pool += update(g, f"solve {k}", before, fitting[j % len(fitting)], nested=deep)
    total = g.zero
    for node in pool[len(inputs) :][-5:]:
        term = inside(g, node)
        total = g.emit("add", total, g.along("sum", term, axis="cell") if node.axes else term)
    source = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    point = tuple(
        torch.rand([g.extent(a) for a in n.axes], generator=source, dtype=torch.float64) * 2 - 1
        for n in inputs
    )
    return Drawn(g, inputs, tuple(pool), total, point)


SHAPES = {
    "lines": {"axes": False},
    "axes": {"axes": True},
    "a solve": {"axes": False, "solves": 1},
    "a solve on axes": {"axes": True, "solves": 1},
    "solves in series": {"axes": False, "solves": 3},
    "solves in series on axes": {"axes": True, "solves": 3},
    "a nested solve": {"axes": False, "solves": 1, "nested": True},
    "a nested solve after another": {"axes": False, "solves": 2, "nested": True},
}
"""Every make of program that a pass must keep as it is."""
NEST_ON_AXES = {"axes": True, "solves": 1, "nested": True}
