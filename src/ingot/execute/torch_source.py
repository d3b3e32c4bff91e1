"""Lines of a program -> the text of a torch function on (components, batch) tensors.

Components are split, axes are dimensions left of the batch; constants on axes lie in `tables`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from ingot.program import Axis, Node, Variable, operation, sort_lines
from ingot.program.arrays import ArrayLayout
from ingot.types.elementwise import ELEMENTWISE, Elementwise

__all__ = ["PrintedGraph", "TorchPrinter"]


@dataclass(frozen=True, slots=True)
class PrintedGraph:
    """A torch function as text: `graph(tables, index, *arguments)`.

    arguments: names and numbers of rows of (rows, batch) arrays, 0 for a (batch,) array;
    operations: how many lines it has.
    """

    arguments: tuple[tuple[str, int], ...]
    source: str
    tables: tuple[float, ...]
    index: tuple[int, ...]
    operations: int

    def __str__(self) -> str:
        names = ", ".join(f"{n} ({rows})" for n, rows in self.arguments)
        return f"# {names}; {self.operations} operations\n{self.source}"


class TorchPrinter:
    """A torch function in the writing: each node once; it knows which differ from point to point.

    It is the `Arrays` of structural operations: an array is the name of its line.
    arguments: of the function, by what they are called in it; lines: those that it will hold.
    """

    def __init__(
        self, layout: ArrayLayout, arguments: Mapping[str, tuple[str, int]],
        lines: Sequence[Node], dtype: str,
    ) -> None:  # fmt: skip
        self.layout, self.space = layout, layout.space
        self.arguments, self.lines = arguments, lines
        self.needed = {n.id for n in lines}
        self.dtype = f"torch.{dtype}"
        self.rows: list[str] = []
        self.tables: list[float] = []
        self.index: list[int] = []
        self.fresh = count()
        self.names: dict[int, str] = {}
        self.varies: set[int] = set()
        self.shared: dict[str, str] = {}
        self.write(f"{next(iter(arguments))}.shape[-1]", "batch")

    def write(self, expression: str, name: str | None = None) -> str:
        """One more line; what it computes is known by the returned name."""
        name = f"v{next(self.fresh)}" if name is None else name
        self.rows.append(f"{name} = {expression}")
        return name

    def write_constant(self, values: np.ndarray, shape: Sequence[int]) -> str:
        """Numbers of a shape, taken from `tables`."""
        at = len(self.tables)
        self.tables += values.ravel().tolist()
        return self.write(f"tables[{at}:{len(self.tables)}].view({_join(shape)})")

    def write_index(self, values: np.ndarray) -> str:
        """Whole numbers, flat, taken from `index`."""
        at = len(self.index)
        self.index += values.ravel().tolist()
        return self.write(f"index[{at}:{len(self.index)}]")

    def sizes(self, axes: Sequence[Axis]) -> list[int]:
        """The sizes of all dimensions left of the batch."""
        return self.layout.shape(axes, 1)[:-1]

    def own_sizes(self, axes: Sequence[Axis]) -> list[int]:
        """Those from the first axis on: operands align from the right."""
        order = self.layout.order(axes)
        return self.sizes(axes)[self.layout.dim(axes[order[0]]) + 1 :] if axes else []

    def finish(self, gives: Sequence[str]) -> PrintedGraph:
        """The function that returns these."""
        head = f"def graph(tables, index, {', '.join(self.arguments)}):"
        body = "\n".join(f"    {row}" for row in self.rows)
        source = f"{head}\n{body}\n    return ({', '.join(gives)},)\n"
        numbers = tuple(self.tables), tuple(self.index)
        return PrintedGraph(tuple(self.arguments.values()), source, *numbers, len(self.rows))

    def join(self, parts: Sequence[str]) -> str:
        """Rows laid end to end."""
        return parts[0] if len(parts) == 1 else self.write(f"torch.cat([{_join(parts)}])")

    def forget(self, ids: set[int]) -> "TorchPrinter":
        """A printer into the same function that knows all but some nodes."""
        other = copy(self)
        other.names = {i: n for i, n in self.names.items() if i not in ids}
        other.varies = self.varies - ids
        return other

    def bind(self, variables: Sequence[Variable], argument: str) -> None:
        """Take the components that are needed from a (rows, batch) array of all variables."""
        first = 0
        for v in variables:
            self._bind(v, argument, first)
            first += len(v.nodes) * self.space.size(v.axes)

    def _bind(self, variable: Variable, argument: str, first: int) -> None:
        sizes = [self.space.extent(a) for a in variable.axes]
        count = len(variable.nodes)
        order = self.layout.order(variable.axes)
        block = None
        for i, node in enumerate(variable.nodes):
            if node.id not in self.needed or node.id in self.names:
                continue
            if not sizes:
                self.names[node.id] = self.write(f"{argument}[{first + i}]")
            else:
                if block is None:
                    rows = f"{argument}[{first}:{first + math.prod(sizes) * count}]"
                    block = self.write(f"{rows}.unflatten(0, ({_join([*sizes, count])}))")
                part = f"{block}.select({len(sizes)}, {i})"
                if order != sorted(order):
                    part += f".permute({_join([*order, len(sizes)])})"
                full = self.own_sizes(variable.axes)
                if full != [sizes[i] for i in order]:
                    part += f".reshape({_join([*full, -1])})"
                self.names[node.id] = self.write(part)
            self.varies.add(node.id)

    def write_lines(self, nodes: Iterable[Node]) -> None:
        """Write nodes in an order in which their arguments come first."""
        for node in nodes:
            if node.id not in self.names and node.op != "const":
                row = ELEMENTWISE.get(node.op)
                if row is not None:
                    self.names[node.id] = self._apply(row, node.args)
                else:
                    args = [self.read_tensor(a) for a in node.args]
                    self.names[node.id] = operation(node.op).evaluate(self, self.space, node, args)
                # of a block's results some may be the same at all points
                varies = any(a.id in self.varies for a in node.args)
                if varies and not operation(node.op).is_block:
                    self.varies.add(node.id)

    def _apply(self, row: Elementwise, args: Sequence[Node]) -> str:
        # functions take tensors alone; a sign takes numbers too, which torch folds into it
        number = self.read_tensor if "torch." in row.torch else self.read_number
        operands = [
            self.read_flag(a) if i in row.takes_conditions else number(a)
            for i, a in enumerate(args)
        ]
        return self.write(row.torch.format(*operands))

    # operands

    def read_number(self, node: Node) -> str:
        """A node as an operand of arithmetic."""
        if node.op == "const":
            return _write_literal(node.attr)
        name = self.names[node.id]
        return self._share(f"{name}.to({self.dtype})") if node.is_condition else name

    def read_tensor(self, node: Node) -> str:
        """A node as a tensor, of the precision also where it is a plain number."""
        return self.fill(node.attr) if node.op == "const" else self.read_number(node)

    def read_flag(self, node: Node) -> str:
        """A node as a condition."""
        return (
            self.names[node.id]
            if node.is_condition
            else self._share(f"{self.read_tensor(node)} != 0")
        )

    def _share(self, expression: str) -> str:
        """The name of an expression that is written once."""
        if expression not in self.shared:
            self.shared[expression] = self.write(expression)
        return self.shared[expression]

    # what structural operations are evaluated by

    def fill(self, number: float) -> str:
        """One number everywhere; what single precision cannot hold is infinite, as in C."""
        if self.dtype == "torch.float32":
            with np.errstate(over="ignore"):
                number = float(np.float32(number))
        return self._share(f"tables.new_full((1,), {_write_literal(number)})")

    def table(self, values: np.ndarray, axes: Sequence[Axis]) -> str:
        """Numbers along axes."""
        ordered = values.transpose(self.layout.order(axes))
        return self.write_constant(ordered, [*self.own_sizes(axes), 1])

    def epsilon(self) -> str:
        """That of the precision."""
        return self._share(f"tables.new_full((1,), torch.finfo({self.dtype}).eps)")

    def spell(self, torch: str, numpy: Any, args: Sequence[str], axis: Axis | None = None) -> str:
        """Torch's function."""
        dim = None if axis is None else self.layout.dim(axis)
        return self.write(torch.format(*args, dim=dim))

    def block(self, node: Node, args: Sequence[str]) -> str:
        """Refuse: solves stand between graphs, never inside one."""
        raise AssertionError(f"'{node.attr}' stands inside a graph")

    def replay(self, roots: Sequence[Node], known: Mapping[int, str]) -> list[str]:
        """The lines inside an operation, given the names of those they are over."""
        inner = self.forget(set(self.names))
        inner.names.update(known)
        inner.write_lines(sort_lines(roots))
        return [inner.read_tensor(r) for r in roots]

    # results

    def spread(self, node: Node, axes: Sequence[Axis], batch: str = "batch") -> str:
        """A node on all of the axes and the batch, also where it does not vary along them."""
        name = self.read_tensor(node)
        if node.id not in self.varies or set(node.axes) != set(axes):
            name = self.write(f"{name}.expand({_join([*self.sizes(axes), batch])})")
        order = self.layout.order(axes)
        if self.layout.keys:
            # sums leave dimensions of one behind
            wanted = [self.space.extent(axes[i]) for i in order]
            name = self.write(f"{name}.reshape({_join([*wanted, batch])})")
        if order != sorted(order):
            back = [order.index(i) for i in range(len(order))]
            name = self.write(f"{name}.permute({_join([*back, len(order)])})")
        return name

    def write_stack(
        self, nodes: Sequence[Node], axes: Sequence[Axis], seed: Axis | None = None,
        batch: str = "batch",
    ) -> str:  # fmt: skip
        """Nodes as (entries of the axes x nodes, entries of a seed axis if there is one, batch)."""
        over = (*axes, seed) if seed is not None else axes
        tail = [self.space.extent(seed), batch] if seed is not None else [batch]
        parts = [self.spread(n, over, batch) for n in nodes]
        entries = self.space.size(axes)
        if entries == 1:
            whole = _join([len(nodes), *tail])
            return self.write(f"torch.stack([{_join(parts)}]).reshape({whole})")
        flat = [self.write(f"{n}.reshape({_join([entries, *tail])})") for n in parts]
        whole = _join([entries * len(nodes), *tail])
        return self.write(f"torch.stack([{_join(flat)}], 1).reshape({whole})")


def _write_literal(number: float) -> str:
    if math.isfinite(number):
        return repr(number) if number >= 0 else f"({number!r})"
    return f"float('{number}')"


def _join(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
