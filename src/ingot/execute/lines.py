"""Nodes -> C++ statements: straight lines, and loops over the axes that remain."""

from collections.abc import Iterable, Mapping, Sequence

from ingot.execute.outline import Outline, outlined
from ingot.execute.words import MASKS, Access, Place, number
from ingot.program.graph import Axis, Graph, Node
from ingot.program.schedule import scheduled

__all__ = ["MASKS", "Access", "Lines", "named", "number"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "and": "&", "or": "|",
}  # fmt: skip


class Lines:
    """Prints nodes as statements; a product read once by a sum is fused with it.

    names: how each known node is written, given the loop indices of its axes; outline: which
    straight lines are twins, to be written once.
    """

    def __init__(self, graph: Graph, indent: str, outline: Outline | None = None) -> None:
        self.graph = graph
        self.outline = outline
        self.names: dict[int, Access] = {}
        self.indent = indent
        self.tables: list[str] = []

    def name(self, names: Mapping[int, Access]) -> None:
        """Make nodes known."""
        self.names.update(names)

    def says(self, node: Node, place: Place | None = None) -> str:
        """How a known node is written at a place."""
        return self.names[node.id](place or {})

    def __call__(self, roots: Iterable[Node], later: Iterable[Node] = ()) -> list[str]:
        """Statements for all that the roots need and that is not known yet.

        What `later` roots will read of it stays known after the loops it is computed in.
        """
        wanted = list(roots)
        lines = scheduled(wanted, self.names)
        if any(n.axes for n in lines):
            wanted += [a for n in scheduled(later, self.names) for a in n.args if a.axes]
        for node in lines:
            if node.op in ("const", "table", "eye"):
                self._constant(node)
        lines = [n for n in lines if n.id not in self.names]
        uses: dict[int, int] = {n.id: 2 for n in wanted}
        for node in lines:
            for arg in node.args:
                uses[arg.id] = uses.get(arg.id, 0) + 1
        fused = _fused(lines, uses)
        if self.outline is not None and not any(n.axes for n in lines):
            kept = {n.id for n in wanted} | self._later(later, lines)
            straight = [n for n in lines if n.id not in fused]
            return outlined(self, straight, fused, kept, self.outline)
        rows: list[str] = []
        for group in _groups([n for n in lines if n.id not in fused], fused):
            if group[0].axes:
                rows += self._loop(group, {n.id for n in wanted}, lines, fused)
            else:
                rows += [self._line(n, {}, fused, self.indent) for n in group]
        return rows

    def _later(self, later: Iterable[Node], lines: Sequence[Node]) -> set[int]:
        """What later roots read of these lines."""
        known = {n.id for n in lines}
        after = scheduled(later, known | set(self.names))
        return {a.id for n in after for a in n.args if a.id in known}

    def line(self, node: Node, fused: set[int]) -> str:
        """The statement of one straight line; what it reads is known."""
        return self._line(node, {}, fused, self.indent)

    def apart(self) -> "Lines":
        """A printer for the body of another function."""
        return Lines(self.graph, "  ")

    def _constant(self, node: Node) -> None:
        if node.op == "const":
            text = f"splat({number(node.attr)})"
            self.names[node.id] = lambda _: text
        elif node.op == "eye":
            a, b = (x.name for x in node.axes)
            self.names[node.id] = lambda at: f"splat({at[a]} == {at[b]})"
        else:
            values = ", ".join(number(x) for x in node.attr)
            self.tables.append(f"constexpr real table_{node.id}[] = {{{values}}};")
            index = self.index(node.axes)
            self.names[node.id] = lambda at: f"splat(table_{node.id}[{index(at)}])"

    def index(self, axes: Sequence[Axis]) -> Access:
        """The flat index of a place on some axes."""
        sizes = [self.graph.extent(a) for a in axes]

        def flat(at: Place) -> str:
            text = ""
            for axis, size in zip(axes, sizes, strict=True):
                text = f"({text}) * {size} + {at[axis.name]}" if text else at[axis.name]
            return text

        return flat

    def _line(self, node: Node, place: Place, fused: set[int], indent: str) -> str:
        kind = "M" if node.op in MASKS else "V"
        text = self.expression(node, place, fused)
        if node.op == "sum":
            return self._sum(node, place, indent)
        self.names[node.id] = lambda _: f"x{node.id}"
        return f"{indent}const {kind} x{node.id} = {text};"

    def _sum(self, node: Node, place: Place, indent: str) -> str:
        axis: Axis = node.attr
        inner = {**place, axis.name: "k"}
        term = self.says(node.args[0], inner)
        self.names[node.id] = lambda _: f"x{node.id}"
        return (
            f"{indent}V x{node.id} = V{{}};"
            f" for (int k = 0; k < {self.graph.extent(axis)}; ++k) x{node.id} += {term};"
        )

    def _loop(
        self, group: list[Node], wanted: set[int], lines: Sequence[Node], fused: set[int]
    ) -> list[str]:
        """One loop for lines on the same axes; what others read of it is kept in arrays."""
        axes = group[0].axes
        inside = {n.id for n in group} | {a.id for n in group for a in n.args if a.id in fused}
        kept = {
            a.id for n in lines for a in n.args
            if a.id in inside and (n.id not in inside or n.op in ("window", "pad", "sum"))
        } | (wanted & inside)  # fmt: skip
        size = 1
        for axis in axes:
            size *= self.graph.extent(axis)
        rows = [
            f"{self.indent}{'M' if n.op in MASKS else 'V'} a{n.id}[{size}];"
            for n in group if n.id in kept
        ]  # fmt: skip
        place = {a.name: f"i{depth}" for depth, a in enumerate(axes)}
        indent = self.indent
        for axis in axes:
            i = place[axis.name]
            rows.append(f"{indent}for (int {i} = 0; {i} < {self.graph.extent(axis)}; ++{i}) {{")
            indent += "  "
        index = self.index(axes)
        for node in group:
            rows.append(self._line(node, place, fused, indent))
            if node.id in kept:
                rows.append(f"{indent}a{node.id}[{index(place)}] = x{node.id};")
        for _ in axes:
            indent = indent[:-2]
            rows.append(f"{indent}}}")
        for node in group:
            if node.id in kept:
                self.names[node.id] = _array(f"a{node.id}", index)
            else:
                del self.names[node.id]
        return rows

    def expression(self, node: Node, place: Place, fused: set[int]) -> str:
        """The right-hand side of a line."""
        if node.op in ("window", "pad"):
            return self._shifted(node, place)
        if node.op == "sum":
            return ""
        if node.op in ("add", "sub"):
            a, b = node.args
            sign = "-" if node.op == "sub" else ""
            if b.id in fused:
                x, y = (self.says(i, place) for i in b.args)
                return f"fma({sign}{x}, {y}, {self.says(a, place)})"
            if a.id in fused:
                x, y = (self.says(i, place) for i in a.args)
                return f"fma({x}, {y}, {sign}{self.says(b, place)})"
        args = [self.says(a, place) for a in node.args]
        if node.op in _INFIX:
            return f"{args[0]} {_INFIX[node.op]} {args[1]}"
        if node.op == "neg":
            return f"-{args[0]}"
        if node.op == "not":
            return f"~{args[0]}"
        if node.op == "where":
            return f"select({', '.join(args)})"
        return f"{node.op}({', '.join(args)})"

    def _shifted(self, node: Node, place: Place) -> str:
        held, first = node.attr
        i = place[held.name]
        if node.op == "window":
            return self.says(node.args[0], {**place, held.name: f"{i} + {first}"})
        inside = self.says(node.args[0], {**place, held.name: f"{i} - {first}"})
        return f"{i} >= {first} && {i} < {first + self.graph.extent(held)} ? {inside} : V{{}}"


