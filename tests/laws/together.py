"""Many laws in one program, so that one compilation serves them all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ingot.program import Builder, Program, along_direction
from ingot.program.rewrite import renew
from tests.laws.samples import Case


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


def with_slopes(cases: Sequence[Case]) -> Program:
    """The values of all cases and their derivatives along a direction."""
    return joined({case.name: along_direction(case.program()) for case in cases})


def one_for_each_function(cases: Sequence[Case]) -> list[Case]:
    """The first case of every Python function: a family is one function."""
    return list({case.declared.function: case for case in reversed(cases)}.values())[::-1]


def padded(inputs: Mapping[str, Tensor], batch: int) -> dict[str, Tensor]:
    """A batch of that size, points repeated in turn."""
    return {name: x[torch.arange(batch) % len(x)] for name, x in inputs.items()}
