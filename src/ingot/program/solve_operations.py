"""Operations of solves: the solve, linear systems at its solution, items of both.

Forward mode (the consistent tangent) solves with the solve's Jacobian, reverse mode (the adjoint)
with its transpose. Where a step was taken in parts, derivatives are accumulated through them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ingot.errors import IngotError, Problem
from ingot.program.builder import Axis, Builder, Node, Slopes, Space
from ingot.program.differentiate import pull, push
from ingot.program.implicit import Solve, close_solve, inline_residuals, open_solve, read_items
from ingot.program.operations import (
    Arrays,
    Bars,
    Key,
    Known,
    Nodes,
    Operation,
    Tangent,
    Unstructured,
)
from ingot.program.program import do_lines_stay

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__ = ["Accumulate", "Linear", "find_leaf_arguments"]


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear systems with the Jacobian of a solve at its solution, one for each right-hand side.

    Its node reads the solution, what the residuals read, then the right-hand sides in turn; its
    items are (unknown, side). is_transposed: the adjoint systems, with the transposed Jacobian.
    """

    solve: Solve
    sides: int
    is_transposed: bool = False

    @property
    def digest(self) -> tuple[str, int, bool]:
        """What tells systems apart."""
        return self.solve.digest, self.sides, self.is_transposed

    def side(self, node: Node, side: int) -> tuple[Node, ...]:
        """One right-hand side of the node, by unknowns."""
        width = len(self.solve.columns)
        first = len(node.args) - width * (self.sides - side)
        return node.args[first : first + width]

    def seeds(self, node: Node, side: int) -> tuple[Axis, ...]:
        """The seed axes of a right-hand side, which stands for as many as they have entries."""
        axes = {a.key: a for n in self.side(node, side) for a in n.axes if a.seed}
        return tuple(axes.values())


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Derivatives of a solve through the parts of its step, in the place of those of `linear` at
    points whose step was taken in parts.

    Its node reads the solution, a number of leaves, the results of `linear` for each side, then the
    tangents of the leaves for each side; its items are (unknown, side). is_transposed: it reads the
    adjoints of the unknowns in the place of tangents; its items are also the adjoints of leaves,
    and `linear`'s own are zero at such points.
    """

    solve: Solve
    sides: int
    leaves: int
    is_transposed: bool = False

    @property
    def digest(self) -> tuple[str, int, int, bool]:
        """What tells them apart."""
        return self.solve.digest, self.sides, self.leaves, self.is_transposed

    def leaf_lines(self, node: Node) -> tuple[Node, ...]:
        """The leaves of the node."""
        width = len(self.solve.columns)
        return node.args[width : width + self.leaves]

    def side(self, node: Node, side: int) -> tuple[Node, ...]:
        """What `linear` gives for a side, by unknowns."""
        width = len(self.solve.columns)
        first = width + self.leaves + side * width
        return node.args[first : first + width]

    def along(self, node: Node, side: int) -> tuple[Node, ...]:
        """The tangents of leaves of a side, or the adjoints of the unknowns."""
        width = len(self.solve.columns)
        each = width if self.is_transposed else self.leaves
        first = width + self.leaves + self.sides * width + side * each
        return node.args[first : first + each]

    def seeds(self, node: Node, side: int) -> tuple[Axis, ...]:
        """The seed axes of a side, which stands for as many as they have entries."""
        lines = (*self.side(node, side), *self.along(node, side))
        axes = {a.key: a for n in lines for a in n.axes if a.seed}
        return tuple(sorted(axes.values(), key=lambda a: a.seed))


def find_leaf_arguments(node: Node) -> tuple[Node, ...]:
    """The lines that a solve's node reads as leaves that its solution depends on."""
    solve: Solve = node.attr
    assert solve.substeps is not None
    argument = dict(zip(solve.given, node.args[len(solve.columns) :], strict=True))
    return tuple(argument[n] for n in solve.substeps.varied)


