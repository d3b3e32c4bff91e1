"""Program -> `.pt2` graphs in a folder, each tried against the interpreter; their description."""

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch

from ingot.errors import IngotError, Problem, raise_if
from ingot.execute.batch_shape import shape_of
from ingot.execute.inductor_graphs import (
    Pair,
    find_columns,
    find_guesses,
    open_guesses,
    open_residuals,
    print_forward,
    print_residual,
    print_sensitivity,
    print_step,
    print_tangents,
)
from ingot.execute.inductor_metadata import (
    ForwardSegment,
    ImplicitSegment,
    InductorDescription,
    PartInfo,
    SlopeInfo,
    ValueInfo,
)
from ingot.execute.inductor_pool import FIX, CompilePool
from ingot.execute.inductor_run import InductorProgram
from ingot.execute.inductor_trial import TRIAL_BATCHES, Arrays, Trial
from ingot.execute.torch_source import PrintedGraph
from ingot.program import (
    Node,
    Program,
    Space,
    Variable,
    is_batch_independent,
    sort_lines,
    with_jacobian,
)
from ingot.program.opaque import find_misplaced, walk_lines
from ingot.program.partition import Segment, partition
from ingot.program.program import find_arguments
from ingot.program.substeps import find_parts
from ingot.types.history import given_name

__all__ = [
    "MAX_OPERATIONS",
    "SLOW_OPERATIONS",
    "GraphPlan",
    "compile_parts",
    "lower",
    "plan_graphs",
]

SLOW_OPERATIONS = 2000
MAX_OPERATIONS = 6000
"""From how many operations on a graph takes long (some 50 s), and from how many it is refused."""

Progress = Callable[[str], None]
Judge = Callable[[Trial, Arrays, Arrays], str | None]

logger = logging.getLogger("ingot")


@dataclass(frozen=True, slots=True)
class PlannedGraph:
    """A graph to be compiled: its file, its lines, and how to tell whether it is right."""

    file: str
    segment: Segment
    printed: PrintedGraph
    judge: Judge


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """All graphs of a program, and what will be said of them."""

    graphs: tuple[PlannedGraph, ...]
    description: InductorDescription

    def __str__(self) -> str:
        return "\n".join(f"{g.file}  {g.printed.operations} operations" for g in self.graphs)


def lower(
    plan: GraphPlan, folder: Path, *, jobs: int = 1, progress: Progress | None = None
) -> InductorDescription:
    """Compile all graphs of a plan into a folder."""
    precision = plan.description.dtype
    dtype: torch.dtype = getattr(torch, precision)

    def work(graph: PlannedGraph) -> None:
        trial = Trial(graph.segment, dtype)
        points = [trial.draw_points(graph.printed, n) for n in TRIAL_BATCHES]

        def check(gives: Sequence[Arrays]) -> None:
            for x, y in zip(points, gives, strict=True):
                if (wrong := graph.judge(trial, x, y)) is not None:
                    told = f"the graph '{graph.file}' at {len(x[0][0])} points: {wrong}"
                    raise IngotError([Problem("graph-differs", told, None, FIX)])

        children.compile(folder / graph.file, graph.printed, precision, points, check)
        if progress is not None:
            progress(graph.file)

    # the longest first, so that no process is left alone with it at the end
    order = sorted(plan.graphs, key=lambda g: -g.printed.operations)
    with closing(CompilePool(jobs)) as children:
        for job in [children.threads.submit(work, graph) for graph in order]:
            job.result()
    return plan.description


def compile_parts(programs: Sequence[Program], dtype: torch.dtype) -> list[InductorProgram]:
    """Programs as compiled graphs, all by the same processes; nothing is left on disk."""
    names = ["model", *(f"model_part{i}" for i in range(1, len(programs)))]
    plans = [plan_graphs(p, (), n, dtype=dtype) for p, n in zip(programs, names, strict=True)]
    with tempfile.TemporaryDirectory(prefix="ingot-") as name:
        folder = Path(name)
        every = tuple(graph for plan in plans for graph in plan.graphs)
        lower(GraphPlan(every, plans[0].description), folder, jobs=os.cpu_count() or 1)
        return [
            InductorProgram(
                lambda file: (folder / file).read_bytes(), plan.description,
                parameters={
                    p.variable.name: p.value.data.detach().to(dtype) for p in program.parameters
                },
            )
            for plan, program in zip(plans, programs, strict=True)
        ]  # fmt: skip


