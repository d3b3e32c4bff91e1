"""Loops over points -> lines of a program, printed for the devices of codegen/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from torch import Tensor
from torch.fx import Node

from ingot.codegen.grids import GridLoop
from ingot.codegen.lines import Lines
from ingot.codegen.values import read_name
from ingot.fields.jit.fuse import Fused, Loop
from ingot.fields.jit.operations import (
    Kind,
    Value,
    cast,
    kind_of,
    literal,
    lower,
    placeholder,
    seen,
    sizes_of,
)
from ingot.fields.jit.view import View
from ingot.program import Builder, sort_lines
from ingot.program import Node as Line

__all__ = ["Printed", "print_loop"]

STREAMS = 20
"""How many fields a processor reads and writes at a time, each in one piece, at full speed."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A loop, the tensors and numbers that it reads, and those that it gives.

    last: the last stage of the loop that reads a tensor, or the one that gives it
    """

    loop: GridLoop
    tensors: tuple[Node, ...]
    numbers: tuple[Node, ...]
    gives: tuple[Node, ...]
    last: dict[Node, int]


def varies(node: Node) -> bool:
    """Whether a value from memory changes from point to point of a row."""
    sizes = sizes_of(node)
    return bool(sizes) and sizes[-1] != 1


def print_loop(fused: Fused, loop: Loop, name: str) -> Printed:
    """The lines of one loop, and what it reads and gives."""
    axes = max(len(loop.shape), 1)
    builder = Builder()
    lowering = Lowering(fused, frozenset(loop.nodes), axes, builder, Lines(builder))
    values = {node: lowering.value(node) for node in loop.nodes}
    gives = tuple(node for node in loop.nodes if node in fused.stored)
    results = [values[node] for node in gives]
    stages = lowering.stages(results)
    rows = lowering.print_lines(results, stages)
    inputs, real = tuple(lowering.tensors), fused.captured.real
    operands = (*inputs, *gives)
    kinds = tuple(kind_of(node, real) for node in operands)
    varying = tuple(k for k, node in enumerate(operands) if node in gives or varies(node))
    shifts = tuple(shifts_of(node, fused.view, axes) for node in operands)
    body = GridLoop(
        name, kinds, len(inputs), len(lowering.numbers), axes, rows[0], tuple(rows[1:]), shifts,
        varying,
    )  # fmt: skip
    last = {inputs[k]: at for at, stage in enumerate(stages) for k in stage.reads}
    last |= {gives[k]: at for at, stage in enumerate(stages) for k in stage.gives}
    return Printed(body, inputs, tuple(lowering.numbers), gives, last)


def shifts_of(node: Node, view: View, axes: int) -> tuple[int, ...]:
    """By how many cells along each axis of a loop a value is read from elsewhere."""
    by = [0] * axes
    if node in view.shifted:
        _, shifts, along = list[Any](node.args)
        rank = node.meta["val"].dim()
        for axis, shift in zip(along, shifts, strict=True):
            by[axes - rank + axis % rank] = shift
    return tuple(by)


def lines_of(x: Value) -> tuple[Line, ...]:
    """The lines of a value: one, or those of its parts."""
    return x if isinstance(x, tuple) else (x,)


@dataclass(frozen=True, slots=True)
class Stage:
    """Results of a loop, by number, which it gives for some points before it turns to the next.

    lines: those that change from point to point, by id; reads: the operands that do; again: the
    results of earlier stages that it reads
    """

    gives: tuple[int, ...]
    lines: frozenset[int]
    reads: frozenset[int]
    again: frozenset[int] = frozenset()

    def __or__(self, other: Stage) -> Stage:
        gives = tuple(sorted((*self.gives, *other.gives)))
        again = (self.again | other.again).difference(gives)
        return Stage(gives, self.lines | other.lines, self.reads | other.reads, again)

    @property
    def streams(self) -> int:
        """How many fields are read and written at a time."""
        return len(self.reads) + len(self.gives) + len(self.again)


def in_order(stages: Sequence[Stage]) -> list[Stage]:
    """Stages after those whose results they read; those that need each other as one."""
    left, found, done = [*stages], list[Stage](), set[int]()
    while left:
        found += [each for each in left if each.again <= done] or [reduce(or_, left)]
        done.update(*(each.gives for each in found))
        left = [each for each in left if done.isdisjoint(each.gives)]
    return found


def joined(stages: Sequence[Stage]) -> list[Stage]:
    """Stages that share lines as one, in the order of the last of each."""
    found: dict[int, Stage] = {}
    holder: dict[int, int] = {}
    for at, stage in enumerate(stages):
        alike = {holder[line] for line in stage.lines & holder.keys()}
        found[at] = reduce(or_, map(found.pop, alike), stage)
        holder |= dict.fromkeys(found[at].lines, at)
    return [*found.values()]


@dataclass(slots=True)
class Lowering:
    """The values of a loop's nodes, as lines.

    lines: what prints them, and knows how those that are given are written; varying: those that
    change within a row; loads: the rows that read memory, by operand; streams: the operands of
    lines that are read at every point; owner: the results that lines are, where these are given in
    stages
    """

    fused: Fused
    own: frozenset[Node]
    axes: int
    builder: Builder
    lines: Lines
    tensors: dict[Node, int] = field(default_factory=dict)
    numbers: dict[Node, int] = field(default_factory=dict)
    values: dict[Node, Value] = field(default_factory=dict)
    varying: set[int] = field(default_factory=set)
    loads: list[str] = field(default_factory=list)
    streams: dict[int, int] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)

    def value(self, node: Node) -> Value:
        """The value of a node; what it needs is lowered first."""
        view, node = self.fused.view, seen(node)
        if node not in self.values:
            if node in view.constants:
                found = self.constant(node)
            elif node in self.own or node in view.floating:
                for each in node.all_input_nodes:
                    self.value(each)
                found = lower(self.builder, node, self.value, self.fused.captured.real)
            elif isinstance(node.meta["val"], Tensor):
                found = self.load(node)
            else:
                at = self.numbers.setdefault(node, len(self.numbers))
                found = self.give("V", f"splat(number[{at}])")
            self.values[node] = found
        return self.values[node]

    def constant(self, node: Node) -> Value:
        value, kind = self.fused.view.constants[node], kind_of(node, self.fused.captured.real)
        number = (
            bool(value) if kind == "M" else value if isinstance(value, complex) else float(value)
        )
        return cast(self.builder, literal(self.builder, number), kind)

    def load(self, node: Node) -> Value:
        """A value from memory."""
        at = self.tensors.setdefault(node, len(self.tensors))
        kind = kind_of(node, self.fused.captured.real)
        by = shifts_of(node, self.fused.view, self.axes)[-1]
        found, get = self.give(kind, f"in{at}"), f"get_one<{kind}>(at[{at}])"
        if varies(node):
            self.streams |= {line.id: at for line in lines_of(found)}
            get = f"get_shifted<{kind}, {by}>(at[{at}], j)" if by else f"get<{kind}>(at[{at}], j)"
        self.loads.append(f"const {kind} in{at} = {get};")
        return found

    def give(self, kind: Kind, name: str) -> Value:
        """A value that is given under a name."""
        found = placeholder(self.builder, kind, name)
        texts = (f"{name}.re", f"{name}.im") if kind == "C" else (name,)
        self.lines.name_all(lines_of(found), map(read_name, texts))
        return found

    def stages(self, gives: Sequence[Value]) -> tuple[Stage, ...]:
        """The results in groups that share no lines: one group unless there are many streams.

        A group may read results of an earlier one, which still lie in the cache. On a GPU each
        thread has a point, and streams do not count.
        """
        for line in sort_lines(line for x in gives for line in lines_of(x)):
            if line.id in self.streams or any(each.id in self.varying for each in line.args):
                self.varying.add(line.id)
        whole = reduce(or_, (self.stage(k, x, {}) for k, x in enumerate(gives)))
        if self.fused.captured.schema.device != "cpu" or whole.streams <= STREAMS:
            return (whole,)
        for k, x in enumerate(gives):
            for line in lines_of(x):
                self.owner.setdefault(line.id, k)
        separate = joined([self.stage(k, x, self.owner) for k, x in enumerate(gives)])
        first, *rest = in_order(separate)
        found = [first]
        for stage in rest:
            both = found[-1] | stage
            if both.streams <= STREAMS:
                found[-1] = both
            else:
                found.append(stage)
        return tuple(found)

    def stage(self, number: int, value: Value, owner: Mapping[int, int]) -> Stage:
        """A result by itself; it reads the lines that other results own."""
        pending, met = list(lines_of(value)), set[int]()
        lines, reads, again = set[int](), set[int](), set[int]()
        while pending:
            line = pending.pop()
            if line.id in met or line.id not in self.varying:
                continue
            met.add(line.id)
            if line.id in self.streams:
                reads.add(self.streams[line.id])
            elif owner.get(line.id, number) != number:
                again.add(owner[line.id])
            else:
                lines.add(line.id)
                pending += line.args
        return Stage((number,), frozenset(lines), frozenset(reads), frozenset(again))

    def print_lines(self, gives: Sequence[Value], stages: Sequence[Stage]) -> list[list[str]]:
        """What is the same for all points of a row, and the rows of each stage, stores last."""
        lines = self.lines
        order = [n for n in sort_lines(n for x in gives for n in lines_of(x)) if n.args]
        # every line is asked for, so that no product is fused with a sum: torch rounds both
        shared = lines(n for n in order if n.id not in self.varying)
        once = set(range(len(self.loads))).difference(self.streams.values())
        rows = [[*(self.loads[at] for at in sorted(once)), *map(str, shared)]]
        for stage in stages:
            loads = [self.loads[at] for at in sorted(stage.reads)]
            for k in sorted(stage.again):
                loads += self.load_again(lines, gives[k], k)
            made = lines(n for n in order if n.id in stage.lines)
            stores = [self.store(lines, gives[k], len(self.tensors) + k) for k in stage.gives]
            rows.append([*loads, *map(str, made), *stores])
        return rows

    def load_again(self, lines: Lines, x: Value, number: int) -> list[str]:
        """The rows that read a result of an earlier stage, under the names of its own lines."""
        kind = "C" if isinstance(x, tuple) else "M" if x.is_condition else "V"
        got = f"get<{kind}>(at[{len(self.tensors) + number}], j)"
        if not isinstance(x, tuple):
            return [f"const {kind} {lines.read(x)} = {got};"]
        parts = [
            f"const V {lines.read(line)} = again{number}.{part};"
            for line, part in zip(x, ("re", "im"), strict=True)
            if line.id in self.varying and line.args and self.owner[line.id] == number
        ]
        return [f"const C again{number} = {got};", *parts]

    def store(self, lines: Lines, x: Value, at: int) -> str:
        """The row that writes a result."""
        lines(line for line in lines_of(x) if not line.args)
        texts = ", ".join(str(lines.read(line)) for line in lines_of(x))
        stored = f"C{{{texts}}}" if isinstance(x, tuple) else texts
        return f"put(at[{at}], j, {stored});"
