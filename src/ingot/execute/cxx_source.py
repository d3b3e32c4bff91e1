"""Program -> C++ source: lines on blocks of points, Newton's loop inside."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

from ingot.execute.abi import write_rules_struct
from ingot.execute.compiler import HEADERS
from ingot.execute.cxx_lines import Access, Lines
from ingot.execute.cxx_outline import plan_outline
from ingot.execute.cxx_parts import PartWriter
from ingot.execute.cxx_split import MAX_FUNCTION_LINES, is_long, split_functions
from ingot.execute.cxx_values import Place, read_name
from ingot.program import Axis, Linear, Node, Program, Solve, Variable, sort_lines
from ingot.program.band import Band
from ingot.program.eliminate import Eliminated
from ingot.program.factor import Factored
from ingot.program.program import find_dependent
from ingot.program.regions import Inline, find_regions
from ingot.program.schedule import schedule_lines
from ingot.program.solve_operations import Accumulate

__all__ = ["write_entries", "write_section", "write_source", "write_unit"]


def write_source(program: Program, inline: Inline = "auto") -> str:
    """The translation unit of one kernel, entered by `ingot_run_steps`."""
    return write_unit([write_section(program, "run", inline), write_entries("ingot", ["run"])])


def write_unit(sections: Sequence[str]) -> str:
    """The translation unit of kernels that share a library."""
    included = (f'#include "{name}"' for name in HEADERS)
    return "\n".join([write_rules_struct(), *included, "", *sections])


def write_section(program: Program, entry: str, inline: Inline = "auto") -> str:
    """The lines of a kernel, and the function of this library that runs them over points."""
    first, count = len(program.inputs), len(program.given)
    return "\n".join([
        "namespace ingot {", "namespace {", f"namespace {entry}_lines {{", "",
        *_KernelWriter(program, inline).write(), "",
        "}  // namespace", "",
        f"INGOT_CALL void {entry}(const Given* in, const Gives* out, const Knobs* knobs,",
        "    const Reports::One* reports, int64_t points, int64_t first_step, int64_t steps,",
        "    int64_t begin, int64_t end) {",
        f"  const auto point = [](auto&&... all) {{ {entry}_lines::point(all...); }};",
        f"  const auto hoist = [](auto&&... all) {{ {entry}_lines::hoist(all...); }};",
        f"  each_point<{entry}_lines::hoisted, {first}, {count}>(point, hoist, in, out, knobs,",
        "      reports, points, first_step, steps, begin, end);",
        "}", "",
        "}  // namespace", "}  // namespace ingot", "",
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


MAX_PIVOTED = 512
"""The unknowns of a system up to which there is a second routine: its dense matrix takes 16 MB of
lanes then. Beyond, an update in doubt is for Newton to judge, and a tangent in doubt is NaN."""


class _KernelWriter:
    """Writes one kernel."""

    def __init__(self, program: Program, inline: Inline) -> None:
        self.program = program
        self.inline: Inline = inline
        self.numbers = count()
        self.number = {solve: i for i, solve in enumerate(program.solves)}
        self.tables: dict[str, None] = {}
        asked = (n.attr for n in program.lines if n.op == "accumulate")
        self.accumulated: dict[Solve, list[Accumulate]] = {}
        for each in asked:
            self.accumulated.setdefault(each.solve, []).append(each)
        self.parts = {
            n.attr: PartWriter(
                program, n, self.number[n.attr], self._start_lines,
                partial(self._read_unknowns, n.attr),
            )
            for n in program.lines if n.op == "solve" and n.attr.substeps is not None
        }  # fmt: skip

    def write(self) -> list[str]:
        """All lines of the source."""
        body: list[str] = []
        for solve, k in self.number.items():
            body += self._write_solve(solve, k)
        body += self._write_hoist()
        body += self._write_point()
        return [*self.tables, "", *body]

    def _start_lines(self, indent: str) -> Lines:
        return Lines(self.program, indent, self._write_block)

    def _start_outlined(self, solve: Solve, indent: str, roots: Sequence[Node]) -> Lines:
        """A printer that writes regions once; roots: a result for each unknown."""
        parts = find_regions(solve)
        once = plan_outline(parts, solve, roots, self.inline, self.numbers) if parts else None
        return Lines(self.program, indent, self._write_block, once)

    def _is_too_long(self, lines: Lines, roots: Sequence[Node]) -> bool:
        """Whether what the roots take is too much for one function, regions written once."""
        saved = lines.outline.saved_lines if lines.outline is not None else 0
        return is_long(roots, lines.names, MAX_FUNCTION_LINES + saved)

    def _keep_tables(self, lines: Lines) -> None:
        self.tables.update(dict.fromkeys(lines.tables))

    # the functions of a solve

    def _write_solve(self, solve: Solve, k: int) -> list[str]:
        f = solve.factored
        assert f is not None, f"{solve} is not factored"
        # A backslash at its end would make the next line of code part of the comment.
        told = f.describe(self.program, solve).splitlines()
        rows = [f"// {line}".rstrip("\\") for line in told]
        rows += [*self._write_slopes(solve, f, k), ""]
        if isinstance(f.newton, Band):
            rows += [*self._write_band_newton(solve, f.newton, k), ""]
        else:
            rows += [*self._write_newton(solve, f.newton, k), ""]
        for kind, solution in (("linear", f.linear), ("adjoint", f.adjoint)):
            if solution is None:
                continue
            if isinstance(f.newton, Band):
                rows += [*self._write_band_linear(solve, f.newton, k, kind), ""]
            else:
                rows += [*self._write_linear(solve, f, solution, k, kind), ""]
        parts = self.parts.get(solve)
        if parts is not None:
            rows += parts.functions(self.accumulated.get(solve, ()))
            self.tables.update(dict.fromkeys(parts.tables))
        return rows

    def _nests(self, solve: Solve) -> bool:
        """Whether another solve stands inside its residuals, which needs to know its lanes."""
        return any(n.op == "solve" for n in sort_lines(solve.rows))

    def _around_parameter(self, solve: Solve) -> str:
        """The first parameter of functions that solve inside."""
        return "[[maybe_unused]] const Around& around, " if self._nests(solve) else ""

    def _call_slopes(self, solve: Solve, k: int) -> str:
        """The function of slopes as routines of newton.h call it."""
        if not self._nests(solve):
            return f"slopes_{k}"
        return (
            f"[&](const V* g, const V* u, const V* d, V* s) {{ slopes_{k}(around, g, u, d, s); }}"
        )

    def _size(self, solve: Solve) -> int:
        return sum(self.program.size(c.axes) for c in solve.columns)

    def _read_unknowns(self, solve: Solve, array: str) -> list[Access]:
        """How each unknown stands in an array of all; those on one axis are interleaved."""
        columns = solve.columns
        count = len(columns)
        lines = Lines(self.program, "")
        if len({c.axes for c in columns}) > 1:
            return lines.lay_out(columns, array)
        return [lines.read_at(array, i, count, c.axes) for i, c in enumerate(columns)]

    def _name_known(self, solve: Solve, lines: Lines, unknowns: str) -> None:
        """Name what a solve reads from outside, and its unknowns."""
        given = zip(solve.given, lines.lay_out(solve.given, "g"), strict=True)
        lines.name({n.id: at for n, at in given})
        columns = zip(solve.columns, self._read_unknowns(solve, unknowns), strict=True)
        lines.name({c.id: at for c, at in columns})

    def _write_slopes(self, solve: Solve, f: Factored, k: int) -> list[str]:
        lines = self._start_outlined(solve, "  ", f.slopes)
        self._name_known(solve, lines, "u")
        lines.name(
            dict(zip((d.id for d in f.directions), self._read_unknowns(solve, "d"), strict=True))
        )
        rows = lines(f.slopes)
        axes = [c.axes for c in solve.columns]
        rows += lines.store(self._read_unknowns(solve, "s"), f.slopes, axes, "  ")
        self._keep_tables(lines)
        head = f"void slopes_{k}({self._around_parameter(solve)}const V* __restrict g,"
        more = "const V* __restrict u, const V* __restrict d, V* __restrict s) {"
        return [f"INGOT_CALL {head} {more}", *rows, "}"]

    def _write_newton(self, solve: Solve, newton: Eliminated, k: int) -> list[str]:
        suspects = [newton.suspect] if newton.suspect else []
        roots = [*newton.update, *suspects]
        lines = self._start_outlined(solve, "    ", newton.update)
        self._name_known(solve, lines, "s.u")
        if self._is_too_long(lines, [*solve.rows, *roots]):
            return self._write_split_newton(solve, newton, k)
        rows = self._write_residuals(solve, lines, roots)
        update = lines(roots)
        axes = [c.axes for c in solve.columns]
        update += lines.store(self._read_unknowns(solve, "s.d"), newton.update, axes, "    ")
        suspect = lines.read(newton.suspect) if newton.suspect else "M{}"
        self._keep_tables(lines)
        return self._write_newton_loop(
            solve, k, rows, [*update, f"    s.advance({suspect}, redo);"]
        )

    def _write_split_newton(self, solve: Solve, newton: Eliminated, k: int) -> list[str]:
        """Newton's loop around the functions that a long residual and update are cut into."""
        suspects = [newton.suspect] if newton.suspect else []
        names = self._start_lines("")
        self._name_known(solve, names, "u")
        phases = [solve.rows, [*newton.update, *suspects]]
        parts = split_functions(phases, names.names, f"part_{k}", self._start_lines)
        calls = [[f"    {name}(g, s.u, nullptr, t);" for name in phase] for phase in parts.calls]
        rows = [f"    V t[{parts.scratch}];", *calls[0]]
        rows += [f"    s.r[{i}] = {parts.places[r.id]({})};" for i, r in enumerate(solve.rows)]
        update = [f"    s.d[{i}] = {parts.places[d.id]({})};" for i, d in enumerate(newton.update)]
        suspect = parts.places[newton.suspect.id]({}) if newton.suspect else "M{}"
        tail = [*calls[1], *update, f"    s.advance({suspect}, redo);"]
        return [*parts.functions, "", *self._write_newton_loop(solve, k, rows, tail)]

    def _write_residuals(self, solve: Solve, lines: Lines, later: Sequence[Node]) -> list[str]:
        rows = lines(solve.rows, later)
        axes = [c.axes for c in solve.columns]
        return rows + lines.store(self._read_unknowns(solve, "s.r"), solve.rows, axes, "    ")

    def _write_newton_loop(
        self, solve: Solve, k: int, rows: list[str], update: list[str]
    ) -> list[str]:
        """Newton's loop: residuals, the verdict on them, and what it takes to move on."""
        start, check = [], []
        size, newton = self._size(solve), solve.factored.newton if solve.factored else None
        if isinstance(newton, Eliminated):
            slopes = self._call_slopes(solve, k)
            call = f"pivoted<{size}>(doubt, g, at, b, x, 1, {slopes});"
            start = [
                f"  const auto redo = [&](M doubt, const V* at, const V* b, V* x) {{ {call} }};"
                if size <= MAX_PIVOTED
                else "  const auto redo = [](M, const V*, const V*, V*) {};"
            ]
            if newton.is_extended:
                check = [f"    if (s.mended(g, {slopes}, redo)) continue;"]
        head = f"void newton_{k}({self._around_parameter(solve)}const V* __restrict g,"
        head += f" Search<{size}>& __restrict s,"
        return [
            f"INGOT_CALL {head} const Knobs& knobs) {{",
            *start,
            "  for (;;) {",
            *rows,
            *check,
            "    const Verdict verdict = s.judge(knobs);",
            "    if (verdict == stop) return;",
            "    if (verdict == retry) continue;",
            *update,
            "  }",
            "}",
        ]

    def _fill_band(
        self, lines: Lines, band: Band, indent: str, *, is_transposed: bool = False
    ) -> list[str]:
        """Fill `a0` with the entries of a band, or of its transpose."""
        width = 2 * band.half + 1
        size = self.program.extent(band.axis)
        m = band.components
        rows = [f"{indent}V a0[{size * m * width}] = {{}};"]
        rows += lines(band.entries.values())
        for (row, column, shift), node in band.entries.items():
            place = {band.axis.key: "i"}
            first, last = max(0, -shift), min(size, size - shift)
            at = f"(i * {m} + {row}) * {width} + {shift * m + column - row + band.half}"
            if is_transposed:
                away = -shift * m + row - column + band.half
                at = f"((i + {shift}) * {m} + {column}) * {width} + {away}"
            rows.append(
                f"{indent}for (int i = {first}; i < {last}; ++i)"
                f" a0[{at}] = {lines.read(node, place)};"
            )
        return rows

    def _write_band_newton(self, solve: Solve, band: Band, k: int) -> list[str]:
        lines = self._start_lines("    ")
        self._name_known(solve, lines, "s.u")
        rows = self._write_residuals(solve, lines, list(band.entries.values()))
        update = self._fill_band(lines, band, "    ")
        self._keep_tables(lines)
        size = self._size(solve)
        shape = f"<{size}, {band.half}>"
        update += [
            "    V a[sizeof a0 / sizeof(V)];",
            "    copy(a0, a, sizeof a0 / sizeof(V));",
            f"    const M suspect = band_factor{shape}(a);",
            f"    for (int i = 0; i < {size}; ++i) s.d[i] = -s.r[i];",
            f"    band_solve{shape}(a, s.d);",
            "    s.advance(suspect, [&](M doubt, const V*, const V* b, V* x) {",
            f"      for (int i = 0; i < {size}; ++i) x[i] = select(doubt, b[i], x[i]);",
            f"      band_pivoted{shape}(doubt, a0, x, 1);",
            "    });",
        ]
        return self._write_newton_loop(solve, k, rows, update)

    def _open_linear(self, solve: Solve, k: int, kind: str) -> str:
        return (
            f"[[maybe_unused]] INGOT_CALL void {kind}_{k}({self._around_parameter(solve)}"
            "const V* __restrict g, const V* __restrict u, const V* __restrict b,"
            " V* __restrict x, int sides) {"
        )

    def _close_linear(self, solve: Solve, k: int, kind: str, again: Sequence[str]) -> list[str]:
        """Solve again where the solution is in doubt."""
        n, slopes = self._size(solve), self._call_slopes(solve, k)
        transposed = "true" if kind == "adjoint" else "false"
        return [
            f"  const M doubt = unsolved<{n}, {transposed}>(g, u, b, x, sides, {slopes});",
            "  if (any(doubt)) {",
            *again,
            "  }",
            "}",
        ]

    def _write_linear(
        self, solve: Solve, f: Factored, solution: Sequence[Node], k: int, kind: str
    ) -> list[str]:
        n = self._size(solve)
        names = self._start_outlined(solve, "  ", solution)
        self._name_known(solve, names, "u")
        sides = zip(f.sides, self._read_unknowns(solve, "b"), strict=True)
        names.name({s.id: at for s, at in sides})
        varies = find_dependent(solution, f.sides)
        read = {
            a.id: a
            for node in schedule_lines(solution, names.names) if node.id in varies
            for a in node.args
        }  # fmt: skip
        fixed = [
            a for a in read.values()
            if a.id not in varies and a.id not in names.names and a.op != "const"
        ]  # fmt: skip
        parts: list[str] = []
        if self._is_too_long(names, [*fixed, *solution]):
            pieces = split_functions(
                [fixed, solution], names.names, f"{kind}_part_{k}", self._start_lines
            )
            parts = [*pieces.functions, ""]
            factor = [f"  V t[{pieces.scratch}];"]
            factor += [f"  {name}(g, u, nullptr, t);" for name in pieces.calls[0]]
            each = [f"    {name}(g, u, b, t);" for name in pieces.calls[1]]
            store = [f"    x[{i}] = {pieces.places[x.id]({})};" for i, x in enumerate(solution)]
        else:
            factor = names(fixed)
            names.indent = "    "
            each = names(solution)
            axes = [c.axes for c in solve.columns]
            store = names.store(self._read_unknowns(solve, "x"), solution, axes, "    ")
            self._keep_tables(names)
        transposed = "true" if kind == "adjoint" else "false"
        again = (
            f"pivoted<{n}, {transposed}>(doubt, g, u, b, x, sides, {self._call_slopes(solve, k)});"
        )
        if n > MAX_PIVOTED:
            again = f"for (int i = 0; i < {n} * sides; ++i) x[i] = select(doubt, splat(nan), x[i]);"
        return [
            *parts,
            self._open_linear(solve, k, kind),
            *factor,
            f"  for (int side = 0; side < sides; ++side, b += {n}, x += {n}) {{",
            *each,
            *store,
            "  }",
            f"  b -= {n} * sides, x -= {n} * sides;",
            *self._close_linear(solve, k, kind, [f"    {again}"]),
        ]

    def _write_band_linear(self, solve: Solve, band: Band, k: int, kind: str) -> list[str]:
        lines = self._start_lines("  ")
        self._name_known(solve, lines, "u")
        rows = self._fill_band(lines, band, "  ", is_transposed=kind == "adjoint")
        self._keep_tables(lines)
        n = self._size(solve)
        shape = f"<{n}, {band.half}>"
        return [
            self._open_linear(solve, k, kind),
            *rows,
            "  V a[sizeof a0 / sizeof(V)];",
            "  copy(a0, a, sizeof a0 / sizeof(V));",
            f"  band_factor{shape}(a);",
            f"  copy(b, x, {n} * sides);",
            f"  for (int side = 0; side < sides; ++side) band_solve{shape}(a, x + side * {n});",
            *self._close_linear(solve, k, kind, [
                f"    for (int i = 0; i < {n} * sides; ++i) x[i] = select(doubt, b[i], x[i]);",
                f"    band_pivoted{shape}(doubt, a0, x, sides);",
            ]),
        ]  # fmt: skip

    # the function of a point

    def _write_hoist(self) -> list[str]:
        """What depends on parameters alone, computed once a call into `h`."""
        hoisted = self.program.hoisted
        size = sum(self.program.size(n.axes) for n in hoisted)
        lines = self._start_lines("  ")
        rows = self._load_inputs(hoisted, lines)
        rows += lines(self._find_hoisted_for_values(), hoisted)
        rows += lines(hoisted)
        axes = [n.axes for n in hoisted]
        rows += lines.store(lines.lay_out(hoisted, "h"), hoisted, axes, "  ")
        self._keep_tables(lines)
        return [
            f"constexpr int hoisted = {size};", "",
            "[[maybe_unused]] INGOT_CALL void hoist([[maybe_unused]] const Inputs& in,"
            " [[maybe_unused]] V* __restrict h) {", *rows, "}", "",
        ]  # fmt: skip

    def _find_hoisted_for_values(self) -> list[Node]:
        """The hoisted lines that values read, as in a kernel of values alone."""
        own = {n.id for n in sort_lines(self.program.hoisted)}
        values = [n for v in self.program.value_outputs for n in v.nodes]
        read = {a.id for n in sort_lines(values) if n.id not in own for a in n.args}
        read |= {n.id for n in values}
        return [n for n in self.program.hoisted if n.id in read]

    def _write_point(self) -> list[str]:
        program = self.program
        lines = self._start_lines("  ")
        places = zip(program.hoisted, lines.lay_out(program.hoisted, "h"), strict=True)
        lines.name({n.id: at for n, at in places})
        rows = ["  [[maybe_unused]] const Around around{knobs, &reports, in.lanes()};"]
        rows += self._load_inputs(program.roots, lines)
        # values first and by themselves: what derivatives read besides does not change their bits
        rows += lines([n for v in program.value_outputs for n in v.nodes], program.roots)
        rows += lines(program.roots)
        for i, v in enumerate(program.outputs):
            rows += self._write_output(lines, i, v)
        self._keep_tables(lines)
        head = "INGOT_INLINE void point(const Inputs& in, const Outputs& out,"
        return [
            f"{head} [[maybe_unused]] const Knobs* knobs, [[maybe_unused]] Reports& reports,",
            "    [[maybe_unused]] const V* __restrict h) {",
            *rows,
            "}",
        ]

    def _load_inputs(self, roots: Sequence[Node], lines: Lines) -> list[str]:
        """Every input that the roots read, loaded once."""
        read = {n.id for n in schedule_lines(roots, lines.names)}
        rows: list[str] = []
        for i, v in enumerate(self.program.given):
            for c, node in enumerate(v.nodes):
                if node.id not in read:
                    continue
                if not node.axes:
                    rows.append(f"  const V in{node.id} = in.at({i}, {c});")
                    lines.name({node.id: read_name(f"in{node.id}")})
                    continue
                size = self.program.size(node.axes)
                here = lines.read_at(f"in{node.id}", 0, 1, node.axes)
                at, loop = self._element(lines, v, c)
                place = {a.key: f"i{d}" for d, a in enumerate(v.looped)}
                rows.append(f"  V in{node.id}[{size}]; {loop}{here(place)} = in.at({i}, {at});")
                lines.name({node.id: here})
        return rows

    def _write_output(self, lines: Lines, i: int, v: Variable) -> list[str]:
        rows = []
        place = {a.key: f"i{d}" for d, a in enumerate(v.looped)}
        for c, node in enumerate(v.nodes):
            at, loop = self._element(lines, v, c)
            rows.append(f"  {loop}out.put({i}, {at}, {lines.read(node, place)});")
        return rows

    def _element(self, lines: Lines, v: Variable, c: int) -> tuple[str, str]:
        """Where the value of a node lies in its variable, and the loops over axes that remain."""
        if not v.looped:
            return str(c), ""
        width = math.prod(v.kind.base)
        entry, part = divmod(c, width)
        written = self.program.entries(v.spread)[entry]
        at = {a.key: str(e) for a, e in zip(v.spread, written, strict=True)}
        at |= {a.key: f"i{d}" for d, a in enumerate(v.looped)}
        return f"({lines.index(v.axes)(at)}) * {width} + {part}", lines.open_loops(v.looped)

    def _write_block(self, node: Node, lines: Lines) -> tuple[list[str], dict[Any, Access]]:
        """A solve or a linear system: gather what it reads, call it, tell where results lie."""
        if node.op == "linear":
            return self._call_linear(node, lines)
        if node.op == "accumulate":
            return self.parts[node.attr.solve].accumulate(lines, node, self._read_side)
        solve: Solve = node.attr
        k, tag = self.number[solve], node.id
        width = len(solve.columns)
        guesses, given = node.args[:width], node.args[width:]
        axes = [c.axes for c in solve.columns]
        indent = lines.indent
        rows = lines([*guesses, *given])
        size = sum(self.program.size(g.axes) for g in solve.given)
        rows.append(f"{indent}V g{tag}[{max(size, 1)}];")
        to = lines.lay_out(solve.given, f"g{tag}")
        rows += lines.store(to, given, [g.axes for g in solve.given], indent)
        rows.append(f"{indent}Search<{self._size(solve)}> s{tag};")
        found = self._read_unknowns(solve, f"s{tag}.u")
        rows += lines.store(found, guesses, axes, indent)
        around = "around, " if self._nests(solve) else ""
        if solve.substeps is not None:
            rows.append(f"{indent}s{tag}.alone = true;")
        rows.append(
            f"{indent}newton_{k}({around}g{tag}, s{tag}.begin(around.lanes), around.knobs[{k}]);"
        )
        if solve.substeps is not None:
            is_kept = solve in self.accumulated
            rows += self.parts[solve].call(tag, solve.substeps.level, indent, is_kept=is_kept)
        rows.append(f"{indent}s{tag}.report(*around.reports, {k}, around.knobs[{k}]);")
        return rows, dict(enumerate(found))

    def _call_linear(self, node: Node, lines: Lines) -> tuple[list[str], dict[Any, Access]]:
        linear: Linear = node.attr
        solve = linear.solve
        k, block, tag = self.number[solve], node.args[0].args[0].id, node.id
        kind = "adjoint" if linear.is_transposed else "linear"
        indent = lines.indent
        sides = [linear.side(node, i) for i in range(linear.sides)]
        rows = lines([n for side in sides for n in side])
        starts, seeds = [0], []
        for i in range(linear.sides):
            seeds.append(linear.seeds(node, i))
            starts.append(starts[-1] + self.program.size(seeds[-1]))
        total = self._size(solve) * starts[-1]
        rows.append(f"{indent}const Array<V> b{tag}({total}), x{tag}({total});")
        found: dict[Any, Access] = {}
        for i, own in enumerate(sides):
            axes = [(*seeds[i], *c.axes) for c in solve.columns]
            targets = self._read_side(solve, f"b{tag}", starts[i], seeds[i])
            rows += lines.store(targets, own, axes, indent)
            results = self._read_side(solve, f"x{tag}", starts[i], seeds[i])
            found |= {(slot, i): at for slot, at in enumerate(results)}
        around = "around, " if self._nests(solve) else ""
        rows.append(
            f"{indent}{kind}_{k}({around}g{block}, s{block}.u, b{tag}.data, x{tag}.data,"
            f" {starts[-1]});"
        )
        return rows, found

    def _read_side(
        self, solve: Solve, array: str, start: int, seeds: tuple[Axis, ...]
    ) -> list[Access]:
        """How each unknown of one right-hand side, or of a family of them, stands in an array."""
        index = Lines(self.program, "").index(seeds)
        inner, size = self._read_unknowns(solve, ""), self._size(solve)

        def at(access: Access) -> Access:
            def text(place: Place) -> str:
                side = f"({start} + {index(place)})" if seeds else f"{start}"
                return f"{array}[{side} * {size} + {access(place)[1:-1]}]"

            return text

        return [at(a) for a in inner]
