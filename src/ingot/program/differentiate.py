"""Derivatives of programs, taken on their lines: forward along columns, reverse from adjoints."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingot.program.builder import Axis, Builder, Node, sort_until
from ingot.program.operations import Tangent, Unstructured, operation, reduce_to
from ingot.program.points import Transposing

__all__ = [
    "Tangent", "Unstructured", "differentiate_along", "gradient", "jacobian", "pull", "push",
    "seed_axis", "seed_column",
]  # fmt: skip


def seed_axis(axis: Axis) -> Axis:
    """The axis that counts the entries of a column on `axis`."""
    return axis._replace(seed=axis.seed + 1)


def seed_column(builder: Builder, column: int, node: Node, *, dense: bool) -> Tangent:
    """The tangent of a column itself."""
    if not dense or not node.axes:
        return {(column, (0,) * len(node.axes)): builder.one}
    one = builder.one
    for axis in node.axes:
        one = builder.slopes.emit(
            "mul", one, builder.node("eye", (), None, (axis, seed_axis(axis)))
        )
    return {(column, ()): one}


def jacobian(
    builder: Builder, rows: Sequence[Node], columns: Sequence[Node], *, dense: bool = False
) -> list[Tangent]:
    """The sparse rows of the derivative of `rows` by `columns`."""
    seeds = {c.id: seed_column(builder, j, c, dense=dense) for j, c in enumerate(columns)}
    return push(builder, rows, seeds, columns)


def differentiate_along(
    builder: Builder, rows: Sequence[Node], columns: Sequence[Node], along: Sequence[Node]
) -> list[Node]:
    """The derivative of the rows along one direction, given as a line for every column."""
    seeds: dict[int, Tangent] = {c.id: {(0, ()): d} for c, d in zip(columns, along, strict=True)}
    return [t.get((0, ()), builder.zero) for t in push(builder, rows, seeds, columns)]


def push(
    builder: Builder, rows: Sequence[Node], seeds: Mapping[int, Any], columns: Sequence[Node]
) -> list[Tangent]:
    """The tangents of the rows, given those of the seeded lines; all else is constant."""
    known: dict[int, Any] = dict(seeds)
    for node in sort_until(rows, known):
        if any(known.get(a.id) for a in node.args):
            known[node.id] = operation(node.op).push(builder.slopes, node, known, columns)
    return [known.get(r.id, {}) for r in rows]


def gradient(builder: Builder, function: Node, by: Sequence[Node]) -> list[Node]:
    """The derivative of one scalar by each of several lines, in reverse."""
    return pull(builder, [function], [builder.one], by)


def pull(
    builder: Builder, roots: Sequence[Node], bars: Sequence[Node], by: Sequence[Node],
    stop: Iterable[Node] = (),
) -> list[Node]:  # fmt: skip
    """The adjoints of several lines, given those of the roots; `stop` are taken as constants."""
    found: dict[int, Any] = {}
    held = {n.id: n for n in stop}
    ends = held | {n.id: n for n in by}

    def add(node: Node, term: Any) -> None:
        before = found.get(node.id)
        if before is None:
            found[node.id] = term
        elif isinstance(term, dict):
            found[node.id] = before | {
                k: builder.emit("add", before[k], t) if k in before else t for k, t in term.items()
            }
        else:
            found[node.id] = builder.emit("add", before, term)

    lines = sort_until(roots, ends)
    points = Transposing(builder, lines, ends)
    for root, bar in zip(roots, bars, strict=True):
        add(root, reduce_to(builder.slopes, points.fit(bar, root), bar.axes, root))
    for node in reversed(lines):
        bar = found.get(node.id)
        if bar is None:
            continue
        for arg, term in operation(node.op).pull(builder.slopes, node, bar):
            if arg.id in held or (isinstance(term, Node) and term.is_constant(0.0)):
                continue
            add(arg, points.collect(term, arg, node))
    return [found.get(n.id, builder.zero) for n in by]
