"""The Program: what one point computes, from inputs and parameters to outputs, line by line."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ingot.options import Newton
from ingot.program.graph import Axis, Graph, Node, ordered
from ingot.types import Value, places

__all__ = [
    "Newton", "Parameter", "Program", "Solve", "Variable", "check", "dependent", "first_guesses",
    "frontier",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variable:
    """A named value: one node a component, on its axes or spread over their entries."""

    name: str
    kind: type[Value]
    axes: tuple[Axis, ...]
    nodes: tuple[Node, ...]

    @property
    def spread(self) -> bool:
        """Whether the axes are unrolled: a node for every entry and component."""
        return len(self.nodes) != math.prod(self.kind.base)

    def labels(self) -> list[str]:
        """How each node is called in the user's words."""
        if not self.kind.base and not self.spread:
            return [self.name]
        parts = [",".join(map(str, p)) for p in places(self.kind.base)]
        if not self.spread:
            return [f"{self.name}[{p}]" for p in parts]
        entries = len(self.nodes) // len(parts)
        return [
            f"{self.name}[{i}]" if part == "" else f"{self.name}[{i};{part}]"
            for i in range(entries)
            for part in parts
        ]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the model: where it enters, and its value."""

    variable: Variable
    value: Value

    @property
    def batched(self) -> bool:
        """Whether the value has dynamic batch axes, so that it is passed at every call."""
        return self.value.data.ndim > len(self.value.base) + self.value.sub


@dataclass(frozen=True, slots=True, eq=False)
class Solve:
    """An implicit update: unknowns that make the residuals zero. Its node's items are the unknowns.

    The residuals read the unknowns' placeholders and lines of the program around them.
    reads: the named values that the update was given, where a program can be cut.
    """

    name: str
    unknowns: tuple[Variable, ...]
    residuals: tuple[Variable, ...]
    newton: Newton
    clocks: tuple[str, ...] = ()
    reads: tuple[Variable, ...] = ()

    @property
    def columns(self) -> tuple[Node, ...]:
        """The unknowns, flat."""
        return tuple(n for v in self.unknowns for n in v.nodes)

    @property
    def rows(self) -> tuple[Node, ...]:
        """The residuals, flat, in the order of the unknowns."""
        return tuple(n for v in self.residuals for n in v.nodes)


def dependent(roots: Iterable[Node], on: Iterable[Node]) -> set[int]:
    """The ids of all nodes between the roots and the nodes they depend on, those included."""
    found = {n.id for n in on}
    for node in ordered(roots):
        if any(a.id in found for a in node.args):
            found.add(node.id)
    return found


def first_guesses(program: "Program") -> frozenset[str]:
    """The inputs that no output depends on but through the values that a solve starts from."""
    read: set[int] = set()
    stack = list(program.roots)
    while stack:
        node = stack.pop()
        if node.id in read:
            continue
        read.add(node.id)
        if node.op == "solve":
            solve: Solve = node.attr
            stack += node.args[len(solve.columns) :]
            stack += frontier(solve.rows, solve.columns)
        else:
            stack += node.args
    every = {n.id for n in ordered(program.roots)}
    return frozenset(
        v.name for v in program.inputs
        if not any(n.id in read for n in v.nodes) and any(n.id in every for n in v.nodes)
    )  # fmt: skip


def frontier(roots: tuple[Node, ...], on: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes that do not depend on `on` but are read by those that do, or are roots."""
    inside = dependent(roots, on)
    found: dict[int, Node] = {}
    for node in ordered(roots):
        reads = node.args if node.id in inside else ()
        for arg in reads:
            if arg.id not in inside and arg.op not in ("const", "table"):
                found[arg.id] = arg
    for root in roots:
        if root.id not in inside and root.op not in ("const", "table"):
            found[root.id] = root
    return tuple(found[i] for i in sorted(found))


@dataclass(frozen=True, slots=True)
class Program:
    """Lines for one point. `str()` prints them in the user's names."""

    graph: Graph
    inputs: tuple[Variable, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[Variable, ...]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[Node, ...]:
        """The nodes of all outputs."""
        return tuple(n for v in self.outputs for n in v.nodes)

    def lines(self) -> list[Node]:
        """Every line in order; those inside a solve are listed by the solve."""
        return ordered(self.roots)

    def solves(self) -> list[Solve]:
        """The implicit updates in the order they run."""
        return [n.attr for n in self.lines() if n.op == "solve"]

    def count(self) -> int:
        """The number of operations, a solve's residual included once."""
        return operations(self.roots) + sum(
            operations(s.rows, frontier(s.rows, s.columns)) for s in self.solves()
        )

    def __str__(self) -> str:
        from ingot.program.text import text

        return text(self)


_FREE = {"const", "table", "input", "parameter", "unknown", "item", "solve", "linear", "eps"}


def operations(roots: Iterable[Node], known: Iterable[Node] = ()) -> int:
    """How many operations the roots take beyond the known nodes, an axis counted in full."""
    seen = {n.id for n in known}
    total = 0
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.op not in _FREE:
            total += math.prod(
                node.graph.extent(a) for a in (node.args[0].axes if node.op == "sum" else node.axes)
            )
        stack.extend(node.args)
    return total


def check(program: Program) -> None:
    """Nothing is read before it is given, and every output is given."""
    given = {n.id for v in program.inputs for n in v.nodes}
    given |= {n.id for p in program.parameters for n in p.variable.nodes}
    _check_lines(program.roots, given, program.graph)


def _check_lines(roots: tuple[Node, ...], given: set[int], graph: Graph) -> None:
    known: set[int] = set()
    for node in ordered(roots):
        assert node.graph is graph, f"{node} belongs to another program"
        for arg in node.args:
            assert arg.id in known, f"{node.op} {node} reads {arg} too early"
        if node.op in ("input", "parameter", "unknown"):
            assert node.id in given, f"{node.attr} is read but not given"
        if node.op == "solve":
            solve: Solve = node.attr
            assert len(solve.rows) == len(solve.columns), f"{solve.name} is not square"
            for row, column in zip(solve.rows, solve.columns, strict=True):
                assert set(row.axes) <= set(column.axes), (
                    f"{solve.name}: axes of {row} and {column}"
                )
            _check_lines(solve.rows, given | {n.id for n in solve.columns}, graph)
        known.add(node.id)
