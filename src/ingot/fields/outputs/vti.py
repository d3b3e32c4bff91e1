"""VTIWriter: fields as VTK image data, one file for each frame, and a list that ParaView opens."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import escape

import numpy as np
from torch import Tensor

from ingot.fields.blocks.domain import Domain
from ingot.fields.outputs.table import Event
from ingot.fields.outputs.xdmf import Place, written
from ingot.fields.shares import Share
from ingot.options import Count

__all__ = ["VTI", "VTITensorOutput", "VTIWriter"]

TAIL = "  </Collection>\n</VTKFile>\n"
HEAD = (
    '<?xml version="1.0"?>\n'
    '<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
)
KINDS = {"f": "Float", "i": "Int", "u": "UInt", "b": "UInt"}
"""What VTK calls the kinds of numbers; their bits follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VTITensorOutput:
    """Fields as VTK image data (.vti), with a list of all frames and their times (.pvd).

    Ranks gather what they write into one file; components of a vector stay together.

    buffer: the buffers to write
    file_base: the name of the files without their endings
    execute_on: when to write
    time_step_interval: of how many steps one is written
    output_mode: for each buffer, whether its values belong to cells or to nodes
    """

    buffer: tuple[str, ...]
    file_base: str = ""
    execute_on: tuple[Event, ...] = ("INITIAL", "TIMESTEP_END")
    time_step_interval: Count = 1
    output_mode: tuple[Place, ...] = ()
    merged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class VTI:
    """An output of image data: its options, and the name of its files without their endings."""

    options: VTITensorOutput
    base: str


@dataclass(slots=True)
class VTIWriter:
    """Writes frame after frame of one output, by the first rank."""

    output: VTI
    domain: Domain
    folder: Path
    share: Share | None = None
    frame: int = 0
    started: set[Path] = field(default_factory=set)

    def write(self, fields: Mapping[str, Tensor], time: float) -> None:
        """Add a frame."""
        if self.share is None or self.share.rank == 0:
            path = self.folder / f"{self.output.base}.{self.frame:04d}.vti"
            if self.frame == 0:
                path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.image(fields))
            self.list_frame(path.name, time)
        self.frame += 1

    def image(self, fields: Mapping[str, Tensor]) -> str:
        """The text of a frame; its numbers stand at the end, in base 64."""
        options, dim = self.output.options, len(self.domain.sizes)
        modes = options.output_mode or ("CELL",) * len(options.buffer)
        places = dict(zip(options.buffer, modes, strict=True))
        described: dict[bool, list[str]] = {True: [], False: []}
        pieces: list[str] = []
        for name, value in fields.items():
            array = image_array(value, places[name], dim)
            kind = f"{KINDS[array.dtype.kind]}{8 * array.dtype.itemsize}"
            described[places[name] == "CELL"].append(
                f'        <DataArray type="{kind}" Name="{escape(name, QUOTE)}"'
                f' NumberOfComponents="{array.shape[-1]}" format="appended"'
                f' offset="{sum(map(len, pieces))}"/>\n'
            )
            content = array.astype(array.dtype.newbyteorder("<")).tobytes()
            length = np.array(len(content), "<u8").tobytes()
            pieces.append(base64.b64encode(length + content).decode())
        cells, nodes = ("".join(described[each]) for each in (True, False))
        extent = " ".join(f"0 {n}" for n in (*self.domain.sizes, 0, 0)[:3])
        box = zip(self.domain.lower, self.domain.upper, (*self.domain.sizes, 0, 0), strict=False)
        steps = " ".join(f"{(high - low) / (n or 1):.17g}" for low, high, n in box)
        lower = (*self.domain.lower[:dim], 0.0, 0.0)[:3]
        return (
            f"{HEAD.format(kind='ImageData')}"
            f'  <ImageData WholeExtent="{extent}" Origin="{" ".join(f"{x:.17g}" for x in lower)}"'
            f' Spacing="{steps}">\n    <Piece Extent="{extent}">\n'
            f"      <PointData>\n{nodes}      </PointData>\n"
            f"      <CellData>\n{cells}      </CellData>\n    </Piece>\n  </ImageData>\n"
            f'  <AppendedData encoding="base64">\n_{"".join(pieces)}\n'
            "  </AppendedData>\n</VTKFile>\n"
        )

    def list_frame(self, name: str, time: float) -> None:
        """Add a frame to the list of all, in front of its last lines."""
        path = self.folder / f"{self.output.base}.pvd"
        if path not in self.started:
            path.write_text(f"{HEAD.format(kind='Collection')}  <Collection>\n{TAIL}")
            self.started.add(path)
        line = f'    <DataSet timestep="{time:.17g}" part="0" file="{escape(name, QUOTE)}"/>\n'
        with path.open("r+b") as file:
            file.seek(-len(TAIL), 2)
            file.write(f"{line}{TAIL}".encode())


QUOTE = {'"': "&quot;"}


def image_array(value: Tensor, place: Place, dim: int) -> Any:
    """A field as VTK stores it: x changes fastest but for the components; vectors have three."""
    parts = value.reshape(*value.shape[:dim], -1)
    arrays = [written(part, place, False) for part in parts.unbind(-1)]
    if len(arrays) == 2:
        arrays.append(np.zeros_like(arrays[0]))
    stacked = np.stack([array.T for array in arrays], -1)
    return stacked.astype(np.uint8) if stacked.dtype == np.bool_ else stacked
