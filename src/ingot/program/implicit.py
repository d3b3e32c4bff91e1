"""Solves: residuals as a program of their own, what they read as arguments; linear systems at
their solution; and the operations of both.

Forward mode solves with the solve's Jacobian, reverse mode with its transpose; both share it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ingot.errors import IngotError, Problem
from ingot.options import Newton
from ingot.program.builder import Axis, Builder, Node, Slopes, Space, sort_lines
from ingot.program.operations import (
    Arrays,
    Bars,
    Operation,
    Tangent,
    Unstructured,
    refuse_coupled,
)
from ingot.program.program import Variable, digest_lines, find_frontier
from ingot.program.rewrite import Replay
from ingot.program.substeps import Substeps, accumulate_adjoints, accumulate_tangents

if TYPE_CHECKING:
    from ingot.program.factor import Factored
    from ingot.program.unroll import Unrolling

__all__ = ["Linear", "Solve", "close_solve", "inline_residuals", "read_items"]


@dataclass(frozen=True, eq=False)
class Solve:
    """An implicit update: unknowns that make the residuals zero.

    Its residuals are lines of its own, over placeholders: `unknown` of the unknowns and `given` of
    what it reads from outside. Its node reads a first guess of every unknown, then a line for each
    given; its items are the unknowns. Solves of the same content are the same.
    substeps: how a step that fails is taken in parts, where it may be;
    factored: its linear systems written out, once the pass `factor` has run.
    """

    name: str
    unknowns: tuple[Variable, ...]
    residuals: tuple[Variable, ...]
    given: tuple[Node, ...]
    newton: Newton
    clocks: tuple[str, ...] = ()
    substeps: Substeps | None = None
    factored: "Factored | None" = None

    @cached_property
    def digest(self) -> str:
        """What it solves, and how, as a hash."""
        shown = [[(v.name, v.kind.__name__, v.axes) for v in vs]
                 for vs in (self.unknowns, self.residuals)]  # fmt: skip
        parts = self.substeps
        counts = [parts.level, len(parts.leaves), len(parts.carried)] if parts is not None else []
        head = [self.name, shown, self.newton, self.clocks, self.factored is None, counts]
        roots = self.rows if self.factored is None else self.factored.roots(self)
        roots = (*roots, *(parts.lines if parts is not None else ()))
        extra = () if self.factored is None else self.factored.placeholders
        return digest_lines(roots, (*self.columns, *self.given, *extra), head)

    @cached_property
    def columns(self) -> tuple[Node, ...]:
        """The unknowns, flat."""
        return tuple(n for v in self.unknowns for n in v.nodes)

    @cached_property
    def rows(self) -> tuple[Node, ...]:
        """The residuals, flat, in the order of the unknowns."""
        return tuple(n for v in self.residuals for n in v.nodes)

    def copy(self, copy: Callable[[Node], Node], given: Sequence[Node] | None = None) -> "Solve":
        """The same over copies of its lines; given: what the residuals read by now."""

        def variables(vs: tuple[Variable, ...]) -> tuple[Variable, ...]:
            return tuple(replace(v, nodes=tuple(map(copy, v.nodes))) for v in vs)

        return replace(
            self,
            unknowns=variables(self.unknowns),
            residuals=variables(self.residuals),
            given=tuple(map(copy, self.given if given is None else given)),
            substeps=self.substeps.copy(copy) if self.substeps is not None else None,
            factored=self.factored.copy(copy) if self.factored is not None else None,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Solve) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        return f"solve [{self.name}]"


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


def close_solve(builder: Builder, solve: Solve, guesses: Sequence[Node]) -> Node:
    """The node of a solve whose lines still stand in the builder around it, among the others.

    What depends on its unknowns becomes the solve's own; the lines that this reads, its arguments.
    """
    outside = find_frontier(solve.rows, solve.columns)
    if solve.substeps is not None:
        outside, substeps = solve.substeps.join(outside, solve.columns)
        solve = replace(solve, substeps=substeps)
    own = Builder(builder.extents)
    copied = {c.id: own.node("unknown", (), (i,), c.axes) for i, c in enumerate(solve.columns)}
    copied |= {g.id: own.node("given", (), (i,), g.axes) for i, g in enumerate(outside)}
    closed = solve.copy(Replay(own, copied), outside)
    _refuse_deep_nests(closed)
    refuse_coupled(sort_lines(closed.rows), f"which [{closed.name}] would solve for one by one")
    return builder.node("solve", (*guesses, *outside), closed)


def _refuse_deep_nests(solve: Solve) -> None:
    """One solve may stand inside the residuals of another, and none inside those of that one."""
    for inner in _find_inside(solve):
        for each in (solve, inner):
            if each.substeps is not None:
                raise IngotError([Problem(
                    "nested-solves",
                    f"[{inner.name}] is solved inside the residuals of [{solve.name}], so the step"
                    f" of [{each.name}] cannot be taken in parts", None,
                    f"leave 'max_substepping_level' of [{each.name}] out",
                )])  # fmt: skip
        for third in _find_inside(inner):
            raise IngotError([Problem(
                "nested-solves",
                f"[{third.name}] is solved inside the residuals of [{inner.name}], and that one"
                f" inside those of [{solve.name}]", None,
                "let the unknowns of two of them be unknowns of one equation system",
            )])  # fmt: skip


def _find_inside(solve: Solve) -> list[Solve]:
    return [n.attr for n in sort_lines(solve.rows) if n.op == "solve"]


def inline_residuals(
    builder: Builder, solve: Solve, unknowns: Sequence[Node], given: Sequence[Node]
) -> list[Node]:
    """The residuals of a solve as lines of a builder, at the given unknowns and arguments."""
    return [*map(_replay_at(builder, solve, unknowns, given), solve.rows)]


def _replay_at(
    builder: Builder, solve: Solve, unknowns: Sequence[Node], given: Sequence[Node]
) -> Replay:
    names = (*solve.columns, *solve.given)
    values = (*unknowns, *given)
    return Replay(builder, {a.id: b for a, b in zip(names, values, strict=True)})


def read_items(builder: Builder, node: Node) -> list[Node]:
    """The unknowns of a solve's node."""
    columns = node.attr.columns
    return [builder.node("item", (node,), i, c.axes) for i, c in enumerate(columns)]


