"""[TensorOutputs]: fields as HDF5 (or raw) files, with an XDMF file that viewers open."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

import numpy as np
import torch
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.extras import require_extra
from ingot.fields.blocks.domain import Domain
from ingot.fields.outputs.table import Event
from ingot.fields.shares import Box, Share, within
from ingot.fields.step import Buffer, State
from ingot.options import Count

__all__ = ["XDMF", "XDMFTensorOutput", "XDMFWriter", "open_hdf5"]

Place = Literal["CELL", "NODE", "OVERSIZED_NODAL"]
TAIL = "\t\t</Grid>\n\t</Domain>\n</Xdmf>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class XDMFTensorOutput:
    """Fields as files.

    buffer: the buffers to write
    file_base: the name of the files without their endings
    execute_on: when to write
    time_step_interval: of how many steps one is written
    enable_hdf5: whether to write one HDF5 file instead of a raw file for each field and frame
    output_mode: for each buffer, whether its values belong to cells or to nodes
    transpose: whether the first and the last axis are swapped, as viewers expect
    merged: whether ranks write one file of the whole box, instead of one each
    """

    buffer: tuple[str, ...]
    file_base: str = ""
    execute_on: tuple[Event, ...] = ("INITIAL", "TIMESTEP_END")
    time_step_interval: Count = 1
    enable_hdf5: bool = False
    output_mode: tuple[Place, ...] = ()
    transpose: bool = True
    merged: bool = False


@dataclass(frozen=True, slots=True)
class XDMF:
    """An output of fields: its options, and the name of its files without their endings."""

    options: XDMFTensorOutput
    base: str


def library() -> Any:
    """The library that writes HDF5 files."""
    return require_extra("h5py", "HDF5 files", "set enable_hdf5 = false")


def open_hdf5(path: Path, mode: str) -> Any:
    """An HDF5 file without its lock: a run must not end because somebody looks at its fields."""
    return library().File(path, mode, locking=False)


def thread_safe() -> bool:
    """Whether the HDF5 library may be called from several threads; yes where it does not say."""
    answer = ctypes.c_bool(True)
    # a module of h5py is linked with the library, and so finds what that exports
    ask = getattr(ctypes.CDLL(library().h5.__file__), "H5is_library_threadsafe", None)
    if ask is not None:
        ask(ctypes.byref(answer))
    return answer.value


_UNCLOSED: list[Any] = []
"""Files that the disk refused: HDF5 (2.0) ends the process where it closes one."""


@dataclass(slots=True)
class XDMFWriter:
    """Writes frame after frame of one output; a box that is shared has a file for each rank.

    Its parts are `slabs` along y that one process holds all of, or those of the ranks of a `share`.
    """

    output: XDMF
    domain: Domain
    folder: Path
    slabs: tuple[int, ...] = ()
    share: Share | None = None
    frame: int = 0
    started: set[Path] = field(default_factory=set)

    def write(self, fields: Mapping[str, Tensor], time: float) -> None:
        """Add a frame."""
        options = self.output.options
        modes = options.output_mode or ("CELL",) * len(options.buffer)
        places = dict(zip(options.buffer, modes, strict=True))
        grids: list[list[str]] = []
        for rank, box in enumerate(self.boxes):
            suffix = f".rank{rank:04d}" if self.is_parted else ""
            lines: list[str] = []
            for name, value in fields.items():
                if self.share is None or self.merges:
                    value = value[box]
                elif rank != self.share.rank:
                    # another rank has the numbers; what describes them needs their sizes alone
                    extents = (each.stop - each.start for each in box)
                    value = value.new_empty((*extents, *value.shape[self.dim :]))
                for label, array in components(name, value, self.dim):
                    array = written(array, places[name], options.transpose)
                    lines += self.attribute(label, array, places[name], suffix, self.writes(rank))
            grids.append(lines)
        if self.leads:
            self.describe(grids, time)
        self.frame += 1

    @property
    def dim(self) -> int:
        """The number of axes."""
        return len(self.domain.sizes)

    @property
    def merges(self) -> bool:
        """Whether there is one file for the whole box."""
        return self.output.options.merged

    @property
    def is_parted(self) -> bool:
        """Whether there is a file for each rank."""
        return not self.merges and (self.share is not None or bool(self.slabs))

    @property
    def leads(self) -> bool:
        """Whether this process writes what describes the files."""
        return self.share is None or self.share.rank == 0

    def writes(self, rank: int) -> bool:
        """Whether this process writes the file of a rank."""
        return self.leads if self.share is None or self.merges else rank == self.share.rank

    @property
    def boxes(self) -> list[Box]:
        """The part of the box that each file holds."""
        if not self.is_parted:
            return [(slice(None),)]  # all of it, which at nodes is more than the cells
        if self.share is not None:
            return [self.share.parts.box(rank) for rank in range(self.share.parts.count)]
        return [
            (slice(0, self.domain.sizes[0]), within(self.slabs, at),
             *(slice(0, n) for n in self.domain.sizes[2:]))
            for at in range(len(self.slabs))
        ]  # fmt: skip

    def attribute(
        self, label: str, array: Any, place: Place, suffix: str, store: bool
    ) -> list[str]:
        """Store one array, if it is this process's to store; the lines that describe it."""
        dataset, base = f"{label}.{self.frame}", f"{self.output.base}{suffix}"
        kind = "Int" if array.dtype.kind == "i" else "Float"
        sizes = " ".join(map(str, array.shape))
        if self.output.options.enable_hdf5:
            if store:
                self.store(self.folder / f"{base}.h5", dataset, array)
            item = f'Format="HDF">{escape(Path(base).name)}.h5:/{dataset}'
        else:
            path = self.folder / f"{base}.{dataset}.bin"
            if store:
                if self.frame == 0:
                    path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(array.astype(array.dtype.newbyteorder("<")).tobytes())
            item = f'Format="Binary" Endian="Little" Precision="{array.dtype.itemsize}">{path.name}'
        center = "Cell" if place == "CELL" else "Node"
        return [
            f'\t\t\t\t<Attribute Name="{escape(label)}" Center="{center}">',
            f'\t\t\t\t\t<DataItem DataType="{kind}" Dimensions="{sizes}" {item}</DataItem>',
            "\t\t\t\t</Attribute>",
        ]

    def store(self, path: Path, dataset: str, array: Any) -> None:
        """Put one array into an HDF5 file; the first of a run replaces an older file."""
        if path not in self.started:
            path.parent.mkdir(parents=True, exist_ok=True)
        file = open_hdf5(path, "r+" if path in self.started else "w")
        try:
            made = file.create_dataset(
                dataset, data=array, chunks=array.shape, compression="gzip", compression_opts=9
            )
            # what the disk refuses while the file is closed, h5py may leave untold
            file.flush()
            del made
            file.close()
        except (OSError, RuntimeError):
            _UNCLOSED.append(file)
            raise
        self.started.add(path)

    def describe(self, grids: list[list[str]], time: float) -> None:
        """Add a frame to the XDMF file, in front of its last lines."""
        path = self.folder / f"{self.output.base}.xmf"
        if path not in self.started:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.head() + TAIL)
            self.started.add(path)
        if self.is_parted:
            lines = self.spatial(grids, time)
        else:
            lines = [
                f'\t\t\t<Grid Name="T{self.frame}" GridType="Uniform">',
                f'\t\t\t\t<Time Value="{time:.17g}" />',
                '\t\t\t\t<xi:include xpointer="xpointer(//Xdmf/Domain/Topology)" />',
                '\t\t\t\t<xi:include xpointer="xpointer(//Xdmf/Domain/Geometry)" />',
                *grids[0],
                "\t\t\t</Grid>",
            ]
        with path.open("r+b") as file:
            file.seek(-len(TAIL.encode()), 2)
            file.write(("\n".join(lines) + "\n" + TAIL).encode())

    def head(self) -> str:
        """The lines that come before the frames."""
        mesh = "" if self.is_parted else "".join(f"\t\t{line}\n" for line in self.mesh(self.box()))
        return (
            '<?xml version="1.0"?>\n'
            '<Xdmf xmlns:xi="http://www.w3.org/2003/XInclude" Version="2.2">\n\t<Domain>\n'
            f"{mesh}"
            '\t\t<Grid Name="TimeSeries" GridType="Collection" CollectionType="Temporal">\n'
        )

    def box(self, part: Box | None = None) -> list[tuple[int, float, float]]:
        """Cells, origin and spacing along each axis of a part of the box, as they are written."""
        rows = zip(self.domain.sizes, self.domain.lower, self.domain.upper, strict=False)
        axes = [(n, low, (high - low) / n) for n, low, high in rows]
        if part is not None:
            axes = [
                (each.stop - each.start, low + each.start * step, step)
                for each, (_, low, step) in zip(part, axes, strict=True)
            ]
        return axes[::-1] if self.output.options.transpose else axes

    def mesh(self, axes: list[tuple[int, float, float]]) -> list[str]:
        """The lines that describe points: their counts, the first, the distances."""
        counts = " ".join(str(n + 1) for n, _, _ in axes)
        kind = {1: "ORIGIN_DX", 2: "ORIGIN_DXDY", 3: "ORIGIN_DXDYDZ"}[self.dim]
        item = f'<DataItem Format="XML" Dimensions="{self.dim}">'
        return [
            f'<Topology TopologyType="{self.dim}DCoRectMesh" Dimensions="{counts}" />',
            f'<Geometry Type="{kind}">',
            f"\t{item}{' '.join(f'{low:.15g}' for _, low, _ in axes)}</DataItem>",
            f"\t{item}{' '.join(f'{step:.15g}' for _, _, step in axes)}</DataItem>",
            "</Geometry>",
        ]

    def spatial(self, grids: list[list[str]], time: float) -> Iterator[str]:
        """The lines of a frame that is shared among ranks."""
        yield f'\t\t\t<Grid Name="T{self.frame}" GridType="Collection" CollectionType="Spatial">'
        yield f'\t\t\t\t<Time Value="{time:.17g}" />'
        for rank, (part, lines) in enumerate(zip(self.boxes, grids, strict=True)):
            yield f'\t\t\t\t<Grid Name="Rank{rank}" GridType="Uniform">'
            yield from (f"\t\t\t\t\t{line}" for line in self.mesh(self.box(part)))
            yield from (f"\t{line}" for line in lines)
            yield "\t\t\t\t</Grid>"
        yield "\t\t\t</Grid>"


