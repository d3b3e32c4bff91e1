"""Substepping in torch: points whose solve failed -> their unknowns, tangents and adjoints.

What each part was taken with is recorded, and derivatives go through the record: tangents along it,
adjoints backwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ingot.execute.newton import StepsInParts
from ingot.execute.newton_path import Part
from ingot.execute.status import Status
from ingot.program import Node, Solve, Space, sort_lines
from ingot.program.arrays import ArrayLayout
from ingot.program.solve_operations import Accumulate, find_leaf_arguments
from ingot.program.substeps import open_part

__all__ = ["Parts", "Record"]

Values = dict[int, Any]


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """Parts that converged: of which points (by place in the record), with what, to which unknowns.

    known: arrays of the part's placeholders; given: of what its equations read.
    """

    points: Tensor
    known: Values
    given: Sequence[Tensor]
    unknowns: Tensor


@dataclass(frozen=True, slots=True)
class Record:
    """The points of a call whose step was taken in parts, and the parts in order."""

    points: Tensor
    known: Values
    parts: Sequence[RecordedPart]


class Parts:
    """The lines of a solve's step in parts, as torch runs them; equations: those of the solve."""

    def __init__(self, space: Space, node: Node, equations: Any) -> None:
        self.node = node
        self.equations = equations
        self.part = open_part(space, node)
        self.solve: Solve = node.attr
        assert self.solve.substeps is not None
        self.level = self.solve.substeps.level

    @cached_property
    def _values(self) -> ArrayLayout:
        p = self.part
        return self._lay_out((*p.guesses, *p.given, *p.follows, *p.first))

    @cached_property
    def _tangents(self) -> ArrayLayout:
        t = self.part.tangents
        return self._lay_out((*t.sides, *t.follows, *t.first, *t.leaves, *t.carried))

    @cached_property
    def _adjoints(self) -> ArrayLayout:
        a = self.part.adjoints
        return self._lay_out((*a.leaves, *a.carried, *a.first, *a.rows, *a.follows))

    def _lay_out(self, roots: Sequence[Node]) -> ArrayLayout:
        return ArrayLayout(self.part.builder, sort_lines(roots))

    # values

    def take(
        self, around: Any, given: Sequence[Tensor], unknowns: Tensor, status: Status
    ) -> tuple[Tensor, Status, Record]:
        """The unknowns and the status where failed points were tried in parts, and the record."""
        steps = StepsInParts(self.level, unknowns, status)
        failed = steps.failed
        on = around.over(self._values, len(failed))
        known: Values = {}
        for node, x in zip(self.solve.given, given, strict=True):
            whole = on.place(around.take(x, node.axes, x.shape[-1]), node.axes)
            known[node.id] = _choose(whole, failed)
        p = self.part
        axes = [n.axes for n in p.carried]
        carried = on.flatten(on.run_roots(p.first, known), axes)
        tried = []
        for index, begin, end in steps:
            on = around.over(self._values, len(index))
            here = _pick(known, index)
            here |= on.split_lines(carried[:, index], p.carried)
            here |= {n.id: on.place(x, ()) for n, x in zip(p.ends, (begin, end), strict=True)}
            values = dict(here)
            guesses = on.run_roots(p.guesses, values)
            read = on.run_roots(p.given, values)
            at = self.equations.start(on, read)
            guess = on.flatten(guesses, self.equations.axes)
            u, part = at.solve(guess, Part(failed[index], begin, end))
            good = steps.keep(index, u, part)
            values |= on.split_lines(u, self.solve.columns)
            carried[:, index[good]] = on.flatten(on.run_roots(p.follows, values), axes)[:, good]
            tried.append((good, index, here, read, u))
        # kept are parts of points that came to the end
        at, place, parts = steps.done.nonzero()[:, 0], torch.cumsum(steps.done, 0) - 1, []
        for good, index, here, read, u in tried:
            if len(good := good[steps.done[index[good]]]):
                given = [_choose(x, good) for x in read]
                points = place[index[good]]
                parts.append(RecordedPart(points, _pick(here, good), given, u[:, good]))
        return *steps.finish(), Record(failed[at], _pick(known, at), parts)

    # derivatives

    def accumulate(
        self, around: Any, node: Node, args: Sequence[Tensor], record: Record | None
    ) -> dict[Any, Tensor]:
        """Derivatives through the parts of steps taken in parts, those of `linear` elsewhere."""
        attr: Accumulate = node.attr
        values = {n.id: x for n, x in zip(node.args, args, strict=True)}
        if record is not None and len(record.points) and attr.is_transposed:
            return self._pull_adjoints(around, node, values, record)
        results: dict[Any, Tensor] = {("leaf", j): around.fill(0.0) for j in range(attr.leaves)}
        for side in range(attr.sides):
            found = [values[n.id] for n in attr.side(node, side)]
            if record is not None and len(record.points):
                found = self._push_tangents(around, node, side, values, record)
            results |= {(slot, side): x for slot, x in enumerate(found)}
        return results

    def _push_tangents(
        self, around: Any, node: Node, side: int, values: Values, record: Record
    ) -> list[Tensor]:
        """What `linear` gives for a side, with tangents through parts where there are any."""
        attr: Accumulate = node.attr
        seeds = attr.seeds(node, side)
        known = dict(zip(attr.leaf_lines(node), attr.along(node, side), strict=True))
        lines = [known.get(n) for n in find_leaf_arguments(self.node)]
        # a leaf that the derivatives do not know has none
        along = [around.fill(0.0) if n is None else values[n.id] for n in lines]
        whole = around.flatten(along, [(*n.axes, *seeds) for n in self.part.leaves])
        through = self._push_along(around, record, whole, around.layout.space.size(seeds))
        axes = [(*a, *seeds) for a in self.equations.axes]
        base = around.flatten([values[n.id] for n in attr.side(node, side)], axes)
        base[:, record.points] = through.reshape(len(through), -1).T
        return around.split(base, axes)

    def _push_along(self, around: Any, record: Record, whole: Tensor, many: int) -> Tensor:
        """The tangents of unknowns, (points, unknowns, directions), along so many directions each;
        whole: those of leaves at all points, (entries * directions, points).
        """
        p, t, layout = self.part, self.part.tangents, self._tangents
        count = len(record.points)
        on = around.over(layout, count * many)
        along = whole[:, record.points].reshape(-1, many, count).permute(0, 2, 1)
        directions = on.split_lines(along.reshape(-1, count * many), t.leaves)
        axes = [n.axes for n in t.carried]
        first = on.run_roots(t.first, _repeat(record.known, many) | directions)
        carried = on.flatten(first, axes)
        size = self.equations.size
        found = whole.new_empty((count, size, many))
        for part, index, on, values in self._walk_parts(around, record, many, layout):
            values |= _pick(directions, index)
            values |= on.split_lines(carried[:, index], t.carried)
            right = on.flatten(on.run_roots(t.sides, values), self.equations.axes)
            right = right.reshape(size, -1, many).permute(1, 0, 2)
            x = self._solve(around, part, right, is_transposed=False)
            found[part.points] = x
            solved = on.split(x.permute(1, 0, 2).reshape(size, -1), self.equations.axes)
            pairs = zip(on.run_roots(t.follows, values), p.states, strict=True)
            follows = [x if state is None else solved[state] for x, state in pairs]
            carried[:, index] = on.flatten(follows, axes)
        return found

    def _pull_adjoints(
        self, around: Any, node: Node, values: Values, record: Record
    ) -> dict[Any, Tensor]:
        """What `linear` gives, zero where a step was taken in parts, and adjoints of leaves."""
        attr: Accumulate = node.attr
        base, bars = (
            around.flatten([values[n.id] for n in lines], self.equations.axes)
            for lines in (attr.side(node, 0), attr.along(node, 0))
        )
        base[:, record.points] = 0.0
        ends = bars[:, record.points]
        blocks = around.split(base, self.equations.axes)
        results: dict[Any, Tensor] = {(slot, 0): x for slot, x in enumerate(blocks)}
        leaves = self._pull_back(around, record, ends)
        whole = leaves.new_zeros(len(leaves), around.call.points)
        whole[:, record.points] = leaves
        blocks = around.split(whole, [n.axes for n in self.part.leaves])
        added = dict(zip(find_leaf_arguments(self.node), blocks, strict=True))
        for j, leaf in enumerate(attr.leaf_lines(node)):
            results["leaf", j] = added.pop(leaf, around.fill(0.0))
        return results

    def _pull_back(self, around: Any, record: Record, ends: Tensor) -> Tensor:
        """The adjoints of leaves, (entries, points), given those of unknowns in the end."""
        p, a, layout = self.part, self.part.adjoints, self._adjoints
        on = around.over(layout, len(record.points))
        axes, others = ([n.axes for n in nodes] for nodes in (p.carried, p.leaves))
        carried = on.flatten([on.fill(0.0) for _ in axes], axes)
        leaves = on.flatten([on.fill(0.0) for _ in others], others)
        ends = ends.clone()
        for part, index, on, values in self._walk_parts(around, record, 1, layout, back=True):
            bars = on.split(ends[:, index], self.equations.axes)
            follows = on.split_lines(carried[:, index], a.follows)
            for bar, state in zip(follows.values(), p.states, strict=True):
                if state is not None:
                    bars[state] = bars[state] + bar
            right = on.flatten(bars, self.equations.axes).T[..., None]
            x = self._solve(around, part, right, is_transposed=True)[..., 0].T
            ends[:, index] = 0.0
            values |= on.split_lines(x, a.rows) | follows
            leaves[:, index] += on.flatten(on.run_roots(a.leaves, values), others)
            carried[:, index] = on.flatten(on.run_roots(a.carried, values), axes)
        on = around.over(layout, len(record.points))
        first = on.run_roots(a.first, record.known | on.split_lines(carried, a.follows))
        return leaves + on.flatten(first, others)

    def _walk_parts(
        self, around: Any, record: Record, many: int, layout: ArrayLayout, *, back: bool = False
    ) -> Iterator[tuple[RecordedPart, Tensor, Any, Values]]:
        """The parts in turn: where their points lie, arrays to run lines on, and what is known."""
        for part in reversed(record.parts) if back else record.parts:
            each = torch.arange(many, device=part.points.device)
            index = (part.points[:, None] * many + each).flatten()
            on = around.over(layout, len(index))
            values = _repeat(part.known, many)
            values |= on.split_lines(part.unknowns.repeat_interleave(many, 1), self.solve.columns)
            yield part, index, on, values

    def _solve(
        self, around: Any, part: RecordedPart, right: Tensor, *, is_transposed: bool
    ) -> Tensor:
        """Solutions (points, unknowns, sides) of linear systems where a part ended."""
        on = around.over(self._values, len(part.points))
        at = self.equations.start(on, part.given)
        at.evaluate(part.unknowns)
        matrix = at.matrix()
        return torch.linalg.solve_ex(matrix.mT if is_transposed else matrix, right)[0]


def _choose(x: Tensor, index: Tensor) -> Tensor:
    """Some points of an array; one that is the same for all stays so."""
    return x if x.shape[-1] == 1 else x[..., index]


def _pick(values: Mapping[int, Tensor], index: Tensor) -> Values:
    return {i: _choose(x, index) for i, x in values.items()}


def _repeat(values: Mapping[int, Tensor], many: int) -> Values:
    """Every point as many times."""
    return {
        i: x if x.shape[-1] == 1 else x.repeat_interleave(many, -1) for i, x in values.items()
    }  # fmt: skip
