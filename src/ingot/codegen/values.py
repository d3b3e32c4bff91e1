"""Values and definitions of C++ as data: numbers, names, entries of arrays; printed by `str`."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ingot.program import Node
from ingot.program.operations import Place

__all__ = [
    "Access",
    "ArrayEntry",
    "Constant",
    "Definition",
    "SharedDefinitions",
    "Spelled",
    "cast_mask",
    "find_operands",
    "read_entry",
    "read_name",
    "shift_entry",
    "write_number",
]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in all lanes."""

    value: float

    def __str__(self) -> str:
        return f"splat({write_number(self.value)})"


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """Entry `offset + stride * index` of an array of numbers; a condition lies there as bits."""

    array: str
    offset: int = 0
    index: str = ""
    stride: int = 1
    is_condition: bool = False

    @property
    def place(self) -> str:
        """Where it lies, as C++ writes it."""
        if not self.index:
            return str(self.offset)
        if (self.offset, self.stride) == (0, 1):
            return self.index
        return f"{self.offset} + {self.stride} * ({self.index})"

    def __str__(self) -> str:
        text = f"{self.array}[{self.place}]"
        return f"((M){text})" if self.is_condition else text


Spelled = str | Constant | ArrayEntry
"""A value where it is read: a name or an expression, a constant, or an entry of an array."""

Access = Callable[[Place], Spelled]
"""How a value is written at a place."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Functions or a table as text, the names that it defines, and those that it reads."""

    text: str
    names: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()


class SharedDefinitions:
    """What kernels of one translation unit define, what is the same once: that is half of what a
    kernel of derivatives takes to compile, as values and the functions that solve for them are the
    same bits in every entry of a library.

    homes: what was defined so far, each text with the namespaces of the names it reads.
    """

    def __init__(self) -> None:
        self.homes: dict[tuple[str, frozenset[tuple[str, str]]], str] = {}

    def write(self, definitions: Sequence[Definition], namespace: str) -> list[str]:
        """The definitions of a namespace; what stands in another already is used from there."""
        rows: list[str] = []
        home: dict[str, str] = {}
        for each in definitions:
            reads = frozenset((name, home[name]) for name in each.reads if name in home)
            where = self.homes.setdefault((each.text, reads), namespace)
            home |= dict.fromkeys(each.names, where)
            used = [f"using {where}::{name};" for name in each.names]
            rows += [each.text] if where == namespace else used
        return rows


def write_number(x: float) -> str:
    """A constant as C++ writes it."""
    if x != x:
        return "real(nan)"
    if x in (float("inf"), float("-inf")):
        return "real(infinity)" if x > 0 else "real(-infinity)"
    return f"real({x!r})"


def cast_mask(node: Node) -> str:
    """The C++ cast that stores a lane mask in a vector of numbers; nothing for a number."""
    return "(V)" if node.is_condition else ""


def read_entry(node: Node, array: str, offset: int) -> Access:
    """A value in an array of numbers."""
    return read_name(ArrayEntry(array, offset, is_condition=node.is_condition))


def shift_entry(access: Access, array: str, size: int, block: Access) -> Access:
    """The same place in a block of another array, in which blocks of a size lie end to end."""

    def shift(place: Place) -> ArrayEntry:
        entry = access(place)
        assert isinstance(entry, ArrayEntry), f"{entry} is no entry of an array"
        return ArrayEntry(array, index=f"({block(place)}) * {size} + {entry.place}")

    return shift


def find_operands(node: Node, fused: Collection[int]) -> list[Node]:
    """The lines that a line reads, through products that are fused with it."""
    return [x for a in node.args for x in (a.args if a.id in fused else (a,))]


def read_name(value: Spelled) -> Access:
    """A value that is written the same everywhere."""
    return lambda _: value
