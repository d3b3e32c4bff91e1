"""Wiring -> SVG: one file that needs no other."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from ingot.cli.layout import HEAD, LETTER, PAD, Connector, PlacedBox, Point, Sheet, arranged
from ingot.cli.wiring import Wiring, wiring_of_model

if TYPE_CHECKING:
    from ingot.model import Model

__all__ = ["draw_model", "drawn"]

COLOURS = (
    "#4477aa", "#cc6677", "#228833", "#aa7733", "#7755aa", "#117788", "#996688", "#556655",
)  # fmt: skip
STYLE = """
text { font: 11px 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #222 }
.name { font-weight: bold; font-size: 12px }
.what { fill: #777 }
.box { fill: #fff; stroke: #555 }
.frame { fill: #f6f4ee; stroke: #997; stroke-width: 1.5 }
.value { fill: #e8eef6; stroke: #89a }
.unknown { fill: #fbe9d0; stroke: #b85 }
.wire { fill: none; stroke-width: 1.3 }
"""
MARGIN = 16.0


def drawn(wiring: Wiring, title: str) -> str:
    """The picture of a wiring: inputs at the left, outputs at the right, boxes as they run."""
    sheet = arranged(wiring)
    width = max(sheet.size[0], 1.1 * LETTER * len(title)) + 2 * MARGIN
    height = sheet.size[1] + 2 * MARGIN + HEAD
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect x="0" y="0" width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
        _text(MARGIN, MARGIN + 12, title, "name"),
        *_sheet(sheet, (MARGIN, MARGIN + HEAD), set()),
        "</svg>",
        "",
    ])  # fmt: skip


def draw_model(model: "Model") -> str:
    """The picture of a live model."""
    return drawn(wiring_of_model(model), f"{model.type_name} [{model.name}]")


def _sheet(sheet: Sheet, at: Point, unknowns: set[str]) -> Iterator[str]:
    yield from (_wire(line, at) for line in sheet.lines)
    for value in (*sheet.left, *sheet.right):
        yield from _value(value, at, "unknown" if value.label in unknowns else "value")
    for box in sheet.boxes:
        yield from _framed(box, at) if box.inside else _boxed(box, at)


def _value(value: PlacedBox, at: Point, kind: str) -> Iterator[str]:
    (x, y), (width, height) = _moved(value.corner, at), value.size
    yield _rect((x, y), value.size, kind, round(height / 2))
    yield _text(x + width / 2, y + height / 2 + 4, value.label, "", "middle")


def _boxed(placed: PlacedBox, at: Point) -> Iterator[str]:
    x, _ = corner = _moved(placed.corner, at)
    yield _rect(corner, placed.size, "box", 3)
    yield from _head(placed, corner)
    for name, y in placed.reads.items():
        yield _text(x + PAD, at[1] + y + 4, name)
    for name, y in placed.gives.items():
        yield _text(x + placed.size[0] - PAD, at[1] + y + 4, name, "", "end")


def _framed(placed: PlacedBox, at: Point) -> Iterator[str]:
    """A box with its inside; its ports are led from its border to the values within."""
    inside, box = placed.inside, placed.box
    assert inside is not None and box is not None
    x, y = corner = _moved(placed.corner, at)
    yield _rect(corner, placed.size, "frame", 6)
    yield from _head(placed, corner)
    inner = (x + PAD, y + HEAD)
    right = x + placed.size[0]
    for value in inside.left:
        if value.label in box.reads:
            height = inner[1] + value.reads[value.label]
            yield _path([(x, height), (inner[0] + value.corner[0], height)], "#89a", value.label)
    exits = inside.right[len(inside.right) - len(box.gives) :]
    for value in exits:
        height = inner[1] + value.gives[value.label]
        start = inner[0] + value.corner[0] + value.size[0]
        yield _path([(start, height), (right, height)], "#89a", value.label)
    left = {value.label for value in inside.left}
    yield from _sheet(inside, inner, left - set(box.reads) | (left & set(box.gives)))


def _head(placed: PlacedBox, corner: Point) -> Iterator[str]:
    assert placed.box is not None
    x, y = corner
    yield _text(x + PAD, y + 14, f"{placed.number + 1} {placed.label}", "name")
    yield _text(x + PAD, y + 28, placed.box.what, "what")


def _wire(line: Connector, at: Point) -> str:
    points = [_moved(point, at) for point in line.points]
    return _path(points, COLOURS[line.trunk % len(COLOURS)], line.name)


def _path(points: list[Point], colour: str, name: str) -> str:
    """Straight where two points are level, else bent like an S."""
    (x, y), *_ = points
    steps = [f"M{x:.1f},{y:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (x0 + x1) / 2
        curve = f"C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        steps.append(f"L{x1:.1f},{y1:.1f}" if y0 == y1 else curve)
    title = f"<title>{escape(name)}</title>"
    return f'<path class="wire" stroke="{colour}" d="{" ".join(steps)}">{title}</path>'


def _rect(corner: Point, size: Point, kind: str, radius: float) -> str:
    return (
        f'<rect class="{kind}" x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}"'
        f' height="{size[1]:.1f}" rx="{radius}"/>'
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    classes = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{classes}>{escape(text)}</text>'


def _moved(point: Point, by: Point) -> Point:
    return point[0] + by[0], point[1] + by[1]
