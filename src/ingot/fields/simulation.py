"""build: a Tree with a [Domain] -> Simulation, all that a run needs, checked.

Everything wrong with the file is told at once, at its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ingot.fields.computes
import ingot.fields.postprocessors  # noqa: F401  declares the postprocessors
from ingot.errors import Problem, Span, did_you_mean, raise_if
from ingot.fields.blocks.bind import Binder
from ingot.fields.blocks.compute_list import ComputeList, all_steps
from ingot.fields.blocks.domain import Domain, read_domain
from ingot.fields.blocks.executioner import (
    Executioner,
    Stepper,
    read_executioner,
    read_stepper,
    wrong_stepper,
)
from ingot.fields.blocks.functions import read_functions
from ingot.fields.blocks.measure import Measure, read_measures
from ingot.fields.blocks.options import Reader
from ingot.fields.blocks.problem import (
    LatticeOptions,
    ProblemOptions,
    read_problem,
    undeclared_constants,
)
from ingot.fields.blocks.sections import Sections
from ingot.fields.blocks.solver import lattice_solver, misplaced_stream, read_solver
from ingot.fields.blocks.variables import Mapped, StartedBuffer, declared_buffers, read_mapped
from ingot.fields.computes.parsed import ParsedCompute
from ingot.fields.declare import BOUNDARIES, gives_spectrum
from ingot.fields.group import in_order
from ingot.fields.lbm.boundaries import with_first_links
from ingot.fields.lbm.hydrodynamics import RESIDUAL
from ingot.fields.lbm.setting import read_stencil, wrong_components
from ingot.fields.lbm.streaming import streams
from ingot.fields.outputs.kinds import read_tensor_outputs
from ingot.fields.outputs.table import Outputs, read_outputs
from ingot.fields.outputs.vti import VTI
from ingot.fields.outputs.xdmf import XDMF
from ingot.fields.solvers.solve import Root
from ingot.fields.step import Old, Step
from ingot.fields.wiring import SPECTRAL, solver_reads, wrong_buffers
from ingot.hit import (
    Tree,
    activate,
    find_unused_globals,
    unknown_fields,
    unknown_sections,
)
from ingot.keywords import check_keywords
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


@check_keywords
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
            for block in (lists["Boundary"].blocks if "Boundary" in lists else ())
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
    tell_idle_outputs(whole, domain, outputs, reader)
    executioner = read_executioner(whole.one("Executioner"), reader)
    made = Simulation(
        tree=tree, stem=stem, domain=domain or Domain(dim="1"), problem=options,
        constants=constants,
        buffers=started(initialize, root.steps, postprocess)
        | declared_buffers(whole.blocks("TensorBuffers"), reader, lattice),
        initialize=initialize, root=root, postprocess=postprocess, solver=solver,
        executioner=executioner,
        stepper=read_stepper(whole.one("Executioner"), binder, executioner),
        measures=read_measures(
            whole, binder, [*solve.groups, *root.groups], domain or Domain(dim="1")
        ),
        outputs=outputs,
        fields_out=read_tensor_outputs(
            whole.blocks("TensorOutputs"), outputs, stem, reader,
            compatible=options.marlin_compatible,
            shared=domain is not None and domain.parallel_mode != "NONE",
        ),
        mapped=mapped, strict=settings(tree).strict, doubts=tuple(reader.doubts),
    )  # fmt: skip
    names = [measure.name for measure in made.measures]
    reader.problems += wrong_stepper(made.stepper, names, whole.one("Executioner"))
    reader.problems += find_unused_globals(tree, reader.asked)
    reader.problems += undeclared_constants(reader, constants)
    if not reader.problems:
        reader.problems += wrong_buffers(made, whole.one("TensorSolver"))
        reader.problems += wrong_components(made, whole.one("TensorSolver"))
    raise_if(reader.problems)
    return made


def tell_idle_outputs(
    whole: Sections, domain: Domain | None, outputs: Outputs, reader: Reader
) -> None:
    """Keep a doubt about each option of files that nothing writes, or that no rank shares."""
    block = whole.one("Outputs")
    if block is not None and not outputs.targets and not outputs.stored:
        idle = ["execute_on", "time_step_interval"]
        idle += [] if whole.blocks("TensorOutputs") else ["file_base"]
        reader.tell_idle_fields(block, outputs.options, idle)
    if domain is not None and domain.mesh_mode != "MANUAL":
        written = any(target.kind == "Exodus" for target in outputs.targets)
        reader.tell_idle_fields(whole.one("Domain"), domain, () if written else ("mesh_mode",))


def started(*lists: Sequence[Step]) -> dict[str, StartedBuffer]:
    """The buffers that steps read before anything writes them, with their components' sizes."""
    steps = [step for each in lists for step in each]
    return {name: StartedBuffer(sizes) for step in steps for name, sizes in step.starts.items()}
