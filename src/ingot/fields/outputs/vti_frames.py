"""read_images: a .pvd list of VTK images, or one .vti file, as VTIWriter writes them -> Frames."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ingot.errors import IngotError
from ingot.fields.outputs.series import Frames, unreadable
from ingot.fields.outputs.vti import KINDS, TAIL
from ingot.fields.outputs.xdmf import component_labels

__all__ = ["read_images"]

NUMBERS = b"<AppendedData"
CHUNK = 2**16  # bytes read at a time until the numbers begin: what stands before them is short
LETTERS = {name: letter for letter, name in KINDS.items() if letter != "b"}


@dataclass(frozen=True, slots=True)
class ImageArray:
    """Where an array of a .vti file begins, the type of its numbers, its axes, its components."""

    begin: int
    kind: np.dtype[Any]
    shape: tuple[int, ...]
    width: int
    is_nodal: bool


@dataclass(frozen=True, slots=True)
class Image:
    """What a .vti file says of itself: the corners of its box, and its arrays."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    arrays: dict[str, ImageArray]


def read_images(file: Path) -> Frames:
    """The frames of a list, or the only one of an image that no list beside it names."""
    frames = list(list_frames(file)) if file.suffix == ".pvd" else [(file, find_time(file))]
    if not frames:
        raise IngotError([unreadable(f"{file} has no frames")])
    images = lru_cache(maxsize=8)(read_image)
    last = images(frames[-1][0])
    parts = {
        f"{name}{label}": (name, number)
        for name, array in last.arrays.items()
        for number, label in enumerate(component_labels(array.width))
    }

    def load(name: str, frame: int) -> np.ndarray[Any, Any] | None:
        path, (buffer, number) = frames[frame][0], parts[name]
        image = images(path)
        stored = image.arrays.get(buffer)
        if stored is None or stored.width != last.arrays[buffer].width:
            return None
        return load_array(path, image, buffer)[..., number]

    nodal = frozenset(name for name, (buffer, _) in parts.items() if last.arrays[buffer].is_nodal)
    times = tuple(time for _, time in frames)
    return Frames(file, tuple(parts), times, last.lower, last.upper, load, nodal)


def list_frames(file: Path) -> Iterator[tuple[Path, float]]:
    """The images of a list and their times, up to where a list that is being written ends."""
    text = file.read_text()
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        whole = text[: text.rfind("/>\n") + 3] + TAIL
        try:
            root = ElementTree.fromstring(whole)
        except ElementTree.ParseError:
            raise IngotError([unreadable(f"{file} is no list of images: {error}")]) from error
    for each in root.findall("./Collection/DataSet"):
        yield file.parent / each.get("file", ""), float(each.get("timestep", "nan"))


def find_time(image: Path) -> float:
    """The time of an image, by a list beside it; 0 where none names it."""
    for file in sorted(image.parent.glob("*.pvd")):
        with suppress(IngotError):
            for path, time in list_frames(file):
                if path.name == image.name:
                    return time
    return 0.0


def read_image(path: Path) -> Image:
    """What stands in front of the numbers of a .vti file."""
    try:
        with path.open("rb") as stream:
            head = stream.read(CHUNK)
            while NUMBERS not in head and (more := stream.read(CHUNK)):
                head += more
            place = head.index(NUMBERS)
            head += stream.read(CHUNK)
        begin = head.index(b"_", place) + 1
        root = ElementTree.fromstring(head[:place] + b"</VTKFile>")
        return describe(root, begin)
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        message = f"{path} is no image data as VTITensorOutput writes it: {error}"
        raise IngotError([unreadable(message)]) from error


def describe(root: ElementTree.Element, begin: int) -> Image:
    """The box and the arrays of an image whose numbers begin at a byte of the file."""
    image = root.find("ImageData")
    if image is None or root.get("header_type") != "UInt64":
        raise ValueError("it has no ImageData with 64-bit headers")
    extent = list(map(int, image.attrib["WholeExtent"].split()))
    cells = [high - low for low, high in zip(extent[::2], extent[1::2], strict=True)]
    dim = max((axis + 1 for axis, count in enumerate(cells) if count), default=1)
    lower = tuple(map(float, image.attrib["Origin"].split()))[:dim]
    spacing = tuple(map(float, image.attrib["Spacing"].split()))
    upper = tuple(low + spacing[a] * cells[a] for a, low in enumerate(lower))
    arrays: dict[str, ImageArray] = {}
    for place in ("PointData", "CellData"):
        is_nodal = place == "PointData"
        shape = tuple(n + 1 if is_nodal else n for n in cells[:dim][::-1])
        for each in image.findall(f"Piece/{place}/DataArray"):
            words = each.attrib["type"].rstrip("0123456789")
            bits = int(each.attrib["type"][len(words) :])
            kind = np.dtype(f"<{LETTERS[words]}{bits // 8}")
            width = int(each.get("NumberOfComponents", "1"))
            place_in_file = begin + int(each.attrib["offset"])
            arrays[each.attrib["Name"]] = ImageArray(place_in_file, kind, shape, width, is_nodal)
    return Image(lower, upper, arrays)


def load_array(path: Path, image: Image, name: str) -> np.ndarray[Any, Any]:
    """An array with its components last; 8 bytes in front of it say how long it is."""
    try:
        array = image.arrays[name]
        shape = (*array.shape, array.width)
        count = int(np.prod(shape)) * array.kind.itemsize
        with path.open("rb") as stream:
            stream.seek(array.begin)
            content = base64.b64decode(stream.read(-(-(8 + count) // 3) * 4), validate=True)
        return np.frombuffer(content[8 : 8 + count], array.kind).reshape(shape)
    except (OSError, KeyError, ValueError) as error:
        raise IngotError([unreadable(f"{path} has no whole array '{name}'")]) from error
