"""Derivatives of programs, taken on their lines: forward along columns, reverse for one function.

A tangent is a sparse row: {(column, shifts): coefficient}. For a column on axes, entry `i` of the
row reads the column's entry `i + shift`; `dense` columns carry a seed axis of their own instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ingot.errors import IngotError, Problem
from ingot.program.graph import Axis, Graph, Node, ordered
from ingot.program.ops import partials
from ingot.program.program import Solve
from ingot.program.rewrite import substitute

__all__ = [
    "Key", "Linear", "Tangent", "Unstructured", "directional", "gradient", "jacobian", "push",
    "seed_axis", "unit",
]  # fmt: skip

Key = tuple[int, tuple[int, ...]]
Tangent = dict[Key, Node]


class Unstructured(Exception):
    """A sum or an index along an axis hides which entries a row reads; unroll the axis."""

    def __init__(self, axis: str) -> None:
        super().__init__(axis)
        self.axis = axis


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Linear systems with the Jacobian of a solve at its solution, one for each right-hand side.

    Its node reads the solution, what the residuals read, then the right-hand sides in turn; its
    items are (unknown, side).
    """

    solve: Solve
    sides: int

    @property
    def name(self) -> str:
        """The name of the solve."""
        return self.solve.name


def seed_axis(axis: Axis) -> Axis:
    """The axis that counts the entries of a column on `axis`."""
    return Axis(axis.name + "^", axis.offset)


def unit(graph: Graph, column: int, node: Node, *, dense: bool) -> Tangent:
    """The tangent of a column itself."""
    if not dense or not node.axes:
        return {(column, (0,) * len(node.axes)): graph.one}
    one = graph.one
    for axis in node.axes:
        seed = seed_axis(axis)
        graph.extents.setdefault(seed.name, graph.extents[axis.name])
        one = graph.emit("mul", one, graph.node("eye", (), None, (axis, seed)))
    return {(column, ()): one}


def jacobian(
    rows: Sequence[Node], columns: Sequence[Node], *, dense: bool = False
) -> list[Tangent]:
    """The sparse rows of the derivative of `rows` by `columns`."""
    if not rows:
        return []
    graph = rows[0].graph
    seeds = {c.id: unit(graph, j, c, dense=dense) for j, c in enumerate(columns)}
    return push(rows, seeds, columns)


def directional(rows: Sequence[Node], columns: Sequence[Node], along: Sequence[Node]) -> list[Node]:
    """The derivative of the rows along one direction, given as a node for every column."""
    graph = rows[0].graph
    seeds: dict[int, Tangent] = {c.id: {(0, ()): d} for c, d in zip(columns, along, strict=True)}
    return [t.get((0, ()), graph.zero) for t in push(rows, seeds, columns)]


def push(
    rows: Sequence[Node], seeds: Mapping[int, Tangent], columns: Sequence[Node]
) -> list[Tangent]:
    """The tangents of the rows, given those of the seeded nodes; all else is constant."""
    graph = rows[0].graph
    known: dict[int, Tangent] = dict(seeds)
    solved: dict[int, dict[int, Tangent]] = {}
    for node in ordered(rows):
        if node.id in known:
            continue
        if node.op == "item" and node.args[0].op == "solve":
            block = node.args[0]
            if block.id not in solved:
                solved[block.id] = _through_solve(block, known, columns)
            known[node.id] = solved[block.id][node.attr]
        elif node.op == "item":
            raise IngotError([Problem(
                "second-derivative", "a derivative of an implicit update is differentiated again",
                None, "differentiate the residual model instead",
            )])  # fmt: skip
        else:
            known[node.id] = _tangent(graph, node, known, columns)
    return [known[r.id] for r in rows]


def _tangent(
    graph: Graph, node: Node, known: Mapping[int, Tangent], columns: Sequence[Node]
) -> Tangent:
    if all(not known.get(a.id) for a in node.args):
        return {}
    if node.op == "sum":
        return _through_sum(graph, node, known[node.args[0].id], columns)
    if node.op in ("window", "pad"):
        return _through_shift(graph, node, known[node.args[0].id], columns)
    if node.op == "where":
        condition, a, b = node.args
        left, right = known[a.id], known[b.id]
        return _kept({
            key: graph.emit("where", condition, left.get(key, 0.0), right.get(key, 0.0))
            for key in {**left, **right}
        })  # fmt: skip
    result: Tangent = {}
    for arg, slope in partials(node):
        for key, t in known[arg.id].items():
            term = graph.emit("mul", slope, t)
            result[key] = graph.emit("add", result[key], term) if key in result else term
    return _kept(result)


def _kept(tangent: Tangent) -> Tangent:
    return {key: t for key, t in tangent.items() if not t.is_constant(0.0)}


def _through_sum(graph: Graph, node: Node, below: Tangent, columns: Sequence[Node]) -> Tangent:
    axis: Axis = node.attr
    result: Tangent = {}
    for (column, shifts), t in below.items():
        if shifts and any(a.name == axis.name for a in columns[column].axes):
            raise Unstructured(axis.name)
        if axis in t.axes:
            result[column, shifts] = graph.along("sum", t, axis=axis.name)
        else:
            result[column, shifts] = graph.emit("mul", t, graph.extent(axis))
    return _kept(result)


