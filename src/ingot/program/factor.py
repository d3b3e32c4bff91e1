"""Linear systems of solves written out: the form is chosen, and what does not change is hoisted.

In: solves as traced. Out: solves that also hold Newton's update, the residuals' slopes and, where
the program asks for them, solutions with other right-hand sides, all as lines of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingot.errors import IngotError, Problem
from ingot.program.band import Band, find_band
from ingot.program.builder import Builder, Node, Space, sort_lines
from ingot.program.condense import condense, condense_safely
from ingot.program.differentiate import differentiate_along
from ingot.program.eliminate import Attempt, Eliminated, eliminate, solve_again
from ingot.program.extended import is_arrow
from ingot.program.forms import choose_form
from ingot.program.implicit import Solve, enclose
from ingot.program.probe import Probes
from ingot.program.program import Program, count_operations
from ingot.program.regions import find_regions
from ingot.program.rewrite import Replay

__all__ = ["Factored", "factor_solves"]


@dataclass(frozen=True, slots=True)
class Factored:
    """The linear systems of a solve, as lines over its placeholders and these.

    newton: the update from the residuals; directions, slopes: the residuals' derivative along one
    direction, for checks and for the pivoted routine; sides: a right-hand side; linear, adjoint:
    the solutions for it with the Jacobian and its transpose, where the program asks for them;
    costs: the operations of every form that was tried;
    source: the digest of the solve that was factored.
    """

    newton: Eliminated | Band
    directions: tuple[Node, ...]
    slopes: tuple[Node, ...]
    sides: tuple[Node, ...]
    linear: tuple[Node, ...] | None
    adjoint: tuple[Node, ...] | None
    costs: Mapping[str, int]
    source: str

    @property
    def placeholders(self) -> tuple[Node, ...]:
        """What is given besides unknowns and arguments."""
        return (*self.directions, *self.sides)

    def roots(self, solve: Solve) -> tuple[Node, ...]:
        """Every line that something reads."""
        return (*solve.rows, *self.system_roots())

    def system_roots(self) -> tuple[Node, ...]:
        """Every root beyond the residuals."""
        if isinstance(self.newton, Band):
            update = tuple(self.newton.entries.values())
        else:
            suspect = (self.newton.suspect,) if self.newton.suspect is not None else ()
            update = (*self.newton.update, *suspect)
        return (*update, *self.slopes, *(self.linear or ()), *(self.adjoint or ()))

    def copy(self, copy: Callable[[Node], Node]) -> "Factored":
        """The same over copies of its lines."""

        def nodes(found: tuple[Node, ...] | None) -> Any:
            return None if found is None else tuple(map(copy, found))

        return replace(
            self, newton=self.newton.copy(copy), directions=nodes(self.directions),
            slopes=nodes(self.slopes), sides=nodes(self.sides), linear=nodes(self.linear),
            adjoint=nodes(self.adjoint),
        )  # fmt: skip

    def describe(self, space: Space, solve: Solve) -> str:
        """What was chosen, and what else was tried."""
        size = space.count_entries(solve.columns)
        known = count_operations(space, solve.rows)
        title = f"solve [{solve.name}]: {size} unknowns, residual {known} operations"
        if isinstance(self.newton, Band):
            band = self.newton
            return (
                f"{title}\n  band along '{band.axis}', reach {band.reach}, {band.components} a cell"
            )
        costs = ", ".join(f"{form} {n}" for form, n in self.costs.items())
        form, count = self.newton.form, self.newton.operations
        return f"{title}\n  update in the {form} form, {count} operations ({costs})"


def factor_solves(program: Program, like: Mapping[str, Solve] | None = None) -> Program:
    """The program with every solve factored.

    like: factored solves of another program by the digest of their source, whose forms are taken.
    """
    asked: dict[Solve, set[str]] = {}
    _find_systems(program.lines, asked, nested=False)
    probes = Probes.of_program(program)
    work = _Factoring(Builder(program.extents), probes, asked, like or {}, {})
    return work.program(program)


def _find_systems(lines: Sequence[Node], asked: dict[Solve, set[str]], *, nested: bool) -> None:
    """Which systems of each solve are asked for; a solve inside another is linearised with it."""
    for node in lines:
        if node.op == "solve":
            asked.setdefault(node.attr, set()).update(["linear"] if nested else [])
            _find_systems(sort_lines(node.attr.rows), asked, nested=True)
        elif node.op == "linear":
            kind = "adjoint" if node.attr.is_transposed else "linear"
            asked.setdefault(node.attr.solve, set()).add(kind)


class _Factoring(Replay):
    """Copies lines with every solve factored once, wherever it stands."""

    def __init__(
        self, builder: Builder, probes: Probes, asked: Mapping[Solve, set[str]],
        like: Mapping[str, Solve], done: "dict[Solve, _Closed]",
    ) -> None:  # fmt: skip
        super().__init__(builder, {})
        self.probes, self.asked, self.like, self.done = probes, asked, like, done

    def copy(self, node: Node) -> Node:
        """A line whose operands have been copied."""
        if node.op != "solve":
            return super().copy(node)
        if node.attr not in self.done:
            self.done[node.attr] = self._factor(node)
        closed = self.done[node.attr]
        width = len(node.attr.columns)
        args = [self.new[a.id] for a in node.args]
        given = {g.id: a for g, a in zip(closed.given, args[width:], strict=True)}
        inline = Replay(self.builder, given)
        outside = tuple(inline(n) for n in closed.outside)
        return self.builder.node("solve", (*args[:width], *outside), closed.solve)

    def _factor(self, node: Node) -> "_Closed":
        solve = self._factor_inside(node)
        probes = self.probes.enter(node, solve)
        asked = self.asked.get(node.attr, set())
        before = self.like.get(node.attr.digest)
        factored = _factor(self.builder, solve, probes, asked, before)
        return _close(self.builder, solve, replace(factored, source=node.attr.digest))

    def _factor_inside(self, node: Node) -> Solve:
        """The solve of a node with those inside its residuals factored."""
        solve: Solve = node.attr
        if not any(n.op == "solve" for n in sort_lines(solve.rows)):
            return solve
        own, probes = Builder(self.builder.extents), self.probes.enter(node, solve)
        return solve.copy(_Factoring(own, probes, self.asked, self.like, self.done))


@dataclass(frozen=True, slots=True)
class _Closed:
    """A factored solve, and what it reads as lines over what it was given before."""

    solve: Solve
    given: tuple[Node, ...]
    outside: tuple[Node, ...]


def _factor(
    space: Space, solve: Solve, probes: Probes, asked: set[str], like: Solve | None
) -> Factored:
    """Choose the form of elimination by counted operations, and write it out."""
    attempt = Attempt(space, solve, probes)
    costs: Mapping[str, int] = {}
    if any(c.axes for c in solve.columns) and not is_arrow(solve):
        b = attempt.builder()
        newton: Eliminated | Band | None = find_band(b, solve)
        if newton is None:
            raise IngotError([Problem(
                "program-too-long",
                f"[{solve.name}] has unknowns on an axis that are coupled neither by neighbours"
                f" nor by sums alone, and is too long to write out", None, "shorten the axis",
            )])  # fmt: skip
    else:
        newton, costs = _choose(attempt, like)
        b = newton.builder
    sides = _make_placeholders(b, solve, "side")
    directions = _make_placeholders(b, solve, "direction")
    slopes = tuple(differentiate_along(b, solve.rows, solve.columns, directions))
    solutions: dict[str, tuple[Node, ...] | None] = {"linear": None, "adjoint": None}
    for kind in asked:
        if isinstance(newton, Band):
            solutions[kind] = ()
        else:
            found = solve_again(attempt, newton, sides, transposed=kind == "adjoint")
            solutions[kind] = found.update
    return Factored(
        newton, directions, slopes, sides, solutions["linear"], solutions["adjoint"], costs, ""
    )


def _choose(attempt: Attempt, like: Solve | None) -> tuple[Eliminated, Mapping[str, int]]:
    before = like.factored if like is not None else None
    if before is not None and isinstance(before.newton, Eliminated):
        return eliminate(attempt, before.newton.form, like=before.newton), before.costs
    if any(c.axes for c in attempt.solve.columns):
        return choose_form(attempt)
    parts = find_regions(attempt.solve)
    newton, costs = condense(attempt, parts) or choose_form(attempt)
    by_parts = condense_safely(attempt, parts, newton)
    if by_parts is not None:
        newton, costs = by_parts, {**costs, "condensed": by_parts.operations}
    return newton, costs


def _make_placeholders(b: Builder, solve: Solve, role: str) -> tuple[Node, ...]:
    return b.components("unknown", (role,), [c.axes for c in solve.columns])


def _close(space: Space, solve: Solve, factored: Factored) -> _Closed:
    """Hoist what changes with no unknown out of the solve, and keep the lines that are read."""
    closed, outside = enclose(space, replace(solve, factored=factored))
    return _Closed(closed, solve.given, outside)
