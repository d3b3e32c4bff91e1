"""ExodusWriter: buffers mapped to variables of a mesh, frame by frame, as an Exodus file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingot.fields.blocks.domain import Domain
from ingot.fields.blocks.variables import Mapped
from ingot.fields.compare import Exodus, append_exodus, grid, write_exodus
from ingot.fields.outputs.table import Event
from ingot.fields.outputs.xdmf import full, written
from ingot.fields.step import State

__all__ = ["ExodusWriter"]

Numbers = NDArray[np.float64]


@dataclass(slots=True)
class ExodusWriter:
    """Adds frame after frame; one element stands for a cell, or one for the whole box."""

    path: Path
    domain: Domain
    mapped: tuple[Mapped, ...]
    frame: int = 0
    shown: dict[str, Numbers] = field(default_factory=dict)
    """What each variable shows in the last frame, the first axis running fastest."""
    scalars: tuple[str, ...] = ()
    """The numbers that stand beside the variables, known from the first frame on."""

    def take(
        self, state: State, time: float, values: Mapping[str, float], event: Event
    ) -> Callable[[], None]:
        """What adds a frame of the present fields; a variable that is not due stays as it was."""
        counts, is_first = self.counts(), self.frame == 0
        for each in self.mapped:
            if is_first:
                shape = tuple(n + 1 for n in counts) if each.nodal else counts
                self.shown[each.variable] = np.full(int(np.prod(shape)), each.initial)
            if each.buffer and event in each.events and self.domain.mesh_mode == "DOMAIN":
                value = full(state, each.buffer)
                array = written(value, "NODE" if each.nodal else "CELL", False)
                # double precision as the header says, and memory of its own
                self.shown[each.variable] = array.astype(np.float64).flatten(order="F")
        if is_first:
            self.scalars = tuple(sorted(values))
        numbers = [values[name] for name in self.scalars]
        self.frame += 1
        return partial(self.write, dict(self.shown), time, numbers, is_first=is_first)

    def write(
        self, shown: Mapping[str, Numbers], time: float, numbers: list[float], *, is_first: bool
    ) -> None:
        """Add a frame; the first replaces an older file."""
        parts = [
            {each.variable: shown[each.variable] for each in self.mapped if each.nodal == nodal}
            for nodal in (True, False)
        ]
        if is_first:
            self.begin(*parts)
        append_exodus(self.path, time, parts[0].values(), parts[1].values(), numbers)

    def begin(self, nodal: Mapping[str, Numbers], elemental: Mapping[str, Numbers]) -> None:
        """Write a file without frames."""
        counts = self.counts()
        dim, none = len(counts), np.empty(0)
        nodes, elements = grid(counts, self.domain.lower[:dim], self.domain.upper[:dim])
        at_nodes, in_cells = (
            {name: np.empty((0, len(values))) for name, values in part.items()}
            for part in (nodal, elemental)
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scalars = dict.fromkeys(self.scalars, none)
        write_exodus(self.path, Exodus(nodes, elements, none, at_nodes, in_cells, scalars))

    def counts(self) -> tuple[int, ...]:
        """Elements along each axis."""
        cells = self.domain.sizes
        return cells if self.domain.mesh_mode == "DOMAIN" else (1,) * len(cells)