def _array(name: str, index: Access) -> Access:
    return lambda at: f"{name}[{index(at)}]"


def named(nodes: Sequence[Node], array: str) -> dict[int, Access]:
    """Nodes without axes as the entries of an array, in order."""
    return {n.id: (lambda _, i=i: f"{array}[{i}]") for i, n in enumerate(nodes)}


def _fused(lines: Sequence[Node], uses: Mapping[int, int]) -> set[int]:
    """Products that are read once, by a sum on the same axes."""
    present = {n.id for n in lines}
    found: set[int] = set()
    for node in lines:
        if node.op in ("add", "sub"):
            for arg in reversed(node.args):
                alone = uses[arg.id] == 1 and arg.id in present
                if arg.op == "mul" and alone and arg.axes == node.axes:
                    found.add(arg.id)
                    break
    return found


def _groups(lines: list[Node], fused: set[int]) -> list[list[Node]]:
    """Lines that run together: straight ones as they are, those on axes by the loop they share."""
    if not any(n.axes for n in lines):
        return [lines] if lines else []
    waiting = {n.id: n for n in lines}
    groups: list[list[Node]] = []
    while waiting:
        axes = next(n for n in waiting.values() if not _blocked(n, waiting, fused)).axes
        group: list[Node] = []
        inside: set[int] = set()
        for node in list(waiting.values()):
            if node.axes != axes or _blocked(node, waiting, fused, inside):
                continue
            if axes and node.op in ("window", "pad", "sum") and node.args[0].id in inside:
                continue
            group.append(node)
            inside.add(node.id)
        for node in group:
            del waiting[node.id]
        groups.append(group)
    return groups


def _blocked(
    node: Node, waiting: Mapping[int, Node], fused: set[int], inside: set[int] | None = None
) -> bool:
    """Whether a line reads one that has not run yet and does not run just before in its group."""
    for arg in node.args:
        if arg.id in fused:
            if _blocked(arg, waiting, fused, inside):
                return True
        elif arg.id in waiting and (inside is None or arg.id not in inside):
            return True
    return False
