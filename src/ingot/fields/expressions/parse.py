"""parse: the text of an expression -> a line of a program, of which equal parts are one object.

In: text such as `0.1*c^2*(c-1)^2`. Out: a simplified line, or where the text is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ingot.errors import did_you_mean
from ingot.fields.expressions.exact import LINES, SPELLINGS, NoValue
from ingot.program import Node

__all__ = [
    "DESCRIBED", "FUNCTIONS", "OPERATORS", "ExpressionError", "parse", "variable",
]  # fmt: skip

OPERATIONS = {spelling: op for op, spelling in SPELLINGS.items() if op != "neg"}

OPERATORS = (
    ("a^b", "a power; `a^b^c` is `a^(b^c)`, `-a^b` is `-(a^b)`, and `a^-b` is `a^(-b)`"),
    ("-a, +a, !a", "the sign; whether a is zero"),
    ("a*b, a/b, a%b", "`%` is the remainder, which has the sign of b"),
    ("a+b, a-b", ""),
    ("a<b, a<=b, a>b, a>=b, a==b, a!=b", "1 or 0; not one after another: `a<b & b<c`"),
    ("a&b, a|b", "and, or; both bind alike: `a | b & c` is `(a | b) & c`"),
)
"""The operators of the language, those that bind most tightly first; equal ones from the left."""

DESCRIBED = (
    ("sin cos tan", 1, "of an angle in radians"),
    ("asin acos atan", 1, "the angle, in radians"),
    ("sinh cosh tanh asinh acosh atanh", 1, ""),
    ("exp exp2", 1, "powers of e and of 2"),
    ("log log10 log2", 1, "logarithms to the base e, 10 and 2"),
    ("sqrt rsqrt", 1, "the root, and 1 over it"),
    ("abs", 1, "the magnitude, of complex numbers too"),
    ("floor ceil round trunc", 1, "down, up, to the nearest (halves to even), towards zero"),
    ("min max", 2, ""),
    ("pow", 2, "`pow(a, b)` is `a^b`"),
    ("hypot", 2, "`sqrt(a^2 + b^2)`"),
    ("atan2", 2, "the angle of the point (b, a)"),
    ("if", 3, "`if(a, b, c)` is b where a is not zero, else c; slopes are those of the branch"),
    ("FFT iFFT", 1, "complex transforms along the last axis; they cannot be differentiated"),
)
"""The functions of the language, how many arguments each takes, and what they give."""

FUNCTIONS = {name: count for names, count, _ in DESCRIBED for name in names.split()}

ELSEWHERE = {
    "=": "'==' compares, and 'name := ...;' names a part",
    "**": "powers are written ^",
    "&&": "'and' is written &",
    "||": "'or' is written |",
}
"""What other languages write, and how this one does."""

INSTEAD = {
    "cot": "1/tan(x)",
    "sec": "1/cos(x)",
    "csc": "1/sin(x)",
    "cbrt": "if(x < 0, -(-x)^(1/3), x^(1/3))",
    "int": "floor(x + 0.5)",
    "ln": "log(x)",
    "plog": "log(max(x, a)), which is constant below a",
    "mod": "x % y",
    "fmod": "x % y",
    "sign": "(x > 0) - (x < 0)",
    "sgn": "(x > 0) - (x < 0)",
    "fabs": "abs(x)",
    "sqr": "x^2",
    **dict.fromkeys(("arg", "conj", "imag", "polar", "real"), "abs(x), the magnitude, alone"),
    **dict.fromkeys(
        ("erf", "erfc"), "a compute of your own (@compute), by torch.erf or torch.erfc"
    ),
}
"""Functions of MOOSE's parser and of other languages that this one lacks, and what to write."""

LEVELS = {
    **dict.fromkeys("|&", 0),
    **dict.fromkeys(("<=", ">=", "==", "!=", "<", ">"), 1),
    **dict.fromkeys("+-", 2),
    **dict.fromkeys("*/%", 3),
}
"""How tightly operators bind; those of one level are taken from left to right."""

COMPARISONS = 1
"""The level of which an operator stands once only."""

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>:=|<=|>=|==|!=|[-+*/%^()<>&|!,;])|(?P<other>\S)|(?P<end>\Z))"
)