class _Solve(Operation):
    name = "solve"
    is_block = is_free = True

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        solve: Solve = node.attr
        width = len(solve.columns)
        given = args[width:]
        plain = len(set(given)) == len(given) and not any(a.is_number for a in given)
        if plain and all(a.axes == g.axes for a, g in zip(given, solve.given, strict=True)):
            return b.node("solve", args, solve)
        assert solve.factored is None, "a factored solve takes the arguments it was factored for"
        columns = [b.placeholder("unknown", c.axes, solve.name) for c in solve.columns]
        opened = solve.copy(_replay_at(b, solve, columns, given), ())
        return close_solve(b, opened, args[:width])

    def push(
        self, d: Slopes, node: Node, known: Mapping[int, Any], columns: Sequence[Node]
    ) -> dict[int, Tangent]:
        r"""Tangents of the unknowns by the implicit function theorem, $-A^{-1} B \, \dot g$."""
        from ingot.program.differentiate import push

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
        linear = Linear(solve, len(keys))
        block = b.node("linear", (*items, *given, *sides), linear)
        result: dict[int, Tangent] = {i: {} for i in range(len(items))}
        for k, key in enumerate(keys):
            for i, item in enumerate(items):
                axes = (*item.axes, *linear.seeds(block, k))
                result[i][key] = b.node("item", (block,), (i, k), axes)
        if solve.substeps is not None and keys:
            return accumulate_tangents(b, node, known, result, items)
        return result

    def pull(self, d: Slopes, node: Node, bar: dict[int, Node]) -> Bars:
        r"""Adjoints of what it reads, $-B^T A^{-T} \bar u$; guesses have none."""
        from ingot.program.differentiate import pull

        b, solve = d.builder, node.attr
        given = node.args[len(solve.columns) :]
        items = read_items(b, node)
        sides = [bar.get(i, b.zero) for i in range(len(items))]
        block = b.node("linear", (*items, *given, *sides), Linear(solve, 1, is_transposed=True))
        rows = inline_residuals(b, solve, items, given)
        solution = [b.node("item", (block,), (i, 0), c.axes) for i, c in enumerate(solve.columns)]
        added: Bars = []
        if solve.substeps is not None:
            solution, added = accumulate_adjoints(b, node, items, solution, sides)
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
            substeps=self._unroll_substeps(inner, solve.substeps),
        )
        return close_solve(to.builder, opened, to.flatten(solve, node.args[:width]))

    def _unroll_substeps(self, inner: "Unrolling", substeps: Substeps | None) -> Substeps | None:
        if substeps is None:
            return None

        def entries(nodes: Sequence[Node]) -> tuple[Node, ...]:
            return tuple(m for n in nodes for m in inner.entries(n).values())

        chain = [
            (inner.at(c, c.axes, e), inner.at(f, c.axes, e))
            for c, f in zip(substeps.carried, substeps.follows, strict=True)
            for e in inner.space.entries(c.axes)
        ]
        leaves = tuple(n for n in entries(substeps.leaves) if not n.is_number)
        return Substeps(
            substeps.level, leaves, tuple(c for c, _ in chain), tuple(f for _, f in chain),
            entries(substeps.hints),
        )  # fmt: skip

    def unroll_item(self, to: "Unrolling", node: Node) -> dict[tuple[int, ...], Node]:
        block = node.args[0]
        new = to.done[block.id][()]
        places = to.places(block.attr)[node.attr]
        axes = to.kept(node.axes)
        return {e: to.builder.node("item", (new,), i, axes) for e, i in places.items()}

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.block(node, args)

    def write_cxx_block(self, lines: Any, node: Node) -> Any:
        return lines.blocks(node, lines)


