"""The lines of a program: scalar operations for one point, shared, folded, on named axes.

A `Node` is one line; its `Graph` keeps every line once. Nodes are made in order, so sorting by `id`
is an order in which they can run.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.types import Value

__all__ = ["FOLDS", "Axis", "Graph", "Node", "ordered"]


class Axis(NamedTuple):
    """A named static axis and how many entries it has beyond that name's own extent."""

    name: str
    offset: int = 0

    def __str__(self) -> str:
        return self.name + (f"{self.offset:+d}" if self.offset else "")


class Node:
    """One line of a program."""

    __slots__ = ("args", "attr", "axes", "graph", "id", "op")

    def __init__(
        self,
        graph: "Graph",
        id: int,
        op: str,
        args: "tuple[Node, ...]",
        attr: Any,
        axes: tuple[Axis, ...],
    ) -> None:
        self.graph = graph
        self.id = id
        self.op = op
        self.args = args
        self.attr = attr
        self.axes = axes

    def emit(self, op: str, *operands: "Node | float", **static: Any) -> "Node":
        """The node for `op`; see `Graph.emit`."""
        if static:
            return self.graph.along(op, *operands, **static)
        return self.graph.emit(op, *operands)

    def number(self, x: float) -> "Node":
        """A constant node."""
        return self.graph.const(x)

    def constants(self, value: Value) -> "tuple[Node, ...]":
        """Constant nodes of a value that holds tensors, on the axes of the law being traced."""
        return self.graph.table_of(value)

    def is_constant(self, number: float | None = None) -> bool:
        """Whether this is a constant, or this very constant."""
        return self.op == "const" and (number is None or self.attr == number)

    def __repr__(self) -> str:
        return f"%{self.id}"


_COMMUTES = {"add", "mul"}
_TRUTHS = {"lt", "le", "gt", "ge", "eq", "and", "or", "not"}
FOLDS: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "abs": np.abs, "sign": np.sign,
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "log10": np.log10, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "pow": np.power,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "where": np.where,
}  # fmt: skip


