"""Program -> segments that run in turn: points apart by a back end, all points by torch between."""

from collections.abc import Callable, Sequence

import torch

from ingot.execute.batch_shape import find_slopes, shape_of
from ingot.execute.call_layout import CPU
from ingot.execute.interpret import Interpreter
from ingot.execute.segments_run import PassedInfo, Run, Segmented, SegmentedInfo, StepInfo
from ingot.program import Program, operation
from ingot.program.boundaries import Segmentation, cut_at_boundaries
from ingot.program.partition import Segment

__all__ = ["compile_segments", "describe_segments"]

Compile = Callable[[Sequence[Program], torch.dtype], Sequence[Run]]


def compile_segments(
    program: Program, compile: Compile, dtype: torch.dtype, device: torch.device = CPU
) -> Segmented:
    """A program with lines that see all points, ready to run; compile: makes the others run."""
    cut = cut_at_boundaries(program)
    apart = [s.program for s in cut.segments if s.kind == "points"]
    # what only copies needs no compiler
    is_needed = any(not operation(n.op).is_leaf for program in apart for n in program.lines)
    compiled = iter(compile(apart, dtype) if is_needed else ())

    def make(segment: Segment) -> Run | None:
        if segment.kind == "reduction":
            return None
        if segment.kind == "points" and is_needed:
            return next(compiled)
        return Interpreter(segment.program, dtype=dtype)

    held = {p.variable.name: p.value.data.detach().to(device) for p in program.parameters}
    return Segmented(
        describe_segments(program, cut), [make(s) for s in cut.segments], dtype=dtype,
        parameters=held, solves=[s.name for s in program.solves], slopes=find_slopes(program),
    )  # fmt: skip


def describe_segments(program: Program, cut: Segmentation) -> SegmentedInfo:
    """What running the segments of a program needs to know."""
    shapes = {v.name: shape_of(v, program) for v in program.given}
    known = {key: shapes[name] for key, name in cut.given.items()}
    steps = []
    for segment in cut.segments:
        own = cut.rules.get(segment.gives[0])
        rule = {} if own is None else own._asdict()
        solves = tuple(s.name for s in segment.program.solves)
        steps.append(StepInfo(segment.reads, segment.gives, **rule, solves=solves))
        known |= {v.name: shape_of(v, program) for v in segment.program.outputs}
    return SegmentedInfo(
        values=tuple(PassedInfo(k, s.sizes, s.base, cut.sources[k]) for k, s in known.items()),
        given=dict(cut.given),
        inputs=len(program.inputs),
        outputs=tuple(v.name for v in program.outputs),
        steps=tuple(steps),
        levels=dict(cut.levels),
    )
