"""Replay lines into a builder with some replaced: constant folding of parameters, substitution."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ingot.program.builder import Builder, Node, sort_until
from ingot.program.operations import operation
from ingot.program.program import Program, Variable
from ingot.program.schedule import schedule_lines

__all__ = ["Replay", "freeze", "renew", "substitute"]


class Replay:
    """Copies lines into a builder, folding again, with the given lines replaced."""

    def __init__(self, builder: Builder, replaced: Mapping[int, Node]) -> None:
        self.builder = builder
        self.new: dict[int, Node] = dict(replaced)

    def __call__(self, node: Node) -> Node:
        """The counterpart of a line."""
        if node.id not in self.new:
            for needed in sort_until([node], self.new):
                self.new[needed.id] = self.copy(needed)
        return self.new[node.id]

    def copy(self, node: Node) -> Node:
        """A line whose operands have been copied."""
        args = tuple(self.new[a.id] for a in node.args)
        return operation(node.op).rebuild(self.builder, node, args)

    def variable(self, variable: Variable) -> Variable:
        """The counterpart of a variable."""
        return replace(variable, nodes=tuple(self(n) for n in variable.nodes))

    def program(self, program: Program) -> Program:
        """The counterpart of a program; what is named stays so where its lines are still read."""
        for line in program.lines:
            if line.id not in self.new:
                self.new[line.id] = self.copy(line)
        copied = program.copy(self.variable)
        named = tuple(
            (owner, self.variable(v))
            for owner, v in program.named
            if all(n.id in self.new for n in v.nodes)
        )
        hoisted = tuple(self(n) for n in program.hoisted)
        return replace(copied, extents=self.builder.extents, named=named, hoisted=hoisted)


def renew(
    program: Program, replaced: Mapping[int, Node] | None = None, builder: Builder | None = None
) -> Program:
    """The program replayed with lines replaced, into a builder or one of its own."""
    return Replay(builder or Builder(program.extents), replaced or {}).program(program)


def freeze(program: Program, epsilon: float, keep: Iterable[str] = ()) -> Program:
    """Unbatched parameters become constants, except those kept; `eps` becomes a number."""
    builder = Builder(program.extents)
    kept = set(keep)
    replaced: dict[int, Node] = {}
    open_ones = []
    for p in program.parameters:
        if p.batched or p.variable.name in kept:
            open_ones.append(p)
            continue
        data = p.value.data.detach().double().cpu().numpy()
        flat = data.reshape(*data.shape[: p.value.sub], -1)
        for i, node in enumerate(p.variable.nodes):
            replaced[node.id] = builder.table(flat[..., i], p.variable.axes)
    for node in program.lines:
        if node.op == "eps":
            replaced[node.id] = builder.const(epsilon)
    return renew(replace(program, parameters=tuple(open_ones)), replaced, builder)


def substitute(builder: Builder, nodes: Iterable[Node], mapping: Mapping[int, Node]) -> list[Node]:
    """The lines with others in the place of some, in the same builder.

    What does not read a replaced line stays as it is.
    """
    roots = list(nodes)
    replay = Replay(builder, mapping)
    if roots and mapping:
        lines = schedule_lines(roots)
        changed = set(mapping)
        for node in lines:
            if any(a.id in changed for a in node.args):
                changed.add(node.id)
        replay.new.update({n.id: n for n in lines if n.id not in changed})
    return [replay(n) for n in roots]
