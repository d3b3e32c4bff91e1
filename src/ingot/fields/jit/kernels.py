"""Loops over points -> lines of a program, printed for the devices of codegen/."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor
from torch.fx import Node

from ingot.codegen.grids import GridLoop
from ingot.codegen.lines import Lines
from ingot.codegen.values import read_name
from ingot.fields.jit.clusters import Loop
from ingot.fields.jit.fuse import Fused
from ingot.fields.jit.nodes import sizes_of
from ingot.fields.jit.operations import Kind, Value, cast, kind_of, literal, lower, placeholder
from ingot.program import Builder, sort_lines
from ingot.program import Node as Line

__all__ = ["Printed", "print_loop"]


@dataclass(frozen=True, slots=True)
class Printed:
    """A loop, the tensors and numbers that it reads, and those that it gives."""

    loop: GridLoop
    tensors: tuple[Node, ...]
    numbers: tuple[Node, ...]
    gives: tuple[Node, ...]
    varying: tuple[int, ...]
    operations: int


def level_of(node: Node) -> int:
    """Where a value from memory changes: 0 nowhere, 1 from row to row, 2 from point to point."""
    sizes = sizes_of(node)
    if sizes and sizes[-1] != 1:
        return 2
    return 1 if any(size != 1 for size in sizes) else 0


def print_loop(fused: Fused, loop: Loop, name: str) -> Printed:
    """The lines of one loop by where they change, and what it reads and gives."""
    lowering = Lowering(fused, frozenset(loop.nodes))
    values = {node: lowering.value(node) for node in loop.nodes}
    gives = tuple(node for node in loop.nodes if node in fused.stored)
    rows = lowering.print_lines([values[node] for node in gives])
    inputs, real = tuple(lowering.tensors), fused.view.real
    kinds = tuple(kind_of(node, real) for node in (*inputs, *gives))
    varying = [k for k, node in enumerate(inputs) if level_of(node) == 2]
    varying += range(len(inputs), len(kinds))
    body = GridLoop(name, kinds, len(lowering.numbers), max(len(loop.shape), 1), rows)
    numbers = tuple(lowering.numbers)
    return Printed(body, inputs, numbers, gives, tuple(varying), lowering.operations)


def lines_of(x: Value) -> tuple[Line, ...]:
    """The lines of a value: one, or those of its parts."""
    return x if isinstance(x, tuple) else (x,)


@dataclass(slots=True)
class Lowering:
    """The values of a loop's nodes, as lines.

    names: how the lines that are given are written; loads: the rows that read memory, by level
    """

    fused: Fused
    own: frozenset[Node]
    builder: Builder = field(default_factory=Builder)
    tensors: dict[Node, int] = field(default_factory=dict)
    numbers: dict[Node, int] = field(default_factory=dict)
    values: dict[Node, Value] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    loads: tuple[list[str], ...] = field(default_factory=lambda: ([], [], []))
    operations: int = 0

    def value(self, node: Node) -> Value:
        """The value of a node; what it needs is lowered first."""
        view = self.fused.view
        node = view.seen(node)
        if node not in self.values:
            if node in view.constants:
                found = self.constant(node)
            elif node in self.own or node in view.floating:
                for each in node.all_input_nodes:
                    self.value(each)
                self.operations += 1
                found = lower(self.builder, node, self.value, view.real)
            elif isinstance(node.meta["val"], Tensor):
                found = self.load(node)
            else:
                at = self.numbers.setdefault(node, len(self.numbers))
                found = self.give("V", f"splat(number[{at}])", 0)
            self.values[node] = found
        return self.values[node]

    def constant(self, node: Node) -> Value:
        value, kind = self.fused.view.constants[node], kind_of(node, self.fused.view.real)
        number = (
            bool(value) if kind == "M" else value if isinstance(value, complex) else float(value)
        )
        return cast(self.builder, literal(self.builder, number), kind)

    def load(self, node: Node) -> Value:
        """A value from memory."""
        at = self.tensors.setdefault(node, len(self.tensors))
        kind, level = kind_of(node, self.fused.view.real), level_of(node)
        inner = f"get<{kind}, unit, full>(at[{at}], j, n)"
        get = inner if level == 2 else f"get_one<{kind}>(at[{at}])"
        self.loads[level].append(f"const {kind} in{at} = {get};")
        return self.give(kind, f"in{at}", level)

    def give(self, kind: Kind, name: str, level: int) -> Value:
        """A value that is given under a name."""
        found = placeholder(self.builder, kind, name)
        texts = (f"{name}.re", f"{name}.im") if kind == "C" else (name,)
        for line, text in zip(lines_of(found), texts, strict=True):
            self.names[line.id], self.levels[line.id] = text, level
        return found

    def print_lines(self, gives: list[Value]) -> tuple[list[str], list[str], list[str]]:
        """The rows of a loop by level, stores last."""
        lines = Lines(self.builder)
        lines.name({at: read_name(text) for at, text in self.names.items()})
        roots = [line for x in gives for line in lines_of(x)]
        order = [line for line in sort_lines(roots) if line.args]
        for line in order:
            self.levels[line.id] = max(self.levels.get(each.id, 0) for each in line.args)
        # every line is asked for, so that no product is fused with a sum: torch rounds both
        rows = [
            [*self.loads[level], *map(str, lines(n for n in order if self.levels[n.id] == level))]
            for level in range(3)
        ]
        for k, x in enumerate(gives, len(self.tensors)):
            lines(line for line in lines_of(x) if not line.args)
            texts = ", ".join(str(lines.read(line)) for line in lines_of(x))
            stored = f"C{{{texts}}}" if isinstance(x, tuple) else texts
            rows[2].append(f"put<unit, full>(at[{k}], j, n, {stored});")
        return rows[0], rows[1], rows[2]
