"""read_frames: the XDMF file of a run -> Frames, its fields over time, each read when asked for.

Arrays are indexed as XDMF has it, the last axis being x.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.fields.outputs.xdmf import library

__all__ = ["Frames", "read_frames"]


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of a frame: where it is stored, and the corner of the box where it begins."""

    corner: tuple[float, ...]
    place: str
    shape: tuple[int, ...]
    kind: str
    """HDF, or the type of numbers in a raw file."""


@dataclass(frozen=True, slots=True)
class Frames:
    """The fields of a run: names, times, the box along x, y, z, and where arrays are stored."""

    file: Path
    names: tuple[str, ...]
    times: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    stored: tuple[dict[str, tuple[StoredArray, ...]], ...]

    def array(self, name: str, frame: int) -> np.ndarray[Any, Any]:
        """A field at a time; the parts of ranks are joined."""
        parts = sorted(self.stored[frame][name], key=lambda part: part.corner)
        arrays = [self.loaded(part) for part in parts]
        if len(arrays) == 1:
            return arrays[0]
        corners = zip(parts[0].corner, parts[-1].corner, strict=True)
        axis = next(k for k, (low, high) in enumerate(corners) if low != high)
        return np.concatenate(arrays, axis)

    def loaded(self, part: StoredArray) -> np.ndarray[Any, Any]:
        """One stored array."""
        name, _, dataset = part.place.partition(":")
        path = self.file.parent / name
        try:
            if part.kind != "HDF":
                return np.fromfile(path, part.kind).reshape(part.shape)
            with library().File(path, "r") as file:
                return file[dataset.strip("/")][()]
        except (OSError, KeyError, ValueError) as error:
            message = f"{self.file} refers to {part.place}, which cannot be read there"
            fix = "keep the XDMF file and those it names in one folder"
            raise IngotError([Problem("unreadable-result", message, fix=fix)]) from error


def read_frames(result: Path) -> Frames:
    """The frames of a result: an XDMF file, the HDF5 file beside it, or a folder with one."""
    file = found(result)
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, OSError) as error:
        message = f"{file} is no XDMF file: {error}"
        raise IngotError([unreadable(message)]) from error
    frames = root.findall("./Domain/Grid/Grid")
    if not frames:
        raise IngotError([unreadable(f"{file} has no frames")])
    geometry = root.find("./Domain/Geometry")
    stored = [dict(parts_of(frame, geometry)) for frame in frames]
    times = [float(required(frame, "Time").get("Value", "nan")) for frame in frames]
    boxes = [box for frame in frames[:1] for box in boxes_of(frame, root)]
    lower = (min(low) for low in zip(*(low for low, _ in boxes), strict=True))
    upper = (max(high) for high in zip(*(high for _, high in boxes), strict=True))
    names = tuple(stored[0])
    return Frames(
        file, names, tuple(times), tuple(lower)[::-1], tuple(upper)[::-1], tuple(stored)
    )  # fmt: skip


def found(result: Path) -> Path:
    """The XDMF file that a path stands for."""
    if os.path.isdir(result):
        files = sorted(result.glob("*.xmf"))
        if len(files) == 1:
            return files[0]
        if files:
            message = f"{result} holds the fields of {len(files)} outputs"
            fix = f"name one: {', '.join(path.name for path in files)}"
        else:
            message = f"{result} holds no fields"
            fix = "add an XDMFTensorOutput to [TensorOutputs] of the input file, and run it again"
        raise IngotError([Problem("unreadable-result", message, fix=fix)])
    if result.suffix == ".h5":
        stem = result.stem.partition(".rank")[0]
        result = result.with_name(f"{stem}.xmf")
    if not os.path.isfile(result):
        beside = result.parent.glob("*.xmf") if os.path.isdir(result.parent) else ()
        near = did_you_mean(result.name, [path.name for path in beside])
        message = f"{result} is not there"
        raise IngotError([Problem("file-not-found", message, fix=near or "give an .xmf file")])
    return result


def unreadable(message: str) -> Problem:
    fix = "give the .xmf file that a run has written, or its folder"
    return Problem("unreadable-result", message, fix=fix)


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
            shape = tuple(map(int, item.get("Dimensions", "").split()))
            parts.append(StoredArray(corner, (item.text or "").strip(), shape, kind_of(item)))
        yield name, tuple(parts)


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
        counts = required(grid, "Topology").get("Dimensions", "").split()
        lower, steps = (
            numbers(item.text) for item in required(grid, "Geometry").findall("DataItem")
        )
        cells = [int(count) - 1 for count in counts]
        rows = zip(lower, steps, cells, strict=True)
        yield lower, tuple(low + step * count for low, step, count in rows)
