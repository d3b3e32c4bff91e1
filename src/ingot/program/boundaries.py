"""Program -> segments, cut at lines that see all points: sums over the batch, functions of torch.

A program is cut by depth: lines that run points apart lie at even depths, the others at odd ones,
each as early as it may. What one segment computes and another reads is passed by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ingot.program.builder import Axis, Builder, Node, reach, sort_until
from ingot.program.derivatives import block
from ingot.program.opaque import find_misplaced, is_whole
from ingot.program.operations import operation
from ingot.program.partition import Segment, build_program, partition
from ingot.program.points import find_operands, find_rule, find_sources
from ingot.program.program import Program, Variable
from ingot.types.batches import EVERY_POINT, Level, PointRule
from ingot.types.history import given_name

__all__ = [
    "Segmentation",
    "cut_at_boundaries",
    "find_points_apart",
    "find_segments",
    "has_boundaries",
]

REDUCTION, WHOLE = 0, 1  # sums run before what reads them at their depth


@dataclass(frozen=True, slots=True)
class Segmentation:
    """Segments in the order they run, and what decides the batch of each value between them.

    sources: the inputs and levels that each value depends on; levels: values of other batches than
    inputs have; rules: what each reduction does, by what it gives; given: the names of inputs, by
    those under which segments read them.
    """

    segments: tuple[Segment, ...]
    sources: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, Level]
    rules: Mapping[str, "PointStep"]
    given: Mapping[str, str]


class PointStep(NamedTuple):
    """What a reduction does with points, and along which axis of the batch.

    like: the sources of the value whose batch is made to fit.
    """

    rule: PointRule
    dim: int
    like: tuple[str, ...]


def has_boundaries(program: Program) -> bool:
    """Whether a line sees all points."""
    return bool(find_misplaced(program, "a segment"))


def find_segments(program: Program) -> tuple[Segment, ...]:
    """All segments in the order they run: cut at lines that see all points, then at solves."""
    if not has_boundaries(program):
        return partition(program)
    found: list[Segment] = []
    for segment in cut_at_boundaries(program).segments:
        found += partition(segment.program) if segment.kind == "points" else [segment]
    return tuple(found)


def find_points_apart(program: Program) -> tuple[Program, ...]:
    """The parts of a program that run points apart: the whole, where nothing cuts it."""
    if not has_boundaries(program):
        return (program,)
    return tuple(s.program for s in cut_at_boundaries(program).segments if s.kind == "points")


def cut_at_boundaries(program: Program) -> Segmentation:
    """The segments of a program: `points` run points apart, `whole` ones and `reduction`s do not.

    A linear system is solved where its solve is: one that a boundary parts from it solves again.
    """
    cut = _Cutting(program)
    cut.ask()
    return cut.build()


class _Place(NamedTuple):
    """Where lines run together: they have one depth, and read values of the same batches."""

    depth: int
    kind: int
    width: int
    key: tuple[str, ...]
    rule: tuple[Any, ...] = ()

    @property
    def is_reduction(self) -> bool:
        return self.depth % 2 == 1 and self.kind == REDUCTION


class _Cutting:
    """A program under the knife.

    place: of every line but inputs and numbers; wanted: the lines that each place passes on;
    asked: the variables that it gives; reads: the lines that it reads; operand: of a reduction;
    of: the value that each line is read from; passed: all such values.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        shown = {v.name for v in program.outputs}
        self.given = {given_name(v.name) if v.name in shown else v.name: v for v in program.given}
        self.inputs = {n.id: k for k, v in self.given.items() for n in v.nodes}
        self.sources = find_sources(program.lines, self.inputs)
        values = replace(program, outputs=program.value_outputs)
        self.values = {n.id for n in values.lines}
        self.place: dict[int, _Place] = {}
        self.wanted: dict[_Place, dict[int, Node]] = {}
        self.asked: dict[_Place, list[Variable]] = {}
        self.of: dict[int, Variable] = {}
        self.passed: list[Variable] = []
        self.reads: dict[_Place, dict[int, Node]] = {}
        self.rules: dict[str, PointStep] = {}
        self.operand: dict[_Place, Variable] = {}
        self.count = 0
        for node in program.lines:
            if not (node.is_number or node.id in self.inputs):
                self.place[node.id] = self._find_place(node)

    def _find_place(self, node: Node) -> _Place:
        if node.op == "item":
            return self.place[node.args[0].id]
        read = [self.place[a.id].depth for a in find_operands(node) if a.id in self.place]
        depth = max(read, default=0)
        if operation(node.op).couples_points:
            keys = tuple(tuple(sorted(self.sources.of[a.id])) for a in node.args)
            rule = (*find_rule(node), *keys, tuple(map(str, node.axes)), node.id in self.values)
            return self._make_place(depth + 1 + depth % 2, REDUCTION, [node], rule)
        if is_whole(node):
            return self._make_place(depth + 1 - depth % 2, WHOLE, [node])
        return self._make_place(depth + depth % 2, WHOLE, [node])

    def _make_place(
        self, depth: int, kind: int, nodes: Iterable[Node], rule: tuple[Any, ...] = ()
    ) -> _Place:
        key = frozenset().union(*(self.sources.key(n) for n in nodes)) or {EVERY_POINT}
        return _Place(depth, kind, len(key), tuple(sorted(key)), rule)

    def _find_home(self, nodes: Sequence[Node]) -> _Place:
        """Where a variable of these lines is put together."""
        places = {self.place[n.id] for n in nodes if n.id in self.place}
        depth = max((p.depth for p in places), default=0)
        home = self._make_place(depth + depth % 2, WHOLE, nodes)
        if len(places) == 1:
            (only,) = places
            if not only.is_reduction and only.key == home.key:
                return only
        return home

    def _name(self, nodes: Sequence[Node], axes: tuple[Axis, ...]) -> Variable:
        self.count += 1
        return Variable(f"passed {self.count}", block((len(nodes),)), axes, tuple(nodes))

    # what each place is asked for

    def ask(self) -> None:
        """From the last place to the first: what it gives, and so what it reads."""
        for v in self.program.outputs:
            self.asked.setdefault(self._find_home(v.nodes), []).append(v)
        done: set[_Place] = set()
        while left := ({*self.wanted, *self.asked} - done):
            place = max(left)
            done.add(place)
            if place.is_reduction:
                self._ask_operand(place)
            else:
                roots = [n for v in self.asked.get(place, ()) for n in v.nodes]
                roots += self.wanted.get(place, {}).values()
                self.reads[place] = self._walk(place, roots)
                for node in self.reads[place].values():
                    if node.id in self.place:
                        self.wanted.setdefault(self.place[node.id], {})[node.id] = node

    def _ask_operand(self, place: _Place) -> None:
        lines = self._list_wanted(place)
        nodes = [n.args[0] for n in lines]
        self.operand[place] = self._name(nodes, lines[0].axes)
        self.asked.setdefault(self._find_home(nodes), []).append(self.operand[place])

    def _walk(self, place: _Place, roots: Sequence[Node]) -> dict[int, Node]:
        """The lines that a place reads: inputs, and what others compute."""
        again: set[int] = set()
        while True:
            reads: dict[int, Node] = {}
            parted: set[int] = set()
            met = reach(roots, lambda n: () if self._is_read(n, place, again) else n.args)
            for node in (n for n in met.values() if not n.is_number):
                if self._is_read(node, place, again):
                    reads[node.id] = node
                    continue
                if hasattr(node.attr, "solve"):  # it belongs to a solve, which stands beside it
                    parted.add(node.args[0].args[0].id)
                if node.op == "solve" and node.attr.substeps is not None:
                    # a step in parts computes what it reads anew in each of them
                    given = zip(node.attr.given, node.args[len(node.attr.columns) :], strict=True)
                    leaves = {a.id for g, a in given if g in node.attr.substeps.leaves}
                    parted |= {n.id for n in sort_until(node.args, leaves)}
            parted = {i for i in parted if self.place.get(i, place) != place}
            if parted <= again:
                return reads
            again.update(parted)

    def _is_read(self, node: Node, place: _Place, again: set[int]) -> bool:
        """Whether a place reads a line, which is an input or computed elsewhere."""
        own = self.place.get(node.id) == place
        inside = node.id in again or (node.op == "item" and node.args[0].id in again)
        # conditions are told again from what they compare: they are no numbers to pass
        is_passed = not (own or inside or node.is_condition or operation(node.op).is_block)
        return not node.is_number and (node.id in self.inputs or is_passed)

    # the segments

    def build(self) -> Segmentation:
        """All places in turn, each a program of its own."""
        known = {k: replace(v, name=k) for k, v in self.given.items()}
        self.of = {n.id: v for v in known.values() for n in v.nodes}
        self.passed = list(known.values())
        segments = [
            self._build_reduction(place) if place.is_reduction else self._build_segment(place)
            for place in sorted({*self.reads, *self.operand})
        ]
        return Segmentation(
            tuple(segments),
            {v.name: self._find_sources(v.nodes) for v in self.passed},
            self.sources.levels,
            self.rules,
            {k: v.name for k, v in self.given.items()},
        )

    def _find_sources(self, nodes: Iterable[Node]) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*(self.sources.of[n.id] for n in nodes))))

    def _build_reduction(self, place: _Place) -> Segment:
        lines = self._list_wanted(place)
        operand, gives = self.operand[place], self._bundle(lines)
        self.passed.append(gives)
        b = Builder(self.program.extents)
        reads = b.components("input", (operand.name,), [operand.axes for _ in lines])
        # of a second operand nothing but the batch is read, which its sources tell
        made = tuple(
            b.node(n.op, (x, *(b.zero for _ in n.args[1:])), n.attr, n.axes)
            for n, x in zip(lines, reads, strict=True)
        )
        rule, dim = find_rule(lines[0])
        self.rules[gives.name] = PointStep(rule, dim, self._find_sources(lines[0].args[-1:]))
        inner, outer = replace(operand, nodes=reads), replace(gives, nodes=made)
        return Segment("reduction", Program(b.extents, (inner,), (), (outer,)))

    def _build_segment(self, place: _Place) -> Segment:
        met = {i: self.of[i] for i in sorted(self.reads[place])}
        bundles: dict[Any, list[Node]] = {}
        for node in self._list_wanted(place):
            key = node.id in self.values, node.axes, self._find_sources([node])
            bundles.setdefault(key, []).append(node)
        gives = [*self.asked.get(place, ()), *map(self._bundle, bundles.values())]
        # values first: their lines are printed by themselves, the same beside any derivative
        gives.sort(key=lambda v: not self._is_value(v))
        self.passed += gives
        # constants too are given for a batch, which an input tells
        reads = {v.name: v for v in met.values() or [*self.of.values()][:1]}
        program = build_program(self.program, tuple(reads.values()), gives, met)
        program = replace(program, value_count=sum(map(self._is_value, gives)))
        return Segment("whole" if place.depth % 2 else "points", program)

    def _list_wanted(self, place: _Place) -> list[Node]:
        lines = self.wanted.get(place, {})
        return [lines[i] for i in sorted(lines)]

    def _bundle(self, nodes: Sequence[Node]) -> Variable:
        """Lines on the same axes as one value, under which they are read from now on."""
        v = self._name(nodes, nodes[0].axes)
        self.of |= {n.id: v for n in nodes}
        return v

    def _is_value(self, v: Variable) -> bool:
        return all(n.id in self.values or n.is_number for n in v.nodes)
