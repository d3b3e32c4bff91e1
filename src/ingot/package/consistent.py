"""Whether metadata agrees with itself: names that are known, sizes that multiply up, in order."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ingot.execute.inductor_metadata import ImplicitSegment, InductorDescription
from ingot.execute.segments_run import SegmentedInfo
from ingot.messages import word
from ingot.package.metadata import Metadata, ParameterInfo, VariableInfo
from ingot.types import KINDS
from ingot.types.batches import EVERY_POINT
from ingot.types.history import given_name

__all__ = ["find_inconsistencies"]


def find_inconsistencies(meta: Metadata) -> Iterator[str]:
    """All that a loader would stumble over, or compute wrong numbers from."""
    held = (*meta.parameters, *meta.constants)
    for v in (*meta.inputs, *meta.outputs, *(p.variable for p in held)):
        yield from _check_variable(v)
    for p in held:
        yield from _check_value(p)
    inputs, outputs, given, constants = (
        [v.name for v in row]
        for row in (
            meta.inputs,
            meta.outputs,
            _check_variables(meta.parameters),
            _check_variables(meta.constants),
        )
    )
    yield from _find_twice("input", [*inputs, *given])
    yield from _find_twice("constant", constants)
    yield from _find_twice("output", outputs)
    yield from _find_twice("solver", [s.name for s in meta.solvers])
    yield from _find_twice("derivative", [f"{b.output}:{b.input}" for b in meta.derivatives])
    for b in meta.derivatives:
        yield from _find_unknown(word("derivative", name=b.output), [b.output], outputs)
        yield from _find_unknown(word("derivative", name=b.output), [b.input], [*inputs, *given])
    known = {*inputs, *given, *constants}
    known |= {given_name(name) for name in known if name in _find_given(meta)}
    for s in meta.segments:
        yield from _find_unknown(word("segment", name=s.name), s.reads, known)
        known |= set(s.gives)
    yield from _find_unknown(word("outputs"), outputs, known)
    implicit = [s.name for s in meta.segments if s.kind == "implicit"]
    solves = [s.name for s in meta.solvers]
    # A solver without a segment stands in the residuals of one that has a segment, or in the one
    # segment of a model that gives derivatives of solves. One that stands in residuals and behind
    # as well, as in mixed control, is listed once, where it is met first.
    alone = len(meta.segments) == 1
    if not set(implicit) <= set(solves) or (bool(solves) != bool(implicit) and not alone):
        yield word("implicit")
    for solver in meta.solvers:
        if not solver.unknowns:
            yield word("unknowns", name=solver.name)
    if meta.kernel is None and meta.inductor is None:
        yield word("backend")
    if meta.inductor is not None and meta.device != "cpu":
        yield word("graphs device", device=meta.device)
    if meta.adjoints and meta.kernel is None:
        yield word("adjoints")
    yield from _check_kernel(meta)
    if meta.inductor is not None:
        yield from _check_graphs(meta, meta.inductor)
    yield from _check_cuts(meta)


def _check_kernel(meta: Metadata) -> Iterator[str]:
    if meta.kernel is None:
        return
    targets = meta.kernel.libraries
    if not targets:
        yield word("library")
    if (meta.kernel.header is None) != (meta.device == "cuda"):
        has = "lacks" if meta.device == "cpu" else "has"
        yield word("header", device=meta.device, has=has)
    if meta.device == "cuda":
        for target in targets:
            kind, _, number = target.rpartition("_")
            if kind not in ("sm", "compute") or not number.isdecimal():
                yield word("architecture", name=target)


def _find_given(meta: Metadata) -> set[str]:
    """What segments give; an input of such a name is known under another inside."""
    return {name for s in meta.segments for name in s.gives}


def _check_variables(parameters: Iterable[ParameterInfo]) -> list[VariableInfo]:
    return [p.variable for p in parameters]


def _check_variable(v: VariableInfo) -> Iterator[str]:
    if v.kind not in KINDS:
        yield word("kind", name=v.name, kind=v.kind)
    elif v.base != KINDS[v.kind].base:
        wanted = KINDS[v.kind].base
        yield word("base", name=v.name, base=v.base, kind=v.kind, wanted=wanted)
    if min((1, *v.sub_batch)) < 1 or v.size != math.prod((*v.sub_batch, *v.base)):
        yield word("size", name=v.name, size=v.size, axes=v.sub_batch, base=v.base)


def _check_value(p: ParameterInfo) -> Iterator[str]:
    shape, own = p.value.shape, (*p.variable.sub_batch, *p.variable.base)
    fits = shape[len(shape) - len(own) :] == own and len(shape) >= len(own)
    if not fits or min((1, *shape)) < 0 or math.prod(shape) != len(p.value.values):
        count = len(p.value.values)
        yield word("value", name=p.variable.name, shape=shape, count=count)


def _check_graphs(meta: Metadata, d: InductorDescription) -> Iterator[str]:
    if d.dtype != meta.dtype:
        yield word("graphs dtype", dtype=d.dtype)
    values = {v.name: v for v in d.values}
    names = {d.given.get(n, n): n for n in (*d.inputs, *d.parameters)}
    yield from _find_twice("value", [v.name for v in d.values])
    yield from _find_unknown(word("given names"), d.given, [*d.inputs, *d.parameters])
    wanted = [*meta.inputs, *_check_variables(meta.parameters), *_check_variables(meta.constants)]
    if sorted(names) != sorted(v.name for v in wanted):
        yield word("graphs inputs")
    if list(d.outputs) != [v.name for v in meta.outputs]:
        yield word("graphs outputs")
    yield from _find_unknown(word("graphs"), [*names.values(), *d.outputs], values)
    for v in (*wanted, *meta.outputs):
        inner = values.get(names.get(v.name, v.name))
        if inner is not None and (inner.kind, inner.sizes, inner.base) != (
            v.kind,
            v.sub_batch,
            v.base,
        ):
            yield word("graphs shape", name=v.name)
    pairs = [(s.output, s.input, s.batch_independent) for s in d.slopes]
    if pairs != [(b.output, b.input, b.batch_independent) for b in meta.derivatives]:
        yield word("graphs derivatives")
    if d.solves != tuple(s.name for s in meta.solvers):
        yield word("graphs solves")
    yield from _run(d)


def _check_cuts(meta: Metadata) -> Iterator[str]:
    """What is wrong with the segments of functions of a model that sums over points."""
    if not meta.cuts:
        return
    if meta.kernel is None or meta.inductor is not None:
        yield "segments of functions are a kernel's"
    shapes = {v.name: (v.sub_batch, v.base) for v in (*meta.inputs, *meta.outputs)}
    held = (*meta.parameters, *meta.constants)
    shapes |= {p.variable.name: (p.variable.sub_batch, p.variable.base) for p in held}
    outputs, entering = [[v.name for v in vs] for vs in (meta.outputs, meta.inputs)]
    constants = [p.variable.name for p in held]
    pulled = [*entering, *(p.variable.name for p in meta.parameters)]
    wanted = {"forward": (entering, outputs)}
    if meta.derivatives:
        blocks = [f"{b.output}:{b.input}" for b in meta.derivatives]
        wanted["jacobian"] = (entering, [*outputs, *blocks])
    if meta.adjoints:
        bars = [f"a.{y}" for y in outputs]
        wanted["vjp"] = ([*entering, *bars], [*outputs, *(f"a.{x}" for x in pulled)])
    if meta.cuts.keys() != wanted.keys():
        yield f"the functions that are cut are {', '.join(meta.cuts)}"
        return
    for name, cut in meta.cuts.items():
        given, gives = wanted[name]
        if [*cut.given.values()] != [*given, *constants] or cut.inputs != len(given):
            yield f"the segments of '{name}' take other inputs than the package"
        if list(cut.outputs) != gives:
            yield f"the segments of '{name}' give other outputs than the package"
        yield from _check_steps(name, cut, [s.name for s in meta.solvers])
        for v in cut.values:
            own = shapes.get(cut.given.get(v.name, v.name))
            if own is not None and own != (v.sizes, v.base):
                yield f"'{v.name}' has another shape in the segments of '{name}'"


def _check_steps(name: str, cut: SegmentedInfo, solvers: Sequence[str]) -> Iterator[str]:
    where = f"a segment of '{name}'"
    known, sources = set(cut.given), {EVERY_POINT, *cut.given}
    for level, made in cut.levels.items():
        yield from _find_unknown(where, made.sources, sources)
        sources.add(level)
    values = {v.name for v in cut.values}
    yield from _find_twice("value", [v.name for v in cut.values])
    yield from _find_unknown(where, known, values)
    for v in cut.values:
        yield from _find_unknown(where, v.sources, sources)
        if min((1, *v.sizes, *v.base)) < 1:
            yield f"'{v.name}' has no numbers"
    for step in cut.steps:
        yield from _find_unknown(where, step.reads, known)
        yield from _find_unknown(where, step.gives, values)
        yield from _find_unknown(where, step.like, sources)
        yield from _find_unknown(where, step.solves, solvers)
        known |= set(step.gives)
        if step.rule is not None and (len(step.reads), len(step.gives)) != (1, 1):
            yield f"{where} sums other than one value"
    yield from _find_unknown(f"the outputs of '{name}'", cut.outputs, known)
    solved = {n for step in cut.steps for n in step.solves}
    yield from _find_unknown("the list of solvers", solvers, solved)


def _run(d: InductorDescription) -> Iterator[str]:
    """What is wrong with the segments of graphs, those of residuals included."""
    values = {v.name for v in d.values}
    known = {*d.inputs, *d.parameters}
    for s in d.segments:
        yield from _find_unknown(word("graphs segment"), s.reads, known)
        known |= set(s.gives)
        yield from _find_unknown(word("graphs segment"), s.gives, values)
        if isinstance(s, ImplicitSegment):
            yield from _find_unknown(word("a solve"), [*s.columns, *s.guesses], s.reads)
            if s.inner is not None:
                yield from _check_residuals(s, s.inner, d)
            elif s.rhs is None or s.step is None or (s.ift is None) != (not s.columns):
                yield word("solve graph", name=s.name)
            if (s.predictor is None) != bool(s.guesses) or len(s.guesses) not in (0, len(s.gives)):
                yield word("solve guess", name=s.name)
        else:
            for slope in s.slopes:
                yield from _find_unknown(word("slope"), [slope.output], s.gives)
                yield from _find_unknown(word("slope"), [slope.input], s.reads)
    yield from _find_unknown(word("graphs"), d.outputs, known)


def _check_residuals(
    s: ImplicitSegment, d: InductorDescription, around: InductorDescription
) -> Iterator[str]:
    """What is wrong with residuals that are segments themselves."""
    sizes = {v.name: v.shape.width for v in (*around.values, *d.values)}
    count = len(s.gives)
    unknowns, rows = d.inputs[:count], d.outputs
    shapes = [[sizes.get(n, 0) for n in names] for names in (s.gives, unknowns, rows)]
    if len(rows) != count or shapes[0] != shapes[1] or sum(shapes[2]) != sum(shapes[0]):
        yield word("solve residual", name=s.name)
    yield from _find_unknown(
        word("residuals", name=s.name), [*d.inputs[count:], *d.parameters], s.reads
    )
    wanted = {(r, x) for r in rows for x in (*unknowns, *s.columns)}
    if {(b.output, b.input) for b in d.slopes} != wanted:
        yield word("solve derivatives", name=s.name)
    yield from _run(d)


def _find_twice(what: str, names: Sequence[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield word("twice", what=what, name=name, count=count)


def _find_unknown(where: str, names: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    have = set(known)
    for name in names:
        if name not in have:
            yield word("not there", where=where, name=name)
