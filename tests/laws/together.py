"""Many laws in one program, so that one compilation serves them all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ingot.execute.batch_shape import shape_of
from ingot.program import Builder, Program, along_direction, with_adjoint
from ingot.program.rewrite import renew
from tests.laws.samples import Case

MOST_LINES = 800  # of the laws of one graph, which torch compiles in half a minute


def joined(programs: Mapping[str, Program]) -> Program:
    """One program that runs all of them, each variable named `program/variable`."""
    extents: dict[str, int] = {}
    for program in programs.values():
        extents |= program.extents
    builder = Builder(extents)
    inputs, outputs = [], []
    for name, program in programs.items():
        for axis, extent in program.extents.items():
            builder.add_axis(axis, extent)
        fresh = {
            node.id: builder.node("input", (), (f"{name}/{v.name}", i), v.axes)
            for v in program.inputs
            for i, node in enumerate(v.nodes)
        }
        moved = renew(program, fresh, builder)
        inputs += [replace(v, name=f"{name}/{v.name}") for v in moved.inputs]
        outputs += [replace(v, name=f"{name}/{v.name}") for v in moved.outputs]
    return Program(builder.extents, tuple(inputs), (), tuple(outputs))


def with_values(cases: Sequence[Case], dtype: torch.dtype) -> Program:
    """The values of all cases."""
    return joined({case.name: case.program(dtype) for case in cases})


def with_slopes(cases: Sequence[Case], dtype: torch.dtype = torch.float64) -> Program:
    """The values of all cases, their derivatives along a direction, and adjoints."""
    return joined({case.name: _sloped(case.program(dtype)) for case in cases})


def _sloped(program: Program) -> Program:
    names = [y.name for y in program.outputs], [x.name for x in program.inputs]
    return with_adjoint(along_direction(program), *names)


def draw_bars(case: Case, batch: int | None) -> dict[str, Tensor]:
    """Adjoints of all outputs; those of a single point where there is no batch."""
    source, program = torch.Generator().manual_seed(11), case.program()
    lead = () if batch is None else (batch,)
    shapes = [shape_of(y, program) for y in program.outputs]
    return {
        f"a.{s.name}": 0.5
        - torch.rand((*lead, *s.sizes, *s.base), generator=source, dtype=torch.float64)
        for s in shapes
    }


def one_for_each_function(cases: Sequence[Case]) -> list[Case]:
    """The first case of every Python function: a family is one function."""
    return list({case.declared.function: case for case in reversed(cases)}.values())[::-1]


def by_family(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Cases by the file of their law, in groups that one graph can hold."""
    groups: dict[str, list[Case]] = {}
    lines: dict[str, int] = {}
    for case in cases:
        file = case.declared.function.__module__.rpartition(".")[2]
        length = len(_sloped(case.program()).lines)
        lines[file] = lines.get(file, 0) + length
        groups.setdefault(f"{file} {lines[file] // MOST_LINES}", []).append(case)
    return groups


def padded(inputs: Mapping[str, Tensor], batch: int) -> dict[str, Tensor]:
    """A batch of that size, points repeated in turn."""
    return {name: x[torch.arange(batch) % len(x)] for name, x in inputs.items()}
