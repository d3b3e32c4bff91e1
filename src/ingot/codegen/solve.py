"""A factored solve -> C++ functions: slopes of the residuals, Newton's loop, linear systems."""

from collections.abc import Callable, Sequence
from functools import cached_property

from ingot.codegen.lines import Access, Lines
from ingot.codegen.spill import spill
from ingot.codegen.split import (
    MAX_FUNCTION_LINES,
    SplitFunctions,
    is_long,
    split_functions,
)
from ingot.codegen.statements import Block, Row, count_up, write_function
from ingot.codegen.values import Definition, shift_entry
from ingot.program import Axis, Node, Solve, Space, sort_lines
from ingot.program.band import Band
from ingot.program.eliminate import Eliminated
from ingot.program.factor import Factored
from ingot.program.operations import Place
from ingot.program.program import find_dependent
from ingot.program.schedule import schedule_lines

__all__ = ["SolveWriter"]

StartLines = Callable[[], Lines]
StartOutlined = Callable[[Solve, Sequence[Node]], Lines]


class SolveWriter:
    """Writes the functions of one solve, the k-th of a kernel.

    start_lines: a printer of lines; start_outlined: one that writes regions once,
    given a result for each unknown; max_pivoted: the unknowns up to which there is a second
    routine: beyond, an update in doubt is for Newton to judge, and a tangent in doubt is NaN;
    is_inside: whether another solve has it inside its residuals; spills: whether values that are
    too many for registers are spilled on purpose. slots: how many are at once, at most.
    """

    def __init__(
        self, space: Space, solve: Solve, k: int, start_lines: StartLines,
        start_outlined: StartOutlined, max_pivoted: int, *, is_inside: bool, spills: bool,
    ) -> None:  # fmt: skip
        assert solve.factored is not None, f"{solve} is not factored"
        self.space, self.solve, self.k = space, solve, k
        self.factored: Factored = solve.factored
        self.start_lines, self.start_outlined = start_lines, start_outlined
        self.size = space.count_entries(solve.columns)
        self.has_pivoted = self.size <= max_pivoted
        # every point of a kernel comes by once in a step
        self.is_called_once = solve.substeps is None and not is_inside
        # one inside another would put its values into the same slots
        self.spills, self.slots = spills and not is_inside, 0
        self.tables: dict[Definition, None] = {}

    def write(self) -> list[Definition]:
        """All functions but those of a step in parts."""
        f, newton = self.factored, self.factored.newton
        # A backslash at its end would make the next line of code part of the comment.
        told = f.describe(self.space, self.solve).splitlines()
        comment = "".join(f"// {line}".rstrip("\\") + "\n" for line in told)
        found = [Definition(comment), self._write_slopes()]
        is_band = isinstance(newton, Band)
        found.append(self._write_band_newton(newton) if is_band else self._write_newton(newton))
        for kind, solution in (("linear", f.linear), ("adjoint", f.adjoint)):
            if solution is not None and is_band:
                found.append(self._write_band_linear(newton, kind))
            elif solution is not None:
                found.append(self._write_linear(solution, kind))
        return found

    def _define(
        self, head: str, rows: Sequence[Row], lines: Lines, *names: str, before: Sequence[str] = ()
    ) -> Definition:
        """A function of lines, and those that it is cut into; the slopes are written before."""
        self.tables.update(dict.fromkeys(lines.tables))
        slopes = frozenset([f"slopes_{self.k}"]).difference(names)
        text = "\n".join([*before, write_function(head, rows), ""])
        return Definition(text, names, lines.reads | slopes)

    @cached_property
    def nests(self) -> bool:
        """Whether another solve stands inside its residuals, which needs to know its lanes."""
        return any(n.op == "solve" for n in sort_lines(self.solve.rows))

    @property
    def search(self) -> str:
        """The type of the solve under way."""
        return f"Search<{self.size}{', true' if self.solve.substeps is not None else ''}>"

    @property
    def around(self) -> str:
        """The first argument of functions that solve inside."""
        return "around, " if self.nests else ""

    @property
    def _around_parameter(self) -> str:
        return "[[maybe_unused]] const Around& around, " if self.nests else ""

    @property
    def _slopes(self) -> str:
        """The function of slopes as routines of newton.h call it."""
        head = "[&](const V* g, const V* u, const V* d, V* s)"
        return f"{head} {{ slopes_{self.k}({self.around}g, u, d, s); }}"

    @property
    def _held_slopes(self) -> str:
        """The same for Newton's loop, in which what is given lies in registers."""
        head = "[&](Lent* g, const V* u, const V* d, V* s)"
        call = f"slopes_{self.k}({self.around}g, u, d, s);"
        return f"{head} {{ {self.hold_given('g')} {call} }}); }}"

    def hold_given(self, array: str) -> str:
        """Open a call that reads what is given from a copy named `g`; `});` closes it."""
        size = max(self.space.count_entries(self.solve.given), 1)
        return f"held<{size}>({array}, [&](const V* g) {{"

    def read_unknowns(self, array: str) -> list[Access]:
        """How each unknown stands in an array of all; those on one axis are interleaved."""
        columns = self.solve.columns
        lines = Lines(self.space)
        if len({c.axes for c in columns}) > 1:
            return lines.lay_out(columns, array)
        return [lines.read_at(array, i, len(columns), c.axes) for i, c in enumerate(columns)]

    def read_side(self, array: str, start: int, seeds: tuple[Axis, ...]) -> list[Access]:
        """How each unknown of one right-hand side, or of a family of them, stands in an array."""
        block = self.count_side(start, seeds)
        return [shift_entry(a, array, self.size, block) for a in self.read_unknowns("")]

    def count_side(self, start: int, seeds: tuple[Axis, ...]) -> Callable[[Place], str]:
        """The number of a right-hand side, or of one of a family of them."""
        index = Lines(self.space).index(seeds)
        return lambda place: f"{start} + {index(place)}" if seeds else f"{start}"

    def store(self, lines: Lines, array: str, nodes: Sequence[Node]) -> list[Row]:
        """Assignments of a line for each unknown to an array of all."""
        axes = [c.axes for c in self.solve.columns]
        return lines.store(self.read_unknowns(array), nodes, axes)

    def _name_known(self, lines: Lines, unknowns: str) -> None:
        """Name what a solve reads from outside, and its unknowns."""
        lines.name_all(self.solve.given, lines.lay_out(self.solve.given, "g"))
        lines.name_all(self.solve.columns, self.read_unknowns(unknowns))

    def _is_too_long(self, lines: Lines, roots: Sequence[Node]) -> bool:
        """Whether what the roots take is too much for one function, regions written once."""
        saved = lines.outline.saved_lines if lines.outline is not None else 0
        return is_long(roots, lines.names, MAX_FUNCTION_LINES + saved)

    def _write_slopes(self) -> Definition:
        f = self.factored
        lines = self.start_outlined(self.solve, f.slopes)
        self._name_known(lines, "u")
        lines.name_all(f.directions, self.read_unknowns("d"))
        rows = lines(f.slopes)
        rows += self.store(lines, "s", f.slopes)
        head = f"void slopes_{self.k}({self._around_parameter}const V* __restrict g,"
        more = "const V* __restrict u, const V* __restrict d, V* __restrict s)"
        return self._define(f"INGOT_CALL {head} {more}", rows, lines, f"slopes_{self.k}")

    # Newton's method

    def _write_newton(self, newton: Eliminated) -> Definition:
        roots = [*newton.update, *([newton.suspect] if newton.suspect else [])]
        lines = self.start_outlined(self.solve, newton.update)
        self._name_known(lines, "s.u")
        if self._is_too_long(lines, [*self.solve.rows, *roots]):
            return self._write_split_newton(newton, roots)
        phases = [lines(self.solve.rows, roots), lines(roots)]
        if self.spills and not self.nests and not any(n.axes for n in (*self.solve.rows, *roots)):
            kept = [{str(lines.read(n)) for n in ends} for ends in (self.solve.rows, roots)]
            phases, self.slots = spill(phases, kept, "spilled")
        rows, update = phases
        rows += self.store(lines, "s.r", self.solve.rows)
        update += self.store(lines, "s.d", newton.update)
        suspect = lines.read(newton.suspect) if newton.suspect else "M{}"
        update.append(f"s.advance({suspect}, redo);")
        return self._define_newton(rows, update, lines)

    def _write_split_newton(self, newton: Eliminated, roots: Sequence[Node]) -> Definition:
        """Newton's loop around the functions that a long residual and update are cut into."""
        residuals = self.solve.rows
        names = self.start_lines()
        self._name_known(names, "u")
        parts = split_functions([residuals, roots], names.names, f"part_{self.k}", self.start_lines)
        calls = [[f"{name}(g, s.u, nullptr, t);" for name in phase] for phase in parts.calls]
        rows: list[Row] = [f"V t[{parts.scratch}];", *calls[0]]
        rows += [f"s.r[{i}] = {parts.places[r.id]({})};" for i, r in enumerate(residuals)]
        update = [f"s.d[{i}] = {parts.places[d.id]({})};" for i, d in enumerate(newton.update)]
        suspect = parts.places[newton.suspect.id]({}) if newton.suspect else "M{}"
        tail = [*calls[1], *update, f"s.advance({suspect}, redo);"]
        return self._define_newton(rows, tail, names, parts)

    def _write_residuals(self, lines: Lines, later: Sequence[Node]) -> list[Row]:
        rows = lines(self.solve.rows, later)
        return rows + self.store(lines, "s.r", self.solve.rows)

    def _define_newton(
        self, rows: Sequence[Row], update: Sequence[Row], lines: Lines,
        cut: SplitFunctions | None = None,
    ) -> Definition:  # fmt: skip
        """Newton's loop: residuals, the verdict on them, and what it takes to move on."""
        start: list[Row] = []
        check: list[Row] = []
        newton = self.factored.newton
        slots = [f"Spilled<{self.slots}> spilled;"] if self.slots else []
        if isinstance(newton, Eliminated):
            call = f"pivoted<{self.size}>(doubt, g, at, b, x, 1, {self._slopes});"
            call = f"{self.hold_given('g')} {call} }});"
            start = [
                f"const auto redo = [&](M doubt, const V* at, const V* b, V* x) {{ {call} }};"
                if self.has_pivoted
                else "const auto redo = [](M, const V*, const V*, V*) {};"
            ]
            if newton.is_extended:
                check = [f"if (s.mended(g, {self._held_slopes}, redo)) continue;"]
        call = "INGOT_HOT" if self.solve.substeps is None else "INGOT_CALL"
        head = f"void newton_{self.k}({self._around_parameter}Lent* __restrict g,"
        head += f" {self.search}& __restrict s,"
        loop = [
            "if (!on) continue;",
            *rows,
            "s.measure();",
            *check,
            f"const Verdict verdict = s.judge(knobs, variable_{self.k});",
            "on = verdict != stop;",
            "if (verdict != update) continue;",
            *update,
        ]
        count = len(rows) + len(update) if self.is_called_once else 0
        loop_head = f"for (bool on = true; goes_on<{self.size}, {count}>(on);)"
        before, called = ([*cut.functions, ""], cut.names) if cut is not None else ([], [])
        before = [*before, f"constexpr int variable_{self.k}[] = {{{self._list_variables()}}};"]
        return self._define(
            f"{call} {head} const Knobs& knobs)", [*start, *slots, Block(loop_head, loop)], lines,
            *called, f"variable_{self.k}", f"newton_{self.k}", before=before,
        )  # fmt: skip

    def _list_variables(self) -> str:
        """The variable that each unknown belongs to, in the order in which they lie in an array."""
        columns = [(i, c) for i, v in enumerate(self.solve.unknowns) for c in v.nodes]
        if len({c.axes for _, c in columns}) > 1:
            owners = [i for i, c in columns for _ in range(self.space.size(c.axes))]
        else:
            owners = [i for i, _ in columns] * self.space.size(columns[0][1].axes)
        return ", ".join(map(str, owners))

    # linear systems

    def _write_linear(self, solution: Sequence[Node], kind: str) -> Definition:
        n, sides = self.size, self.factored.sides
        names = self.start_outlined(self.solve, solution)
        self._name_known(names, "u")
        names.name_all(sides, self.read_unknowns("b"))
        varies = find_dependent(solution, sides)
        read = {
            a.id: a
            for node in schedule_lines(solution, names.names) if node.id in varies
            for a in node.args
        }  # fmt: skip
        fixed = [
            a for a in read.values()
            if a.id not in varies and a.id not in names.names and a.op != "const"
        ]  # fmt: skip
        before: list[str] = []
        called: list[str] = []
        if self._is_too_long(names, [*fixed, *solution]):
            stem = f"{kind}_part_{self.k}"
            pieces = split_functions([fixed, solution], names.names, stem, self.start_lines)
            before, called = [*pieces.functions, ""], pieces.names
            factor: list[Row] = [f"V t[{pieces.scratch}];"]
            factor += [f"{name}(g, u, nullptr, t);" for name in pieces.calls[0]]
            each: list[Row] = [f"{name}(g, u, b, t);" for name in pieces.calls[1]]
            each += [f"x[{i}] = {pieces.places[x.id]({})};" for i, x in enumerate(solution)]
        else:
            factor = names(fixed)
            each = names(solution)
            each += self.store(names, "x", solution)
        transposed = "true" if kind == "adjoint" else "false"
        again = f"pivoted<{n}, {transposed}>(doubt, g, u, b, x, sides, {self._slopes});"
        if not self.has_pivoted:
            again = f"for (int i = 0; i < {n} * sides; ++i) x[i] = select(doubt, splat(nan), x[i]);"
        head = f"for (int side = 0; side < sides; ++side, b += {n}, x += {n})"
        rows = [
            *factor,
            Block(head, each),
            f"b -= {n} * sides, x -= {n} * sides;",
            *self._close_linear(kind, [again]),
        ]
        return self._define(
            self._open_linear(kind), rows, names, *called, f"{kind}_{self.k}", before=before
        )

    def _open_linear(self, kind: str) -> str:
        return (
            f"[[maybe_unused]] INGOT_CALL void {kind}_{self.k}({self._around_parameter}"
            "const V* __restrict g, const V* __restrict u, const V* __restrict b,"
            " V* __restrict x, int sides)"
        )

    def _close_linear(self, kind: str, again: Sequence[Row]) -> list[Row]:
        """Solve again where the solution is in doubt."""
        shape = f"<{self.size}, {'true' if kind == 'adjoint' else 'false'}>"
        return [
            f"const M doubt = unsolved{shape}(g, u, b, x, sides, {self._slopes});",
            Block("if (any(doubt))", again),
        ]

    # bands

    def _fill_band(self, lines: Lines, band: Band, *, is_transposed: bool = False) -> list[Row]:
        """Fill `a0` with the entries of a band, or of its transpose, and copy it to `a`."""
        width = 2 * band.half + 1
        size = self.space.extent(band.axis)
        m = band.components
        rows: list[Row] = [f"V a0[{size * m * width}] = {{}};"]
        rows += lines(band.entries.values())
        for (row, column, shift), node in band.entries.items():
            place = {band.axis.key: "i"}
            first, last = max(0, -shift), min(size, size - shift)
            at = f"(i * {m} + {row}) * {width} + {shift * m + column - row + band.half}"
            if is_transposed:
                away = -shift * m + row - column + band.half
                at = f"((i + {shift}) * {m} + {column}) * {width} + {away}"
            rows.append(f"{count_up('i', first, last)} a0[{at}] = {lines.read(node, place)};")
        rows.append("V a[sizeof a0 / sizeof(V)];")
        return [*rows, "copy(a0, a, sizeof a0 / sizeof(V));"]

    def _write_band_newton(self, band: Band) -> Definition:
        n, shape = self.size, f"<{self.size}, {band.half}>"
        lines = self.start_lines()
        self._name_known(lines, "s.u")
        rows = self._write_residuals(lines, list(band.entries.values()))
        update = [
            *self._fill_band(lines, band),
            f"const M suspect = band_factor{shape}(a);",
            f"for (int i = 0; i < {n}; ++i) s.d[i] = -s.r[i];",
            f"band_solve{shape}(a, s.d);",
            Block("s.advance(suspect, [&](M doubt, const V*, const V* b, V* x)", [
                f"{count_up('i', 0, n)} x[i] = select(doubt, b[i], x[i]);",
                f"band_pivoted{shape}(doubt, a0, x, 1);",
            ], "});"),
        ]  # fmt: skip
        return self._define_newton(rows, update, lines)

    def _write_band_linear(self, band: Band, kind: str) -> Definition:
        n, shape = self.size, f"<{self.size}, {band.half}>"
        lines = self.start_lines()
        self._name_known(lines, "u")
        rows = [
            *self._fill_band(lines, band, is_transposed=kind == "adjoint"),
            f"band_factor{shape}(a);",
            f"copy(b, x, {n} * sides);",
            f"{count_up('side', 0, 'sides')} band_solve{shape}(a, x + side * {n});",
            *self._close_linear(kind, [
                f"{count_up('i', 0, f'{n} * sides')} x[i] = select(doubt, b[i], x[i]);",
                f"band_pivoted{shape}(doubt, a0, x, sides);",
            ]),
        ]  # fmt: skip
        return self._define(self._open_linear(kind), rows, lines, f"{kind}_{self.k}")
