"""compare_hdf5: two HDF5 files, dataset by dataset.

In: the paths of an HDF5 file and its reference. Out: Compared.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ingot.extras import require_extra
from ingot.fields.compare.difference import (
    Compared,
    Finding,
    Limits,
    differing,
    joined,
    names_differ,
)

__all__ = ["compare_hdf5"]


def compare_hdf5(found: Path, expected: Path, limits: Limits) -> Compared:
    """Compare the names of the datasets, their shapes, and every number."""
    sides: list[dict[str, Any]] = []
    for file in (found, expected):
        try:
            sides.append(datasets(file))
        except OSError:
            return joined(1, [Finding(f"'{file.name}'", "is not an HDF5 file")])
    ours, theirs = sides
    names = list(names_differ("dataset", ours, theirs))
    both = [name for name in theirs if name in ours]
    return joined(len(theirs), [*names, *(dataset(n, ours[n], theirs[n], limits) for n in both)])


def datasets(file: Path) -> dict[str, Any]:
    """Every dataset of a file by its path."""
    h5py = require_extra("h5py", "HDF5 files")
    found: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item[()]

    with h5py.File(file, "r") as opened:
        opened.visititems(keep)
    return dict(sorted(found.items()))


def dataset(name: str, found: Any, expected: Any, limits: Limits) -> Finding | None:
    """What is wrong with one dataset."""
    part = f"dataset '{name}'"
    ours, theirs = np.asarray(found), np.asarray(expected)
    if ours.dtype.kind in "iufb" and theirs.dtype.kind in "iufb":
        first, second = (side.astype(np.float64) for side in (ours, theirs))
        return differing(part, first, second, limits, lambda at: f"at {list(at)}")
    if ours.dtype.kind != theirs.dtype.kind or not np.array_equal(ours, theirs):
        return Finding(part, "is not what the reference has")
    return None
