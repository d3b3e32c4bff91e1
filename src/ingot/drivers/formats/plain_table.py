"""read_table: a `.csv` of a result -> what its columns tell of it.

A table holds no precision, no batch of several axes and no initial values of inputs: numbers become
double, points one axis, and of kinds with the same components the usual one is taken.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ingot.drivers.formats.content import Content, Header, SolveHeader, assemble, quote
from ingot.drivers.formats.table import INDEX, collect, list_columns
from ingot.drivers.result import Result
from ingot.drivers.series import Array
from ingot.execute.status import STATUS_ROWS
from ingot.types import R2, SR2, SSR4, WR2, MillerIndex, Quaternion, Scalar, Value, Vec
from ingot.types.components import list_component_suffixes

__all__ = ["read_table"]

TENSORS: tuple[type[Value], ...] = (Vec, MillerIndex, SR2, WR2, R2, Quaternion, SSR4)
DTYPES = {"reason": "i1", "iterations": "i4", "residual": "f8", "pivoted": "i4", "accepted": "i1"}
"""Those of what a status tells."""
SITE = re.compile(r"(.*)\[([0-9 ]+)\]")


def read_table(file: Path) -> Result:
    """A result of a table."""
    with file.open(newline="", encoding="utf-8") as stream:
        names, *rows = csv.reader(stream)
    if names[:3] != list(INDEX) or not rows:
        raise ValueError(f"its columns do not begin with {', '.join(INDEX)}")
    cells = {name: column for name, *column in zip(names, *rows, strict=True)}
    points = int(cells["point"][-1] or -1) + 1
    steps = len(rows) // max(points, 1)
    header = guess_header(names, cells, steps, points)
    count = steps * points
    numbers = {c.name: _parse(c.name, cells[c.name][:count]) for c in list_columns(header)}
    arrays = collect(header, numbers)
    times = _parse("time", cells["time"]).reshape(steps, -1)
    arrays["times"] = times[:, 0] if (times == times[:, :1]).all() else times
    for name in header.initial:
        arrays[f"initial/{quote(name)}"] = arrays[f"outputs/{quote(name)}"][0]
    return assemble(Content(header, arrays))


def _parse(name: str, cells: Iterable[str]) -> Array:
    solve, _, row = name.rpartition(".")
    dtype = DTYPES.get(row, "f8") if solve.startswith("status.") else "f8"
    return np.array([float(cell or 0) for cell in cells]).astype(dtype)


def guess_header(
    names: list[str], cells: Mapping[str, list[str]], steps: int, points: int
) -> Header:
    """The variables that columns are of, with their kinds and extents."""
    kinds: dict[str, str] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    sides: dict[str, dict[str, bool]] = {"input": {}, "output": {}}
    for side, found in sides.items():
        columns = [n.removeprefix(f"{side}.") for n in names if n.startswith(f"{side}.")]
        for name, (kind, shape) in guess_variables(columns).items():
            kinds[name] = kind.__name__
            shapes |= {name: shape} if shape else {}
            first = next(n for n in names if n.startswith(f"{side}.{name}"))
            found[name] = cells[first][0] != ""
    solves = dict.fromkeys(
        n.removeprefix("status.").rpartition(".")[0] for n in names if n.startswith("status.")
    )
    rows = [(s, cells[f"status.{s}.{STATUS_ROWS[0]}"]) for s in solves]
    begins = {
        s: next((i for i, cell in enumerate(c) if cell), points) // points if points else 1
        for s, c in rows
    }
    return Header(
        steps=steps, batch=(points,), read=tuple(sides["input"]), seconds=0.0, kinds=kinds,
        shapes=shapes, axes={}, units={}, inputs=tuple(sides["input"]),
        initial=tuple(name for name, given in sides["output"].items() if given),
        outputs=tuple(sides["output"]),
        solves=tuple(SolveHeader(name, begin) for name, begin in begins.items()),
    )  # fmt: skip


def guess_variables(
    columns: list[str],
) -> dict[str, tuple[type[Value], tuple[int, ...]]]:
    """Of columns in their order, as `a[0]_xx`: the variables, their kinds and extents."""
    found: dict[str, tuple[type[Value], tuple[int, ...]]] = {}
    at = 0
    while at < len(columns):
        kind, name, shape, count = _guess_next(columns[at:])
        found[name] = (kind, shape)
        at += count
    return found


def _guess_next(columns: list[str]) -> tuple[type[Value], str, tuple[int, ...], int]:
    for kind in (*TENSORS, Scalar):
        suffixes = list_component_suffixes(kind)
        first = columns[0].removesuffix(suffixes[0])
        if columns[: len(suffixes)] != [first + suffix for suffix in suffixes]:
            continue
        site = SITE.fullmatch(first)
        if site is None:
            return kind, first, (), len(suffixes)
        name, last = site[1], site[2]
        for column in columns[:: len(suffixes)]:
            more = SITE.fullmatch(column.removesuffix(suffixes[0]))
            if more is None or more[1] != name:
                break
            last = more[2]
        shape = tuple(int(i) + 1 for i in last.split())
        return kind, name, shape, int(np.prod(shape)) * len(suffixes)
    raise AssertionError("a column alone is a Scalar")
