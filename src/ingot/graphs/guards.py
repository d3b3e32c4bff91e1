"""Which sizes a captured graph is right for: what was decided by them, what 0 and 1 change.

Torch's own code asks whether a size is 1 to choose strides; the course of the trace tells whether
anything came of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg

from ingot.errors import IngotError
from ingot.graphs.layout import blank, number_of, order_of
from ingot.graphs.sizes import Open, Size, evaluated, holds
from ingot.graphs.spans import print_place
from ingot.graphs.torch_private import (
    Frame,
    fake_mode,
    frames_of,
    silence_fakes,
    writes_of,
)

__all__ = ["Course", "find_excluded", "find_guards", "find_inplace"]

NUMBERS = (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat, torch.Size)


@dataclass(frozen=True, slots=True)
class Course:
    """A traced frame, and its open sizes with those of its example."""

    frame: Frame
    open: Open

    def causes(self) -> dict[str, str]:
        """The user's lines that decided by open sizes, as far as they are known."""
        found = {}
        for text, guard in self.open.guards().items():
            line, _ = frames_of(guard)
            # torch cuts the beginning of a path off, and two letters where nothing is common to all
            place = line.rpartition("# ")[2].rpartition("/")[2] if line else ""
            if place:
                found[text] = f"by {place}"
        return found

    def is_like(self, other: "Course") -> bool:
        """Whether another trace does the same, and has decided the same."""
        same = self.lines(self.open.hints) == other.lines(self.open.hints)
        return same and self.open.guards().keys() == other.open.guards().keys()

    def lines(self, sizes: Mapping[str, int]) -> list[Any]:
        """What the graph does for given sizes, without names."""
        return _lines(self.frame.graph, self, sizes)


def find_guards(
    course: Course, retrace: Callable[[Mapping[str, int]], Course]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The guards of a trace; one against a size of 0 or 1 that changes nothing allows it.

    Also what decided by some of them, and where.
    """
    known: dict[frozenset[tuple[str, int]], Course | None] = {}

    def trace_small(fixed: frozenset[tuple[str, int]]) -> Course | None:
        """The trace with some sizes 0 or 1, if it takes the same course."""
        if fixed not in known:
            sizes = {**course.open.hints, **dict(fixed)}
            try:
                other = retrace(dict(fixed))
                known[fixed] = other if other.lines(sizes) == course.lines(sizes) else None
            except (IngotError, ValueError, KeyError, TypeError, ZeroDivisionError):
                known[fixed] = None
        return known[fixed]

    def collect(now: Course, fixed: frozenset[tuple[str, int]]) -> list[str]:
        guards = [*now.open.guards()]
        # of what is empty nothing more is asked: each size may be 0 alone
        free = set() if 0 in dict(fixed).values() else set(course.open.hints) - set(dict(fixed))
        for name, size in product(sorted(free), (1, 0)):
            sizes = {**now.open.hints, name: size}
            false = [g for g in guards if not holds(g, sizes)]
            small = fixed | {(name, size)}
            other = trace_small(small) if false else None
            if other is None:
                continue
            guards = [f"({g}) or {name} == {size}" if g in false else g for g in guards]
            guards = [g for g in guards if g != f"({name} != {size}) or {name} == {size}"]
            guards += [f"{name} != {size} or ({g})" for g in collect(other, small)]
        return guards

    found = tuple(collect(course, frozenset()))
    guards, causes = find_excluded(course.frame.graph, "example_value", course.open, found)
    return guards, course.causes() | causes


def _lines(graph: GraphModule, course: Course, sizes: Mapping[str, int]) -> list[Any]:
    """The operations of a graph in turn, with the numbers of sizes in the place of symbols."""
    places: dict[Node, Any] = {}

    def named(node: Node) -> Any:
        value = node.meta.get("example_value")
        return _number(course, value, sizes) if isinstance(value, NUMBERS) else places[node]

    lines: list[Any] = []
    for node in graph.graph.nodes:
        places[node] = ("node", len(lines))
        target: Any = node.target
        if node.op == "placeholder":
            places[node] = ("input", course.frame.sources.get(node, node.name))
        elif not isinstance(node.meta.get("example_value"), NUMBERS):
            if node.op == "get_attr":
                body = getattr(graph, str(target))
                inner = isinstance(body, GraphModule)
                target = _lines(body, course, sizes) if inner else repr(body)
            lines.append((node.op, target, map_arg((node.args, node.kwargs), named)))
    return lines


def _number(course: Course, value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, torch.Size):
        return tuple(_number(course, v, sizes) for v in value)
    return evaluated(course.open.text(value), sizes)


def find_excluded(
    graph: GraphModule, meta: str, shapes: Open, guards: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The guards, and which of the sizes 0 and 1 would make other shapes than the open trace has.

    A size of 1 is squeezed and broadcast, and some operations refuse 0 or 1: these are the causes.
    `meta` is where nodes keep their fake value.
    """
    causes: dict[str, str] = {}
    for name, size in product(shapes.hints, (0, 1)):
        sizes = {**shapes.hints, name: size}
        if not all(holds(guard, sizes) for guard in guards):
            continue
        trial = _Shapes(graph, meta, shapes.text, sizes)
        if not trial.hold():
            guards = (*guards, f"{name} != {size}")
            causes[guards[-1]] = trial.cause
    return guards, causes


def find_inplace(frame: Frame) -> list[int]:
    """Which of the tensors that a frame's graph takes are written to in place."""
    given = _Shapes(frame.graph, "example_value", number_of, {}).run_fakes()
    return [i for i, x in enumerate(given) if isinstance(x, Tensor) and writes_of(x)]


class _Shapes(Interpreter):
    """Runs a graph on fake tensors of given sizes and compares the shapes."""

    def __init__(
        self, graph: GraphModule, meta: str, text: Callable[[Any], Size], sizes: Mapping[str, int]
    ) -> None:
        super().__init__(graph)
        self.meta, self.text, self.sizes = meta, text, sizes
        self.cause = ""

    def hold(self) -> bool:
        """Whether all shapes are as expected, and nothing is refused."""
        try:
            self.run_fakes()
        except Exception:
            return False
        return True

    def run_fakes(self) -> list[Any]:
        """Run the graph; what it was given."""
        places = self.module.graph.find_nodes(op="placeholder")  # pyright: ignore
        with torch.no_grad(), fake_mode(), silence_fakes():
            given = [self.blank(node.meta[self.meta]) for node in places]
            self.run(*given)
        return given

    def run_node(self, n: Node) -> Any:
        """Compare one result."""
        self.cause = f"by {print_place(n)}"
        found, expected = super().run_node(n), n.meta.get(self.meta)
        if isinstance(found, Tensor) and isinstance(expected, Tensor):
            assert tuple(found.shape) == tuple(map(self.number, expected.shape))
        return found

    def number(self, size: Any) -> int:
        """A size of the open trace for the given ones."""
        return evaluated(self.text(size), self.sizes)

    def blank(self, value: Any) -> Any:
        """An input."""
        if not isinstance(value, Tensor):
            return self.number(value)
        return blank([*map(self.number, value.shape)], order_of(value), value.dtype, value.device)
