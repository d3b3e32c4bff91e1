"""build: a Tree with a [Domain] -> Simulation, all that a run needs, checked.

Everything wrong with the file is told at once, at its line.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ingot.fields.computes
import ingot.fields.postprocessors  # noqa: F401  declares the postprocessors
from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if
from ingot.fields.blocks.bind import Binder
from ingot.fields.blocks.domain import Domain, check_domain
from ingot.fields.blocks.executioner import (
    STEPPERS,
    ConstantDT,
    Executioner,
    Stepper,
    TensorSolveIterationAdaptiveDT,
    check_executioner,
)
from ingot.fields.blocks.functions import read_functions
from ingot.fields.blocks.measure import Measure, read_measures
from ingot.fields.blocks.options import Reader, place
from ingot.fields.blocks.problem import MOOSE_ONLY, LatticeOptions, ProblemOptions, read_problem
from ingot.fields.blocks.variables import Mapped, StartedBuffer, declared_buffers, read_mapped
from ingot.fields.computes.parsed import ParsedCompute
from ingot.fields.declare import (
    BOUNDARIES,
    COMPUTES,
    FunctionName,
    gives_spectrum,
)
from ingot.fields.group import Group, in_order, members, steps_of
from ingot.fields.lbm.boundaries import with_first_links
from ingot.fields.lbm.hydrodynamics import RESIDUAL
from ingot.fields.lbm.setting import read_stencil, wrong_components
from ingot.fields.lbm.streaming import streams
from ingot.fields.outputs.kinds import read_tensor_outputs
from ingot.fields.outputs.table import Outputs, read_outputs
from ingot.fields.outputs.vti import VTI
from ingot.fields.outputs.xdmf import XDMF
from ingot.fields.solvers import SOLVERS
from ingot.fields.solvers.lattice import LBMStream
from ingot.fields.solvers.multistep import ForwardEulerSolver
from ingot.fields.solvers.solve import Root, Solver, SolverOptions, forwards
from ingot.fields.step import Old, Step
from ingot.fields.wiring import SPECTRAL, solver_reads, wrong_buffers
from ingot.hit import (
    Block,
    Tree,
    activate,
    find_unused_globals,
    unknown_fields,
    unknown_sections,
)
from ingot.model.settings import settings

__all__ = ["SECTIONS", "Simulation", "build", "is_simulation"]

SECTIONS = (
    "Domain", "Problem", "Stencil", "TensorBuffers", "TensorComputes", "TensorSolver",
    "TensorOutputs", "Functions", "Postprocessors", "VectorPostprocessors", "UserObjects",
    "AuxVariables", "AuxKernels", "Mesh", "Executioner", "Outputs", "GlobalParams", "Settings",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """A run as a file describes it."""

    tree: Tree
    stem: str
    domain: Domain
    problem: ProblemOptions
    constants: Mapping[str, float]
    buffers: Mapping[str, StartedBuffer]
    initialize: tuple[Step, ...]
    root: Root
    postprocess: tuple[Step, ...]
    solver: Any
    executioner: Executioner
    stepper: Stepper
    measures: tuple[Measure, ...]
    outputs: Outputs
    fields_out: tuple[XDMF | VTI, ...]
    mapped: tuple[Mapped, ...]
    strict: bool = False
    doubts: tuple[Problem, ...] = ()
    """Options that are set and change nothing."""

    @property
    def histories(self) -> dict[str, int]:
        """How many old states each buffer needs."""
        depths: dict[str, int] = dict(self.solver.histories()) if self.solver is not None else {}
        for name, depth in (pair for measure in self.measures for pair in measure.histories()):
            depths[name] = max(depths.get(name, 0), depth)
        for source in (s for step in (*self.root.steps, *self.postprocess) for s in step.sources):
            if isinstance(source, Old):
                depths[source.name] = max(depths.get(source.name, 0), source.age)
        return depths

    @property
    def is_lattice(self) -> bool:
        """Whether this is a lattice Boltzmann problem."""
        return isinstance(self.problem, LatticeOptions)

    def span(self, section: str, option: str) -> Span | None:
        """Where an option of a section is written, if it is."""
        fields = (part.field(option) for part in self.tree.section(section))
        return next((found.value_span for found in fields if found is not None), None)

    @property
    def observed(self) -> frozenset[str]:
        """The buffers that something outside the solve reads: outputs, measures, histories."""
        names = {name for step in self.postprocess for name in step.reads}
        names |= {name for measure in self.measures for name in measure.reads()}
        names |= {name for output in self.fields_out for name in output.options.buffer}
        names |= {each.buffer for each in self.mapped}
        return frozenset(names | set(self.histories))

    @property
    def spectra(self) -> frozenset[str]:
        """The buffers that are seen to hold spectra, from who writes or reads them."""
        found = set(solver_reads(self.solver, SPECTRAL))
        for step in (*self.initialize, *self.root.steps, *self.postprocess):
            pointwise = step.function is ParsedCompute and not found.isdisjoint(step.reads)
            if pointwise or gives_spectrum(step.function):
                found |= set(step.gives)
        return frozenset(found)

    def __str__(self) -> str:
        parts = (("initialize", self.initialize), ("solve", self.root.steps),
                 ("postprocess", self.postprocess))  # fmt: skip
        lines = (f"{title}\n" + "\n".join(f"  {step}" for step in steps) for title, steps in parts)
        return "\n".join(lines)


def is_simulation(tree: Tree) -> bool:
    """Whether a file describes a run on a grid."""
    return bool(tree.section("Domain"))


def build(tree: Tree, *, untrusted: bool = False) -> Simulation:
    """The simulation that a file describes; where `untrusted`, no code that it names is loaded."""
    raise_if(unknown_sections(tree, SECTIONS))
    raise_if(p for part in tree.section("Settings") for p in unknown_fields(part, ("strict",)))
    tree = activate(tree)
    whole = Sections(tree)
    reader = Reader(tree)
    stem = tree.file.stem if tree.file is not None else "out"
    domain = read_domain(whole, reader)
    options, constants = read_problem(whole.one("Problem"), reader)
    functions = read_functions(whole.blocks("Functions"), reader)
    mapped = read_mapped(whole, reader)
    dim = int(domain.dim) if domain is not None else 2
    lattice = read_stencil(whole.blocks("Stencil"), whole.one("Problem"), options, dim, reader)
    binder = Binder(
        tree, reader, functions, options.marlin_compatible, dim, untrusted, lattice, constants,
        {each.variable: each for each in mapped},
    )  # fmt: skip
    lists = {each.name: each for each in whole.blocks("TensorComputes")}
    known = ("Initialize", "Solve", "Postprocess", *(("Boundary",) if lattice.stencil else ()))
    for block in lists.values():
        if block.name not in known:
            fix = did_you_mean(block.name, known)
            if block.name == "Boundary":
                fix = "boundaries need [Problem] with type = LatticeBoltzmannProblem"
            message = f"[TensorComputes] has no sub-block '{block.name}'"
            reader.problems.append(Problem("unknown-block", message, block.span, fix))
    initialize = all_steps(lists.get("Initialize"), binder)
    postprocess = all_steps(lists.get("Postprocess"), binder)
    solve = ComputeList(binder, lists.get("Solve"))
    groups = solve.parts()
    solver = read_solver(whole.one("TensorSolver"), reader)
    if isinstance(options, LatticeOptions):
        solver = lattice_solver(solver, options, whole.one("TensorSolver"), reader)
        root = solve.root(groups, solver, None)
        reader.problems += solve.missing_root(solver, whole.one("TensorSolver"))
        between = with_first_links(
            step
            for block in sub_blocks(lists.get("Boundary"))
            for step in binder.steps(block, BOUNDARIES)
        )
        solid = lattice.mask("solid", {})
        moving = whole.one("TensorSolver")
        span = None if moving is None else moving.span
        stencil = lattice.stencil
        arriving = streams(solver, stencil, solid, span) if stencil is not None else ()
        root = Root((*arriving, *between, *root.steps), root.groups)
        initialize = in_order((*lattice.masks.values(), *initialize))
        if not any(RESIDUAL in step.gives for step in root.steps):
            reader.tell_idle_fields(whole.one("Problem"), options, ("tolerance",))
    else:
        reader.problems += misplaced_stream(solver, whole.one("TensorSolver"))
        root = solve.root(groups, solver, whole.one("TensorSolver"))
    outputs = read_outputs(whole.one("Outputs"), stem, reader)
    executioner = read_executioner(whole.one("Executioner"), reader)
    made = Simulation(
        tree=tree, stem=stem, domain=domain or Domain(dim="1"), problem=options,
        constants=constants,
        buffers=started(initialize, root.steps, postprocess)
        | declared_buffers(whole.blocks("TensorBuffers"), reader, lattice),
        initialize=initialize, root=root, postprocess=postprocess, solver=solver,
        executioner=executioner,
        stepper=read_stepper(whole.one("Executioner"), binder, executioner.dt),
        measures=read_measures(
            whole, binder, [*solve.groups, *root.groups], domain or Domain(dim="1")
        ),
        outputs=outputs,
        fields_out=read_tensor_outputs(
            whole.blocks("TensorOutputs"), outputs, stem, reader,
            compatible=options.marlin_compatible,
        ),
        mapped=mapped, strict=settings(tree).strict, doubts=tuple(reader.doubts),
    )  # fmt: skip
    reader.problems += wrong_stepper(made, whole.one("Executioner"))
    reader.problems += find_unused_globals(tree, reader.asked)
    reader.problems += undeclared_constants(reader, constants)
    if not reader.problems:
        reader.problems += wrong_buffers(made, whole.one("TensorSolver"))
        reader.problems += wrong_components(made, whole.one("TensorSolver"))
    raise_if(reader.problems)
    return made


@dataclass(frozen=True, slots=True)
class Sections:
    """The sections of a file; a section written twice is read as one."""

    tree: Tree

    def one(self, name: str) -> Block | None:
        """A section, its parts joined."""
        parts = self.tree.section(name)
        if len(parts) < 2:
            return parts[0] if parts else None
        fields = tuple(field for part in parts for field in part.fields)
        blocks = tuple(block for part in parts for block in part.blocks)
        return Block(name, name, fields, blocks, parts[0].span)

    def blocks(self, name: str) -> tuple[Block, ...]:
        """The blocks of a section, none where there is no section."""
        found = self.one(name)
        return () if found is None else found.blocks


def sub_blocks(block: Block | None) -> tuple[Block, ...]:
    return () if block is None else block.blocks


NOT_OF_LATTICES = ("root_compute", "forward_buffer", "forward_buffer_new")
"""The options of solvers that change nothing of a lattice: all of [Solve] runs once a step."""


def lattice_solver(
    solver: Any, options: LatticeOptions, block: Block | None, reader: Reader
) -> LBMStream:
    """What streams in a lattice Boltzmann problem: what the file says, or nothing."""
    if solver is not None and not isinstance(solver, LBMStream):
        message = f"{type(solver).__name__} does not solve a LatticeBoltzmannProblem"
        span = None if block is None else place(block, "type")
        fix = "set 'type = LBMStream', or 'type = TensorProblem' in [Problem]"
        reader.problems.append(Problem("wrong-value", message, span, fix))
    if block is not None and block.field("substeps") is not None:
        message = "LBMStream takes as many steps as the problem says"
        fix = "set substeps in [Problem] instead"
        reader.problems.append(Problem("wrong-value", message, place(block, "substeps"), fix))
    given = solver if isinstance(solver, LBMStream) else LBMStream()
    reader.tell_idle_fields(block, given, NOT_OF_LATTICES)
    return dataclasses.replace(given, substeps=options.substeps)


def misplaced_stream(solver: Any, block: Block | None) -> Iterator[Problem]:
    """A problem where distributions are streamed without a lattice."""
    if isinstance(solver, LBMStream) and block is not None:
        message = "LBMStream needs a lattice Boltzmann problem"
        fix = "set 'type = LatticeBoltzmannProblem' in [Problem], and add a [Stencil]"
        yield Problem("wrong-value", message, place(block, "type"), fix)


def read_domain(whole: Sections, reader: Reader) -> Domain | None:
    block = whole.one("Domain")
    if block is None:
        message = "a simulation needs a [Domain]"
        raise IngotError([Problem("missing-block", message, fix="add a [Domain] block")])
    domain = reader.made(block, Domain, ())
    if domain is not None:
        reader.problems += check_domain(domain, block)
        axes = "xyz"[int(domain.dim) :]
        idle = [name for a in axes for name in (f"n{a}", f"{a}min", f"{a}max")]
        reader.tell_idle_fields(block, domain, idle)
        mesh = whole.one("Mesh")
        if mesh is not None and domain.mesh_mode != "MANUAL":
            message = f"a [Mesh] block needs mesh_mode = MANUAL, not {domain.mesh_mode}"
            reader.problems.append(Problem("wrong-value", message, mesh.span, "remove [Mesh]"))
    return domain


def all_steps(block: Block | None, binder: Binder) -> tuple[Step, ...]:
    """The steps of [Initialize] or [Postprocess] in order."""
    listed = ComputeList(binder, block)
    try:
        return steps_of(listed.parts(), listed.rank)
    except IngotError as error:
        binder.reader.problems += error.problems
        return ()


def repeated_names(blocks: Iterator[Block]) -> Iterator[Problem]:
    seen: dict[str, Block] = {}
    for block in blocks:
        if seen.setdefault(block.name, block) is not block:
            message = (
                f"there is already a compute '{block.name}', on line {seen[block.name].span.line}"
            )
            yield Problem("duplicate-block", message, block.span, "rename one of the two")


AUTOMATIC = "automatic_root_compute"
"""What the group of all computes is called where a solver names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Computes that run together.

    computes: names of further computes of [Solve] that belong to the group
    enable_jit: whether runs of its computes are compiled
    """

    computes: tuple[str, ...] = ()
    enable_jit: bool = True


@dataclass(slots=True)
class ComputeList:
    """Reads a list of [TensorComputes] into groups of steps; both are found by name.

    A step is one object however many groups name it, so that it runs once.
    """

    binder: Binder
    block: Block | None
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[Block, GroupOptions]] = field(default_factory=dict)

    @property
    def rank(self) -> dict[Step, int]:
        """The place of each step in the file, which is their order unless one needs another."""
        written = (step for steps in self.steps.values() for step in steps)
        return {step: at for at, step in enumerate(written)}

    def parts(self) -> tuple[Step | Group, ...]:
        """The steps and groups that stand directly in the list."""
        if self.block is None:
            return ()
        self.binder.reader.problems += repeated_names(every(self.block))
        self.gather(self.block)
        try:
            for name, (asked, options) in self.groups.items():
                if not options.enable_jit:
                    self.leave_out(members(self.named(name, asked)), name)
            for name, steps in list(self.steps.items()):
                self.steps[name] = tuple(self.iterating(name, step) for step in steps)
            return tuple(p for each in self.block.blocks for p in self.named(each.name, each))
        except IngotError as error:
            self.binder.reader.problems += error.problems
            return ()

    def gather(self, block: Block) -> None:
        """Read every compute and the options of every group."""
        reader = self.binder.reader
        for each in block.blocks:
            if each.type in (None, "ComputeGroup"):
                options = reader.made(each, GroupOptions, ("type",), None)
                self.groups[each.name] = (each, options or GroupOptions())
                self.gather(each)
            else:
                self.steps[each.name] = self.binder.steps(each)

    def leave_out(self, steps: Iterable[Step], group: str) -> None:
        """Let steps stay out of compiled sequences, as a group of theirs asks."""
        some, reason = set(steps), f"[{group}] has enable_jit = false"
        for name, each in self.steps.items():
            self.steps[name] = tuple(
                dataclasses.replace(step, reason=step.reason or reason) if step in some else step
                for step in each
            )

    def iterating(self, name: str, step: Step) -> Step:
        """A step as it is, or with the steps of other computes that it runs until they converge."""
        declared = COMPUTES.get(step.function.__name__)
        if declared is None or declared.iterates is None:
            return step
        assert self.block is not None
        block = next(each for each in every(self.block) if each.name == name)

        def steps_named(option: str) -> tuple[Step, ...]:
            found = self.named(str(step.options[option]), block, (name,), option)
            return steps_of(found, self.rank)

        return declared.iterates(step, steps_named)

    def named(
        self, name: str, asked: Block, inside: tuple[str, ...] = (), option: str = ""
    ) -> list[Step | Group]:
        """The parts that a name stands for, which an option of a block says, or the block has."""
        span = place(asked, option) if option else asked.span
        if name in inside:
            what = "the group" if name in self.groups else "the compute"
            raise IngotError(
                [Problem("circular-computes", f"{what} '{name}' contains itself", span)]
            )
        if name in self.steps:
            return list(self.steps[name])
        if name not in self.groups:
            fix = did_you_mean(name, [*self.steps, *self.groups])
            title = "Solve" if self.block is None else self.block.name
            message = f"[{title}] has no compute '{name}'"
            raise IngotError([Problem("missing-block", message, span, fix)])
        block, options = self.groups[name]
        names = dict.fromkeys([*(each.name for each in block.blocks), *options.computes])
        parts = [p for each in names for p in self.named(each, block, (*inside, name))]
        return [Group(name, tuple(parts), options.enable_jit, block.span)]

    def missing_root(self, solver: Any, block: Block | None) -> Iterator[Problem]:
        """A problem where a lattice names a root that is not there; all of [Solve] is evaluated."""
        if block is not None and solver.root_compute:
            known = [*self.steps, *self.groups]
            if solver.root_compute not in known:
                message = f"[Solve] has no compute '{solver.root_compute}'"
                fix = did_you_mean(solver.root_compute, known)
                yield Problem("missing-block", message, place(block, "root_compute"), fix)

    def root(self, parts: Sequence[Step | Group], solver: Any, block: Block | None) -> Root:
        """What the solver evaluates: the group it names, or all of [Solve]."""
        reader = self.binder.reader
        try:
            more: tuple[Step, ...] = ()
            if solver is not None and block is not None:
                if solver.root_compute:
                    parts = self.named(solver.root_compute, block)
                more = forwards(solver.forward_buffer, solver.forward_buffer_new)
            names = [name for part in parts if isinstance(part, Group) for name in part.groups]
            names += [] if solver is None or solver.root_compute else [AUTOMATIC]
            return Root((*steps_of(parts, self.rank), *more), tuple(dict.fromkeys(names)))
        except IngotError as error:
            reader.problems += error.problems
            return Root(())


def every(block: Block) -> Iterator[Block]:
    """All computes and groups in a block."""
    for each in block.blocks:
        yield each
        if each.type in (None, "ComputeGroup"):
            yield from every(each)


def read_solver(block: Block | None, reader: Reader) -> Any:
    """The solver of a [TensorSolver] block, its lists of one length."""
    if block is None:
        return None
    kind = reader.type_of(block, SOLVERS)
    solver: Solver | None = (
        None if kind is None else reader.made(block, kind, blocks=("Predictors",))
    )
    if solver is None:
        return None
    assert isinstance(solver, SolverOptions)
    if block.block("Predictors") is not None:
        logging.getLogger("ingot").warning("[TensorSolver/Predictors] has no effect")
    lists = solver.lists()
    pairs = {
        "forward_buffer": solver.forward_buffer,
        "forward_buffer_new": solver.forward_buffer_new,
    }
    for each in (lists, pairs):
        if len({len(names) for names in each.values()}) > 1:
            told = ", ".join(f"{name} has {len(names)}" for name, names in each.items())
            message = f"these lists of {block.title} are not of one length: {told}"
            reader.problems.append(
                Problem("wrong-value", message, block.span, "give as many of each")
            )
            return None
    if not getattr(solver, "buffer", ()) and not isinstance(solver, ForwardEulerSolver):
        message = f"{block.title} has no field to move"
        reader.problems.append(Problem("wrong-value", message, block.span, "name one in 'buffer'"))
        return None
    reader.problems += getattr(solver, "problems", lambda _: ())(block)
    return solver


def read_executioner(block: Block | None, reader: Reader) -> Executioner:
    if block is None:
        return Executioner(num_steps=0)
    for option in block.fields:
        if option.name in MOOSE_ONLY:
            message = "'%s' of [Executioner] has no effect: there is no finite-element solve"
            logging.getLogger("ingot").warning(message, option.name)
    reader.type_of(block, {"Transient": Executioner}, "Transient")
    made = reader.made(block, Executioner, ("type", *MOOSE_ONLY), ("TimeStepper",))
    if made is not None:
        reader.problems += check_executioner(made, block)
    return made or Executioner()


def read_stepper(block: Block | None, binder: Binder, size: float) -> Stepper:
    """The stepper of an [Executioner] whose step has this size."""
    inner = None if block is None else block.block("TimeStepper")
    if inner is None:
        return ConstantDT(dt=size)
    kind = binder.reader.type_of(inner, STEPPERS)
    made = None if kind is None else binder.reader.made(inner, kind)
    name = getattr(made, "function", None)
    if made is not None and name is not None:
        function = binder.resolved(inner, FunctionName, name)
        made = dataclasses.replace(made, function=function)
    if (
        isinstance(made, TensorSolveIterationAdaptiveDT)
        and made.min_iterations > made.max_iterations
    ):
        message = f"min_iterations = {made.min_iterations} lies above max_iterations"
        span = place(inner, "min_iterations")
        fix = f"give {made.max_iterations} or fewer"
        binder.reader.problems.append(Problem("wrong-value", message, span, fix))
    if isinstance(made, ConstantDT) and made.dt is None:
        made = dataclasses.replace(made, dt=size)
    return made or ConstantDT(dt=size)


def wrong_stepper(made: Simulation, block: Block | None) -> Iterator[Problem]:
    """A problem for each postprocessor that a stepper does not find."""
    inner = None if block is None else block.block("TimeStepper")
    if not isinstance(made.stepper, TensorSolveIterationAdaptiveDT) or inner is None:
        return
    names = [measure.name for measure in made.measures]
    for name in made.stepper.timestep_limiting_postprocessor:
        if name not in names:
            message = f"[Postprocessors] has no block '{name}'"
            span = place(inner, "timestep_limiting_postprocessor")
            yield Problem("missing-block", message, span, did_you_mean(name, names))


def started(*lists: Sequence[Step]) -> dict[str, StartedBuffer]:
    """The buffers that steps read before anything writes them, with their components' sizes."""
    steps = [step for each in lists for step in each]
    return {name: StartedBuffer(sizes) for step in steps for name, sizes in step.starts.items()}


def undeclared_constants(reader: Reader, constants: Mapping[str, float]) -> Iterator[Problem]:
    missing = sorted(name for name in reader.constants if name not in constants)
    if missing:
        verb = "were" if len(missing) > 1 else "was"
        noun = "Constants" if len(missing) > 1 else "Constant"
        message = f"{noun} {', '.join(missing)} {verb} requested but never declared"
        fix = "write a number, or declare it: scalar_constant_names in [Problem]"
        yield Problem("unknown-constant", message, reader.constants[missing[0]].value_span, fix)
