"""Nodes -> C++ statements: straight lines with fused products, and loops over axes that remain."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ingot.codegen.loops import Loops
from ingot.codegen.outline import Outline, OutlineWriter
from ingot.codegen.statements import Block, Let, Row, count_up
from ingot.codegen.values import (
    Access,
    ArrayEntry,
    Constant,
    Definition,
    Spelled,
    cast_mask,
    find_operands,
    read_name,
    write_number,
)
from ingot.program import Axis, Node, Space, operation
from ingot.program.operations import Place
from ingot.program.schedule import Registers, schedule_lines, shorten_lives
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["LANE_REGISTERS", "Access", "Lines"]

LANE_REGISTERS = Registers(held=24, tried_lines=0)
"""The vector registers of a CPU are 32, of which expressions take some. Other orders gain nothing
there: what is put away lies in the first cache."""

Blocks = Callable[[Node, "Lines"], tuple[list[Row], Mapping[Any, Access]]]
"""Writes the statements of a solve or of linear systems, and tells where each result lies."""


class Lines:
    """Prints nodes as statements; products that sums alone read are fused with them.

    names: how each known node is written, given the loop indices of its axes; outline: which
    straight lines are twins, to be written once; blocks: who writes solves; prefix: what names
    begin with, where those of other lines are in sight; registers: those of the device.
    """

    def __init__(
        self, space: Space, blocks: Blocks | None = None, outline: Outline | None = None,
        prefix: str = "", registers: Registers = LANE_REGISTERS,
    ) -> None:  # fmt: skip
        self.space, self.registers = space, registers
        self.prefix = prefix
        self.blocks = blocks
        self.outline = outline
        self.names: dict[int, Access] = {}
        self.results: dict[int, Mapping[Any, Access]] = {}
        self.tables: list[Definition] = []
        self.calls: set[str] = set()

    def name(self, names: Mapping[int, Access]) -> None:
        """Make nodes known."""
        self.names.update(names)

    def name_all(self, nodes: Iterable[Node], names: Iterable[Access]) -> None:
        """Make nodes known under names in the same order."""
        self.names.update((n.id, name) for n, name in zip(nodes, names, strict=True))

    @property
    def reads(self) -> frozenset[str]:
        """The names of definitions that the lines printed so far read."""
        return frozenset(self.calls.union(*(table.names for table in self.tables)))

    def read(self, node: Node, place: Place | None = None) -> Spelled:
        """How a known node is written at a place."""
        return self.names[node.id](place or {})

    def list_numbers(self, nodes: Sequence[Node]) -> str | None:
        """The constants that some lines are, or None where one is no constant here."""
        found = [x for x in map(self.read, nodes) if isinstance(x, Constant)]
        return ", ".join(write_number(x.value) for x in found) if len(found) == len(nodes) else None

    def __call__(self, roots: Iterable[Node], later: Iterable[Node] = ()) -> list[Row]:
        """Statements for all that the roots need and that is not known yet.

        What `later` roots will read of it stays known after the loops it is computed in.
        """
        wanted = list(roots)
        rows: list[Row] = []
        for node in schedule_lines(wanted, self.names):
            if operation(node.op).is_block and node.id not in self.names:
                self.names[node.id] = _refuse_read
                statements, self.results[node.id] = operation(node.op).write_cxx_block(self, node)
                rows += statements
        lines = schedule_lines(wanted, self.names)
        for node in lines:
            if operation(node.op).is_leaf:
                self._name_leaf(node)
            elif node.op == "item":
                self.names[node.id] = self.results[node.args[0].id][node.attr]
        lines = [n for n in lines if n.id not in self.names]
        fused = _find_fused_products(lines, wanted)
        own = {n.id for n in lines}
        after = schedule_lines(later, own | self.names.keys())
        kept = {n.id for n in wanted} | {a.id for n in after for a in n.args if a.id in own}
        has_axes = any(n.axes for n in lines)
        if self.outline is not None and not has_axes:
            straight = [n for n in lines if n.id not in fused]
            return [*rows, *OutlineWriter(self, straight, fused, kept, self.outline).write()]
        if not has_axes:
            lines = self._shorten_lives(lines, fused, kept)
        return [*rows, *Loops(self, lines, kept, fused).write()]

    def _shorten_lives(
        self, lines: Sequence[Node], fused: set[int], kept: set[int]
    ) -> Sequence[Node]:
        """Straight lines in an order that takes few registers; what lies in arrays takes none."""
        straight = {n.id: n for n in lines if n.id not in fused}
        operands = {
            i: [*dict.fromkeys(
                a.id for a in find_operands(n, fused)
                if a.id in straight or (not a.axes and isinstance(self.read(a), str))
            )]
            for i, n in straight.items()
        }  # fmt: skip
        return shorten_lives([*straight.values()], operands, kept & straight.keys(), self.registers)

    def nest(self, prefix: str) -> "Lines":
        """A printer for lines inside braces among these, which knows no names yet."""
        inner = Lines(self.space, self.blocks, prefix=prefix, registers=self.registers)
        inner.tables, inner.calls = self.tables, self.calls
        return inner

    def lay_out(self, nodes: Sequence[Node], array: str) -> list[Access]:
        """Where each value lies in an array of all, one after another."""
        found: list[Access] = []
        at = 0
        for node in nodes:
            found.append(self.read_at(array, at, 1, node.axes))
            at += self.space.size(node.axes)
        return found

    def read_at(self, array: str, at: int, step: int, axes: tuple[Axis, ...]) -> Access:
        """ArrayEntry `at + step * i` of an array, i the flat index on the axes."""
        if not axes:
            return read_name(ArrayEntry(array, at))
        index = self.index(axes)
        return lambda place: ArrayEntry(array, at, index(place), step)

    def store(
        self, targets: Sequence[Access], nodes: Sequence[Node], axes: Sequence[tuple[Axis, ...]]
    ) -> list[Row]:
        """Assignments of nodes to places, in a loop where they lie on axes."""
        rows: list[Row] = []
        for target, node, on in zip(targets, nodes, axes, strict=True):
            place = {a.key: f"i{d}" for d, a in enumerate(on)}
            text = f"{target(place)} = {cast_mask(node)}{self.read(node, place)};"
            rows.append(f"{self.open_loops(on)}{text}")
        return rows

    def open_loops(self, axes: Sequence[Axis]) -> str:
        """The heads of nested loops over axes, whose indices are i0, i1, ..."""
        extents = (self.space.extent(a) for a in axes)
        return "".join(f"{count_up(f'i{d}', 0, extent)} " for d, extent in enumerate(extents))

    def start_function(self) -> "Lines":
        """A printer for the body of another function."""
        return Lines(self.space)

    def write_block(self, head: str, rows: Sequence[Row]) -> Row:
        """Statements inside braces, for operations that have lines inside."""
        return Block(head, rows)

    def _name_leaf(self, node: Node) -> None:
        if node.op == "const":
            self.names[node.id] = read_name(Constant(node.attr))
        elif node.op == "table":
            values = ", ".join(write_number(x) for x in node.attr)
            name = f"table_{hashlib.blake2b(values.encode(), digest_size=6).hexdigest()}"
            self.tables.append(Definition(f"constexpr real {name}[] = {{{values}}};", (name,)))
            index = self.index(node.axes)
            self.names[node.id] = lambda at: f"splat({name}[{index(at)}])"
        else:
            rule = operation(node.op)
            self.names[node.id] = lambda at: rule.write_cxx(self, node, at)

    def index(self, axes: Sequence[Axis]) -> Callable[[Place], str]:
        """The flat index of a place on some axes."""
        sizes = [self.space.extent(a) for a in axes]

        def flat(at: Place) -> str:
            text = ""
            for axis, size in zip(axes, sizes, strict=True):
                text = f"({text}) * {size} + {at[axis.key]}" if text else at[axis.key]
            return text

        return flat

    def write_line(
        self, node: Node, place: Place, fused: set[int], *, is_constant: bool = True
    ) -> Row:
        """The statement of one line at a place; what it reads is known."""
        kind, name = "M" if node.is_condition else "V", f"{self.prefix}x{node.id}"
        if node.op in ELEMENTWISE:
            read = (self.read(a, place) for a in find_operands(node, fused))
            names = tuple(x for x in read if isinstance(x, str))
            row = Let(kind, name, self.write_expression(node, place, fused), is_constant, names)
        else:
            row = operation(node.op).write_cxx_line(self, node, place, name)
        self.names[node.id] = read_name(name)
        return row

    def write_expression(self, node: Node, place: Place, fused: set[int]) -> str:
        """The right-hand side of an elementwise line."""
        row = ELEMENTWISE[node.op]
        products = [i for i, a in enumerate(node.args) if a.id in fused]
        args = ["" if i in products else str(self.read(a, place)) for i, a in enumerate(node.args)]
        for i in row.takes_conditions:
            if not node.args[i].is_condition:  # a condition that was folded to numbers
                args[i] = f"({args[i]} != V{{}})"
        if products and row.fused is not None:
            x, y = (self.read(i, place) for i in node.args[products[-1]].args)
            return row.fused[products[-1]].format(*args, x=x, y=y)
        first, last = (a.attr if a.op == "const" else None for a in (node.args[0], node.args[-1]))
        return row.write_cxx(args, first, last)


def _refuse_read(_: Place) -> Spelled:
    raise AssertionError("a solve has no value but its items")


def _find_fused_products(lines: Sequence[Node], wanted: Iterable[Node]) -> set[int]:
    """Products that only sums on the same axes read, each of which fuses this one and no other."""
    readers: dict[int, list[Node]] = {n.id: [] for n in lines}
    for node in lines:
        for arg in node.args:
            if arg.id in readers:
                readers[arg.id].append(node)
    rows = [(n, ELEMENTWISE[n.op]) for n in lines if n.op in ELEMENTWISE]
    products = (n for n, row in rows if row.is_product)
    fusing = {n.id for n, row in rows if row.fused is not None}
    kept = {n.id for n in wanted}
    found: set[int] = set()
    taken: set[int] = set()
    # those that few read first, since each saves a line, whatever the number of its readers
    for product in sorted(products, key=lambda n: len(readers[n.id])):
        by = readers[product.id]
        sums = {n.id for n in by if n.id in fusing and n.axes == product.axes}
        if product.id not in kept and by and len(sums) == len(by) and not sums & taken:
            found.add(product.id)
            taken |= sums
    return found
