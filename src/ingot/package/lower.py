"""The last stage: a partitioned model becomes libraries or graphs, and metadata."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from ingot.errors import Problem, raise_if
from ingot.execute import compiler
from ingot.execute.abi import rules_struct
from ingot.execute.cpp import section
from ingot.execute.levels import best, flags
from ingot.package.c_functions import wrapper
from ingot.package.consistent import inconsistencies
from ingot.package.header import Notes, c_name, header
from ingot.package.metadata import (
    Block,
    KernelFiles,
    Metadata,
    Number,
    Origin,
    ParameterInfo,
    SegmentInfo,
    SolverInfo,
    VariableInfo,
)  # fmt: skip
from ingot.package.seal import torch_version, write_sealed
from ingot.package.stages import Partitioned
from ingot.program import Parameter, Program, Variable, batch_independent, with_jacobian
from ingot.program.graph import Graph
from ingot.program.partition import partition
from ingot.program.passes import planned as planned_kernel
from ingot.program.program import first_guesses
from ingot.types import Value

if TYPE_CHECKING:
    from ingot.execute.inductor import Planned

__all__ = ["Lowered", "graphs_of", "kernel_files", "lower"]

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A package as files in a folder, not yet in its place."""

    partitioned: Partitioned
    folder: Path
    metadata: Metadata

    def __str__(self) -> str:
        rows = [f"{p.name}  {p.stat().st_size} bytes" for p in sorted(self.folder.iterdir())]
        return "\n".join(rows)


def lower(
    stage: Partitioned, name: str, folder: Path, command: str,
    expect: Callable[[int], None] = lambda _: None, progress: Progress = lambda _: None,
) -> Lowered:  # fmt: skip
    """Write every file of the package into a folder."""
    target = stage.shaped.loaded.target
    meta = _metadata(stage, name, command)
    plan = graphs_of(stage, name) if "inductor" in target.backend else None
    kernel = kernel_files(stage, name) if "kernel" in target.backend else None
    expect(len(kernel.libraries if kernel else ()) + len(plan.graphs if plan else ()))
    if kernel is not None:
        meta = _kernel(stage, msgspec.structs.replace(meta, kernel=kernel), folder, progress)
    if plan is not None:
        from ingot.execute import inductor

        inductor.lower(plan, folder, jobs=target.jobs, progress=progress)
        meta = msgspec.structs.replace(meta, inductor=plan.description)
    raise_if(
        Problem("wrong-package", f"no loader would take the package: {text}", None,
                "choose other names, or other extents")
        for text in inconsistencies(meta)
    )  # fmt: skip
    return Lowered(stage, folder, write_sealed(meta, folder / f"{name}_meta.json"))


def graphs_of(stage: Partitioned, name: str) -> "Planned":
    """The graphs of the inductor backend, not yet compiled."""
    from ingot.execute.inductor import planned

    precision = stage.shaped.loaded.target.precision
    return planned(stage.program, stage.pairs, name, dtype=precision)


def kernel_files(stage: Partitioned, name: str) -> KernelFiles:
    """What the kernel backend consists of; the prefix is not yet of this package alone."""
    levels = best() if stage.shaped.loaded.target.baseline else best()[:1]
    libraries = {level: f"{name}-{level}.so" for level in levels}
    prefix = stage.shaped.loaded.target.c_prefix or c_name(name)
    return KernelFiles(libraries, f"{name}.cpp", f"{name}.h", prefix)


def _kernel(stage: Partitioned, meta: Metadata, folder: Path, progress: Progress) -> Metadata:
    """Write source, header, and a library for each CPU level; tell what their names begin with."""
    source = _source(stage, meta)
    notes = _notes(stage)
    text = "\0".join([source, wrapper(meta), header(meta, notes)])
    meta = _prefixed(meta, hashlib.sha256(text.encode()).hexdigest())
    kernel = meta.kernel
    assert kernel is not None
    (folder / kernel.source).write_text(f"{source}\n{wrapper(meta)}")
    (folder / kernel.header).write_text(header(meta, notes))

    def compiled(level: str, library: str) -> None:
        chosen = (*compiler.FLAGS, *flags(level))
        compiler.translate(folder / kernel.source, chosen, folder / library)
        progress(library)

    with ThreadPoolExecutor(stage.shaped.loaded.target.jobs) as pool:
        jobs = [pool.submit(compiled, level, file) for level, file in kernel.libraries.items()]
        for job in jobs:
            job.result()
    return meta


