"""Programs run line by line on NumPy arrays, solves by a dense Newton's method: nothing of an
executor, of an elimination or of a pass is used.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ingot.program import Builder, Linear, Node, Program, Solve, Space, sort_lines
from ingot.program.arrays import ArrayLayout, NumpyArrays
from ingot.program.differentiate import jacobian, seed_axis
from ingot.program.eliminate import Eliminated

Array = np.ndarray
Numbers = dict[int, Array]
STEPS = 60
"""Dense Newton's steps; it stops once an update no longer changes anything."""


def evaluate_program(
    program: Program, inputs: Mapping[str, Array], *, factored: bool = False
) -> dict[str, Array]:
    """The outputs `(points, *axes, *base)`, given the inputs in that shape; parameters are theirs.

    factored: linear systems are solved by the lines that the pass `factor` wrote, where it did.
    """
    points = max((len(np.asarray(x)) for x in inputs.values()), default=1)
    numbers: Numbers = {}
    for v in program.inputs:
        numbers |= _by_node(program, v, np.asarray(inputs[v.name], float))
    for p in program.parameters:
        numbers |= _by_node(program, p.variable, p.value.data.double().numpy()[None])
    found = evaluate_lines(program, program.roots, numbers, points, factored=factored)
    rows = iter(found)
    outputs: dict[str, Array] = {}
    for v in program.outputs:
        sizes = [program.extent(a) for a in v.axes]
        parts = [_align(program, next(rows), n, () if v.spread else v.axes) for n in v.nodes]
        stacked = np.stack(np.broadcast_arrays(*parts), axis=-1)
        points_first = np.moveaxis(stacked, -2, 0)
        whole = np.broadcast_to(points_first, (points, *points_first.shape[1:]))
        outputs[v.name] = whole.reshape(points, *sizes, *v.kind.base)
    return outputs


def _by_node(space: Space, v: Any, data: Array) -> Numbers:
    """The numbers `(*axes, points)` of every node of a variable, given `(points, *axes, *base)`."""
    points_last = np.moveaxis(data, 0, -1)
    if v.spread:
        flat = points_last.reshape(len(v.nodes), -1)
        return {n.id: row for n, row in zip(v.nodes, flat, strict=True)}
    sizes = [space.extent(a) for a in v.axes]
    parts = points_last.reshape(*sizes, len(v.nodes), data.shape[0])
    return {n.id: parts[..., i, :] for i, n in enumerate(v.nodes)}


def _align(space: Space, numbers: Array, node: Node, axes: Sequence[Any]) -> Array:
    """The numbers of a node spread over the axes of its variable, points last."""
    at = {a.key: i for i, a in enumerate(node.axes)}
    missing = [a for a in axes if a.key not in at]
    order = [at[a.key] for a in axes if a.key in at]
    moved = numbers.transpose(*order, len(node.axes))
    for i, a in enumerate(axes):
        if a in missing:
            moved = np.expand_dims(moved, i)
    return np.broadcast_to(moved, (*(space.extent(a) for a in axes), numbers.shape[-1]))


def evaluate_lines(
    space: Space, roots: Sequence[Node], numbers: Mapping[int, Array], points: int, *,
    factored: bool = False,
) -> list[Array]:  # fmt: skip
    """The values `(*axes, points)` of the roots, given those of every placeholder."""
    lines = sort_lines(roots)
    layout = ArrayLayout(space, lines)
    arrays = NumpyArrays(layout, None)
    known: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in lines:
            if node.id in numbers:
                kept = numbers[node.id]
                known[node.id] = _into(layout, node, kept)
            elif node.op == "solve":
                known[node.id] = _solve(space, layout, node, known, points, factored=factored)
            elif node.op == "linear":
                known[node.id] = _solve_linear(
                    space, layout, node, known, points, factored=factored
                )
            else:
                known[node.id] = arrays.value(node, [known[a.id] for a in node.args])
    return [_out_of(layout, r, known[r.id]) for r in roots]


def _into(layout: ArrayLayout, node: Node, numbers: Array) -> Array:
    order = layout.order(node.axes)
    shape = layout.shape(node.axes, numbers.shape[-1])
    return numbers.transpose(*order, len(node.axes)).reshape(shape)


def _out_of(layout: ArrayLayout, node: Node, array: Array) -> Array:
    """The numbers `(*axes, points)` of a line, each axis in full."""
    order = layout.order(node.axes)
    full = np.broadcast_to(array, layout.shape(node.axes, array.shape[-1]))
    sizes = [layout.space.extent(node.axes[i]) for i in order]
    return full.reshape(*sizes, array.shape[-1]).transpose(*np.argsort(order), len(order))