def _read_tangents(
    b: Builder, block: Node, items: Nodes, keys: Sequence[Key]
) -> dict[int, Tangent]:
    """The results of a block with a side for each key, by unknown."""
    result: dict[int, Tangent] = {i: {} for i in range(len(items))}
    for k, key in enumerate(keys):
        seeds = block.attr.seeds(block, k)
        for i, item in enumerate(items):
            result[i][key] = b.node("item", (block,), (i, k), (*item.axes, *seeds))
    return result


def _accumulate_tangents(
    b: Builder, node: Node, known: Known, result: dict[int, Tangent], items: Nodes
) -> dict[int, Tangent]:
    """The tangents of unknowns, also where a step is taken in parts; result: those of `linear`."""
    leaves = find_leaf_arguments(node)
    keys = list(result[0])
    base = [result[i][key] for key in keys for i in range(len(items))]
    along = [known.get(n.id, {}).get(key, b.zero) for key in keys for n in leaves]
    attr = Accumulate(node.attr, len(keys), len(leaves))
    block = b.node("accumulate", (*items, *leaves, *base, *along), attr)
    return _read_tangents(b, block, items, keys)


def _accumulate_adjoints(
    b: Builder, node: Node, items: Nodes, solution: Nodes, bars: Nodes
) -> tuple[list[Node], Bars]:
    """The solution of the transposed system, zero where a step is taken in parts; and what the
    parts add to the adjoints of leaves.
    """
    leaves = find_leaf_arguments(node)
    attr = Accumulate(node.attr, 1, len(leaves), is_transposed=True)
    block = b.node("accumulate", (*items, *leaves, *solution, *bars), attr)
    whole = [b.node("item", (block,), (i, 0), n.axes) for i, n in enumerate(items)]
    added = [(n, b.node("item", (block,), ("leaf", j), n.axes)) for j, n in enumerate(leaves)]
    return whole, added


class _SolveBlock(Operation):
    """A block that executors know, since they solve."""

    is_block = is_free = True

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.block(node, args)

    def write_cxx_block(self, lines: Any, node: Node) -> Any:
        return lines.blocks(node, lines)