def plan_graphs(
    program: Program, pairs: Sequence[Pair], stem: str, *, dtype: torch.dtype = torch.float64,
    segments: Sequence[Segment] | None = None,
) -> GraphPlan:  # fmt: skip
    """Every graph as text, and the description of all; nothing is compiled.

    segments: those of the program, where it was partitioned before
    """
    raise_if(find_misplaced(program, "a compiled graph"))
    raise_if(_find_long_loops(program))
    raise_if(
        Problem("wrong-backend", f"graphs hold no derivatives of [{n.attr.solve.name}] as lines",
                None, "choose --backend kernel or interpret, or ask a package for blocks (-d)")
        for n in program.lines if n.op == "linear"
    )  # fmt: skip
    segments = partition(program) if segments is None else segments
    precision = str(dtype).removeprefix("torch.")
    computed = {n for s in segments for n in s.gives}
    # the names under which segments read what is given
    keys = {v.name: given_name(v.name) if v.name in computed else v.name for v in program.given}
    local = _find_local_pairs(segments, [(y, keys[x]) for y, x in pairs])
    made: list[PlannedGraph] = []
    infos: list[ForwardSegment | ImplicitSegment] = []
    for i, (segment, passing) in enumerate(zip(segments, local, strict=True)):
        name = stem if len(segments) == 1 else f"{stem}_seg{i}"
        write = _plan_forward if segment.kind == "forward" else _plan_implicit
        info, found = write(segment, passing, name, precision)
        infos.append(info)
        made += found
    raise_if(_find_long_graphs(made))
    parts = [s.program for s in segments]
    known = {v.name: _describe_value(v, program) for p in parts for v in (*p.given, *p.outputs)}
    for v in program.given:
        known.setdefault(keys[v.name], _describe_value(v, program, keys[v.name]))
    blocks = with_jacobian(program, pairs).outputs[len(program.outputs) :]
    description = InductorDescription(
        dtype=precision,
        values=tuple(known.values()),
        inputs=tuple(keys[v.name] for v in program.inputs),
        parameters=tuple(keys[p.variable.name] for p in program.parameters),
        given={key: name for name, key in keys.items() if key != name},
        outputs=tuple(v.name for v in program.outputs),
        segments=tuple(infos),
        slopes=tuple(
            SlopeInfo(*pair, is_batch_independent(block))
            for pair, block in zip(pairs, blocks, strict=True)
        ),
    )
    return GraphPlan(tuple(made), description)


def _describe_value(v: Variable, space: Space, name: str | None = None) -> ValueInfo:
    axes, shape = tuple(map(str, v.axes)), shape_of(v, space)
    return ValueInfo(name or v.name, v.kind.__name__, axes, shape.sizes, shape.base)


def _plan_forward(
    segment: Segment, passing: Sequence[Pair], name: str, dtype: str
) -> tuple[ForwardSegment, list[PlannedGraph]]:
    value = print_forward(segment.program, dtype)
    made = [PlannedGraph(f"{name}.pt2", segment, value, Trial.judge_values)]
    slopes: tuple[SlopeInfo, ...] = ()
    if passing:
        printed, found = print_tangents(segment, passing, dtype)
        slopes = tuple(SlopeInfo(*pair, constant) for pair, constant in found.items())
        if slopes:
            made.append(PlannedGraph(
                f"{name}_jvp.pt2", segment, printed,
                lambda t, x, y: t.judge_tangents(x, y, [*found]),
            ))  # fmt: skip
    info = ForwardSegment(
        reads=segment.reads, gives=segment.gives, value=made[0].file,
        jvp=made[1].file if slopes else None, slopes=slopes,
    )  # fmt: skip
    return info, made


def _plan_implicit(
    segment: Segment, passing: Sequence[Pair], name: str, dtype: str
) -> tuple[ImplicitSegment, list[PlannedGraph]]:
    parts = _find_parts(segment)
    read = [x for _, x in passing]
    by = find_columns(segment, dict.fromkeys([*read, *(p.name for p in parts)] if read else ()))
    rhs = step = ift = inner = None
    columns = by
    if any(n.op == "solve" for n in sort_lines(segment.solve.rows)):
        # segments themselves, with their derivatives
        residuals = open_residuals(segment)
        unknowns = [v.name for v in residuals.inputs[: len(segment.solve.unknowns)]]
        pairs = [(r.name, x) for r in residuals.outputs for x in (*unknowns, *by)]
        plan = plan_graphs(residuals, pairs, f"{name}_rhs", dtype=getattr(torch, dtype))
        inner, made = plan.description, list(plan.graphs)
    else:
        rhs, step = f"{name}_rhs.pt2", f"{name}_step.pt2"
        made = [
            PlannedGraph(rhs, segment, print_residual(segment, dtype), Trial.judge_residual),
            PlannedGraph(step, segment, print_step(segment, dtype), Trial.judge_step),
        ]
        if by:
            ift = f"{name}_ift.pt2"
            printed, columns = print_sensitivity(segment, by, dtype)
            made.append(PlannedGraph(
                ift, segment, printed, lambda t, x, y: t.judge_sensitivity(x, y, columns)
            ))  # fmt: skip
    predictor = None
    guesses = find_guesses(segment)
    if guesses is None:
        predictor = f"{name}_predictor.pt2"
        printed = print_forward(open_guesses(segment), dtype, is_joined=True)
        made.append(PlannedGraph(predictor, segment, printed, Trial.judge_guess))
    info = ImplicitSegment(
        name=segment.name, reads=segment.reads, gives=segment.gives, rhs=rhs, step=step, ift=ift,
        inner=inner, columns=columns, predictor=predictor, guesses=guesses or (),
        rules=segment.solve.newton, parts=parts,
        level=0 if segment.solve.substeps is None else segment.solve.substeps.level,
    )  # fmt: skip
    return info, made


