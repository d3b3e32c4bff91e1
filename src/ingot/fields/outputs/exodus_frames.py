"""read_mesh_frames: an Exodus file of a box of equal cells -> Frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingot.errors import IngotError
from ingot.fields.compare import read_exodus
from ingot.fields.outputs.series import Frames, unreadable

__all__ = ["read_mesh_frames"]

FINEST = 1e-6  # of the length of a box: points that are closer along an axis have one coordinate


def read_mesh_frames(file: Path) -> Frames:
    """Variables of elements and of nodes, in whatever order a file has them."""
    exodus = read_exodus(file)
    if not len(exodus.times):
        raise IngotError([unreadable(f"{file} has no frames")])
    lower, upper = exodus.nodes.min(0), exodus.nodes.max(0)
    at_nodes, node_counts = find_places(exodus.nodes, lower, upper)
    at_cells, cell_counts = find_places(exodus.centres, lower, upper)
    is_box = len(exodus.nodes) == np.prod(node_counts) and len(exodus.elements) == np.prod(
        cell_counts
    )
    if not is_box or any(n != m + 1 for n, m in zip(node_counts, cell_counts, strict=True)):
        raise IngotError([unreadable(f"{file} has no box of equal cells, which alone is shown")])

    def load(name: str, frame: int) -> NDArray[Any]:
        is_nodal = name in exodus.nodal
        counts, places = (node_counts, at_nodes) if is_nodal else (cell_counts, at_cells)
        array = np.empty(counts)
        array[places] = (exodus.nodal if is_nodal else exodus.elemental)[name][frame]
        return array.transpose()

    return Frames(
        file, (*exodus.elemental, *exodus.nodal), tuple(exodus.times.tolist()),
        tuple(lower.tolist()), tuple(upper.tolist()), load, frozenset(exodus.nodal), exodus.scalar,
    )  # fmt: skip


def find_places(
    points: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[tuple[NDArray[np.int64], ...], tuple[int, ...]]:
    """Which place of a grid each point has along each axis, and how many places there are."""
    fine = np.maximum(upper - lower, 1e-300) * FINEST
    rounded = np.rint((points - lower) / fine)
    found = [np.unique(axis, return_inverse=True) for axis in rounded.T]
    for values, _ in found:
        gaps = np.diff(values)
        if len(gaps) and gaps.max() - gaps.min() > 4:
            return tuple(inverse for _, inverse in found), (0,) * len(found)
    return tuple(inverse for _, inverse in found), tuple(len(values) for values, _ in found)
