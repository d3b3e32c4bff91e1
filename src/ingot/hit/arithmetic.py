"""evaluate: the arithmetic of `${fparse ...}`, as MOOSE's function parser reads it.

In: text such as `sqrt(2)*w` and a way to look names up. Out: a number, or an Fault.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping

from ingot.errors import did_you_mean

__all__ = ["CONSTANTS", "FUNCTIONS", "Fault", "evaluate", "write_number"]

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>:=|<=|>=|==|!=|[-+*/%^()<>=!&|,;])|(?P<other>\S))"
)
CONSTANTS = {"pi": math.pi, "e": math.e}
Binary = Callable[[float, float], float]
Thunk = Callable[[], float]


MAX_DEPTH = 40
"""How deep an expression may nest: a level takes some ten calls of Python's 1000."""


class Fault(ValueError):
    """What stands inside ${...} has no value; the text says why, `fix` how to mend it."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


def truth(value: float) -> bool:
    """The parser takes a number for true where it rounds to something else than zero."""
    return abs(value) >= 0.5


def long_log(value: float, epsilon: float) -> float:
    """A logarithm that goes on as its Taylor polynomial of third order below epsilon."""
    if value >= epsilon:
        return math.log(value)
    part = (value - epsilon) / epsilon
    return math.log(epsilon) + part - part**2 / 2 + part**3 / 3


Function = Callable[..., float]
FUNCTIONS: Mapping[str, tuple[int, Function]] = {
    **{name: (1, getattr(math, name)) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc",
        "exp", "exp2", "log", "log10", "log2", "sin", "sinh", "sqrt", "tan", "tanh",
    )},
    **{name: (2, getattr(math, name)) for name in ("atan2", "hypot", "pow")},
    "abs": (1, math.fabs),
    "ceil": (1, lambda x: float(math.ceil(x))),
    "floor": (1, lambda x: float(math.floor(x))),
    "trunc": (1, lambda x: float(math.trunc(x))),
    "int": (1, lambda x: math.copysign(math.floor(abs(x) + 0.5), x)),
    "cot": (1, lambda x: 1 / math.tan(x)),
    "csc": (1, lambda x: 1 / math.sin(x)),
    "sec": (1, lambda x: 1 / math.cos(x)),
    "max": (2, lambda a, b: max(a, b)),
    "min": (2, lambda a, b: min(a, b)),
    "plog": (2, long_log),
}  # fmt: skip
# Loosest first; all of one level are taken from left to right.
LEVELS: tuple[Mapping[str, Binary], ...] = (
    {"|": lambda a, b: float(truth(a) or truth(b))},
    {"&": lambda a, b: float(truth(a) and truth(b))},
    {
        "<": lambda a, b: float(a < b),
        ">": lambda a, b: float(a > b),
        "<=": lambda a, b: float(a <= b),
        ">=": lambda a, b: float(a >= b),
        "=": lambda a, b: float(a == b),
        "==": lambda a, b: float(a == b),
        "!=": lambda a, b: float(a != b),
    },
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv, "%": math.fmod},
)


def shorten(text: str) -> str:
    """A text on one line, short enough for a message."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def evaluate(text: str, look_up: Callable[[str], float]) -> float:
    """The value of an expression; names that are no constants are looked up."""
    try:
        value = Parser(text, look_up).whole()()
    except ZeroDivisionError as error:
        raise Fault(f"'{shorten(text)}' divides by zero", "change the divisor") from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, Fault):
            raise
        fix = "keep the arguments of its functions where these are real numbers"
        raise Fault(f"'{shorten(text)}' has no value", fix) from error
    if not math.isfinite(value):
        raise Fault(f"'{shorten(text)}' is not finite", "make the numbers in it smaller")
    return value


def write_number(value: float) -> str:
    """A number as a file has it: whole ones without a point, so that they may be counts."""
    whole = value.is_integer() and abs(value) < 1e16
    return str(int(value)) if whole else repr(value)


