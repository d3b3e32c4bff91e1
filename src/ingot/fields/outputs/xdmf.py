"""[TensorOutputs]: fields as HDF5 (or raw) files, with an XDMF file that viewers open."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
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
from ingot.fields.blocks.options import Reader
from ingot.fields.outputs.table import Event, Outputs
from ingot.fields.step import Buffer, State
from ingot.hit import Block
from ingot.options import Count

__all__ = ["XDMF", "XDMFWriter", "read_tensor_outputs"]

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
    """

    buffer: tuple[str, ...]
    file_base: str = ""
    execute_on: tuple[Event, ...] = ("INITIAL", "TIMESTEP_END")
    time_step_interval: Count = 1
    enable_hdf5: bool = False
    output_mode: tuple[Place, ...] = ()
    transpose: bool = True


@dataclass(frozen=True, slots=True)
class XDMF:
    """An output of fields: its options, and the name of its files without their endings."""

    options: XDMFTensorOutput
    base: str


def read_tensor_outputs(
    blocks: Iterable[Block], outputs: Outputs, stem: str, reader: Reader, *, compatible: bool
) -> tuple[XDMF, ...]:
    """The outputs of a [TensorOutputs] block."""
    found: dict[str, XDMF] = {}
    with_hdf5: list[Block] = []
    for each in blocks:
        kind = reader.type_of(each, {"XDMFTensorOutput": XDMFTensorOutput})
        options = None if kind is None else reader.made(each, kind)
        if options is None:
            continue
        if options.output_mode and len(options.output_mode) != len(options.buffer):
            message = (
                f"output_mode has {len(options.output_mode)} entries, buffer {len(options.buffer)}"
            )
            reader.problems.append(
                Problem("wrong-value", message, each.span, "give a mode for each buffer")
            )
        base = options.file_base or outputs.file_base or stem
        if base in found:
            message = f"two outputs write to the files '{base}'"
            fix = "give one of them a file_base"
            reader.problems.append(Problem("duplicate-block", message, each.span, fix))
        found[base] = XDMF(options, base)
        with_hdf5 += [each] if options.enable_hdf5 else []
    if compatible and len(with_hdf5) > 1 and not thread_safe():
        # The reference writes each output in a thread of its own.
        message = "Using an hdf5 library that is not threadsafe and multiple XDMF output objects"
        fix = "set enable_hdf5 = false in all but one, or marlin_compatible = false in [Problem]"
        reader.problems.append(Problem("hdf5-threads", message, with_hdf5[1].span, fix))
    return tuple(found.values())


def library() -> Any:
    """The library that writes HDF5 files."""
    return require_extra("h5py", "HDF5 files", "set enable_hdf5 = false")


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
    """Writes frame after frame of one output; `ranks` cut the box along y, a file for each."""

    output: XDMF
    domain: Domain
    folder: Path
    slabs: tuple[int, ...] = ()
    frame: int = 0
    started: set[Path] = field(default_factory=set)

    def write(self, state: State, time: float) -> None:
        """Add a frame."""
        options = self.output.options
        modes = options.output_mode or ("CELL",) * len(options.buffer)
        places = dict(zip(options.buffer, modes, strict=True))
        parts = list(self.parts())
        grids: list[list[str]] = []
        for suffix, cut in parts:
            lines: list[str] = []
            for name in sorted(places):
                value = full(state, name)
                for label, array in components(name, value[cut], self.dim):
                    array = written(array, places[name], options.transpose)
                    lines += self.attribute(label, array, places[name], suffix)
            grids.append(lines)
        self.describe(grids, time)
        self.frame += 1

    @property
    def dim(self) -> int:
        """The number of axes."""
        return len(self.domain.sizes)

    def parts(self) -> Iterator[tuple[str, tuple[slice, ...]]]:
        """The ending of each rank's file, and its part of the box."""
        if not self.slabs:
            yield "", (slice(None),)
        begin = 0
        for rank, width in enumerate(self.slabs):
            yield f".rank{rank:04d}", (slice(None), slice(begin, begin + width))
            begin += width

    def attribute(self, label: str, array: Any, place: Place, suffix: str) -> list[str]:
        """Store one array, and tell the lines that describe it."""
        dataset, base = f"{label}.{self.frame}", f"{self.output.base}{suffix}"
        kind = "Int" if array.dtype.kind == "i" else "Float"
        sizes = " ".join(map(str, array.shape))
        if self.output.options.enable_hdf5:
            self.store(self.folder / f"{base}.h5", dataset, array)
            item = f'Format="HDF">{escape(Path(base).name)}.h5:/{dataset}'
        else:
            path = self.folder / f"{base}.{dataset}.bin"
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
        path.parent.mkdir(parents=True, exist_ok=True)
        file = library().File(path, "a" if path in self.started else "w")
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
        if self.slabs:
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
        mesh = "" if self.slabs else "".join(f"\t\t{line}\n" for line in self.mesh(self.box()))
        return (
            '<?xml version="1.0"?>\n'
            '<Xdmf xmlns:xi="http://www.w3.org/2003/XInclude" Version="2.2">\n\t<Domain>\n'
            f"{mesh}"
            '\t\t<Grid Name="TimeSeries" GridType="Collection" CollectionType="Temporal">\n'
        )

    def box(self, begin: int = 0, width: int | None = None) -> list[tuple[int, float, float]]:
        """Cells, origin and spacing along each axis of a part of the box, as they are written."""
        rows = zip(self.domain.sizes, self.domain.lower, self.domain.upper, strict=False)
        axes = [(n, low, (high - low) / n) for n, low, high in rows]
        if width is not None:
            _, low, step = axes[1]
            axes[1] = (width, low + begin * step, step)
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
        begin = 0
        for rank, (width, lines) in enumerate(zip(self.slabs, grids, strict=True)):
            yield f'\t\t\t\t<Grid Name="Rank{rank}" GridType="Uniform">'
            yield from (f"\t\t\t\t\t{line}" for line in self.mesh(self.box(begin, width)))
            yield from (f"\t{line}" for line in lines)
            yield "\t\t\t\t</Grid>"
            begin += width
        yield "\t\t\t</Grid>"


def full(state: State, name: str) -> Tensor:
    """A buffer over the whole grid, on the CPU."""
    value = state.look_up(Buffer(name))
    if value.is_complex():
        message = f"'{name}' is a spectrum, which cannot be written as a field"
        raise IngotError([Problem("wrong-value", message, fix="write its InverseFFT instead")])
    return state.space.whole(value).detach().cpu()


def components(name: str, value: Tensor, dim: int) -> Iterator[tuple[str, Tensor]]:
    """The scalar fields of a buffer, and what each is called."""
    parts = value.reshape(*value.shape[:dim], -1)
    count = parts.shape[-1]
    labels = {1: [""], 2: ["_x", "_y"], 3: ["_x", "_y", "_z"]}
    for number, label in enumerate(labels.get(count) or [f"_{k}" for k in range(count)]):
        yield f"{name}{label}", parts[..., number]


def written(value: Tensor, place: Place, transpose: bool) -> Any:
    """An array as it is stored: nodes repeat the first layer, axes are swapped."""
    if place == "NODE":
        for axis in range(value.dim()):
            value = torch.cat([value, value.narrow(axis, 0, 1)], axis)
    if transpose and value.dim() > 1:
        value = value.transpose(0, value.dim() - 1)
    return np.ascontiguousarray(value.numpy())
