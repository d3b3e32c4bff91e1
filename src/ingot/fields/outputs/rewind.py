"""mark: a file that a run adds to -> how it stands; rewind: the file and the mark -> as it stood.

Old numbers are never moved, so what a mark holds is short: the length, and the index of HDF5 files.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from ingot.fields.compare.netcdf import RECORDS_AT
from ingot.fields.outputs import vti, xdmf

__all__ = ["Mark", "mark", "moved_on", "rewind"]

Extent = tuple[int, int]
"""Where bytes begin in a file, and how many there are."""

TAILS = {".xmf": xdmf.TAIL, ".pvd": vti.TAIL}
"""The last lines of files that a run adds to in front of them."""

LAST = 16
"""How many stretches of numbers at the end are compared, to know a file again."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The length of a file, the bytes that adding to it changes, and a checksum of some others."""

    size: int
    pieces: list[tuple[int, Tensor]]
    known: list[Extent]
    checksum: int

    def plain(self) -> dict[str, Any]:
        """The same as something that can be stored."""
        return asdict(self)


def mark(path: Path) -> Mark:
    """How a file stands; it is on the disk afterwards."""
    size = path.stat().st_size
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if path.suffix == ".h5":
            numbers = sorted(numbers_in(path))
            changing, known = list(between(numbers, size)), numbers[-LAST:]
        elif path.suffix == ".e":
            # records are added at the end, and counted near the beginning
            changing, begin = [(RECORDS_AT, 4)], max(RECORDS_AT + 4, size - 4096)
            known = [(begin, size - begin)]
        else:
            kept = size - len(TAILS.get(path.suffix, "").encode())
            changing, known = [(kept, size - kept)], [(max(0, kept - 4096), min(kept, 4096))]
        pieces = [(begin, stretch(file, begin, count)) for begin, count in changing if count]
        return Mark(size, pieces, known, checksum(file, known))


def numbers_in(path: Path) -> Iterator[Extent]:
    """Where the numbers of an HDF5 file are."""
    with xdmf.open_hdf5(path, "r") as file:
        for name in file:
            dataset = file[name].id
            for index in range(dataset.get_num_chunks()):
                chunk = dataset.get_chunk_info(index)
                yield chunk.byte_offset, chunk.size


def between(extents: list[Extent], size: int) -> Iterator[Extent]:
    """What lies between sorted stretches of a file."""
    begin = 0
    for offset, count in extents:
        if offset > begin:
            yield begin, offset - begin
        begin = offset + count
    if size > begin:
        yield begin, size - begin


def stretch(file: BinaryIO, begin: int, count: int) -> Tensor:
    """Some bytes of a file."""
    file.seek(begin)
    return torch.frombuffer(bytearray(file.read(count)), dtype=torch.uint8)


def checksum(file: BinaryIO, extents: list[Extent]) -> int:
    """One number for some stretches of a file."""
    total = 0
    for begin, count in extents:
        file.seek(begin)
        total = zlib.crc32(file.read(count), total)
    return total


def moved_on(path: Path, stood: Mark) -> bool:
    """Whether a file is the one that was marked, as it was or with more added to it."""
    if not path.is_file() or path.stat().st_size < stood.size:
        return False
    with path.open("rb") as file:
        return checksum(file, stood.known) == stood.checksum


def rewind(path: Path, stood: Mark) -> None:
    """Take back what was added to a file, or half added when its writer was killed."""
    with path.open("r+b") as file:
        for begin, piece in stood.pieces:
            file.seek(begin)
            file.write(piece.cpu().numpy().tobytes())
        file.truncate(stood.size)
