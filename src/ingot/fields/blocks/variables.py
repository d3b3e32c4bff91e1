"""[TensorBuffers], [AuxVariables], [AuxKernels] -> buffers, and what Exodus files show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.fields.blocks.options import Reader, place
from ingot.fields.blocks.sections import Sections
from ingot.fields.computes.models import existing
from ingot.fields.lbm.setting import LatticeSetting, StoredField
from ingot.fields.outputs.table import Event
from ingot.fields.step import State
from ingot.hit import Block
from ingot.options import Count

__all__ = ["LatticeBuffer", "Mapped", "declared_buffers", "read_mapped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferOptions:
    """A buffer.

    reciprocal: accepted: a buffer holds what is written to it
    map_to_aux_variable: the variable of an Exodus file that shows it
    map_from_aux_variable: refused: computes fill buffers, and no variable has other values
    value_dimensions: the sizes of its components
    """

    reciprocal: bool = False
    map_to_aux_variable: tuple[str, ...] = ()
    map_from_aux_variable: tuple[str, ...] = ()
    value_dimensions: tuple[Count, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeBuffer(BufferOptions):
    """A buffer on a lattice.

    buffer_type: a distribution (df), a vector (mv) or a scalar (ms)
    file: an HDF5 file that it starts with, in the set named like the file
    is_integer: whether it holds whole numbers
    """

    buffer_type: Literal["df", "mv", "ms"]
    file: str = ""
    is_integer: bool = False


BUFFER_TYPES = {"PlainTensorBuffer": (), "VectorTensor": (3,), "SR2Tensor": (6,)}
"""The types of buffers, and the components that each has by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableOptions:
    """A variable of an Exodus file.

    family: LAGRANGE for values at nodes, MONOMIAL for values of elements
    order: the order of the family
    initial_condition: its value until a buffer is shown
    """

    family: str = "LAGRANGE"
    order: str = "FIRST"
    initial_condition: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTensorAux:
    """Shows a buffer as a variable.

    buffer: the buffer
    variable: the variable
    execute_on: when to
    """

    buffer: str
    variable: str
    execute_on: tuple[Event, ...] = ("TIMESTEP_END",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyValueAux:
    """Shows what another variable of the same family shows.

    source: the variable that shows a buffer
    variable: the variable to show it too
    execute_on: when to
    """

    source: str
    variable: str
    execute_on: tuple[Event, ...] = ("TIMESTEP_END",)


KERNELS = {"ProjectTensorAux": ProjectTensorAux, "CopyValueAux": CopyValueAux}


@dataclass(frozen=True, slots=True)
class Mapped:
    """A buffer that an Exodus file shows as a variable, at nodes or in elements."""

    buffer: str
    variable: str
    nodal: bool
    events: tuple[Event, ...] = ("INITIAL", "TIMESTEP_END")
    initial: float = 0.0
    """What it shows before it shows the buffer."""


@dataclass(frozen=True, slots=True)
class StartedBuffer:
    """The sizes of the components of a buffer, and what it starts with beside zeros."""

    sizes: tuple[int, ...] = ()
    integer: bool = False
    stored: StoredField | None = None

    def fill(self, name: str, state: State) -> Tensor:
        """What the buffer starts with."""
        if self.stored is not None:
            return self.stored.read(state.space, self.sizes)
        zeros = state.zeros(name, self.sizes)
        return zeros.to(torch.int64) if self.integer else zeros


def declared_buffers(
    blocks: Iterable[Block], reader: Reader, lattice: LatticeSetting
) -> dict[str, StartedBuffer]:
    """The buffers that a file declares."""
    known = {**BUFFER_TYPES, "LBMTensorBuffer": None}
    found: dict[str, StartedBuffer] = {}
    for each in blocks:
        kind = each.field("type")
        own = reader.type_of(each, known, "PlainTensorBuffer")
        if kind is not None and kind.string() == "LBMTensorBuffer":
            found[each.name] = lattice_buffer(each, reader, lattice)
            continue
        options = None if own is None else reader.made(each, BufferOptions)
        sizes = options.value_dimensions if options is not None else ()
        found[each.name] = StartedBuffer((own or ()) + sizes)
    return found


def lattice_buffer(block: Block, reader: Reader, lattice: LatticeSetting) -> StartedBuffer:
    """A buffer with a component for each direction, for each axis, or one."""
    options = reader.made(block, LatticeBuffer)
    if options is None:
        return StartedBuffer()
    if options.value_dimensions:
        message = f"buffer_type = {options.buffer_type} sets the components of {block.title}"
        reader.problems.append(
            Problem("wrong-value", message, block.span, "remove value_dimensions")
        )
    counts: dict[str, tuple[int, ...]] = {"ms": ()}
    if lattice.stencil is not None:
        counts |= {"df": (lattice.stencil.q,), "mv": (lattice.stencil.dim,)}
    elif options.buffer_type != "ms":
        message = f"{block.title} needs a [Stencil]"
        fix = "add [Stencil] with a block of type LBMD2Q9, LBMD3Q19 or LBMD3Q27"
        reader.problems.append(Problem("missing-block", message, block.span, fix))
    sizes = counts.get(options.buffer_type, ())
    return StartedBuffer(sizes, options.is_integer, stored_field(block, options, reader))


def stored_field(block: Block, options: LatticeBuffer, reader: Reader) -> StoredField | None:
    """The file that a buffer starts with, if it names one that is there."""
    if not options.file:
        return None
    folder = reader.tree.file.parent if reader.tree.file is not None else Path()
    option = block.require("file")
    try:
        return StoredField(existing(option, folder), options.is_integer, option.value_span)
    except IngotError as error:
        reader.problems += error.problems
        return None


def read_mapped(whole: Sections, reader: Reader) -> tuple[Mapped, ...]:
    """The variables of the mesh and the buffers that they show, if any, sorted by name."""
    variables: dict[str, Mapped] = {}
    for each in whole.blocks("AuxVariables"):
        options = reader.made(each, VariableOptions) or VariableOptions()
        reader.problems += wrong_family(each, options)
        nodal = options.family.upper() == "LAGRANGE"
        variables[each.name] = Mapped("", each.name, nodal, initial=options.initial_condition)

    def show(name: str, shown: Mapped, block: Block, option: str = "variable") -> None:
        """Let a variable show a buffer."""
        own = variables.get(name)
        if own is None:
            fix = did_you_mean(name, variables) or "add it to [AuxVariables]"
            problem = Problem("missing-block", f"[AuxVariables] has no block '{name}'", fix=fix)
        elif own.buffer:
            message = f"the variable '{name}' is to show two buffers"
            problem = Problem("duplicate-block", message, fix="add a variable for one of them")
        else:
            variables[name] = replace(shown, variable=name, nodal=own.nodal, initial=own.initial)
            return
        reader.problems.append(replace(problem, span=place(block, option)))

    for each in whole.blocks("TensorBuffers"):
        field = each.field("map_to_aux_variable")
        for name in field.words() if field is not None else ():
            show(name, Mapped(each.name, name, True), each, "map_to_aux_variable")
        if each.field("map_from_aux_variable") is not None:
            message = f"'{each.name}' is to be read from a variable, which only shows buffers"
            fix = "let a compute of [TensorComputes] write the buffer"
            span = place(each, "map_from_aux_variable")
            reader.problems.append(Problem("wrong-value", message, span, fix))
    copies: list[tuple[Block, CopyValueAux]] = []
    for each in whole.blocks("AuxKernels"):
        kind = reader.type_of(each, KERNELS)
        options = None if kind is None else reader.made(each, kind)
        if isinstance(options, ProjectTensorAux):
            show(options.variable, Mapped(options.buffer, "", True, options.execute_on), each)
        if isinstance(options, CopyValueAux):
            copies.append((each, options))
    for each, options in copies:
        source, own = (variables.get(name) for name in (options.source, options.variable))
        if source is None or not source.buffer or (own is not None and own.nodal != source.nodal):
            message = f"'{options.variable}' cannot copy '{options.source}', which shows no buffer"
            if source is not None and source.buffer:
                message = f"'{options.variable}' and '{options.source}' are not of one family"
            fix = "name a variable of the same family that a buffer is mapped to"
            reader.problems.append(Problem("wrong-value", message, place(each, "source"), fix))
        else:
            both = tuple(event for event in options.execute_on if event in source.events)
            show(options.variable, replace(source, events=both), each)
    return tuple(variables[name] for name in sorted(variables))


def wrong_family(block: Block, options: VariableOptions) -> Iterator[Problem]:
    """A variable that has neither a value for each node nor one for each element."""
    kind = options.family.upper(), options.order.upper()
    if kind not in (("LAGRANGE", "FIRST"), ("MONOMIAL", "CONSTANT")):
        message = f"the variable '{block.name}' is {' '.join(kind)}, which shows no buffer"
        fix = "give family = MONOMIAL with order = CONSTANT, or neither"
        yield Problem("wrong-value", message, block.span, fix)
