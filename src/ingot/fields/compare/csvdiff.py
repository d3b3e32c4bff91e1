"""compare_csv: two tables, column by column.

In: the paths of a CSV file and its reference. Out: Compared.
"""

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ingot.fields.compare.difference import (
    Compared,
    Finding,
    Limits,
    differing,
    joined,
    names_differ,
    number,
)

__all__ = ["compare_csv"]

Table = dict[str, list[str]]


def compare_csv(
    found: Path, expected: Path, limits: Limits, columns: Mapping[str, Limits] | None = None
) -> Compared:
    """Compare header, number of rows and every value; `columns` may have limits of their own."""
    tables = read_table(found), read_table(expected)
    for table, file in zip(tables, (found, expected), strict=True):
        if isinstance(table, Finding):
            return joined(1, [Finding(f"'{file.name}'", table.why)])
    ours, theirs = (table for table in tables if not isinstance(table, Finding))
    header = list(names_differ("column", ours, theirs))
    rows = tuple(len(next(iter(table.values()), [])) for table in (ours, theirs))
    if rows[0] != rows[1]:
        counts = Finding("number of rows", f"is {rows[0]} instead of {rows[1]}")
        return joined(len(theirs) + 1, [counts, *header])
    own = columns or {}
    both = [name for name in theirs if name in ours]
    findings = [column(name, ours, theirs, own.get(name, limits)) for name in both]
    return joined(len(theirs) + 1, [*header, *findings])


def read_table(file: Path) -> Table | Finding:
    """The columns of a file by their names."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.reader(stream) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        return Finding("", f"is no table of text: {error}")
    if not rows:
        return Finding("", "is empty")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) != len(header):
        return Finding("", "has two columns of one name")
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            return Finding("", f"has {len(row)} values for {len(header)} columns in line {line}")
    return {name: [row[i].strip() for row in rows[1:]] for i, name in enumerate(header)}


def column(name: str, ours: Table, theirs: Table, limits: Limits) -> Finding | None:
    """What is wrong with one column; a row is named by its first value."""
    part = f"column '{name}'"
    first = next(iter(theirs))

    def row(index: int) -> str:
        return f"in row {index + 1} ({first} = {theirs[first][index]})"

    pairs = list(zip(ours[name], theirs[name], strict=True))
    numbers = [(number(a), number(b)) for a, b in pairs]
    for index, ((a, b), (x, y)) in enumerate(zip(pairs, numbers, strict=True)):
        if (x is None or y is None) and a != b:
            return Finding(part, f"{row(index)} is '{a}' instead of '{b}'")
    values = [[np.nan if x is None else x for x in side] for side in zip(*numbers, strict=True)]
    found, expected = (np.array(side, dtype=np.float64) for side in values or [[], []])
    return differing(part, found, expected, limits, lambda at: row(at[0]))
