"""parse: the text of an expression -> Expression, a tree whose equal parts are one object.

In: text such as `0.1*c^2*(c-1)^2`. Out: a simplified Expression, or where the text is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ingot.fields.expressions.operations import NoValue, folded

__all__ = [
    "FUNCTIONS",
    "Expression",
    "ExpressionError",
    "make",
    "node",
    "number",
    "parse",
    "variable",
]

FUNCTIONS: dict[str, int] = {
    **dict.fromkeys(
        (
            "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh",
            "atanh", "exp", "exp2", "log", "log10", "log2", "sqrt", "rsqrt", "abs", "ceil",
            "floor", "round", "trunc", "FFT", "iFFT",
        ),
        1,
    ),
    **dict.fromkeys(("min", "max", "atan2", "hypot", "pow"), 2),
    "if": 3,
}  # fmt: skip
"""The functions of the language, and how many arguments each takes."""

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>:=|<=|>=|==|!=|[-+*/%^()<>&|!,;]))"
)


class ExpressionError(ValueError):
    """Why a text is no expression; `at` is the place in it."""

    def __init__(self, message: str, text: str, at: int) -> None:
        line = text.count("\n", 0, at)
        column = at - (text.rfind("\n", 0, at) + 1)
        super().__init__(f"line {line + 1}, column {column + 1}: {message}")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A number, a variable or an operation; equal ones are the same object."""

    operation: str
    arguments: tuple[Expression, ...] = ()
    value: float | complex = 0.0

    @property
    def is_number(self) -> bool:
        """Whether this is a number."""
        return self.operation == "number"

    def __str__(self) -> str:
        if self.is_number:
            return f"{self.value:g}" if isinstance(self.value, float) else "i"
        if not self.arguments:
            return self.operation[1:]
        words = [str(each) for each in self.arguments]
        if self.operation[0].isalpha() and self.operation != "neg":
            return f"{self.operation}({', '.join(words)})"
        if len(words) == 1:
            return f"({'-' if self.operation == 'neg' else '!'}{words[0]})"
        return f"({words[0]} {self.operation} {words[1]})"


_NODES: dict[tuple[object, ...], Expression] = {}


def node(operation: str, *arguments: Expression, value: float | complex = 0.0) -> Expression:
    """The one node of that content."""
    # -0.0 == 0.0, and 1 == 1.0 == True: the text of a number tells them apart.
    key = (operation, repr(value), *(id(each) for each in arguments))
    return _NODES.setdefault(key, Expression(operation, arguments, value))


def number(value: float | complex) -> Expression:
    """A number."""
    return node("number", value=value if isinstance(value, complex) else float(value))


def variable(name: str) -> Expression:
    """A variable."""
    return node("$" + name)


UNFOLDED = ("FFT", "iFFT")
"""Operations of whole arrays, which have no value for a number."""


def make(operation: str, *arguments: Expression) -> Expression:
    """An operation, numbers folded; identities that hold for all numbers, inf and nan too."""
    if operation not in UNFOLDED and all(each.is_number for each in arguments):
        return number(folded(operation, *(each.value for each in arguments)))
    a, b = arguments[0], arguments[-1]
    zero, one = number(0.0), number(1.0)
    match operation:
        case "-" if b is zero:
            return a
        case "*" if a is one:
            return b
        case "*" | "/" if b is one:
            return a
        case "*" if a is number(-1.0):
            return make("neg", b)
        case "*" if b is number(-1.0):
            return make("neg", a)
        case "^" | "pow" if b is zero or a is one:
            return one
        case "^" | "pow" if b is one:
            return a
        case "neg" if a.operation == "neg":
            return a.arguments[0]
        case "if" if a.is_number:
            return arguments[1] if a.value else arguments[2]
        case "pow":
            return node("^", a, b)
        case _:
            return node(operation, *arguments)


