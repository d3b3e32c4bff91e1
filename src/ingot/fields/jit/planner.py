"""plan: steps in order -> which of them run as compiled sequences, and which directly.

Also which buffers nothing outside the solve reads: they need not leave a sequence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

from ingot.fields.computes.parsed import ParsedCompute, formula_from
from ingot.fields.jit.schema import sources_of
from ingot.fields.solvers.lattice import LBMStream
from ingot.fields.step import Buffer, Step

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = ["JitPlan", "PlanPart", "plan", "private_of"]

MAX_OPERATIONS = 4096
"""Above so many a run of steps is cut into several sequences: what orders and joins operations
looks through all of a sequence."""

USUAL_OPERATIONS = 8
"""How many operations a compute runs that is no expression; those of a lattice, which run hundreds
each, are fewer than a run of steps may have."""


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Steps that run as one: a compiled sequence, or one step that runs directly for a reason."""

    steps: tuple[Step, ...]
    reason: str = ""

    @property
    def compiled(self) -> bool:
        """Whether this is a sequence to compile."""
        return not self.reason

    def __str__(self) -> str:
        names = " ".join(step.name for step in self.steps)
        return names if self.compiled else f"{names}*"


@dataclass(frozen=True, slots=True)
class JitPlan:
    """The parts of a run of steps, in order."""

    parts: tuple[PlanPart, ...]

    def __str__(self) -> str:
        direct = (part for part in self.parts if not part.compiled)
        reasons = (f"{part}: {part.reason}" for part in direct)
        return "\n".join([" | ".join(map(str, self.parts)), *reasons])


def plan(steps: Sequence[Step], apart: Mapping[Step, str] | None = None) -> JitPlan:
    """The longest runs of steps that may be compiled, and the others one by one.

    `apart` are steps that were found not to be, and why. Very long runs are cut.
    """
    reasons = {step: (apart or {}).get(step, step.reason) for step in steps}
    parts: list[PlanPart] = []
    for direct, run in groupby(steps, key=lambda step: bool(reasons[step])):
        if direct:
            parts += (PlanPart((step,), reasons[step]) for step in run)
        else:
            parts += map(PlanPart, cut(tuple(run), MAX_OPERATIONS))
    return JitPlan(tuple(parts))


def cut(steps: tuple[Step, ...], most: int) -> Iterator[tuple[Step, ...]]:
    """Runs of at most so many operations, each ended where the fewest buffers wait to be read."""
    waiting, sizes = count_waiting(steps), [operations_of(step) for step in steps]
    begin = size = 0
    for at, more in enumerate(sizes):
        size += more
        if size > most and at > begin:
            # the last quarter of a run is looked through for a place
            first = at - (at - begin - 1) // 4
            end = min(range(first, at + 1), key=lambda i: (waiting[i], -i))
            yield steps[begin:end]
            begin, size = end, sum(sizes[end : at + 1])
    if begin < len(steps):
        yield steps[begin:]


def count_waiting(steps: Sequence[Step]) -> list[int]:
    """Before each step, how many buffers that steps gave are still to be read."""
    change = [0] * (len(steps) + 1)
    last = {name: at for at, step in enumerate(steps) for name in step.reads}
    for at, step in enumerate(steps):
        for name in step.gives:
            end = last.pop(name, at)
            if end > at:
                change[at + 1] += 1
                change[end + 1] -= 1
    return list(accumulate(change))


def operations_of(step: Step) -> int:
    """About how many operations of torch a step runs."""
    if step.function is not ParsedCompute:
        return USUAL_OPERATIONS
    lines = formula_from({**step.options, "inputs": step.options["names"]}).lines
    return sum(bool(node.args) for node, _ in lines)


def private_of(simulation: Simulation) -> frozenset[str]:
    """The buffers that each evaluation of the root gives anew and that only the root reads.

    Without a solver they are what the run is for.
    """
    steps = simulation.root.steps
    if simulation.solver is None:
        return frozenset()
    given = {name for step in steps for name in step.gives if "#" not in name}
    # what a step reads before another gives it lasts from turn to turn
    early = {source.name for source in sources_of(steps) if isinstance(source, Buffer)}
    outside = {*simulation.observed, *early, *read_by(simulation.solver)}
    # an iteration runs several sequences, which read what others of them gave
    inner = [each for s in steps if s.iteration is not None for each in s.iteration.steps]
    outside |= {name for step in inner for name in (*step.reads, *step.gives)}
    return frozenset(given - outside)


def read_by(solver: Any) -> Iterator[str]:
    """The buffers that a solver may look at between two evaluations.

    One that evaluates once in a substep reads nothing but through its update, which belongs to the
    same run of steps; the others keep what buffers hold.
    """
    if isinstance(solver, LBMStream):
        return  # all that it moves is given and read by the root
    moved = getattr(solver, "buffer", ())
    names = [getattr(solver, each.name) for each in dataclasses.fields(solver)]
    texts = {n for value in names if isinstance(value, tuple) for n in value if isinstance(n, str)}
    yield from moved if solver.evaluates_once else texts
