"""Replay a program with some nodes replaced: freezing parameters, precision, substitution."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ingot.program.graph import Graph, Node
from ingot.program.program import Program, Solve, Variable, frontier
from ingot.program.schedule import scheduled

__all__ = ["Replay", "freeze", "renewed", "substitute"]


LEAVES = {"const", "table", "input", "parameter", "unknown", "eps", "eye"}
"""Operations that read no other line."""


class Replay:
    """Copies nodes into a graph, folding again, with the given nodes replaced."""

    def __init__(self, graph: Graph, replaced: Mapping[int, Node]) -> None:
        self.graph = graph
        self.new: dict[int, Node] = dict(replaced)
        self.solves: dict[int, Solve] = {}

    def __call__(self, node: Node) -> Node:
        """The counterpart of a node."""
        if node.id not in self.new:
            for needed in sorted(scheduled([node], self.new), key=lambda n: n.id):
                if needed.id not in self.new:
                    self.new[needed.id] = self._copy(needed)
        return self.new[node.id]

    def variable(self, variable: Variable) -> Variable:
        """The counterpart of a variable."""
        return replace(variable, nodes=tuple(self(n) for n in variable.nodes))

    def _copy(self, node: Node) -> Node:
        args = tuple(self.new[a.id] for a in node.args)
        if node.op == "solve":
            return self._solve(node)
        if node.op == "linear":
            return self._linear(node)
        if node.op in LEAVES or node.op == "item":
            return self.graph.node(node.op, args, node.attr, node.axes)
        if node.op == "sum":
            if not any(a.name == node.attr.name for a in args[0].axes):
                return self.graph.emit("mul", args[0], self.graph.extent(node.attr))
            return self.graph.along("sum", *args, axis=node.attr.name)
        if node.op in ("window", "pad"):
            held, first = node.attr
            now = next(a for a in node.axes if a.name == held.name)
            last = abs(now.offset - held.offset) - first
            if held not in args[0].axes and node.op == "pad":
                edge = self.graph.spot(held, first, last)
                return self.graph.emit("mul", args[0], self.graph.emit("sub", 1.0, edge))
            return self.graph.along(node.op, *args, axis=held.name, first=first, last=last)
        return self.graph.emit(node.op, *args)

    def _solve(self, node: Node) -> Node:
        old: Solve = node.attr
        for column in old.columns:
            self.new[column.id] = self.graph.node("unknown", (), column.attr, column.axes)
        unknowns = tuple(self.variable(v) for v in old.unknowns)
        residuals = tuple(self.variable(v) for v in old.residuals)
        reads = tuple(self.variable(v) for v in old.reads)
        new = replace(old, unknowns=unknowns, residuals=residuals, reads=reads)
        self.solves[id(old)] = new
        guesses = tuple(self.new[a.id] for a in node.args[: len(old.columns)])
        return solve_node(self.graph, new, guesses)

    def _linear(self, node: Node) -> Node:
        old = node.attr.solve
        width, sides = len(old.columns), len(old.columns) * node.attr.sides
        new = self.solves.get(id(old), old)
        solution = tuple(self.new[a.id] for a in node.args[:width])
        outside = solution[0].args[0].args[width:]
        right = tuple(self.new[a.id] for a in node.args[len(node.args) - sides :])
        return self.graph.node(
            "linear", (*solution, *outside, *right), replace(node.attr, solve=new)
        )


def solve_node(graph: Graph, solve: Solve, guesses: tuple[Node, ...]) -> Node:
    """The node of a solve: it reads its guesses and whatever its residuals read from outside."""
    return graph.node("solve", (*guesses, *frontier(solve.rows, solve.columns)), solve)


def renewed(program: Program, replaced: Mapping[int, Node], graph: Graph) -> Program:
    """The program replayed into `graph` with the given nodes replaced; solves keep their order."""
    replay = Replay(graph, replaced)
    for line in program.lines():
        replay(line)
    return Program(
        graph,
        tuple(replay.variable(v) for v in program.inputs),
        tuple(replace(p, variable=replay.variable(p.variable)) for p in program.parameters),
        tuple(replay.variable(v) for v in program.outputs),
        program.notes,
    )


def freeze(program: Program, epsilon: float, keep: Iterable[str] = ()) -> Program:
    """Unbatched parameters become constants, except those kept; `eps` becomes a number."""
    graph = Graph(program.graph.extents)
    kept = set(keep)
    replaced: dict[int, Node] = {}
    open_ones = []
    for p in program.parameters:
        if p.batched or p.variable.name in kept:
            open_ones.append(p)
            continue
        data = p.value.data.detach().double().cpu().numpy()
        flat = data.reshape(*data.shape[: p.value.sub], -1)
        axes = p.variable.axes
        for i, node in enumerate(p.variable.nodes):
            replaced[node.id] = (
                graph.table(flat[..., i], axes) if axes else graph.const(float(flat[..., i]))
            )
    for node in program.graph.nodes:
        if node.op == "eps":
            replaced[node.id] = graph.const(epsilon)
    return renewed(replace(program, parameters=tuple(open_ones)), replaced, graph)


def substitute(nodes: Iterable[Node], mapping: Mapping[int, Node], graph: Graph) -> list[Node]:
    """The nodes with others in the place of some, in the same graph."""
    replay = Replay(graph, mapping)
    return [replay(n) for n in nodes]
