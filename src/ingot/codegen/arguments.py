"""What a region's instances read -> the arguments of its function, and the loop that calls it."""

from typing import TYPE_CHECKING

from ingot.codegen.statements import Row, count_up
from ingot.codegen.values import (
    Access,
    ArrayEntry,
    Definition,
    Spelled,
    cast_mask,
    read_entry,
    read_name,
    write_number,
)
from ingot.program import Node
from ingot.program.regions import Twins

if TYPE_CHECKING:
    from ingot.codegen.lines import Lines

__all__ = ["RegionCall"]


class RegionCall:
    """The arguments of a region's function: packed, or pointers into arrays that exist."""

    def __init__(self, printer: "Lines", number: int, instances: int) -> None:
        self.printer = printer
        self.number = number
        self.instances = instances
        self.shared: list[str] = []
        self.numbers: list[Twins] = []
        self.packed: list[Twins] = []
        self.arrays: dict[tuple[str, tuple[int, ...]], int] = {}
        self.known: dict[Twins, Access] = {}
        self.tables: list[Definition] = []

    def write_argument(self, read: Twins) -> Access:
        """How the function writes what its instances read."""
        if read not in self.known:
            self.known[read] = self._pass_argument(read)
        return self.known[read]

    def _pass_argument(self, read: Twins) -> Access:
        first = read[0]
        if all(n.op == "const" for n in read):
            if len(set(read)) == 1:
                return read_name(self._read(first))
            self.numbers.append(read)
            return read_name(f"splat(c[{len(self.numbers) - 1}])")
        if len(set(read)) == 1:
            self.shared.append(f"{cast_mask(first)}{self._read(first)}")
            return read_entry(first, "h", len(self.shared) - 1)
        found = [x for x in map(self._read, read) if isinstance(x, ArrayEntry) and not x.index]
        names = {x.array for x in found}
        if len(names) == 1 and len(found) == len(read):
            start = found[0].offset
            key = names.pop(), tuple(x.offset - start for x in found)
            which = self.arrays.setdefault(key, len(self.arrays))
            return read_entry(first, f"p{which}", start)
        self.packed.append(read)
        return read_entry(first, "q", len(self.packed) - 1)

    def _read(self, node: Node) -> Spelled:
        return self.printer.read(node)

    def write(self, size: int) -> tuple[list[str], list[Row]]:
        """The function's parameters but for its results; the loop over the instances that calls
        it, and the arrays that it reads and fills.
        """
        n, i = self.number, self.instances
        rows: list[Row] = []
        given: dict[str, str] = {}
        if self.shared:
            rows.append(f"const V h{n}[] = {{{', '.join(self.shared)}}};")
            given["const V* __restrict h"] = f"h{n}"
        for j, (name, offsets) in enumerate(self.arrays):
            step = offsets[1]
            place = f"{step} * k"
            if any(o != step * k for k, o in enumerate(offsets)):
                text, place = ", ".join(map(str, offsets)), f"at_{n}_{j}[k]"
                table = f"constexpr int at_{n}_{j}[] = {{{text}}};"
                self.tables.append(Definition(table, (f"at_{n}_{j}",)))
            given[f"const V* __restrict p{j}"] = f"{name} + {place}"
        if self.packed:
            width = len(self.packed)
            texts = [f"{cast_mask(t[k])}{self._read(t[k])}" for k in range(i) for t in self.packed]
            rows.append(f"const V q{n}[] = {{{', '.join(texts)}}};")
            spread = [(node, k * width + j) for j, t in enumerate(self.packed)
                      for k, node in enumerate(t)]  # fmt: skip
            for node, at in reversed(spread):
                self.printer.name({node.id: read_entry(node, f"q{n}", at)})
            given["const V* __restrict q"] = f"q{n} + {width} * k"
        if self.numbers:
            width = len(self.numbers)
            texts = [write_number(t[k].attr) for k in range(i) for t in self.numbers]
            table = f"constexpr real lifted_{n}[] = {{{', '.join(texts)}}};"
            self.tables.append(Definition(table, (f"lifted_{n}",)))
            given["const real* __restrict c"] = f"lifted_{n} + {width} * k"
        rows.append(f"V r{n}[{max(i * size, 1)}];")
        call = f"region_{n}({', '.join([*given.values(), f'r{n} + {size} * k'])});"
        return [*given], [*rows, f"{count_up('k', 0, i)} {call}"]
