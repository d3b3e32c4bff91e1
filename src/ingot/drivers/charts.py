"""Panels and pole figures -> a figure of matplotlib, without a display."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.drivers.curves import Panel
from ingot.drivers.poles import PoleFigure
from ingot.errors import Problem
from ingot.extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

__all__ = ["COLOURS", "PICTURES", "draw", "find_unknown_picture", "render"]

PICTURES = (".png", ".svg", ".pdf")
COLOURS = (
    "#1f5f99", "#c8553d", "#2e8b57", "#b8860b", "#6a4c93", "#127a8a", "#a23b72", "#5b6770",
)  # fmt: skip
GREY = "0.72"
MOST_COLUMNS = 3
MOST_MARKS = 30  # steps that are marked one by one
DASHES = ("-", "--", ":", "-.")


def find_unknown_picture(path: Path) -> "Iterator[Problem]":
    """A problem where the ending of a file is that of no picture."""
    if path.suffix.lower() not in PICTURES:
        message = f"'{path}' does not say by its ending what picture to write"
        yield Problem("unknown-ending", message, None, f"end it in one of: {', '.join(PICTURES)}")


def render(figure: "Figure", suffix: str) -> bytes:
    """The bytes of a picture file."""
    content = io.BytesIO()
    # no date: the same numbers are the same file
    told = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.savefig(content, format=suffix.removeprefix("."), dpi=150, metadata=told[suffix])
    return content.getvalue()


def draw(shown: Sequence[Panel | PoleFigure], title: str = "") -> "Figure":
    """One figure with an axes for each panel."""
    figures = require_extra("matplotlib.figure", "pictures")
    columns = min(len(shown), 2 if len(shown) in (2, 4) else MOST_COLUMNS)
    rows = math.ceil(len(shown) / columns)
    poles = all(isinstance(each, PoleFigure) for each in shown)
    wide, tall = (3.6, 4.4) if poles else (5.0, 3.8)  # a circle, its title and its note
    figure: Figure = figures.Figure(figsize=(wide * columns, tall * rows), layout="constrained")
    places = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes, each in zip(places, shown, strict=False):
        draw_poles(axes, each) if isinstance(each, PoleFigure) else draw_panel(axes, each)
    for axes in places[len(shown) :]:
        axes.remove()
    if title:
        figure.suptitle(title, fontsize="large")
    return figure


def draw_panel(axes: Any, panel: Panel) -> None:
    """The curves of a panel, its labels, and a legend where there is a choice."""
    if panel.band is not None:
        axes.fill_between(*panel.band, color=COLOURS[0], alpha=0.15, lw=0, label="middle 80 %")
    for curve in (c for c in panel.curves if c.faint):
        axes.plot(curve.x, curve.y, color=GREY, lw=0.6, zorder=1)
    clear = [c for c in panel.curves if not c.faint]
    colours = _list_colours(max((c.hue for c in clear), default=0) + 1)
    for curve in clear:
        few = np.isfinite(curve.y).sum() <= MOST_MARKS
        dash = DASHES[curve.dash % len(DASHES)] if len({c.hue for c in clear}) < len(clear) else "-"
        axes.plot(
            curve.x, curve.y, dash, color=colours[curve.hue], lw=1.6, label=curve.label or None,
            marker="o" if few else None, ms=3,
        )  # fmt: skip
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.margins(x=0.02)
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    _set_scale(axes, panel)
    named = [c.label for c in clear if c.label]
    if not named:
        return
    few = len(named) + (panel.band is not None) <= 3
    # beside or above the axes, where no curve is
    place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 3}
    beside = {"loc": "upper left", "bbox_to_anchor": (1, 1), "ncols": math.ceil(len(named) / 16)}
    axes.legend(frameon=False, fontsize="small", **(place if few else beside))


def _set_scale(axes: Any, panel: Panel) -> None:
    axes.locator_params(axis="x", nbins=6)  # more labels than these may touch
    if panel.log and any((c.y[np.isfinite(c.y)] > 0).any() for c in panel.curves):
        axes.set_yscale("log")
        return
    if panel.whole:
        axes.set_ylim(bottom=0)
        axes.yaxis.get_major_locator().set_params(integer=True)
    else:
        axes.ticklabel_format(axis="both", style="sci", scilimits=(-3, 4), useMathText=True)


def _list_colours(number: int) -> list[Any]:
    if number <= len(COLOURS):
        return list(COLOURS[:number])
    colours = require_extra("matplotlib", "pictures").colormaps["viridis"]
    return [colours(share) for share in np.linspace(0, 0.92, number)]


def draw_poles(axes: Any, figure: PoleFigure) -> None:
    """The circle, its axes, and a dot for each pole."""
    turn = np.linspace(0, 2 * np.pi, 361)
    axes.plot(np.cos(turn), np.sin(turn), color="0.3", lw=1)
    axes.plot([-1, 1, np.nan, 0, 0], [0, 0, np.nan, -1, 1], color="0.85", lw=0.8, zorder=0)
    count = max(len(figure.places), 1)
    size = float(np.clip(2500 / count, 1.5, 14))
    x, y = figure.places.T if len(figure.places) else ([], [])
    axes.scatter(x, y, s=size, color=COLOURS[0], alpha=0.6 if count > 200 else 0.9, lw=0)
    axes.text(1.04, 0, "x", va="center")
    axes.text(0, 1.04, "y", ha="center")
    axes.set_title(figure.title, fontsize="medium")
    axes.set_xlabel(f"{figure.projection} projection", fontsize="small")
    axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[], xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    axes.spines[:].set_visible(False)
