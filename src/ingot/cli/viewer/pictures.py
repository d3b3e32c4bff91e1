"""pictures: Frames -> plane fields over time, thinned to what a page can hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.errors import IngotError, Problem, did_you_mean

if TYPE_CHECKING:
    from ingot.fields.outputs.frames import Frames

__all__ = ["Pictures", "Slice", "pictures"]


@dataclass(frozen=True, slots=True)
class Slice:
    """A plane through a box: its axis, and which layer along it, the middle one unless given."""

    axis: str = "z"
    layer: int | None = None


@dataclass(frozen=True, slots=True)
class Pictures:
    """Plane fields: for each name an array over frames, rows (upwards) and columns."""

    title: str
    note: str
    times: tuple[float, ...]
    axes: tuple[str, str]
    box: tuple[float, float, float, float]
    fields: dict[str, np.ndarray[Any, Any]]

    def range_of(self, name: str) -> tuple[float, float]:
        """The smallest and the largest number of a field over all times."""
        values = self.fields[name]
        finite = values[np.isfinite(values)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def pictures(
    frames: Frames, names: Sequence[str], cut: Slice, most_frames: int, most_points: int
) -> Pictures:
    """The fields asked for, all unless some are, at most so many frames, and points an axis."""
    unknown = [name for name in names if name not in frames.names]
    if unknown:
        fix = f"choose among: {', '.join(frames.names)}"
        raise IngotError(
            Problem("unknown-name", f"{frames.file} has no field '{name}'",
                    fix=did_you_mean(name, frames.names) or fix)
            for name in unknown
        )  # fmt: skip
    count = len(frames.times)
    chosen = spread(count, most_frames)
    found: dict[str, np.ndarray[Any, Any]] = {}
    notes = [] if len(chosen) == count else [f"{len(chosen)} of {count} frames"]
    whole = plane(frames.array((names or frames.names)[0], 0), cut)
    step = max(1, math.ceil(max(whole.shape) / most_points))
    for name in names or frames.names:
        planes = [plane(frames.array(name, frame), cut)[::step, ::step] for frame in chosen]
        found[name] = np.stack(planes).astype(np.float64)
    if step > 1:
        notes.append(f"one of {step} points along each axis")
    dim = len(frames.lower)
    shown = ("xyz".replace(cut.axis, "") if dim == 3 else "xy")[:2]
    if dim == 3:
        notes.append(f"{cut.axis} = {height(frames, cut):.4g}")
    ends = [(*frames.lower, 0.0)["xyz".index(axis)] for axis in shown]
    strip = (frames.upper[0] - frames.lower[0]) / 8
    far = [(*frames.upper, strip)["xyz".index(axis)] for axis in shown]
    box = (ends[0], far[0], ends[1], far[1])
    times = tuple(frames.times[frame] for frame in chosen)
    title = frames.file.stem
    return Pictures(title, ", ".join(notes), times, (shown[0], shown[1]), box, found)


def spread(count: int, most: int) -> list[int]:
    """At most so many of all frames, evenly spread, with the first and the last."""
    if most < 1:
        raise IngotError([Problem("wrong-value", f"{most} frames are none", fix="give 1 or more")])
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [round(k * (count - 1) / (most - 1)) for k in range(most)]


def plane(array: np.ndarray[Any, Any], cut: Slice) -> np.ndarray[Any, Any]:
    """Rows and columns of an array: itself, a slice, or a single row."""
    if array.ndim == 1:
        return array[None, :]
    if array.ndim == 2:
        return array
    axis = "zyx".index(cut.axis)
    return array.take(layer(array.shape[axis], cut), axis)


def layer(count: int, cut: Slice) -> int:
    """Which layer to cut out."""
    if cut.layer is None:
        return count // 2
    if not 0 <= cut.layer < count:
        message = f"there is no layer {cut.layer} along {cut.axis}"
        fix = f"choose 0 to {count - 1}"
        raise IngotError([Problem("wrong-value", message, fix=fix)])
    return cut.layer


def height(frames: Frames, cut: Slice) -> float:
    """Where a slice lies along its axis."""
    axis = "xyz".index(cut.axis)
    count = frames.array(frames.names[0], 0).shape[2 - axis]
    low, high = frames.lower[axis], frames.upper[axis]
    return low + (layer(count, cut) + 0.5) * (high - low) / count
