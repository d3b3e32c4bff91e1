"""Program -> C++ source: lines on blocks of points, Newton's loop inside."""

import math
from collections.abc import Sequence
from itertools import accumulate, count
from typing import Any

from ingot.codegen.abi import write_rules_struct
from ingot.codegen.frames import LANES, PointFrame
from ingot.codegen.lines import Access, Lines
from ingot.codegen.outline import plan_outline
from ingot.codegen.parts import PartWriter
from ingot.codegen.solve import SolveWriter
from ingot.codegen.spill import MAX_HOISTED_TO_SPILL
from ingot.codegen.statements import Row, count_up, print_rows, write_function
from ingot.codegen.values import Definition, SharedDefinitions, read_name
from ingot.options import Inline
from ingot.program import Linear, Node, Program, Solve, Variable, sort_lines
from ingot.program.regions import find_regions
from ingot.program.schedule import schedule_lines
from ingot.program.solve_operations import Accumulate

__all__ = ["write_entries", "write_section", "write_source", "write_unit"]


def write_source(program: Program, inline: Inline = "auto") -> str:
    """The translation unit of one kernel, entered by `ingot_run_steps`."""
    return write_unit([write_section(program, "run", inline), write_entries("ingot", ["run"])])


def write_unit(sections: Sequence[str], frame: PointFrame = LANES) -> str:
    """The translation unit of kernels that share a library."""
    included = (f'#include "{name}"' for name in frame.headers)
    return "\n".join([write_rules_struct(), *included, "", *sections])


def write_section(
    program: Program, entry: str, inline: Inline = "auto", shared: SharedDefinitions | None = None,
    frame: PointFrame = LANES,
) -> str:  # fmt: skip
    """The lines of a kernel, and the function of this library that runs them over points.

    shared: what other sections of the translation unit have defined
    """
    shared = SharedDefinitions() if shared is None else shared
    definitions = shared.write(_KernelWriter(program, inline, frame).write(), f"{entry}_lines")
    return "\n".join([
        "namespace ingot {", "namespace {", f"namespace {entry}_lines {{", "",
        *definitions, "",
        "}  // namespace", "}  // namespace", "",
        *frame.write_entry(program, entry), "",
        "}  // namespace ingot", "",
    ])  # fmt: skip


def write_entries(prefix: str, sections: Sequence[str]) -> str:
    """What a library shows to the outside; all its names begin with a prefix."""
    rows = [f"INGOT_EXPORT int32_t {prefix}_lanes() {{ return W; }}", ""]
    for entry in sections:
        rows += [
            f"INGOT_EXPORT int32_t {prefix}_{entry}_steps(const ingot::Given* in,",
            "    const ingot::Gives* out, const ingot::Knobs* knobs,",
            "    const ingot::Reports::One* reports, int64_t points, int64_t first_step,",
            "    int64_t steps, int64_t begin, int64_t end) {",
            "  return ingot::guarded([&] {",
            f"    ingot::{entry}(in, out, knobs, reports, points, first_step, steps, begin, end);",
            "  });", "}", "",
        ]  # fmt: skip
    return "\n".join(rows)


MAX_INLINED_ROWS = 1000
"""A point of more rows is called by the loop over points: inlined there it is analysed again, in
time that grows with its square, and one call is nothing beside it."""
OUTPUT_TILE = 64
"""Outputs of more components are computed and stored so many at a time: with all of a block of
100 x 100 derivatives alive at the end of a function, registers take minutes to be assigned."""


