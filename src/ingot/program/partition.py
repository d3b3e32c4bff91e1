"""Program -> segments: cut at every solve; what lies between solves is joined.

A segment is a Program over named values; running all in turn, by name, is running the whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ingot.program.builder import Builder, Node, reach
from ingot.program.implicit import Solve, read_items
from ingot.program.invariants import verify
from ingot.program.operations import operation
from ingot.program.program import Parameter, Program, Variable
from ingot.program.rewrite import Replay
from ingot.program.schedule import schedule_lines
from ingot.types import Scalar
from ingot.types.history import given_name, source_name

__all__ = ["Segment", "build_program", "check_segments", "has_tangents", "partition"]

MIN_LINES_TO_PASS = 64
"""From how many lines on a segment is given what another computed, instead of computing it too."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines that run together: `forward`, or `implicit` around the one solve of its program.

    A program that couples points is cut there first (boundaries.py): into `points` apart, `whole`
    ones that torch runs for all points, and `reduction`s, one line for each component.
    """

    kind: Literal["forward", "implicit", "points", "whole", "reduction"]
    program: Program

    @property
    def name(self) -> str:
        """The name of the solve; forward segments have none."""
        return self.solve.name if self.kind == "implicit" else ""

    @property
    def solve(self) -> Solve:
        """The solve of an implicit segment."""
        return self.node.attr

    @property
    def node(self) -> Node:
        """The node of that solve."""
        (node,) = (n for n in self.program.lines if n.op == "solve")
        return node

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of all values that it is given, parameters last."""
        inputs = [v.name for v in self.program.inputs]
        return (*inputs, *(p.variable.name for p in self.program.parameters))

    @property
    def gives(self) -> tuple[str, ...]:
        """The names of the values that later segments and the caller find."""
        return tuple(v.name for v in self.program.outputs)

    def __str__(self) -> str:
        title = f"implicit [{self.name}]" if self.kind == "implicit" else self.kind
        return (
            f"{title}, {self.program.count()} operations\n"
            f"  reads  {', '.join(self.reads)}\n  gives  {', '.join(self.gives)}"
        )


def partition(program: Program) -> tuple[Segment, ...]:
    """Cut at every solve, in the order they run; lines between are computed as late as they may.

    A program that gives derivatives of its own solves among its values is one segment: what a
    linear system is of stands in the same lines.
    """
    if has_tangents(program):
        return (Segment("forward", program),)
    cut = _Cut(program)
    cut.ask()
    cut.place()
    cut.share()
    return tuple(cut.build_segments())


def has_tangents(program: Program) -> bool:
    """Whether values are derivatives of implicit updates."""
    return any(n.op in ("linear", "accumulate") for n in program.lines)


def check_segments(segments: Sequence[Segment], program: Program) -> None:
    """Nothing is read before it is given, nothing is given twice, every output is given."""
    known = {v.name for v in program.inputs} | {p.variable.name for p in program.parameters}
    given = {v.name for v in program.outputs}
    moved = {n for n in known & given if any(n in s.gives for s in segments)}
    known = {given_name(n) if n in moved else n for n in known}
    for segment in segments:
        verify(segment.program)
        assert known >= set(segment.reads), f"reads {set(segment.reads) - known} too early"
        assert not known & set(segment.gives), f"gives {known & set(segment.gives)} again"
        solves = [n for n in segment.program.lines if n.op == "solve"]
        whole = has_tangents(segment.program)
        assert len(solves) == (segment.kind == "implicit") or whole
        known |= set(segment.gives)
    assert known >= given, f"{given - known} is never given"


