"""Which buffers of a simulation nothing outside its solve reads: they need not leave a sequence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ingot.fields.solvers.lattice import LBMStream
from ingot.fields.step import Step

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = ["private_of"]


def private_of(simulation: Simulation) -> frozenset[str]:
    """The buffers that each evaluation of the root gives anew and that only the root reads.

    Without a solver they are what the run is for.
    """
    steps = simulation.root.steps
    if simulation.solver is None:
        return frozenset()
    given = {name for step in steps for name in step.gives if "#" not in name}
    outside = {*simulation.observed, *early(steps), *read_by(simulation.solver)}
    # an iteration runs several sequences, which read what others of them gave
    inner = [each for s in steps if s.iteration is not None for each in s.iteration.steps]
    outside |= {name for step in inner for name in (*step.reads, *step.gives)}
    return frozenset(given - outside)


def early(steps: tuple[Step, ...]) -> Iterator[str]:
    """The buffers that a step reads before another gives them: they last from turn to turn."""
    given: set[str] = set()
    for step in steps:
        yield from (name for name in step.reads if name not in given)
        given |= set(step.gives)


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