def _find_parts(segment: Segment) -> tuple[PartInfo, ...]:
    """What a segment reads otherwise in parts of its step, by the names of what it reads."""
    solve, node, program = segment.solve, segment.node, segment.program
    if solve.substeps is None:
        return ()
    shape = {v.name: shape_of(v, program).sizes for v in (*program.given, *program.outputs)}
    names = {n.id: v.name for v in program.given for n in v.nodes}
    argument = dict(zip(solve.given, node.args[len(solve.columns) :], strict=True))
    solved = {n: y for v, y in zip(solve.unknowns, segment.gives, strict=True) for n in v.nodes}
    follows = {
        argument[c]: solved[f] if f in solved else names.get(argument[f].args[0].id)
        for c, f in zip(solve.substeps.carried, solve.substeps.follows, strict=True)
    }
    found: dict[str | None, PartInfo | None] = {}
    for part in find_parts(node.args):
        role, called = part.attr[:2]
        name, info = names.get(part.args[0].id), None
        is_clear = role == "static"
        if role != "static":
            other = follows[part] if role == "carried" else names.get(part.args[1].id)
            if name is not None and other is not None:
                info = PartInfo(name, role, other)
                is_clear = role != "carried" or shape[name] == shape[other]
        if not is_clear or found.setdefault(name, info) != info:
            raise IngotError([Problem(
                "unnamed-part",
                f"[{solve.name}] takes steps in parts, in which '{called}' is not a value by"
                " itself for compiled graphs", None, "compile with --backend kernel",
            )])  # fmt: skip
    return tuple(info for info in found.values() if info is not None)


def _find_long_loops(program: Program) -> Iterator[Problem]:
    """A problem for each loop that is too long as copies of its body, before they are written."""
    for node in walk_lines(program):
        if node.op == "repeat" and (count := _count_copies(node)) > MAX_OPERATIONS:
            yield Problem(
                "program-too-long",
                f"graphs hold a copy of a loop's body for each of its {node.attr.count} steps,"
                f" {count} operations here; torch is asked to compile {MAX_OPERATIONS} at most",
                None,
                "compile with --backend kernel, which keeps the loop",
            )  # fmt: skip


def _count_copies(node: Node) -> int:
    """How many lines a loop becomes that is written out, and so are those inside."""
    if node.op != "repeat":
        return 1
    return node.attr.count * sum(map(_count_copies, sort_lines(node.attr.roots)))


def _find_long_graphs(made: Sequence[PlannedGraph]) -> Iterator[Problem]:
    """A problem for each graph that is too long; one that is long is told to take its time."""
    for graph in made:
        count = graph.printed.operations
        if count > MAX_OPERATIONS:
            yield Problem(
                "program-too-long",
                f"the graph '{graph.file}' has {count} operations; torch is asked to compile"
                f" {MAX_OPERATIONS} at most", None,
                "compile with --backend kernel, or ask for fewer derivative pairs",
            )  # fmt: skip
        elif count > SLOW_OPERATIONS:
            logger.warning(
                "%s has %d operations; torch will take a minute or more", graph.file, count
            )


# which derivative blocks pass through which segment


def _find_local_pairs(segments: Sequence[Segment], pairs: Sequence[Pair]) -> list[list[Pair]]:
    """For each segment the (given, read) pairs that some requested pair passes through."""
    depends = {y: reads for s in segments for y, reads in _find_dependencies(s)}
    behind: dict[str, set[str]] = {}
    for y, reads in depends.items():
        behind[y] = {y}.union(*(behind.get(n, {n}) for n in reads))

    def is_asked(y: str, x: str) -> bool:
        return any(
            y in behind.get(output, ()) and given in behind.get(x, {x}) for output, given in pairs
        )

    return [
        [(y, x) for y in s.gives for x in s.reads if x in depends[y] and is_asked(y, x)]
        for s in segments
    ]


def _find_dependencies(segment: Segment) -> Iterator[tuple[str, set[str]]]:
    """What each value that a segment gives depends on; guesses do not count."""
    program = segment.program
    known = {n.id: v.name for v in program.given for n in v.nodes}
    for v in program.outputs:
        roots = v.nodes
        if segment.kind == "implicit":
            roots = find_arguments(segment.node)
        yield v.name, {known[n.id] for n in sort_lines(roots) if n.id in known}
