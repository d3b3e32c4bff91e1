"""Lines evaluated on NumPy arrays, with one dimension for every axis and points last."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ingot.program.builder import Axis, Node, Space, sort_lines
from ingot.program.operations import operation
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["ArrayLayout", "NumpyArrays"]


class ArrayLayout:
    """Which dimension each axis in use is; points come last.

    more: axes of variables, which need not be those of any line.
    """

    def __init__(self, space: Space, lines: Iterable[Node], more: Iterable[Axis] = ()) -> None:
        self.space = space
        axes = {a.key for a in (*_find_axes(lines), *more)}
        rank = {name: i for i, name in enumerate(space.extents)}
        self.keys = sorted(axes, key=lambda k: (k[1], rank[k[0]]))

    def dim(self, axis: Axis) -> int:
        """The dimension of an axis, counted from the right."""
        return self.keys.index(axis.key) - len(self.keys) - 1

    def shape(self, axes: Sequence[Axis], points: int) -> list[int]:
        """The sizes of all dimensions of an array on some axes."""
        sizes = {a.key: self.space.extent(a) for a in axes}
        return [*(sizes.get(k, 1) for k in self.keys), points]

    def order(self, axes: Sequence[Axis]) -> list[int]:
        """The positions of axes in the order of their dimensions."""
        return sorted(range(len(axes)), key=lambda i: self.keys.index(axes[i].key))


def _find_axes(lines: Iterable[Node]) -> Iterator[Axis]:
    """The axes of lines, and of those that operations have inside."""
    for node in lines:
        yield from node.axes
        roots, placeholders = operation(node.op).inside(node)
        if roots:
            yield from _find_axes(sort_lines((*roots, *placeholders)))


class NumpyArrays:
    """Lines as NumPy arrays; what is given and what solves yield is asked of a source."""

    def __init__(self, layout: ArrayLayout, source: Any) -> None:
        self.layout = layout
        self.source = source

    def value(self, node: Node, args: Sequence[Any]) -> Any:
        """A line, given its operands."""
        row = ELEMENTWISE.get(node.op)
        if row is not None:
            return np.asarray(row.numpy(*args), dtype=np.float64)
        rule = operation(node.op)
        if rule.is_placeholder:
            return self.source(node)
        return rule.evaluate(self, self.layout.space, node, args)

    def fill(self, number: float) -> np.ndarray:
        """One number everywhere."""
        return np.full(self.layout.shape((), 1), number)

    def table(self, values: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
        """Numbers along axes."""
        return values.transpose(self.layout.order(axes)).reshape(self.layout.shape(axes, 1))

    def epsilon(self) -> np.ndarray:
        """That of float64."""
        return self.fill(float(np.finfo(np.float64).eps))

    def spell(
        self, torch: str, numpy: Any, args: Sequence[np.ndarray], axis: Axis | None = None
    ) -> np.ndarray:
        """NumPy's function."""
        return numpy(*args) if axis is None else numpy(*args, self.layout.dim(axis))

    def block(self, node: Node, args: Sequence[Any]) -> Any:
        """What the source says."""
        return self.source(node)

    def replay(self, roots: Sequence[Node], known: Mapping[int, Any]) -> list[Any]:
        """The lines inside an operation, given those they are over."""
        values = dict(known)
        for node in sort_lines(roots):
            if node.id not in values:
                values[node.id] = self.value(node, [values[a.id] for a in node.args])
        return [values[r.id] for r in roots]
