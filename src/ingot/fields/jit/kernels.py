"""Loops over points -> C++ or CUDA: one body for all devices, in the frame of one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.clusters import Loop
from ingot.fields.jit.frames import Body, Frame
from ingot.fields.jit.fuse import Fused
from ingot.fields.jit.nodes import sizes_of
from ingot.fields.jit.operations import Kind, Term, literal
from ingot.fields.jit.terms import applied, cast, kind_of

__all__ = ["Printed", "kernel"]

Level = int
"""Where a value changes: 0 nowhere, 1 from row to row, 2 from point to point."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A loop as text, the tensors and numbers that it reads, and those that it gives."""

    text: str
    tensors: tuple[Node, ...]
    numbers: tuple[Node, ...]
    gives: tuple[Node, ...]
    varying: tuple[int, ...]
    operations: int


def level_of(node: Node) -> Level:
    """Where a value from memory changes."""
    sizes = sizes_of(node)
    if sizes and sizes[-1] != 1:
        return 2
    return 1 if any(size != 1 for size in sizes) else 0


def kernel(fused: Fused, loop: Loop, name: str, frame: Frame) -> Printed:
    """The text of one loop."""
    return Writer(fused, loop).printed(name, frame)


class Writer:
    """Writes one loop, its lines by level."""

    def __init__(self, fused: Fused, loop: Loop) -> None:
        self.fused, self.loop, self.view = fused, loop, fused.view
        self.own = set(loop.nodes)
        self.tensors: dict[Node, int] = {}
        self.numbers: dict[Node, int] = {}
        self.terms: dict[Node, tuple[Term, Level]] = {}
        self.lines: tuple[list[str], list[str], list[str]] = ([], [], [])
        self.operations = 0

    def printed(self, name: str, frame: Frame) -> Printed:
        """All of it."""
        terms = {node: self.term(node) for node in self.loop.nodes}
        gives = tuple(node for node in self.loop.nodes if node in self.fused.stored)
        inputs = tuple(self.tensors)
        self.lines[2].extend(
            f"put<unit, full>(at[{len(inputs) + k}], j, n, {terms[node][0].text});"
            for k, node in enumerate(gives)
        )
        kinds: list[Kind] = [kind_of(node, self.view.real) for node in (*inputs, *gives)]
        axes = max(len(self.loop.shape), 1)
        body = Body(name, tuple(kinds), len(self.numbers), axes, self.lines)
        varying = [k for k, node in enumerate(inputs) if level_of(node) == 2]
        varying += range(len(inputs), len(kinds))
        return Printed(
            "\n".join(frame.around(body)), inputs, tuple(self.numbers), gives, tuple(varying),
            self.operations,
        )  # fmt: skip

    def term(self, node: Node) -> tuple[Term, Level]:
        """The term of a node and its level; what it needs is written first."""
        node = self.view.seen(node)
        if node in self.terms:
            return self.terms[node]
        if node in self.view.constants:
            found: tuple[Term, Level] = (self.constant(node), 0)
        elif node in self.own or node in self.view.floating:
            found = self.computed(node)
        elif isinstance(node.meta["val"], Tensor):
            found = self.loaded(node)
        else:
            at = self.numbers.setdefault(node, len(self.numbers))
            found = (Term(f"splat(number[{at}])", "V"), 0)
        self.terms[node] = found
        return found

    def constant(self, node: Node) -> Term:
        value, kind = self.view.constants[node], kind_of(node, self.view.real)
        if kind == "M":
            return literal(bool(value))
        return cast(literal(value if isinstance(value, complex) else float(value)), kind)

    def loaded(self, node: Node) -> tuple[Term, Level]:
        """A value from memory."""
        at = self.tensors.setdefault(node, len(self.tensors))
        kind, level = kind_of(node, self.view.real), level_of(node)
        inner = f"get<{kind}, unit, full>(at[{at}], j, n)"
        get = inner if level == 2 else f"get_one<{kind}>(at[{at}])"
        self.lines[level].append(f"const {kind} x{at} = {get};")
        return Term(f"x{at}", kind), level

    def computed(self, node: Node) -> tuple[Term, Level]:
        """A value that an operation gives."""
        levels = [self.term(each)[1] for each in node.all_input_nodes]
        level = max(levels, default=0)
        found = applied(node, lambda each: self.term(each)[0], self.view.real)
        text = f"v{self.operations}"
        self.operations += 1
        self.lines[level].append(f"const {found.kind} {text} = {found.text};  // {node.name}")
        return Term(text, found.kind), level
