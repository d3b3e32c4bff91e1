"""A step that fails whole is taken in parts: what a solve reads in a part, and its derivatives.

Values that an update reads are wrapped in lines `part`, which are those values. In a part of the
step from a to b, forces lie between their old and new values, and old states are those of the part
before: the same lines, with others in the place of these.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ingot.errors import IngotError, Problem
from ingot.program.builder import Builder, Node, Slopes, Space, reach
from ingot.program.operations import (
    Arrays,
    Bars,
    Known,
    Nodes,
    Operation,
    Place,
    Tangent,
    operation,
    reduce_to,
    refuse_coupled,
)
from ingot.program.rewrite import Replay
from ingot.types import lag

if TYPE_CHECKING:
    from ingot.program.implicit import Solve
    from ingot.program.tracer import Placed
    from ingot.program.unroll import Unrolling

__all__ = [
    "MAX_LEVEL", "Part", "Substeps", "find_parts", "find_substeps", "open_part", "take_in_parts",
]  # fmt: skip

MAX_LEVEL = 52
"""How often a step can be halved: ends of parts are multiples of 2**-52, exact in doubles."""

Role = Literal["old", "new", "carried", "static"]


@dataclass(frozen=True, slots=True)
class Substeps:
    """How a step that fails whole is taken in parts, each half as long as the one that failed.

    level: how often a part is halved at most; leaves: the lines that all a solve reads and starts
    from is made of; carried: old values, which change from part to part; follows: what each is in
    the next part, an unknown or another part line; hints: those that nothing but guesses read.
    All are lines that the solve's node reads, or unknowns.
    """

    level: int
    leaves: tuple[Node, ...]
    carried: tuple[Node, ...]
    follows: tuple[Node, ...]
    hints: tuple[Node, ...] = ()

    @property
    def lines(self) -> tuple[Node, ...]:
        """All lines that it names."""
        return (*self.leaves, *self.carried, *self.follows)

    @property
    def varied(self) -> tuple[Node, ...]:
        """The leaves that a solution depends on."""
        return tuple(n for n in self.leaves if n not in self.hints)

    def copy(self, copy: Callable[[Node], Node]) -> "Substeps":
        """The same over copies of its lines; what has become a number is given no more."""
        leaves, hints = (
            tuple(dict.fromkeys(c for n in nodes if not (c := copy(n)).is_number))
            for nodes in (self.leaves, self.hints)
        )
        carried, follows = (tuple(map(copy, n)) for n in (self.carried, self.follows))
        return Substeps(self.level, leaves, carried, follows, hints)

    def join(
        self, frontier: Sequence[Node], columns: Sequence[Node]
    ) -> tuple[tuple[Node, ...], "Substeps"]:
        """What a solve is given where its equations read the frontier, hints last."""
        own = [n for n in self.lines if n not in columns and not n.is_number]
        read = dict.fromkeys((*frontier, *(n for n in own if n not in self.hints)))
        hints = tuple(dict.fromkeys(n for n in own if n in self.hints and n not in read))
        return (*read, *hints), replace(self, hints=hints)

    def unroll(self, to: "Unrolling") -> "Substeps":
        """The same over the entries of its lines."""

        def entries(nodes: Sequence[Node]) -> tuple[Node, ...]:
            return tuple(m for n in nodes for m in to.entries(n).values())

        chain = [
            (to.at(c, c.axes, e), to.at(f, c.axes, e))
            for c, f in zip(self.carried, self.follows, strict=True)
            for e in to.space.entries(c.axes)
        ]
        leaves = tuple(n for n in entries(self.leaves) if not n.is_number)
        carried, follows = (tuple(pair[i] for pair in chain) for i in (0, 1))
        return Substeps(self.level, leaves, carried, follows, entries(self.hints))


class _Part(Operation):
    """A value that an update reads, over a part of its step: itself, over the whole step.

    Its attribute is (role, name of the value, component, entry); forces read their other end too.
    """

    name = "part"
    is_free = True

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        return known.get(node.args[0].id, {})

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        return [(node.args[0], reduce_to(d, bar, node.axes, node.args[0]))]

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        args = tuple(to.at(a, node.axes, entry) for a in node.args)
        return to.builder.node("part", args, (*node.attr, *entry))

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return args[0]

    def write_cxx(self, lines: Any, node: Node, place: Place) -> str:
        return lines.read(node.args[0], place)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return args[0]

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return below[0]

    def translate(self, d: Slopes, node: Node, own: Sequence[float]) -> float | None:
        return own[0] if len({*own}) == 1 else None  # a force lies between its two ends


def find_leaves(roots: Iterable[Node], who: str) -> dict[Node, None]:
    """The lines that values in parts are made of: part lines' own, and what no law computes.

    who: the name of the solve that reads them
    """

    def follow(node: Node) -> Sequence[Node]:
        refuse_coupled([node], f"which [{who}] would take in parts by itself")
        if node.op == "solve":
            raise IngotError([Problem(
                "nested-solves",
                f"[{node.attr.name}] is solved for what [{who}] reads, so the step of [{who}]"
                f" cannot be taken in parts", None,
                f"leave 'max_substepping_level' of [{who}] out",
            )])  # fmt: skip
        return () if node.op == "part" else node.args

    met = reach(roots, follow).values()
    found = {n for n in met if operation(n.op).is_placeholder}
    found |= {a for n in met if n.op == "part" for a in n.args if not a.is_number}
    return dict.fromkeys(sorted(found, key=lambda n: n.id))


def find_parts(roots: Iterable[Node]) -> dict[Node, None]:
    """The part lines that roots read."""
    met = reach(roots, lambda n: () if n.op == "part" else n.args)
    return dict.fromkeys(n for n in met.values() if n.op == "part")


def take_in_parts(
    b: Builder, values: "Mapping[str, Placed]", unknowns: "Mapping[str, Placed]", who: str
) -> "tuple[dict[str, Placed], dict[Node, Node]]":
    """The values that an update reads as part lines; and what each old value becomes.

    `x~1` of an unknown x is carried on, and so is whatever is more than one step back: it becomes
    what was one step less back. `f` and `f~1` are the ends of a force, and all else is static.
    """
    wrapped: dict[str, Placed] = {}
    follows: dict[Node, Node] = {}
    for name, placed in sorted(values.items(), key=lambda item: lag(item[0])[1]):
        base, steps = lag(name)
        newer = base if steps == 1 else f"{base}~{steps - 1}"
        is_state, is_force = base in unknowns, base in values and f"{base}~1" in values
        if is_state and steps > 1 and newer not in values:
            raise IngotError([Problem(
                "broken-history",
                f"[{who}] reads '{name}' but not '{newer}', which it becomes in parts of a step",
                None, f"leave 'max_substepping_level' of [{who}] out, or read '{newer}' too",
            )])  # fmt: skip
        role: Role = "static"
        other: Placed | None = None
        last = placed
        if steps and (is_state or (is_force and steps > 1 and newer in values)):
            role = "carried"
            last = unknowns[base] if steps == 1 else wrapped[newer]
            placed = replace(placed, axes=max(placed.axes, last.axes, key=len))
        elif is_force and not is_state and steps < 2:
            role, other = ("old", values[base]) if steps else ("new", values[f"{base}~1"])
            placed = replace(placed, axes=max(placed.axes, other.axes, key=len))
        nodes = tuple(
            b.node("part", (n, *((other.nodes[i],) if other else ())), (role, name, i), placed.axes)
            for i, n in enumerate(placed.nodes)
        )
        wrapped[name] = replace(placed, nodes=nodes)
        if role == "carried":
            follows |= zip(nodes, last.nodes, strict=True)
    return wrapped, follows


def find_substeps(
    level: int, rows: Sequence[Node], columns: Sequence[Node], guesses: Sequence[Node],
    follows: Mapping[Node, Node], who: str,
) -> Substeps:  # fmt: skip
    """How the step of a solve is taken in parts, of which it reads some values as part lines."""

    def find_carried(roots: Sequence[Node]) -> dict[Node, None]:
        """The part lines that roots read, and those that they become."""
        found = find_parts(roots)
        for node in list(found):
            while node in follows and (node := follows[node]).op == "part" and node not in found:
                found[node] = None
        return found

    def find_own(roots: Sequence[Node], parts: Iterable[Node]) -> list[Node]:
        return [n for n in find_leaves((*roots, *parts), who) if n not in columns]

    read, hinted = find_carried(rows), find_carried(guesses)
    leaves = dict.fromkeys(find_own(rows, read))
    hints = [n for n in find_own(guesses, hinted) if n not in leaves]
    carried = [n for n in follows if n in read or n in hinted]
    only = [n for n in hinted if n not in read]
    return Substeps(
        level, (*leaves, *hints), tuple(carried), tuple(follows[n] for n in carried),
        (*hints, *only),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Part:
    """The lines of one part of a step, over placeholders: the solve's unknowns and what it is given
    for the whole step, what is carried, and where in the step the part begins and ends.

    first: what is carried into the first part; guesses, given: where unknowns start and what the
    equations read in this part; follows: what is carried on.
    """

    solve: "Solve"
    builder: Builder
    carried: tuple[Node, ...]
    ends: tuple[Node, Node]
    first: tuple[Node, ...]
    guesses: tuple[Node, ...]
    given: tuple[Node, ...]
    follows: tuple[Node, ...]

    @cached_property
    def states(self) -> tuple[int | None, ...]:
        """The number of the unknown that each carried value becomes, None where it is none."""
        place = {c.id: i for i, c in enumerate(self.solve.columns)}
        return tuple(place.get(f.id) for f in self.follows)

    @property
    def leaves(self) -> tuple[Node, ...]:
        """What derivatives are taken by."""
        assert self.solve.substeps is not None
        return self.solve.substeps.varied

    @cached_property
    def rows(self) -> list[Node]:
        """The residuals in this part."""
        from ingot.program.implicit import inline_residuals

        return inline_residuals(self.builder, self.solve, self.solve.columns, self.given)

    @cached_property
    def tangents(self) -> "PartTangents":
        """The derivative along one direction."""
        from ingot.program.differentiate import differentiate_along

        leaves = self._make_placeholders(self.leaves, "leaf along")
        carried = self._make_placeholders(self.carried, "carried along")

        def along(lines: Sequence[Node]) -> tuple[Node, ...]:
            columns = (*self.leaves, *self.carried)
            found = differentiate_along(self.builder, lines, columns, (*leaves, *carried))
            return tuple(found)

        sides = tuple(self.builder.slopes.emit("neg", s) for s in along(self.rows))
        return PartTangents(leaves, carried, along(self.first), sides, along(self.follows))

    @cached_property
    def adjoints(self) -> "PartAdjoints":
        """Reverse mode, from the adjoints of the residuals and of what is carried on."""
        from ingot.program.differentiate import pull

        b = self.builder
        rows = self._make_placeholders(self.solve.columns, "row adjoint")
        follows = self._make_placeholders(self.carried, "carried adjoint")
        others = [(f, bar) for f, bar, s in zip(self.follows, follows, self.states, strict=True)
                  if s is None]  # fmt: skip
        roots = [*self.rows, *(f for f, _ in others)]
        bars = [*(b.slopes.emit("neg", r) for r in rows), *(bar for _, bar in others)]
        found = pull(b, roots, bars, (*self.leaves, *self.carried), stop=self.solve.columns)
        count = len(self.leaves)
        first = pull(b, self.first, follows, self.leaves)
        return PartAdjoints(rows, follows, tuple(found[:count]), tuple(found[count:]), tuple(first))

    def _make_placeholders(self, like: Sequence[Node], role: str) -> tuple[Node, ...]:
        return self.builder.components("unknown", (role,), [n.axes for n in like])


@dataclass(frozen=True, slots=True)
class PartTangents:
    """leaves, carried: directions; first, follows: tangents of what is carried, where no unknown;
    sides: the right-hand side whose solution is the tangent of the unknowns.
    """

    leaves: tuple[Node, ...]
    carried: tuple[Node, ...]
    first: tuple[Node, ...]
    sides: tuple[Node, ...]
    follows: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class PartAdjoints:
    """rows: the solution of the transposed system; follows: adjoints of what is carried on;
    leaves, carried: what a part adds to the adjoints of leaves, and those of what it was carried;
    first: what the adjoints of what the first part was carried, in place of `follows`, add.
    """

    rows: tuple[Node, ...]
    follows: tuple[Node, ...]
    leaves: tuple[Node, ...]
    carried: tuple[Node, ...]
    first: tuple[Node, ...]


def open_part(space: Space, node: Node) -> Part:
    """The lines of a part of the step of a solve's node."""
    solve: Solve = node.attr
    substeps = solve.substeps
    assert substeps is not None
    width = len(solve.columns)
    args = node.args[width:]
    argument = dict(zip(solve.given, args, strict=True))
    b = solve.builder(space.extents)
    carried = b.components("unknown", ("carried",), [n.axes for n in substeps.carried])
    begin, end = (b.node("unknown", (), (role, 0)) for role in ("begin", "end"))
    leaves = {argument[n].id: n for n in substeps.leaves}
    replay = Replay(b, leaves)
    replay.new |= {argument[n].id: c for n, c in zip(substeps.carried, carried, strict=True)}
    first = tuple(replay(argument[n].args[0]) for n in substeps.carried)
    for part in find_parts((*node.args[:width], *(a for a in args if a.id not in leaves))):
        if part.id not in replay.new:
            value, *other = map(replay, part.args)
            if part.attr[0] == "new":
                value = _blend(b, end, other[0], value)
            elif part.attr[0] == "old":
                value = _blend(b, begin, value, other[0])
            replay.new[part.id] = value
    given = {g: replay(a) for g, a in argument.items()}
    follows = tuple(given.get(f, f) for f in substeps.follows)
    guesses = tuple(map(replay, node.args[:width]))
    return Part(solve, b, carried, (begin, end), first, guesses, tuple(given.values()), follows)


def _blend(b: Builder, at: Node, old: Node, new: Node) -> Node:
    """Between two values; exactly these at 0 and 1."""
    return b.emit(
        "add", b.emit("mul", b.emit("sub", 1.0, at), old), b.emit("mul", at, new)
    )  # fmt: skip
