"""Functions of whole tensors as lines of a program: packages, and laws that are ordinary torch.

An `opaque` block has one result for every component that the function gives; `opaque_product` is
its Jacobian, or the transpose, times right-hand sides. Programs are cut there (boundaries.py).
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, Span
from ingot.program.builder import Axis, Builder, Node, Slopes, Space, sort_lines
from ingot.program.operations import (
    Bars,
    Known,
    Nodes,
    Operation,
    Tangent,
    Unstructured,
    keep_nonzero,
    operation,
    sum_over,
)
from ingot.program.program import Digested, Program
from ingot.types import Value

if TYPE_CHECKING:
    from ingot.program.unroll import Unrolling

__all__ = [
    "Opaque", "Parts", "Port", "Tensors", "WholeFunction", "call_opaque", "find_misplaced",
    "find_opaque", "is_whole", "walk_lines",
]  # fmt: skip

Tensors = Sequence[Tensor]
Parts = Sequence[Tensor | None]


class WholeFunction(Protocol):
    """A function of tensors `(*batch, *axes, *base)`, one point not seeing another.

    what, instead: what errors call it, and their remedy.
    """

    what: ClassVar[str]
    instead: ClassVar[str]

    @property
    def solves(self) -> Mapping[str, Any]:
        """The rules of what it solves inside, by name, each with its `unknowns`."""
        ...

    def report(self, name: str, points: int) -> Sequence[Any]:
        """What became of every point in its last call, one status a solve, under the name."""
        ...

    @property
    def digest(self) -> str:
        """What tells functions apart."""
        ...

    def __call__(self, inputs: Tensors) -> Tensors:
        """The outputs."""
        ...

    def push(self, inputs: Tensors, tangents: Parts) -> Parts:
        """The change of outputs along tangents of inputs, which have one more axis, in front.

        A tangent that is None is zero; a result that is None is not known.
        """
        ...

    def pull(self, inputs: Tensors, bars: Parts) -> Parts:
        """The adjoints of inputs, given those of outputs; axes and None as for `push`."""
        ...

    def refuse(self, pairs: Sequence[tuple[str, str]]) -> IngotError:
        """The error where derivatives (output, input) are needed of which one is not there."""
        ...


@dataclass(frozen=True, slots=True)
class Port:
    """A value that goes into an opaque function or comes out of it."""

    name: str
    kind: type[Value]
    axes: tuple[Axis, ...]

    @property
    def width(self) -> int:
        """The number of components."""
        return math.prod(self.kind.base)


@dataclass(frozen=True, eq=False)
class Opaque(Digested):
    """A function that a program calls for all points at once.

    takes, gives: its values on all their axes; shared: how many of these axes, the first of each,
    are part of the batch to the function.
    """

    name: str
    function: WholeFunction
    takes: tuple[Port, ...]
    gives: tuple[Port, ...]
    shared: int = 0
    span: Span | None = None

    @cached_property
    def digest(self) -> str:
        """What it computes, as a hash."""
        ports = [[(p.name, p.kind.__name__, p.axes) for p in ps] for ps in (self.takes, self.gives)]
        content = repr((self.name, self.function.digest, ports, self.shared))
        return hashlib.blake2b(content.encode(), digest_size=20).hexdigest()

    def find_own_axes(self) -> set[str]:
        """The names of axes whose entries the function does not treat one by one."""
        return {a.name for p in (*self.takes, *self.gives) for a in p.axes[self.shared :]}


@dataclass(frozen=True, slots=True)
class _Product:
    """The Jacobian of an opaque function times right-hand sides, or its transpose.

    Its node reads what the function reads, then the sides in turn; its items are (component, side).
    """

    opaque: Opaque
    sides: int
    is_transposed: bool = False

    @property
    def digest(self) -> tuple[str, int, bool]:
        """What tells products apart."""
        return self.opaque.digest, self.sides, self.is_transposed

    @property
    def takes(self) -> tuple[Port, ...]:
        """What a right-hand side consists of."""
        return self.opaque.gives if self.is_transposed else self.opaque.takes

    @property
    def gives(self) -> tuple[Port, ...]:
        """What a result consists of."""
        return self.opaque.takes if self.is_transposed else self.opaque.gives

    def side(self, node: Node, side: int) -> tuple[Node, ...]:
        """One right-hand side of the node."""
        width = sum(p.width for p in self.takes)
        first = len(node.args) - width * (self.sides - side)
        return node.args[first : first + width]

    def seeds(self, node: Node, side: int) -> tuple[Axis, ...]:
        """The axes of a side beyond those of its values: it stands for many."""
        own = {a.key for p in self.takes for a in p.axes}
        axes = {a.key: a for n in self.side(node, side) for a in n.axes if a.key not in own}
        return tuple(axes.values())

    def find_active(self, node: Node, side: int) -> tuple[int, ...]:
        """The places of the ports of a side that are not structurally zero."""
        left = iter(self.side(node, side))
        zeros = [[next(left).is_constant(0.0) for _ in range(p.width)] for p in self.takes]
        return tuple(i for i, parts in enumerate(zeros) if not all(parts))

    def group_sides(self, node: Node) -> dict[tuple[int, ...], list[int]]:
        """The sides that are along the same ports."""
        found: dict[tuple[int, ...], list[int]] = {}
        for k in range(self.sides):
            found.setdefault(self.find_active(node, k), []).append(k)
        return found


class _Results(dict[tuple[int, int], Any]):
    """Results of products; one that the function does not give is refused where it is read."""

    def __init__(self, product: _Product, node: Node) -> None:
        super().__init__()
        self.product, self.node = product, node

    def __missing__(self, item: tuple[int, int]) -> NoReturn:
        product = self.product
        port = [p.name for p in product.gives for _ in range(p.width)][item[0]]
        others = [product.takes[i].name for i in product.find_active(self.node, item[1])]
        pairs = [(x, port) if product.is_transposed else (port, x) for x in others]
        raise product.opaque.function.refuse(pairs)


def call_opaque(
    builder: Builder, opaque: Opaque, args: Sequence[Sequence[Node]]
) -> list[tuple[Node, ...]]:
    """The lines of each output, given those of each input."""
    node = builder.node("opaque", tuple(n for part in args for n in part), opaque)
    items = iter(_read(builder, node, opaque.gives))
    return [tuple(next(items) for _ in range(p.width)) for p in opaque.gives]


def _read(b: Builder, node: Node, ports: Sequence[Port]) -> list[Node]:
    axes = [p.axes for p in ports for _ in range(p.width)]
    return [b.node("item", (node,), i, a) for i, a in enumerate(axes)]


def find_opaque(program: Program) -> tuple[Opaque, ...]:
    """All opaque functions that a program calls, inside its solves too."""
    blocks = (n for n in walk_lines(program) if isinstance(operation(n.op), _OpaqueBlock))
    return tuple(dict.fromkeys(_find_called(n) for n in blocks))


def find_misplaced(program: Program, what: str) -> tuple[Problem, ...]:
    """A problem for each line that `what`, which runs points apart, cannot hold."""
    rules = ((operation(n.op), n) for n in walk_lines(program))
    return tuple(dict.fromkeys(rule.refuse(n, what) for rule, n in rules if rule.is_whole))


def is_whole(node: Node) -> bool:
    """Whether a line, or one inside it, is computed for all points at once."""
    rule = operation(node.op)
    solve = node.attr if node.op == "solve" else getattr(node.attr, "solve", None)
    roots = rule.inside(node)[0] if solve is None else solve.rows
    return rule.is_whole or any(is_whole(n) for n in sort_lines(roots))


def walk_lines(program: Program) -> Iterator[Node]:
    """The lines of a program, of its solves, and those inside their operations."""
    left = [program.lines, *(sort_lines(s.rows) for s in program.solves)]
    while left:
        for node in left.pop(0):
            yield node
            if roots := operation(node.op).inside(node)[0]:
                left.append(sort_lines(roots))


def _find_called(node: Node) -> Opaque:
    return node.attr if isinstance(node.attr, Opaque) else node.attr.opaque


class _OpaqueBlock(Operation):
    is_block = is_whole = True

    def refuse(self, node: Node, what: str) -> Problem:
        """The problem of an executor that has no function to call."""
        opaque = _find_called(node)
        told = f"[{opaque.name}] is {opaque.function.what}, and {what} cannot hold it"
        return Problem("opaque-model", told, opaque.span, opaque.function.instead)

    def unroll_block(self, to: "Unrolling", node: Node) -> NoReturn:
        """Refuse: an opaque function has no lines to write out."""
        raise IngotError([self.refuse(node, "generated C++")])


class _Call(_OpaqueBlock):
    """A call of an opaque function."""

    name = "opaque"

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> dict[int, Tangent]:
        b, opaque = d.builder, node.attr
        own = opaque.find_own_axes()
        keys = sorted({key for a in node.args for key in known.get(a.id, {})})
        for column, shifts in keys:
            for axis in columns[column].axes if shifts else ():
                if axis.name in own:
                    raise Unstructured(axis.name)
        sides = [known.get(a.id, {}).get(key, b.zero) for key in keys for a in node.args]
        product = _Product(opaque, len(keys))
        block = b.node("opaque_product", (*node.args, *sides), product)
        result: dict[int, Tangent] = {}
        for i, port in enumerate(p for p in opaque.gives for _ in range(p.width)):
            result[i] = keep_nonzero({
                key: b.node("item", (block,), (i, k), (*port.axes, *product.seeds(block, k)))
                for k, key in enumerate(keys)
            })  # fmt: skip
        return result

    def pull(self, d: Slopes, node: Node, bar: dict[int, Node]) -> Bars:
        b, opaque = d.builder, node.attr
        count = sum(p.width for p in opaque.gives)
        sides = [bar.get(i, b.zero) for i in range(count)]
        product = _Product(opaque, 1, is_transposed=True)
        block = b.node("opaque_product", (*node.args, *sides), product)
        seeds = product.seeds(block, 0)
        ports = [p for p in opaque.takes for _ in range(p.width)]
        found: Bars = []
        for i, (arg, port) in enumerate(zip(node.args, ports, strict=True)):
            if arg.is_number:
                continue
            term = b.node("item", (block,), (i, 0), (*port.axes, *seeds))
            # what an operand does not vary along was broadcast, whose transpose is a sum
            for axis in port.axes:
                if axis not in arg.axes:
                    term = sum_over(b, term, axis)
            found.append((arg, term))
        return found

    def evaluate(self, on: Any, space: Space, node: Node, args: Sequence[Any]) -> Any:
        opaque: Opaque = node.attr
        inputs = _gather(on, space, opaque.takes, node.args, args)
        outputs = opaque.function(inputs)
        on.call.reports[opaque] = opaque.function.report(opaque.name, on.call.points)
        found = (
            part for port, x in zip(opaque.gives, outputs, strict=True)
            for part in _scatter(on, space, port, _check(on, space, opaque, port, x)[None])
        )  # fmt: skip
        return dict(enumerate(found))

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"opaque [{node.attr.name}]({', '.join(args)})"


class _Multiply(_OpaqueBlock):
    """The Jacobian of an opaque function, or its transpose, times right-hand sides."""

    name = "opaque_product"

    def _refuse(self, node: Node) -> IngotError:
        return IngotError([Problem(
            "second-derivative",
            f"a derivative of [{node.attr.opaque.name}], which is opaque, is differentiated again",
            None, "write that part as laws: programs differentiate them to any order",
        )])  # fmt: skip

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Any:
        raise self._refuse(node)

    def pull(self, d: Slopes, node: Node, bar: Any) -> Bars:
        raise self._refuse(node)

    def evaluate(self, on: Any, space: Space, node: Node, args: Sequence[Any]) -> Any:
        product: _Product = node.attr
        function, count = product.opaque.function, sum(p.width for p in product.opaque.takes)
        inputs = _gather(on, space, product.opaque.takes, node.args[:count], args[:count])
        multiply = function.pull if product.is_transposed else function.push
        value = {a.id: x for a, x in zip(node.args, args, strict=True)}
        found = _Results(product, node)
        # sides along the same ports share one Jacobian
        for ports, sides in product.group_sides(node).items():
            parts = []
            for k in sides:
                nodes, seeds = product.side(node, k), product.seeds(node, k)
                given = [value[n.id] for n in nodes]
                parts.append(_gather(on, space, product.takes, nodes, given, seeds))
            whole = [
                torch.cat(x) if i in ports else None for i, x in enumerate(zip(*parts, strict=True))
            ]
            sizes = [space.size(product.seeds(node, k)) for k in sides]
            at = 0
            for port, x in zip(product.gives, multiply(inputs, whole), strict=True):
                for k, part in zip(sides, () if x is None else x.split(sizes), strict=False):
                    placed = _scatter(on, space, port, part, product.seeds(node, k))
                    found.update({(at + i, k): y for i, y in enumerate(placed)})
                at += port.width
        return found

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        what = "adjoint" if node.attr.is_transposed else "slopes"
        return f"{what}({node.attr.opaque.name}: {node.attr.sides} sides)"


def _gather(
    on: Any, space: Space, ports: Sequence[Port], nodes: Sequence[Node], values: Sequence[Any],
    seeds: tuple[Axis, ...] | None = None,
) -> list[Tensor]:  # fmt: skip
    """Components as one tensor a port: `(points, *axes, *base)`, seeds flat in front of them."""
    left = zip(nodes, values, strict=True)
    found = []
    for port in ports:
        axes = (*(seeds or ()), *port.axes)
        parts = []
        for _ in range(port.width):
            node, value = next(left)
            x = on.take(value, node.axes)
            keys = [a.key for a in node.axes]
            order = [1 + keys.index(a.key) for a in axes if a.key in keys]
            sizes = [space.extent(a) if a.key in keys else 1 for a in axes]
            x = x.permute(0, *order).reshape(len(x), *sizes)
            parts.append(x.expand(len(x), *map(space.extent, axes)))
        whole = torch.stack(parts, dim=-1).reshape(*parts[0].shape, *port.kind.base)
        if seeds is not None:
            whole = whole.flatten(1, len(seeds)) if seeds else whole[:, None]
            whole = whole.movedim(1, 0)
        found.append(whole)
    return found


def _scatter(
    on: Any, space: Space, port: Port, x: Tensor, seeds: tuple[Axis, ...] = ()
) -> list[Any]:
    """The components of a tensor `(seeds, points, *axes, *base)`."""
    sizes = [space.extent(a) for a in (*seeds, *port.axes)]
    flat = x.movedim(0, 1).reshape(x.shape[1], *sizes, port.width)
    return [on.place(part, (*seeds, *port.axes)) for part in flat.unbind(-1)]


def _check(on: Any, space: Space, opaque: Opaque, port: Port, x: Any) -> Tensor:
    """An output in the precision of the others, if it has its shape."""
    want = (on.call.points, *map(space.extent, port.axes), *port.kind.base)
    if not isinstance(x, Tensor) or tuple(x.shape) != want:
        found = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"a {type(x).__name__}"
        told = f"[{opaque.name}] returns '{port.name}' as {found} for inputs of batch {want[:1]}"
        raise IngotError([Problem(
            "wrong-shape", f"{told}, not of shape {want}", None,
            f"return a {port.kind.__name__} as a tensor (*batch, *base), here {want}",
        )])  # fmt: skip
    return x.to(on.call.dtype)
