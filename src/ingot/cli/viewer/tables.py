"""find_tables: the fields that a run wrote -> its postprocessors over time, to show beside them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ingot.errors import IngotError, Problem

if TYPE_CHECKING:
    from ingot.fields.outputs.frames import Frames

__all__ = ["Table", "find_tables"]


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers over time: the file they are from, the times, and a column for each."""

    file: Path
    times: tuple[float, ...]
    columns: dict[str, tuple[float, ...]]


def find_tables(frames: Frames, named: tuple[Path, ...]) -> tuple[tuple[Table, ...], str]:
    """The tables that belong to a file of fields, and what to say where that is not clear.

    These are what the file itself holds, and CSV files with a column of times beside it that are
    called like it, or the only one there is.
    """
    own = {name: tuple(map(float, values)) for name, values in frames.scalars.items()}
    tables = [Table(frames.file, frames.times, own)] if own else []
    if named:
        return (*tables, *(read_table(file) for file in named)), ""
    if own:
        return tuple(tables), ""
    beside = [file for file in sorted(frames.file.parent.glob("*.csv")) if header(file)]
    stem = frames.file.stem
    alike = [file for file in beside if file.stem == stem or file.stem.startswith(f"{stem}_")]
    chosen = alike or (beside if len(beside) == 1 else [])
    note = ""
    if beside and not chosen:
        note = f"no curves: {len(beside)} tables are there, name one with --csv"
    return (*tables, *filter(lambda table: table.columns, map(read_table, chosen))), note


def header(file: Path) -> list[str] | None:
    """The names of the columns of a table over time."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            names = [name.strip() for name in next(csv.reader(stream), [])]
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    return names if names[:1] == ["time"] and len(names) > 1 else None


def read_table(file: Path) -> Table:
    """The columns of a table; a last row that is still being written is left out."""
    names = header(file)
    if names is None:
        missing = not file.is_file()
        message = f"{file} is not there" if missing else f"{file} is no table of numbers over time"
        fix = "give a CSV file that [Outputs] of a run has written"
        code = "file-not-found" if missing else "unreadable-result"
        raise IngotError([Problem(code, message, fix=fix)])
    rows = list(read_rows(file, len(names)))
    columns = {name: tuple(row[k] for row in rows) for k, name in enumerate(names)}
    return Table(file, columns.pop("time"), columns)


def read_rows(file: Path, count: int) -> Iterator[list[float]]:
    """The rows that are whole, which end with a line break."""
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True)[1:]:
        words = line.strip().split(",")
        if not line.endswith("\n") or len(words) != count:
            continue
        try:
            yield [float(word) for word in words]
        except ValueError:
            continue