def _notes(stage: Partitioned) -> Notes:
    """What the header tells of inputs beyond the metadata."""
    target = stage.shaped.loaded.target

    def before(renamed: tuple[str, ...]) -> dict[str, str]:
        return {new: old for old, _, new in (rule.partition(":") for rule in renamed)}

    return Notes(
        first_guesses(stage.program), before(target.rename_input), before(target.rename_output)
    )


def _prefixed(meta: Metadata, digest: str) -> Metadata:
    """Names that begin with those of the package and its content, so that no two packages share
    any: a program linked against two of one name would run the first for both.
    """
    kernel = meta.kernel
    assert kernel is not None
    prefix = f"{kernel.prefix}_{digest[:12]}"
    return msgspec.structs.replace(meta, kernel=msgspec.structs.replace(kernel, prefix=prefix))


def _source(stage: Partitioned, meta: Metadata) -> str:
    """A translation unit that needs nothing else but its C functions: the headers, the kernels."""
    inline = stage.shaped.loaded.target.inline
    values = planned_kernel(stage.program)
    parts = [section(values, "forward", inline)]
    if stage.pairs:
        program = with_jacobian(stage.program, stage.pairs)
        raise_if(_doubled_solves(stage, program))
        parts.append(section(planned_kernel(program, like=values), "jacobian", inline))
    real = "double" if meta.dtype == "float64" else "float"
    start = [f"#define INGOT_REAL {real}", rules_struct(), compiler.headers()]
    return "\n".join([*start, *parts])


def _doubled_solves(stage: Partitioned, slopes: Program) -> Iterator[Problem]:
    """A problem where derivatives solve more often than values, who alone have rows of reports."""
    once = len(stage.program.solves())
    if len(slopes.solves()) != once:
        names = ", ".join(f"'{s.name}'" for s in stage.program.solves())
        message = f"a solve reads another one ({names}): kernels hold no derivatives through both"
        fix = "compile with --backend inductor, or ask for derivatives of one of them"
        yield Problem("solves-in-series", message, None, fix)


def _metadata(stage: Partitioned, name: str, command: str) -> Metadata:
    loaded, program = stage.shaped.loaded, stage.program
    graph = program.graph
    blocks = with_jacobian(program, stage.pairs).outputs[len(program.outputs) :]
    file = loaded.tree.file
    return Metadata(
        name=name,
        device=loaded.target.device,
        dtype=loaded.target.dtype,
        inputs=tuple(_variable(v, graph) for v in program.inputs),
        outputs=tuple(_variable(v, graph) for v in program.outputs),
        parameters=tuple(_parameter(p, graph) for p in _promoted(stage)),
        constants=tuple(_parameter(p, graph) for p in _constants(stage)),
        solvers=tuple(
            SolverInfo(
                name=s.name, unknowns=tuple(v.name for v in s.unknowns), **s.newton.rules()
            )
            for s in program.solves()
        ),
        segments=tuple(
            SegmentInfo(s.kind, s.name, tuple(s.reads), tuple(s.gives)) for s in partition(program)
        ),
        derivatives=tuple(
            Block(y, x, batch_independent(b)) for (y, x), b in zip(stage.pairs, blocks, strict=True)
        ),
        kernel=None,
        inductor=None,
        torch_version=torch_version(),
        origin=Origin(
            file.name if file else "", loaded.tree.digest, loaded.tree.overrides, command
        ),
        digests={},
    )  # fmt: skip


def _promoted(stage: Partitioned) -> list[Parameter]:
    return [p for p in stage.program.parameters if _is_promoted(stage, p)]


def _constants(stage: Partitioned) -> list[Parameter]:
    return [p for p in stage.program.parameters if not _is_promoted(stage, p)]


def _is_promoted(stage: Partitioned, p: Parameter) -> bool:
    return any(p.value is v for v in stage.shaped.frozen.routed.selected.promoted.values())


def _variable(v: Variable, graph: Graph) -> VariableInfo:
    sizes = tuple(graph.extent(a) for a in v.axes)
    size = len(v.nodes) if v.spread else len(v.nodes) * torch.Size(sizes).numel()
    return VariableInfo(v.name, v.kind.__name__, v.kind.base, sizes, size)


def _parameter(p: Parameter, graph: Graph) -> ParameterInfo:
    return ParameterInfo(_variable(p.variable, graph), _number(p.value))


def _number(value: Value) -> Number:
    data = value.data.detach().double()
    return Number(tuple(data.shape), tuple(data.flatten().tolist()))
