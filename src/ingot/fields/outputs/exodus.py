"""ExodusWriter: buffers mapped to variables of a mesh, frame by frame, as an Exodus file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ingot.fields.blocks.domain import Domain
from ingot.fields.blocks.variables import Mapped
from ingot.fields.compare import Exodus, grid, write_exodus
from ingot.fields.outputs.table import Event
from ingot.fields.outputs.xdmf import full, written
from ingot.fields.step import State

__all__ = ["ExodusWriter"]


@dataclass(slots=True)
class ExodusWriter:
    """Gathers frames and writes them; one element stands for a cell, or one for the whole box."""

    path: Path
    domain: Domain
    mapped: tuple[Mapped, ...]
    times: list[float] = field(default_factory=list)
    frames: dict[str, list[Any]] = field(default_factory=dict)
    scalars: list[dict[str, float]] = field(default_factory=list)
    stored: int = 0

    def write(self, state: State, time: float, values: Mapping[str, float], event: Event) -> None:
        """Add a frame; a variable that is not due stays as it was.

        The file is written whole, each time twice as many frames have come, and by `flush`.
        """
        self.times.append(time)
        self.scalars.append(dict(values))
        counts = self.counts()
        for each in self.mapped:
            shape = tuple(n + 1 for n in counts) if each.nodal else counts
            frames = self.frames.setdefault(each.variable, [])
            array: Any = frames[-1].reshape(shape, order="F") if frames else np.zeros(shape)
            if each.buffer and event in each.events and self.domain.mesh_mode == "DOMAIN":
                value = full(state, each.buffer)
                array = written(value, "NODE" if each.nodal else "CELL", False)
            frames.append(array.ravel(order="F"))
        if len(self.times) & (len(self.times) - 1) == 0:
            self.flush()

    def flush(self) -> None:
        """Write all frames there are."""
        if self.stored == len(self.times):
            return
        self.stored, counts = len(self.times), self.counts()
        dim = len(counts)
        nodes, elements = grid(counts, self.domain.lower[:dim], self.domain.upper[:dim])
        shown = {each.variable: each.nodal for each in self.mapped}
        by_name = {name: np.stack(frames) for name, frames in self.frames.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_exodus(
            self.path,
            Exodus(
                nodes,
                elements,
                np.array(self.times),
                {name: by_name[name] for name, nodal in shown.items() if nodal},
                {name: by_name[name] for name, nodal in shown.items() if not nodal},
                {n: np.array([r[n] for r in self.scalars]) for n in sorted(self.scalars[0])},
            ),
        )

    def counts(self) -> tuple[int, ...]:
        """Elements along each axis."""
        cells = self.domain.sizes
        return cells if self.domain.mesh_mode == "DOMAIN" else (1,) * len(cells)
