"""Loops of a fixed number of steps: the body as lines of its own, over what is carried along.

Forward mode carries tangents along; reverse mode keeps what is carried at every step and runs the
transposed body backwards. Both are loops of this kind again, so that any order follows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.program.builder import Axis, Builder, Node, Slopes, Space, sort_lines
from ingot.program.operations import (
    Arrays,
    Bars,
    Key,
    Known,
    Nodes,
    Operation,
    Place,
    Tangent,
    Unstructured,
    reduce_to,
)  # fmt: skip
from ingot.program.program import Digested, count_operations, digest_lines, find_frontier
from ingot.program.rewrite import Replay

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__ = ["Repeat", "repeat_lines"]


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

    It is called again where what it gives lies on more axes than what it was called with.
    """
    if count == 0:
        return list(starts)
    if count == 1:
        return [b.count_condition(row) for row in body(list(starts))]
    axes = [s.axes for s in starts]
    columns, rows = _settle(b, lambda c: [b.count_condition(row) for row in body(c)], axes)
    node = _close(b, Repeat(count, tuple(columns), tuple(rows)), starts, [])
    return [_read(b, node, i)[0] for i in range(len(starts))]


def _settle(
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


def _close(
    b: Builder, opened: Repeat, starts: Sequence[Node], slices: Sequence[Sequence[Node]]
) -> Node:
    """The node of a loop whose body still stands in the builder around it, among other lines.

    What depends on its placeholders becomes its own; the lines that this reads, its arguments.
    """
    outside = find_frontier(opened.roots, (*opened.columns, *opened.slices))
    return _make(b, replace(opened, given=outside), starts, outside, slices)


def _make(
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


def _read(b: Builder, node: Node, place: int) -> list[Node]:
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


class _Repeat(Operation):
    name = "repeat"
    is_block = True

    def verify(self, space: Space, node: Node) -> None:
        repeat: Repeat = node.attr
        starts, given, _ = repeat.arguments(node.args)
        each = repeat.count if repeat.is_spread else 1
        reads = len(repeat.columns) + len(repeat.given) + each * len(repeat.slices)
        assert len(node.args) == reads, f"repeat {node} has {len(node.args)} arguments"
        for line, on in (*zip(starts, repeat.columns, strict=True),
                         *zip(repeat.rows, repeat.columns, strict=True)):  # fmt: skip
            assert set(line.axes) <= set(on.axes), f"repeat {node}: axes of {line}"
        for line, placeholder in zip(given, repeat.given, strict=True):
            assert set(line.axes) == set(placeholder.axes), f"repeat {node}: axes of {line}"

    def inside(self, node: Node) -> tuple[Sequence[Node], Sequence[Node]]:
        return node.attr.roots, node.attr.placeholders

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        repeat: Repeat = node.attr
        starts, given, parts = repeat.arguments(args)
        plain = len(set(given)) == len(given) and not any(a.is_number for a in given)
        same = all(a.axes == g.axes for a, g in zip(given, repeat.given, strict=True))
        fits = all({*a.axes} <= {*c.axes} for a, c in zip(starts, repeat.columns, strict=True))
        if plain and same and fits:
            return b.node("repeat", args, repeat)
        slices = [b.placeholder("given", s.axes, "slice") for s in repeat.slices]
        stacked: list[Node] = []

        def body(columns: list[Node]) -> list[Node]:
            names = zip(repeat.placeholders, (*columns, *given, *slices), strict=True)
            replay = Replay(b, {p.id: v for p, v in names})
            stacked[:] = map(replay, repeat.stacked)
            return [replay(r) for r in repeat.rows]

        axes = [b.union((s, c)) for s, c in zip(starts, repeat.columns, strict=True)]
        columns, rows = _settle(b, body, axes)
        opened = replace(
            repeat, columns=tuple(columns), rows=tuple(rows), given=(), slices=tuple(slices),
            stacked=tuple(stacked),
        )  # fmt: skip
        return _close(b, opened, starts, parts)

    # derivatives

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> dict[int, Tangent]:
        """Tangents are carried along with the values."""
        from ingot.program.differentiate import push

        b, repeat = d.builder, node.attr
        starts, given, parts = repeat.arguments(node.args)
        lines = [*([a] for a in starts), *([a] for a in given), *parts]
        arguments: dict[tuple[int, Key], list[Node]] = {}
        for p, part in zip(repeat.placeholders, lines, strict=True):
            for key in dict.fromkeys(k for a in part for k in known.get(a.id, {})):
                arguments[p.id, key] = [known.get(a.id, {}).get(key, b.zero) for a in part]
        if not arguments:
            return {}
        keys = {key for _, key in arguments}
        axes = {
            at: tuple(a for a in b.union(part) if a != repeat.steps)
            for at, part in arguments.items()
        }
        while True:
            own = repeat.builder(b.extents)
            seeds: dict[int, Tangent] = {}
            for (i, key), on in axes.items():
                seeds.setdefault(i, {})[key] = own.placeholder("unknown", on, "tangent")
            found = push(own, repeat.roots, seeds, columns)
            wider = dict(axes)
            for column, row in zip(repeat.columns, found, strict=False):
                for key, t in row.items():
                    if key not in keys:
                        raise Unstructured(columns[key[0]].axes[0].name)
                    on = axes.get((column.id, key), ())
                    wider[column.id, key] = own.union_axes((*on, *t.axes))
            if wider == axes:
                break
            axes = wider
        width = len(repeat.columns)

        def seeded(nodes: Sequence[Node]) -> list[tuple[int, Key]]:
            return [(i, key) for i, n in enumerate(nodes) for key in seeds.get(n.id, {})]

        def placeholders(nodes: Sequence[Node]) -> tuple[Node, ...]:
            return (*nodes, *(seeds[nodes[i].id][key] for i, key in seeded(nodes)))

        def pushed(nodes: Sequence[Node]) -> list[list[Node]]:
            zero = [b.zero]
            return [arguments.get((nodes[i].id, key), zero) for i, key in seeded(nodes)]

        carried = seeded(repeat.columns)
        kept = [(k, key) for k, row in enumerate(found[width:]) for key in row]
        both = replace(
            repeat, columns=placeholders(repeat.columns), given=placeholders(repeat.given),
            slices=placeholders(repeat.slices),
            rows=(*repeat.rows, *(found[j].get(key, own.zero) for j, key in carried)),
            stacked=(*repeat.stacked, *(found[width + k][key] for k, key in kept)),
        )  # fmt: skip
        block = _make(
            b, both, [*starts, *(t for (t,) in pushed(repeat.columns))],
            [*given, *(t for (t,) in pushed(repeat.given))], [*parts, *pushed(repeat.slices)],
        )  # fmt: skip
        result: dict[int, Tangent] = {}
        for i, (j, key) in enumerate(carried):
            result.setdefault(j, {})[key] = _read(b, block, width + i)[0]
        first = len(both.columns) + len(repeat.stacked)
        for i, (k, key) in enumerate(kept):
            for step, t in enumerate(_read(b, block, first + i)):
                result.setdefault(repeat.item(k, step), {})[key] = t
        return result

    def pull(self, d: Slopes, node: Node, bar: dict[int, Node]) -> Bars:
        """The transposed body runs backwards, at what was carried at each step."""
        from ingot.program.differentiate import pull

        b, repeat = d.builder, node.attr
        starts, given, parts = repeat.arguments(node.args)
        width, each = len(repeat.columns), repeat.count if repeat.is_spread else 1
        ends = [bar.get(j, b.zero) for j in range(width)]
        stacks = [
            [bar.get(repeat.item(k, step), b.zero) for step in range(each)]
            for k in range(len(repeat.stacked))
        ]
        own = repeat.builder(b.extents)
        slices = [
            own.placeholder("given", tuple(a for a in b.union(t) if a != repeat.steps), "slice")
            for t in stacks
        ]
        found: list[Node] = []

        def body(columns: list[Node]) -> list[Node]:
            bars = [*columns[:width], *slices]
            found[:] = pull(own, repeat.roots, bars, repeat.placeholders)
            sums = zip(columns[width:], found[width:], strict=False)
            return [*found[:width], *(own.emit("add", s, x) for s, x in sums)]

        axes = [None if e.is_constant(0.0) else e.axes for e in ends]
        columns, rows = _settle(own, body, [*axes, *(None for _ in given)])
        live = [i for i, c in enumerate(columns) if not c.is_number]
        for name, extent in own.extents.items():
            b.add_axis(name, extent)
        roots = [*(rows[i] for i in live), *found[width + len(given) :]]
        read = {n.id for n in sort_lines(roots)}
        needed = [c for c in repeat.columns if c.id in read]
        history = b.node("repeat", node.args, replace(repeat, stacked=tuple(needed)))
        carried = [_read(b, history, width + j) for j in range(len(needed))]
        back = replace(
            repeat, columns=tuple(columns[i] for i in live), rows=tuple(rows[i] for i in live),
            slices=(*needed, *repeat.slices, *slices),
            stacked=tuple(found[width + len(given) :]), is_reversed=not repeat.is_reversed,
        )  # fmt: skip
        begin = [*ends, *(b.zero for _ in given)]
        block = _make(b, back, [begin[i] for i in live], given, [*carried, *parts, *stacks])
        on = [*(c.axes for c in repeat.columns), *(g.axes for g in repeat.given)]
        lines = [*starts, *given]
        results: Bars = [
            (lines[i], reduce_to(d, _read(b, block, at)[0], on[i], lines[i]))
            for at, i in enumerate(live)
        ]
        for k, part in enumerate(parts):
            along = (*repeat.slices[k].axes, *(() if repeat.is_spread else (repeat.steps,)))
            for line, term in zip(part, _read(b, block, len(live) + k), strict=True):
                results.append((line, reduce_to(d, term, along, line)))
        return results

    # written out

    def unroll_block(self, to: "Unrolling", node: Node) -> Node:
        """The same steps on lines without axes."""
        repeat: Repeat = node.attr
        starts, given, parts = repeat.arguments(node.args)
        inner = to.inside({
            g.id: {e: to.at(a, g.axes, e) for e in to.space.entries(g.axes)}
            for g, a in zip(repeat.given, given, strict=True)
        })  # fmt: skip
        for op, nodes in (("unknown", repeat.columns), ("given", repeat.slices)):
            for p in nodes:
                inner.done[p.id] = {
                    e: to.builder.placeholder(op, to.kept(p.axes), "repeat")
                    for e in to.space.entries(p.axes)
                }

        def spread(work: "Unrolling", nodes: Sequence[Node], on: Sequence[Node]) -> list[Node]:
            return [
                work.at(n, p.axes, e)
                for n, p in zip(nodes, on, strict=True)
                for e in to.space.entries(p.axes)
            ]

        slices: list[list[Node]] = []
        for p, part in zip(repeat.slices, parts, strict=True):
            for e in to.space.entries(p.axes):
                if repeat.is_spread:
                    slices.append([to.at(a, p.axes, e) for a in part])
                else:
                    along = (*p.axes, repeat.steps)
                    places = [(*e, k) for k in range(repeat.count)]
                    slices.append([to.at(part[0], along, place) for place in places])
        opened = replace(
            repeat,
            columns=tuple(spread(inner, repeat.columns, repeat.columns)),
            rows=tuple(spread(inner, repeat.rows, repeat.columns)),
            slices=tuple(spread(inner, repeat.slices, repeat.slices)),
            stacked=tuple(spread(inner, repeat.stacked, repeat.stacked)),
            given=(), is_spread=True,
        )  # fmt: skip
        return _close(to.builder, opened, spread(to, starts, repeat.columns), slices)

    def unroll_item(self, to: "Unrolling", node: Node) -> dict[tuple[int, ...], Node]:
        """The items of the unrolled loop, by entry."""
        block = node.args[0]
        repeat: Repeat = block.attr
        new = to.done[block.id][()]
        width = len(repeat.columns)
        axes = to.kept(node.axes)
        if node.attr < width:
            first = to.space.count_entries(repeat.columns[: node.attr])
            entries = to.space.entries(node.axes)
            return {
                e: to.builder.node("item", (new,), first + i, axes) for i, e in enumerate(entries)
            }
        each = repeat.count if repeat.is_spread else 1
        k, step = divmod(node.attr - width, each)
        first = to.space.count_entries(repeat.stacked[:k])
        own = repeat.stacked[k].axes
        found = {}
        for e in to.space.entries(node.axes):
            at = dict(zip([a.key for a in node.axes], e, strict=True))
            place = to.space.entries(own).index(tuple(at[a.key] for a in own))
            when = step if repeat.is_spread else at[repeat.steps.key]
            found[e] = to.builder.node("item", (new,), new.attr.item(first + place, when), axes)
        return found

    # evaluated and printed

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        repeat: Repeat = node.attr
        values, given, parts = repeat.arguments(args)
        lines = repeat.arguments(node.args)[2]
        kept: dict[int, list[Any]] = {}
        for k in repeat.order:
            slices = [
                self._slice(on, repeat, line, part, k)
                for line, part in zip(lines, parts, strict=True)
            ]
            names = (p.id for p in repeat.placeholders)
            found = on.replay(
                repeat.roots, dict(zip(names, (*values, *given, *slices), strict=True))
            )
            values, kept[k] = list(found[: len(values)]), list(found[len(values) :])
        results = dict(enumerate(values))
        for i in range(len(repeat.stacked)):
            stack = [kept[k][i] for k in range(repeat.count)]
            if repeat.is_spread:
                results |= {repeat.item(i, k): x for k, x in enumerate(stack)}
            else:
                results[repeat.item(i)] = self._stack(on, stack, repeat.steps)
        return results

    def _slice(self, on: Arrays, repeat: Repeat, line: list[Node], part: list[Any], k: int) -> Any:
        if repeat.is_spread:
            return part[k]
        if repeat.steps not in line[0].axes:
            return part[0]
        return on.spell(f"{{0}}.narrow({{dim}}, {k}, 1)",
                        lambda x, dim: np.take(x, [k], axis=dim), part, repeat.steps)  # fmt: skip

    def _stack(self, on: Arrays, entries: Sequence[Any], axis: Axis) -> Any:
        def stack(*entries_and_dim: Any) -> np.ndarray:
            *entries, dim = entries_and_dim
            return np.concatenate(np.broadcast_arrays(*entries), axis=dim)

        listed = ", ".join(f"{{{i}}}" for i in range(len(entries)))
        # an entry may lack leading dimensions that it does not vary along
        whole = f"(x[(None,) * (-{{dim}} - x.dim())] for x in ({listed}))"
        return on.spell(
            f"torch.cat(torch.broadcast_tensors(*{whole}), {{dim}})", stack, entries, axis
        )

    def write_cxx_block(self, lines: Any, node: Node) -> tuple[list[str], dict[int, Any]]:
        repeat: Repeat = node.attr
        starts, given, parts = repeat.arguments(node.args)
        tag, indent = f"{lines.prefix}{node.id}", lines.indent
        flat = [a for part in parts for a in part]
        rows = lines([*starts, *given, *flat])
        columns = lines.lay_out(repeat.columns, f"c{tag}")
        size = lines.space.count_entries(repeat.columns)
        rows.append(f"{indent}V c{tag}[{max(size, 1)}], t{tag}[{max(size, 1)}];")
        rows += lines.store(columns, starts, [c.axes for c in repeat.columns], indent)
        step = f"n{tag}"
        body = lines.nest(f"r{tag}_")
        body.name_all(repeat.columns, columns)
        body.name_all(repeat.given, [lines.names[a.id] for a in given])
        if repeat.is_spread and flat:
            rows.append(f"{indent}const V s{tag}[] = {{{', '.join(map(lines.read, flat))}}};")
        for i, (p, part) in enumerate(zip(repeat.slices, parts, strict=True)):
            if repeat.is_spread:
                body.name({p.id: _word(f"s{tag}[{i * repeat.count} + {step}]")})
            else:
                body.name({p.id: _at_step(lines.names[part[0].id], repeat.steps, step)})
        inner = body(repeat.roots)
        sizes = [lines.space.size(s.axes) for s in repeat.stacked]
        if sizes:
            rows.append(f"{indent}const Array<V> h{tag}({sum(sizes) * repeat.count});")
        found: dict[int, Any] = dict(enumerate(columns))
        for i, line in enumerate(repeat.stacked):
            first = sum(sizes[:i]) * repeat.count
            entry = lines.index(line.axes) if line.axes else _word("0")
            at = _stacked(f"h{tag}", first, sizes[i], entry)
            inner += body.store(
                [lambda place, at=at: at(step, place)], [line], [line.axes], body.indent
            )
            for k in range(repeat.count) if repeat.is_spread else ():
                found[repeat.item(i, k)] = lambda place, at=at, k=k: at(str(k), place)
            if not repeat.is_spread:
                key = repeat.steps.key
                found[repeat.item(i)] = lambda place, at=at, key=key: at(place[key], place)
        next_ones = lines.lay_out(repeat.columns, f"t{tag}")
        inner += body.store(next_ones, repeat.rows, [c.axes for c in repeat.columns], body.indent)
        head = f"for (int {step} = 0; {step} < {repeat.count}; ++{step}) {{"
        if repeat.is_reversed:
            head = f"for (int {step} = {repeat.count - 1}; {step} >= 0; --{step}) {{"
        return [
            *rows, f"{indent}{head}", *inner,
            f"{body.indent}for (int i = 0; i < {size}; ++i) c{tag}[i] = t{tag}[i];",
            f"{indent}}}",
        ], found  # fmt: skip

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        repeat: Repeat = node.attr
        back = " backwards" if repeat.is_reversed else ""
        starts = [f"c{i} = {x}" for i, x in enumerate(args[: len(repeat.columns)])]
        return f"repeat({repeat.count} steps{back} from {', '.join(starts)})"

    def name_inside(self, node: Node, args: Sequence[str]) -> tuple[list[str], list[str]]:
        repeat: Repeat = node.attr
        starts, given, parts = repeat.arguments(args)
        carried = [f"c{i}" for i in range(len(starts))]
        slices = [f"{part[0]} of the step" for part in parts]
        kept = [f"kept {i}" for i in range(len(repeat.stacked))]
        return [*carried, *given, *slices], [*(f"next {c}" for c in carried), *kept]

    def cost(self, space: Space, node: Node) -> int:
        # as of a solve's residuals, what is written counts, and not how often it runs
        return count_operations(space, node.attr.roots)


def _word(text: str) -> Callable[[Place], str]:
    return lambda _: text


def _at_step(read: Callable[[Place], str], axis: Axis, step: str) -> Callable[[Place], str]:
    return lambda place: read({**place, axis.key: step})


def _stacked(
    array: str, first: int, size: int, entry: Callable[[Place], str]
) -> Callable[[str, Place], str]:
    return lambda step, place: f"{array}[{first} + ({step}) * {size} + {entry(place)}]"