class Graph:
    """All nodes of a program, each kept once, and the extents of its axes."""

    def __init__(self, extents: dict[str, int] | None = None) -> None:
        self.nodes: list[Node] = []
        self.extents: dict[str, int] = dict(extents or {})
        self.own: tuple[Axis, ...] = ()
        self._known: dict[Any, Node] = {}
        self.zero = self.const(0.0)
        self.one = self.const(1.0)

    # making nodes

    def node(
        self, op: str, args: tuple[Node, ...] = (), attr: Any = None, axes: tuple[Axis, ...] = ()
    ) -> Node:
        """The one node with this content."""
        known = (op, tuple(a.id for a in args), attr, axes)
        found = self._known.get(known)
        if found is None:
            found = Node(self, len(self.nodes), op, args, attr, axes)
            self.nodes.append(found)
            self._known[known] = found
        return found

    def const(self, number: float) -> Node:
        """A constant."""
        number = float(number)
        return self.node("const", attr=number) if number == number else self._nan()

    def _nan(self) -> Node:
        known = self._known.get("nan")
        if known is None:
            known = Node(self, len(self.nodes), "const", (), math.nan, ())
            self.nodes.append(known)
            self._known["nan"] = known
        return known

    def table(self, values: np.ndarray, axes: tuple[Axis, ...]) -> Node:
        """A constant that varies along axes; one that does not vary is a plain constant."""
        kept = np.asarray(values, dtype=np.float64)
        if kept.size and np.all(kept == kept.flat[0]):
            return self.const(float(kept.flat[0]))
        return self.node("table", attr=tuple(kept.ravel().tolist()), axes=axes)

    def table_of(self, value: Value) -> tuple[Node, ...]:
        """Constants, one a component, of an unbatched value; its axes are the traced law's own."""
        axes = self.own[len(self.own) - value.sub :] if value.sub else ()
        data = value.data.detach().double().cpu().numpy()
        rank = data.ndim - len(value.base)
        if rank != len(axes):
            raise IngotError([Problem(
                "batched-constant",
                f"a constant of batch shape {data.shape[:rank]} is used inside a law",
                None, "declare it as a Parameter of the law",
            )])  # fmt: skip
        flat = data.reshape(*data.shape[:rank], -1)
        return tuple(self.table(flat[..., i], axes) for i in range(flat.shape[-1]))

    def values(self, node: Node) -> np.ndarray:
        """The numbers of a constant or table, one dimension an axis."""
        if node.op == "const":
            return np.asarray(node.attr)
        return np.asarray(node.attr).reshape([self.extent(a) for a in node.axes])

    def extent(self, axis: Axis) -> int:
        """The number of entries along an axis."""
        if axis.name not in self.extents:
            raise IngotError([Problem(
                "unknown-extent", f"nothing gives the extent of the axis '{axis.name}'", None,
                "give --driver, or --example-batch-shape 'VAR=(2; N)' for a variable on it",
            )])  # fmt: skip
        return self.extents[axis.name] + axis.offset

    def lift(self, x: "Node | float") -> Node:
        """A node as it is, a number as a constant."""
        return x if isinstance(x, Node) else self.const(x)

    # elementwise operations

    def emit(self, op: str, *operands: Node | float) -> Node:
        """An elementwise operation, folded where its result is known."""
        args = tuple(self.lift(x) for x in operands)
        if op == "eps":
            return self.node("eps")
        if op == "where":
            args = (args[0], *map(self.counted, args[1:]))
        elif op not in ("and", "or", "not"):
            args = tuple(map(self.counted, args))
        simple = _SIMPLER.get(op)
        if simple is not None:
            found = simple(self, *args)
            if found is not None:
                return found
        if all(a.op in ("const", "table") for a in args):
            return self._folded(op, args)
        if op in _COMMUTES and args[0].id > args[1].id:
            args = (args[1], args[0])
        return self.node(op, args, axes=self.union(args))

    def counted(self, x: Node) -> Node:
        """A truth value as the number 1 or 0 that arithmetic takes it for; a number as it is."""
        return self.emit("where", x, 1.0, 0.0) if x.op in _TRUTHS else x

    def union(self, args: Iterable[Node]) -> tuple[Axis, ...]:
        """All axes of the arguments, by name, in the order of the extents' table."""
        found: dict[str, Axis] = {}
        count = 0
        for arg in args:
            for axis in arg.axes:
                other = found.setdefault(axis.name, axis)
                count += 1
                if other.offset != axis.offset:
                    raise IngotError([Problem(
                        "axes-differ",
                        f"values on '{other}' and on '{axis}' meet in one operation",
                        None, "trim or append so that both have the same entries",
                    )])  # fmt: skip
        if len(found) <= 1:
            return tuple(found.values())
        rank = {name: i for i, name in enumerate(self.extents)}
        return tuple(sorted(found.values(), key=lambda a: rank[a.name]))

    def _folded(self, op: str, args: tuple[Node, ...]) -> Node:
        axes = self.union(args)
        with np.errstate(all="ignore"):
            result = FOLDS[op](*(self.spread(self.values(a), a.axes, axes) for a in args))
        if op in _TRUTHS:
            result = np.asarray(result, dtype=np.float64)
        return self.table(np.asarray(result), axes) if axes else self.const(float(result))

    def spread(self, values: np.ndarray, have: Sequence[Axis], want: Sequence[Axis]) -> np.ndarray:
        """An array on some axes, with a dimension of one for every axis it lacks."""
        shape = [self.extent(a) if a in have else 1 for a in want]
        return values.reshape(shape) if have else values

    def add_up(self, terms: Sequence[Node]) -> Node:
        """The sum of the terms, left to right."""
        total = self.zero
        for term in terms:
            total = self.emit("add", total, term)
        return total

    # operations along an axis

    def along(self, op: str, *operands: Node | float, axis: str, **static: Any) -> Node:
        """`sum`, `window`, `pad`, `append` along a named axis."""
        args = tuple(self.counted(self.lift(x)) for x in operands)
        held = next((a for arg in args for a in arg.axes if a.name == axis), None)
        return {
            "sum": self._sum, "window": self._window, "pad": self._pad, "append": self._append,
        }[op](args, axis, held, **static)  # fmt: skip

    def _own(self, axis: str) -> Axis:
        """The traced law's own axis of that name, for values that do not vary along it."""
        found = next((a for a in self.own if a.name == axis), None)
        if found is None:
            raise IngotError([Problem(
                "unknown-axis", f"a law works along '{axis}', which none of its values has", None,
                f"name the axis in a kind, for example Scalar[{axis!r}]",
            )])  # fmt: skip
        return found

    def _sum(self, args: tuple[Node, ...], axis: str, held: Axis | None) -> Node:
        (x,) = args
        if held is None:
            return self.emit("mul", x, self.extent(self._own(axis)))
        rest = tuple(a for a in x.axes if a.name != axis)
        if x.op == "table":
            kept = self.values(x).sum(axis=x.axes.index(held))
            return self.table(kept, rest) if rest else self.const(float(kept))
        return self.node("sum", (x,), held, rest)

    def _window(
        self, args: tuple[Node, ...], axis: str, held: Axis | None, first: int, last: int
    ) -> Node:
        (x,) = args
        if held is None or first == last == 0:
            return x
        kept = Axis(axis, held.offset - first - last)
        axes = tuple(kept if a == held else a for a in x.axes)
        if x.op == "table":
            at = x.axes.index(held)
            part = np.take(self.values(x), range(first, first + self.extent(kept)), axis=at)
            return self.table(part, axes)
        return self.node("window", (x,), (held, first), axes)

    def _pad(
        self, args: tuple[Node, ...], axis: str, held: Axis | None, first: int, last: int
    ) -> Node:
        (x,) = args
        if x.is_constant(0.0) or first == last == 0:
            return x
        if held is None:
            raise AssertionError(f"pad along '{axis}' of a value that lacks it")
        grown = Axis(axis, held.offset + first + last)
        axes = tuple(grown if a == held else a for a in x.axes)
        if x.op == "table":
            width = [(first, last) if a == held else (0, 0) for a in x.axes]
            return self.table(np.pad(self.values(x), width), axes)
        return self.node("pad", (x,), (held, first), axes)

    def _append(self, args: tuple[Node, ...], axis: str, held: Axis | None, side: str) -> Node:
        x, extra = args
        held = held if held is not None else self._own(axis)
        first, last = (1, 0) if side == "left" else (0, 1)
        spot = self.spot(held, first, last)
        if held in x.axes:
            padded = self.along("pad", x, axis=axis, first=first, last=last)
        else:
            padded = self.emit("mul", x, self.emit("sub", 1.0, spot))
        return self.emit("add", padded, self.emit("mul", extra, spot))

    def spot(self, axis: Axis, first: int, last: int) -> Node:
        """One at the entries that `pad` adds to `axis`, zero elsewhere."""
        values = np.pad(np.zeros(self.extent(axis)), (first, last), constant_values=1.0)
        return self.table(values, (Axis(axis.name, axis.offset + first + last),))


