"""page: Pictures -> one HTML file that needs nothing else; png: a picture file for each frame."""

from __future__ import annotations

import base64
import html
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.cli.viewer.pictures import Pictures, Shown, VectorField, range_of, spread
from ingot.extras import require_extra

if TYPE_CHECKING:
    from ingot.cli.viewer.tables import Table

__all__ = ["page", "png"]

HERE = Path(__file__).parent
SCRIPTS = ("axes.js", "fields.js")
MOST_ROWS = 2000  # of a curve on a page
MOST_CURVES = 200


def page(shown: Pictures) -> str:
    """The text of the page."""
    names = list(shown.fields)
    data = {
        "notes": shown.notes,
        "times": list_numbers(shown.times),
        "axes": shown.axes,
        "lower": shown.lower,
        "upper": shown.upper,
        "fields": [describe_field(name, field) for name, field in shown.fields.items()],
        "vectors": [
            {
                "name": each.name,
                "parts": [names.index(part) for part in each.parts],
                "sure": each.sure,
                **describe_range(magnitude(shown, each)),
            }
            for each in shown.vectors
        ],
        "tables": list(list_tables(shown.tables)),
    }
    # `<` would end the script that holds the numbers, whatever the names in it
    text = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    script = "".join((HERE / name).read_text() for name in SCRIPTS)
    parts = {"TITLE": html.escape(shown.title), "DATA": text, "SCRIPT": script}
    template = (HERE / "page.html").read_text()
    return re.sub("%(TITLE|DATA|SCRIPT)%", lambda found: parts[found[1]], template)


def describe_field(name: str, field: Shown) -> dict[str, Any]:
    """A field: where its points lie, and the numbers of each frame in single precision.

    A frame whose numbers differ little is stored less an offset, so that what differs is kept.
    """
    offsets = [find_offset(frame) for frame in field.values]
    rests = [frame - offset for frame, offset in zip(field.values, offsets, strict=True)]
    largest = max(map(abs, range_of(np.stack(rests)) or (0.0, 0.0)))
    scale = find_scale(largest)
    return {
        "name": name,
        **describe_range(field.values),
        "offsets": offsets,
        "scale": scale,
        "counts": field.values.shape[:0:-1],
        "first": field.first,
        "steps": field.steps,
        "frames": [encode(rest / scale) for rest in rests],
    }


def find_offset(frame: np.ndarray[Any, Any]) -> float:
    """What numbers that differ by less than a thousandth have in common; else nothing."""
    low, high = range_of(frame) or (0.0, 0.0)
    return low if high - low < 1e-3 * max(abs(low), abs(high)) else 0.0


def describe_range(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The range of numbers, and the smallest of them above zero, where a logarithm begins."""
    above = values[(values > 0) & np.isfinite(values)]
    return {"range": range_of(values), "positive": float(above.min()) if above.size else None}


def find_scale(largest: float) -> float:
    """What numbers are divided by, so that single precision holds them: 1, or a power of two."""
    if largest == 0.0 or 1e-30 < largest < 1e30:
        return 1.0
    return 2.0 ** max(-1000, math.frexp(largest)[1])


def encode(frame: np.ndarray[Any, Any]) -> str:
    """Numbers of four bytes each as base64, x changing fastest."""
    return base64.b64encode(np.ascontiguousarray(frame, dtype="<f4").tobytes()).decode()


def magnitude(shown: Pictures, vector: VectorField) -> np.ndarray[Any, Any]:
    """The length of a vector everywhere."""
    total = np.zeros(())
    for part in vector.parts:
        total = np.hypot(total, shown.fields[part].values)
    return total


def list_tables(tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """Tables thinned to what a page can hold."""
    room = MOST_CURVES
    for table in tables:
        rows = spread(len(table.times), MOST_ROWS)
        columns = list(table.columns.items())[:room]
        room -= len(columns)
        yield {
            "name": table.file.name,
            "times": list_numbers([table.times[row] for row in rows]),
            "columns": [
                {"name": name, "values": list_numbers([values[row] for row in rows])}
                for name, values in columns
            ],
        }


def list_numbers(values: Sequence[float]) -> list[float | None]:
    """Numbers as JSON has them, where what is not finite is none."""
    return [value if math.isfinite(value) else None for value in values]


def png(shown: Pictures, folder: Path, colours: str) -> Iterator[Path]:
    """Write a picture of each frame of each field, the same colours meaning the same numbers.

    Of a box that is shown whole it is the middle plane along z.
    """
    figures = require_extra("matplotlib.figure", "PNG files")
    folder.mkdir(parents=True, exist_ok=True)
    for name, field in shown.fields.items():
        low, high = range_of(field.values) or (0.0, 1.0)
        for number, (frame, time) in enumerate(zip(field.values, shown.times, strict=True)):
            figure = figures.Figure(figsize=(5, 4.2), layout="constrained")
            axes = figure.subplots()
            title = f"time {time:.6g}"
            if frame.ndim == 1:
                axes.plot(field.first[0] + field.steps[0] * np.arange(len(frame)), frame)
                axes.set(xlabel=shown.axes[0], ylabel=name, title=title)
                axes.set_ylim(low, high if high > low else low + 1)
            else:
                plane = frame if frame.ndim == 2 else frame[len(frame) // 2]
                if frame.ndim == 3:
                    title += f", z = {field.first[2] + len(frame) // 2 * field.steps[2]:.4g}"
                image = axes.imshow(
                    plane, cmap=colours, vmin=low, vmax=high, origin="lower", extent=extent(field)
                )
                figure.colorbar(image, label=name)
                axes.set(xlabel=shown.axes[0], ylabel=shown.axes[1], title=title)
            path = folder / f"{name}_{number:04d}.png"
            figure.savefig(path, dpi=120)
            yield path


def extent(field: Shown) -> tuple[float, ...]:
    """Where the pixels of a plane end: left, right, bottom, top."""
    counts = field.values.shape[:0:-1]
    ends = [
        (first - step / 2, first + (count - 0.5) * step)
        for first, step, count in zip(field.first, field.steps, counts, strict=True)
    ]
    return (*ends[0], *ends[1])
