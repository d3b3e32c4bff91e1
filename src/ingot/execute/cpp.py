"""Plan -> C++ source: lines on blocks of points, Newton's loop inside."""

import math
from collections.abc import Mapping, Sequence
from itertools import count

from ingot.execute.abi import rules_struct
from ingot.execute.compiler import HEADERS
from ingot.execute.cut import LONG, cut, is_long
from ingot.execute.lines import MASKS, Access, Lines, named
from ingot.execute.outline import Inline, outline
from ingot.program.band import Band
from ingot.program.eliminate import Eliminated
from ingot.program.graph import Axis, Graph, Node, ordered
from ingot.program.passes import Factored, Plan
from ingot.program.program import Solve, Variable, dependent
from ingot.program.schedule import scheduled

__all__ = ["entries", "section", "source", "unit"]


def source(plan: Plan, inline: Inline = "auto") -> str:
    """The translation unit of one kernel, entered by `ingot_run_steps`."""
    return unit([section(plan, "run", inline), entries("ingot", ["run"])])


def unit(sections: Sequence[str]) -> str:
    """The translation unit of kernels that share a library."""
    included = (f'#include "{name}"' for name in HEADERS)
    return "\n".join([rules_struct(), *included, "", *sections])


def section(plan: Plan, entry: str, inline: Inline = "auto") -> str:
    """The lines of a kernel, and the function of this library that runs them over points."""
    return "\n".join([
        "namespace ingot {", "namespace {", f"namespace {entry}_lines {{", "",
        *_Writer(plan, inline).rows(), "",
        "}  // namespace", "",
        f"INGOT_CALL void {entry}(const Given* in, const Gives* out, const Knobs* knobs,",
        "    const Reports::One* reports, int64_t points, int64_t first_step, int64_t steps,",
        "    int64_t begin, int64_t end) {",
        f"  const auto point = [](auto&&... all) {{ {entry}_lines::point(all...); }};",
        "  each_point(point, in, out, knobs, reports, points, first_step, steps, begin, end);",
        "}", "",
        "}  // namespace", "}  // namespace ingot", "",
    ])  # fmt: skip


def entries(prefix: str, sections: Sequence[str]) -> str:
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


