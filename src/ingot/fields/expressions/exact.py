"""Lines of expressions and of their derivatives, which give what torch gives, inf and nan too.

Numbers are folded by torch itself; a zero of a derivative is structural, one of a text is not.
"""

from __future__ import annotations

from typing import Any

import torch

from ingot.program import Builder, Node
from ingot.program.differentiate import push
from ingot.program.operations import Operation
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["LINES", "SPELLINGS", "NoValue", "differentiate", "is_number", "write"]

SPELLINGS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "remainder": "%", "pow": "^", "lt": "<",
    "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|", "not": "!",
    "neg": "-", "minimum": "min", "maximum": "max", "where": "if",
}  # fmt: skip
"""How the language spells operations that have other names in the table."""


class NoValue(ValueError):
    """An operation that torch has not for numbers of this kind, or that has no slope."""


class _Transform(Operation):
    name = "FFT"

    def push(self, d: Any, node: Node, known: Any, columns: Any) -> Any:
        raise NoValue(f"{node.op} cannot be differentiated")


class _Inverse(_Transform):
    name = "iFFT"


def is_number(node: Node) -> bool:
    """Whether a line is a number of a text or folded from such."""
    return node.op == "number"


class Exact:
    """Makes lines for expressions, and for the rules of derivatives to join.

    zero: the slope of what does not depend on a variable, 0 also times what is infinite
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self.zero, self.one = self.builder.zero, self.number(1.0)
        self.slopes = self

    def number(self, value: complex) -> Node:
        """A number; its text tells -0 from 0, and a complex one from a real one."""
        value = value if isinstance(value, complex) else float(value)
        return self.builder.node("number", (), (repr(value), value))

    const = number

    def is_positive(self, node: Node) -> bool:
        """Never known: a number and a variable of the same value have one derivative."""
        return False

    def emit(self, op: str, *operands: Node | float) -> Node:
        """An operation, numbers folded; identities that hold for all numbers, inf and nan too."""
        args = tuple(x if isinstance(x, Node) else self.number(x) for x in operands)
        row = ELEMENTWISE.get(op)
        if row is None:
            return self.builder.node(op, args)
        args = tuple(
            x if i in row.takes_conditions else self.count_condition(x) for i, x in enumerate(args)
        )
        if all(map(is_number, args)):
            return self.number(self._fold(op, [x.attr[1] for x in args]))
        return self._simplify(op, args) or self.builder.node(op, args)

    def count_condition(self, x: Node) -> Node:
        """True as 1 and false as 0; a number as it is."""
        return self.emit("where", x, 1.0, 0.0) if x.is_condition else x

    def _fold(self, op: str, values: list[Any]) -> Any:
        """What torch makes of numbers."""
        kind = torch.complex128 if any(isinstance(x, complex) for x in values) else torch.float64
        given = [torch.tensor(x, dtype=kind) for x in values]
        if op == "pow":  # torch takes roots of -0 and -inf otherwise where an exponent is a tensor
            given[1] = values[1]
        if op == "where":
            given[0] = given[0] != 0
        try:
            return ELEMENTWISE[op].function(*given).item()
        except (RuntimeError, TypeError):
            told = f"{SPELLINGS.get(op, op)}({', '.join(f'{x:g}' for x in values)})"
            raise NoValue(f"{told} has no value: it takes real numbers") from None

    def _simplify(self, op: str, args: tuple[Node, ...]) -> Node | None:
        """A simpler line that is equal to the last bit."""
        a, b, none = args[0], args[-1], self.zero
        match op:
            case "add" if a is none:
                return b
            case "add" | "sub" if b is none:
                return a
            case "sub" if a is none:
                return self.emit("neg", b)
            case "mul" if none in args:
                return none
            case "div" | "neg" if a is none:
                return none
            case "where" if args[1] is b:
                return b
            case "sub" if b is self.number(0.0):
                return a
            case "mul" if a is self.one:
                return b
            case "mul" | "div" | "pow" if b is self.one:
                return a
            case "mul" if self.number(-1.0) in args:
                return self.emit("neg", b if a is self.number(-1.0) else a)
            case "pow" if b is self.number(0.0) or a is self.one:
                return self.one
            case "neg" if a.op == "neg":
                return a.args[0]
            case "where" if is_number(a):
                return args[1] if a.attr[1] else b
            case "where" if not a.is_condition:
                return self.emit("where", self.emit("ne", a, 0.0), *args[1:])
            case _:
                return None


LINES = Exact()
"""Where lines of all expressions are made, so that equal ones are one."""


def differentiate(line: Node, by: Node) -> Node:
    """The slope of a line by a variable."""
    lines: Any = LINES
    (tangent,) = push(lines, [line], {by.id: {(0, ()): LINES.one}}, [by])
    return tangent.get((0, ()), LINES.zero)


def write(line: Node) -> str:
    """A line as the language spells it."""
    if is_number(line) or line is LINES.zero:
        value = line.attr[1] if is_number(line) else 0.0
        return f"{value:g}" if isinstance(value, float) else "i"
    if not line.args:
        return line.attr[0]
    sign, words = SPELLINGS.get(line.op, line.op), [write(each) for each in line.args]
    if sign.isalnum():
        return f"{sign}({', '.join(words)})"
    return f"({sign}{words[0]})" if len(words) == 1 else f"({words[0]} {sign} {words[1]})"