def ordered(roots: Iterable[Node]) -> list[Node]:
    """Every node that the roots need, in an order in which they can run."""
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id not in found:
            found[node.id] = node
            stack.extend(node.args)
    return [found[i] for i in sorted(found)]


# simplifications: each returns the simpler node, or None where there is none


def _add(g: Graph, a: Node, b: Node) -> Node | None:
    if a.is_constant(0.0):
        return b
    if b.is_constant(0.0):
        return a
    if a is b:
        return g.emit("mul", 2.0, a)
    if b.op == "neg":
        return g.emit("sub", a, b.args[0])
    if a.op == "neg":
        return g.emit("sub", b, a.args[0])
    return None


def _sub(g: Graph, a: Node, b: Node) -> Node | None:
    if b.is_constant(0.0):
        return a
    if a.is_constant(0.0):
        return g.emit("neg", b)
    if a is b:
        return g.zero
    if b.op == "neg":
        return g.emit("add", a, b.args[0])
    if a.op == "neg":
        return g.emit("neg", g.emit("add", a.args[0], b))
    return None


def _neg(g: Graph, a: Node) -> Node | None:
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub":
        return g.emit("sub", a.args[1], a.args[0])
    if a.op == "mul" and a.args[0].op in ("const", "table"):
        return g.emit("mul", g.emit("neg", a.args[0]), a.args[1])
    return None


def _mul(g: Graph, a: Node, b: Node) -> Node | None:
    if b.op in ("const", "table") and a.op not in ("const", "table"):
        a, b = b, a
    if a.op == "const":
        if a.attr == 0.0:
            return g.zero
        if a.attr == 1.0:
            return b
        if a.attr == -1.0:
            return g.emit("neg", b)
        if b.op == "neg":
            return g.emit("mul", -a.attr, b.args[0])
    if a.op in ("const", "table") and b.op == "mul" and b.args[0].op in ("const", "table"):
        return g.emit("mul", g.emit("mul", a, b.args[0]), b.args[1])
    if a.op == "neg" and b.op == "neg":
        return g.emit("mul", a.args[0], b.args[0])
    if a.op == "neg":
        return g.emit("neg", g.emit("mul", a.args[0], b))
    if b.op == "neg":
        return g.emit("neg", g.emit("mul", a, b.args[0]))
    # constants stay in front, whatever their id
    if a.op in ("const", "table") and b.op not in ("const", "table"):
        return g.node("mul", (a, b), axes=g.union((a, b)))
    return None


def _div(g: Graph, a: Node, b: Node) -> Node | None:
    if a.is_constant(0.0):
        return g.zero
    if b.op in ("const", "table") and a.op not in ("const", "table"):
        return g.emit("mul", a, g.emit("div", 1.0, b))
    if a.op != "const":
        # one reciprocal serves every quotient by `b`, and its slope
        return g.emit("mul", a, g.emit("div", 1.0, b))
    return None


def _pow(g: Graph, a: Node, b: Node) -> Node | None:
    if b.op != "const" or a.op in ("const", "table"):
        return None
    n = b.attr
    if n == 0.0:
        return g.one
    if n == 0.5:
        return g.emit("sqrt", a)
    if n.is_integer() and 0 < n <= 64:
        return _whole_power(g, a, int(n))
    if n.is_integer() and -8 <= n < 0:
        return g.emit("div", 1.0, _whole_power(g, a, int(-n)))
    return None


def _whole_power(g: Graph, a: Node, n: int) -> Node:
    """By repeated squaring, exact in its slopes too."""
    result: Node | None = None
    square = a
    while n:
        if n & 1:
            result = square if result is None else g.emit("mul", result, square)
        n >>= 1
        if n:
            square = g.emit("mul", square, square)
    assert result is not None
    return result


def _where(g: Graph, c: Node, a: Node, b: Node) -> Node | None:
    if c.op == "const":
        return a if c.attr else b
    return a if a is b else None


_SIMPLER: dict[str, Any] = {
    "add": _add, "sub": _sub, "neg": _neg, "mul": _mul, "div": _div, "pow": _pow, "where": _where,
}  # fmt: skip
