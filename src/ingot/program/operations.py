"""What every operation says of itself: elementwise rows as they are, structural ones as classes.

Passes ask `operation(name)` and list no names. A structural operation is one small class: leaves
here, others in `axis_operations.py`, `implicit.py`, or wherever they are declared; declaring one
makes it known.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from ingot.errors import IngotError, Problem
from ingot.program.builder import STRUCTURAL, Axis, Builder, Node, Slopes, Space
from ingot.types.elementwise import ELEMENTWISE, Elementwise

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__ = [
    "SAFE_DIVISOR", "Arrays", "Axes", "Bars", "Key", "Known", "LinearOperation", "Nodes",
    "Operation", "Place", "Tangent", "Unstructured", "find_axis", "keep_nonzero", "lower_bound",
    "operation", "reduce_to", "refuse_coupled", "refuse_shifts", "require_axis", "sum_over",
]  # fmt: skip

Axes = Sequence[Axis]
Nodes = Sequence[Node]
Key = tuple[int, tuple[int, ...]]
Tangent = dict[Key, Node]
"""A sparse row of a derivative, {(column, shifts): coefficient}.

For a column on axes, entry `i` of the row reads the column's entry `i + shift`; dense columns
carry a seed axis of their own instead, and no shifts.
"""
Known = Mapping[int, Any]
"""The tangents of lines by their ids; those of a block's results by item."""
Bars = list[tuple[Node, Any]]
Place = Mapping[tuple[str, int], str]
"""The C++ loop index of each axis, by its key."""

SAFE_DIVISOR = 1e-150
"""A value above this can be divided by, and so can its square, which does not underflow."""


class Unstructured(Exception):
    """A sum or an index along an axis hides which entries a row reads; unroll the axis."""

    def __init__(self, axis: str) -> None:
        super().__init__(axis)
        self.axis = axis


class Arrays(Protocol):
    """Where lines are evaluated: on NumPy arrays, on torch tensors, or as text of torch.

    An array has one dimension for every axis in use, and points last.
    """

    def fill(self, number: float) -> Any:
        """One number everywhere."""
        ...

    def table(self, values: np.ndarray, axes: Sequence[Axis]) -> Any:
        """Numbers along axes."""
        ...

    def epsilon(self) -> Any:
        """The machine epsilon of the precision."""
        ...

    def spell(self, torch: str, numpy: Any, args: Sequence[Any], axis: Axis | None = None) -> Any:
        """A function, along an axis or not: torch's spelling of `{0}`, ... and `{dim}`; NumPy's,
        of the operands and dim.
        """
        ...

    def block(self, node: Node, args: Sequence[Any]) -> Any:
        """The results of a solve or of a linear system, by item."""
        ...

    def replay(self, roots: Sequence[Node], known: Mapping[int, Any]) -> Sequence[Any]:
        """Lines that an operation has inside, given the arrays of those they are over."""
        ...