class _KernelWriter:
    """Writes one kernel."""

    def __init__(self, program: Program, inline: Inline, frame: PointFrame) -> None:
        self.program, self.frame = program, frame
        self.inline: Inline = inline
        self.numbers = count()
        self.tables: dict[Definition, None] = {}
        self.accumulated: dict[Solve, list[Accumulate]] = {}
        for each in (n.attr for n in program.lines if n.op == "accumulate"):
            self.accumulated.setdefault(each.solve, []).append(each)
        outer = {n.attr for n in program.lines if n.op == "solve"}
        spills = frame.spills and program.count_entries(program.hoisted) <= MAX_HOISTED_TO_SPILL
        self.solves = {
            solve: SolveWriter(
                program, solve, k, self._start_lines, self._start_outlined, frame.max_pivoted,
                is_inside=solve not in outer, spills=spills,
            )
            for k, solve in enumerate(program.solves)
        }  # fmt: skip
        self.parts = {
            n.attr: PartWriter(n, self.solves[n.attr])
            for n in program.lines
            if n.op == "solve" and n.attr.substeps is not None
        }

    def write(self) -> list[Definition]:
        """All definitions of the source, each after those it reads."""
        body: list[Definition] = []
        for solve, writer in self.solves.items():
            body += writer.write()
            if solve in self.parts:
                body += self.parts[solve].write_functions(self.accumulated.get(solve, ()))
            self.tables.update(writer.tables)
        if self.frame.spills:
            slots = max((writer.slots for writer in self.solves.values()), default=0)
            body.append(Definition(f"constexpr int slots = {slots};\n", ("slots",)))
        body += self._write_hoist()
        body.append(self._write_point())
        return [*self.tables, Definition(""), *body]

    def _start_lines(self) -> Lines:
        return Lines(self.program, self._write_block, registers=self.frame.registers)

    def _start_outlined(self, solve: Solve, roots: Sequence[Node]) -> Lines:
        """A printer that writes regions once; roots: a result for each unknown."""
        parts = find_regions(solve)
        once = plan_outline(parts, solve, roots, self.inline, self.numbers) if parts else None
        return Lines(self.program, self._write_block, once, registers=self.frame.registers)

    def _keep_tables(self, lines: Lines) -> None:
        self.tables.update(dict.fromkeys(lines.tables))

    # the function of a point

    def _write_hoist(self) -> list[Definition]:
        """What depends on parameters alone, computed once a call into `h`."""
        hoisted = self.program.hoisted
        size = self.program.count_entries(hoisted)
        lines = self._start_lines()
        rows = self._load_inputs(hoisted, lines)
        rows += lines(self._find_hoisted_for_values(), hoisted)
        rows += lines(hoisted)
        axes = [n.axes for n in hoisted]
        rows += lines.store(lines.lay_out(hoisted, "h"), hoisted, axes)
        self._keep_tables(lines)
        head = "[[maybe_unused]] INGOT_CALL void hoist([[maybe_unused]] const Inputs& in,"
        function = write_function(f"{head} [[maybe_unused]] V* __restrict h)", rows)
        return [
            Definition(f"constexpr int hoisted = {size};\n", ("hoisted",)),
            Definition(f"{function}\n", ("hoist",), lines.reads),
        ]

    def _find_hoisted_for_values(self) -> list[Node]:
        """The hoisted lines that values read, as in a kernel of values alone."""
        own = {n.id for n in sort_lines(self.program.hoisted)}
        values = [n for v in self.program.value_outputs for n in v.nodes]
        read = {a.id for n in sort_lines(values) if n.id not in own for a in n.args}
        read |= {n.id for n in values}
        return [n for n in self.program.hoisted if n.id in read]

    def _write_point(self) -> Definition:
        program = self.program
        lines = self._start_lines()
        lines.name_all(program.hoisted, lines.lay_out(program.hoisted, "h"))
        rows: list[Row] = ["[[maybe_unused]] const Around around{knobs, &reports, in.lanes()};"]
        rows += self._load_inputs(program.roots, lines)
        # values first and by themselves: what derivatives read besides does not change their bits
        rows += lines([n for v in program.value_outputs for n in v.nodes], program.roots)
        has_loops = any(n.axes for n in program.lines)
        is_tiled = [not has_loops and len(v.nodes) > OUTPUT_TILE for v in program.outputs]
        given = zip(program.outputs, is_tiled, strict=True)
        rows += lines([n for v, tiled in given if not tiled for n in v.nodes], program.roots)
        for i, (v, tiled) in enumerate(zip(program.outputs, is_tiled, strict=True)):
            rows.append(f"const OutputRow gives{i} = out.row({i});")
            rows += self._write_tiles(lines, i, v) if tiled else self._write_output(lines, i, v)
        self._keep_tables(lines)
        size = sum(1 for _ in print_rows(rows))
        call = "INGOT_INLINE" if size <= MAX_INLINED_ROWS else "INGOT_CALL"
        head = f"{call} void point(const Inputs& in, const Outputs& out,"
        head += " [[maybe_unused]] const Knobs* knobs, [[maybe_unused]] Reports& reports,"
        head += " [[maybe_unused]] const V* __restrict h)"
        return Definition(write_function(head, rows), ("point",), lines.reads)

    def _load_inputs(self, roots: Sequence[Node], lines: Lines) -> list[Row]:
        """Every input that the roots read, loaded once."""
        read = {n.id for n in schedule_lines(roots, lines.names)}
        rows: list[Row] = []
        for i, v in enumerate(self.program.given):
            if any(node.id in read for node in v.nodes):
                rows.append(f"const InputRow given{i} = in.row({i});")
            for c, node in enumerate(v.nodes):
                if node.id not in read:
                    continue
                if not node.axes:
                    rows.append(f"const V in{node.id} = given{i}.at({c});")
                    lines.name({node.id: read_name(f"in{node.id}")})
                    continue
                size = self.program.size(node.axes)
                here = lines.read_at(f"in{node.id}", 0, 1, node.axes)
                at, loop = self._find_element(lines, v, c)
                place = {a.key: f"i{d}" for d, a in enumerate(v.looped)}
                rows.append(f"V in{node.id}[{size}]; {loop}{here(place)} = given{i}.at({at});")
                lines.name({node.id: here})
        return rows

    def _write_output(self, lines: Lines, i: int, v: Variable) -> list[Row]:
        rows: list[Row] = []
        place = {a.key: f"i{d}" for d, a in enumerate(v.looped)}
        for c, node in enumerate(v.nodes):
            at, loop = self._find_element(lines, v, c)
            rows.append(f"{loop}gives{i}.put({at}, {lines.read(node, place)});")
        return rows

    def _write_tiles(self, lines: Lines, i: int, v: Variable) -> list[Row]:
        """A long output, each tile stored before the next is computed."""
        rows: list[Row] = []
        for first in range(0, len(v.nodes), OUTPUT_TILE):
            tile = v.nodes[first : first + OUTPUT_TILE]
            rows += lines(tile)
            values = [str(lines.read(n)) for n in tile]
            put = f"{count_up('c', 0, len(values))} gives{i}.put({first} + c, o[c]);"
            rows.append(f"{{ const V o[] = {{{', '.join(values)}}}; {put} }}")
        return rows

    def _find_element(self, lines: Lines, v: Variable, c: int) -> tuple[str, str]:
        """Where the value of a node lies in its variable, and the loops over axes that remain."""
        if not v.looped:
            return str(c), ""
        width = math.prod(v.kind.base)
        entry, part = divmod(c, width)
        written = self.program.entries(v.spread)[entry]
        at = {a.key: str(e) for a, e in zip(v.spread, written, strict=True)}
        at |= {a.key: f"i{d}" for d, a in enumerate(v.looped)}
        return f"({lines.index(v.axes)(at)}) * {width} + {part}", lines.open_loops(v.looped)

    def _write_block(self, node: Node, lines: Lines) -> tuple[list[Row], dict[Any, Access]]:
        """A solve or a linear system: gather what it reads, call it, tell where results lie."""
        if node.op == "linear":
            return self._call_linear(node, lines)
        if node.op == "accumulate":
            return self.parts[node.attr.solve].write_accumulate(lines, node)
        solve: Solve = node.attr
        writer, tag = self.solves[solve], node.id
        k = writer.k
        width = len(solve.columns)
        guesses, given = node.args[:width], node.args[width:]
        rows = lines([*guesses, *given])
        size = self.program.count_entries(solve.given)
        rows.append(f"V g{tag}[{max(size, 1)}];")
        to = lines.lay_out(solve.given, f"g{tag}")
        rows += lines.store(to, given, [g.axes for g in solve.given])
        rows.append(f"{writer.search} s{tag};")
        rows += writer.store(lines, f"s{tag}.u", guesses)
        call = f"newton_{k}({writer.around}g{tag}, s{tag}.begin(around.lanes), around.knobs[{k}]);"
        rows.append(f"{call}")
        lines.calls.add(f"newton_{k}")
        if solve.substeps is not None:
            is_kept = solve in self.accumulated
            rows += self.parts[solve].write_call(lines, tag, solve.substeps.level, is_kept=is_kept)
        rows.append(f"s{tag}.report(*around.reports, {k}, around.knobs[{k}]);")
        return rows, dict(enumerate(writer.read_unknowns(f"s{tag}.u")))

    def _call_linear(self, node: Node, lines: Lines) -> tuple[list[Row], dict[Any, Access]]:
        linear: Linear = node.attr
        solve, writer = linear.solve, self.solves[linear.solve]
        block, tag = node.args[0].args[0].id, node.id
        kind = "adjoint" if linear.is_transposed else "linear"
        sides = [linear.side(node, i) for i in range(linear.sides)]
        rows = lines([n for side in sides for n in side])
        seeds = [linear.seeds(node, i) for i in range(linear.sides)]
        starts = [0, *accumulate(self.program.size(s) for s in seeds)]
        total = writer.size * starts[-1]
        rows.append(f"const Array<V, {total}> b{tag}, x{tag};")
        if any(n.is_constant(0.0) for side in sides for n in side):
            rows.append(f"for (int i = 0; i < {total}; ++i) b{tag}[i] = V{{}};")
        found: dict[Any, Access] = {}
        for i, own in enumerate(sides):
            targets = writer.read_side(f"b{tag}", starts[i], seeds[i])
            for target, node, column in zip(targets, own, solve.columns, strict=True):
                if not node.is_constant(0.0):
                    axes = (*seeds[i], *column.axes)
                    rows += lines.store([target], [node], [axes])
            results = writer.read_side(f"x{tag}", starts[i], seeds[i])
            found |= {(slot, i): at for slot, at in enumerate(results)}
        lines.calls.add(f"{kind}_{writer.k}")
        given = f"{writer.around}g, u, b{tag}.data, x{tag}.data, {starts[-1]}"
        rows.append(
            f"{writer.hold_given(f'g{block}')} held<{writer.size}>((const V*)s{block}.u,"
            f" [&](const V* u) {{ {kind}_{writer.k}({given}); }}); }});"
        )
        return rows, found