class _Cut:
    """Where each named value is computed. Slot `i` is before solve `i`, the last after all."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.builder = program.builder()
        self.solves = [n for n in program.lines if n.op == "solve"]
        self.last = len(self.solves)
        self.level = self._find_levels()
        self.values: dict[str, Variable] = {}
        self.of: dict[int, Variable] = {}
        self.slot: dict[str, int] = {}
        self.due: dict[str, int] = {}
        outputs = {v.name: v for v in program.outputs}
        for v in (*program.inputs, *(p.variable for p in program.parameters)):
            other = outputs.get(v.name)
            replaced = other is not None and other.nodes != v.nodes
            self._know(replace(v, name=given_name(v.name)) if replaced else v)
        self.free = set(self.values)
        self.solved = [self._name_unknowns(node) for node in self.solves]

    def _find_levels(self) -> dict[int, int]:
        """The first slot in which each line can run."""
        place = {n.id: i for i, n in enumerate(self.solves)}
        found: dict[int, int] = {}
        for node in self.program.lines:
            behind = max((found[a.id] for a in node.args), default=0)
            found[node.id] = place.get(node.id, -1) + 1 or behind
        return found

    def _know(self, variable: Variable) -> Variable:
        self.values[variable.name] = variable
        for node in variable.nodes:
            if node.op not in ("const", "table"):
                self.of.setdefault(node.id, variable)
        return variable

    def _choose_name(self, variable: Variable, owner: str) -> Variable:
        """The value under the name of the output that it is, its own, or one of its own making."""
        for v in self.program.outputs:
            if v.nodes == variable.nodes and v.name not in self.values:
                return v
        taken = set(self.values) | {v.name for v in self.program.outputs}
        name = variable.name if variable.name not in taken else f"{variable.name} of {owner}"
        count = 1
        while name in taken:
            count += 1
            name = f"{variable.name} of {owner} {count}"
        return replace(variable, name=name)

    def _name_unknowns(self, node: Node) -> tuple[Variable, ...]:
        """The unknowns of a solve as values, which its items are."""
        items = iter(read_items(self.builder, node))
        found = []
        for v in node.attr.unknowns:
            nodes = tuple(next(items) for _ in v.nodes)
            value = self._choose_name(replace(v, nodes=nodes), node.attr.name)
            found.append(self._know(value))
        return tuple(found)

    # which values are computed by forward segments, and when they must be there

    def ask(self) -> None:
        """Every solve asks for the named values it reads, then the outputs for themselves."""
        for i, node in enumerate(self.solves):
            own: dict[int, Variable] = {}
            for owner, v in self.program.named:
                if owner == node.attr.name:
                    own |= {n.id: v for n in v.nodes if n.args and n.id not in self.of}
            for line in _find_met(node.args, {**self.of, **own}):
                if line.id in own and line.id not in self.of:
                    self._know(value := self._choose_name(own[line.id], node.attr.name))
                    self._ask(value, i)
                elif self.of[line.id].name in self.due:
                    self._ask(self.of[line.id], i)
        for v in self.program.outputs:
            if v.name not in self.values:
                self._ask(self._know(v), self.last)

    def _ask(self, value: Variable, slot: int) -> None:
        self.due[value.name] = min(slot, self.due.get(value.name, slot))

    def place(self) -> None:
        """Greedy: reuse the latest forward segment that runs early enough, else open one."""
        made: list[int] = []
        for name in sorted(self.due, key=lambda n: self.due[n]):
            due = self.due[name]
            level = max(self.level.get(n.id, 0) for n in self.values[name].nodes)
            if not made or made[-1] < level:
                made.append(due)
            self.slot[name] = made[-1]

    def share(self) -> None:
        """Long lines that two segments need are given by the first under a name of their own."""
        count = 0
        held: dict[int, int] = {}
        for slot, forward in self._list_steps():
            lines = self._find_lines(slot, forward)
            again = {
                n.id for n in lines if n.args and n.id in held and not operation(n.op).is_block
            }
            if len(again) > MIN_LINES_TO_PASS:
                roots = self._find_roots(slot, forward)
                rest = [a for n in lines if n.id not in again for a in n.args]
                for node in {n.id: n for n in (*rest, *roots) if n.id in again}.values():
                    count += 1
                    value = self._know(Variable(f"line {count}", Scalar, node.axes, (node,)))
                    self.due[value.name] = self.slot[value.name] = held[node.id]
                lines = self._find_lines(slot, forward)
            if forward:
                held |= {n.id: slot for n in lines if n.id not in held}

    # the segments

    def _list_steps(self) -> list[tuple[int, bool]]:
        """(slot, whether forward) of each segment in turn."""
        steps = []
        for slot in range(self.last + 1):
            if slot in self.slot.values():
                steps.append((slot, True))
            if slot < self.last:
                steps.append((slot, False))
        return steps

    def _find_known(self, slot: int, forward: bool) -> dict[int, Variable]:
        """The lines that segments before this one have given."""
        done = set(self.free) | {v.name for vs in self.solved[:slot] for v in vs}
        done |= {n for n, s in self.slot.items() if s < slot + (not forward)}
        return {i: v for i, v in self.of.items() if v.name in done}

    def _find_roots(self, slot: int, forward: bool) -> tuple[Node, ...]:
        if not forward:
            return self.solves[slot].args
        here = [self.values[n] for n, s in self.slot.items() if s == slot]
        return tuple(n for v in here for n in v.nodes)

    def _find_lines(self, slot: int, forward: bool) -> list[Node]:
        return schedule_lines(self._find_roots(slot, forward), self._find_known(slot, forward))

    def build_segments(self) -> Iterable[Segment]:
        """All of them, in order."""
        for slot, forward in self._list_steps():
            known = self._find_known(slot, forward)
            roots = self._find_roots(slot, forward)
            met = {known[n.id].name for n in _find_met(roots, known)}
            reads = [v for v in self.values.values() if v.name in met]
            if not reads:
                # constants too are given for a batch, which an input tells
                reads = [v for v in self.values.values() if v.name in self.free][:1]
            if forward:
                gives = tuple(self.values[n] for n, s in self.slot.items() if s == slot)
                yield Segment("forward", build_program(self.program, reads, gives, self.of))
            else:
                solved = self.solved[slot]
                yield Segment("implicit", build_program(self.program, reads, solved, self.of))


def build_program(
    program: Program, reads: Sequence[Variable], gives: Sequence[Variable],
    known: Mapping[int, Variable],
) -> Program:  # fmt: skip
    """A part of a program, from what it reads to what it gives; known: the lines that are read."""
    builder = Builder(program.extents)
    replaced: dict[int, Node] = {}
    placed: dict[str, Variable] = {}
    for v in reads:
        nodes = builder.components("input", (v.name,), [v.axes for _ in v.nodes])
        placed[v.name] = replace(v, nodes=nodes)
        pairs = zip(v.nodes, nodes, strict=True)
        replaced |= {old.id: new for old, new in pairs if known.get(old.id) is v}
    replay = Replay(builder, replaced)
    parameters = {p.variable.name: p for p in program.parameters}
    held = [
        Parameter(v, parameters[source_name(n)].value)
        for n, v in placed.items()
        if source_name(n) in parameters
    ]
    names = {p.variable.name for p in held}
    return Program(
        builder.extents,
        tuple(v for n, v in placed.items() if n not in names),
        tuple(held),
        tuple(replay.variable(v) for v in gives),
    )


def _find_met(roots: Iterable[Node], known: Mapping[int, object]) -> list[Node]:
    """The known lines that the roots reach, in order."""
    met = reach(roots, lambda n: () if n.id in known else n.args)
    return [met[i] for i in sorted(met) if i in known]
