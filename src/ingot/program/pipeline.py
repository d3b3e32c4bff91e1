"""The compiler's passes in the order they run, each Program -> Program, verified after each."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ingot.errors import raise_if
from ingot.program.band import MIN_ENTRIES_TO_BAND, find_band, prefer_band
from ingot.program.builder import Builder, Node, sort_lines
from ingot.program.extended import is_arrow
from ingot.program.factor import factor_solves
from ingot.program.implicit import Solve
from ingot.program.invariants import verify
from ingot.program.opaque import find_misplaced
from ingot.program.operations import Unstructured, operation
from ingot.program.program import Program
from ingot.program.rewrite import Replay, renew
from ingot.program.schedule import schedule_lines
from ingot.program.unroll import MAX_UNROLLED_OPERATIONS, MAX_UNROLLED_SYSTEM, unroll

__all__ = ["PASSES", "Choices", "clean", "compile_passes", "factor", "hoist", "loops", "schedule",
           "walk_passes"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choices:
    """What passes may be told.

    unroll_limit: the operations up to which axes are written out; band_from: the unknowns along an
    axis from which a system that couples neighbours alone is solved by a loop along it; like:
    factored solves of another program, by the digest of their source, whose eliminations are taken.
    """

    unroll_limit: int = MAX_UNROLLED_OPERATIONS
    band_from: int = MIN_ENTRIES_TO_BAND
    like: Mapping[str, Solve] = field(default_factory=dict)


DEFAULT = Choices()


def clean(program: Program, choices: Choices) -> Program:
    """Fold constants, share common subexpressions, leave dead code behind."""
    return renew(program)


def loops(program: Program, choices: Choices) -> Program:
    """All axes written out where the program stays short; otherwise they remain, as loops.

    Values alone decide, so that they are the same to the last bit with derivatives beside them.
    """
    raise_if(find_misplaced(program, "generated C++"))
    count = replace(program, outputs=program.value_outputs).count()
    is_banded = any(prefer_band(program, s, choices.band_from) for s in program.solves)
    if count <= choices.unroll_limit and not is_banded:
        return unroll(program)
    looped = program if is_banded else _unroll_around_arrows(program, choices)
    is_allowed = choices.unroll_limit > 0 and count <= MAX_UNROLLED_SYSTEM
    if is_allowed and any(_needs_lines(looped, s) for s in looped.solves):
        return unroll(program)
    return looped


def _needs_lines(program: Program, solve: Solve) -> bool:
    """Whether the unknowns on an axis make neither band nor arrow, so that no loop solves them;
    solves inside the residuals are not counted, whose systems grow too fast.
    """
    blocks = (n for n in sort_lines(solve.rows) if operation(n.op).is_block)
    if not any(c.axes for c in solve.columns) or any(blocks):
        return False
    return not is_arrow(solve) and find_band(solve.builder(program.extents), solve) is None


def _unroll_around_arrows(program: Program, choices: Choices) -> Program:
    """One axis of an arrow remains a loop, the outermost first, if what it repeats is short.

    Written out, zeros of tables are left behind: with its slips in lines a grain takes 8 300
    operations an update, with them in a loop 11 400. Otherwise arrows remain as they are.
    """
    on_axes = [s for s in program.solves if any(c.axes for c in s.columns)]
    depth = Counter[str]()
    for axes in (c.axes for s in on_axes for c in s.columns):
        depth |= Counter({a.name: len(axes) - i for i, a in enumerate(axes)})
    for axis in sorted(depth, key=lambda a: (-depth[a], -program.extents[a])):
        with suppress(Unstructured):
            loop = unroll(program, keep=(axis,))
            body = replace(loop, extents={**loop.extents, axis: 1}, outputs=loop.value_outputs)
            kept = (s for s in loop.solves if any(c.axes for c in s.columns))
            if body.count() <= choices.unroll_limit and all(map(is_arrow, kept)):
                return loop
    return program


def factor(program: Program, choices: Choices) -> Program:
    """Every solve's linear systems eliminated at compile time."""
    return factor_solves(program, choices.like)


def hoist(program: Program, choices: Choices) -> Program:
    """Mark what depends on parameters alone: it is computed once a call, not at every point."""
    own: set[int] = set()
    for node in program.lines:
        fixed = all(a.is_number or a.op == "parameter" or a.id in own for a in node.args)
        if node.args and fixed and not node.is_condition and node.op != "solve":
            own.add(node.id)
    read: dict[int, Node] = {
        a.id: a for n in program.lines if n.id not in own for a in n.args if a.id in own
    }
    read |= {n.id: n for n in program.roots if n.id in own}
    return replace(program, hoisted=tuple(read[i] for i in sorted(read)))


def schedule(program: Program, choices: Choices) -> Program:
    """Number lines in the order they are printed: each just before it is first read."""
    return _Scheduling(Builder(program.extents)).program(program)


PASSES = (clean, loops, factor, hoist, schedule)


def walk_passes(program: Program, choices: Choices = DEFAULT) -> Iterator[tuple[str, Program]]:
    """The program after each pass, with the pass's name."""
    done: dict[int, Solve] = {}
    for each in PASSES:
        program = verify(each(program, choices), done)
        yield each.__name__, program


def compile_passes(program: Program, choices: Choices = DEFAULT) -> Program:
    """The program after all passes, ready to be printed."""
    *_, (_, compiled) = walk_passes(program, choices)
    return compiled


class _Scheduling(Replay):
    """Copies lines as they are, in the order they run."""

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder, {})
        self.solves: dict[Solve, Solve] = {}

    def __call__(self, node: Node) -> Node:
        for needed in schedule_lines([node], self.new):
            self.new[needed.id] = self.copy(needed)
        return self.new[node.id]

    def copy(self, node: Node) -> Node:
        attr: Any = node.attr
        if node.op == "solve":
            attr = self._solve(attr)
        elif node.op in ("linear", "accumulate"):
            attr = replace(attr, solve=self._solve(attr.solve))
        args = tuple(self.new[a.id] for a in node.args)
        return self.builder.node(node.op, args, attr, node.axes)

    def program(self, program: Program) -> Program:
        # solves keep their order, in which they are reported
        blocks = [n for n in program.lines if n.op == "solve"]
        for node in (*blocks, *program.roots):
            self(node)
        return super().program(program)

    def _solve(self, solve: Solve) -> Solve:
        if solve not in self.solves:
            self.solves[solve] = self._schedule(solve)
        return self.solves[solve]

    def _schedule(self, solve: Solve) -> Solve:
        own = _Scheduling(Builder(self.builder.extents))
        own.solves = self.solves
        for node in (*solve.columns, *solve.given, *solve.rows):
            own(node)
        if solve.factored is not None:
            for node in (*solve.factored.placeholders, *solve.factored.system_roots()):
                own(node)
        return solve.copy(own)
