"""read_frames: what a run wrote -> Frames; here the reader of XDMF files, and the choice of one."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.fields.outputs import xdmf
from ingot.fields.outputs.exodus_frames import read_mesh_frames
from ingot.fields.outputs.series import Frames, unreadable
from ingot.fields.outputs.vti_frames import read_images
from ingot.fields.outputs.xdmf import open_hdf5

__all__ = ["Frames", "read_frames"]

ENDINGS = (".xmf", ".pvd", ".vti", ".e", ".h5")
FRAME_END = "\n\t\t\t</Grid>\n"
"""How the lines of a frame end."""
PAUSES = (0.05, 0.1, 0.2, 0.4, None)
"""Seconds between looks at a file that another process is adding to."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of a frame: where it is stored, and the corner of the box where it begins."""

    corner: tuple[float, ...]
    place: str
    shape: tuple[int, ...]
    kind: str
    """HDF, or the type of numbers in a raw file."""
    points: tuple[int, ...] = ()
    """How many nodes its part of the box has along each axis, where there are several parts."""


def load_parts(file: Path, parts: Sequence[StoredArray]) -> np.ndarray[Any, Any]:
    """A field at a time; the parts of ranks are joined."""
    arrays = [load_array(file, part) for part in parts]
    if len(parts) == 1:
        return arrays[0]
    layered = all(part.shape == part.points for part in parts)
    if layered:
        # each part ends with a layer of nodes of its own, which the next part has as its first
        arrays = [array[(slice(-1),) * array.ndim] for array in arrays]
    whole = join([part.corner for part in parts], arrays)
    return np.pad(whole, [(0, 1)] * whole.ndim, mode="wrap") if layered else whole


def load_array(file: Path, part: StoredArray) -> np.ndarray[Any, Any]:
    """One stored array; a file that is being written is looked at again."""
    name, _, dataset = part.place.partition(":")
    path = file.parent / name
    for pause in PAUSES:
        try:
            if part.kind != "HDF":
                return np.fromfile(path, part.kind).reshape(part.shape)
            with open_hdf5(path, "r") as opened:
                return opened[dataset.strip("/")][()]
        except (OSError, KeyError, ValueError, RuntimeError) as error:
            if pause is None or isinstance(error, FileNotFoundError):
                message = f"{file} refers to {part.place}, which cannot be read there"
                fix = "keep the XDMF file and those it names in one folder"
                raise IngotError([Problem("unreadable-result", message, fix=fix)]) from error
            sleep(pause)
    raise AssertionError


def join(
    corners: Sequence[tuple[float, ...]], arrays: Sequence[np.ndarray[Any, Any]], axis: int = 0
) -> np.ndarray[Any, Any]:
    """One array from parts of a box that begin at these corners."""
    if len(arrays) == 1:
        return arrays[0]
    rows = sorted({corner[axis] for corner in corners})
    joined = []
    for row in rows:
        inside = [at for at, corner in enumerate(corners) if corner[axis] == row]
        joined.append(join([corners[at] for at in inside], [arrays[at] for at in inside], axis + 1))
    return np.concatenate(joined, axis)


def read_frames(result: Path) -> Frames:
    """The frames of a result: a file of fields, the HDF5 file beside it, or a folder with one."""
    file = find_result(result)
    if file.suffix in (".pvd", ".vti"):
        return read_images(file)
    if file.suffix == ".e":
        return read_mesh_frames(file)
    root = read_xdmf(file)
    frames = root.findall("./Domain/Grid/Grid")
    if not frames:
        raise IngotError([unreadable(f"{file} has no frames")])
    geometry = root.find("./Domain/Geometry")
    stored = [dict(parts_of(frame, geometry)) for frame in frames]
    times = [float(required(frame, "Time").get("Value", "nan")) for frame in frames]
    boxes = [box for frame in frames[:1] for box in boxes_of(frame, root)]
    lower = (min(low) for low in zip(*(low for low, _ in boxes), strict=True))
    upper = (max(high) for high in zip(*(high for _, high in boxes), strict=True))

    def load(name: str, frame: int) -> np.ndarray[Any, Any] | None:
        parts = stored[frame].get(name)
        return None if parts is None else load_parts(file, parts)

    return Frames(
        file, tuple(stored[-1]), tuple(times), tuple(lower)[::-1], tuple(upper)[::-1], load,
        frozenset(nodal_of(frames[-1])),
    )  # fmt: skip


