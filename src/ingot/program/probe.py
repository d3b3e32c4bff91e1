"""Numbers at probe states: where a pivot may vanish, told without running a driver."""

import numpy as np

from ingot.model import lag
from ingot.program.graph import FOLDS, Node
from ingot.program.program import Solve
from ingot.program.schedule import scheduled

__all__ = ["Probes"]

SCALES = (1e-6, 1e-2, 1.0, 30.0)
EACH = 4


class Probes:
    """States at which nodes are evaluated: all zero, and random ones at several scales."""

    def __init__(self, solve: Solve) -> None:
        self.count = 1 + EACH * len(SCALES)
        self._scale = np.repeat([0.0, *SCALES], [1, *(EACH for _ in SCALES)])
        self._clocks = set(solve.clocks)
        self._axes = list(solve.rows[0].graph.extents)
        self._known: dict[int, np.ndarray] = {}

    def numbers(self, node: Node) -> np.ndarray:
        """The values of a node without axes at all states."""
        if node.id not in self._known:
            with np.errstate(all="ignore"):
                for line in scheduled([node], self._known):
                    self._known[line.id] = self._value(line)
        return np.broadcast_to(self._known[node.id].ravel(), self.count)

    def _value(self, node: Node) -> np.ndarray:
        if node.op == "const":
            return np.full(self._shape(node, 1), node.attr)
        if node.op == "table":
            return node.graph.values(node).reshape(self._shape(node, 1))
        if node.op in ("input", "parameter", "unknown", "item", "solve", "linear"):
            return self._free(node)
        args = [self._known[a.id] for a in node.args]
        if node.op == "sum":
            return args[0].sum(axis=self._axes.index(node.attr.name), keepdims=True)
        if node.op in ("window", "pad"):
            return self._shifted(node, args[0])
        return np.asarray(FOLDS[node.op](*args), dtype=np.float64)

    def _shape(self, node: Node, count: int) -> list[int]:
        """A dimension for every axis of the graph, the states last."""
        sizes = {a.name: node.graph.extent(a) for a in node.axes}
        return [*(sizes.get(name, 1) for name in self._axes), count]

    def _shifted(self, node: Node, x: np.ndarray) -> np.ndarray:
        held, first = node.attr
        at = self._axes.index(held.name)
        now = next(a for a in node.axes if a.name == held.name)
        if node.op == "window":
            return np.take(x, range(first, first + node.graph.extent(now)), axis=at)
        width = [(0, 0)] * x.ndim
        width[at] = (first, now.offset - held.offset - first)
        return np.pad(x, width)

    def _free(self, node: Node) -> np.ndarray:
        """Random numbers of the state's scale; time runs forward."""
        random = np.random.default_rng([node.id, 17])
        if node.op == "input" and lag(node.attr[0])[0] in self._clocks:
            step = np.where(self._scale > 0, self._scale, 1.0) * random.uniform(
                0.5, 1.5, self.count
            )
            one = step if lag(node.attr[0])[1] == 0 else np.zeros(self.count)
            return one.reshape(self._shape(node, self.count))
        return self._scale * random.standard_normal(self._shape(node, self.count))