class _Solve(_SolveBlock):
    name = "solve"

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        solve: Solve = node.attr
        width = len(solve.columns)
        given = args[width:]
        plain = len(set(given)) == len(given) and not any(a.is_number for a in given)
        if plain and all(a.axes == g.axes for a, g in zip(given, solve.given, strict=True)):
            return b.node("solve", args, solve)
        assert solve.factored is None, "a factored solve takes the arguments it was factored for"
        columns = [b.placeholder("unknown", c.axes, solve.name) for c in solve.columns]
        opened = solve.copy(open_solve(b, solve, columns, given), ())
        return close_solve(b, opened, args[:width])

    def translate(self, d: Slopes, node: Node, own: Sequence[float]) -> float | None:
        """None of its unknowns, where neither guesses nor residuals are shifted."""
        solve: Solve = node.attr
        width = len(solve.columns)
        given = {g.id: k for g, k in zip(solve.given, own[width:], strict=True)}
        return None if any(own[:width]) or not do_lines_stay(d, solve.rows, given) else 0.0

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> dict[int, Tangent]:
        r"""Tangents of the unknowns by the implicit function theorem, $-A^{-1} B \, \dot g$."""
        b, solve = d.builder, node.attr
        given = node.args[len(solve.columns) :]
        items = read_items(b, node)
        if all(not known.get(g.id) for g in given):
            return {}
        rows = inline_residuals(b, solve, items, given)
        held = {g.id: known.get(g.id, {}) for g in given} | {u.id: {} for u in items}
        slopes = push(b, rows, held, columns)
        # what a solve reads in parts of its step alone has tangents too
        read = [known.get(g.id, {}) for g in given] if solve.substeps is not None else []
        keys = sorted({key for row in (*slopes, *read) for key in row})
        for column, shifts in keys:
            if shifts:
                # entries of an unknown may depend on any others
                raise Unstructured(columns[column].axes[0].name)
        sides = [d.emit("neg", row.get(key, b.zero)) for key in keys for row in slopes]
        block = b.node("linear", (*items, *given, *sides), Linear(solve, len(keys)))
        result = _read_tangents(b, block, items, keys)
        if solve.substeps is not None and keys:
            return _accumulate_tangents(b, node, known, result, items)
        return result

    def pull(self, d: Slopes, node: Node, bar: dict[int, Node]) -> Bars:
        r"""Adjoints of what it reads, $-B^T A^{-T} \bar u$; guesses have none."""
        b, solve = d.builder, node.attr
        given = node.args[len(solve.columns) :]
        items = read_items(b, node)
        sides = [bar.get(i, b.zero) for i in range(len(items))]
        block = b.node("linear", (*items, *given, *sides), Linear(solve, 1, is_transposed=True))
        rows = inline_residuals(b, solve, items, given)
        solution = [b.node("item", (block,), (i, 0), c.axes) for i, c in enumerate(solve.columns)]
        added: Bars = []
        if solve.substeps is not None:
            solution, added = _accumulate_adjoints(b, node, items, solution, sides)
        bars = [d.emit("neg", x) for x in solution]
        found = list(zip(given, pull(b, rows, bars, given, stop=items), strict=True))
        return [*found, *added]

    def unroll_block(self, to: "Unrolling", node: Node) -> Node:
        """The same solve without axes."""
        solve: Solve = node.attr
        width = len(solve.columns)
        inner = to.inside({
            g.id: to.done[a.id] for g, a in zip(solve.given, node.args[width:], strict=True)
        })  # fmt: skip
        for c in solve.columns:
            inner.done[c.id] = {
                e: to.builder.placeholder("unknown", to.kept(c.axes), solve.name)
                for e in to.space.entries(c.axes)
            }
        opened = replace(
            solve,
            unknowns=tuple(inner.variable(v) for v in solve.unknowns),
            residuals=tuple(inner.variable(v) for v in solve.residuals),
            given=(),
            substeps=solve.substeps.unroll(inner) if solve.substeps is not None else None,
        )
        return close_solve(to.builder, opened, to.flatten(solve, node.args[:width]))

    def unroll_item(self, to: "Unrolling", node: Node) -> dict[tuple[int, ...], Node]:
        block = node.args[0]
        new = to.done[block.id][()]
        places = to.places(block.attr)[node.attr]
        axes = to.kept(node.axes)
        return {e: to.builder.node("item", (new,), i, axes) for e, i in places.items()}


class _SolvedBlock(_SolveBlock):
    """Derivatives of a solve, whose items are (unknown, side)."""

    def _refuse(self) -> IngotError:
        return IngotError([Problem(
            "second-derivative", "a derivative of an implicit update is differentiated again",
            None, "differentiate the residual model instead",
        )])  # fmt: skip

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Any:
        if any(known.get(a.id) for a in node.args):
            raise self._refuse()
        return {}

    def pull(self, d: Slopes, node: Node, bar: Any) -> Bars:
        raise self._refuse()

    def unroll_item(self, to: "Unrolling", node: Node) -> dict[tuple[int, ...], Node]:
        block = node.args[0]
        new = to.done[block.id][()]
        slot, side = node.attr
        linear: Linear = block.attr
        places = to.places(linear.solve)[slot]
        own = len(linear.solve.columns[slot].axes)
        start = sum(to.space.size(linear.seeds(block, s)) for s in range(side))
        found, axes = {}, to.kept(node.axes)
        for i, seed in enumerate(to.space.entries(node.axes[own:])):
            for entry, place in places.items():
                found[*entry, *seed] = to.builder.node("item", (new,), (place, start + i), axes)
        return found


