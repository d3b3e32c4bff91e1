"""Lines for one point, and the builder that makes them: each line once, folded, on named axes.

A `Node` is one line and never changes. A `Builder` numbers lines in the order they are made, so
sorting by `id` is an order in which they can run; what it grows is its own, and a program that it
continues stays as it is.
"""

import itertools
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.types import Value
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["Axis", "Builder", "Node", "Space", "Symbol", "reach", "sort_lines", "sort_until"]


class Axis(NamedTuple):
    """A named static axis and how many entries it has beyond that name's own extent.

    seed: 0, or the order of the derivative whose columns the axis counts; a seed axis is as long
    as the axis of that name.
    """

    name: str
    offset: int = 0
    seed: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What tells axes of one line apart."""
        return self.name, self.seed

    def __str__(self) -> str:
        return self.name + (f"{self.offset:+d}" if self.offset else "") + "'" * self.seed


class Node:
    """One line of a program.

    is_number: whether it is a constant, along axes or not; is_condition: whether it is a truth
    value.
    """

    __slots__ = ("args", "attr", "axes", "id", "is_condition", "is_number", "op")

    def __init__(
        self, id: int, op: str, args: "tuple[Node, ...]", attr: Any, axes: tuple[Axis, ...]
    ) -> None:
        self.id = id
        self.op = op
        self.args = args
        self.attr = attr
        self.axes = axes
        # asked far more often than lines are made
        row = ELEMENTWISE.get(op)
        self.is_number = op == "const" or op == "table"
        self.is_condition = row.is_condition if row is not None else op == "flag"

    def is_constant(self, number: float) -> bool:
        """Whether this is this very constant."""
        return self.op == "const" and self.attr == number

    def __repr__(self) -> str:
        return f"%{self.id}"


STRUCTURAL = "structural"
"""The mark of a line on axes whose operands, once written out, may be structural zeros."""


class Space:
    """What has axes of known extents."""

    extents: Mapping[str, int]

    def extent(self, axis: Axis) -> int:
        """The number of entries along an axis."""
        if axis.name not in self.extents:
            raise IngotError([Problem(
                "unknown-extent", f"nothing gives the extent of the axis '{axis.name}'", None,
                "give --driver, or --example-batch-shape 'VAR=(2; N)' for a variable on it",
            )])  # fmt: skip
        return self.extents[axis.name] + axis.offset

    def size(self, axes: Iterable[Axis]) -> int:
        """The number of entries on all axes together."""
        return math.prod(self.extent(a) for a in axes)

    def count_entries(self, nodes: Iterable[Node]) -> int:
        """The number of entries of all lines together."""
        return sum(self.size(n.axes) for n in nodes)

    def entries(self, axes: Sequence[Axis]) -> list[tuple[int, ...]]:
        """Every place on the axes, the last running fastest."""
        return list(itertools.product(*(range(self.extent(a)) for a in axes)))

    def values(self, node: Node) -> np.ndarray:
        """The numbers of a constant or table, one dimension an axis."""
        if node.op == "const":
            return np.asarray(node.attr)
        return np.asarray(node.attr).reshape([self.extent(a) for a in node.axes])


class Builder(Space):
    """Makes lines: `emit` those of values, `slopes.emit` those of derivatives.

    known: lines that exist already and are continued, in order.
    """

    def __init__(
        self, extents: Mapping[str, int] | None = None, known: Iterable[Node] = ()
    ) -> None:
        self._extents = dict(extents or {})
        self.extents = self._extents
        self._known: dict[Any, Node] = {}
        self._plain: dict[str, dict[tuple[Node, ...], Node]] = {}
        self._folded: dict[tuple[str, tuple[Node, ...]], Node] = {}
        self._count = 0
        for node in known:
            content, among = self._look(node.op, node.args, node.attr, node.axes)
            among[content] = node
            self._count = max(self._count, node.id + 1)
        self.zero = self.const(0.0)
        self.one = self.const(1.0)

    def add_axis(self, name: str, extent: int) -> None:
        """Make the extent of an axis known, unless it is already."""
        self._extents.setdefault(name, extent)

    def fork(self) -> "Builder":
        """A builder that continues the lines of this one, which stays as it is."""
        other = Builder(self._extents)
        other._known, other._folded = dict(self._known), dict(self._folded)
        other._plain = {op: dict(lines) for op, lines in self._plain.items()}
        other._count, other.zero, other.one = self._count, self.zero, self.one
        return other

    @property
    def slopes(self) -> "Slopes":
        """The same lines for derivatives to join; not held, for a cycle would outlive its use."""
        return Slopes(self)

    @property
    def count(self) -> int:
        """How many lines have been made."""
        return self._count

    def node(
        self, op: str, args: tuple[Node, ...] = (), attr: Any = None, axes: tuple[Axis, ...] = ()
    ) -> Node:
        """The one line with this content."""
        content, among = self._look(op, args, attr, axes)
        found = among.get(content)
        if found is None:
            found = among[content] = Node(self._count, op, args, attr, axes)
            self._count += 1
        return found

    def _look(
        self, op: str, args: tuple[Node, ...], attr: Any, axes: tuple[Axis, ...]
    ) -> tuple[Any, dict[Any, Node]]:
        """What tells a line apart, and from which: NaN is one constant, and zero has a sign."""
        if op == "const":
            return attr.hex(), self._known
        if attr is not None or axes:
            return (op, args, attr, axes), self._known
        # most lines: told by what they hold already, which spares a tuple for each
        lines = self._plain.get(op)
        if lines is None:
            lines = self._plain[op] = {}
        return args, lines

    def placeholder(self, op: str, axes: tuple[Axis, ...], *role: Any) -> Node:
        """A line of its own, equal to none, whose value is given later."""
        return self.node(op, (), (*role, self._count), axes)

    def components(
        self, op: str, role: tuple[Any, ...], axes: Iterable[tuple[Axis, ...]]
    ) -> tuple[Node, ...]:
        """Lines whose values are given, numbered in their role, on the axes of each."""
        return tuple(self.node(op, (), (*role, i), a) for i, a in enumerate(axes))

    def const(self, number: float) -> Node:
        """A constant."""
        return self.node("const", (), float(number))

    def table(self, values: np.ndarray, axes: tuple[Axis, ...]) -> Node:
        """A constant that varies along axes; one that does not vary is a plain constant."""
        kept = np.asarray(values, dtype=np.float64)
        if not axes:
            return self.const(float(kept))
        if kept.size and np.all(kept == kept.flat[0]):
            return self.const(float(kept.flat[0]))
        return self.node("table", (), tuple(kept.ravel().tolist()), axes)

    def lift(self, x: "Node | float") -> Node:
        """A line as it is, a number as a constant."""
        return x if isinstance(x, Node) else self.const(x)

    def emit(self, op: str, *operands: Node | float) -> Node:
        """An elementwise operation, folded where its result is known for all numbers."""
        return self._emit(self, op, operands)

    def _emit(self, to: "Builder | Slopes", op: str, operands: Sequence[Node | float]) -> Node:
        # lists rather than generators: compiling spends most of its time here
        row = ELEMENTWISE[op]
        args = tuple([x if isinstance(x, Node) else self.const(x) for x in operands])
        if True in [x.is_condition for x in args]:
            args = tuple(
                x if i in row.takes_conditions else self.count_condition(x)
                for i, x in enumerate(args)
            )
        zeros = row.simplify_zeros if to is not self else None
        if zeros is not None and (simpler := zeros(to, *args)) is not None:
            return simpler
        if row.simplify is not None and (simpler := row.simplify(to, *args)) is not None:
            return simpler
        if False not in [a.is_number for a in args]:
            return self._fold(op, args)
        if row.commutes and (args[1].is_number, -args[1].id) > (args[0].is_number, -args[0].id):
            args = (args[1], args[0])
        axes = self.union(args)
        if axes and zeros is not None and (op, args, None, axes) not in self._known:
            return self.node(op, args, STRUCTURAL, axes)
        return self.node(op, args, None, axes)

    def count_condition(self, x: Node) -> Node:
        """A truth value as the number 1 or 0 that arithmetic takes it for; a number as it is."""
        return self.emit("where", x, 1.0, 0.0) if x.is_condition else x

    def union(self, args: Iterable[Node]) -> tuple[Axis, ...]:
        """All axes of the arguments, in the order of the extents' table, seed axes last."""
        axes = [axis for arg in args for axis in arg.axes]
        return self.union_axes(axes) if axes else ()

    def union_axes(self, axes: Iterable[Axis]) -> tuple[Axis, ...]:
        """The axes, each once, in the order of the extents' table, seed axes last."""
        found: dict[tuple[str, int], Axis] = {}
        for axis in axes:
            other = found.setdefault(axis.key, axis)
            if other.offset != axis.offset:
                raise IngotError([Problem(
                    "axes-differ",
                    f"values on '{other}' and on '{axis}' meet in one operation",
                    None, "trim or append so that both have the same entries",
                )])  # fmt: skip
        if len(found) <= 1:
            return tuple(found.values())
        rank = {name: i for i, name in enumerate(self.extents)}
        return tuple(sorted(found.values(), key=lambda a: (a.seed, rank[a.name])))

    def _fold(self, op: str, args: tuple[Node, ...]) -> Node:
        known = self._folded.get((op, args))
        if known is None:
            axes = self.union(args)
            with np.errstate(all="ignore"):
                result = ELEMENTWISE[op].numpy(*(self._spread(a, axes) for a in args))
            known = self._folded[op, args] = self.table(result, axes)
        return known

    def _spread(self, node: Node, axes: Sequence[Axis]) -> np.ndarray:
        """The numbers of a constant, with a dimension of one for every axis it lacks."""
        values = self.values(node).transpose([node.axes.index(a) for a in axes if a in node.axes])
        return values.reshape([self.extent(a) if a in node.axes else 1 for a in axes])

    def add_up(self, terms: Iterable[Node]) -> Node:
        """The sum of the terms, left to right."""
        total = self.zero
        for term in terms:
            total = self.emit("add", total, term)
        return total

    def along(self, op: str, *operands: Node | float, **static: Any) -> Node:
        """A structural operation of the table, by its own rule; see `operations`."""
        from ingot.program.operations import operation

        args = tuple(self.count_condition(self.lift(x)) for x in operands)
        return operation(op).build(self, args, **static)

    def is_positive(self, node: Node) -> bool:
        """Whether a line stays clear of zero whatever its inputs, as far as structure tells."""
        from ingot.program.operations import SAFE_DIVISOR, lower_bound

        return lower_bound(node) > SAFE_DIVISOR


