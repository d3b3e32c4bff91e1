"""The Program: what one point computes, from inputs and parameters to outputs, line by line."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ingot.keywords import check_keywords
from ingot.options import Newton
from ingot.program.builder import Axis, Builder, Node, Slopes, Space, reach, sort_lines
from ingot.program.operations import operation
from ingot.program.schedule import schedule_lines
from ingot.types import Value, lag, places

__all__ = [
    "Digested", "Newton", "Parameter", "Program", "Variable", "count_operations", "digest_lines",
    "do_lines_stay",
    "find_arguments", "find_dependent", "find_first_guesses", "find_frontier", "find_read",
    "find_solves", "is_shift_invariant",
]  # fmt: skip


class Digested:
    """A value that is the same as another where what tells them apart is."""

    @cached_property
    def digest(self) -> str:
        """What tells it apart, as a hash."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True)
class Variable:
    """A named value: a node for every entry of the axes it is spread over and every component.

    slope_of: the output whose derivative it is.
    """

    name: str
    kind: type[Value]
    axes: tuple[Axis, ...]
    nodes: tuple[Node, ...]
    spread: tuple[Axis, ...] = ()
    slope_of: str | None = None

    @property
    def looped(self) -> tuple[Axis, ...]:
        """The axes that its nodes lie on."""
        return tuple(a for a in self.axes if a not in self.spread)

    def labels(self) -> list[str]:
        """How each node is called in the user's words."""
        if not self.kind.base and not self.spread:
            return [self.name]
        parts = [",".join(map(str, p)) for p in places(self.kind.base)]
        if not self.spread:
            return [f"{self.name}[{p}]" for p in parts]
        entries = len(self.nodes) // len(parts)
        return [
            f"{self.name}[{i}]" if part == "" else f"{self.name}[{i};{part}]"
            for i in range(entries)
            for part in parts
        ]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the model: where it enters, and its value."""

    variable: Variable
    value: Value

    @property
    def batched(self) -> bool:
        """Whether the value has dynamic batch axes, so that it is passed at every call."""
        return self.value.data.ndim > len(self.value.base) + self.value.sub


@check_keywords
@dataclass(frozen=True, eq=False)
class Program(Space):
    """Lines for one point, which never change. `str()` prints them in the user's names.

    named: values between inputs and outputs that have names, by the solve that reads them;
    hoisted: lines that depend on parameters alone, computed once a call;
    value_count: how many outputs are values of the model, before their derivatives; None for all.
    """

    extents: Mapping[str, int]
    inputs: tuple[Variable, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[Variable, ...]
    named: tuple[tuple[str, Variable], ...] = ()
    hoisted: tuple[Node, ...] = ()
    value_count: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "extents", MappingProxyType(dict(self.extents)))

    @property
    def given(self) -> tuple[Variable, ...]:
        """Inputs, then parameters."""
        return (*self.inputs, *(p.variable for p in self.parameters))

    @property
    def roots(self) -> tuple[Node, ...]:
        """The nodes of all outputs."""
        return tuple(n for v in self.outputs for n in v.nodes)

    @property
    def value_outputs(self) -> tuple[Variable, ...]:
        """The outputs that are values of the model."""
        return self.outputs[: self.value_count]

    @cached_property
    def lines(self) -> tuple[Node, ...]:
        """Every line in order; those of a solve's residuals are the solve's."""
        return tuple(sort_lines(self.roots))

    @cached_property
    def solves(self) -> tuple[Any, ...]:
        """All implicit updates, those inside the residuals of another just before it."""
        return tuple(find_solves(self.lines))

    @cached_property
    def digest(self) -> str:
        """What the program computes, as a hash: equal programs have equal digests."""
        head = [
            [(v.name, v.kind.__name__, v.axes) for v in self.given],
            [(v.name, v.kind.__name__, v.axes) for v in self.outputs],
            sorted(self.extents.items()),
        ]
        given = [n for v in self.given for n in v.nodes]
        return digest_lines(self.roots, given, head)

    def count(self) -> int:
        """The number of operations, a solve's residual included once."""
        total = count_operations(self, self.roots)
        return total + sum(count_operations(self, s.rows) for s in self.solves)

    def builder(self) -> Builder:
        """A builder that continues these lines."""
        given = [n for v in self.given for n in v.nodes]
        return Builder(self.extents, sort_lines([*given, *self.roots, *self.hoisted]))

    def copy(self, copy: Callable[[Variable], Variable]) -> "Program":
        """The same over copies of its variables."""
        inputs, outputs = (tuple(map(copy, vs)) for vs in (self.inputs, self.outputs))
        parameters = tuple(replace(p, variable=copy(p.variable)) for p in self.parameters)
        return replace(self, inputs=inputs, parameters=parameters, outputs=outputs)

    def __str__(self) -> str:
        from ingot.program.text import format_program

        return format_program(self)