class _Writer:
    """Writes one kernel."""

    def __init__(self, plan: Plan, inline: Inline) -> None:
        self.plan = plan
        self.inline: Inline = inline
        self.numbers = count()
        self.graph: Graph = plan.program.graph
        self.number = {key: i for i, key in enumerate(plan.solves)}
        self.tables: dict[str, None] = {}

    def rows(self) -> list[str]:
        """All lines of the source."""
        body: list[str] = []
        for key, factored in self.plan.solves.items():
            body += self._solve(factored, self.number[key])
        body += self._point()
        return [*self.tables, "", *body]

    def _lines(self, indent: str) -> Lines:
        return Lines(self.graph, indent)

    def _repeated(self, f: Factored, indent: str, roots: Sequence[Node]) -> Lines:
        """A printer that writes regions once; roots: a result for each unknown."""
        return Lines(
            self.graph, indent, outline(f.regions, f.solve, roots, self.inline, self.numbers)
        )

    def _too_long(self, lines: Lines, roots: Sequence[Node]) -> bool:
        """Whether what the roots take is too much for one function, regions written once."""
        saved = lines.outline.saved if lines.outline is not None else 0
        return is_long(roots, lines.names, LONG + saved)

    def _keep(self, lines: Lines) -> None:
        self.tables.update(dict.fromkeys(lines.tables))

    # the functions of a solve

    def _solve(self, f: Factored, k: int) -> list[str]:
        # A backslash at its end would make the next line of code part of the comment.
        rows = [f"// {line}".rstrip("\\") for line in str(f).splitlines()]
        rows += [*self._slopes(f, k), ""]
        if isinstance(f.newton, Band):
            rows += [*self._newton_band(f, f.newton, k), ""]
        else:
            rows += [*self._newton(f, f.newton, k), ""]
        if isinstance(f.linear, Band):
            rows += [*self._linear_band(f, f.linear, k), ""]
        elif f.linear is not None:
            rows += [*self._linear(f, f.linear, k), ""]
        return rows

    def _flat(self, solve: Solve, array: str) -> list[Access]:
        """How each unknown stands in an array of all; those on an axis are interleaved."""
        columns = solve.columns
        count = len(columns)
        return [_entry(array, i, count, c.axes, self.graph) for i, c in enumerate(columns)]

    def _stores(self, lines: Lines, targets: Sequence[Access], nodes: Sequence[Node],
                axes: Sequence[tuple[Axis, ...]], indent: str) -> list[str]:  # fmt: skip
        """Assignments of nodes to places, in a loop where they lie on axes."""
        rows: list[str] = []
        for target, node, on in zip(targets, nodes, axes, strict=True):
            place = {a.name: f"i{d}" for d, a in enumerate(on)}
            loop = "".join(
                f"for (int i{d} = 0; i{d} < {self.graph.extent(a)}; ++i{d}) "
                for d, a in enumerate(on)
            )
            bits = "(V)" if node.op in MASKS else ""
            rows.append(f"{indent}{loop}{target(place)} = {bits}{lines.says(node, place)};")
        return rows

    def _known(self, f: Factored, lines: Lines, unknowns: str) -> None:
        """Name what a solve reads from outside, and its unknowns."""
        places = zip(f.outside, self._outside(f, "g"), strict=True)
        lines.name({n.id: _bits(at) if n.op in MASKS else at for n, at in places})
        lines.name(
            dict(zip((c.id for c in f.solve.columns), self._flat(f.solve, unknowns), strict=True))
        )

    def _outside(self, f: Factored, array: str) -> list[Access]:
        """Where each value lies that a solve reads from outside; conditions lie there as bits."""
        found: list[Access] = []
        at = 0
        for node in f.outside:
            found.append(_entry(array, at, 1, node.axes, self.graph))
            at += math.prod(self.graph.extent(a) for a in node.axes)
        return found

    def _slopes(self, f: Factored, k: int) -> list[str]:
        lines = self._repeated(f, "  ", f.slopes)
        self._known(f, lines, "u")
        lines.name(dict(zip((d.id for d in f.directions), self._flat(f.solve, "d"), strict=True)))
        rows = lines(f.slopes)
        axes = [c.axes for c in f.solve.columns]
        rows += self._stores(lines, self._flat(f.solve, "s"), f.slopes, axes, "  ")
        self._keep(lines)
        head = f"void slopes_{k}(const V* __restrict g, const V* __restrict u,"
        return [f"INGOT_CALL {head} const V* __restrict d, V* __restrict s) {{", *rows, "}"]

    def _newton(self, f: Factored, newton: Eliminated, k: int) -> list[str]:
        suspects = [newton.suspect] if newton.suspect else []
        roots = [*newton.update, *suspects]
        lines = self._repeated(f, "    ", newton.update)
        self._known(f, lines, "s.u")
        if self._too_long(lines, [*f.solve.rows, *roots]):
            return self._newton_cut(f, newton, k)
        rows = self._residuals(f, lines, roots)
        update = lines(roots)
        update += [f"    s.d[{i}] = {lines.says(node)};" for i, node in enumerate(newton.update)]
        suspect = lines.says(newton.suspect) if newton.suspect else "M{}"
        self._keep(lines)
        return self._newton_loop(f, k, rows, [*update, f"    s.advance({suspect}, redo);"])

    def _newton_cut(self, f: Factored, newton: Eliminated, k: int) -> list[str]:
        """Newton's loop around the functions that a long residual and update are cut into."""
        suspects = [newton.suspect] if newton.suspect else []
        names = self._lines("")
        self._known(f, names, "u")
        phases = [f.solve.rows, [*newton.update, *suspects]]
        parts = cut(phases, names.names, f"part_{k}", self._lines)
        calls = [[f"    {name}(g, s.u, nullptr, t);" for name in phase] for phase in parts.calls]
        rows = [f"    V t[{parts.scratch}];", *calls[0]]
        rows += [f"    s.r[{i}] = {parts.places[r.id]({})};" for i, r in enumerate(f.solve.rows)]
        update = [f"    s.d[{i}] = {parts.places[d.id]({})};" for i, d in enumerate(newton.update)]
        suspect = parts.places[newton.suspect.id]({}) if newton.suspect else "M{}"
        tail = [*calls[1], *update, f"    s.advance({suspect}, redo);"]
        return [*parts.functions, "", *self._newton_loop(f, k, rows, tail)]

    def _residuals(self, f: Factored, lines: Lines, later: Sequence[Node]) -> list[str]:
        rows = lines(f.solve.rows, later)
        axes = [c.axes for c in f.solve.columns]
        return rows + self._stores(lines, self._flat(f.solve, "s.r"), f.solve.rows, axes, "    ")

    def _newton_loop(self, f: Factored, k: int, rows: list[str], update: list[str]) -> list[str]:
        """Newton's loop: residuals, the verdict on them, and what it takes to move on."""
        start, check = [], []
        if isinstance(f.newton, Eliminated):
            call = f"pivoted<{f.size}>(doubt, g, at, b, x, 1, slopes_{k})"
            start = [
                f"  const auto redo = [&](M doubt, const V* at, const V* b, V* x) {{ {call}; }};"
            ]
            if f.newton.form == "extended":
                check = [f"    if (s.mended(g, slopes_{k}, redo)) continue;"]
        head = f"void newton_{k}(const V* __restrict g, Search<{f.size}>& __restrict s,"
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

    def _band(self, lines: Lines, band: Band, indent: str) -> list[str]:
        """Fill `a0` with the entries of a band."""
        width = 2 * band.half + 1
        size = self.graph.extent(band.axis)
        m = band.components
        rows = [f"{indent}V a0[{size * m * width}] = {{}};"]
        rows += lines(band.entries.values())
        for (row, column, shift), node in band.entries.items():
            place = {band.axis.name: "i"}
            first, last = max(0, -shift), min(size, size - shift)
            at = f"(i * {m} + {row}) * {width} + {shift * m + column - row + band.half}"
            rows.append(
                f"{indent}for (int i = {first}; i < {last}; ++i)"
                f" a0[{at}] = {lines.says(node, place)};"
            )
        return rows

    def _newton_band(self, f: Factored, band: Band, k: int) -> list[str]:
        lines = self._lines("    ")
        self._known(f, lines, "s.u")
        rows = self._residuals(f, lines, list(band.entries.values()))
        update = self._band(lines, band, "    ")
        self._keep(lines)
        shape = f"<{f.size}, {band.half}>"
        update += [
            "    V a[sizeof a0 / sizeof(V)];",
            "    copy(a0, a, sizeof a0 / sizeof(V));",
            f"    const M suspect = band_factor{shape}(a);",
            f"    for (int i = 0; i < {f.size}; ++i) s.d[i] = -s.r[i];",
            f"    band_solve{shape}(a, s.d);",
            "    s.advance(suspect, [&](M doubt, const V*, const V* b, V* x) {",
            f"      for (int i = 0; i < {f.size}; ++i) x[i] = select(doubt, b[i], x[i]);",
            f"      band_pivoted{shape}(doubt, a0, x, 1);",
            "    });",
        ]
        return self._newton_loop(f, k, rows, update)

    def _linear_head(self, k: int) -> str:
        return (
            f"[[maybe_unused]] INGOT_CALL void linear_{k}(const V* __restrict g,"
            " const V* __restrict u, const V* __restrict b, V* __restrict x, int sides) {"
        )

    def _linear(self, f: Factored, solved: Eliminated, k: int) -> list[str]:
        n = f.size
        names = self._repeated(f, "  ", solved.update)
        self._known(f, names, "u")
        names.name(named(f.sides, "b"))
        varies = dependent(solved.update, f.sides)
        read = {
            a.id: a
            for node in scheduled(solved.update, names.names) if node.id in varies
            for a in node.args
        }  # fmt: skip
        fixed = [
            a for a in read.values()
            if a.id not in varies and a.id not in names.names and a.op != "const"
        ]  # fmt: skip
        parts: list[str] = []
        if self._too_long(names, [*fixed, *solved.update]):
            pieces = cut([fixed, solved.update], names.names, f"solve_{k}", self._lines)
            parts = [*pieces.functions, ""]
            factor = [f"  V t[{pieces.scratch}];"]
            factor += [f"  {name}(g, u, nullptr, t);" for name in pieces.calls[0]]
            each = [f"    {name}(g, u, b, t);" for name in pieces.calls[1]]
            says = {i: at({}) for i, at in pieces.places.items()}
        else:
            factor = names(fixed)
            names.indent = "    "
            each = names(solved.update)
            self._keep(names)
            says = {x.id: names.says(x) for x in solved.update}
        return [
            *parts,
            self._linear_head(k),
            *factor,
            f"  for (int side = 0; side < sides; ++side, b += {n}, x += {n}) {{",
            *each,
            *(f"    x[{i}] = {says[node.id]};" for i, node in enumerate(solved.update)),
            "  }",
            f"  b -= {n} * sides, x -= {n} * sides;",
            f"  const M doubt = unsolved<{n}>(g, u, b, x, sides, slopes_{k});",
            f"  if (any(doubt)) pivoted<{n}>(doubt, g, u, b, x, sides, slopes_{k});",
            "}",
        ]

    def _linear_band(self, f: Factored, band: Band, k: int) -> list[str]:
        lines = self._lines("  ")
        self._known(f, lines, "u")
        rows = self._band(lines, band, "  ")
        self._keep(lines)
        n, shape = f.size, f"<{f.size}, {band.half}>"
        return [
            self._linear_head(k),
            *rows,
            "  V a[sizeof a0 / sizeof(V)];",
            "  copy(a0, a, sizeof a0 / sizeof(V));",
            f"  band_factor{shape}(a);",
            f"  copy(b, x, {n} * sides);",
            f"  for (int side = 0; side < sides; ++side) band_solve{shape}(a, x + side * {n});",
            f"  const M doubt = unsolved<{n}>(g, u, b, x, sides, slopes_{k});",
            "  if (!any(doubt)) return;",
            f"  for (int i = 0; i < {n} * sides; ++i) x[i] = select(doubt, b[i], x[i]);",
            f"  band_pivoted{shape}(doubt, a0, x, sides);",
            "}",
        ]

    # the function of a point

    def _point(self) -> list[str]:
        program = self.plan.program
        given = [*program.inputs, *(p.variable for p in program.parameters)]
        lines = self._lines("  ")
        rows = self._loads(given, lines)
        for node in ordered(program.roots):
            if node.op in ("solve", "linear"):
                rows += self._block(node, lines)
        rows += lines(program.roots)
        for i, v in enumerate(program.outputs):
            rows += self._put(lines, i, v)
        self._keep(lines)
        head = "INGOT_INLINE void point(const Inputs& in, const Outputs& out,"
        return [
            f"{head} [[maybe_unused]] const Knobs* knobs, [[maybe_unused]] Reports& reports) {{",
            *rows,
            "}",
        ]

    def _loads(self, given: Sequence[Variable], lines: Lines) -> list[str]:
        """Every input that some line reads, loaded once."""
        program = self.plan.program
        outside = (g for f in self.plan.solves.values() for g in f.outside)
        read = {n.id for n in ordered([*program.roots, *outside])}
        rows: list[str] = []
        for i, v in enumerate(given):
            m = len(v.nodes)
            for c, node in enumerate(v.nodes):
                if node.id not in read:
                    continue
                if not node.axes:
                    rows.append(f"  const V i{node.id} = in.at({i}, {c});")
                    lines.name({node.id: _word(f"i{node.id}")})
                    continue
                size = math.prod(self.graph.extent(a) for a in node.axes)
                rows.append(
                    f"  V i{node.id}[{size}]; for (int i = 0; i < {size}; ++i)"
                    f" i{node.id}[i] = in.at({i}, i * {m} + {c});"
                )
                lines.name({node.id: _entry(f"i{node.id}", 0, 1, node.axes, self.graph)})
        return rows

    def _put(self, lines: Lines, i: int, v: Variable) -> list[str]:
        if v.spread or not v.axes:
            return [f"  out.put({i}, {c}, {lines.says(n)});" for c, n in enumerate(v.nodes)]
        rows = []
        index = lines.index(v.axes)
        place = {a.name: f"i{d}" for d, a in enumerate(v.axes)}
        loop = "".join(
            f"for (int i{d} = 0; i{d} < {self.graph.extent(a)}; ++i{d}) "
            for d, a in enumerate(v.axes)
        )
        for c, node in enumerate(v.nodes):
            at = f"({index(place)}) * {len(v.nodes)} + {c}"
            rows.append(f"  {loop}out.put({i}, {at}, {lines.says(node, place)});")
        return rows

    def _block(self, node: Node, lines: Lines) -> list[str]:
        """A solve or a linear system: gather what it reads, call it, name what it gives."""
        if node.op == "linear":
            return self._linear_call(node, lines)
        f, k = self.plan.solves[id(node.attr)], self.number[id(node.attr)]
        guesses = node.args[: len(f.solve.columns)]
        axes = [c.axes for c in f.solve.columns]
        rows = lines([*guesses, *f.outside])
        size = sum(math.prod(self.graph.extent(a) for a in g.axes) for g in f.outside)
        rows.append(f"  V g{k}[{max(size, 1)}];")
        to = self._outside(f, f"g{k}")
        rows += self._stores(lines, to, f.outside, [g.axes for g in f.outside], "  ")
        rows.append(f"  Search<{f.size}> s{k};")
        rows += self._stores(lines, self._flat(f.solve, f"s{k}.u"), guesses, axes, "  ")
        rows.append(f"  newton_{k}(g{k}, s{k}.begin(in.lanes()), knobs[{k}]);")
        rows.append(f"  s{k}.report(reports, {k}, knobs[{k}]);")
        found = self._flat(f.solve, f"s{k}.u")
        for i, access in enumerate(found):
            item = self.graph.node("item", (node,), i, axes[i])
            lines.name({item.id: access})
        return rows

    def _linear_call(self, node: Node, lines: Lines) -> list[str]:
        solve = node.attr.solve
        f, k = self.plan.solves[id(solve)], self.number[id(solve)]
        width = len(solve.columns)
        sides = node.args[len(node.args) - width * node.attr.sides :]
        rows = lines(sides)
        tag = f"{k}_{node.id}"
        starts, seeds = [0], []
        for side in range(node.attr.sides):
            own = sides[side * width : (side + 1) * width]
            seeds.append(tuple({a.name: a for n in own for a in n.axes if "^" in a.name}.values()))
            starts.append(starts[-1] + math.prod(self.graph.extent(a) for a in seeds[-1]))
        total = f.size * starts[-1]
        rows.append(f"  const Array<V> b{tag}({total}), x{tag}({total});")
        for side in range(node.attr.sides):
            own = sides[side * width : (side + 1) * width]
            axes = [(*seeds[side], *c.axes) for c in solve.columns]
            targets = self._sided(f, f"b{tag}", starts[side], seeds[side])
            rows += self._stores(lines, targets, own, axes, "  ")
        rows.append(f"  linear_{k}(g{k}, s{k}.u, b{tag}.data, x{tag}.data, {starts[-1]});")
        for item in ordered(self.plan.program.roots):
            if item.op == "item" and item.args[0] is node:
                slot, side = item.attr
                access = self._sided(f, f"x{tag}", starts[side], seeds[side])[slot]
                lines.name({item.id: access})
        return rows

    def _sided(self, f: Factored, array: str, start: int, seeds: tuple[Axis, ...]) -> list[Access]:
        """How each unknown of one right-hand side, or of a family of them, stands in an array."""
        index = Lines(self.graph, "").index(seeds)
        inner = self._flat(f.solve, "")

        def at(access: Access) -> Access:
            def text(place: Mapping[str, str]) -> str:
                side = f"({start} + {index(place)})" if seeds else f"{start}"
                return f"{array}[{side} * {f.size} + {access(place)[1:-1]}]"

            return text

        return [at(a) for a in inner]


def _bits(at: Access) -> Access:
    """A condition that lies in an array of numbers, bit by bit."""
    return lambda place: f"((M){at(place)})"


def _word(text: str) -> Access:
    return lambda _: text


def _entry(array: str, at: int, step: int, axes: tuple[Axis, ...], graph: Graph) -> Access:
    """Entry `at + step * i` of an array, i the flat index on the axes."""
    if not axes:
        return _word(f"{array}[{at}]")
    index = Lines(graph, "").index(axes)
    return lambda place: f"{array}[{at} + {step} * ({index(place)})]"
