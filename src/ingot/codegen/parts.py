"""A solve whose step may be taken in parts -> C++ functions of a part, and calls of parts.h."""

import itertools
from collections.abc import Mapping, Sequence

from ingot.codegen.lines import Access, Lines
from ingot.codegen.solve import SolveWriter
from ingot.codegen.statements import Block, Row, write_function
from ingot.codegen.values import Definition, read_name, shift_entry
from ingot.program import Node, Solve
from ingot.program.solve_operations import Accumulate, find_leaf_arguments
from ingot.program.substeps import Part, open_part

__all__ = ["PartWriter"]

_NUMBERS = ("begin", "end")
_HERE = "g c begin end"
"""What functions of a part are given: arrays but for the numbers between which the part lies."""


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

    def write_functions(self, derivatives: Sequence[Accumulate]) -> list[Definition]:
        """All that a part and the derivatives asked for take."""
        p, columns = self.part, self.solve.columns
        found = [
            self._write_function("part_first", "g", "f", [(p.first, p.carried, "f")]),
            self._write_function(
                "part", _HERE, "u h f",
                [(p.guesses, columns, "u"), (p.given, self.solve.given, "h")],
                self._find_others(p.follows),
            ),
            self._write_follow("follow", "u", "f", "{1} = {0};"),
        ]  # fmt: skip
        if any(not a.is_transposed for a in derivatives):
            t = p.tangents
            sides, others = [(t.sides, columns, "b")], self._find_others(t.follows, "df")
            found += [
                self._write_function("along_first", "g dg", "df", [(t.first, p.carried, "df")]),
                self._write_function("along", f"{_HERE} u dg dc", "b df", sides, others),
            ]
        if any(a.is_transposed for a in derivatives):
            a = p.adjoints
            leaves, carried = (a.leaves, p.leaves, "dg"), (a.carried, p.carried, "df")
            found += [
                self._write_function("back_first", "g dc", "dg", [(a.first, p.leaves, "dg")]),
                self._write_function("back", f"{_HERE} u x dc", "dg df", [leaves, carried]),
                self._write_follow("follow_back", "f", "u", "{0} += {1};"),
            ]
        return found

    def write_call(self, lines: Lines, tag: int, level: int, *, is_kept: bool) -> list[Row]:
        """Take the step of a solve in parts where it failed."""
        k, at = self.k, f"s{tag}"
        lines.calls |= {f"{name}_{k}" for name in ("part_first", "part", "follow", "newton")}
        rows = [f"{self.record} parts{tag};"] if is_kept else []
        kept = f"&parts{tag}" if is_kept else f"static_cast<{self.record}*>(nullptr)"
        newton = f"[&](Lent* g, auto& s) {{ newton_{k}(g, s, around.knobs[{k}]); }}"
        return [
            *rows,
            f"if (__builtin_expect(any({at}.alive & no({at}.done)), 0))",
            f"  take_in_parts({at}, g{tag}, {level}, {kept}, part_first_{k}, part_{k},"
            f" follow_{k}, {newton});",
        ]

    def write_accumulate(self, lines: Lines, node: Node) -> tuple[list[Row], dict[object, Access]]:
        """The results of `linear`, with derivatives through parts put in their place."""
        attr: Accumulate = node.attr
        block, tag = node.args[0].args[0].id, node.id
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
            rows.append(f"const Array<V, {self.size * starts[-1]}> {x};")
        for i in sides:
            axes = [(*seeds[i], *c.axes) for c in self.solve.columns]
            targets = self.writer.read_side(x, starts[i], seeds[i])
            if x == f"x{tag}":
                rows += lines.store(targets, base[i], axes)
            found |= {(slot, i): at for slot, at in enumerate(targets)}
        leaves = dict(zip(find_leaf_arguments(self.node), self.part.leaves, strict=True))
        if attr.is_transposed:
            rows.append(f"V dg{tag}[{max(self.leaves, 1)}] = {{}};")
            places = dict(
                zip(self.part.leaves, self._lay_out(self.part.leaves, f"dg{tag}"), strict=True)
            )
            for j, line in enumerate(attr.leaf_lines(node)):
                leaf = leaves.pop(line, None)
                found["leaf", j] = read_name("V{}") if leaf is None else places[leaf]
            taken = self._write_back(lines, node, block, x)
        else:
            taken = self._write_along(lines, node, block, x, leaves, starts)
        rows.append(Block(f"if (__builtin_expect(parts{block}.count, 0))", taken))
        return rows, found

    def _write_back(self, lines: Lines, node: Node, block: int, x: str) -> list[Row]:
        """Adjoints of leaves through the parts of a block."""
        k, tag = self.k, node.id
        axes = [c.axes for c in self.solve.columns]
        bars = node.attr.along(node, 0)
        lines.calls |= {f"{x}_{k}" for x in ("back_first", "back", "follow_back", "adjoint")}
        return [
            f"V b{tag}[{self.size}];",
            *lines.store(self.flat(f"b{tag}"), bars, axes),
            f"back_through_parts<{self.leaves}>(parts{block}, g{block}, b{tag}, dg{tag},"
            f" {x}.data, back_first_{k}, back_{k}, follow_back_{k}, adjoint_{k});",
        ]

    def _write_along(
        self, lines: Lines, node: Node, block: int, x: str, leaves: Mapping[Node, Node],
        starts: Sequence[int],
    ) -> list[Row]:  # fmt: skip
        """Tangents of unknowns through the parts of a block; leaves: by their lines."""
        k, tag = self.k, node.id
        attr: Accumulate = node.attr
        places = dict(zip(self.part.leaves, self._lay_out(self.part.leaves, ""), strict=True))
        total = max(self.leaves * starts[-1], 1)
        lines.calls |= {f"{x}_{k}" for x in ("along_first", "along", "follow", "linear")}
        rows: list[Row] = [
            f"const Array<V, {total}> dg{tag};",
            f"for (int i = 0; i < {total}; ++i) dg{tag}[i] = V{{}};",
        ]
        for i in range(attr.sides):
            seeds = attr.seeds(node, i)
            for line, tangent in zip(attr.leaf_lines(node), attr.along(node, i), strict=True):
                leaf = leaves.get(line)
                if leaf is not None:
                    side = self.writer.count_side(starts[i], seeds)
                    to = shift_entry(places[leaf], f"dg{tag}", self.leaves, side)
                    rows += lines.store([to], [tangent], [(*seeds, *leaf.axes)])
        return [
            *rows,
            f"along_parts(parts{block}, g{block}, dg{tag}.data, {self.leaves},"
            f" {x}.data, {starts[-1]}, along_first_{k}, along_{k}, follow_{k}, linear_{k});",
        ]

    # functions

    def _define(
        self, name: str, given: str, results: str, rows: Sequence[Row], lines: Lines
    ) -> Definition:
        """A function of arrays and numbers that are given, and of arrays that it fills."""
        name = f"{name}_{self.k}"
        head = [f"V {x}" if x in _NUMBERS else f"const V* __restrict {x}" for x in given.split()]
        head += [f"V* __restrict {x}" for x in results.split()]
        unused = ", ".join(f"[[maybe_unused]] {x}" for x in head)
        text = write_function(f"INGOT_COLD void {name}({unused})", rows)
        return Definition(f"{text}\n", (name,), lines.reads)

    def _write_function(
        self, name: str, given: str, filled: str,
        results: Sequence[tuple[Sequence[Node], Sequence[Node], str]],
        others: Sequence[tuple[Access, Node, Node]] = (),
    ) -> Definition:  # fmt: skip
        """A function that stores lines in arrays, laid out like others; unknowns as they stand."""
        lines = self.print_lines()
        p = self.part
        self._name(lines, self.solve.given, "g")
        lines.name_all(self.solve.columns, self.flat("u"))
        self._name(lines, p.carried, "c")
        lines.name_all(p.ends, map(read_name, _NUMBERS))
        if "dg" in given.split():
            self._name(lines, p.tangents.leaves, "dg")
            self._name(lines, p.tangents.carried, "dc")
        elif "dc" in given.split():
            lines.name_all(p.adjoints.rows, self.flat("x"))
            self._name(lines, p.adjoints.follows, "dc")
        rows = lines([n for nodes, _, _ in results for n in nodes] + [n for _, n, _ in others])
        for nodes, like, array in results:
            at = self.flat(array) if like == self.solve.columns else self._lay_out(like, array)
            rows += lines.store(at, nodes, [n.axes for n in like])
        for at, node, like in others:
            rows += lines.store([at], [node], [like.axes])
        self.writer.tables.update(dict.fromkeys(lines.tables))
        return self._define(name, given, filled, rows, lines)

    def _find_others(
        self, follows: Sequence[Node], array: str = "f"
    ) -> list[tuple[Access, Node, Node]]:
        """What is carried on that is no unknown, and where it goes."""
        p = self.part
        places = self._lay_out(p.carried, array)
        rows = zip(places, follows, p.carried, p.states, strict=True)
        return [(at, node, like) for at, node, like, state in rows if state is None]

    def _write_follow(self, name: str, given: str, filled: str, assign: str) -> Definition:
        """A function between unknowns and where they are carried on."""
        p = self.part
        rows: list[Row] = []
        lines = self.print_lines()
        for c, at, state in zip(p.carried, self._lay_out(p.carried, "f"), p.states, strict=True):
            if state is not None:
                place = {a.key: f"i{d}" for d, a in enumerate(c.axes)}
                text = assign.format(self.flat("u")[state](place), at(place))
                rows.append(f"{lines.open_loops(c.axes)}{text}")
        return self._define(name, given, filled, rows, lines)

    def _lay_out(self, nodes: Sequence[Node], array: str) -> list[Access]:
        return self.print_lines().lay_out(nodes, array)

    def _name(self, lines: Lines, nodes: Sequence[Node], array: str) -> None:
        lines.name_all(nodes, lines.lay_out(nodes, array))
