"""run: a Simulation -> its results: the loop over steps, and the files it writes on the way."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from ingot.codegen.disk import writable
from ingot.errors import IngotError, Problem, raise_if, warn_of
from ingot.fields.blocks.device import device_of
from ingot.fields.blocks.domain import World, ranks_of, space_of
from ingot.fields.blocks.executioner import SAME_SIZE, Progress, shortened
from ingot.fields.blocks.measure import measured, stops, vectors
from ingot.fields.blocks.problem import LatticeOptions
from ingot.fields.calls import told_of
from ingot.fields.checkpoint import every
from ingot.fields.jit import jit as jit_executor
from ingot.fields.jit.material import tell_failures
from ingot.fields.lbm.hydrodynamics import RESIDUAL
from ingot.fields.lbm.media import idle_media
from ingot.fields.memory import too_large
from ingot.fields.outputs.background import Background
from ingot.fields.outputs.exodus import ExodusWriter
from ingot.fields.outputs.kinds import take_frame, writer_of
from ingot.fields.outputs.table import Event, TableTarget, write_table
from ingot.fields.outputs.vti import VTIWriter
from ingot.fields.outputs.xdmf import XDMFWriter
from ingot.fields.quirks import quirks
from ingot.fields.simulation import Simulation, build
from ingot.fields.solvers.solve import Substep
from ingot.fields.step import Buffer, Eager, State, StepExecutor, WholeFields
from ingot.fields.wiring import unwritten, wrong_measures
from ingot.hit import read
from ingot.keywords import check_keywords

__all__ = ["Result", "Run", "prepared", "run", "run_file"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a run leaves: the last state, the numbers of every event, the files written."""

    state: State
    times: tuple[float, ...]
    values: tuple[dict[str, float], ...]
    steps: int
    files: tuple[Path, ...]


