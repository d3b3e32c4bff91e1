"""Jit: an executor that runs compiled sequences where it can, and steps directly elsewhere."""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ingot.codegen.grids import GRID_DEVICES
from ingot.fields.calls import CHECKS, Refused, is_ours
from ingot.fields.jit.agree import corner, differences
from ingot.fields.jit.capture import LOCK, Untraceable, capture
from ingot.fields.jit.fingerprint import Unstable
from ingot.fields.jit.fuse import fuse
from ingot.fields.jit.native import SETTINGS, ready
from ingot.fields.jit.planner import PlanPart, plan, private_of
from ingot.fields.jit.program import (
    SequenceSource,
    find_sequence,
    forget_sequence,
    keep_sequence,
    write,
)
from ingot.fields.jit.schema import Schema, digest, schema_of, sources_of
from ingot.fields.shares import ExchangeError
from ingot.fields.spaces import Space
from ingot.fields.step import Buffer, Old, Source, State, Step, due, evaluate
from ingot.graphs.cuda_graphs import Place, gpu
from ingot.graphs.recorded import Dispatcher

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = ["Jit", "Statistics", "drop", "jit"]

LOG = logging.getLogger("ingot")
KEPT = 256
"""How many graphs a process keeps, and how many plans an executor."""

GRAPHS: dict[object, Graph] = {}
"""Compiled sequences of this process, the one that was used last at the end."""

EXECUTORS: weakref.WeakSet[Jit] = weakref.WeakSet()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A compiled sequence: what runs it, what it was made of, and where it is kept."""

    run: Callable[[Sequence[Tensor]], tuple[Tensor, ...]]
    program: SequenceSource
    digest: str | None
    from_disk: bool = False


@dataclass(slots=True)
class SizedGraph:
    """A graph at the sizes of one box; `checks` calls are still to be compared.

    run: on GPUs, the graph by one launch where the same call was recorded before.
    """

    graph: Graph
    schema: Schema
    run: Callable[[list[Any]], Sequence[Tensor]]
    checks: int = CHECKS


@dataclass(slots=True, eq=False)
class Compiled:
    """A part of a plan: what it reads, what must leave it, and its graphs by sizes.

    fields, numbers: the sources by their places among the inputs of a graph, after the space.
    """

    part: PlanPart
    sources: tuple[Source, ...]
    fields: Mapping[int, Source]
    numbers: Mapping[int, Source]
    wanted: tuple[str, ...]
    hidden: tuple[str, ...]
    bound: dict[Any, SizedGraph | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What one run has compiled, found again, and left to run directly.

    `sequences` are in use, of which `captured` were compiled now and `hits` found in a cache;
    `operations` of torch became `passes` over memory.
    """

    sequences: int = 0
    captured: int = 0
    hits: int = 0
    fallbacks: int = 0
    operations: int = 0
    passes: int = 0
    calls: int = 0

    def __str__(self) -> str:
        parts = [f"{self.sequences} {'sequence' if self.sequences == 1 else 'sequences'}"]
        parts.append(f"{self.hits} cache {'hit' if self.hits == 1 else 'hits'}")
        if self.fallbacks:
            parts.append(f"{self.fallbacks} {'fallback' if self.fallbacks == 1 else 'fallbacks'}")
        parts.append(f"{self.operations} operations in {self.passes} passes")
        return f"JIT: {', '.join(parts)}"


class Recorded:
    """A sequence on a GPU, which is one launch from the time on that it was recorded.

    A field that was the same tensor in its first two calls is taken to stay where it lies; other
    operands are copied in, numbers (of the clock, constants) once for as long as they are the same.
    """

    def __init__(self, graph: Graph, place: Place, numbers: Collection[int]) -> None:
        self.run, self.place, self.numbers = graph.run, place, numbers
        self.reads = graph.program.reads
        self.seen: dict[int, weakref.ref[Tensor]] = {}
        self.unread: list[int] = []
        self.dispatcher: Dispatcher | None = None

    def __call__(self, inputs: list[Any]) -> Sequence[Tensor]:
        """What the sequence gives."""
        if self.dispatcher is not None:
            for at in self.unread:
                inputs[at] = None
            return self.dispatcher(inputs)
        if self.seen:
            same = {at for at in self.reads if self.seen[at]() is inputs[at]}
            self.dispatcher = Dispatcher(
                self.run, self.place, static=same.difference(self.numbers), fixed=self.numbers
            )
        self.seen = {at: weakref.ref(inputs[at]) for at in self.reads}
        self.unread = [at for at in range(len(inputs)) if at not in self.seen]
        return self.run(inputs)


