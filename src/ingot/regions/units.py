"""A piece and what it is given -> compiled code, made once for all pieces that are alike.

Alike are pieces with the same operations, on tensors that lie alike, under the same modes; what
differs between instances is numbers. Open sizes are traced as symbols of the unit's own, and what
the trace takes for granted of them is asked of every graph that uses the unit.
"""

import operator
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import SymInt, Tensor, fx

from ingot.graphs import torch_private
from ingot.graphs.expression import expression
from ingot.graphs.replay import PLAIN
from ingot.graphs.sizes import Open, Size
from ingot.graphs.torch_private import expression_of, hint_of

__all__ = ["UNITS", "Compiler", "Operands", "Unit", "find_unit", "text_of"]

Compiler = Callable[[fx.GraphModule, list[Any]], Callable[..., Sequence[Any]]]
"""What a backend of torch.compile is."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Compiled code of a piece, which gives what the piece does.

    guards: what it takes for granted of the open sizes, as Python over their names.
    """

    run: Callable[..., Sequence[Any]]
    guards: tuple[str, ...]
    seconds: float


KEPT = 512
"""How many different pieces a process keeps; the one that was used longest ago is dropped."""

UNITS: OrderedDict[Hashable, list[Unit]] = OrderedDict()
"""What this process has compiled; Dynamo holds its lock whenever this is read or written."""


def find_unit(
    write: Callable[[], fx.GraphModule], text: Hashable, operands: "Operands",
    needs: Sequence[bool], compiler: Compiler,
) -> tuple[Unit, bool]:  # fmt: skip
    """The unit of a piece for such operands, and whether it was there already.

    write: gives the piece as a graph, text: what that does; needs: of which operands the unit
    computes gradients.
    """
    key = (compiler, text, operands.key, tuple(needs), torch_private.ambient())
    known = UNITS.setdefault(key, [])
    UNITS.move_to_end(key)
    while len(UNITS) > KEPT:
        UNITS.popitem(last=False)
    for unit in known:
        if all(operands.holds(guard) for guard in unit.guards):
            return unit, True
    begun = time.perf_counter()
    sizes = Open(operands.hints)
    with torch_private.tracing_context(sizes.mode):
        made = compiler(write(), operands.rebuild(sizes, needs))
    unit = Unit(made, tuple(sizes.guards()), time.perf_counter() - begun)
    if not all(operands.holds(guard) for guard in unit.guards):
        raise AssertionError(f"a unit does not take what it was compiled for: {unit.guards}")
    known.append(unit)
    return unit, False


@dataclass(frozen=True, slots=True)
class _TensorKey:
    """What code takes for granted of a tensor."""

    dtype: torch.dtype
    device: torch.device
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]


class Operands:
    """What a piece is given in one graph, with its open sizes by names of the piece's own."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.sizes: dict[str, SymInt] = {}
        self._names: dict[Any, str] = {}
        for size in _sizes(values):
            if expression_of(size).is_Symbol:
                self._name(size)
        self.key = tuple(map(self._describe, values))
        self.needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in values)

    @property
    def hints(self) -> dict[str, int]:
        """The number that each open size has in the call that is compiled for."""
        return {name: int(hint_of(size)) for name, size in self.sizes.items()}

    def holds(self, guard: str) -> bool:
        """Whether a guard holds here; the graph that these values are of takes on the answer."""
        return bool(expression(guard)(cast(Any, self.sizes)))

    def rebuild(self, sizes: Open, needs: Sequence[bool]) -> list[Any]:
        """The same operands without numbers, in a trace of their own."""
        made = [self._rebuild_one(key, sizes) for key in self.key]
        return [x.requires_grad_() if need else x for x, need in zip(made, needs, strict=True)]

    def _rebuild_one(self, key: Any, sizes: Open) -> Any:
        def number(size: Size) -> Any:
            return expression(size)(sizes.symbols) if isinstance(size, str) else size

        if isinstance(key, _TensorKey):
            with sizes.mode:
                return torch.empty_strided(
                    [*map(number, key.sizes)], [*map(number, key.strides)],
                    dtype=key.dtype, device=key.device,
                )  # fmt: skip
        kind, value = key
        return number(value) if kind is SymInt else value

    def _describe(self, value: Any) -> Hashable:
        if isinstance(value, Tensor):
            return _TensorKey(
                value.dtype, value.device, tuple(map(self._size, value.shape)),
                tuple(map(self._size, value.stride())),
            )  # fmt: skip
        if isinstance(value, SymInt):
            size = self._size(value)
            return (SymInt, size) if isinstance(size, str) else (int, size)
        return type(value), value

    def _size(self, size: int | SymInt) -> Size:
        """A size as a number, or as Python over the names of open ones."""
        if isinstance(size, int):
            return size
        expr = expression_of(size)
        if expr.is_number:
            return int(expr)
        hint = int(hint_of(size))
        if hint < 2:  # torch compiles for 0 and 1 as for numbers
            assert size == hint
            return hint
        if not expr.free_symbols <= self._names.keys():
            assert size >= 2  # as torch takes for granted of its symbols
            return self._name(size)
        names = {symbol: _symbol(self._names[symbol]) for symbol in expr.free_symbols}
        return torch_private.print_expression(expr.xreplace(names))

    def _name(self, size: SymInt) -> str:
        expr = expression_of(size)
        if expr not in self._names:
            self._names[expr] = name = f"n{len(self._names)}"
            self.sizes[name] = size
        return self._names[expr]


def _symbol(name: str) -> Any:
    import sympy

    return sympy.Symbol(name, integer=True, positive=True)


def _sizes(values: Sequence[Any]) -> Iterator[SymInt]:
    for value in values:
        if isinstance(value, SymInt):
            yield value
        elif isinstance(value, Tensor):
            yield from (s for s in value.shape if isinstance(s, SymInt))


# what a piece does, as a key


@dataclass(frozen=True, eq=False, slots=True)
class _Same:
    """An object that is equal to itself only, and is kept so that its id is not used again."""

    what: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.what is self.what

    def __hash__(self) -> int:
        return id(self.what)


def text_of(
    module: fx.GraphModule, nodes: Iterable[fx.Node], given: Sequence[fx.Node] = ()
) -> Hashable:
    """What nodes of a graph do; bodies of higher-order operators are opened.

    given: nodes that they read, and that are told by their numbers alone.
    """
    number = {node: i for i, node in enumerate([*given, *nodes])}

    def told(value: Any) -> Hashable:
        if isinstance(value, fx.Node):
            return ("node", number[value])
        if isinstance(value, (list, tuple)):
            return (type(value), *map(told, value))
        if isinstance(value, dict):
            return (dict, *((told(k), told(v)) for k, v in value.items()))
        if isinstance(value, slice):
            return (slice, told(value.start), told(value.stop), told(value.step))
        if isinstance(value, float):
            return (float, value.hex())
        return (type(value), value) if isinstance(value, PLAIN) else _Same(value)

    def target(node: fx.Node) -> Hashable:
        if node.op == "get_attr":
            held = operator.attrgetter(str(node.target))(module)
            opened = isinstance(held, fx.GraphModule)
            return text_of(held, held.graph.nodes) if opened else _Same(held)
        if node.op == "placeholder":
            return None
        return node.target if isinstance(node.target, str) else _Same(node.target)

    return len(given), *(
        (node.op, target(node), told(node.args), told(node.kwargs)) for node in nodes
    )