@dataclass(slots=True)
class Run:
    """A run under way; `step` takes it one step further, so that it can be watched or stored."""

    simulation: Simulation
    folder: Path
    executor: StepExecutor
    state: State
    writers: tuple[XDMFWriter | VTIWriter, ...]
    exodus: tuple[tuple[TableTarget, ExodusWriter], ...]
    number: int = 0
    time: float = 0.0
    dt: float = 0.0
    failed: bool = False
    iterations: int | None = None
    values: dict[str, float] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    files: dict[Path, None] = field(default_factory=dict)
    begun: bool = False
    cut: int = 0
    """How many steps failed, and were taken smaller."""
    smallest: float = math.inf
    """The smallest size that a failed step was tried again with."""
    not_finite: bool = False
    """Whether fields that hold inf or nan have been told of."""
    stored: tuple[tuple[int, Path], ...] = ()
    """After how many steps the run is stored, and where."""
    strict: bool = False
    """Whether what is warned of ends the run as an error."""
    background: Background = field(default_factory=Background)
    """What writes files while the run goes on."""

    @property
    def leads(self) -> bool:
        """Whether this process tells and writes what all ranks have in common."""
        return self.state.space.share is None or self.state.space.share.rank == 0

    def start(self) -> None:
        """Fill the buffers and write what is due before the first step."""
        made = self.simulation
        self.time = self.state.time = made.executioner.start_time
        for name, started in made.buffers.items():
            with told_of(name, None, self.state, ()):
                self.state.buffers[name] = started.fill(name, self.state)
        Eager().run(made.initialize, self.state)  # once: compiling it would not pay
        warn_of(idle_media(made, self.state), strict=self.strict)
        for step in made.root.steps:
            if step.iteration is not None:
                step.iteration.begin(self.state)
            for name, source in step.follows.items():
                if source in self.state.buffers:
                    self.state.buffers[name] = self.state.buffers[source]
        self.executor.run(made.postprocess, self.state)
        self.tell("INITIAL")
        self.begun = True

    def over(self) -> bool:
        """Whether there is nothing left to do."""
        bounds = self.simulation.executioner
        enough = bounds.num_steps is not None and self.number >= bounds.num_steps
        return (
            enough
            or self.is_steady()
            or self.time >= bounds.end_time - 1e-12 * abs(bounds.end_time)
        )

    def is_steady(self) -> bool:
        """Whether the residual of a lattice has fallen below the tolerance of its problem."""
        problem, found = self.simulation.problem, self.state.buffers.get(RESIDUAL)
        if found is None or not isinstance(problem, LatticeOptions):
            return False
        return float(found) < problem.tolerance

    def step(self) -> None:
        """Take one step, in smaller ones where the solver fails."""
        made, state = self.simulation, self.state
        size = self.next_size()
        previous = self.previous()
        while True:
            # Handles to all old fields would keep their memory, so they are taken where needed.
            risky = made.solver is not None and made.solver.can_fail
            before = (dict(state.buffers), dict(state.old), state.sizes) if risky else None
            # a lattice streams what it held before
            if self.number > 0 or (made.is_lattice and not made.problem.marlin_compatible):
                state.advance()
            if self.solved(size):
                break
            assert before is not None
            state.buffers, state.old, state.sizes = before
            self.failed = True
            size = self.smaller(size)
        self.cut += self.failed
        state.dt = self.dt = size
        self.time += size
        self.number += 1
        state.ahead = 0.0
        self.executor.run(made.postprocess, state)
        self.tell("TIMESTEP_END", previous)
        # a look at all cells at steps 1, 2, 4, 8 and so on costs nothing in the long run
        rare = self.number & (self.number - 1) == 0
        if rare or any(math.isnan(value) for value in self.values.values()):
            tell_failures(strict=self.strict)
            self.tell_not_finite()

    def previous(self) -> dict[str, torch.Tensor] | None:
        """The fields that changes over the coming step are measured from, unless by substeps."""
        made = self.simulation
        if made.problem.marlin_compatible:
            return None
        names = {name for measure in made.measures for name, _ in measure.histories()}
        return {name: self.state.look_up(Buffer(name)) for name in names}

    def next_size(self) -> float:
        """The size of the step to take now."""
        made = self.simulation
        if self.number == 0:
            size = made.stepper.first()
        else:
            progress = Progress(
                self.number, self.time, self.dt, self.iterations, self.failed, self.values
            )
            size = made.stepper.next(progress)
        self.failed = False
        return shortened(made.executioner, self.time, size)

    def smaller(self, size: float) -> float:
        """The size to try again with."""
        made = self.simulation
        retried = made.stepper.retry(Progress(self.number, self.time, size))
        if size <= made.executioner.dtmin:
            message = f"the solver fails at time {self.time:g} even with dt = {size:g}"
            fix = "raise max_iterations or the tolerances, or lower dtmin"
            raise IngotError([Problem("not-converged", message, fix=fix)])
        retried = max(retried, made.executioner.dtmin)
        logging.getLogger("ingot").info("step %d fails, dt = %g", self.number + 1, retried)
        if math.isinf(self.smallest) and not made.stepper.adapts:
            message = f"step {self.number + 1}, at time {self.time:g}, fails with dt = {size:g}"
            fix = (
                f"it is tried with {retried:g}; give a smaller dt, or let a [TimeStepper] adapt it"
            )
            warn_of([Problem("step-cut", message, None, fix)], strict=self.strict)
        self.smallest = min(self.smallest, retried)
        return retried

    def tell_not_finite(self) -> None:
        """Say once which of the fields that the run is for hold inf or nan."""
        if self.not_finite:
            return
        made, found = self.simulation, []
        moved = getattr(made.solver, "buffer", ())
        names = dict.fromkeys((*moved, *sorted(made.observed)))
        share = self.state.space.share
        for name in names or [name for step in made.root.steps for name in step.gives]:
            value = self.state.buffers.get(name)
            counts = (0, 0) if value is None else (not_finite_in(value), value.numel())
            if share is not None:
                counts = tuple(map(sum, zip(*share.agree(counts), strict=True)))
            if counts[0]:
                found.append(f"'{name}' in {counts[0]} of {counts[1]} numbers")
        if found:
            self.not_finite = True
            message = f"after step {self.number}, at time {self.time:g}, not finite: "
            fix = "take smaller steps, or look at the fields before it: [TensorOutputs]"
            problem = Problem("not-finite", message + ", ".join(found), None, fix)
            warn_of([problem], strict=self.strict)

    def finish(self) -> None:
        """Tell what is due at the end, and what a user may not have meant."""
        self.tell("FINAL")
        tell_failures(strict=self.strict)
        self.tell_not_finite()
        if self.cut:
            message = (
                f"{self.cut} of {self.number} steps failed and were taken smaller, down to"
                f" dt = {self.smallest:g}; the run ends at time {self.time:g}"
            )
            fix = "give a smaller dt, or raise max_iterations or the tolerances"
            warn_of([Problem("step-cut", message, None, fix)])

    def solved(self, size: float) -> bool:
        """Take all substeps; whether the solver converged in each."""
        made, state = self.simulation, self.state
        state.time, solver = self.time, made.solver
        compatible = made.problem.marlin_compatible
        if solver is None:
            state.dt = size
            # The reference evaluates at the time where the step begins.
            state.time += 0.0 if compatible else size
            state.ahead = size if compatible else 0.0
            solve = Substep(made.root, state, self.executor)
            solve.evaluate()
            return True
        state.dt = state.ahead = size / solver.substeps
        if made.is_lattice and compatible and self.number == 0:
            return True
        section = made.tree.section("TensorSolver")
        solver_span = section[0].span if section else None
        for index in range(solver.substeps):
            changed = self.number > 0 and not math.isclose(size, self.dt, rel_tol=SAME_SIZE)
            solve = Substep(made.root, state, self.executor, index, changed, compatible)
            with told_of("[TensorSolver]", solver_span, state, ()):
                solver.substep(solve)
            self.iterations = solve.iterations
            if not solve.converged:
                return False
            state.note_size()
            last = index == solver.substeps - 1
            # The reference keeps no history in its first step.
            if not last and (self.number > 0 or not compatible):
                state.advance()
            state.time += state.dt
        return True

    def tell(self, event: Event, previous: Mapping[str, torch.Tensor] | None = None) -> None:
        """Take all numbers and write all files that are due at an event."""
        made, state = self.simulation, self.state
        state.time, state.dt = self.time, self.dt
        parts = state
        if state.whole is not None:
            # fields are gathered where numbers are taken off them, or where they are written
            state = state.over(state.whole)
            previous = None if previous is None else WholeFields(parts, previous)
        measured(made.measures, state, self.values, event, previous)
        if event != "FINAL":
            self.times.append(self.time)
            self.rows.append(dict(self.values))
        for target in made.outputs.targets:
            if target.kind == "CSV" and self.due(event, target.interval, target.events):
                self.write_csv(target.base)
        for measure, columns in vectors([m for m in made.measures if m.shown], state):
            for target in made.outputs.targets:
                asked = (target.events, measure.events)
                asked = asked if target.vectors is None else (target.vectors,)
                if target.kind == "CSV" and self.due(event, target.interval, *asked):
                    path = self.folder / f"{target.base}_{measure.name}_{self.number:04d}.csv"
                    rows = list(zip(*columns.values(), strict=True))
                    self.write_rows(path, list(columns), rows, append=False)
        for writer in self.writers:
            options = writer.output.options
            if self.due(event, options.time_step_interval, options.execute_on):
                job = take_frame(writer, state if options.merged else parts, self.time)
                self.background.submit(job, is_frame=True)
        for target, writer in self.exodus:
            if self.due(event, target.interval, target.events):
                job = writer.take(state, self.time, self.shown, event)
                if self.leads:
                    self.background.submit(job, is_frame=True)
                self.files[writer.path] = None

    def due(self, event: Event, interval: int, *lists: tuple[Event, ...]) -> bool:
        """Whether an event is in all lists and a step's turn has come; an end told is not again."""
        turn = self.number % interval == 0
        if event == "FINAL":
            told = turn and self.number > 0 and all("TIMESTEP_END" in each for each in lists)
            return all(event in each for each in lists) and not told
        return all(event in each for each in lists) and turn

    @property
    def shown(self) -> dict[str, float]:
        """The numbers that files show."""
        hidden = {measure.name for measure in self.simulation.measures if not measure.shown}
        return {name: value for name, value in self.values.items() if name not in hidden}

    def write_csv(self, base: str) -> None:
        """Add the present row to a table, sorted by name; nothing where there are no numbers."""
        if self.shown:
            path, names = self.folder / f"{base}.csv", sorted(self.shown)
            row = [self.time, *(self.shown[name] for name in names)]
            self.write_rows(path, ["time", *names], [row], append=path in self.files)

    def write_rows(
        self, path: Path, columns: list[str], rows: Sequence[Sequence[float]], *, append: bool
    ) -> None:
        """Have rows of a table written, after what is being written now."""
        if self.leads:
            job = partial(write_table, path, columns, rows, append=append)
            self.background.submit(job, is_frame=False)
        self.files[path] = None

    def steps(self) -> Iterator[Run]:
        """Start, unless restored, and take step after step to the end; itself after each."""
        stores = [every(count, place) for count, place in self.stored]
        with writable(any_error=True):
            try:
                if not self.begun:
                    self.start()
                while not self.over() and not stops(self.simulation.measures, self.values):
                    self.step()
                    for store in stores:
                        store(self)
                    yield self
                self.finish()
                self.flush()
            finally:
                self.background.close()

    def flush(self) -> None:
        """Wait until all is written that was taken so far."""
        self.background.flush()
        for writer in self.writers:
            self.files |= dict.fromkeys(sorted(writer.started))

    def result(self) -> Result:
        """What the run leaves."""
        self.flush()
        return Result(
            self.state, tuple(self.times), tuple(self.rows), self.number, tuple(self.files)
        )