class ExpressionError(ValueError):
    """Why a text is no expression; `at` is the place in it."""

    def __init__(self, message: str, text: str, at: int) -> None:
        line = text.count("\n", 0, at)
        column = at - (text.rfind("\n", 0, at) + 1)
        super().__init__(f"line {line + 1}, column {column + 1}: {message}")


def variable(name: str) -> Node:
    """A variable."""
    return LINES.builder.node("input", (), (name,))


def make(word: str, *arguments: Node) -> Node:
    """An operation as the language calls it."""
    if word == "rsqrt":
        return LINES.emit("div", 1.0, LINES.emit("sqrt", *arguments))
    if word == "exp2":
        return LINES.emit("pow", 2.0, *arguments)
    if word == "-" and len(arguments) == 1:
        return LINES.emit("neg", *arguments)
    return LINES.emit(OPERATIONS.get(word, word), *arguments)


class _Parser:
    """Recursive descent over the grammar of the language."""

    def __init__(self, text: str, names: Mapping[str, Node]) -> None:
        self.text = text
        self.names = dict(names)
        self.tokens, self.at = [*TOKEN.finditer(text)], 0
        self.kind, self.token, self.start = "", "", 0
        self.next()

    def next(self) -> str:
        """Step to the next token; the one left behind."""
        left, found = self.token, self.tokens[self.at]
        self.at += 1
        self.kind = str(found.lastgroup)
        self.token, self.start = found[self.kind], found.start(self.kind)
        if self.kind == "other":
            raise self.wrong(f"{self.token!r} is not understood")
        return left

    def wrong(self, message: str, at: int | None = None) -> ExpressionError:
        at = self.start if at is None else at
        around = self.text[max(at - 1, 0) : at + 1]
        hint = ELSEWHERE.get(around) or ELSEWHERE.get(around[-1:])
        return ExpressionError(f"{message}; {hint}" if hint else message, self.text, at)

    def expect(self, mark: str) -> None:
        if self.token != mark:
            found = f"'{self.token}'" if self.token else "the end"
            raise self.wrong(f"'{mark}' was expected, but here is {found}")
        self.next()

    def whole(self) -> Node:
        while self.kind == "name" and self.tokens[self.at]["mark"] == ":=":
            name = self.next()
            self.next()
            self.names[name] = self.binary()
            self.expect(";")
        result = self.binary()
        if self.kind != "end":
            raise self.wrong(f"'{self.token}' was not expected")
        return result

    def binary(self, least: int = 0) -> Node:
        """Operators of a level and tighter ones."""
        left, most = self.unary(), len(LEVELS)
        while least <= (level := LEVELS.get(self.token, -1)) <= most:
            left = make(self.next(), left, self.binary(level + 1))
            most = level - (level == COMPARISONS)
        return left

    def unary(self) -> Node:
        if self.kind == "mark" and self.token in ("-", "!", "+"):
            mark = self.next()
            inner = self.unary()
            return inner if mark == "+" else make(mark, inner)
        base = self.primary()
        if self.token == "^":
            self.next()
            return make("^", base, self.unary())
        return base

    def primary(self) -> Node:
        if self.kind == "number":
            return LINES.number(float(self.next()))
        if self.token == "(":
            self.next()
            inner = self.binary()
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

    def call(self, name: str, at: int) -> Node:
        if name not in FUNCTIONS:
            hint = f"write {INSTEAD[name]}" if name in INSTEAD else did_you_mean(name, FUNCTIONS)
            hint = hint or f"known are: {', '.join(FUNCTIONS)}"
            raise self.wrong(f"there is no function '{name}'; {hint}", at)
        self.next()
        arguments = [self.binary()]
        while self.token == ",":
            self.next()
            arguments.append(self.binary())
        self.expect(")")
        if len(arguments) != FUNCTIONS[name]:
            message = f"{name} takes {FUNCTIONS[name]} arguments, not {len(arguments)}"
            raise self.wrong(message, at)
        return make(name, *arguments)


def parse(text: str, names: Mapping[str, Node]) -> Node:
    """The expression that a text spells; `names` are the variables and constants it may use."""
    try:
        return _Parser(text, names).whole()
    except NoValue as error:
        raise ExpressionError(str(error), text, 0) from None
