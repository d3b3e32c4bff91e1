"""The last stage: a partitioned model becomes sources, graphs to be compiled, and metadata."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from ingot.codegen.abi import write_rules_struct
from ingot.codegen.architectures import name_targets
from ingot.codegen.cpu_levels import choose_levels
from ingot.codegen.frames import LANES, THREADS, count_rows, write_definitions
from ingot.codegen.source import write_section
from ingot.codegen.values import SharedDefinitions
from ingot.errors import Problem, raise_if
from ingot.execute.kernel_cuda import find_too_large
from ingot.execute.segments import describe_segments
from ingot.execute.segments_run import SegmentedInfo
from ingot.model import Law, Model
from ingot.model.model import find_ranges, owners
from ingot.options import Range
from ingot.package.c_functions import write_wrapper
from ingot.package.compilation import Compilation, Names
from ingot.package.consistent import find_inconsistencies
from ingot.package.header import Notes, write_c_name, write_header
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
from ingot.package.seal import compute_contract, read_torch_version
from ingot.package.umat import find_interface, write_include, write_umat
from ingot.program import (
    Choices,
    Parameter,
    Program,
    Variable,
    compile_passes,
    find_first_guesses,
    is_batch_independent,
    is_shift_invariant,
)  # fmt: skip
from ingot.program.band import MIN_ENTRIES_TO_BAND_SLOPES
from ingot.program.boundaries import cut_at_boundaries, has_boundaries
from ingot.program.partition import Segment
from ingot.types.history import TIMES
from ingot.types.spellings import Spellings

if TYPE_CHECKING:
    from ingot.execute.inductor import GraphPlan

__all__ = [
    "describe_parameter", "describe_solvers", "describe_variable", "kernel_files", "lower",
    "lower_for_each",
]  # fmt: skip


def lower(c: Compilation) -> Compilation:
    """Print every segment for the chosen backends, and describe the package; nothing is compiled.

    What no loader would take is refused here, before a compiler runs.
    """
    meta = _metadata(c)
    kernels: Mapping[str, Program] = {}
    sources: dict[str, str] = {}
    graphs: GraphPlan | None = None
    if "kernel" in c.target.backend:
        kernels, cuts = (c.kernels, c.metadata.cuts) if c.kernels else _compile_kernels(c)
        meta = msgspec.structs.replace(meta, kernel=kernel_files(c), cuts=cuts)
        write = _print_kernels if c.device == "cpu" else _print_device_kernels
        meta, sources = write(c, kernels, meta)
    if "inductor" in c.target.backend:
        from ingot.execute.inductor import plan_graphs

        graphs = plan_graphs(
            c.program, c.pairs, c.model.name, dtype=c.target.precision, segments=c.segments
        )
        meta = msgspec.structs.replace(meta, inductor=graphs.description)
    raise_if(
        Problem("wrong-package", f"no loader would take the package: {text}", None,
                "choose other names, or other extents")
        for text in find_inconsistencies(meta)
    )  # fmt: skip
    return replace(c, kernels=kernels, sources=sources, graphs=graphs, metadata=meta)


def lower_for_each(c: Compilation) -> Iterator[Compilation]:
    """What was partitioned, lowered for each device; passes run once."""
    for device in dict.fromkeys(c.target.device):
        c = lower(replace(c, device=device))
        yield c


def kernel_files(c: Compilation) -> KernelFiles:
    """What the kernel backend consists of; the prefix is not yet of this package alone."""
    name = c.model.name
    prefix = c.target.c_prefix or write_c_name(name)
    if c.device == "cuda":
        targets = name_targets(c.target.cuda_arch, portable=c.target.baseline)
        ends = {x: "cubin" if x.startswith("sm_") else "ptx" for x in targets}
        codes = {x: f"{name}-{x}.{end}" for x, end in ends.items()}
        return KernelFiles(codes, f"{name}.cu", None, prefix)
    levels = choose_levels() if c.target.baseline else choose_levels()[:1]
    libraries = {level: f"{name}-{level}.so" for level in levels}
    umat = f"{name}-umat.inc" if c.target.umat else None
    return KernelFiles(libraries, f"{name}.cpp", f"{name}.h", prefix, umat)


def _compile_kernels(c: Compilation) -> tuple[dict[str, Program], dict[str, SegmentedInfo]]:
    """The entries of a kernel: values, and values with slopes and with adjoints where asked for.

    All eliminate alike, so that their values are the same to the last bit. Each is cut where it
    sums over points; then the segments of each are told too.
    """
    choices = Choices()
    if c.pairs or c.adjoint is not None:
        choices = Choices(band_from=MIN_ENTRIES_TO_BAND_SLOPES)
    wanted = {"forward": ("values", c.program)}
    if c.pairs:
        wanted["jacobian"] = (f"values and slopes ({len(c.pairs)})", c.slopes)
    if c.adjoint is not None:
        wanted["vjp"] = ("values and adjoints", c.adjoint)
    found: dict[str, Program] = {}
    cuts: dict[str, SegmentedInfo] = {}
    for entry, (title, program) in wanted.items():
        parts = {title: program}
        if has_boundaries(c.program):
            cut = cut_at_boundaries(program)
            cuts[entry] = describe_segments(program, cut)
            parts = {
                f"{title}, segment {i}": s.program
                for i, s in enumerate(cut.segments) if s.kind == "points"
            }  # fmt: skip
        compiled = {title: compile_passes(part, choices) for title, part in parts.items()}
        if not found:
            solves = [s for kernel in compiled.values() for s in kernel.solves]
            like = {s.factored.source: s for s in solves if s.factored is not None}
            choices = replace(choices, like=like)
        elif not cuts:
            # a report's place is that of its solve among those of the values
            (values,), (kernel,) = list(found.values())[:1], compiled.values()
            assert [s.name for s in kernel.solves] == [s.name for s in values.solves]
        found |= compiled
    return found, cuts


def _print_kernels(
    c: Compilation, kernels: Mapping[str, Program], meta: Metadata
) -> tuple[Metadata, dict[str, str]]:
    """The header and a translation unit that needs nothing else: kernels, then their C functions.

    All names begin with those of the package and its content, so that no two packages share any: a
    program linked against two of one name would run the first for both.
    """
    shared = SharedDefinitions()
    parts = [
        write_section(kernel, entry, c.target.inline, shared)
        for kernel, entry in zip(kernels.values(), meta.entries, strict=True)
    ]
    start = [f"#define INGOT_REAL {_name_real(meta)}", write_rules_struct(), LANES.join_headers()]
    source = "\n".join([*start, *parts])
    guesses = find_first_guesses(c.program)
    notes = Notes(guesses, _renamed(c.inputs), _renamed(c.outputs))
    texts = [source, write_wrapper(meta), write_header(meta, notes)]
    interface = None
    if c.target.umat:
        raise_if(_find_coupled(meta))
        alone = is_shift_invariant(c.program, TIMES)
        interface = find_interface(meta, guesses, c.target, is_autonomous=alone)
        texts.append(write_umat(meta, interface))
    meta, kernel = _name_by_content(meta, texts)
    assert kernel.header is not None
    whole = f"{source}\n{write_wrapper(meta)}"
    files = {kernel.header: write_header(meta, notes), kernel.source: whole}
    if interface is not None and kernel.umat is not None:
        files[kernel.source] += f"\n{write_umat(meta, interface)}"
        files[kernel.umat] = write_include(meta, interface)
    return meta, files


def _find_coupled(meta: Metadata) -> Iterator[Problem]:
    if meta.cuts:
        message = f"'{meta.name}' sums over points, and a UMAT is called for one"
        yield Problem("wrong-umat", message, None, "compile the model of one point")


def _print_device_kernels(
    c: Compilation, kernels: Mapping[str, Program], meta: Metadata
) -> tuple[Metadata, dict[str, str]]:
    """A translation unit of kernels of a GPU that needs nothing else; there are no C functions."""
    shared = SharedDefinitions()
    pairs = [*zip(kernels.values(), meta.entries, strict=True)]
    raise_if(problem for kernel, _ in pairs for problem in find_too_large(count_rows(kernel)))
    parts = [write_section(*pair, c.target.inline, shared, THREADS) for pair in pairs]
    source = "\n".join([write_rules_struct(), THREADS.join_headers(), *parts])
    meta, kernel = _name_by_content(meta, [source])
    return meta, {kernel.source: write_definitions(_name_real(meta), kernel.prefix) + source}


def _name_real(meta: Metadata) -> str:
    return "double" if meta.dtype == "float64" else "float"


def _name_by_content(meta: Metadata, texts: Sequence[str]) -> tuple[Metadata, KernelFiles]:
    """The metadata with a prefix of names that no package of other texts has."""
    kernel = meta.kernel
    assert kernel is not None
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
    kernel = msgspec.structs.replace(kernel, prefix=f"{kernel.prefix}_{digest}")
    return msgspec.structs.replace(meta, kernel=kernel), kernel


def _renamed(names: Names) -> dict[str, str]:
    """The names of the file by those outside, where they differ."""
    return {new: old for old, new in names.items() if old != new}


def _metadata(c: Compilation) -> Metadata:
    program, blocks = c.program, c.slopes.outputs[len(c.program.outputs) :]
    count = len(c.parameters)
    others = {shown: tuple(c.spellings[name]) for name, shown in c.parameters.items()}
    found = find_ranges(c.model)
    ranges = {shown: found[name] for name, shown in c.parameters.items() if name in found}
    infos = tuple(describe_parameter(p, program, others, ranges) for p in program.parameters)
    meta = Metadata(
        name=c.model.name,
        device=c.device,
        dtype=c.target.dtype,
        inputs=tuple(describe_variable(v, program) for v in program.inputs),
        outputs=tuple(describe_variable(v, program) for v in program.outputs),
        parameters=infos[:count],
        constants=infos[count:],
        solvers=describe_solvers(program),
        segments=tuple(map(_segment, c.segments)),
        derivatives=tuple(
            Block(y, x, is_batch_independent(b)) for (y, x), b in zip(c.pairs, blocks, strict=True)
        ),
        adjoints=c.adjoint is not None,
        kernel=None,
        inductor=None,
        torch_version=read_torch_version(),
        origin=_origin(c),
        digests={},
    )  # fmt: skip
    digest = _digest_program(meta, program)
    origin = msgspec.structs.replace(meta.origin, program=digest)
    return msgspec.structs.replace(meta, origin=origin)


def _digest_program(meta: Metadata, program: Program) -> str:
    """What tells the package from one of another model, values, precision or derivatives.

    The device, the backends and the command are left out: folders of one model may differ in them.
    """
    same = msgspec.structs.replace(
        meta, device="cpu", torch_version="", origin=Origin(program.digest, "", (), "")
    )
    return compute_contract(same)


def describe_solvers(program: Program) -> tuple[SolverInfo, ...]:
    """The implicit updates of a program, and their rules."""
    return tuple(
        SolverInfo(name=s.name, unknowns=tuple(v.name for v in s.unknowns), **s.newton.rules())
        for s in program.solves
    )


def _segment(s: Segment) -> SegmentInfo:
    assert s.kind in ("forward", "implicit", "reduction"), "what is opaque was refused"
    return SegmentInfo(s.kind, s.name, tuple(s.reads), tuple(s.gives))


def _origin(c: Compilation) -> Origin:
    laws = _law_files(c.model)
    if c.tree is None:
        return Origin("", "", (), c.command, laws)
    file = c.tree.file.name if c.tree.file else ""
    return Origin(file, c.tree.digest, c.tree.overrides, c.command, laws)


def _law_files(model: Model) -> dict[str, str]:
    """The sha256 of every file that declares a law of a model and is none of ours."""
    bodies = [owner.body for _, owner in owners(model, "", set())]
    laws = [body.declared.function for body in bodies if isinstance(body, Law)]
    files = [
        Path(law.__code__.co_filename) for law in laws if not law.__module__.startswith("ingot.")
    ]
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in dict.fromkeys(files) if file.is_file()
    }  # fmt: skip


def describe_variable(v: Variable, program: Program) -> VariableInfo:
    """A variable with the extents of its axes, which must all be known."""
    sizes = tuple(program.extent(a) for a in v.axes)
    size = len(v.nodes) if v.spread else len(v.nodes) * torch.Size(sizes).numel()
    return VariableInfo(v.name, v.kind.__name__, v.kind.base, sizes, size)


def describe_parameter(
    p: Parameter, program: Program, spellings: Spellings, ranges: Mapping[str, Range]
) -> ParameterInfo:
    """A parameter that a call gives, of which there may be other names, and a range."""
    data = p.value.data.double()
    number = Number(tuple(data.shape), tuple(data.flatten().tolist()))
    name = p.variable.name
    others = tuple(spellings.get(name, ()))
    return ParameterInfo(
        describe_variable(p.variable, program), number, others, ranges.get(name)
    )  # fmt: skip
