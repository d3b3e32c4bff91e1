"""pictures: Frames -> fields over time, thinned to what a page can hold, and their vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.errors import IngotError, Problem, did_you_mean

if TYPE_CHECKING:
    from ingot.cli.viewer.tables import Table
    from ingot.fields.outputs.frames import Frames

__all__ = ["Limits", "Pictures", "Shown", "Slice", "VectorField", "pictures", "range_of"]

Array = np.ndarray[Any, Any]
FEW_FRAMES = 10  # points are thinned before there are fewer frames than these
BYTES = 4  # of a number on a page


@dataclass(frozen=True, slots=True)
class Slice:
    """A plane through a box: its axis, and which layer along it, the middle one unless given."""

    axis: str = "z"
    layer: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The most frames, points along an axis, and millions of bytes of numbers to show."""

    frames: int = 100
    points: int = 512
    megabytes: float = 64.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A field over frames and axes, x last; where its first point lies, and the next, along x..."""

    values: Array
    first: tuple[float, ...]
    steps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class VectorField:
    """Fields that are the components of a vector; not `sure` where only their letters say so."""

    name: str
    parts: tuple[str, ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class Pictures:
    """Fields over time on the same axes, the vectors in them, and tables of numbers beside them."""

    title: str
    notes: tuple[str, ...]
    times: tuple[float, ...]
    axes: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    fields: dict[str, Shown]
    vectors: tuple[VectorField, ...] = ()
    tables: tuple[Table, ...] = ()


def range_of(values: Array) -> tuple[float, float] | None:
    """The smallest and the largest number; none where none is finite."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else None


def pictures(
    frames: Frames,
    names: Sequence[str],
    cut: Slice | None,
    limits: Limits,
    tables: tuple[Table, ...] = (),
) -> Pictures:
    """The fields or vectors asked for, all unless some are; of a box one plane if it is `cut`."""
    chosen_names = choose_names(frames, names)
    dim, count = len(frames.lower), len(frames.times)
    if cut is not None and dim < 3:
        message = f"the fields have {dim} axes and are shown whole"
        fix = "leave out --slice: only of a box of three axes planes are chosen"
        raise IngotError([Problem("wrong-value", message, fix=fix)])
    shapes = {name: frames.shape(name) for name in chosen_names}
    shown_shapes = [plane_shape(shape, cut) for shape in shapes.values()]
    most, step = fit(shown_shapes, count, limits)
    chosen = spread(count, most)
    kept = [axis for axis in range(dim) if cut is None or "xyz"[axis] != cut.axis]
    fields: dict[str, Shown] = {}
    notes: list[str] = [] if len(chosen) == count else [f"{len(chosen)} of {count} frames"]
    if step > 1:
        notes.append(f"one of {step} points along each axis")
    if cut is not None:
        nodal = chosen_names[0] in frames.nodal
        notes.append(
            f"{cut.axis} = {height(frames, cut, shapes[chosen_names[0]], nodal=nodal):.4g}"
        )
    is_complex = False
    for name in chosen_names:
        starts = tuple(begin(n, step) for n in plane_shape(shapes[name], cut))
        thin = tuple(slice(start, None, step) for start in starts)
        planes: list[Array] = []
        for frame in chosen:
            array = take_plane(frames.array(name, frame), cut)[thin]
            is_complex |= np.iscomplexobj(array)
            planes.append(np.abs(array) if np.iscomplexobj(array) else array.astype(np.float64))
        sizes = [spacing(frames, axis, shapes[name], name in frames.nodal) for axis in kept]
        offset = 0.0 if name in frames.nodal else 0.5
        first = [
            frames.lower[axis] + (start + offset) * size
            for axis, start, size in zip(kept, starts[::-1], sizes, strict=True)
        ]
        steps = tuple(size * step for size in sizes)
        fields[name] = Shown(np.stack(planes), tuple(first), steps)
    notes += ["complex numbers by their magnitude"] if is_complex else []
    lower, upper = ([ends[axis] for axis in kept] for ends in (frames.lower, frames.upper))
    return Pictures(
        frames.file.stem, tuple(notes), tuple(frames.times[frame] for frame in chosen),
        tuple("xyz"[axis] for axis in kept), tuple(lower), tuple(upper), fields,
        tuple(find_vectors({name: each.values.shape for name, each in fields.items()})), tables,
    )  # fmt: skip


