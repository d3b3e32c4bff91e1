"""Netcdf: a classic netCDF file (CDF-1, CDF-2 with 64-bit offsets, CDF-5), read and written.

In: a path, or dimensions, attributes and arrays. Out: the same, with no library but numpy.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingot.errors import IngotError, Problem
from ingot.package.write import put_file

__all__ = ["Netcdf", "NetcdfVariable", "append_record", "read_netcdf", "write_netcdf"]

Array = NDArray[Any]
TYPES = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: "u1", 8: ">u2", 9: ">u4",
         10: ">i8", 11: ">u8"}  # fmt: skip
WRITTEN = {"S": 2, "i4": 4, "f4": 5, "f8": 6}
DIMENSION, VARIABLE, ATTRIBUTE = 10, 11, 12
RECORDS_AT = 4
"""Where a file has the count of its records, in four bytes."""


@dataclass(frozen=True, slots=True)
class NetcdfVariable:
    """An array, the names of its dimensions, and what is said about it."""

    dimensions: tuple[str, ...]
    values: Array
    attributes: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Netcdf:
    """All that a file holds; the length of the dimension `record` is the number of records."""

    dimensions: dict[str, int]
    variables: dict[str, NetcdfVariable]
    attributes: dict[str, Array] = field(default_factory=dict)
    record: str | None = None


@dataclass(frozen=True, slots=True)
class HeaderEntry:
    """A variable of a header: its name, its type, its bytes per record, and where it begins."""

    name: str
    dimensions: tuple[str, ...]
    attributes: dict[str, Array]
    kind: np.dtype[Any]
    size: int
    begin: int


@dataclass(slots=True)
class Header:
    """A place in the bytes of a file, moved on by everything that is read."""

    content: bytes
    at: int
    wide: bool
    """Whether counts have 64 bits (CDF-5)."""

    def integer(self, size: int) -> int:
        """A big-endian integer of so many bytes."""
        if self.at + size > len(self.content):
            raise ValueError
        value = int.from_bytes(self.content[self.at : self.at + size], "big")
        self.at += size
        return value

    def count(self) -> int:
        """A count that is not negative."""
        return self.integer(8 if self.wide else 4)

    def name(self) -> str:
        """A name, padded to four bytes."""
        length = self.count()
        text = self.content[self.at : self.at + length].decode()
        self.at += padded(length)
        return text

    def length_of(self, tag: int) -> int:
        """The number of entries of a list; an absent one has the tag 0."""
        found, length = self.integer(4), self.count()
        if found not in (0, tag) or (found == 0 and length):
            raise ValueError
        return length

    def attributes(self) -> dict[str, Array]:
        """A list of attributes."""
        found: dict[str, Array] = {}
        for _ in range(self.length_of(ATTRIBUTE)):
            name, kind, length = self.name(), np.dtype(TYPES[self.integer(4)]), self.count()
            found[name] = np.frombuffer(self.content, kind, length, self.at)
            self.at += padded(length * kind.itemsize)
        return found


def read_netcdf(path: Path) -> Netcdf:
    """Read a whole file; what is no classic netCDF is a problem."""
    content = path.read_bytes()
    if content[:3] != b"CDF" or content[3:4] not in (b"\x01", b"\x02", b"\x05"):
        kind = "a netCDF-4 (HDF5) file" if content[:4] == b"\x89HDF" else "no netCDF file"
        message = f"'{path}' is {kind}"
        fix = "convert it: nccopy -k 64-bit-offset OLD NEW"
        raise IngotError([Problem("unreadable-reference", message, fix=fix)])
    try:
        return parsed(content)
    except (ValueError, KeyError, IndexError) as error:
        message = f"'{path}' is broken: it ends early, or is no netCDF file"
        fix = "copy or write it again"
        raise IngotError([Problem("unreadable-reference", message, fix=fix)]) from error


def parsed(content: bytes) -> Netcdf:
    """The header, then the arrays it points to."""
    version = content[3]
    header = Header(content, 4, wide=version == 5)
    records = header.count()
    sizes = [(header.name(), header.count()) for _ in range(header.length_of(DIMENSION))]
    record = next((name for name, size in sizes if size == 0), None)
    attributes = header.attributes()
    entries: list[HeaderEntry] = []
    for _ in range(header.length_of(VARIABLE)):
        name = header.name()
        names = tuple(sizes[header.count()][0] for _ in range(header.count()))
        said = header.attributes()
        kind, size = np.dtype(TYPES[header.integer(4)]), header.count()
        begin = header.integer(4 if version == 1 else 8)
        entries.append(HeaderEntry(name, names, said, kind, size, begin))
    lengths = {name: records if name == record else size for name, size in sizes}
    moving = [entry for entry in entries if moves(entry.dimensions, record)]
    stride = sum(entry.size for entry in moving)
    if len(moving) == 1:
        # A lone record variable is not padded.
        inner = [lengths[name] for name in moving[0].dimensions[1:]]
        stride = int(np.prod(inner, initial=1)) * moving[0].kind.itemsize
    variables: dict[str, NetcdfVariable] = {}
    for each in entries:
        shape = tuple(lengths[name] for name in each.dimensions)
        step = stride if moves(each.dimensions, record) else None
        values = array(content, each.kind, shape, each.begin, step)
        variables[each.name] = NetcdfVariable(each.dimensions, values, each.attributes)
    return Netcdf(lengths, variables, attributes, record)


def array(
    content: bytes, kind: np.dtype[Any], shape: tuple[int, ...], begin: int, step: int | None
) -> Array:
    """One variable; its records lie `step` bytes apart, those of others between them."""
    if step is None:
        flat = np.frombuffer(content, kind, int(np.prod(shape, initial=1)), begin)
        return flat.reshape(shape).astype(kind.newbyteorder("="))
    each = int(np.prod(shape[1:], initial=1))
    rows = [np.frombuffer(content, kind, each, begin + i * step) for i in range(shape[0])]
    stacked = np.stack(rows) if rows else np.empty((0, each), kind)
    return stacked.reshape(shape).astype(kind.newbyteorder("="))


def write_netcdf(path: Path, file: Netcdf) -> None:
    """Write a file with 64-bit offsets; integers have 32 bits."""
    names = list(file.dimensions)
    records = file.dimensions[file.record] if file.record is not None else 0
    head = b"CDF\x02" + word(records) + word(DIMENSION if names else 0) + word(len(names))
    for name in names:
        head += labelled(name) + word(0 if name == file.record else file.dimensions[name])
    head += attribute_list(file.attributes)
    head += word(VARIABLE if file.variables else 0) + word(len(file.variables))
    written = {name: coded(each.values) for name, each in file.variables.items()}
    sizes = {
        name: padded(one_record(written[name][1], each.dimensions, file.record))
        for name, each in file.variables.items()
    }
    entries: dict[str, bytes] = {}
    for name, each in file.variables.items():
        places = b"".join(word(names.index(dimension)) for dimension in each.dimensions)
        entries[name] = labelled(name) + word(len(each.dimensions)) + places
        entries[name] += attribute_list(each.attributes)
        entries[name] += word(written[name][0]) + word(sizes[name])
    moving = [n for n, each in file.variables.items() if moves(each.dimensions, file.record)]
    fixed = [name for name in file.variables if name not in moving]
    begin, offsets = len(head) + sum(len(entry) + 8 for entry in entries.values()), {}
    for name in (*fixed, *moving):
        offsets[name] = begin.to_bytes(8, "big")
        begin += sizes[name]
    body = [pad(written[name][1].tobytes()) for name in fixed]
    for i in range(records):
        parts = [written[name][1][i : i + 1].tobytes() for name in moving]
        body += parts if len(parts) == 1 else [pad(part) for part in parts]
    headers = (entry + offsets[name] for name, entry in entries.items())
    put_file(head + b"".join((*headers, *body)), path)


def append_record(path: Path, values: Sequence[Array]) -> None:
    """Add a record, a value for each variable that has records, in the order of the file.

    Readers go by the count of records in the header, which changes once all bytes are there.
    """
    parts = [coded(each)[1].tobytes() for each in values]
    with path.open("r+b") as file:
        file.seek(RECORDS_AT)
        records = int.from_bytes(file.read(4), "big")
        file.seek(0, os.SEEK_END)
        file.write(b"".join(parts if len(parts) == 1 else map(pad, parts)))
        file.flush()
        file.seek(RECORDS_AT)
        file.write(word(records + 1))


def moves(dimensions: tuple[str, ...], record: str | None) -> bool:
    """Whether a variable has a value for every record."""
    return record is not None and dimensions[:1] == (record,)


def one_record(values: Array, dimensions: tuple[str, ...], record: str | None) -> int:
    """The bytes of a variable, or of one record of it."""
    shape = values.shape[1:] if moves(dimensions, record) else values.shape
    return int(np.prod(shape, initial=1)) * values.dtype.itemsize


def coded(values: Array) -> tuple[int, Array]:
    """The type code of an array, and the array as it is written."""
    if values.dtype.kind == "S":
        return 2, values.astype("S1")
    kind = {"f8": "f8", "f4": "f4"}.get(values.dtype.str[1:], "i4")
    return WRITTEN[kind], np.ascontiguousarray(values, dtype=f">{kind}")


def attribute_list(attributes: Mapping[str, Array]) -> bytes:
    """Attributes as they are written."""
    content = word(ATTRIBUTE if attributes else 0) + word(len(attributes))
    for name, values in attributes.items():
        code, written = coded(values)
        content += labelled(name) + word(code) + word(written.size) + pad(written.tobytes())
    return content


def labelled(name: str) -> bytes:
    """A name and its length."""
    return word(len(name.encode())) + pad(name.encode())


def word(value: int) -> bytes:
    """A 32-bit integer."""
    return value.to_bytes(4, "big")


def pad(content: bytes) -> bytes:
    """Bytes filled up to a multiple of four."""
    return content.ljust(padded(len(content)), b"\0")


def padded(length: int) -> int:
    """A length as a multiple of four."""
    return -(-length // 4) * 4
