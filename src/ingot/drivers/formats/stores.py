"""`.h5` and `.zarr`: an array for each variable, in groups, with its kind, components and unit."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ingot.drivers.formats.content import (
    SIDES,
    Content,
    Header,
    assemble,
    take_apart,
    unquote,
)
from ingot.drivers.result import Result
from ingot.drivers.series import Array, name_batch_axes
from ingot.extras import require_extra
from ingot.types import KINDS
from ingot.types.components import list_component_names

__all__ = ["is_hdf5_result", "is_zarr_result", "read_hdf5", "read_zarr", "write_hdf5", "write_zarr"]

HEADER = "ingot"
CHUNK = 2**26  # bytes: few files, and each well below what a compressor takes at once


def write_hdf5(result: Result, file: Path) -> None:
    """A dataset for each array, dimensions labelled; the header is a dataset of text."""
    h5py = require_extra("h5py", ".h5 files")
    content = take_apart(result)
    # the file is ours alone until it is put in its place, and locked already
    with h5py.File(file, "w", track_order=True, locking=False) as store:
        store[HEADER] = content.header.to_json()
        for key, array in content.arrays.items():
            dataset = store.create_dataset(key, data=array, track_order=True)
            for axis, label in enumerate(label_axes(content.header, key, array)):
                dataset.dims[axis].label = label
            dataset.attrs.update(describe(content.header, key))


def read_hdf5(file: Path) -> Result:
    """A result of an HDF5 file."""
    h5py = require_extra("h5py", ".h5 files")
    with h5py.File(file, "r") as store:
        if HEADER not in store:
            raise ValueError("it is an HDF5 file, but of no result")
        arrays: dict[str, Array] = {}

        def keep(key: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and key != HEADER:
                arrays[key] = item[()]

        store.visititems(keep)
        return assemble(Content(Header.from_json(store[HEADER][()]), arrays))


def is_hdf5_result(file: Path) -> bool:
    """Whether a file is one that `write_hdf5` wrote; else it may hold fields."""
    h5py = require_extra("h5py", ".h5 files")
    if not file.is_file() or not h5py.is_hdf5(file):
        return False
    with h5py.File(file, "r") as store:
        return HEADER in store


def write_zarr(result: Result, folder: Path) -> None:
    """An array for each array, dimensions named; the header is an attribute of the group."""
    zarr = require_extra("zarr", ".zarr folders")
    content = take_apart(result)
    root = zarr.create_group(folder, overwrite=True, attributes={HEADER: content.header.to_json()})
    for key, array in content.arrays.items():
        root.create_array(
            key, data=np.ascontiguousarray(array).reshape(array.shape), chunks=chunk(array),
            dimension_names=list(label_axes(content.header, key, array)),
            attributes=describe(content.header, key),
        )  # fmt: skip


def read_zarr(folder: Path) -> Result:
    """A result of a Zarr folder."""
    zarr = require_extra("zarr", ".zarr folders")
    root = zarr.open_group(folder, mode="r")
    if HEADER not in root.attrs:
        raise ValueError("it is a Zarr group, but of no result")
    header = Header.from_json(str(root.attrs[HEADER]))
    arrays = {
        path: np.asarray(item[...])
        for path, item in root.members(max_depth=None)
        if isinstance(item, zarr.Array)
    }
    return assemble(Content(header, arrays))


def is_zarr_result(folder: Path) -> bool:
    """Whether a folder is one that `write_zarr` wrote."""
    file = folder / "zarr.json"
    return file.is_file() and f'"{HEADER}"' in file.read_text(errors="replace")


def chunk(array: Array) -> tuple[int, ...]:
    """Whole rows of the first axis, as many as go into one chunk."""
    if not array.ndim:
        return ()
    row = math.prod(array.shape[1:]) * array.itemsize
    rows = min(max(array.shape[0], 1), max(1, CHUNK // max(row, 1)))
    return (rows, *(max(size, 1) for size in array.shape[1:]))


def label_axes(header: Header, key: str, array: Array) -> Iterator[str]:
    """What the axes of an array are called."""
    side, _, name = key.partition("/")
    name = unquote(name)
    if side in SIDES:
        kind = KINDS[header.kinds[name]]
        inner = len(header.shapes.get(name, ()))
        axes = [f"{name}.{i}" for i in range(inner)]
        tail = [*(header.axes.get(name) or axes), *_label_base(kind.__name__, len(kind.base))]
    else:
        tail = []
    head = [] if side == "initial" else ["step"]
    batch = name_batch_axes(len(header.batch))
    if side == "statuses":
        batch = ["point"]
    own = array.ndim - len(head) - len(tail)
    yield from (*head, *batch[len(batch) - own :], *tail)


def _label_base(kind: str, rank: int) -> list[str]:
    return [kind] if rank == 1 else [f"{kind}.{i}" for i in range(rank)]


def describe(header: Header, key: str) -> dict[str, Any]:
    """The kind of a variable, the names of its components as they are stored, and its unit."""
    side, _, name = key.partition("/")
    if side not in SIDES:
        return {}
    kind = header.kinds[unquote(name)]
    told: dict[str, Any] = {"kind": kind}
    names = list_component_names(KINDS[kind])
    if names != ("",):
        told["components"] = " ".join(names)
        told["order"] = "Mandel" if kind in ("SR2", "SSR4") else "row-major"
    unit = header.units.get(unquote(name))
    return told | ({"units": unit} if unit else {})