class Parser:
    """One pass over the tokens; what it returns is evaluated later, so that `if` takes one side."""

    def __init__(self, text: str, look_up: Callable[[str], float]) -> None:
        self.text = text.strip()
        self.look_up = look_up
        self.tokens = [match for match in TOKEN.finditer(self.text) if match.lastgroup]
        self.position = 0
        self.depth = 0
        self.locals: dict[str, Thunk] = {}

    def whole(self) -> Thunk:
        """`name := expression;` any number of times, then the expression that counts."""
        while self.peek(1) == ":=":
            name = self.take()
            self.take()
            self.locals[name] = self.binary(0)
            self.expect(";")
        value = self.binary(0)
        if self.peek():
            raise self.wrong()
        return value

    def peek(self, ahead: int = 0) -> str:
        """A token that was not taken yet; empty at the end."""
        index = self.position + ahead
        return self.tokens[index][0].strip() if index < len(self.tokens) else ""

    def take(self) -> str:
        """The next token."""
        token = self.peek()
        self.position += 1
        return token

    def expect(self, sign: str) -> None:
        """Take a sign that must stand here."""
        if self.peek() != sign:
            raise self.wrong(f"'{sign}'")
        self.position += 1

    def binary(self, level: int) -> Thunk:
        """Operators of a level and tighter ones."""
        if level == len(LEVELS):
            return self.unary()
        first = self.binary(level + 1)
        rest: list[tuple[Binary, Thunk]] = []
        while self.peek() in LEVELS[level]:
            operation = LEVELS[level][self.take()]
            rest.append((operation, self.binary(level + 1)))
        return chain(first, rest) if rest else first

    def unary(self) -> Thunk:
        """Signs before a power: -x^2 is -(x^2)."""
        if self.depth == MAX_DEPTH:
            message = f"'{shorten(self.text)}' is nested deeper than {MAX_DEPTH}"
            raise Fault(message, "give parts of it names of their own")
        self.depth += 1
        inner = self.signed()
        self.depth -= 1
        return inner

    def signed(self) -> Thunk:
        """As `unary`, within the depth."""
        if self.peek() not in ("-", "+", "!"):
            return self.power()
        sign, inner = self.take(), self.unary()
        if sign == "!":
            return lambda: float(not truth(inner()))
        return inner if sign == "+" else lambda: -inner()

    def power(self) -> Thunk:
        """A power, taken from the right; its exponent may have a sign."""
        base = self.atom()
        if self.peek() != "^":
            return base
        self.take()
        return chain(base, [(math.pow, self.unary())])

    def atom(self) -> Thunk:
        """A number, a name, a call, or an expression between parentheses."""
        if self.peek() == "(":
            self.take()
            inner = self.binary(0)
            self.expect(")")
            return inner
        match = self.tokens[self.position] if self.peek() else None
        if match is None or match.lastgroup not in ("number", "name"):
            raise self.wrong()
        word = self.take()
        if match.lastgroup == "number":
            return lambda: float(word)
        return self.call(word) if self.peek() == "(" else self.named(word)

    def named(self, name: str) -> Thunk:
        """A local, a constant, or what is looked up."""
        if name in self.locals:
            return self.locals[name]
        value = CONSTANTS[name] if name in CONSTANTS else self.look_up(name)
        return lambda: value

    def call(self, name: str) -> Thunk:
        """A function and its arguments."""
        known = {"if": 3} | {each: count for each, (count, _) in FUNCTIONS.items()}
        if name not in known:
            fix = did_you_mean(name, known) or f"use one of: {', '.join(sorted(known))}"
            raise Fault(f"there is no function '{name}'", fix)
        self.take()
        arguments = [self.binary(0)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.binary(0))
        self.expect(")")
        if len(arguments) != known[name]:
            message = f"'{name}' takes {known[name]} arguments, not {len(arguments)}"
            raise Fault(message, f"give it {known[name]}")
        if name == "if":
            test, then, otherwise = arguments
            return lambda: then() if truth(test()) else otherwise()
        function = FUNCTIONS[name][1]
        return lambda: function(*(each() for each in arguments))

    def wrong(self, expected: str = "a number or a name") -> Fault:
        """The fault at the next token."""
        found = f"'{self.peek()}'" if self.peek() else "the end"
        expected = "an operator" if self.peek() and self.ends_a_value() else expected
        message = f"'{shorten(self.text)}' is not understood: found {found} instead of {expected}"
        return Fault(message, "write an expression such as 2*pi or sqrt(2)/L")

    def ends_a_value(self) -> bool:
        """Whether the last token that was taken ends a value."""
        before = self.tokens[self.position - 1] if self.position else None
        return before is not None and (before.lastgroup != "sign" or before[0].strip() == ")")


def chain(first: Thunk, rest: list[tuple[Binary, Thunk]]) -> Thunk:
    """Operations from left to right, however many."""

    def value() -> float:
        done = first()
        for operation, operand in rest:
            done = operation(done, operand())
        return done

    return value
