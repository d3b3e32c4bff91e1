"""The operation `repeat`: derivatives of loops, and what evaluates and prints them.

Forward mode carries tangents along; reverse mode keeps what is carried at every step and runs the
transposed body backwards. Both are loops of this kind again, so that any order follows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.program.builder import Axis, Builder, Node, Slopes, Space, sort_lines
from ingot.program.differentiate import pull, push
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
from ingot.program.program import count_operations
from ingot.program.repetition import (
    Repeat,
    close_repeat,
    make_repeat,
    read_result,
    settle_columns,
)
from ingot.program.rewrite import Replay

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__: list[str] = []


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
        columns, rows = settle_columns(b, body, axes)
        opened = replace(
            repeat, columns=tuple(columns), rows=tuple(rows), given=(), slices=tuple(slices),
            stacked=tuple(stacked),
        )  # fmt: skip
        return close_repeat(b, opened, starts, parts)

    # derivatives

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> dict[int, Tangent]:
        """Tangents are carried along with the values."""
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

        def find_seeded(nodes: Sequence[Node]) -> list[tuple[int, Key]]:
            return [(i, key) for i, n in enumerate(nodes) for key in seeds.get(n.id, {})]

        def placeholders(nodes: Sequence[Node]) -> tuple[Node, ...]:
            return (*nodes, *(seeds[nodes[i].id][key] for i, key in find_seeded(nodes)))

        def find_pushed(nodes: Sequence[Node]) -> list[list[Node]]:
            zero = [b.zero]
            return [arguments.get((nodes[i].id, key), zero) for i, key in find_seeded(nodes)]

        carried = find_seeded(repeat.columns)
        kept = [(k, key) for k, row in enumerate(found[width:]) for key in row]
        both = replace(
            repeat, columns=placeholders(repeat.columns), given=placeholders(repeat.given),
            slices=placeholders(repeat.slices),
            rows=(*repeat.rows, *(found[j].get(key, own.zero) for j, key in carried)),
            stacked=(*repeat.stacked, *(found[width + k][key] for k, key in kept)),
        )  # fmt: skip
        first, fixed, along = map(find_pushed, (repeat.columns, repeat.given, repeat.slices))
        block = make_repeat(
            b, both, [*starts, *(t for (t,) in first)], [*given, *(t for (t,) in fixed)],
            [*parts, *along],
        )  # fmt: skip
        result: dict[int, Tangent] = {}
        for i, (j, key) in enumerate(carried):
            result.setdefault(j, {})[key] = read_result(b, block, width + i)[0]
        at = len(both.columns) + len(repeat.stacked)
        for i, (k, key) in enumerate(kept):
            for step, t in enumerate(read_result(b, block, at + i)):
                result.setdefault(repeat.item(k, step), {})[key] = t
        return result

    def pull(self, d: Slopes, node: Node, bar: dict[int, Node]) -> Bars:
        """The transposed body runs backwards, at what was carried at each step."""
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
        columns, rows = settle_columns(own, body, [*axes, *(None for _ in given)])
        live = [i for i, c in enumerate(columns) if not c.is_number]
        for name, extent in own.extents.items():
            b.add_axis(name, extent)
        roots = [*(rows[i] for i in live), *found[width + len(given) :]]
        read = {n.id for n in sort_lines(roots)}
        needed = [c for c in repeat.columns if c.id in read]
        history = b.node("repeat", node.args, replace(repeat, stacked=tuple(needed)))
        carried = [read_result(b, history, width + j) for j in range(len(needed))]
        back = replace(
            repeat, columns=tuple(columns[i] for i in live), rows=tuple(rows[i] for i in live),
            slices=(*needed, *repeat.slices, *slices),
            stacked=tuple(found[width + len(given) :]), is_reversed=not repeat.is_reversed,
        )  # fmt: skip
        begin = [*ends, *(b.zero for _ in given)]
        block = make_repeat(b, back, [begin[i] for i in live], given, [*carried, *parts, *stacks])
        on = [*(c.axes for c in repeat.columns), *(g.axes for g in repeat.given)]
        lines = [*starts, *given]
        results: Bars = [
            (lines[i], reduce_to(d, read_result(b, block, at)[0], on[i], lines[i]))
            for at, i in enumerate(live)
        ]
        for k, part in enumerate(parts):
            along = (*repeat.slices[k].axes, *(() if repeat.is_spread else (repeat.steps,)))
            for line, term in zip(part, read_result(b, block, len(live) + k), strict=True):
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
        return close_repeat(to.builder, opened, spread(to, starts, repeat.columns), slices)

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
                self._take_slice(on, repeat, line, part, k)
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

    def _take_slice(
        self, on: Arrays, repeat: Repeat, line: list[Node], part: list[Any], k: int
    ) -> Any:
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

    def write_cxx_block(self, lines: Any, node: Node) -> tuple[list[Any], dict[int, Any]]:
        repeat: Repeat = node.attr
        starts, given, parts = repeat.arguments(node.args)
        tag = f"{lines.prefix}{node.id}"
        flat = [a for part in parts for a in part]
        rows = lines([*starts, *given, *flat])
        columns = lines.lay_out(repeat.columns, f"c{tag}")
        size = lines.space.count_entries(repeat.columns)
        rows.append(f"V c{tag}[{max(size, 1)}], t{tag}[{max(size, 1)}];")
        rows += lines.store(columns, starts, [c.axes for c in repeat.columns])
        step = f"n{tag}"
        body = lines.nest(f"r{tag}_")
        body.name_all(repeat.columns, columns)
        body.name_all(repeat.given, [lines.names[a.id] for a in given])
        if repeat.is_spread and flat:
            rows.append(f"const V s{tag}[] = {{{', '.join(str(lines.read(a)) for a in flat)}}};")
        for i, (p, part) in enumerate(zip(repeat.slices, parts, strict=True)):
            if repeat.is_spread:
                body.name({p.id: _read_text(f"s{tag}[{i * repeat.count} + {step}]")})
            else:
                body.name({p.id: _read_at_step(lines.names[part[0].id], repeat.steps, step)})
        inner = body(repeat.roots)
        sizes = [lines.space.size(s.axes) for s in repeat.stacked]
        if sizes:
            rows.append(f"const Array<V, {sum(sizes) * repeat.count}> h{tag};")
        found: dict[int, Any] = dict(enumerate(columns))
        for i, line in enumerate(repeat.stacked):
            first = sum(sizes[:i]) * repeat.count
            entry = lines.index(line.axes) if line.axes else _read_text("0")
            at = _read_stacked(f"h{tag}", first, sizes[i], entry)
            inner += body.store([lambda place, at=at: at(step, place)], [line], [line.axes])
            for k in range(repeat.count) if repeat.is_spread else ():
                found[repeat.item(i, k)] = lambda place, at=at, k=k: at(str(k), place)
            if not repeat.is_spread:
                key = repeat.steps.key
                found[repeat.item(i)] = lambda place, at=at, key=key: at(place[key], place)
        next_ones = lines.lay_out(repeat.columns, f"t{tag}")
        inner += body.store(next_ones, repeat.rows, [c.axes for c in repeat.columns])
        head = f"for (int {step} = 0; {step} < {repeat.count}; ++{step})"
        if repeat.is_reversed:
            head = f"for (int {step} = {repeat.count - 1}; {step} >= 0; --{step})"
        inner.append(f"for (int i = 0; i < {size}; ++i) c{tag}[i] = t{tag}[i];")
        return [*rows, lines.write_block(head, inner)], found

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


def _read_text(text: str) -> Callable[[Place], str]:
    return lambda _: text


def _read_at_step(read: Callable[[Place], str], axis: Axis, step: str) -> Callable[[Place], str]:
    return lambda place: read({**place, axis.key: step})


def _read_stacked(
    array: str, first: int, size: int, entry: Callable[[Place], str]
) -> Callable[[str, Place], str]:
    return lambda step, place: f"{array}[{first} + ({step}) * {size} + {entry(place)}]"
