"""Text of sizes and guards, as torch prints it -> a function of named sizes, and nothing else."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

__all__ = ["Sizes", "expression", "names_of"]

Sizes = Mapping[str, int]
Value = Callable[[Sizes], Any]

LONGEST = 10_000  # characters; a guard of the largest network that was captured has some 200
LARGEST_POWER = 64  # sizes to a higher power would only cost time

BETWEEN: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
BEFORE: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "abs": abs, "round": round, "float": float, "int": int,
    "torch.sym_float": float, "torch._sym_sqrt": math.sqrt,
    **{f"math.{f.__name__}": f for f in (
        math.floor, math.ceil, math.trunc, math.sqrt, math.log2, math.log, math.exp, math.sin,
        math.cos, math.tan, math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh,
    )},
}  # fmt: skip
NUMBERS = {"math.inf": math.inf, "math.nan": math.nan}


@cache
def expression(text: str) -> Value:
    """What computes an expression of named sizes; a ValueError where it holds anything else."""
    if len(text) > LONGEST:
        raise ValueError(f"an expression of {len(text)} characters")
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"'{text[:60]}' is no expression: {error}") from None


@cache
def names_of(text: str) -> frozenset[str]:
    """The sizes that an expression names."""
    expression(text)
    tree = ast.parse(text, mode="eval")
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return frozenset(found - {"math", "torch"} - set(FUNCTIONS))


def _value(node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return lambda _: number
        case ast.Name(id=name):
            return lambda sizes: sizes[name]
        case ast.Attribute() if (word := _word(node)) in NUMBERS:
            return lambda _: NUMBERS[word]
        case ast.UnaryOp(op, operand) if type(op) in BEFORE:
            before, inner = BEFORE[type(op)], _value(operand)
            return lambda sizes: before(inner(sizes))
        case ast.BinOp(left, ast.Pow(), ast.Constant(value=int() as power)) if (
            0 <= power <= LARGEST_POWER
        ):
            base = _value(left)
            return lambda sizes: base(sizes) ** power
        case ast.BinOp(left, op, right) if type(op) in BETWEEN:
            return _between(op, _value(left), _value(right))
        case ast.Compare(left, ops, rest) if all(type(op) in BETWEEN for op in ops):
            values = [_value(left), *map(_value, rest)]
            pairs = [_between(op, *values[i : i + 2]) for i, op in enumerate(ops)]
            return lambda sizes: all(pair(sizes) for pair in pairs)
        case ast.BoolOp(op, operands):
            every = all if isinstance(op, ast.And) else any
            parts = [*map(_value, operands)]
            return lambda sizes: every(part(sizes) for part in parts)
        case ast.IfExp(test, body, other):
            which, one, two = _value(test), _value(body), _value(other)
            return lambda sizes: one(sizes) if which(sizes) else two(sizes)
        case ast.Call(func, args, []) if (word := _word(func)) in FUNCTIONS:
            function, given = FUNCTIONS[word], [*map(_value, args)]
            return lambda sizes: function(*(x(sizes) for x in given))
    raise ValueError(f"'{ast.unparse(node)[:60]}' is no number of sizes")


def _between(op: ast.AST, left: Value, right: Value) -> Value:
    compute = BETWEEN[type(op)]
    return lambda sizes: compute(left(sizes), right(sizes))


def _word(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(ast.Name(id=owner), name):
            return f"{owner}.{name}"
    return ""