class _Linear(Operation):
    name = "linear"
    is_block = is_free = True

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        linear: Linear = node.attr
        width = len(linear.solve.columns)
        block = args[0].args[0]
        sides = args[len(args) - width * linear.sides :]
        given = block.args[len(block.attr.columns) :]
        return b.node("linear", (*args[:width], *given, *sides), replace(linear, solve=block.attr))

    def _refuse(self) -> IngotError:
        return IngotError([Problem(
            "second-derivative", "a derivative of an implicit update is differentiated again",
            None, "differentiate the residual model instead",
        )])  # fmt: skip

    def push(self, d: Slopes, node: Node, known: Mapping[int, Any], columns: Sequence[Node]) -> Any:
        if any(known.get(a.id) for a in node.args):
            raise self._refuse()
        return {}

    def pull(self, d: Slopes, node: Node, bar: Any) -> Bars:
        raise self._refuse()

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

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.block(node, args)

    def write_cxx_block(self, lines: Any, node: Node) -> Any:
        return lines.blocks(node, lines)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        what = "adjoint" if node.attr.is_transposed else "linear"
        return f"{what}({node.attr.solve.name}: {node.attr.sides} sides)"


class _Item(Operation):
    """One result of a block."""

    name = "item"
    arity = 1
    is_free = True

    def push(
        self, d: Slopes, node: Node, known: Mapping[int, Any], columns: Sequence[Node]
    ) -> Tangent:
        return known.get(node.args[0].id, {}).get(node.attr, {})

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        return [(node.args[0], {node.attr: bar})]

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return args[0][node.attr]

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"item({args[0]}, {node.attr})"
