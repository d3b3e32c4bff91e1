"""A solve whose step may be taken in parts -> C++ functions of a part, and calls of parts.h."""

import itertools
from collections.abc import Mapping, Sequence

from ingot.codegen.lines import Access, Lines
from ingot.codegen.solve import SolveWriter
from ingot.codegen.values import read_name
from ingot.program import Node, Solve
from ingot.program.operations import Place
from ingot.program.solve_operations import Accumulate, find_leaf_arguments
from ingot.program.substeps import Part, open_part

__all__ = ["PartWriter"]

_HERE = "const V* __restrict g, const V* __restrict c, V begin, V end"


class PartWriter:
    """Writes the functions of a solve's node; writer: of the others of the solve."""

    def __init__(self, node: Node, writer: SolveWriter) -> None:
        self.writer, self.node, self.k = writer, node, writer.k
        self.space = space = writer.space
        self.part: Part = open_part(space, node)
        self.solve: Solve = node.attr
        self.print_lines, self.flat = writer.start_lines, writer.read_unknowns
        self.size = space.count_entries(self.solve.columns)
        self.given = max(space.count_entries(self.solve.given), 1)
        self.carried = space.count_entries(self.part.carried)
        self.leaves = space.count_entries(self.part.leaves)

    @property
    def record(self) -> str:
        """The type of what is kept of parts."""
        return f"Parts<{self.size}, {self.given}, {self.carried}>"

    def write_functions(self, derivatives: Sequence[Accumulate]) -> list[str]:
        """All that a part and the derivatives asked for take."""
        p, k = self.part, self.k
        rows = self._write_function(f"part_first_{k}(const V* __restrict g, V* __restrict f)", [
            (p.first, p.carried, "f"),
        ])  # fmt: skip
        rows += self._write_function(
            f"part_{k}({_HERE}, V* __restrict u, V* __restrict h, V* __restrict f)",
            [(p.guesses, self.solve.columns, "u"), (p.given, self.solve.given, "h")],
            self._find_others(p.follows),
        )
        rows += self._write_follow("follow", "const V* __restrict u, V* __restrict f", "{1} = {0};")
        if any(not a.is_transposed for a in derivatives):
            t = p.tangents
            first = "const V* __restrict g, const V* __restrict dg, V* __restrict df"
            rows += self._write_function(f"along_first_{k}({first})", [(t.first, p.carried, "df")])
            head = f"{_HERE}, const V* __restrict u, const V* __restrict dg,"
            head += " const V* __restrict dc, V* __restrict b, V* __restrict df"
            sides = [(t.sides, self.solve.columns, "b")]
            rows += self._write_function(
                f"along_{k}({head})", sides, self._find_others(t.follows, "df")
            )
        if any(a.is_transposed for a in derivatives):
            a = p.adjoints
            first = "const V* __restrict g, const V* __restrict dc, V* __restrict dg"
            rows += self._write_function(f"back_first_{k}({first})", [(a.first, p.leaves, "dg")])
            head = f"{_HERE}, const V* __restrict u, const V* __restrict x,"
            head += " const V* __restrict dc, V* __restrict dg, V* __restrict df"
            rows += self._write_function(
                f"back_{k}({head})", [(a.leaves, p.leaves, "dg"), (a.carried, p.carried, "df")]
            )
            given = "const V* __restrict f, V* __restrict u"
            rows += self._write_follow("follow_back", given, "{0} += {1};")
        return rows

    def write_call(self, tag: int, level: int, indent: str, *, is_kept: bool) -> list[str]:
        """Take the step of a solve in parts where it failed."""
        k, at = self.k, f"s{tag}"
        rows = [f"{indent}{self.record} parts{tag};"] if is_kept else []
        kept = f"&parts{tag}" if is_kept else f"static_cast<{self.record}*>(nullptr)"
        newton = f"[&](const V* g, auto& s) {{ newton_{k}(g, s, around.knobs[{k}]); }}"
        return [
            *rows,
            f"{indent}if (__builtin_expect(any({at}.alive & no({at}.done)), 0))",
            f"{indent}  take_in_parts({at}, g{tag}, {level}, {kept}, part_first_{k}, part_{k},"
            f" follow_{k}, {newton});",
        ]

    def write_accumulate(self, lines: Lines, node: Node) -> tuple[list[str], dict[object, Access]]:
        """The results of `linear`, with derivatives through parts put in their place."""
        attr: Accumulate = node.attr
        block, tag, indent = node.args[0].args[0].id, node.id, lines.indent
        sides = range(attr.sides)
        along = [attr.along(node, i) for i in sides]
        seeds = [attr.seeds(node, i) for i in sides]
        starts = [0, *itertools.accumulate(self.space.size(s) for s in seeds)]
        base = [attr.side(node, i) for i in sides]
        rows = lines([n for side in (*base, *along) for n in side])
        found: dict[object, Access] = {}
        linear = base[0][0].args[0]
        x = f"x{linear.id}"
        if any(linear.attr.seeds(linear, i) != seeds[i] for i in sides):
            # some sides are zero there, whatever their seed axes are here
            x = f"x{tag}"
            rows.append(f"{indent}const Array<V, {self.size * starts[-1]}> {x};")
        for i in sides:
            axes = [(*seeds[i], *c.axes) for c in self.solve.columns]
            targets = self.writer.read_side(x, starts[i], seeds[i])
            if x == f"x{tag}":
                rows += lines.store(targets, base[i], axes, indent)
            found |= {(slot, i): at for slot, at in enumerate(targets)}
        leaves = dict(zip(find_leaf_arguments(self.node), self.part.leaves, strict=True))
        rows.append(f"{indent}if (__builtin_expect(parts{block}.count, 0)) {{")
        if attr.is_transposed:
            rows.insert(-1, f"{indent}V dg{tag}[{max(self.leaves, 1)}] = {{}};")
            places = dict(
                zip(self.part.leaves, self._lay_out(self.part.leaves, f"dg{tag}"), strict=True)
            )
            for j, line in enumerate(attr.leaf_lines(node)):
                leaf = leaves.pop(line, None)
                found["leaf", j] = read_name("V{}") if leaf is None else places[leaf]
            rows += self._write_back(lines, node, block, x)
        else:
            rows += self._write_along(lines, node, block, x, leaves, starts)
        return [*rows, f"{indent}}}"], found

    def _write_back(self, lines: Lines, node: Node, block: int, x: str) -> list[str]:
        """Adjoints of leaves through the parts of a block."""
        k, tag, indent = self.k, node.id, lines.indent + "  "
        axes = [c.axes for c in self.solve.columns]
        bars = node.attr.along(node, 0)
        return [
            f"{indent}V b{tag}[{self.size}];",
            *lines.store(self.flat(f"b{tag}"), bars, axes, indent),
            f"{indent}back_through_parts<{self.leaves}>(parts{block}, g{block}, b{tag}, dg{tag},"
            f" {x}.data, back_first_{k}, back_{k}, follow_back_{k}, adjoint_{k});",
        ]

    def _write_along(
        self, lines: Lines, node: Node, block: int, x: str, leaves: Mapping[Node, Node],
        starts: Sequence[int],
    ) -> list[str]:  # fmt: skip
        """Tangents of unknowns through the parts of a block; leaves: by their lines."""
        k, tag, indent = self.k, node.id, lines.indent + "  "
        attr: Accumulate = node.attr
        places = dict(zip(self.part.leaves, self._lay_out(self.part.leaves, ""), strict=True))
        total = max(self.leaves * starts[-1], 1)
        rows = [
            f"{indent}const Array<V, {total}> dg{tag};",
            f"{indent}for (int i = 0; i < {total}; ++i) dg{tag}[i] = V{{}};",
        ]
        for i in range(attr.sides):
            seeds = attr.seeds(node, i)
            for line, tangent in zip(attr.leaf_lines(node), attr.along(node, i), strict=True):
                leaf = leaves.get(line)
                if leaf is not None:
                    index = lines.index(seeds) if seeds else read_name("0")
                    to = _shift(places[leaf], f"dg{tag}", starts[i], self.leaves, index)
                    rows += lines.store([to], [tangent], [(*seeds, *leaf.axes)], indent)
        return [
            *rows,
            f"{indent}along_parts(parts{block}, g{block}, dg{tag}.data, {self.leaves},"
            f" {x}.data, {starts[-1]}, along_first_{k}, along_{k}, follow_{k}, linear_{k});",
        ]

    # functions

    def _write_function(
        self, head: str, results: Sequence[tuple[Sequence[Node], Sequence[Node], str]],
        others: Sequence[tuple[Access, Node, Node]] = (),
    ) -> list[str]:  # fmt: skip
        """A function that stores lines in arrays, laid out like others; unknowns as they stand."""
        lines = self.print_lines("  ")
        p = self.part
        self._name(lines, self.solve.given, "g")
        lines.name_all(self.solve.columns, self.flat("u"))
        self._name(lines, p.carried, "c")
        lines.name_all(p.ends, [read_name("begin"), read_name("end")])
        if "dc" in head or "dg" in head:
            self._name_directions(lines, head)
        rows = lines([n for nodes, _, _ in results for n in nodes] + [n for _, n, _ in others])
        for nodes, like, array in results:
            at = self.flat(array) if like == self.solve.columns else self._lay_out(like, array)
            rows += lines.store(at, nodes, [n.axes for n in like], "  ")
        for at, node, like in others:
            rows += lines.store([at], [node], [like.axes], "  ")
        self.writer.tables.update(dict.fromkeys(lines.tables))
        unused = head.replace("(", "([[maybe_unused]] ", 1).replace(", ", ", [[maybe_unused]] ")
        return [f"INGOT_COLD void {unused} {{", *rows, "}", ""]

    def _name_directions(self, lines: Lines, head: str) -> None:
        """Directions and adjoints, which a function is given in arrays."""
        p = self.part
        if "const V* __restrict dg" in head:
            self._name(lines, p.tangents.leaves, "dg")
            self._name(lines, p.tangents.carried, "dc")
        else:
            lines.name_all(p.adjoints.rows, self.flat("x"))
            self._name(lines, p.adjoints.follows, "dc")

    def _find_others(
        self, follows: Sequence[Node], array: str = "f"
    ) -> list[tuple[Access, Node, Node]]:
        """What is carried on that is no unknown, and where it goes."""
        p = self.part
        places = self._lay_out(p.carried, array)
        rows = zip(places, follows, p.carried, p.states, strict=True)
        return [(at, node, like) for at, node, like, state in rows if state is None]

    def _write_follow(self, name: str, given: str, assign: str) -> list[str]:
        """A function between unknowns and where they are carried on."""
        p = self.part
        rows = []
        lines = self.print_lines("")
        for c, at, state in zip(p.carried, self._lay_out(p.carried, "f"), p.states, strict=True):
            if state is not None:
                place = {a.key: f"i{d}" for d, a in enumerate(c.axes)}
                text = assign.format(self.flat("u")[state](place), at(place))
                rows.append(f"  {lines.open_loops(c.axes)}{text}")
        unused = given.replace("const V*", "[[maybe_unused]] const V*")
        unused = unused.replace(", V*", ", [[maybe_unused]] V*")
        return [f"INGOT_COLD void {name}_{self.k}({unused}) {{", *rows, "}", ""]

    def _lay_out(self, nodes: Sequence[Node], array: str) -> list[Access]:
        return self.print_lines("").lay_out(nodes, array)

    def _name(self, lines: Lines, nodes: Sequence[Node], array: str) -> None:
        lines.name_all(nodes, lines.lay_out(nodes, array))


def _shift(access: Access, array: str, start: int, size: int, index: Access) -> Access:
    """The same place in one of the arrays that lie end to end, of so many numbers each."""

    def text(place: Place) -> str:
        return f"{array}[({start} + {index(place)}) * {size} + {access(place)[1:-1]}]"

    return text
