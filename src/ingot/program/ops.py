"""Slopes of the elementwise operations: one table, read by forward and reverse mode."""

from collections.abc import Callable

from ingot.program.graph import Graph, Node

__all__ = ["partials", "positive"]


def partials(node: Node) -> list[tuple[Node, Node]]:
    """Pairs (argument, partial derivative by it) of an elementwise node; zero partials left out."""
    rule = _RULES.get(node.op)
    if rule is None:
        return []
    slopes = rule(node.graph, node, *node.args)
    return [
        (arg, slope)
        for arg, slope in zip(node.args, slopes, strict=True)
        if slope is not None and not slope.is_constant(0.0)
    ]


def positive(node: Node) -> bool:
    """Whether a node is above zero whatever its inputs, as far as structure tells."""
    return _sign_of(node) == 2


def _sign_of(node: Node, depth: int = 12) -> int:
    """2 above zero, 1 not below zero, 0 unknown."""
    if depth == 0:
        return 0
    if node.op == "const":
        return 2 if node.attr > 0 else int(node.attr == 0)
    if node.op == "table":
        return 2 if min(node.attr) > 0 else int(min(node.attr) >= 0)
    if node.op in ("exp", "cosh", "eps"):
        return 2
    below = [_sign_of(a, depth - 1) for a in node.args]
    if node.op == "mul":
        if node.args[0] is node.args[1]:
            return max(1, below[0])
        return min(below)
    if node.op == "add":
        return max(below) if min(below) >= 1 else 0
    if node.op == "div":
        return min(below) if below[1] == 2 else 0
    if node.op in ("sqrt", "sum"):
        return below[0]
    if node.op == "abs":
        return max(1, below[0])
    if node.op == "pow":
        return below[0] if below[0] == 2 else 0
    if node.op == "where":
        return min(below[1:])
    return 0


def _pow(g: Graph, y: Node, a: Node, b: Node) -> tuple[Node | None, Node | None]:
    if positive(a):
        by_base = g.emit("div", g.emit("mul", b, y), a)
    else:
        by_base = g.emit("mul", b, g.emit("pow", a, g.emit("sub", b, 1.0)))
    if b.op in ("const", "table"):
        return by_base, None
    zero = g.emit("eq", a, 0.0)
    safe = g.emit("where", zero, 1.0, a)
    return by_base, g.emit("where", zero, 0.0, g.emit("mul", y, g.emit("log", safe)))


def _mul(g: Graph, y: Node, a: Node, b: Node) -> tuple[Node, Node]:
    return b, a


def _div(g: Graph, y: Node, a: Node, b: Node) -> tuple[Node, Node]:
    inverse = g.emit("div", 1.0, b)
    return inverse, g.emit("neg", g.emit("mul", y, inverse))


def _where(g: Graph, y: Node, c: Node, a: Node, b: Node) -> tuple[Node | None, ...]:
    return None, g.emit("where", c, 1.0, 0.0), g.emit("where", c, 0.0, 1.0)


def _inverse_root(g: Graph, a: Node) -> Node:
    return g.emit("div", 1.0, g.emit("sqrt", g.emit("sub", 1.0, g.emit("mul", a, a))))


Rule = Callable[..., tuple[Node | None, ...]]
_RULES: dict[str, Rule] = {
    "add": lambda g, y, a, b: (g.one, g.one),
    "sub": lambda g, y, a, b: (g.one, g.const(-1.0)),
    "mul": _mul,
    "div": _div,
    "neg": lambda g, y, a: (g.const(-1.0),),
    "abs": lambda g, y, a: (g.emit("sign", a),),
    "sqrt": lambda g, y, a: (g.emit("div", 0.5, y),),
    "exp": lambda g, y, a: (y,),
    "log": lambda g, y, a: (g.emit("div", 1.0, a),),
    "log10": lambda g, y, a: (g.emit("div", 0.4342944819032518, a),),
    "sin": lambda g, y, a: (g.emit("cos", a),),
    "cos": lambda g, y, a: (g.emit("neg", g.emit("sin", a)),),
    "tan": lambda g, y, a: (g.emit("add", 1.0, g.emit("mul", y, y)),),
    "asin": lambda g, y, a: (_inverse_root(g, a),),
    "acos": lambda g, y, a: (g.emit("neg", _inverse_root(g, a)),),
    "atan": lambda g, y, a: (g.emit("div", 1.0, g.emit("add", 1.0, g.emit("mul", a, a))),),
    "sinh": lambda g, y, a: (g.emit("cosh", a),),
    "cosh": lambda g, y, a: (g.emit("sinh", a),),
    "tanh": lambda g, y, a: (g.emit("sub", 1.0, g.emit("mul", y, y)),),
    "pow": _pow,
    "where": _where,
}