class Operation:
    """A structural operation. Subclasses are known by their `name` once they are declared.

    arity: how many lines it reads, None where that is its attribute's to say;
    is_leaf: it reads no line; is_placeholder: its value is given, to the program or to the
    residuals of a solve; is_free: it costs nothing; is_block: it has several results, read by
    `item`; reads_across: it reads entries of its axis other than its own, so that its operand is
    complete before it begins; is_whole: it is computed for all points at once, so that programs are
    cut there; couples_points: one point's result depends on others.
    """

    name: ClassVar[str]
    arity: int | None = None
    is_leaf: ClassVar[bool] = False
    is_placeholder: ClassVar[bool] = False
    is_free: ClassVar[bool] = False
    is_block: ClassVar[bool] = False
    reads_across: ClassVar[bool] = False
    is_whole: ClassVar[bool] = False
    couples_points: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            _KNOWN[cls.name] = cls()

    def build(self, b: Builder, args: Nodes, **static: Any) -> Node:
        """The line for operands as a law gives them; `own` are the axes of the law."""
        raise NotImplementedError(self.name)

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        """The same operation on other operands, folded again."""
        return b.node(node.op, args, node.attr, node.axes)

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Any:
        """The tangent of the line, given those of its operands (forward mode)."""
        raise NotImplementedError(self.name)

    def pull(self, d: Slopes, node: Node, bar: Any) -> Bars:
        """What the adjoint of the line adds to those of its operands, on their own axes (reverse
        mode).
        """
        raise NotImplementedError(self.name)

    def verify(self, space: Space, node: Node) -> None:
        """Assert what else must hold of the line."""

    def inside(self, node: Node) -> tuple[Sequence[Node], Sequence[Node]]:
        """The roots of lines that are the operation's own, and the placeholders they are over."""
        return (), ()

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        """The scalar line of one entry."""
        raise NotImplementedError(self.name)

    def unroll_block(self, to: "Unrolling", node: Node) -> Node:
        """The line of a block without axes."""
        raise NotImplementedError(self.name)

    def unroll_item(self, to: "Unrolling", node: Node) -> dict[tuple[int, ...], Node]:
        """The items of the unrolled block that an item of the block becomes, by entry."""
        raise NotImplementedError(self.name)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        """The line as an array, given those of its operands."""
        raise NotImplementedError(self.name)

    def write_cxx(self, lines: Any, node: Node, place: Place) -> str:
        """The C++ expression of one entry; `lines.read(operand, place)` writes operands."""
        raise NotImplementedError(self.name)

    def write_cxx_line(self, lines: Any, node: Node, place: Place, name: str) -> str:
        """The C++ statement that computes one entry under a name."""
        return f"const V {name} = {self.write_cxx(lines, node, place)};"

    def write_cxx_block(self, lines: Any, node: Node) -> tuple[list[Any], Mapping[Any, Any]]:
        """The C++ statements of a block, and how each item is read at a place."""
        raise NotImplementedError(self.name)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        """The line for people to read."""
        return f"{self.name}({', '.join(args)})"

    def name_inside(self, node: Node, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """What people call the placeholders and the roots of lines inside."""
        raise NotImplementedError(self.name)

    def refuse(self, node: Node, what: str) -> Problem:
        """The problem of `what`, an executor that cannot hold the line."""
        raise NotImplementedError(self.name)

    def translate(self, d: Slopes, node: Node, own: Sequence[float]) -> float | None:
        """What is added to the line where `own` times a number is to its operands, in terms of that
        number; None where that depends on values.
        """
        return None

    def bound(self, node: Node, below: Sequence[float]) -> float:
        """A number that the line is never below, given such numbers of its operands."""
        return -math.inf

    def cost(self, space: Space, node: Node) -> int:
        """How many operations on numbers the line takes, an axis counted in full."""
        return 0 if self.is_free else space.size(node.axes)


_KNOWN: dict[str, Operation] = {}


def operation(name: str) -> Operation:
    """The operation of that name."""
    found = _KNOWN.get(name)
    if found is None:
        found = _KNOWN[name] = _OfRow(ELEMENTWISE[name])
    return found


def refuse_coupled(lines: Iterable[Node], why: str) -> None:
    """Raise where a line couples points, though each is asked by itself."""
    for node in lines:
        rule: Any = operation(node.op)
        if rule.couples_points:
            raise rule.refuse_points(node, why)


def lower_bound(node: Node, depth: int = 12) -> float:
    """A number that a line is never below; minus infinity where structure tells nothing.

    depth: how far structure is followed; bounds beyond a dozen lines were never of use.
    """
    if depth == 0 and node.args:
        return -math.inf
    return operation(node.op).bound(node, [lower_bound(a, depth - 1) for a in node.args])


def keep_nonzero(tangent: Tangent) -> Tangent:
    """A tangent without its structural zeros."""
    return {key: t for key, t in tangent.items() if not t.is_constant(0.0)}


class LinearOperation(Operation):
    """An operation that is linear in its first operand: the tangent of a line is the same operation
    on that of the operand.
    """

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        """The operation on the operand's tangents."""
        first, *others = node.args
        result: Tangent = {}
        for (column, shifts), t in known.get(first.id, {}).items():
            for axis in first.axes:
                if axis not in node.axes:
                    refuse_shifts(shifts, columns, column, axis)
            result[column, shifts] = self.rebuild(d.builder, node, (t, *others))
        return keep_nonzero(result)


class _OfRow(Operation):
    """An elementwise operation."""

    def __init__(self, row: Elementwise) -> None:
        self.row = row
        self.arity = row.arity

    def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
        return (b.slopes if node.attr == STRUCTURAL else b).emit(node.op, *args)

    def _partials(self, d: Slopes, node: Node) -> list[tuple[Node, Node]]:
        if self.row.slopes is None:
            return []
        slopes = self.row.slopes(d, node, *node.args)
        pairs = zip(node.args, slopes, strict=True)
        return [(a, s) for a, s in pairs if s is not None and not s.is_constant(0.0)]

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        if self.row.chooses is not None:
            # one selection of tangents instead of two masked products: nothing is 0 * inf
            condition, a, b = self.row.chooses(d, *node.args)
            left, right = known.get(a.id, {}), known.get(b.id, {})
            return keep_nonzero({
                key: d.emit("where", condition, left.get(key, d.zero), right.get(key, d.zero))
                for key in {**left, **right}
            })  # fmt: skip
        result: Tangent = {}
        for arg, slope in self._partials(d, node):
            for key, t in known.get(arg.id, {}).items():
                term = d.emit("mul", slope, t)
                result[key] = d.emit("add", result[key], term) if key in result else term
        return keep_nonzero(result)

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        if self.row.chooses is not None:
            condition, a, b = self.row.chooses(d, *node.args)
            return [
                (a, reduce_to(d, d.emit("where", condition, bar, 0.0), node.axes, a)),
                (b, reduce_to(d, d.emit("where", condition, 0.0, bar), node.axes, b)),
            ]
        return [
            (arg, reduce_to(d, d.emit("mul", bar, slope), node.axes, arg))
            for arg, slope in self._partials(d, node)
        ]

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        args = (to.at(a, node.axes, entry) for a in node.args)
        return (to.builder.slopes if node.attr == STRUCTURAL else to.builder).emit(node.op, *args)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return self.row.write_text(args)

    def translate(self, d: Slopes, node: Node, own: Sequence[float]) -> float | None:
        if self.row.slopes is None or not self.row.is_linear:
            return None
        slopes = self.row.slopes(d, node, *node.args)
        return sum(s.attr * k for s, k in zip(slopes, own, strict=True))

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return -math.inf if self.row.bound is None else self.row.bound(node, list(below))

    def cost(self, space: Space, node: Node) -> int:
        return self.row.cost * space.size(node.axes)


# leaves


class _Leaf(Operation):
    arity = 0
    is_leaf = is_free = True

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        return {}

    def pull(self, d: Slopes, node: Node, bar: Any) -> Bars:
        return []


class _Const(_Leaf):
    name = "const"

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        return to.builder.const(node.attr)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.fill(node.attr)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"{node.attr:.12g}"

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return node.attr


class _Table(_Leaf):
    name = "table"

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        kept = to.kept(node.axes)
        at = tuple(slice(None) if a in kept else e for a, e in zip(node.axes, entry, strict=True))
        return to.builder.table(to.whole.values(node)[at], kept)

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.table(space.values(node), node.axes)

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"table<{', '.join(map(str, node.axes))}>"

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return min(node.attr)


class _Eye(_Leaf):
    """One where the entries of two axes agree: a column's own tangent."""

    name = "eye"

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        if to.kept(node.axes):
            return to.builder.node("eye", (), None, node.axes)
        return to.builder.const(float(entry[0] == entry[1]))

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.table(np.eye(space.extent(node.axes[0])), node.axes)

    def write_cxx(self, lines: Any, node: Node, place: Place) -> str:
        a, b = (place[axis.key] for axis in node.axes)
        return f"splat({a} == {b})"

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return 0.0


class _Epsilon(_Leaf):
    """The machine epsilon of the precision that a program is frozen for."""

    name = "eps"

    def build(self, b: Builder, args: Nodes, **static: Any) -> Node:
        return b.node("eps")

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        return to.builder.node("eps")

    def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
        return on.epsilon()

    def bound(self, node: Node, below: Sequence[float]) -> float:
        return 1e-16  # no precision has a smaller one


class _Placeholder(_Leaf):
    """A value that is given: to the program, or to the residuals of a solve."""

    is_placeholder = True

    def unroll(self, to: "Unrolling", node: Node, entry: tuple[int, ...]) -> Node:
        at = tuple(e for a, e in zip(node.axes, entry, strict=True) if a.name not in to.keep)
        return to.builder.node(node.op, (), (*node.attr, *at), to.kept(node.axes))


class _Input(_Placeholder):
    name = "input"


class _Parameter(_Placeholder):
    name = "parameter"


class _Flag(_Placeholder):
    """A truth value that is given, as fields may have them."""

    name = "flag"


class _Unknown(_Placeholder):
    name = "unknown"


class _Given(_Placeholder):
    name = "given"


# along an axis


def find_axis(node: Node, name: str) -> Axis | None:
    """The axis of that name which a line has, seed axes apart."""
    return next((a for a in node.axes if a.name == name and not a.seed), None)


def require_axis(args: Sequence[Node], name: str, own: Sequence[Axis]) -> Axis:
    """The axis of that name which a line has, or the law's own where none varies along it."""
    held = [find_axis(x, name) for x in args]
    found = next((a for a in (*held, *own) if a is not None and a.name == name), None)
    if found is None:
        raise IngotError([Problem(
            "unknown-axis", f"a law works along '{name}', which none of its values has", None,
            f"name the axis in a kind, for example Scalar[{name!r}]",
        )])  # fmt: skip
    return found


def sum_over(b: Builder, x: Node, axis: Axis) -> Node:
    """The sum of a line over an axis that it has or along which it is constant."""
    if axis not in x.axes:
        return b.emit("mul", x, b.extent(axis))
    rest = tuple(a for a in x.axes if a != axis)
    if x.op == "table":
        return b.table(b.values(x).sum(axis=x.axes.index(axis)), rest)
    return b.node("sum", (x,), axis, rest)


def refuse_shifts(
    shifts: tuple[int, ...], columns: Sequence[Node], column: int, axis: Axis
) -> None:
    """Shifted columns on an axis have no meaning once the axis is gone."""
    if shifts and any(a.name == axis.name for a in columns[column].axes):
        raise Unstructured(axis.name)


def reduce_to(d: Slopes, term: Node, axes: Sequence[Axis], arg: Node) -> Node:
    """What a line on some axes adds to the adjoint of an operand, summed over those that the
    operand is broadcast along (the transpose of broadcasting).
    """
    keys = {a.key for a in arg.axes}
    if term.is_constant(0.0):
        return term
    for axis in axes:
        if axis.key not in keys:
            term = sum_over(d.builder, term, axis)
    return term
