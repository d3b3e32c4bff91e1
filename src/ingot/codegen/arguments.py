"""What a region's instances read -> the arguments of its function, and the loop that calls it."""

from typing import TYPE_CHECKING

from ingot.codegen.values import (
    ARRAY_ENTRY,
    Access,
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
            return read_entry(first, f"h[{len(self.shared) - 1}]")
        found = [ARRAY_ENTRY.fullmatch(self._read(n)) for n in read]
        names = {m[1] for m in found if m is not None}
        if len(names) == 1 and all(m is not None for m in found):
            offsets = [int(m[2]) for m in found if m is not None]
            key = names.pop(), tuple(o - offsets[0] for o in offsets)
            which = self.arrays.setdefault(key, len(self.arrays))
            return read_entry(first, f"p{which}[{offsets[0]}]")
        self.packed.append(read)
        return read_entry(first, f"q[{len(self.packed) - 1}]")

    def _read(self, node: Node) -> str:
        return self.printer.read(node)

    def write_parameters(self) -> list[str]:
        """The function's parameters but for its results."""
        given = [f"const V* __restrict p{i}" for i in range(len(self.arrays))]
        given += ["const V* __restrict q"] if self.packed else []
        given += ["const real* __restrict c"] if self.numbers else []
        return [*(["const V* __restrict h"] if self.shared else []), *given]

    def write_calls(self, size: int) -> list[str]:
        """The loop over the instances, and the arrays that it reads and fills."""
        n, i, indent = self.number, self.instances, self.printer.indent
        rows, given = [], []
        if self.shared:
            rows.append(f"{indent}const V h{n}[] = {{{', '.join(self.shared)}}};")
            given.append(f"h{n}")
        for j, (name, offsets) in enumerate(self.arrays):
            step = offsets[1]
            if all(o == step * k for k, o in enumerate(offsets)):
                given.append(f"{name} + {step} * k")
            else:
                text = ", ".join(map(str, offsets))
                self.printer.tables.append(f"constexpr int at_{n}_{j}[] = {{{text}}};")
                given.append(f"{name} + at_{n}_{j}[k]")
        if self.packed:
            width = len(self.packed)
            texts = [f"{cast_mask(t[k])}{self._read(t[k])}" for k in range(i) for t in self.packed]
            rows.append(f"{indent}const V q{n}[] = {{{', '.join(texts)}}};")
            spread = [(node, k * width + j) for j, t in enumerate(self.packed)
                      for k, node in enumerate(t)]  # fmt: skip
            for node, at in reversed(spread):
                self.printer.name({node.id: read_entry(node, f"q{n}[{at}]")})
            given.append(f"q{n} + {width} * k")
        if self.numbers:
            width = len(self.numbers)
            texts = [write_number(t[k].attr) for k in range(i) for t in self.numbers]
            self.printer.tables.append(f"constexpr real lifted_{n}[] = {{{', '.join(texts)}}};")
            given.append(f"lifted_{n} + {width} * k")
        rows.append(f"{indent}V r{n}[{max(i * size, 1)}];")
        call = f"region_{n}({', '.join([*given, f'r{n} + {size} * k'])});"
        return [*rows, f"{indent}for (int k = 0; k < {i}; ++k) {call}"]