class _Parser:
    """Recursive descent over the grammar of the language."""

    def __init__(self, text: str, names: Mapping[str, Expression]) -> None:
        self.text = text
        self.names = dict(names)
        self.at = 0
        self.start = 0
        self.kind, self.token = "", ""
        self.next()

    def next(self) -> str:
        """Step to the next token; the one left behind."""
        left = self.token
        found = TOKEN.match(self.text, self.at)
        if found is None:
            rest = self.text[self.at :]
            self.start = self.at + len(rest) - len(rest.lstrip())
            if rest.strip():
                raise self.wrong(f"{rest.strip()[0]!r} is not understood")
            self.kind, self.token, self.at = "end", "", len(self.text)
            return left
        self.kind = str(found.lastgroup)
        self.token, self.start, self.at = found[self.kind], found.start(self.kind), found.end()
        return left

    def wrong(self, message: str, at: int | None = None) -> ExpressionError:
        return ExpressionError(message, self.text, self.start if at is None else at)

    def expect(self, mark: str) -> None:
        if self.token != mark:
            found = f"'{self.token}'" if self.token else "the end"
            raise self.wrong(f"'{mark}' was expected, but here is {found}")
        self.next()

    def whole(self) -> Expression:
        while True:
            before = (self.at, self.start, self.kind, self.token)
            if self.kind == "name" and self.next() and self.token == ":=":
                name = before[3]
                self.next()
                self.names[name] = self.logic()
                self.expect(";")
                continue
            self.at, self.start, self.kind, self.token = before
            result = self.logic()
            if self.kind != "end":
                raise self.wrong(f"'{self.token}' was not expected")
            return result

    def logic(self) -> Expression:
        left = self.comparison()
        while self.token in ("|", "&"):
            left = make(self.next(), left, self.comparison())
        return left

    def comparison(self) -> Expression:
        left = self.sum()
        return make(self.next(), left, self.sum()) if self.token in COMPARISONS else left

    def sum(self) -> Expression:
        left = self.product()
        while self.token in ("+", "-") and self.kind == "mark":
            left = make(self.next(), left, self.product())
        return left

    def product(self) -> Expression:
        left = self.unary()
        while self.token in ("*", "/", "%") and self.kind == "mark":
            left = make(self.next(), left, self.unary())
        return left

    def unary(self) -> Expression:
        if self.kind == "mark" and self.token in ("-", "!", "+"):
            mark = self.next()
            inner = self.unary()
            return inner if mark == "+" else make("neg" if mark == "-" else "!", inner)
        base = self.primary()
        if self.token == "^":
            self.next()
            return make("^", base, self.unary())
        return base

    def primary(self) -> Expression:
        if self.kind == "number":
            return number(float(self.next()))
        if self.token == "(":
            self.next()
            inner = self.logic()
            self.expect(")")
            return inner
        if self.kind != "name":
            found = f"'{self.token}'" if self.token else "the end"
            raise self.wrong(f"a value was expected, but here is {found}")
        at, name = self.start, self.next()
        if self.token == "(":
            return self.call(name, at)
        if name not in self.names:
            known = ", ".join(sorted(self.names))
            raise self.wrong(f"there is no '{name}' here; known are: {known or 'no names'}", at)
        return self.names[name]

    def call(self, name: str, at: int) -> Expression:
        if name not in FUNCTIONS:
            raise self.wrong(f"there is no function '{name}'", at)
        self.next()
        arguments = [self.logic()]
        while self.token == ",":
            self.next()
            arguments.append(self.logic())
        self.expect(")")
        if len(arguments) != FUNCTIONS[name]:
            message = f"{name} takes {FUNCTIONS[name]} arguments, not {len(arguments)}"
            raise self.wrong(message, at)
        return make(name, *arguments)


def parse(text: str, names: Mapping[str, Expression]) -> Expression:
    """The expression that a text spells; `names` are the variables and constants it may use."""
    try:
        return _Parser(text, names).whole()
    except NoValue as error:
        raise ExpressionError(str(error), text, 0) from None
