"""Solves: residuals as a program of their own, what they read as arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ingot.errors import IngotError, Problem
from ingot.options import Newton
from ingot.program.builder import Builder, Node, Space, sort_lines
from ingot.program.operations import refuse_coupled
from ingot.program.program import Digested, Variable, digest_lines, find_frontier
from ingot.program.rewrite import Replay
from ingot.program.substeps import Substeps

if TYPE_CHECKING:
    from ingot.program.factor import Factored

__all__ = ["Solve", "close_solve", "enclose", "inline_residuals", "open_solve", "read_items"]


@dataclass(frozen=True, eq=False)
class Solve(Digested):
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
        roots = (*self.roots, *(parts.lines if parts is not None else ()))
        return digest_lines(roots, (*self.columns, *self.given, *self.system_inputs), head)

    @cached_property
    def columns(self) -> tuple[Node, ...]:
        """The unknowns, flat."""
        return tuple(n for v in self.unknowns for n in v.nodes)

    @cached_property
    def rows(self) -> tuple[Node, ...]:
        """The residuals, flat, in the order of the unknowns."""
        return tuple(n for v in self.residuals for n in v.nodes)

    @property
    def roots(self) -> tuple[Node, ...]:
        """Every line that something reads: the residuals, and its linear systems once factored."""
        return self.rows if self.factored is None else self.factored.roots(self)

    @property
    def system_inputs(self) -> tuple[Node, ...]:
        """What its linear systems are given besides unknowns and arguments, once factored."""
        return () if self.factored is None else self.factored.placeholders

    def builder(self, extents: Mapping[str, int]) -> Builder:
        """A builder that continues its lines."""
        return Builder(extents, sort_lines((*self.rows, *self.columns, *self.given)))

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

    def __str__(self) -> str:
        return f"solve [{self.name}]"


def close_solve(builder: Builder, solve: Solve, guesses: Sequence[Node]) -> Node:
    """The node of a solve whose lines still stand in the builder around it, among the others.

    What depends on its unknowns becomes the solve's own; the lines that this reads, its arguments.
    """
    closed, outside = enclose(builder, solve)
    _refuse_deep_nests(closed)
    refuse_coupled(sort_lines(closed.rows), f"which [{closed.name}] would solve for one by one")
    return builder.node("solve", (*guesses, *outside), closed)


def enclose(space: Space, solve: Solve) -> tuple[Solve, tuple[Node, ...]]:
    """A solve over lines of its own, numbered anew, and the lines around it that these read."""
    outside = find_frontier(solve.roots, (*solve.columns, *solve.system_inputs))
    if solve.substeps is not None:
        outside, substeps = solve.substeps.join(outside, solve.columns)
        solve = replace(solve, substeps=substeps)
    own = Builder(space.extents)
    copied = {c.id: own.node("unknown", (), (i,), c.axes) for i, c in enumerate(solve.columns)}
    copied |= {n.id: own.node(n.op, (), n.attr, n.axes) for n in solve.system_inputs}
    copied |= {g.id: own.node("given", (), (i,), g.axes) for i, g in enumerate(outside)}
    return solve.copy(Replay(own, copied), outside), outside


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
    return [*map(open_solve(builder, solve, unknowns, given), solve.rows)]


def open_solve(
    builder: Builder, solve: Solve, unknowns: Sequence[Node], given: Sequence[Node]
) -> Replay:
    """What copies the lines of a solve into a builder, at the given unknowns and arguments."""
    names = (*solve.columns, *solve.given)
    values = (*unknowns, *given)
    return Replay(builder, {a.id: b for a, b in zip(names, values, strict=True)})


def read_items(builder: Builder, node: Node) -> list[Node]:
    """The unknowns of a solve's node."""
    columns = node.attr.columns
    return [builder.node("item", (node,), i, c.axes) for i, c in enumerate(columns)]
