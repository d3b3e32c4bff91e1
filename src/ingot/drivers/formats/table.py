"""`.csv` and `.parquet`: a row for each step and point, a column for each component as stored."""

import base64
import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ingot.drivers.formats.archives import load_arrays, save_arrays
from ingot.drivers.formats.content import (
    Content,
    Header,
    assemble,
    quote,
    take_apart,
)
from ingot.drivers.result import Result
from ingot.drivers.series import Array
from ingot.execute.status import STATUS_ROWS
from ingot.extras import require_extra
from ingot.types import KINDS
from ingot.types.components import list_component_suffixes

__all__ = ["INDEX", "Column", "collect", "list_columns", "read_parquet", "write_parquet",
           "write_table"]  # fmt: skip

INDEX = ("step", "time", "point")
HEADER = b"ingot"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the array and the place in it that its numbers are of, at each step and point.

    inner: the shape of that array at one step and point; begin: the first step that has a value.
    """

    name: str
    key: str
    inner: tuple[int, ...]
    place: tuple[int, ...]
    begin: int


def list_columns(header: Header) -> Iterator[Column]:
    """The columns after the index, those of one array together; no two have one name."""
    taken: set[str] = set()
    for column in _list_columns(header):
        name, count = column.name, 2
        while name in taken:  # a Scalar `a_xx` beside an SR2 `a`
            name, count = f"{column.name}#{count}", count + 1
        taken.add(name)
        yield replace(column, name=name)


def _list_columns(header: Header) -> Iterator[Column]:
    for side in ("inputs", "outputs"):
        for name in getattr(header, side):
            begin = int(side == "outputs" and name not in header.initial)
            key, word = f"{side}/{quote(name)}", f"{side.removesuffix('s')}.{name}"
            suffixes = list_component_suffixes(KINDS[header.kinds[name]])
            places = np.ndindex(header.inner(name))
            for site in np.ndindex(header.shapes.get(name, ())):
                where = f"[{' '.join(map(str, site))}]" if site else ""
                for suffix in suffixes:
                    yield Column(
                        word + where + suffix, key, header.inner(name), next(places), begin
                    )
    for solve in header.solves:
        for row in STATUS_ROWS:
            key = f"statuses/{quote(solve.name)}/{row}"
            yield Column(f"status.{solve.name}.{row}", key, (), (), solve.begin)


def fill_columns(content: Content) -> Iterator[tuple[Column, Array]]:
    """Every column with its numbers (rows,); those before its first step say nothing."""
    header = content.header
    for key, columns in groupby(list_columns(header), lambda column: column.key):
        some = list(columns)
        full = spread(header, content.arrays[key], some[0].inner)
        if len(full) < header.steps:  # a status has no rows for steps that are not solved
            full = np.concatenate([np.zeros_like(full[:1].repeat(some[0].begin, 0)), full])
        rows = full.reshape(header.steps * header.points, *some[0].inner)
        yield from ((column, rows[(..., *column.place)]) for column in some)


def collect(header: Header, numbers: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a table, all on the whole batch."""
    found: dict[str, Array] = {}
    for key, columns in groupby(list_columns(header), lambda column: column.key):
        some = list(columns)
        first = some[0]
        whole = np.empty((header.steps * header.points, *first.inner), numbers[first.name].dtype)
        for column in some:
            whole[(..., *column.place)] = numbers[column.name]
        if key.startswith("statuses/"):
            found[key] = whole.reshape(header.steps, header.points)[first.begin :]
        else:
            found[key] = whole.reshape(header.steps, *header.batch, *first.inner)
    return found


def find_held(content: Content) -> Iterator[str]:
    """The arrays that `collect` gives back bit for bit: on all of the batch, zero where empty."""
    header = content.header
    for column in list_columns(header):
        array, begin = content.arrays[column.key], column.begin
        if column.key.startswith("statuses/"):
            whole = array.shape == (header.steps - begin, header.points)
        else:
            empty = array[:begin]
            whole = array.shape == (header.steps, *header.batch, *column.inner)
            whole = whole and not (np.signbit(empty) | (empty != 0)).any()
        if whole:
            yield column.key


def spread(header: Header, values: Array, inner: tuple[int, ...]) -> Array:
    """Values (steps, ...) on all of the batch, (steps, points, *inner)."""
    batch = values.shape[1 : values.ndim - len(inner)]
    if batch != (header.points,):
        ones = (1,) * (len(header.batch) - len(batch))
        values = values.reshape(len(values), *ones, *batch, *inner)
        values = np.broadcast_to(values, (len(values), *header.batch, *inner))
    return values.reshape(len(values), header.points, *inner)


def list_index(content: Content) -> tuple[Array, Array, Array]:
    """The columns of the index."""
    header = content.header
    times = spread(header, content.arrays["times"], ()).reshape(-1)
    steps = np.repeat(np.arange(header.steps), header.points)
    return steps, times, np.tile(np.arange(header.points), header.steps)


def write_table(result: Result, file: Path) -> None:
    """A table as text; a cell without a value, as before step 1, is empty.

    Without points, it has a row for each step, which says of which time it is.
    """
    content = take_apart(result)
    names: list[str] = [*INDEX]
    rows: list[list[Any]] = [x.tolist() for x in list_index(content)]
    for column, numbers in fill_columns(content):
        missing = column.begin * result.points
        names.append(column.name)
        rows.append([""] * missing + numbers[missing:].tolist())
    if not result.points:
        times = content.arrays["times"]
        own = times.tolist() if times.ndim == 1 else [""] * result.steps
        rows = [[*range(result.steps)], own, *([""] * result.steps for _ in names[2:])]
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(zip(*rows, strict=True))


def write_parquet(result: Result, file: Path) -> None:
    """A table as Parquet; what it does not hold bit for bit lies in the metadata of its schema."""
    arrow, parquet = (require_extra(m, ".parquet files") for m in ("pyarrow", "pyarrow.parquet"))
    content = take_apart(result)
    index = zip(INDEX, list_index(content), strict=True)
    arrays = {name: arrow.array(x) for name, x in index}
    for column, numbers in fill_columns(content):
        missing = np.arange(len(numbers)) < column.begin * result.points
        arrays[column.name] = arrow.array(numbers, mask=missing)
    held = set(find_held(content))
    rest = {key: x for key, x in content.arrays.items() if key not in held}
    stream = io.BytesIO()
    save_arrays(Content(content.header, rest), stream)
    told = {HEADER: base64.b64encode(stream.getvalue())}
    parquet.write_table(arrow.table(arrays).replace_schema_metadata(told), file)


def read_parquet(file: Path) -> Result:
    """A result of a Parquet file."""
    parquet = require_extra("pyarrow.parquet", ".parquet files")
    table = parquet.read_table(file)
    stored = (table.schema.metadata or {}).get(HEADER)
    if stored is None:
        raise ValueError("it is a table, but of no result")
    header, rest = load_arrays(io.BytesIO(base64.b64decode(stored)))
    names = (name for name in table.column_names if name not in INDEX)
    numbers = {name: table[name].fill_null(0).to_numpy() for name in names}
    return assemble(Content(header, {**collect(header, numbers), **rest}))