class Jit:
    """Compiles the longest runs of steps that can be; what cannot runs directly.

    private: buffers that nothing outside a run of steps reads, so that they need not be stored
    direct: runs of steps that are not worth compiling, such as those that run once
    debug: whether to tell the plan of each run of steps
    cuda_graphs: on GPUs, whether sequences are recorded and replayed by one launch each
    """

    compiles = True

    def __init__(
        self,
        *,
        private: Iterable[str] = (),
        direct: Iterable[tuple[Step, ...]] = (),
        debug: bool = False,
        cuda_graphs: bool = True,
        folder: Path | None = None,
    ) -> None:
        self.private, self.direct = frozenset(private), frozenset(direct)
        self.debug, self.cuda_graphs, self.folder = debug, cuda_graphs, folder
        self.apart: dict[Step, str] = {}
        self.plans: dict[tuple[Step, ...], tuple[tuple[PlanPart, Compiled | None], ...]] = {}
        self.space: Space | None = None
        self.counts = Counter[str]()
        EXECUTORS.add(self)

    @property
    def statistics(self) -> Statistics:
        """The counts so far."""
        graphs = {
            bound.graph
            for parts in self.plans.values() for _, sequence in parts if sequence is not None
            for bound in sequence.bound.values() if bound is not None
        }  # fmt: skip
        programs = [graph.program for graph in graphs]
        return Statistics(
            sequences=len(programs),
            operations=sum(each.before for each in programs),
            passes=sum(each.after for each in programs),
            **self.counts,
        )

    def run(self, steps: tuple[Step, ...], state: State) -> None:
        """Run the steps in order and store what they give."""
        if state.space is not self.space:
            self.invalidate()
            self.space = state.space
        whole = steps in self.direct
        steps = due(steps, state)
        with torch.no_grad():
            for part, sequence in self.planned(steps, whole=whole):
                if sequence is None or not self.compiled(sequence, state):
                    for step in part.steps:
                        state.perform(step, self)

    def invalidate(self, steps: Iterable[Step] | None = None) -> None:
        """Forget the sequences that hold any of some steps, or all."""
        some = None if steps is None else set(steps)
        for key in list(self.plans):
            if some is None or not some.isdisjoint(key):
                del self.plans[key]

    def planned(
        self, steps: tuple[Step, ...], *, whole: bool
    ) -> tuple[tuple[PlanPart, Compiled | None], ...]:
        """The parts of a run of steps, and the sequences among them."""
        if steps in self.plans:
            return self.plans[steps]
        once = dict.fromkeys(steps, "it runs once") if whole else {}
        if self.space is not None and self.space.share is not None:
            others = (step for step in steps if not is_ours(step.function))
            once |= dict.fromkeys(others, "ranks compare it with the whole box")
        made = plan(steps, once | self.apart)
        if self.debug and steps and not whole:
            traced = sum(part.compiled for part in made.parts)
            counts = f"{traced} traced sequences, {len(made.parts) - traced} non-JITable computes"
            print(f"JIT executor built: {counts}\n{made}")
        last = {
            name: at
            for at, part in enumerate(made.parts) for step in part.steps for name in step.reads
        }  # fmt: skip
        found = tuple(
            (part, self.sequence(part, at, last) if part.compiled else None)
            for at, part in enumerate(made.parts)
        )
        if len(self.plans) >= KEPT:
            self.plans.clear()
        self.plans[steps] = found
        return found

    def sequence(self, part: PlanPart, number: int, last: Mapping[str, int]) -> Compiled:
        """A part made ready to be compiled; `last` is the last part that reads each buffer."""
        given = dict.fromkeys(name for step in part.steps for name in step.gives)
        inside = {name for name in given if name in self.private and last.get(name, 0) <= number}
        wanted = tuple(name for name in given if name not in inside)
        # what an earlier part gave for this one alone leaves the state as well
        read = (name for step in part.steps for name in step.reads if name in self.private)
        hidden = tuple(inside.union(name for name in read if last[name] == number))
        assert self.space is not None
        sources = sources_of(part.steps)
        places = dict(enumerate(sources, len(self.space.tensors())))
        fields = {at: source for at, source in places.items() if isinstance(source, Buffer | Old)}
        numbers = {at: source for at, source in places.items() if at not in fields}
        return Compiled(part, sources, fields, numbers, wanted, hidden)

    def compiled(self, sequence: Compiled, state: State) -> bool:
        """Run a sequence as a graph; false where it has none and its steps are still to be run."""
        inputs: list[Any] = [*state.space.tensors(), *[None] * len(sequence.sources)]
        for at, source in sequence.fields.items():
            inputs[at] = state.look_up(source)
        key = tuple(
            [(x.shape, x.dtype, x.device) for x in map(inputs.__getitem__, sequence.fields)]
        )
        known = sequence.bound.get(key)
        for at, source in sequence.numbers.items():
            if known is None or known.checks or at in known.graph.program.reads:
                inputs[at] = state.look_up(source)
        try:
            if key not in sequence.bound:
                sequence.bound[key] = self.bound(sequence, inputs, state.space)
            bound = sequence.bound[key]
            if bound is None:
                return False
            results = dict(zip(sequence.wanted, bound.run([*inputs]), strict=True))
            if bound.checks and not self.agrees(sequence, bound, inputs, results, state):
                del sequence.bound[key]
                return self.compiled(sequence, state)
        except Refused:
            raise
        except Exception as error:
            self.give_up(sequence, error)
            return False
        state.buffers |= results
        for name in sequence.hidden:
            state.buffers.pop(name, None)
        self.counts["calls"] += 1
        return True

    def bound(self, sequence: Compiled, inputs: list[Tensor], space: Space) -> SizedGraph | None:
        """The graph of a sequence at some sizes, if there are loops for its device."""
        schema = schema_of(inputs, space)
        if schema is None or space.k2.device.type not in GRID_DEVICES:
            return None
        graph, place = self.graph(sequence, schema, space), place_of(space.k2.device)
        if place is None or not self.cuda_graphs:
            return SizedGraph(graph, schema, graph.run)
        return SizedGraph(graph, schema, Recorded(graph, place, sequence.numbers))

    def graph(self, sequence: Compiled, schema: Schema, space: Space) -> Graph:
        """The graph of a sequence: known in this process, kept on disk, or captured now."""
        steps = sequence.part.steps
        try:
            name = digest(steps, sequence.wanted, schema, SETTINGS)
        except Unstable:
            name = None
        key: object = name or (steps, sequence.wanted, schema)
        with LOCK:
            graph = GRAPHS.pop(key, None)
            program = find_sequence(name, self.folder) if name and graph is None else None
            if program is not None:
                graph = Graph(ready(program), program, name, from_disk=True)
            if graph is not None:
                self.counts["hits"] += 1
            else:
                made = capture(steps, sequence.sources, sequence.wanted, schema, space)
                program = write(fuse(made))
                made.require_open()  # rewriting a graph may ask for the number of a size
                graph = Graph(ready(program), program, name)
                self.counts["captured"] += 1
                if name:
                    keep_sequence(name, program, self.folder)
            GRAPHS[key] = graph
            if len(GRAPHS) > KEPT:
                del GRAPHS[next(iter(GRAPHS))]
            return graph

    def agrees(
        self,
        sequence: Compiled,
        bound: SizedGraph,
        inputs: list[Tensor],
        results: dict[str, Tensor],
        state: State,
    ) -> bool:
        """Whether a graph gives what its steps give; else it is forgotten.

        One kept by another process may be outdated, one captured here is at fault.
        """
        steps, graph, look_up = sequence.part.steps, bound.graph, state.look_up
        part = corner(inputs, sequence.sources, bound.schema, state.space)
        if part is not None:
            small, look_up = part
            results = dict(zip(sequence.wanted, graph.run(small), strict=True))
        found = differences(results, steps, evaluate(steps, look_up), look_up)
        if not found:
            bound.checks -= 1
            return True
        with LOCK:
            for key in [key for key, each in GRAPHS.items() if each is graph]:
                del GRAPHS[key]
            if graph.digest:
                forget_sequence(graph.digest, self.folder)
        if not graph.from_disk:
            raise Untraceable(f"compiled, {', '.join(found)}")
        return False

    def give_up(self, sequence: Compiled, error: Exception) -> None:
        """Let the step at fault, or else all steps, run directly from now on, and say so once."""
        culprit = getattr(error, "step", None)
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        steps = sequence.part.steps if culprit is None else (culprit,)
        names = " ".join(step.name for step in sequence.part.steps)
        told_of = f"{culprit.name}: {why}" if culprit is not None else why
        # ranks must take part in every exchange together, so none is part of a sequence: expected
        expected = isinstance(error.__cause__, ExchangeError)
        if not expected and any(step not in self.apart for step in steps):
            LOG.warning(
                "Failed to trace compute sequence '%s': %s; %s runs directly",
                names, told_of, "it" if culprit is None else f"'{culprit.name}'",
            )  # fmt: skip
            LOG.debug("the failure was", exc_info=error)
            self.counts["fallbacks"] += 1
        self.apart |= dict.fromkeys(steps, why)
        self.invalidate(steps)


def place_of(device: torch.device) -> Place | None:
    """What calls of a sequence are recorded on; none where a launch costs nothing."""
    return gpu(device.index or 0) if device.type == "cuda" else None


def drop(steps: Iterable[Step]) -> None:
    """Let every executor forget the sequences that hold any of some steps."""
    some = tuple(steps)
    for executor in list(EXECUTORS):
        executor.invalidate(some)


def jit(simulation: Simulation, *, debug: bool | None = None) -> Jit:
    """The executor of a simulation: what nothing outside the solve reads stays inside."""
    return Jit(
        private=private_of(simulation),
        direct=(simulation.initialize,),
        debug=simulation.domain.debug if debug is None else debug,
    )