def full(state: State, name: str) -> Tensor:
    """A buffer over the whole grid, on the CPU."""
    value = state.look_up(Buffer(name))
    if value.is_complex():
        message = f"'{name}' is a spectrum, which cannot be written as a field"
        raise IngotError([Problem("wrong-value", message, fix="write its InverseFFT instead")])
    return state.space.whole(value).detach().cpu()


def snapshot(state: State, name: str) -> Tensor:
    """A buffer over the whole grid, in memory of its own on the CPU."""
    found = full(state, name)
    return found.clone() if state.space.k2.device.type == "cpu" else found


def components(name: str, value: Tensor, dim: int) -> Iterator[tuple[str, Tensor]]:
    """The scalar fields of a buffer, and what each is called."""
    parts = value.reshape(*value.shape[:dim], -1)
    for number, label in enumerate(component_labels(parts.shape[-1])):
        yield f"{name}{label}", parts[..., number]


def component_labels(count: int) -> list[str]:
    """What stands behind the name of a buffer for each of its components."""
    labels = {1: [""], 2: ["_x", "_y"], 3: ["_x", "_y", "_z"]}
    return labels.get(count) or [f"_{k}" for k in range(count)]


def written(value: Tensor, place: Place, transpose: bool) -> Any:
    """An array as it is stored: nodes repeat the first layer, axes are swapped."""
    if place == "NODE":
        for axis in range(value.dim()):
            value = torch.cat([value, value.narrow(axis, 0, 1)], axis)
    if transpose and value.dim() > 1:
        value = value.transpose(0, value.dim() - 1)
    return np.ascontiguousarray(value.numpy())
