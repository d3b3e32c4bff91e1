"""[TensorBuffers], [AuxVariables], [AuxKernels] -> buffers, and what Exodus files show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ingot.errors import Problem, did_you_mean
from ingot.fields.blocks.options import Reader
from ingot.fields.outputs.table import Event
from ingot.hit import Block
from ingot.options import Count

__all__ = ["Mapped", "declared_buffers", "read_mapped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferOptions:
    """A buffer.

    reciprocal: accepted, without effect: a buffer holds what is written to it
    map_to_aux_variable: the variable of an Exodus file that shows it
    map_from_aux_variable: accepted, without effect
    value_dimensions: the sizes of its components
    """

    reciprocal: bool = False
    map_to_aux_variable: tuple[str, ...] = ()
    map_from_aux_variable: tuple[str, ...] = ()
    value_dimensions: tuple[Count, ...] = ()


BUFFER_TYPES = {"PlainTensorBuffer": (), "VectorTensor": (3,), "SR2Tensor": (6,)}
"""The types of buffers, and the components that each has by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableOptions:
    """A variable of an Exodus file.

    family: LAGRANGE for values at nodes, MONOMIAL for values of elements
    order: the order of the family
    initial_condition: accepted, without effect
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


@dataclass(frozen=True, slots=True)
class Mapped:
    """A buffer that an Exodus file shows as a variable, at nodes or in elements."""

    buffer: str
    variable: str
    nodal: bool
    events: tuple[Event, ...] = ("INITIAL", "TIMESTEP_END")


class Sectioned(Protocol):
    """Whatever finds the sections of a file."""

    def blocks(self, name: str) -> tuple[Block, ...]:
        """The blocks of a section."""
        ...


def declared_buffers(blocks: Iterable[Block], reader: Reader) -> dict[str, tuple[int, ...]]:
    """The buffers that a file declares, with the sizes of their components."""
    found: dict[str, tuple[int, ...]] = {}
    for each in blocks:
        own = reader.type_of(each, BUFFER_TYPES, "PlainTensorBuffer")
        options = None if own is None else reader.made(each, BufferOptions)
        sizes = options.value_dimensions if options is not None else ()
        found[each.name] = (own or ()) + sizes
    return found


def read_mapped(whole: Sectioned, reader: Reader) -> tuple[Mapped, ...]:
    """The variables that show buffers, sorted by name."""
    nodal: dict[str, bool] = {}
    for each in whole.blocks("AuxVariables"):
        options = reader.made(each, VariableOptions)
        nodal[each.name] = options is None or options.family.upper() == "LAGRANGE"
    found: list[Mapped] = []
    for each in whole.blocks("TensorBuffers"):
        field = each.field("map_to_aux_variable")
        for name in field.words() if field is not None else ():
            if name not in nodal:
                fix = did_you_mean(name, nodal) or "add it to [AuxVariables]"
                message = f"[AuxVariables] has no block '{name}'"
                span = field.value_span if field is not None else each.span
                reader.problems.append(Problem("missing-block", message, span, fix))
            found.append(Mapped(each.name, name, nodal.get(name, True)))
    for each in whole.blocks("AuxKernels"):
        kind = reader.type_of(each, {"ProjectTensorAux": ProjectTensorAux})
        options = None if kind is None else reader.made(each, kind)
        if options is not None:
            place = nodal.get(options.variable, True)
            found.append(Mapped(options.buffer, options.variable, place, options.execute_on))
    shown = {each.variable for each in found}
    found += [Mapped("", name, place) for name, place in nodal.items() if name not in shown]
    return tuple(sorted(found, key=lambda each: each.variable))
