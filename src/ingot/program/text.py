"""A Program as text, in the user's names."""

from collections.abc import Sequence

from ingot.program.builder import Node, sort_lines
from ingot.program.implicit import Solve
from ingot.program.operations import operation
from ingot.program.program import Parameter, Program

__all__ = ["format_program"]


def format_program(program: Program) -> str:
    """Given, parameters, lines and outputs; values used once are written where they are used."""
    p = program
    rows = [f"given  {', '.join(_format_title(v.name, v.axes) for v in p.inputs)}"]
    if p.parameters:
        rows.append(f"param  {', '.join(_format_parameter(q) for q in p.parameters)}")
    printer = _Printer()
    for variable in p.given:
        printer.name(variable.nodes, variable.labels())
    outputs = {n.id: label for v in p.outputs for label, n in zip(v.labels(), v.nodes, strict=True)}
    if p.hoisted:
        kept = [n for n in sort_lines(p.hoisted) if n.id not in outputs]
        rows += ["once a call", *printer.write_lines(kept, {}, "  ", p.hoisted)]
    rows += printer.write_lines(p.lines, outputs, "  ", p.roots)
    rows.append(f"gives  {', '.join(_format_title(v.name, v.axes) for v in p.outputs)}")
    return "\n".join(rows)


class _Printer:
    """Names lines and writes them; the lines of a solve have a printer of their own."""

    def __init__(self, start: int = 0) -> None:
        self.names: dict[int, str] = {}
        self.fresh = start

    def name(self, nodes: Sequence[Node], labels: Sequence[str]) -> None:
        """What lines that are given are called."""
        self.names |= {n.id: label for n, label in zip(nodes, labels, strict=True)}

    def write_lines(
        self, nodes: Sequence[Node], outputs: dict[int, str], indent: str, roots: Sequence[Node]
    ) -> list[str]:
        """A row for each line that is an output or is read more than once."""
        uses: dict[int, int] = {r.id: 2 for r in roots}
        for node in nodes:
            for arg in node.args:
                # a solve's arguments have names inside it
                uses[arg.id] = uses.get(arg.id, 0) + (2 if node.op == "solve" else 1)
        rows: list[str] = []
        for node in nodes:
            if node.id in self.names and node.id not in outputs:
                continue
            if node.op == "solve":
                rows += self._write_solve(node, indent)
                continue
            if operation(node.op).inside(node)[0]:
                rows += self._write_inside(node, indent)
                continue
            if node.op == "item" and node.args[0].op == "solve":
                labels = [x for v in node.args[0].attr.unknowns for x in v.labels()]
                self.names.setdefault(node.id, labels[node.attr])
                if outputs.get(node.id, self.names[node.id]) == self.names[node.id]:
                    continue
            wanted = outputs.get(node.id)
            if wanted is None and (uses.get(node.id, 0) < 2 or node.is_number):
                continue
            if wanted is None:
                self.fresh += 1
                wanted = f"t{self.fresh}" + "".join(f"<{a}>" for a in node.axes)
            rows.append(f"{indent}{wanted} = {self._spell(node, top=True)}")
            self.names[node.id] = wanted
        return rows

    def _write_solve(self, node: Node, indent: str) -> list[str]:
        solve: Solve = node.attr
        inner = _Printer(self.fresh)
        inner.name(solve.columns, [x for v in solve.unknowns for x in v.labels()])
        given = node.args[len(solve.columns) :]
        inner.name(solve.given, [self._spell(a) for a in given])
        labels = [x for v in solve.residuals for x in v.labels()]
        outputs = {n.id: label for n, label in zip(solve.rows, labels, strict=True)}
        lines = sort_lines(solve.rows, (*solve.columns, *solve.given))
        rows = inner.write_lines(lines, outputs, indent + "  ", solve.rows)
        self.fresh = inner.fresh
        unknowns = ", ".join(v.name for v in solve.unknowns)
        return [f"{indent}solve [{solve.name}] for {unknowns}", *rows]

    def _write_inside(self, node: Node, indent: str) -> list[str]:
        """The lines that an operation has inside, under what is said of it."""
        rule = operation(node.op)
        roots, placeholders = rule.inside(node)
        said = [self._spell(a) for a in node.args]
        names, labels = rule.name_inside(node, said)
        inner = _Printer(self.fresh)
        inner.name(placeholders, names)
        rows = [""]
        rows += inner.write_lines(sort_lines(roots, placeholders), {}, indent + "  ", ())
        rows += [f"{indent}  {label} = {inner._spell(r, top=True)}"
                 for label, r in zip(labels, roots, strict=True)]  # fmt: skip
        self.fresh = inner.fresh + 1
        self.names[node.id] = f"r{self.fresh}"
        rows[0] = f"{indent}{self.names[node.id]} = {rule.write_text(node, said)}"
        return rows

    def _spell(self, node: Node, *, top: bool = False) -> str:
        if node.id in self.names:
            return self.names[node.id]
        # a call holds its operands apart, an operator does not
        spelled = operation(node.op).write_text(node, ["" for _ in node.args])
        is_call = spelled.endswith(")")
        said = operation(node.op).write_text(node, [self._spell(a, top=is_call) for a in node.args])
        is_one = not node.args or spelled[:1] == "-" or spelled == ""
        return said if top or is_call or is_one else f"({said})"


def _format_parameter(parameter: Parameter) -> str:
    data = parameter.value.data
    shown = f"{data.item():g}" if data.ndim == 0 else f"shape {tuple(data.shape)}"
    return f"{parameter.variable.name} = {shown}"


def _format_title(name: str, axes: tuple[object, ...]) -> str:
    return name + (f"<{', '.join(map(str, axes))}>" if axes else "")