@check_keywords
def prepared(
    simulation: Simulation,
    folder: Path | str = ".",
    *,
    executor: StepExecutor | None = None,
    jit: bool = True,
    device: str = "",
    ranks: int | None = None,
    strict: bool = False,
    world: World | None = None,
) -> Run:
    """A run that has not started; `ranks` is among how many a shared box would be cut.

    In a `world` of processes this one takes its part of the box; torch.distributed connects them.

    Without an executor, `jit` says whether sequences of computes are compiled. The `device` counts
    where the file names none; without either it is a GPU, if there is one. Where `strict`, or the
    file's [Settings] say so, what is warned of is an error.
    """
    strict = strict or simulation.strict
    doubts = (
        *simulation.tree.doubts, *simulation.doubts, *unwritten(simulation), *quirks(simulation),
        *wrong_measures(simulation),
    )  # fmt: skip
    warn_of(doubts, strict=strict)
    domain = simulation.domain
    span, local = simulation.span("Domain", "device_names"), None if world is None else world.local
    device = device_of(domain.device_names, device, span, local)
    raise_if(too_large(simulation, device, jit=jit and executor is None, world=world))
    count = ranks_of(domain) if ranks is None else ranks
    space = space_of(domain, device, count, world)
    whole = None if space.share is None else space_of(domain, device, count)
    state = State(
        space, simulation.constants, simulation.histories, simulation.spectra, whole=whole
    )
    folder = Path(folder)
    writers = tuple(writer_of(each, domain, folder, space) for each in simulation.fields_out)
    exodus = tuple(
        (target, ExodusWriter(folder / f"{target.base}.e", domain, simulation.mapped))
        for target in simulation.outputs.targets
        if target.kind == "Exodus"
    )
    executor = executor or (jit_executor(simulation) if jit else Eager())
    stored = tuple((count, folder / name) for count, name in simulation.outputs.stored)
    return Run(simulation, folder, executor, state, writers, exodus, stored=stored,
               strict=strict)  # fmt: skip