def read_xdmf(file: Path) -> ElementTree.Element:
    """What an XDMF file says; one whose last lines are missing counts up to its last frame."""
    try:
        text = file.read_text()
        try:
            return ElementTree.fromstring(text)
        except ElementTree.ParseError:
            end = text.rfind(FRAME_END)
            return ElementTree.fromstring(text[: max(0, end)] + FRAME_END + xdmf.TAIL)
    except (ElementTree.ParseError, OSError, UnicodeDecodeError) as error:
        raise IngotError([unreadable(f"{file} is no XDMF file: {error}")]) from error


def find_result(result: Path) -> Path:
    """The file of fields that a path stands for."""
    if os.path.isdir(result):
        for ending in (".xmf", ".pvd", ".e"):
            files = sorted(result.glob(f"*{ending}"))
            if len(files) == 1:
                return files[0]
            if files:
                message = f"{result} holds the fields of {len(files)} outputs"
                fix = f"name one: {', '.join(path.name for path in files)}"
                raise IngotError([Problem("unreadable-result", message, fix=fix)])
        message = f"{result} holds no fields"
        fix = "add an XDMFTensorOutput to [TensorOutputs] of the input file, and run it again"
        raise IngotError([Problem("unreadable-result", message, fix=fix)])
    if result.suffix == ".h5":
        stem = result.stem.partition(".rank")[0]
        result = result.with_name(f"{stem}.xmf")
    if not os.path.isfile(result):
        beside = result.parent.iterdir() if os.path.isdir(result.parent) else ()
        near = did_you_mean(result.name, [p.name for p in beside if p.suffix in ENDINGS])
        message = f"{result} is not there"
        fix = near or f"give a file of fields: {', '.join(ENDINGS)}"
        raise IngotError([Problem("file-not-found", message, fix=fix)])
    if result.suffix == ".i":
        message = f"{result} is an input file, not what a run of it has written"
        fix = f"run it first: ingot run {result}, then ingot view ."
        raise IngotError([Problem("unreadable-result", message, fix=fix)])
    return result


def nodal_of(frame: ElementTree.Element) -> Iterator[str]:
    """The fields whose values belong to nodes."""
    for attribute in (frame.findall("Grid") or [frame])[0].findall("Attribute"):
        if attribute.get("Center") == "Node":
            yield attribute.get("Name", "")


def required(element: ElementTree.Element, name: str) -> ElementTree.Element:
    """An element that must be there."""
    inner = element.find(name)
    if inner is None:
        raise IngotError([unreadable(f"a {element.tag} of the XDMF file has no {name}")])
    return inner


def numbers(text: str | None) -> tuple[float, ...]:
    return tuple(map(float, (text or "").split()))


def corner_of(geometry: ElementTree.Element | None) -> tuple[float, ...]:
    """Where a box begins, the last entry being x."""
    items = [] if geometry is None else geometry.findall("DataItem")
    return numbers(items[0].text) if items else ()


def parts_of(
    frame: ElementTree.Element, geometry: ElementTree.Element | None
) -> Iterator[tuple[str, tuple[StoredArray, ...]]]:
    """The name of each field of a frame, and where its parts are."""
    grids = frame.findall("Grid") or [frame]
    for attribute in grids[0].findall("Attribute"):
        name = attribute.get("Name", "")
        parts: list[StoredArray] = []
        for each in grids:
            shared = each.find("Geometry")
            corner = corner_of(geometry if shared is None else shared)
            same = (other for other in each.findall("Attribute") if other.get("Name") == name)
            item = required(next(same), "DataItem")
            shape = sizes_of(item)
            own = each.find("Topology")
            points = () if own is None else sizes_of(own)
            place = (item.text or "").strip()
            parts.append(StoredArray(corner, place, shape, kind_of(item), points))
        yield name, tuple(parts)


def sizes_of(element: ElementTree.Element) -> tuple[int, ...]:
    """The sizes that an element names."""
    return tuple(map(int, element.get("Dimensions", "").split()))


def kind_of(item: ElementTree.Element) -> str:
    """HDF, or the type of the numbers of a raw file."""
    if item.get("Format") == "HDF":
        return "HDF"
    letter = "i" if item.get("DataType") == "Int" else "f"
    return f"{'>' if item.get('Endian') == 'Big' else '<'}{letter}{item.get('Precision', '8')}"


def boxes_of(
    frame: ElementTree.Element, root: ElementTree.Element
) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """The corners of each part of the box, the last entry being x."""
    for grid in frame.findall("Grid") or [required(root, "Domain")]:
        counts = sizes_of(required(grid, "Topology"))
        lower, steps = (
            numbers(item.text) for item in required(grid, "Geometry").findall("DataItem")
        )
        cells = [count - 1 for count in counts]
        rows = zip(lower, steps, cells, strict=True)
        yield lower, tuple(low + step * count for low, step, count in rows)