class Slopes:
    """Makes lines of derivatives, in which a zero is structural: 0 x = 0 and x - x = 0."""

    __slots__ = ("builder", "one", "zero")

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.zero, self.one = builder.zero, builder.one

    def emit(self, op: str, *operands: Node | float) -> Node:
        """An elementwise operation, folded where a zero decides its result."""
        return self.builder._emit(self, op, operands)

    def const(self, number: float) -> Node:
        """A constant."""
        return self.builder.const(number)

    def along(self, op: str, *operands: Node | float, **static: Any) -> Node:
        """A structural operation."""
        return self.builder.along(op, *operands, **static)

    def is_positive(self, node: Node) -> bool:
        """As the builder tells."""
        return self.builder.is_positive(node)


class Symbol:
    """A line while a law is traced, with the axes that the law has by its names for them.

    It is the `Atom` that `types/` computes with.
    """

    __slots__ = ("builder", "node", "own")

    def __init__(
        self, builder: Builder, node: Node, own: Mapping[str, Axis] = MappingProxyType({})
    ) -> None:
        self.builder = builder
        self.node = node
        self.own = own

    def _wrap(self, node: Node) -> "Symbol":
        return Symbol(self.builder, node, self.own)

    def emit(self, op: str, *operands: "Symbol | float", **static: Any) -> "Symbol":
        """The symbol for `op` of the operands, elementwise or structural."""
        nodes = tuple(x.node if isinstance(x, Symbol) else x for x in operands)
        if op in ELEMENTWISE:
            return self._wrap(self.builder.emit(op, *nodes))
        if "axis" in static:
            static["axis"] = self._rename_axes(static["axis"])
        own = tuple(self.own.values())
        return self._wrap(self.builder.along(op, *nodes, own=own, **static))

    def _rename_axes(self, axis: Any) -> Any:
        """What the law calls an axis, or several, under the names that they have here."""
        if not isinstance(axis, str):
            return tuple(map(self._rename_axes, axis))
        return self.own[axis].name if axis in self.own else axis

    def repeat(
        self, count: int, body: Callable[[tuple["Symbol", ...]], "Sequence[Symbol]"],
        carry: "Sequence[Symbol]",
    ) -> "tuple[Symbol, ...]":  # fmt: skip
        """What is carried after a number of steps."""
        from ingot.program.repetition import repeat_lines

        def step(nodes: list[Node]) -> list[Node]:
            return [x.node for x in body(tuple(map(self._wrap, nodes)))]

        lines = repeat_lines(self.builder, count, step, [x.node for x in carry])
        return tuple(map(self._wrap, lines))

    def number(self, x: float) -> "Symbol":
        """A constant."""
        return self._wrap(self.builder.const(x))

    def constants(self, value: Value) -> "tuple[Symbol, ...]":
        """Constants, one a component, of an unbatched value; its axes are the traced law's own."""
        own = tuple(self.own.values())
        axes = own[len(own) - value.sub :] if value.sub else ()
        data = value.data.detach().double().cpu().numpy()
        rank = data.ndim - len(value.base)
        if rank != len(axes):
            raise IngotError([Problem(
                "batched-constant",
                f"a constant of batch shape {data.shape[:rank]} is used inside a law",
                None, "declare it as a Parameter of the law",
            )])  # fmt: skip
        flat = data.reshape(*data.shape[:rank], -1)
        width = flat.shape[-1]
        return tuple(self._wrap(self.builder.table(flat[..., i], axes)) for i in range(width))


def reach(roots: Iterable[Node], follow: Callable[[Node], Iterable[Node]]) -> dict[int, Node]:
    """All lines met from the roots on, each once, by their ids; follow: where a line leads."""
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id not in found:
            found[node.id] = node
            stack += follow(node)
    return found


def sort_lines(roots: Iterable[Node], known: Iterable[Node] = ()) -> list[Node]:
    """Every line that the roots need beyond the known ones, in the order they were made."""
    return sort_until(roots, {n.id for n in known})


def sort_until(roots: Iterable[Node], known: Container[int]) -> list[Node]:
    """The same, where lines are known by their ids."""
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id not in found and node.id not in known:
            found[node.id] = node
            stack.extend(node.args)
    return [found[i] for i in sorted(found)]