@check_keywords
def run_file(
    file: Path,
    overrides: Sequence[str] = (),
    folder: Path | str = ".",
    *,
    jit: bool = True,
    device: str = "",
    strict: bool = False,
) -> Result:
    """Read, build and run an input file."""
    simulation = build(read(file, overrides, moose=True))
    return run(simulation, folder, jit=jit, device=device, strict=strict)


@check_keywords
def run(
    simulation: Simulation,
    folder: Path | str = ".",
    *,
    executor: StepExecutor | None = None,
    jit: bool = True,
    device: str = "",
    ranks: int | None = None,
    strict: bool = False,
    world: World | None = None,
    watch: Callable[[Run], None] | None = None,
) -> Result:
    """Run a simulation to its end, writing its files into a folder."""
    ready = prepared(
        simulation, folder, executor=executor, jit=jit, device=device, ranks=ranks, strict=strict,
        world=world,
    )  # fmt: skip
    for now in ready.steps():
        if watch is not None:
            watch(now)
    return ready.result()


def not_finite_in(value: torch.Tensor) -> int:
    """How many numbers are inf or nan; of 64-bit integers, those that inf and nan are cast to."""
    if value.is_floating_point() or value.is_complex():
        return value.numel() - int(torch.isfinite(value).sum())
    lowest = torch.iinfo(torch.int64).min
    return int((value == lowest).sum()) if value.dtype == torch.int64 else 0
