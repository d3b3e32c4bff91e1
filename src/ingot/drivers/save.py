"""A Result -> a file of the kind that its ending says: a table, or the flat dictionary."""

import csv
import io
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ingot.drivers.result import Result
from ingot.errors import Problem, Span, raise_if
from ingot.package.write import put_file
from ingot.types.components import list_component_suffixes

__all__ = ["find_unknown_ending", "save"]


def save(result: Result, path: Path) -> None:
    """Write a result in one step: whoever reads finds the whole of it, or what stood there."""
    raise_if(find_unknown_ending(path))
    put_file(WRITERS[path.suffix.lower()](result), path)


def find_unknown_ending(path: Path, span: Span | None = None) -> Iterator[Problem]:
    """A problem where the ending of a file does not say what to write."""
    if path.suffix.lower() not in WRITERS:
        message = f"'{path}' does not say by its ending what to write"
        yield Problem("unknown-ending", message, span, f"end it in one of: {', '.join(WRITERS)}")


def write_table(result: Result) -> bytes:
    """A row for each step and point; a cell without a value, as before step 1, is empty."""
    columns: dict[str, list[list[float] | None]] = {}
    for side, rows in (("input", result.inputs), ("output", result.outputs)):
        for name, values in rows.items():
            parts = list_components(result, name, values)
            given = side == "input" or name in result.initial
            for suffix, numbers in parts:
                steps: list[list[float] | None] = list(numbers.tolist())
                columns[f"{side}.{name}{suffix}"] = steps if given else [None, *steps[1:]]
    times = result.spread(result.times, 0).reshape(result.steps, -1).tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", "time", "point", *columns])
    for step, point in product(range(result.steps), range(result.points)):
        rows = (column[step] for column in columns.values())
        cells = ("" if row is None else row[point] for row in rows)
        writer.writerow([step, times[step][point], point, *cells])
    return text.getvalue().encode()


def list_components(result: Result, name: str, values: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The suffix of every component of a variable, and its numbers (steps, points)."""
    kind, sites = result.kinds[name], result.shapes.get(name, ())
    inner = (*sites, *kind.base)
    full = result.spread(values, len(inner)).reshape(result.steps, result.points, *inner)
    for site in product(*map(range, sites)):
        where = f"[{' '.join(map(str, site))}]" if site else ""
        for place, suffix in zip(
            product(*map(range, kind.base)), list_component_suffixes(kind), strict=True
        ):
            yield where + suffix, full[(..., *site, *place)]


def write_archive(result: Result) -> bytes:
    """The flat dictionary as torch stores it."""
    content = io.BytesIO()
    torch.save(dict(result.flat), content)
    return content.getvalue()


def write_arrays(result: Result) -> bytes:
    """The flat dictionary as NumPy stores it."""
    content = io.BytesIO()
    found = {key: value.detach().numpy() for key, value in result.flat.items()}
    np.savez(content, **found)  # pyright: ignore[reportArgumentType] names are keywords here
    return content.getvalue()


WRITERS: dict[str, Callable[[Result], bytes]] = {
    ".csv": write_table,
    ".npz": write_arrays,
    ".pt": write_archive,
    ".pth": write_archive,
}