class _System:
    """The residuals of a solve and their Jacobian by dense columns."""

    def __init__(
        self, space: Space, solve: Solve, given: Sequence[Array], points: int, *, factored: bool
    ) -> None:
        self.space, self.solve, self.points, self.factored = space, solve, points, factored
        self.given = {g.id: x for g, x in zip(solve.given, given, strict=True)}
        self.shapes = [[space.extent(a) for a in c.axes] for c in solve.columns]
        self.sizes = [math.prod(s) for s in self.shapes]
        b = Builder(space.extents, sort_lines((*solve.rows, *solve.columns, *solve.given)))
        tangents = jacobian(b, solve.rows, solve.columns, dense=True)
        self.entries = [(i, j, t) for i, row in enumerate(tangents) for (j, _), t in row.items()]

    def split(self, flat: Array) -> list[Array]:
        parts = np.split(flat, np.cumsum(self.sizes)[:-1])
        return [p.reshape(*s, -1) for p, s in zip(parts, self.shapes, strict=True)]

    def at(self, flat: Array) -> tuple[Array, Array]:
        """Residuals `(n, points)` and Jacobians `(points, n, n)`."""
        columns, rows = self.solve.columns, self.solve.rows
        numbers = self.given | {c.id: x for c, x in zip(columns, self.split(flat), strict=True)}
        roots = [*rows, *(t for _, _, t in self.entries)]
        found = evaluate_lines(self.space, roots, numbers, self.points, factored=self.factored)
        starts = np.cumsum([0, *self.sizes])
        right = np.zeros((starts[-1], self.points))
        for i, (row, x) in enumerate(zip(rows, found[: len(rows)], strict=True)):
            spread = _align(self.space, x, row, columns[i].axes)
            right[starts[i] : starts[i + 1]] = spread.reshape(self.sizes[i], -1)
        matrix = np.zeros((self.points, starts[-1], starts[-1]))
        for (i, j, t), x in zip(self.entries, found[len(rows) :], strict=True):
            axes = (*columns[i].axes, *map(seed_axis, columns[j].axes))
            block = _align(self.space, x, t, axes).reshape(self.sizes[i], self.sizes[j], -1)
            block = np.broadcast_to(block, (self.sizes[i], self.sizes[j], self.points))
            at = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            matrix[:, *at] = np.moveaxis(block, -1, 0)
        return right, matrix

    def update(self, flat: Array) -> Array:
        """Newton's update, to be added."""
        written = self.solve.factored if self.factored else None
        if written is not None and isinstance(written.newton, Eliminated):
            return self.written(flat, written.newton.update, ())
        right, matrix = self.at(flat)
        return -np.linalg.solve(matrix, right.T[..., None])[..., 0].T

    def written(self, flat: Array, roots: Sequence[Node], sides: Sequence[Array]) -> Array:
        """Lines of the factored solve, one for each unknown, at unknowns and a right-hand side."""
        assert self.solve.factored is not None
        names = (*self.solve.columns, *self.solve.factored.sides[: len(sides)])
        numbers = self.given | {n.id: x for n, x in zip(names, (*flat, *sides), strict=True)}
        found = evaluate_lines(self.space, roots, numbers, self.points, factored=True)
        return np.stack([np.broadcast_to(x, self.points) for x in found])


def _read(layout: ArrayLayout, nodes: Sequence[Node], known: Mapping[int, Any]) -> list[Array]:
    return [_out_of(layout, n, known[n.id]) for n in nodes]


def _solve(
    space: Space, layout: ArrayLayout, node: Node, known: Mapping[int, Any], points: int, *,
    factored: bool,
) -> dict[int, Array]:  # fmt: skip
    solve: Solve = node.attr
    width = len(solve.columns)
    guesses = _read(layout, node.args[:width], known)
    given = _read(layout, node.args[width:], known)
    system = _System(space, solve, given, points, factored=factored)
    parts = [
        _align(space, g, n, c.axes).reshape(size, -1)
        for g, n, c, size in zip(guesses, node.args, solve.columns, system.sizes, strict=False)
    ]
    flat = np.concatenate([np.broadcast_to(p, (len(p), points)) for p in parts]).copy()
    for _ in range(STEPS):
        update = system.update(flat)
        flat = flat + update
        if not np.any(np.abs(update) > 1e-15 * (1e-3 + np.abs(flat))):
            break
    return {i: _into(layout, c, x) for i, (c, x) in
            enumerate(zip(solve.columns, system.split(flat), strict=True))}  # fmt: skip


def _solve_linear(
    space: Space, layout: ArrayLayout, node: Node, known: Mapping[int, Any], points: int, *,
    factored: bool,
) -> dict[tuple[int, int], Array]:  # fmt: skip
    linear: Linear = node.attr
    solve = linear.solve
    width, count = len(solve.columns), len(solve.given)
    unknowns = _read(layout, node.args[:width], known)
    given = _read(layout, node.args[width : width + count], known)
    system = _System(space, solve, given, points, factored=factored)
    spread = [np.broadcast_to(u, (*u.shape[:-1], points)) for u in unknowns]
    flat = np.concatenate([u.reshape(size, points) for u, size in
                           zip(spread, system.sizes, strict=True)])  # fmt: skip
    ready: Any = None
    if factored and solve.factored is not None and isinstance(solve.factored.newton, Eliminated):
        ready = solve.factored.adjoint if linear.is_transposed else solve.factored.linear
        assert ready is not None
    _, matrix = system.at(flat)
    if linear.is_transposed:
        matrix = matrix.transpose(0, 2, 1)
    results: dict[tuple[int, int], Array] = {}
    for k in range(linear.sides):
        seeds = linear.seeds(node, k)
        count = math.prod(space.extent(a) for a in seeds)
        nodes = linear.side(node, k)
        parts = []
        for n, x, c, size in zip(
            nodes, _read(layout, nodes, known), solve.columns, system.sizes, strict=True
        ):
            whole = _align(space, x, n, (*c.axes, *seeds))
            parts.append(np.broadcast_to(whole.reshape(size, count, -1), (size, count, points)))
        right = np.moveaxis(np.concatenate(parts), -1, 0)
        if ready is None:
            solved = np.moveaxis(np.linalg.solve(matrix, right), 0, -1)
        else:
            sides = np.moveaxis(right, 0, -1)
            each = [system.written(flat, ready, sides[:, c]) for c in range(count)]
            solved = np.stack(each, axis=1)
        for i, (c, x) in enumerate(
            zip(solve.columns, np.split(solved, np.cumsum(system.sizes)[:-1]), strict=True)
        ):
            sizes = [space.extent(a) for a in (*c.axes, *seeds)]
            item = Node(-1, "item", (), None, (*c.axes, *seeds))
            results[i, k] = _into(layout, item, x.reshape(*sizes, points))
    return results
