"""Wiring -> Sheet: boxes in columns from left to right, with wires that run under none of them.

A long wire keeps a place of its own in every column that it crosses; wires of one value share it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingot.cli.wiring import OUTSIDE, Box, Wiring

__all__ = ["HEAD", "LETTER", "PAD", "Connector", "PlacedBox", "Point", "Sheet", "arranged"]

LETTER = 6.7
"""The width of a letter of the 11 px monospace font."""
PAD, ROW, HEAD, GAP = 8.0, 16.0, 36.0, 12.0
SWEEPS = 12

Point = tuple[float, float]
Trunk = tuple[int, str]


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box, or a value at the border (no box), with its place and the places of its ports."""

    label: str
    number: int
    box: Box | None
    corner: Point
    size: Point
    reads: Mapping[str, float]
    gives: Mapping[str, float]
    inside: "Sheet | None" = None


@dataclass(frozen=True, slots=True)
class Connector:
    """A wire: the points through which it passes, and which trunk it belongs to."""

    name: str
    trunk: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything placed; the origin is the upper left corner."""

    size: Point
    left: tuple[PlacedBox, ...]
    boxes: tuple[PlacedBox, ...]
    right: tuple[PlacedBox, ...]
    lines: tuple[Connector, ...]


@dataclass(slots=True)
class _Item:
    """What takes a place in a column: a box, a value at the border, or the bend of a long wire."""

    size: Point
    reads: dict[str, float]
    gives: dict[str, float]
    label: str = ""
    number: int = OUTSIDE
    box: Box | None = None
    inside: Sheet | None = None
    x: float = 0.0
    y: float = 0.0

    def placed(self) -> PlacedBox:
        return PlacedBox(
            self.label, self.number, self.box, (self.x, self.y), self.size,
            {n: self.y + at for n, at in self.reads.items()},
            {n: self.y + at for n, at in self.gives.items()}, self.inside,
        )  # fmt: skip


def _pill(name: str) -> _Item:
    height = ROW + 4
    middle = {name: height / 2}
    return _Item((len(name) * LETTER + 2 * PAD, height), middle, middle, name)


def _boxed(box: Box, number: int) -> _Item:
    title = max(len(f"{number + 1} {box.name}") * 1.1, len(box.what)) * LETTER + 2 * PAD
    if box.inside is not None:
        inside = arranged(box.inside, box.gives)
        size = (max(title, inside.size[0] + 2 * PAD), inside.size[1] + HEAD + PAD)
        reads = {p.label: HEAD + p.reads[p.label] for p in inside.left if p.label in box.reads}
        exits = inside.right[len(inside.right) - len(box.gives) :]
        gives = {p.label: HEAD + p.gives[p.label] for p in exits}
        return _Item(size, reads, gives, box.name, number, box, inside)
    names = (*box.reads, *box.gives)
    width = max([title, *(len(n) * LETTER + 3 * PAD for n in names)])
    height = HEAD + ROW * len(names) + PAD / 2
    rows = [HEAD + ROW * (i + 0.5) for i in range(len(names))]
    reads = dict(zip(box.reads, rows, strict=False))
    gives = dict(zip(box.gives, rows[len(box.reads) :], strict=True))
    return _Item((width, height), reads, gives, box.name, number, box)


def arranged(wiring: Wiring, exits: Sequence[str] = ()) -> Sheet:
    """Put everything in its place; `exits` stand at the right too, and no wire leads to them."""
    return _Arranging(wiring, exits).sheet()


class _Arranging:
    def __init__(self, wiring: Wiring, exits: Sequence[str]) -> None:
        self.wiring = wiring
        self.boxes = [_boxed(b, i) for i, b in enumerate(wiring.boxes)]
        self.left = {name: _pill(name) for name in wiring.given}
        self.right = {name: _pill(name) for name in wiring.taken}
        self.exits = [_pill(name) for name in exits]
        self.layer = _layers(wiring)
        self.last = max(self.layer, default=0) + 1
        self.columns: list[list[_Item]] = [[] for _ in range(self.last + 1)]
        self.columns[0] = list(self.left.values())
        for item, layer in zip(self.boxes, self.layer, strict=True):
            self.columns[layer].append(item)
        self.columns[-1] += [*self.right.values(), *self.exits]
        self.ways: list[list[tuple[_Item, str]]] = []
        self.links: list[dict[tuple[int, str, int, str], None]] = [{} for _ in range(self.last)]
        self.items: dict[int, _Item] = {}
        self._lead()
        self.items |= {id(item): item for column in self.columns for item in column}

    def _lead(self) -> None:
        """Give every wire the bends that it needs; those of one value share theirs."""
        bends: dict[tuple[Trunk, int], _Item] = {}
        for wire in self.wiring.wires:
            outside = wire.source == OUTSIDE
            source = self.left[wire.gives] if outside else self.boxes[wire.source]
            target = self.right[wire.reads] if wire.target == OUTSIDE else self.boxes[wire.target]
            start = 0 if outside else self.layer[wire.source]
            end = self.last if wire.target == OUTSIDE else self.layer[wire.target]
            way = [(source, wire.gives)]
            for layer in range(start + 1, end):
                key = ((wire.source, wire.gives), layer)
                if key not in bends:
                    bends[key] = _Item((0.0, 2.0), {"": 1.0}, {"": 1.0})
                    self.columns[layer].append(bends[key])
                way.append((bends[key], ""))
            way.append((target, wire.reads))
            self.ways.append(way)
            for layer, ((a, x), (b, y)) in enumerate(pairwise(way), start):
                self.links[layer][id(a), x, id(b), y] = None

    def sheet(self) -> Sheet:
        self._order()
        self._heights()
        edges = self._widths()
        top = min((i.y for i in self.items.values()), default=0.0)
        for item in self.items.values():
            item.y -= top
        bottom = max((i.y + i.size[1] for i in self.items.values()), default=0.0)
        lines = [self._line(n, edges) for n in range(len(self.ways))]
        return Sheet(
            (edges[-1][1], bottom + PAD),
            tuple(p.placed() for p in self.left.values()),
            tuple(b.placed() for b in self.boxes),
            tuple(p.placed() for p in (*self.right.values(), *self.exits)),
            tuple(lines),
        )

    # the order in each column, by the mean place of what an item is wired to

    def _order(self) -> None:
        best, crossed = [list(c) for c in self.columns], self._crossings()
        for sweep in range(SWEEPS):
            forward = sweep % 2 == 0
            steps = range(1, self.last + 1) if forward else range(self.last - 1, -1, -1)
            for layer in steps:
                places = self._means(layer, forward)
                self.columns[layer].sort(key=lambda item, at=places: at[id(item)])
            if (count := self._crossings()) < crossed:
                best, crossed = [list(c) for c in self.columns], count
        self.columns = best

    def _means(self, layer: int, forward: bool) -> dict[int, float]:
        """Where each item of a column would like to be: amid its links, else where it is."""
        rank = self._ranks(layer - 1 if forward else layer + 1)
        near = self._near(layer, forward)
        means: dict[int, float] = {}
        for i, item in enumerate(self.columns[layer]):
            found = [rank[other, port] for _, other, port in near.get(id(item), ())]
            means[id(item)] = sum(found) / len(found) if found else float(i)
        return means

    def _ranks(self, layer: int) -> dict[tuple[int, str], float]:
        """The place of every port of a column, counted from its top."""
        found: dict[tuple[int, str], float] = {}
        top = 0.0
        for item in self.columns[layer]:
            for ports in (item.reads, item.gives):
                found |= {(id(item), name): top + at for name, at in ports.items()}
            top += item.size[1] + GAP
        return found

    def _near(self, layer: int, forward: bool) -> dict[int, list[tuple[str, int, str]]]:
        """(own port, other item, its port) of every link of a column to the one beside it."""
        found: dict[int, list[tuple[str, int, str]]] = {}
        for a, x, b, y in self.links[layer - 1 if forward else layer]:
            own, other = ((b, y), (a, x)) if forward else ((a, x), (b, y))
            found.setdefault(own[0], []).append((own[1], *other))
        return found

    def _crossings(self) -> int:
        total = 0
        for layer, links in enumerate(self.links):
            before, after = self._ranks(layer), self._ranks(layer + 1)
            ends = sorted((before[a, x], after[b, y]) for a, x, b, y in links)
            total += sum(
                p[1] > q[1] for i, p in enumerate(ends) for q in ends[i + 1 :] if p[0] < q[0]
            )
        return total

    # places

    def _heights(self) -> None:
        for column in self.columns:
            top = 0.0
            for item in column:
                item.y, top = top, top + item.size[1] + GAP
        for sweep in range(2 * SWEEPS):
            forward = sweep % 2 == 0
            steps = range(1, self.last + 1) if forward else range(self.last - 1, -1, -1)
            for layer in steps:
                column = self.columns[layer]
                near = self._near(layer, forward)
                wanted = []
                for item in column:
                    found = [
                        self._port(self.items[other], port, forward)
                        - (item.reads if forward else item.gives)[own]
                        for own, other, port in near.get(id(item), ())
                    ]
                    wanted.append(sum(found) / len(found) if found else item.y)
                heights = [item.size[1] + GAP for item in column]
                for item, y in zip(column, _apart(wanted, heights), strict=True):
                    item.y = y

    @staticmethod
    def _port(item: _Item, port: str, forward: bool) -> float:
        return item.y + (item.gives if forward else item.reads)[port]

    def _widths(self) -> list[tuple[float, float]]:
        """Left and right edge of every column."""
        edges, x = [], 0.0
        for layer, column in enumerate(self.columns):
            width = max((item.size[0] for item in column), default=0.0)
            for item in column:
                spare = width - item.size[0]
                item.x = x + (0 if layer == 0 else spare if layer == self.last else spare / 2)
            edges.append((x, x + width))
            wires = len(self.links[layer]) if layer < self.last else 0
            x += width + 36 + 3 * min(wires, 24)
        return edges

    def _line(self, number: int, edges: Sequence[tuple[float, float]]) -> Connector:
        wire, way = self.wiring.wires[number], self.ways[number]
        start = 0 if wire.source == OUTSIDE else self.layer[wire.source]
        points: list[Point] = []
        for layer, (item, port) in enumerate(way, start):
            first, last = layer == start, layer == start + len(way) - 1
            y = item.y + (item.gives if first else item.reads)[port]
            if not first:
                points.append((edges[layer][0], y))
            points.append(
                (item.x + item.size[0] if first else item.x if last else edges[layer][1], y)
            )
            if first:
                points.append((edges[layer][1], y))
        trunks = list(dict.fromkeys((w.source, w.gives) for w in self.wiring.wires))
        return Connector(wire.gives, trunks.index((wire.source, wire.gives)), tuple(points))


def _layers(wiring: Wiring) -> list[int]:
    """The column of every box: after all that it reads, and late where that shortens wires."""
    layer = [1] * len(wiring.boxes)
    inner = [w for w in wiring.wires if OUTSIDE not in (w.source, w.target)]
    for w in sorted(inner, key=lambda w: w.target):
        layer[w.target] = max(layer[w.target], layer[w.source] + 1)
    for i in reversed(range(len(layer))):
        after = [layer[w.target] for w in inner if w.source == i]
        reads = {(w.source, w.gives) for w in wiring.wires if w.target == i}
        if after and len(reads) <= len(wiring.boxes[i].gives):
            layer[i] = max(layer[i], min(after) - 1)
    return layer


def _apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones at which nothing overlaps, in the same order."""
    starts = [sum(heights[:i]) for i in range(len(heights))]
    groups: list[tuple[float, int]] = []
    for want, start in zip(wanted, starts, strict=True):
        groups.append((want - start, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (a, m), (b, n) = groups[-2:]
            groups[-2:] = [((a * m + b * n) / (m + n), m + n)]
    moved = [place for place, count in groups for _ in range(count)]
    return [place + start for place, start in zip(moved, starts, strict=True)]