def find_solves(lines: Iterable[Node]) -> list[Any]:
    """The solves among lines, those inside the residuals of another just before it."""
    found: dict[Any, None] = {}
    for node in lines:
        if node.op == "solve":
            found |= dict.fromkeys(find_solves(sort_lines(node.attr.rows)))
            found[node.attr] = None
    return list(found)


def find_first_guesses(program: Program) -> frozenset[str]:
    """The inputs that no output depends on but through the values that a solve starts from."""
    read = find_read(program.roots)
    every = {n.id for n in program.lines}
    return frozenset(
        v.name for v in program.inputs
        if not any(n.id in read for n in v.nodes) and any(n.id in every for n in v.nodes)
    )  # fmt: skip


def is_shift_invariant(program: Program, names: Collection[str]) -> bool:
    """Whether outputs stay as they are where one number is added to inputs of these names and to
    all their histories: these enter by differences alone, as a clock does by `t - t~1`.
    """
    shifts = {n.id: 1.0 for v in program.inputs if lag(v.name)[0] in names for n in v.nodes}
    return do_lines_stay(program.builder().slopes, program.roots, shifts)


def do_lines_stay(d: Slopes, roots: Sequence[Node], shifts: Mapping[int, float]) -> bool:
    """The same of lines; shifts: how often that number is added to a line, by its id."""
    known = dict(shifts)
    for node in sort_lines(roots):
        own = [known.get(a.id, 0.0) for a in node.args]
        if any(own):
            shift = operation(node.op).translate(d, node, own)
            if shift is None:
                return False
            known[node.id] = shift
    return not any(known.get(r.id) for r in roots)


def find_read(roots: Iterable[Node]) -> set[int]:
    """The ids of all lines that roots depend on; a solve does not depend on its first guesses."""
    return {*reach(roots, lambda n: find_arguments(n) if n.op == "solve" else n.args)}


def find_arguments(solve: Node) -> list[Node]:
    """The lines that the solution of a solve's node depends on, which its first guesses are not."""
    given = solve.args[len(solve.attr.columns) :]
    hints = solve.attr.substeps.hints if solve.attr.substeps is not None else ()
    return [a for a, g in zip(given, solve.attr.given, strict=True) if g not in hints]


def find_dependent(roots: Iterable[Node], on: Iterable[Node]) -> set[int]:
    """The ids of all lines between the roots and the lines they depend on, those included.

    Lines made before all of `on` cannot depend on them, and are not looked at.
    """
    found = {n.id for n in on}
    start = min(found, default=0)
    later = (r for r in roots if r.id >= start)
    seen = reach(later, lambda n: [a for a in n.args if a.id >= start])
    for i in sorted(seen):
        if any(a.id in found for a in seen[i].args):
            found.add(i)
    return found


def find_frontier(roots: Sequence[Node], on: Sequence[Node]) -> tuple[Node, ...]:
    """The lines that do not depend on `on` but are read by those that do, or are roots."""
    inside = find_dependent(roots, on)

    def is_own(node: Node) -> bool:
        # a truth value is no number to pass around: it is told again from what it compares
        return node.id in inside or node.is_condition

    met = reach(roots, lambda n: n.args if is_own(n) else ())
    return tuple(met[i] for i in sorted(met) if not (is_own(met[i]) or met[i].is_number))


def count_operations(space: Space, roots: Iterable[Node], known: Iterable[Node] = ()) -> int:
    """How many operations the roots take beyond the known nodes, an axis counted in full."""
    return sum(operation(n.op).cost(space, n) for n in sort_lines(roots, known))


def digest_lines(roots: Sequence[Node], given: Sequence[Node], head: object) -> str:
    """The hash of what roots compute from given lines, however lines are numbered."""
    place = {n.id: i for i, n in enumerate(given)}
    told = [repr(head)]
    for node in schedule_lines(roots, place):
        place[node.id] = len(place)
        attr = getattr(node.attr, "digest", node.attr)
        told.append(f"{node.op} {attr!r} {node.axes} {[place[a.id] for a in node.args]}")
    told.append(repr([place[r.id] for r in roots]))
    return hashlib.blake2b("\n".join(told).encode(), digest_size=20).hexdigest()