def _through_shift(graph: Graph, node: Node, below: Tangent, columns: Sequence[Node]) -> Tangent:
    held, first = node.attr
    now = next(a for a in node.axes if a.name == held.name)
    last = abs(now.offset - held.offset) - first
    result: Tangent = {}
    for (column, shifts), t in below.items():
        moved = list(shifts)
        if shifts:
            for i, axis in enumerate(columns[column].axes):
                if axis.name == held.name:
                    moved[i] += first if node.op == "window" else -first
        if held in t.axes:
            new = graph.along(node.op, t, axis=held.name, first=first, last=last)
        elif node.op == "window":
            new = t
        else:
            new = graph.emit("mul", t, graph.emit("sub", 1.0, graph.spot(held, first, last)))
        result[column, tuple(moved)] = new
    return _kept(result)


def _through_solve(
    block: Node, known: Mapping[int, Tangent], columns: Sequence[Node]
) -> dict[int, Tangent]:
    r"""Tangents of the unknowns by the implicit function theorem, $-A^{-1} B \, \dot g$."""
    graph, solve = block.graph, block.attr
    assert isinstance(solve, Solve)
    outside = block.args[len(solve.columns) :]
    items = [graph.node("item", (block,), i, c.axes) for i, c in enumerate(solve.columns)]
    if all(not known.get(g.id) for g in outside):
        return {i: {} for i in range(len(items))}
    rows = substitute(
        solve.rows, {c.id: u for c, u in zip(solve.columns, items, strict=True)}, graph
    )
    held = {n.id: known[n.id] for n in ordered(rows) if n.id in known and n.op != "item"}
    given = push(rows, {**held, **{u.id: {} for u in items}}, columns)
    keys = sorted({key for row in given for key in row})
    if any(shifts for _, shifts in keys):
        raise IngotError([Problem(
            "axis-derivative", f"'{solve.name}' is differentiated by a variable on an axis", None,
            "ask for dense columns",
        )])  # fmt: skip
    sides = [graph.emit("neg", row.get(key, graph.zero)) for key in keys for row in given]
    node = graph.node("linear", (*items, *outside, *sides), Linear(solve, len(keys)))
    result: dict[int, Tangent] = {i: {} for i in range(len(items))}
    for k, key in enumerate(keys):
        extra = _seeds_of(given, key)
        for i, item in enumerate(items):
            result[i][key] = graph.node("item", (node,), (i, k), (*item.axes, *extra))
    return result


def _seeds_of(rows: Sequence[Tangent], key: Key) -> tuple[Axis, ...]:
    found: dict[str, Axis] = {}
    for row in rows:
        if key in row:
            found.update({a.name: a for a in row[key].axes if a.name.endswith("^")})
    return tuple(found.values())


def gradient(function: Node, by: Iterable[Node]) -> list[Node]:
    """The derivative of one scalar by each of several nodes, in reverse."""
    graph = function.graph
    bars: dict[int, Node] = {function.id: graph.one}
    for node in reversed(ordered([function])):
        bar = bars.get(node.id)
        if bar is None or not node.args:
            continue
        for arg, term in _pulled(graph, node, bar):
            term = _summed(graph, term, node, arg)
            bars[arg.id] = graph.emit("add", bars[arg.id], term) if arg.id in bars else term
    return [bars.get(n.id, graph.zero) for n in by]


def _pulled(graph: Graph, node: Node, bar: Node) -> list[tuple[Node, Node]]:
    if node.op == "sum":
        return [(node.args[0], bar)]
    if node.op in ("window", "pad"):
        held, first = node.attr
        now = next(a for a in node.axes if a.name == held.name)
        last = abs(now.offset - held.offset) - first
        back = "pad" if node.op == "window" else "window"
        if now not in bar.axes and back == "pad":
            spot = graph.spot(now, first, last)
            return [(node.args[0], graph.emit("mul", bar, graph.emit("sub", 1.0, spot)))]
        return [(node.args[0], graph.along(back, bar, axis=held.name, first=first, last=last))]
    if node.op == "where":
        condition, a, b = node.args
        return [
            (a, graph.emit("where", condition, bar, 0.0)),
            (b, graph.emit("where", condition, 0.0, bar)),
        ]
    if node.op in ("item", "solve", "linear"):
        raise IngotError([Problem(
            "reverse-through-solve",
            "the gradient of a function of an implicit update is asked for",
            None, "move the update out of the inner model",
        )])  # fmt: skip
    return [(arg, graph.emit("mul", bar, slope)) for arg, slope in partials(node)]


def _summed(graph: Graph, term: Node, node: Node, arg: Node) -> Node:
    """Summed over the axes along which the node spreads its argument."""
    names = {a.name for a in arg.axes}
    for axis in node.axes:
        if axis.name in names:
            continue
        if axis in term.axes:
            term = graph.along("sum", term, axis=axis.name)
        else:
            term = graph.emit("mul", term, graph.extent(axis))
    return term