class _Linear(_SolvedBlock):
    name = "linear"

    def verify(self, space: Space, node: Node) -> None:
        linear: Linear = node.attr
        solve, reads = linear.solve, len(node.args)
        width = len(solve.columns)
        assert reads == width * (1 + linear.sides) + len(solve.given), f"{solve}: arguments"
        other = node.args[0].args[0].attr
        assert other == solve, f"{solve}: linearised at the solution of another solve"
        if solve.factored is not None:
            ready = solve.factored.adjoint if linear.is_transposed else solve.factored.linear
            assert ready is not None, f"{solve} was factored without the systems that are asked for"

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        linear: Linear = node.attr
        width = len(linear.solve.columns)
        block = args[0].args[0]
        sides = args[len(args) - width * linear.sides :]
        given = block.args[len(block.attr.columns) :]
        return b.node("linear", (*args[:width], *given, *sides), replace(linear, solve=block.attr))

    def unroll_block(self, to: "Unrolling", node: Node) -> Node:
        """The same systems without axes, a right-hand side for each entry of seed axes."""
        linear: Linear = node.attr
        width = len(linear.solve.columns)
        block = to.done[node.args[0].args[0].id][()]
        solution = read_items(to.builder, block)
        given = block.args[len(block.attr.columns) :]
        flat: list[Node] = []
        for side in range(linear.sides):
            seeds = linear.seeds(node, side)
            rows = linear.side(node, side)
            for entry in to.space.entries(seeds):
                flat += to.flatten(linear.solve, rows, seeds, entry)
        assert width and len(flat) % len(solution) == 0
        unrolled = replace(linear, solve=block.attr, sides=len(flat) // len(solution))
        return to.builder.node("linear", (*solution, *given, *flat), unrolled)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        what = "adjoint" if node.attr.is_transposed else "linear"
        return f"{what}({node.attr.solve.name}: {node.attr.sides} sides)"


class _Item(Operation):
    """One result of a block."""

    name = "item"
    arity = 1
    is_free = True

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        return known.get(node.args[0].id, {}).get(node.attr, {})

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        return [(node.args[0], {node.attr: bar})]

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return args[0][node.attr]

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"item({args[0]}, {node.attr})"


class _Accumulate(_SolvedBlock):
    name = "accumulate"

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        return b.node("accumulate", args, replace(node.attr, solve=args[0].args[0].attr))

    def verify(self, space: Space, node: Node) -> None:
        attr: Accumulate = node.attr
        width = len(attr.solve.columns)
        each = width if attr.is_transposed else attr.leaves
        reads = width + attr.leaves + attr.sides * (width + each)
        assert len(node.args) == reads, f"{attr.solve}: arguments of its parts"
        assert node.args[0].args[0].attr == attr.solve, f"{attr.solve}: parts of another solve"

    def unroll_block(self, to: "Unrolling", node: Node) -> Node:
        """The same without axes, a side for each entry of seed axes."""
        attr: Accumulate = node.attr
        block = to.done[node.args[0].args[0].id][()]
        leaves = attr.leaf_lines(node)
        flat = [m for n in leaves for m in to.entries(n).values()]
        base: list[Node] = []
        along: list[Node] = []
        for side in range(attr.sides):
            seeds = attr.seeds(node, side)
            for entry in to.space.entries(seeds):
                base += to.flatten(attr.solve, attr.side(node, side), seeds, entry)
                if attr.is_transposed:
                    along += to.flatten(attr.solve, attr.along(node, side), seeds, entry)
                    continue
                for leaf, tangent in zip(leaves, attr.along(node, side), strict=True):
                    axes = (*leaf.axes, *seeds)
                    along += [
                        to.at(tangent, axes, (*e, *entry)) for e in to.space.entries(leaf.axes)
                    ]
        solution = read_items(to.builder, block)
        sides = len(base) // len(solution)
        unrolled = replace(attr, solve=block.attr, sides=sides, leaves=len(flat))
        return to.builder.node("accumulate", (*solution, *flat, *base, *along), unrolled)

    def unroll_item(self, to: "Unrolling", node: Node) -> dict[tuple[int, ...], Node]:
        block = node.args[0]
        attr: Accumulate = block.attr
        if node.attr[0] != "leaf":
            return super().unroll_item(to, node)
        new = to.done[block.id][()]
        leaves = attr.leaf_lines(block)
        start = to.space.count_entries(leaves[: node.attr[1]])
        return {
            e: to.builder.node("item", (new,), ("leaf", start + i))
            for i, e in enumerate(to.space.entries(leaves[node.attr[1]].axes))
        }

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        what = "adjoint" if node.attr.is_transposed else "linear"
        return f"{what} through parts({node.attr.solve.name}: {node.attr.sides} sides)"
