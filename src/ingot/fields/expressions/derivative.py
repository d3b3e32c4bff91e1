"""The derivative of an expression by a variable, simplified, equal parts shared."""

from __future__ import annotations

import math

from ingot.fields.expressions import parse
from ingot.fields.expressions.parse import Expression, number, variable

__all__ = ["NoSlope", "derivative"]

FLAT = ("<", ">", "<=", ">=", "==", "!=", "&", "|", "!", "round", "ceil", "floor", "trunc")
"""Operations whose slope is 0 wherever they have one."""


ZERO = Expression("number")
"""The slope of what does not depend on the variable: 0 also times what is infinite.

Another object than `number(0.0)`, which an underflow may have given.
"""


class NoSlope(ValueError):
    """Something that cannot be differentiated."""


def derivative(expression: Expression, name: str) -> Expression:
    """The slope of an expression by the variable called `name`."""
    known: dict[Expression, Expression] = {}
    return slope(expression, variable(name), known)


def make(operation: str, *arguments: Expression) -> Expression:
    """An operation; slopes that are zero throughout drop out."""
    a, b = arguments[0], arguments[-1]
    match operation:
        case "+" if a is ZERO:
            return b
        case "+" | "-" if b is ZERO:
            return a
        case "-" if a is ZERO:
            return make("neg", b)
        case "*" if a is ZERO or b is ZERO:
            return ZERO
        case "/" | "neg" if a is ZERO:
            return ZERO
        case "if" if arguments[1] is ZERO and b is ZERO:
            return ZERO
        case _:
            return parse.make(operation, *arguments)


def slope(f: Expression, by: Expression, known: dict[Expression, Expression]) -> Expression:
    """The slope of a node; `known` holds those already taken."""
    if f not in known:
        inner = tuple(slope(each, by, known) for each in f.arguments)
        known[f] = number(1.0) if f is by else chain(f, inner)
    return known[f]


def chain(f: Expression, inner: tuple[Expression, ...]) -> Expression:
    """The slope of an operation from those of its arguments."""
    if f.operation in FLAT or all(d is ZERO for d in inner):
        return ZERO
    a, b = f.arguments[0], f.arguments[-1]
    da, db = inner[0], inner[-1]
    match f.operation:
        case "+" | "-":
            return make(f.operation, da, db)
        case "neg":
            return make("neg", da)
        case "*":
            return make("+", make("*", da, b), make("*", a, db))
        case "/":
            above = make("-", make("*", da, b), make("*", a, db))
            return make("/", da, b) if db is ZERO else make("/", above, make("*", b, b))
        case "%":
            return da
        case "^":
            return power(f, a, b, da, db)
        case "if":
            return make("if", a, inner[1], inner[2])
        case "min":
            return make("if", make("<", a, b), da, db)
        case "max":
            return make("if", make(">", a, b), da, db)
        case "atan2":
            above = make("-", make("*", b, da), make("*", a, db))
            return make("/", above, make("+", make("*", a, a), make("*", b, b)))
        case "hypot":
            return make("/", make("+", make("*", a, da), make("*", b, db)), f)
        case _:
            return make("*", outer(f, a), da)


def power(
    f: Expression, a: Expression, b: Expression, da: Expression, db: Expression
) -> Expression:
    """The slope of `a^b`; an exponent that does not depend on the variable needs no logarithm."""
    if db is ZERO:
        return make("*", make("*", b, make("^", a, make("-", b, number(1.0)))), da)
    by_base = make("/", make("*", b, da), a)
    return make("*", f, make("+", make("*", db, make("log", a)), by_base))


def outer(f: Expression, a: Expression) -> Expression:
    """The slope of a function of one argument at that argument."""
    one = number(1.0)
    square = make("*", a, a)
    match f.operation:
        case "sin":
            return make("cos", a)
        case "cos":
            return make("neg", make("sin", a))
        case "tan":
            return make("+", one, make("*", f, f))
        case "sinh":
            return make("cosh", a)
        case "cosh":
            return make("sinh", a)
        case "tanh":
            return make("-", one, make("*", f, f))
        case "asin":
            return make("rsqrt", make("-", one, square))
        case "acos":
            return make("neg", make("rsqrt", make("-", one, square)))
        case "atan":
            return make("/", one, make("+", one, square))
        case "asinh":
            return make("rsqrt", make("+", square, one))
        case "acosh":
            return make("rsqrt", make("-", square, one))
        case "atanh":
            return make("/", one, make("-", one, square))
        case "exp":
            return f
        case "exp2":
            return make("*", f, number(math.log(2.0)))
        case "log":
            return make("/", one, a)
        case "log10":
            return make("/", number(1 / math.log(10.0)), a)
        case "log2":
            return make("/", number(1 / math.log(2.0)), a)
        case "sqrt":
            return make("/", number(0.5), f)
        case "rsqrt":
            return make("/", make("*", number(-0.5), f), a)
        case "abs":
            return make("/", a, f)
        case _:
            raise NoSlope(f"{f.operation} cannot be differentiated")
