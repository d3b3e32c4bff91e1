"""Lines of a program -> the text of a torch function on (components, batch) tensors.

Components are split, axes are dimensions left of the batch; constants on axes lie in `tables`.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ingot.program.graph import Axis, Graph, Node
from ingot.program.program import Variable

__all__ = ["Function", "Printer"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
}  # fmt: skip
_FLAGS = {"lt", "le", "gt", "ge", "eq", "and", "or", "not"}
_LOGICAL = {"and": "torch.logical_and", "or": "torch.logical_or", "not": "torch.logical_not"}


class Function:
    """A torch function in the writing: its arguments, lines and constants."""

    def __init__(self, graph: Graph, arguments: Sequence[str], axes: Iterable[Axis]) -> None:
        self.graph = graph
        self.arguments = tuple(arguments)
        self.rows: list[str] = []
        self.tables: list[float] = []
        self.index: list[int] = []
        self.fresh = 0
        names = {a.name for a in axes}
        self.axes = [name for name in graph.extents if name in names]
        self.write(f"{self.arguments[0]}.shape[-1]", "batch")

    def write(self, expression: str, name: str | None = None) -> str:
        """One more line; what it computes is known by the returned name."""
        if name is None:
            name = f"v{self.fresh}"
            self.fresh += 1
        self.rows.append(f"{name} = {expression}")
        return name

    def constant(self, values: np.ndarray, shape: Sequence[int]) -> str:
        """Numbers of a shape, taken from `tables`."""
        at = len(self.tables)
        self.tables += values.ravel().tolist()
        return self.write(f"tables[{at}:{len(self.tables)}].view({_listed(shape)})")

    def places(self, values: np.ndarray) -> str:
        """Whole numbers, flat, taken from `index`."""
        at = len(self.index)
        self.index += values.ravel().tolist()
        return self.write(f"index[{at}:{len(self.index)}]")

    def dim(self, axis: str) -> int:
        """The dimension of an axis, counted from the right."""
        return self.axes.index(axis) - len(self.axes) - 1

    def shape(self, axes: Sequence[Axis]) -> list[int]:
        """The sizes of all dimensions left of the batch."""
        sizes = {a.name: self.graph.extent(a) for a in axes}
        return [sizes.get(name, 1) for name in self.axes]

    def text(self, gives: Sequence[str]) -> str:
        """The function that returns these."""
        head = f"def graph(tables, index, {', '.join(self.arguments)}):"
        body = "\n".join(f"    {row}" for row in self.rows)
        return f"{head}\n{body}\n    return ({', '.join(gives)},)\n"


class Printer:
    """Writes nodes into a function, each once; knows which of them differ from point to point."""

    def __init__(self, function: Function, dtype: str) -> None:
        self.to = function
        self.dtype = f"torch.{dtype}"
        self.names: dict[int, str] = {}
        self.varies: set[int] = set()
        self.casts: dict[str, str] = {}

    def without(self, ids: set[int]) -> "Printer":
        """A printer into the same function that knows all but some nodes."""
        other = Printer(self.to, self.dtype.removeprefix("torch."))
        other.names = {i: n for i, n in self.names.items() if i not in ids}
        other.varies = self.varies - ids
        return other

    def bind(self, variable: Variable, argument: str, needed: set[int], first: int = 0) -> None:
        """Take the components of a variable that are needed from rows of a (rows, batch) array."""
        sizes = [self.to.graph.extent(a) for a in variable.axes]
        count = len(variable.nodes)
        order = sorted(range(len(sizes)), key=lambda i: self._rank(variable.axes[i]))
        block = None
        for i, node in enumerate(variable.nodes):
            if node.id not in needed or node.id in self.names:
                continue
            if not sizes:
                self.names[node.id] = self.to.write(f"{argument}[{first + i}]")
            else:
                if block is None:
                    rows = f"{argument}[{first}:{first + math.prod(sizes) * count}]"
                    block = self.to.write(f"{rows}.unflatten(0, ({_listed([*sizes, count])}))")
                part = f"{block}.select({len(sizes)}, {i})"
                if order != sorted(order):
                    part += f".permute({_listed([*order, len(sizes)])})"
                full = self._trimmed(self.to.shape(variable.axes))
                if full != [sizes[i] for i in order]:
                    part += f".reshape({_listed([*full, -1])})"
                self.names[node.id] = self.to.write(part)
            self.varies.add(node.id)

    def _rank(self, axis: Axis) -> int:
        return self.to.axes.index(axis.name)

    def _trimmed(self, shape: list[int]) -> list[int]:
        """Without leading ones: operands align from the right."""
        while shape and shape[0] == 1:
            shape = shape[1:]
        return shape

    def lines(self, nodes: Iterable[Node]) -> None:
        """Write nodes in an order in which their arguments come first."""
        for node in nodes:
            if node.id not in self.names and node.op != "const":
                self.names[node.id] = self._line(node)
                if any(a.id in self.varies for a in node.args):
                    self.varies.add(node.id)

    def _line(self, node: Node) -> str:
        to = self.to
        if node.op == "table":
            order = sorted(range(len(node.axes)), key=lambda i: self._rank(node.axes[i]))
            values = to.graph.values(node).transpose(order)
            return to.constant(values, [*self._trimmed(to.shape(node.axes)), 1])
        if node.op == "eye":
            n = to.graph.extent(node.axes[0])
            return to.constant(np.eye(n), [*self._trimmed(to.shape(node.axes)), 1])
        if node.op == "sum":
            return to.write(
                f"{self.number(node.args[0])}.sum({to.dim(node.attr.name)}, keepdim=True)"
            )
        if node.op in ("window", "pad"):
            return self._shifted(node)
        if node.op in _LOGICAL:
            return to.write(f"{_LOGICAL[node.op]}({', '.join(map(self.flag, node.args))})")
        if node.op == "where":
            return self._where(node)
        args = [self.number(a) for a in node.args]
        if node.op in _INFIX:
            return to.write(f"{args[0]} {_INFIX[node.op]} {args[1]}")
        if node.op == "neg":
            return to.write(f"-{args[0]}")
        return to.write(f"torch.{node.op}({', '.join(args)})")

    def _where(self, node: Node) -> str:
        condition, a, b = node.args
        if a.is_constant(1.0) and b.is_constant(0.0):
            return self.to.write(f"{self.flag(condition)}.to({self.dtype})")
        one = self.number(a)
        if a.op == b.op == "const":
            # between two numbers torch would choose its default precision
            one = self.to.constant(np.asarray(a.attr), [1])
        return self.to.write(f"torch.where({self.flag(condition)}, {one}, {self.number(b)})")

    def _shifted(self, node: Node) -> str:
        held, first = node.attr
        dim = self.to.dim(held.name)
        now = next(a for a in node.axes if a.name == held.name)
        size, whole = self.to.graph.extent(now), self.to.graph.extent(held)
        x = self.number(node.args[0])
        if node.op == "window":
            return self.to.write(f"{x}.narrow({dim}, {first}, {size})")
        width = [0, 0] * (-dim - 1) + [first, size - whole - first]
        return self.to.write(f"torch.constant_pad_nd({x}, [{_listed(width)}])")

    def number(self, node: Node) -> str:
        """A node as an operand of arithmetic."""
        if node.op == "const":
            return _literal(node.attr)
        name = self.names[node.id]
        return self._cast(name, f"{name}.to({self.dtype})") if node.op in _FLAGS else name

    def flag(self, node: Node) -> str:
        """A node as a condition."""
        if node.op == "const":
            return self.to.write(f"{self.to.constant(np.asarray(node.attr), [1])} != 0")
        name = self.names[node.id]
        return name if node.op in _FLAGS else self._cast(f"!{name}", f"{name} != 0")

    def _cast(self, key: str, expression: str) -> str:
        if key not in self.casts:
            self.casts[key] = self.to.write(expression)
        return self.casts[key]

    # results

    def spread(self, node: Node, axes: Sequence[Axis], batch: str = "batch") -> str:
        """A node on all of the axes and the batch, also where it does not vary along them."""
        to = self.to
        name = self.number(node)
        if node.op == "const":
            name = to.constant(np.asarray(node.attr), [1])
        if node.id not in self.varies or set(node.axes) != set(axes):
            name = to.write(f"{name}.expand({_listed([*to.shape(axes), batch])})")
        order = sorted(range(len(axes)), key=lambda i: self._rank(axes[i]))
        wanted = [to.graph.extent(axes[i]) for i in order]
        if to.axes:
            # sums leave dimensions of one behind
            name = to.write(f"{name}.reshape({_listed([*wanted, batch])})")
        if order != sorted(order):
            back = [order.index(i) for i in range(len(order))]
            name = to.write(f"{name}.permute({_listed([*back, len(order)])})")
        return name

    def value(self, variable: Variable) -> str:
        """A variable as (components, batch), the entries of its axes outermost."""
        return self.stacked(variable.nodes, variable.axes)

    def stacked(
        self, nodes: Sequence[Node], axes: Sequence[Axis], seed: Axis | None = None,
        batch: str = "batch",
    ) -> str:  # fmt: skip
        """Nodes as (entries of the axes x nodes, entries of a seed axis if there is one, batch)."""
        to = self.to
        over = (*axes, seed) if seed is not None else axes
        tail = [to.graph.extent(seed), batch] if seed is not None else [batch]
        parts = [self.spread(n, over, batch) for n in nodes]
        entries = math.prod(to.graph.extent(a) for a in axes)
        if entries == 1:
            whole = _listed([len(nodes), *tail])
            return to.write(f"torch.stack([{_listed(parts)}]).reshape({whole})")
        flat = [to.write(f"{n}.reshape({_listed([entries, *tail])})") for n in parts]
        whole = _listed([entries * len(nodes), *tail])
        return to.write(f"torch.stack([{_listed(flat)}], 1).reshape({whole})")


def _literal(number: float) -> str:
    if math.isfinite(number):
        return repr(number) if number >= 0 else f"({number!r})"
    return f"float('{number}')"


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
