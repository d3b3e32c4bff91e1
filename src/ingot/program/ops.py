"""Slopes of the elementwise operations: one table, read by forward and reverse mode."""

import math
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
    """Whether a node stays clear of zero whatever its inputs, as far as structure tells."""
    return _least(node) > CLEAR


CLEAR = 1e-150
"""A value above this, and its square, can be divided by."""


def _least(node: Node, depth: int = 12) -> float:
    """A number that the node is never below; minus infinity where structure tells nothing."""
    if node.op == "const":
        return node.attr
    if node.op == "table":
        return min(node.attr)
    if node.op == "eps":
        return 1e-16
    if node.op == "cosh":
        return 1.0
    if node.op == "exp":
        return 0.0
    if depth == 0:
        return -math.inf
    below = [_least(a, depth - 1) for a in node.args]
    if node.op == "mul" and node.args[0] is node.args[1]:
        return max(below[0], 0.0) ** 2
    if node.op == "mul" and min(below) >= 0.0:
        return below[0] * below[1]
    if node.op == "add":
        return below[0] + below[1]
    if node.op == "sqrt" and below[0] >= 0.0:
        return math.sqrt(below[0])
    if node.op == "sum" and below[0] >= 0.0:
        return below[0]
    if node.op == "abs":
        return max(below[0], 0.0)
    if node.op == "where":
        return min(below[1:])
    return -math.inf


def _pow(g: Graph, y: Node, a: Node, b: Node) -> tuple[Node | None, Node | None]:
    if positive(a):
        by_base = g.emit("div", g.emit("mul", b, y), a)
    else:
        # a zeroth power is flat, also where the base is zero
        less = g.emit("where", g.emit("eq", b, 0.0), 1.0, g.emit("sub", b, 1.0))
        by_base = g.emit("mul", b, g.emit("pow", a, less))
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
