"""page: Pictures -> one HTML file that needs nothing else; png: a picture file for each frame."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ingot.cli.viewer.pictures import Pictures
from ingot.extras import require_extra

__all__ = ["page", "png"]

TEMPLATE = Path(__file__).with_name("page.html")
LEVELS = 65534
NOTHING = 65535
"""What stands for a number that is not finite."""


def page(shown: Pictures) -> str:
    """The text of the page."""
    told = {
        "note": shown.note,
        "times": shown.times,
        "axes": shown.axes,
        "box": shown.box,
        "fields": [
            {
                "name": name,
                "range": shown.range_of(name),
                "rows": array.shape[1],
                "columns": array.shape[2],
                "frames": [encoded(frame, *shown.range_of(name)) for frame in array],
            }
            for name, array in shown.fields.items()
        ],
    }
    data = json.dumps(told).replace("<", "\\u003c")
    text = TEMPLATE.read_text()
    return text.replace("%TITLE%", html.escape(shown.title)).replace("%DATA%", data)


def encoded(frame: np.ndarray[Any, Any], low: float, high: float) -> str:
    """An array in steps of a 65534th of its range, two bytes each, as base64."""
    wide = high - low if high > low else 1.0
    finite = np.isfinite(frame)
    levels = np.rint((np.where(finite, frame, low) - low) / wide * LEVELS)
    numbers = np.where(finite, levels, NOTHING).astype("<u2")
    return base64.b64encode(numbers.tobytes()).decode()


def png(shown: Pictures, folder: Path, colours: str) -> Iterator[Path]:
    """Write a picture of each frame of each field, the same colours meaning the same numbers."""
    figures = require_extra("matplotlib.figure", "PNG files")
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in shown.fields.items():
        low, high = shown.range_of(name)
        for number, (frame, time) in enumerate(zip(array, shown.times, strict=True)):
            figure = figures.Figure(figsize=(5, 4.2), layout="constrained")
            axes = figure.subplots()
            image = axes.imshow(
                frame, cmap=colours, vmin=low, vmax=high, origin="lower", extent=shown.box
            )
            figure.colorbar(image, label=name)
            axes.set(xlabel=shown.axes[0], ylabel=shown.axes[1], title=f"time {time:.6g}")
            path = folder / f"{name}_{number:04d}.png"
            figure.savefig(path, dpi=120)
            yield path
