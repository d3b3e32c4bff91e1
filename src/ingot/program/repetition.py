"""Loops of a fixed number of steps: the body as lines of its own, over what is carried along."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ingot.errors import IngotError, Problem
from ingot.program.builder import Axis, Builder, Node, sort_lines
from ingot.program.program import Digested, digest_lines, find_frontier
from ingot.program.rewrite import Replay

if TYPE_CHECKING:
    pass

__all__ = [
    "Repeat", "close_repeat", "make_repeat", "read_result", "repeat_lines", "settle_columns",
]  # fmt: skip


_UNNAMED = Axis("")


@dataclass(frozen=True, eq=False)
class Repeat(Digested):
    """A number of steps, each on what the one before gave.

    The body's lines are its own, over placeholders: `columns` of what is carried, `given` of what
    every step reads from outside, `slices` of what differs from step to step. `rows` are what is
    carried on, `stacked` what is kept of each step. Its node reads first values of the columns,
    a line for each given, then one along the axis `steps` for each slice; its items are the last
    values of the columns, then the stacked along the axis.
    is_spread: the axis is written out, with an argument and an item for each entry.
    """

    count: int
    columns: tuple[Node, ...]
    rows: tuple[Node, ...]
    given: tuple[Node, ...] = ()
    slices: tuple[Node, ...] = ()
    stacked: tuple[Node, ...] = ()
    steps: Axis = _UNNAMED
    is_reversed: bool = False
    is_spread: bool = False

    def __post_init__(self) -> None:
        assert len(self.rows) == len(self.columns), "as much is carried on as was carried"

    @cached_property
    def digest(self) -> str:
        """What it does, as a hash."""
        head = [self.count, self.steps, self.is_reversed, self.is_spread, len(self.columns),
                [n.axes for n in self.placeholders], len(self.given)]  # fmt: skip
        return digest_lines(self.roots, self.placeholders, head)

    @property
    def placeholders(self) -> tuple[Node, ...]:
        """All that the body reads."""
        return (*self.columns, *self.given, *self.slices)

    @property
    def roots(self) -> tuple[Node, ...]:
        """All that the body gives."""
        return (*self.rows, *self.stacked)

    @property
    def order(self) -> range:
        """The steps in the order they run."""
        return range(self.count)[:: -1 if self.is_reversed else 1]

    def builder(self, extents: Mapping[str, int]) -> Builder:
        """A builder that continues the body's lines."""
        return Builder(extents, sort_lines((*self.roots, *self.placeholders)))

    def arguments(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], list[list[Any]]]:
        """A node's arguments, or what they stand for: first values, given, and those of slices."""
        first, second = len(self.columns), len(self.columns) + len(self.given)
        each = self.count if self.is_spread else 1
        rest = args[second:]
        parts = [list(rest[i * each : (i + 1) * each]) for i in range(len(self.slices))]
        return list(args[:first]), list(args[first:second]), parts

    def item(self, stacked: int, step: int = 0) -> int:
        """The number of the item that holds something stacked."""
        return len(self.columns) + stacked * (self.count if self.is_spread else 1) + step


def repeat_lines(
    b: Builder, count: int, body: Callable[[list[Node]], Sequence[Node]], starts: Sequence[Node]
) -> list[Node]:
    """What is carried after a number of steps; the body is called on placeholders.

    It is called again where what it gives lies on more axes than what it was called with, and once
    more to see that it gives the same lines: all steps run those of one call.
    """
    if count == 0:
        return list(starts)
    if count == 1:
        return [b.count_condition(row) for row in body(list(starts))]

    def call(columns: list[Node]) -> list[Node]:
        return [b.count_condition(row) for row in body(columns)]

    columns, rows = settle_columns(b, call, [s.axes for s in starts])
    opened = Repeat(count, tuple(columns), tuple(rows))
    node = close_repeat(b, opened, starts, [])
    if close_repeat(b, replace(opened, rows=tuple(call(columns))), starts, []) is not node:
        raise TypeError(
            "the body of repeat gives other lines when it is called again, but is traced once for"
            " all steps: carry what changes from step to step, such as a counter Scalar(0.0)"
        )
    return [read_result(b, node, i)[0] for i in range(len(starts))]


