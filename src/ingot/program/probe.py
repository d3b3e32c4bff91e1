"""Numbers at probe states: where a pivot may vanish, told without running a driver."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ingot.model import lag
from ingot.program.arrays import ArrayLayout, NumpyArrays
from ingot.program.builder import Axis, Node, Space, sort_lines
from ingot.program.implicit import Solve
from ingot.program.operations import operation
from ingot.program.program import Program
from ingot.program.schedule import schedule_lines
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["Probes"]

SCALES = (1e-6, 1e-2, 1.0, 30.0)
"""Of strains, of normalised and of plain stresses: what unknowns of material models range over."""
STATES_EACH = 4
"""Random states of each scale: at one alone an entry may vanish by chance."""
MAX_SAMPLED_ENTRIES = 3
"""Of an axis that unknowns lie on, so that the time to find an order does not follow its extent."""


class Probes:
    """States at which lines are evaluated: all zero, and random ones at several scales."""

    def __init__(
        self, layout: ArrayLayout, clocks: Iterable[str], known: Mapping[int, Any] | None = None
    ) -> None:
        self.count = 1 + STATES_EACH * len(SCALES)
        self._scale = np.repeat([0.0, *SCALES], [1, *(STATES_EACH for _ in SCALES)])
        self._clocks = set(clocks)
        self._arrays = NumpyArrays(layout, self._draw)
        self._known: dict[int, Any] = dict(known or {})

    @staticmethod
    def of_program(program: Program) -> "Probes":
        """The states of a program's lines, and of those of its solves once they are entered."""
        lines = [*program.lines, *(n for s in program.solves for n in (*s.columns, *s.given))]
        lines += [n for s in program.solves for n in sort_lines(s.rows)]
        on_axes = any(c.axes for s in program.solves for c in s.columns)
        space = _Sampled(program) if on_axes else program
        return Probes(ArrayLayout(space, lines), {c for s in program.solves for c in s.clocks})

    def enter(self, node: Node, solve: Solve) -> "Probes":
        """The states of a solve's own lines, at which its arguments are what the lines around it
        make of their inputs; solve: the node's own, or one that reads the same.
        """
        given = node.args[len(solve.columns) :]
        held = {g.id: self.values(a) for g, a in zip(solve.given, given, strict=True)}
        return Probes(self._arrays.layout, (), held)

    def fork(self) -> "Probes":
        """The same states for lines that continue these in a builder of their own."""
        return Probes(self._arrays.layout, self._clocks, self._known)

    def numbers(self, node: Node, axes: Sequence[Axis] = ()) -> np.ndarray:
        """The values of a line at all states and entries of axes, flat."""
        shape = self._arrays.layout.shape(axes, self.count)
        return np.broadcast_to(self.values(node), shape).ravel()

    def values(self, node: Node) -> np.ndarray:
        """The values of a line, one dimension an axis, states last."""
        if node.id not in self._known:
            with np.errstate(all="ignore"):
                for line in schedule_lines([node], self._known):
                    args = [self._known[a.id] for a in _drop_nan(line)]
                    self._known[line.id] = (
                        args[0] if len(args) < len(line.args) else self._arrays.value(line, args)
                    )
        return self._known[node.id]

    def add_up(self, numbers: np.ndarray, over: Iterable[Axis], axes: Sequence[Axis]) -> np.ndarray:
        """Numbers on axes summed over some of them."""
        layout = self._arrays.layout
        values = numbers.reshape(layout.shape(axes, self.count))
        total = values.sum(axis=tuple(layout.dim(a) for a in over), keepdims=True)
        return np.broadcast_to(total, values.shape).ravel()

    def _draw(self, node: Node) -> Any:
        """Random numbers of the state's scale; time runs forward."""
        if operation(node.op).is_block:
            return _Items(self, node)
        if node.op == "input" and lag(node.attr[0])[0] in self._clocks:
            step = np.where(self._scale > 0, self._scale, 1.0)
            shape = self._arrays.layout.shape(node.axes, self.count)
            times = step * self._random(repr(node.attr)).uniform(0.5, 1.5, shape)
            return times if lag(node.attr[0])[1] == 0 else np.zeros(shape)
        return self.draw(node, repr((node.op, node.attr)))

    def draw(self, node: Node, seed: str) -> np.ndarray:
        """Normal numbers that depend on nothing but a seed."""
        shape = self._arrays.layout.shape(node.axes, self.count)
        return self._scale * self._random(seed).standard_normal(shape)

    def _random(self, seed: str) -> np.random.Generator:
        told = hashlib.blake2b(seed.encode(), digest_size=6).digest()
        return np.random.default_rng(int.from_bytes(told))


def _drop_nan(line: Node) -> Sequence[Node]:
    """What a line reads: of a choice of NaN, which tells states that no model has, the other
    branch alone, as its equations tell of pivots at such states too.
    """
    row = ELEMENTWISE.get(line.op)
    if row is None or not row.is_selection:
        return line.args
    branches = [a for a in line.args[1:] if not (a.op == "const" and math.isnan(a.attr))]
    return branches if len(branches) == 1 else line.args


class _Sampled(Space):
    """A space in which no axis has many entries: a few tell where a pivot may vanish."""

    def __init__(self, whole: Space) -> None:
        self.whole = whole
        self.extents = {n: min(e, MAX_SAMPLED_ENTRIES) for n, e in whole.extents.items()}

    def values(self, node: Node) -> np.ndarray:
        """The first numbers along every axis."""
        return self.whole.values(node)[tuple(slice(self.extent(a)) for a in node.axes)]


class _Items:
    """The results of a solve or of a linear system, drawn as they are asked for."""

    def __init__(self, probes: Probes, block: Node) -> None:
        self.probes = probes
        self.solve: Solve = block.attr if block.op == "solve" else block.attr.solve

    def __getitem__(self, index: Any) -> np.ndarray:
        slot = index if isinstance(index, int) else index[0]
        return self.probes.draw(self.solve.columns[slot], repr((self.solve.name, index)))
