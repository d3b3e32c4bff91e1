"""Which sizes a captured graph is right for: what was decided by them, what 0 and 1 change.

Torch's own code asks whether a size is 1 to choose strides; the course of the trace tells whether
anything came of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg

from ingot.errors import IngotError
from ingot.graphs.layout import blank, order_of
from ingot.graphs.sizes import Size, evaluated, print_size
from ingot.graphs.torch_private import Frame, expression_of, fake_mode, guards_of

__all__ = ["Course", "find_excluded", "find_guards"]

NUMBERS = (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat, torch.Size)


@dataclass(frozen=True, slots=True)
class Course:
    """A traced frame, the names of its symbols, and the sizes of its example."""

    frame: Frame
    symbols: Mapping[Any, Any]
    sizes: Mapping[str, int]

    def text(self, size: Any) -> Size:
        """A size in the names of the open ones."""
        if isinstance(size, int | float):
            return size  # pyright: ignore[reportReturnType]
        return print_size(expression_of(size).xreplace(self.symbols))

    def guards(self) -> tuple[str, ...]:
        """What was decided by open sizes."""
        found = [g.expr.xreplace(self.symbols) for g in guards_of(self.frame.mode)]
        return tuple(dict.fromkeys(str(print_size(e)) for e in found if e.free_symbols))

    def lines(self, sizes: Mapping[str, int]) -> list[Any]:
        """What the graph does for given sizes, without names."""
        return _lines(self.frame.graph, self, sizes)


def find_guards(course: Course, retrace: Callable[[Mapping[str, int]], Course]) -> tuple[str, ...]:
    """The guards of a trace; one against a size of 1 that changes nothing allows it."""
    known: dict[frozenset[str], Course | None] = {}

    def trace_ones(names: frozenset[str]) -> Course | None:
        """The trace with some sizes 1, if it takes the same course."""
        if names not in known:
            sizes = {**course.sizes, **dict.fromkeys(names, 1)}
            try:
                other = retrace(dict.fromkeys(names, 1))
                known[names] = other if other.lines(sizes) == course.lines(sizes) else None
            except (IngotError, ValueError, KeyError, TypeError):
                known[names] = None
        return known[names]

    def collect(now: Course, ones: frozenset[str]) -> list[str]:
        guards = [*now.guards()]
        for name in sorted(set(course.sizes) - ones):
            sizes = {**now.sizes, name: 1}
            false = [g for g in guards if not evaluated(g, sizes)]
            other = trace_ones(ones | {name}) if false else None
            if other is None:
                continue
            guards = [f"({g}) or {name} == 1" if g in false else g for g in guards]
            guards = [g for g in guards if g != f"({name} != 1) or {name} == 1"]
            guards += [f"{name} != 1 or ({g})" for g in collect(other, ones | {name})]
        return guards

    found = tuple(collect(course, frozenset()))
    return find_excluded(course.frame.graph, "example_value", course.text, course.sizes, found)


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
    return evaluated(course.text(value), sizes)


def find_excluded(
    graph: GraphModule, meta: str, text: Callable[[Any], Size], hints: Mapping[str, int],
    guards: tuple[str, ...],
) -> tuple[str, ...]:  # fmt: skip
    """The guards, and which of the sizes 0 and 1 would make other shapes than the open trace has.

    A size of 1 is squeezed and broadcast, and some operations refuse 0 or 1. `meta` is where nodes
    keep their fake value, `text` writes a size of one in the names of the open sizes.
    """
    for name in hints:
        for size in (0, 1):
            sizes = {**hints, name: size}
            allowed = all(evaluated(guard, sizes) for guard in guards)
            if allowed and not _Shapes(graph, meta, text, sizes).hold():
                guards = (*guards, f"{name} != {size}")
    return guards


class _Shapes(Interpreter):
    """Runs a graph on fake tensors of given sizes and compares the shapes."""

    def __init__(
        self, graph: GraphModule, meta: str, text: Callable[[Any], Size], sizes: Mapping[str, int]
    ) -> None:
        super().__init__(graph)
        self.meta, self.text, self.sizes = meta, text, sizes

    def hold(self) -> bool:
        """Whether all shapes are as expected, and nothing is refused."""
        places = self.module.graph.find_nodes(op="placeholder")  # pyright: ignore
        try:
            with torch.no_grad(), fake_mode():
                self.run(*(self.blank(node.meta[self.meta]) for node in places))
        except Exception:
            return False
        return True

    def run_node(self, n: Node) -> Any:
        """Compare one result."""
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