def settle_columns(
    b: Builder, body: Callable[[list[Node]], list[Node]], axes: Sequence[tuple[Axis, ...] | None]
) -> tuple[list[Node], list[Node]]:
    """Columns on axes that the body's rows do not leave, and these rows.

    Those whose axes are None are zero, and stay so where the rows are.
    """
    while True:
        columns = [b.zero if a is None else b.placeholder("unknown", a, "carried") for a in axes]
        rows = body(columns)
        wider = [
            None if a is None and r.is_constant(0.0) else b.union((c, r))
            for a, c, r in zip(axes, columns, rows, strict=True)
        ]
        if wider == list(axes):
            return columns, rows
        axes = wider


def close_repeat(
    b: Builder, opened: Repeat, starts: Sequence[Node], slices: Sequence[Sequence[Node]]
) -> Node:
    """The node of a loop whose body still stands in the builder around it, among other lines.

    What depends on its placeholders becomes its own; the lines that this reads, its arguments.
    """
    outside = find_frontier(opened.roots, (*opened.columns, *opened.slices))
    return make_repeat(b, replace(opened, given=outside), starts, outside, slices)


def make_repeat(
    b: Builder, repeat: Repeat, starts: Sequence[Node], given: Sequence[Node],
    slices: Sequence[Sequence[Node]],
) -> Node:  # fmt: skip
    """The node of a loop, its lines numbered from the beginning, less what nothing reads."""
    lines = sort_lines(repeat.roots, repeat.given)
    for node in lines:
        if node.op == "solve":
            raise IngotError([Problem(
                "repeated-solve", f"[{node.attr.name}] is solved inside the body of a repeat", None,
                "let it be solved before, or let what is repeated be unknowns of its system",
            )])  # fmt: skip
    read = {a.id for n in lines for a in n.args} | {n.id for n in repeat.roots}
    pairs = [(p, a) for p, a in zip(repeat.given, given, strict=True) if p.id in read]
    parts = [(p, part) for p, part in zip(repeat.slices, slices, strict=True) if p.id in read]
    own = Builder(b.extents)
    new: dict[int, Node] = {}
    for op, role, nodes in (
        ("unknown", "carried", repeat.columns), ("given", "given", [p for p, _ in pairs]),
        ("given", "slice", [p for p, _ in parts]),
    ):  # fmt: skip
        new |= {n.id: own.node(op, (), (role, i), n.axes) for i, n in enumerate(nodes)}
    copy = Replay(own, new)
    tidy = replace(
        repeat,
        columns=tuple(copy(n) for n in repeat.columns), rows=tuple(copy(n) for n in repeat.rows),
        given=tuple(copy(p) for p, _ in pairs), slices=tuple(copy(p) for p, _ in parts),
        stacked=tuple(copy(n) for n in repeat.stacked),
    )  # fmt: skip
    if tidy.steps == _UNNAMED:
        tidy = replace(tidy, steps=Axis(f"step of {tidy.digest[:8]}"))
    flat = [a for _, part in parts for a in part]
    return b.node("repeat", (*starts, *(a for _, a in pairs), *flat), tidy)


def read_result(b: Builder, node: Node, place: int) -> list[Node]:
    """What is carried or stacked in the end: an item, or one for each step once spread."""
    repeat: Repeat = node.attr
    width = len(repeat.columns)
    if place < width:
        return [b.node("item", (node,), place, repeat.columns[place].axes)]
    if repeat.is_spread:
        items = [repeat.item(place - width, k) for k in range(repeat.count)]
        return [b.node("item", (node,), i) for i in items]
    b.add_axis(repeat.steps.name, repeat.count)
    axes = b.union_axes((*repeat.stacked[place - width].axes, repeat.steps))
    return [b.node("item", (node,), repeat.item(place - width), axes)]
