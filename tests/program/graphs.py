"""Random programs: lines over all operations, with arguments kept where they are smooth."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.program import Axis, Builder, Node, Program, Variable, verify
from ingot.types import Scalar

CELL, EDGE = Axis("cell"), Axis("cell", -1)
EXTENTS = {"cell": 5}


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
ALONG = ("sum", "first", "last", "pad left", "pad right", "append", "spread")


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


@st.composite
def programs(draw: st.DrawFn, *, axes: bool, sums: bool = True) -> Drawn:
    """A program of a dozen operations or so over three inputs, with or without axes and sums."""
    g = Builder(EXTENTS)
    wanted = [(), (CELL,), (EDGE,)] if axes else [(), (), ()]
    inputs = tuple(g.node("input", (), (f"x{i}", 0), a) for i, a in enumerate(wanted))
    pool = list(inputs)
    steps = draw(st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), min_size=6, max_size=20))
    names = (*UNARY, *BINARY, *(("add", *ALONG, "sum") * 3 if axes else ()))
    for which, i, j in steps:
        op, a, b = names[which % len(names)], pool[i % len(pool)], pool[j % len(pool)]
        if op in UNARY:
            pool.append(unary(g, op, a))
        elif op in ALONG:
            moved = along(g, op, a) if sums or op != "sum" else None
            pool += [] if moved is None else [moved]
        elif len({a.axes, b.axes} - {()}) <= 1:
            pool.append(binary(g, op, a, b))
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
