"""Schema: what a compiled sequence depends on, sizes left out, and a name for it on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ingot.codegen.cache import key_of
from ingot.fields.jit.fingerprint import stable, surroundings
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Source, Step

__all__ = ["TRACED", "Schema", "digest", "schema_of", "sources_of"]

TRACED = {"n0": 101, "n1": 89, "n2": 73, "k0": 51, "k1": 45, "k2": 37}
"""The sizes that stand for the box (n) and its spectrum (k) while a graph is captured.

All differ, so that a size of the graph tells which axis it is that of.
"""

SMALLEST = 3
"""A grid with fewer cells along an axis is not told from its spectrum by its sizes."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The tensors that a sequence takes: sizes by name, precision, device; and the kind of box."""

    shapes: tuple[tuple[str | int, ...], ...]
    dtypes: tuple[torch.dtype, ...]
    device: str
    dim: int
    mode: str
    slabs: tuple[int, ...]
    shared: bool = False
    """Whether the box is a part of one, which is added up and shifted otherwise."""

    def __str__(self) -> str:
        pairs = zip(self.shapes, self.dtypes, strict=True)
        told = (f"{str(kind).removeprefix('torch.')}{list(shape)}" for shape, kind in pairs)
        mode = f"part of {self.mode}" if self.shared else self.mode
        return f"{self.dim}D {mode} on {self.device}: {' '.join(told)}".replace("'", "")


def sources_of(steps: Sequence[Step]) -> tuple[Source, ...]:
    """What the steps read from outside, the space left out, each once."""
    given: set[str] = set()
    found: dict[Source, None] = {}
    for step in steps:
        for source in step.sources:
            inside = isinstance(source, Buffer) and source.name in given
            if not inside and source != Ambient("space"):
                found[source] = None
        given |= set(step.gives)
    return tuple(found)


def schema_of(tensors: Sequence[Tensor], space: Space) -> Schema | None:
    """The schema of tensors on a box; none where its sizes do not tell its axes.

    Tensors that do not lie on one device have none either.
    """
    if min(space.shape) < SMALLEST or any(each.device != space.k2.device for each in tensors):
        return None
    both = [*zip(space.shape, space.spectrum_shape, strict=True)]

    def named(axis: int, size: int) -> str | int:
        grid, spectrum = both[axis] if axis < space.dim else (None, None)
        return f"n{axis}" if size == grid else f"k{axis}" if size == spectrum else size

    return Schema(
        tuple(tuple(named(*pair) for pair in enumerate(each.shape)) for each in tensors),
        tuple(each.dtype for each in tensors),
        str(space.k2.device),
        space.dim,
        space.mode,
        space.slabs,
        space.share is not None,
    )


def digest(steps: Sequence[Step], wanted: Sequence[str], schema: Schema, more: str) -> str:
    """A name for the graph of steps that lasts; Unstable where an option of one has none."""
    parts = [repr(tuple(wanted)), str(schema), str(schema.slabs), more, surroundings()]
    return key_of(stable(tuple(steps)), *parts)
