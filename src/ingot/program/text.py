"""A Program as text, in the user's names."""

from ingot.program.graph import Node, ordered
from ingot.program.program import Parameter, Program, Solve, dependent

__all__ = ["text"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "and": "and", "or": "or",
}  # fmt: skip


def text(program: Program) -> str:
    """Given, parameters, lines and outputs; values used once are written where they are used."""
    return "\n".join(_Printer(program).rows())


class _Printer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[int, str] = {}
        self.uses: dict[int, int] = {}
        self.fresh = 0

    def rows(self) -> list[str]:
        p = self.program
        rows = [f"given  {', '.join(_titled(v.name, v.axes) for v in p.inputs)}"]
        if p.parameters:
            rows.append(f"param  {', '.join(_valued(q) for q in p.parameters)}")
        for variable in (*p.inputs, *(q.variable for q in p.parameters)):
            self._name(variable.nodes, variable.labels())
        self._count(p.roots)
        for solve in p.solves():
            self._count(solve.rows)
        labels = [(v.labels(), v.nodes) for v in p.outputs]
        outputs = {
            n.id: label for names, nodes in labels for label, n in zip(names, nodes, strict=True)
        }
        rows += self._lines(ordered(p.roots), outputs, "  ")
        rows.append(f"gives  {', '.join(_titled(v.name, v.axes) for v in p.outputs)}")
        return rows

    def _name(self, nodes: tuple[Node, ...], labels: list[str]) -> None:
        for node, label in zip(nodes, labels, strict=True):
            self.names[node.id] = label

    def _count(self, roots: tuple[Node, ...]) -> None:
        for node in ordered(roots):
            for arg in node.args:
                self.uses[arg.id] = self.uses.get(arg.id, 0) + 1
        for root in roots:
            self.uses[root.id] = self.uses.get(root.id, 0) + 2

    def _lines(self, nodes: list[Node], outputs: dict[int, str], indent: str) -> list[str]:
        rows: list[str] = []
        for node in nodes:
            if node.id in self.names and node.id not in outputs:
                continue
            if node.op == "solve":
                rows += self._solve(node.attr, indent)
                continue
            if node.op == "item" and node.args[0].op == "solve":
                labels = [x for v in node.args[0].attr.unknowns for x in v.labels()]
                self.names.setdefault(node.id, labels[node.attr])
                if outputs.get(node.id, self.names[node.id]) == self.names[node.id]:
                    continue
            wanted = outputs.get(node.id)
            if wanted is None and (self.uses.get(node.id, 0) < 2 or node.op in ("const", "table")):
                continue
            if wanted is None:
                self.fresh += 1
                wanted = f"t{self.fresh}" + "".join(f"<{a}>" for a in node.axes)
            rows.append(f"{indent}{wanted} = {self._says(node, top=True)}")
            self.names[node.id] = wanted
        return rows

    def _solve(self, solve: Solve, indent: str) -> list[str]:
        self._name(solve.columns, [x for v in solve.unknowns for x in v.labels()])
        rows = [f"{indent}solve [{solve.name}] for {', '.join(v.name for v in solve.unknowns)}"]
        inside = dependent(solve.rows, solve.columns)
        labels = [x for v in solve.residuals for x in v.labels()]
        outputs = {n.id: label for n, label in zip(solve.rows, labels, strict=True)}
        lines = [n for n in ordered(solve.rows) if n.id in inside and n.op != "unknown"]
        return rows + self._lines(lines, outputs, indent + "  ")

    def _says(self, node: Node, *, top: bool = False) -> str:
        if node.id in self.names:
            return self.names[node.id]
        if node.op == "const":
            return f"{node.attr:.12g}"
        if node.op == "table":
            return f"table<{', '.join(map(str, node.axes))}>"
        if node.op in _INFIX:
            a, b = (self._says(a) for a in node.args)
            inner = f"{a} {_INFIX[node.op]} {b}"
            return inner if top else f"({inner})"
        if node.op == "neg":
            return f"-{self._says(node.args[0])}"
        if node.op == "linear":
            return f"linear({node.attr.name}: {node.attr.sides} sides)"
        args = [self._says(a, top=True) for a in node.args]
        if node.op in ("window", "pad"):
            held, first = node.attr
            return f"{node.op}({args[0]}, {held} from {first})"
        if node.op == "sum":
            return f"sum({args[0]} over {node.attr})"
        return f"{node.op}({', '.join(args)})"


def _valued(parameter: Parameter) -> str:
    data = parameter.value.data
    shown = f"{data.item():g}" if data.ndim == 0 else f"shape {tuple(data.shape)}"
    return f"{parameter.variable.name} = {shown}"


def _titled(name: str, axes: tuple[object, ...]) -> str:
    return name + (f"<{', '.join(map(str, axes))}>" if axes else "")
