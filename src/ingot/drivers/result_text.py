"""A Result -> what a prompt or a notebook shows of it: variables, solves, time taken."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ingot.drivers.series import Series

if TYPE_CHECKING:
    from ingot.drivers.result import Result

__all__ = ["count", "describe", "describe_html", "list_rows"]


def describe(result: "Result") -> str:
    """A line on its size, a table of its variables, a line for each solve, and the time."""
    header, *rows = list_rows(result)
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    table = [
        "  " + "  ".join(f"{x:<{w}}" for x, w in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join([f"Result: {_size(result)}", *table, *list_ends(result)])


def describe_html(result: "Result") -> str:
    """The same as HTML."""
    header, *rows = list_rows(result)
    head = "".join(f"<th>{escape(x)}</th>" for x in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(x)}</td>' for x in row)}</tr>" for row in rows)
    ends = "".join(f"<div>{escape(line)}</div>" for line in list_ends(result))
    return (
        f"<div><b>Result</b>: {escape(_size(result))}</div>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{ends}"
    )


def list_rows(result: "Result") -> list[list[str]]:
    """The table of variables, its header first; units have a column where there are any."""
    header = ["name", "kind", "shape", "min", "max", *(["unit"] if result.units else [])]
    return [header, *(_row(result[name], bool(result.units)) for name in result.names)]


def _row(series: Series, has_units: bool) -> list[str]:
    finite = np.isfinite(series.values)  # a mask: a copy of what is finite may be large
    low = series.values.min(where=finite, initial=np.inf)
    high = series.values.max(where=finite, initial=-np.inf)
    ends = [f"{x:.4g}" for x in (low, high)] if low <= high else ["nan", "nan"]
    shape = " × ".join(map(str, series.shape))
    unit = [series.unit] if has_units else []
    return [series.name, series.kind.__name__, shape, *ends, *unit]


def list_ends(result: "Result") -> Iterator[str]:
    """How every solve went, and how long the run took."""
    for status in result.statuses:
        failed = len(status.find_first_failures()) if status.has_failed else 0
        told = f"{failed} of {count(result.points, 'point')} failed" if failed else "converged"
        mean, most = status.mean_iterations, status.most_iterations
        yield f"{status.solve}: {told}; {mean:.2g} iterations a step, {most} at most"
    speed = f"{result.microseconds:.3g} µs per point and step"
    yield f"time: {result.seconds:.3g} s, {speed if result.microseconds else 'nothing computed'}"


def _size(result: "Result") -> str:
    batch = f" (batch {' × '.join(map(str, result.batch))})" if len(result.batch) > 1 else ""
    return f"{count(result.steps, 'step')}, {count(result.points, 'point')}{batch}"


def count(number: int, noun: str) -> str:
    """A number of things in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
