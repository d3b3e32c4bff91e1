"""Wirings are drawn so that nothing overlaps, every wire ends at a box, and texts fit."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.cli.drawing import drawn
from ingot.cli.wiring import OUTSIDE, Box, Wire, Wiring, wiring_of_model
from ingot.hit import read, read_text
from ingot.model import build
from tests.packages import DECAY, DIFFUSION, PLASTIC

CASES = {
    "chaboche": ("solid_mechanics/viscoplasticity/chaboche", "model"),
    "crystal": ("solid_mechanics/crystal_plasticity/single_crystal_coupled", "model_with_stress"),
}
CLOSE = 0.11
"""Coordinates are written with one decimal."""

Rect = tuple[float, float, float, float]


def elements(svg: str, tag: str) -> Iterator[ElementTree.Element]:
    root = ElementTree.fromstring(svg)
    return (e for e in root.iter() if e.tag.endswith("}" + tag))


def rects(svg: str, *kinds: str) -> list[Rect]:
    """Left, top, right and bottom of the rectangles of these classes."""
    found = []
    for e in elements(svg, "rect"):
        if e.get("class") in kinds:
            x, y, w, h = (float(e.attrib[k]) for k in ("x", "y", "width", "height"))
            found.append((x, y, x + w, y + h))
    return found


def overlap(a: Rect, b: Rect) -> bool:
    across = min(a[2], b[2]) - max(a[0], b[0])
    along = min(a[3], b[3]) - max(a[1], b[1])
    return across > CLOSE and along > CLOSE


def within(a: Rect, b: Rect) -> bool:
    low = all(x >= y - CLOSE for x, y in zip(a[:2], b[:2], strict=True))
    return low and all(x <= y + CLOSE for x, y in zip(a[2:], b[2:], strict=True))


def ways(svg: str) -> Iterator[list[tuple[float, float]]]:
    """The points that each wire passes, control points of its curves left out."""
    for e in elements(svg, "path"):
        steps = re.findall(r"[MLC][^MLC]*", e.attrib["d"])
        numbers = [[float(n) for n in re.findall(r"-?[\d.]+", step)] for step in steps]
        yield [(n[-2], n[-1]) for n in numbers]


def check(svg: str) -> None:
    leaves, frames = rects(svg, "box", "value", "unknown"), rects(svg, "frame")
    for a, b in combinations(leaves, 2):
        assert not overlap(a, b)
    for frame in frames:
        for other in (*leaves, *frames):
            assert not overlap(frame, other) or within(other, frame) or within(frame, other)
    for way in ways(svg):
        check_way(way, leaves, frames)
    check_texts(svg, [*leaves, *frames])


def check_way(way: list[tuple[float, float]], leaves: list[Rect], frames: list[Rect]) -> None:
    """It starts at the right side of something (or a frame's left), and ends at a left side."""
    (x, y), (u, v) = way[0], way[-1]
    level = [r for r in (*leaves, *frames) if r[1] - CLOSE <= y <= r[3] + CLOSE]
    assert any(abs(x - side) < CLOSE for r in level for side in (r[0], r[2]))
    level = [r for r in (*leaves, *frames) if r[1] - CLOSE <= v <= r[3] + CLOSE]
    assert any(abs(u - side) < CLOSE for r in level for side in (r[0], r[2]))
    assert all(a[0] <= b[0] + CLOSE for a, b in pairwise(way))
    for (a, b), (c, d) in pairwise(way):
        line = (min(a, c), min(b, d), max(a, c), max(b, d))
        if b == d:
            assert not any(
                r[1] + CLOSE < b < r[3] - CLOSE and overlap((line[0], r[1], line[2], r[3]), r)
                for r in leaves
            )


def check_texts(svg: str, boxes: list[Rect]) -> None:
    page = next(elements(svg, "svg"))
    title = [(0.0, 0.0, float(page.attrib["width"]), float(page.attrib["height"]))]
    for i, e in enumerate(elements(svg, "text")):
        width = len(e.text or "") * 0.6 * (12 if e.get("class") == "name" else 11)
        x, y = float(e.attrib["x"]), float(e.attrib["y"])
        left = x - {"start": 0, "middle": width / 2, "end": width}[e.attrib["text-anchor"]]
        held = boxes if i else title
        assert any(within((left, y - 8, left + width, y), box) for box in held), e.text


@pytest.mark.parametrize(
    ("text", "model"), [(DECAY, "decay"), (DIFFUSION, "diffusion"), (PLASTIC, "update")]
)
def test_a_small_model_is_drawn_in_order(text: str, model: str) -> None:
    check(drawn(wiring_of_model(build(read_text(text), model)), f"{model}, as it is written"))


@pytest.mark.parametrize("case", CASES)
def test_a_published_model_is_drawn_in_order(case: str, cases: Path) -> None:
    folder, model = CASES[case]
    wiring = wiring_of_model(build(read(cases / "regression" / folder / "model.i"), model))
    svg = drawn(wiring, case)
    check(svg)
    inside = wiring.boxes[0].inside
    assert inside is not None and len(inside.boxes) >= 15
    assert len(rects(svg, "frame")) == {"chaboche": 2, "crystal": 1}[case]


def test_unknowns_stand_out_and_outputs_lead_to_the_border() -> None:
    svg = drawn(wiring_of_model(build(read_text(DECAY), "decay")), "decay")
    assert len(rects(svg, "unknown")) == 2  # the unknown within, and the solved one at its border
    (frame,) = rects(svg, "frame")
    assert any(abs(way[-1][0] - frame[2]) < CLOSE for way in ways(svg))


def test_a_composition_is_wired_through_its_parts() -> None:
    wiring = wiring_of_model(build(read_text(DECAY), "reaction"))
    assert [box.name for box in wiring.boxes] == ["coefficient", "rate", "integrate"]
    assert Wire(0, "coefficient", 1, "coefficient") in wiring.wires
    assert Wire(OUTSIDE, "T", 0, "T") in wiring.wires
    assert Wire(2, "alpha_residual", OUTSIDE, "alpha_residual") in wiring.wires


def test_letters_that_xml_reserves_are_written() -> None:
    box = Box("a<b", "A&B", ('"x"',), ("y>z",))
    svg = drawn(Wiring(('"x"',), ("y>z",), (box,), (Wire(OUTSIDE, '"x"', 0, '"x"'),)), "<&>")
    assert "1 a<b" in {e.text for e in elements(svg, "text")}


@st.composite
def wirings(draw: st.DrawFn, depth: int = 1) -> Wiring:
    """Boxes that read whatever was given before them."""
    known = [(OUTSIDE, name) for name in ("in", "another_input")]
    boxes: list[Box] = []
    wires: list[Wire] = []
    for i in range(draw(st.integers(0, 7))):
        chosen = draw(st.lists(st.sampled_from(known), max_size=4, unique=True))
        reads = tuple(f"r{k}" for k in range(len(chosen)))
        gives = tuple(f"value_{i}_{k}" for k in range(draw(st.integers(1, 3))))
        inside = None
        if depth and draw(st.booleans()):
            inner = draw(wirings(depth=depth - 1))
            inside = Wiring((*reads, *inner.given), inner.taken, inner.boxes, inner.wires)
        boxes.append(Box(f"box{i}", "Kind", reads, gives, inside))
        wires += [Wire(*source, i, name) for source, name in zip(chosen, reads, strict=True)]
        known += [(i, name) for name in gives]
    ends = draw(st.lists(st.sampled_from(known), max_size=4, unique=True))
    taken = tuple(f"out{k}" for k in range(len(ends)))
    wires += [Wire(*source, OUTSIDE, name) for source, name in zip(ends, taken, strict=True)]
    return Wiring(("in", "another_input"), taken, tuple(boxes), tuple(wires))


@given(wirings())
@settings(max_examples=60, deadline=None)
def test_any_wiring_is_drawn_in_order(wiring: Wiring) -> None:
    check(drawn(wiring, "a title that is longer than what it stands above"))