def choose_names(frames: Frames, names: Sequence[str]) -> list[str]:
    """The fields that words stand for: each its own, or the components of a vector."""
    vectors = {each.name: each.parts for each in find_vectors(dict.fromkeys(frames.names))}
    known = (*frames.names, *vectors)
    unknown = [name for name in names if name not in known]
    if unknown:
        fix = f"choose among: {', '.join(known)}"
        raise IngotError(
            Problem("unknown-name", f"{frames.file} has no field '{name}'",
                    fix=did_you_mean(name, known) or fix)
            for name in unknown
        )  # fmt: skip
    if not frames.names:
        fix = "give another, or map buffers to variables: map_to_aux_variable"
        raise IngotError([Problem("unreadable-result", f"{frames.file} has no fields", fix=fix)])
    parts = [(name,) if name in frames.names else vectors[name] for name in names]
    return list(dict.fromkeys(part for each in parts for part in each)) or list(frames.names)


def find_vectors(shapes: dict[str, Any]) -> Iterator[VectorField]:
    """Fields of one shape that are called alike but for x, y, z, or u, v, w, at the end."""
    for letters in ("xyz", "uvw"):
        stems: dict[str, set[str]] = {}
        for name in shapes:
            if found := re.fullmatch(rf"(.*?)([{letters}])", name):
                stems.setdefault(found[1], set()).add(found[2])
        for stem, ends in stems.items():
            parts = tuple(f"{stem}{letter}" for letter in letters if letter in ends)
            whole = set(letters[: len(parts)]) == ends and len(parts) > 1
            if not whole or len({shapes[part] for part in parts}) > 1:
                continue
            name = stem.removesuffix("_") if letters == "xyz" else f"{stem}{''.join(sorted(ends))}"
            if name:
                yield VectorField(name, parts, letters == "xyz" and stem.endswith("_"))


def fit(shapes: Sequence[tuple[int, ...]], count: int, limits: Limits) -> tuple[int, int]:
    """How many frames, and one of how many points along each axis, keep within limits."""
    if limits.frames < 1 or limits.points < 1 or not limits.megabytes > 0:
        what = f"{limits.frames} frames, {limits.points} points and {limits.megabytes:g} megabytes"
        message = f"{what} show nothing"
        fix = "give 1 or more of each"
        raise IngotError([Problem("wrong-value", message, fix=fix)])

    def size(step: int) -> int:
        return sum(math.prod(-(-n // step) for n in shape) for shape in shapes) * BYTES

    longest = max(n for shape in shapes for n in shape)
    step, room = -(-longest // limits.points), limits.megabytes * 1e6
    frames = min(count, limits.frames)
    while step < longest and size(step) * min(frames, FEW_FRAMES) > room:
        step += 1
    return max(1, min(frames, int(room // size(step)))), step


def spread(count: int, most: int) -> list[int]:
    """At most so many of all frames, evenly spread, with the first and the last."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [round(k * (count - 1) / (most - 1)) for k in range(most)]


def begin(count: int, step: int) -> int:
    """The first of every so many points that is kept: the middle one of the first few."""
    return min((step - 1) // 2, (count - 1) // 2)


def spacing(frames: Frames, axis: int, shape: tuple[int, ...], is_nodal: bool) -> float:
    """How far apart the points of a field are along an axis."""
    count = shape[len(shape) - 1 - axis] - is_nodal
    return (frames.upper[axis] - frames.lower[axis]) / max(count, 1)


def plane_shape(shape: tuple[int, ...], cut: Slice | None) -> tuple[int, ...]:
    """The shape of what is shown of an array."""
    if cut is None:
        return shape
    axis = "zyx".index(cut.axis)
    return (*shape[:axis], *shape[axis + 1 :])


def take_plane(array: Array, cut: Slice | None) -> Array:
    """An array, or a plane of it."""
    if cut is None:
        return array
    axis = "zyx".index(cut.axis)
    return array.take(find_layer(array.shape[axis], cut), axis)


def find_layer(count: int, cut: Slice) -> int:
    """Which layer to cut out."""
    if cut.layer is None:
        return count // 2
    if not 0 <= cut.layer < count:
        message = f"there is no layer {cut.layer} along {cut.axis}"
        fix = f"choose 0 to {count - 1}"
        raise IngotError([Problem("wrong-value", message, fix=fix)])
    return cut.layer


def height(frames: Frames, cut: Slice, shape: tuple[int, ...], *, nodal: bool) -> float:
    """Where a slice lies along its axis."""
    axis = "xyz".index(cut.axis)
    layer = find_layer(shape[2 - axis], cut)
    return frames.lower[axis] + (layer + (0.0 if nodal else 0.5)) * spacing(
        frames, axis, shape, nodal
    )
