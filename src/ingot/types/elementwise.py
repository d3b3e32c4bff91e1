"""The elementwise operations: one row says all there is to say of one; no other file lists them.

Rows are written over anything that can `emit`: the builders of `program/` take slopes and
simplifications from here, values their evaluation on tensors, printers their spelling.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

__all__ = ["ELEMENTWISE", "Elementwise", "multiply_out"]

Rule = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise:
    """An operation on each entry of its operands.

    numpy: its function; torch, cxx, text: how it is spelled, with operands `{0}`, `{1}`, ...;
    slopes: (builder, result, *operands) -> the partial derivative by each, None where it is zero
    or the operand is a condition; without the rule the operation is constant by pieces;
    simplify: (builder, *operands) -> a simpler line that is equal for all numbers, NaN included;
    simplify_zeros: the same where a zero is structural (0 x = 0), as it is in derivatives;
    bound: (operation's line, lower bounds of its operands) -> a lower bound of the result;
    chooses: (builder, *operands) -> the condition by which the result is one of two, and those;
    is_linear: whether its slopes are numbers, and it has no jumps;
    cxx_whole: how C++ spells it where the last operand is the whole number `{n}`;
    cxx_one: how C++ spells it where the first operand is 1;
    fused: spellings `(first, second)` in one rounding where that operand is the product `{x} {y}`.
    """

    name: str
    arity: int
    numpy: Rule
    torch: str
    cxx: str
    text: str = ""
    slopes: Rule | None = None
    simplify: Rule | None = None
    simplify_zeros: Rule | None = None
    bound: Rule | None = None
    chooses: Rule | None = None
    fused: tuple[str, str] | None = None
    cxx_whole: str | None = None
    cxx_one: str | None = None
    is_condition: bool = False
    is_linear: bool = False
    takes_conditions: tuple[int, ...] = ()
    is_product: bool = False
    commutes: bool = False
    cost: int = 1
    function: Rule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = "abc"[: self.arity]
        body = self.torch.format(*names)
        object.__setattr__(self, "function", eval(f"lambda {', '.join(names)}: {body}", _TORCH))
        ELEMENTWISE[self.name] = self

    @property
    def is_selection(self) -> bool:
        """Whether it chooses between its other operands by a condition."""
        return bool(self.takes_conditions) and not self.is_condition

    def write_cxx(
        self, args: Sequence[str], first: float | None = None, whole: float | None = None
    ) -> str:
        """The operation in C++; first, whole: its first and last operand if they are constants."""
        if self.cxx_one is not None and first == 1.0:
            return self.cxx_one.format(*args)
        is_whole = whole is not None and whole.is_integer() and abs(whole) <= MAX_WHOLE
        if self.cxx_whole is not None and whole is not None and is_whole:
            return self.cxx_whole.format(*args, n=int(whole))
        return self.cxx.format(*args)

    def write_text(self, args: Sequence[str]) -> str:
        """The operation for people to read."""
        return self.text.format(*args) if self.text else f"{self.name}({', '.join(args)})"


MAX_WHOLE = 2**20
"""The largest whole number that C++ knows as such (`pown` of lanes.h is tested so far)."""

_TORCH = {"torch": torch}
ELEMENTWISE: dict[str, Elementwise] = {}
"""Every row by its name; a row enters by being made."""


def _unary(name: str, slope: Rule | None, numpy: Rule | None = None, **more: Any) -> Elementwise:
    """A function of one operand that NumPy, torch and our lanes call by (nearly) the same name."""
    return Elementwise(
        name=name, arity=1, numpy=numpy or getattr(np, name), torch=f"torch.{name}({{0}})",
        cxx=f"{name}({{0}})", slopes=None if slope is None else lambda g, y, a: (slope(g, y, a),),
        **more,
    )  # fmt: skip


def _function(
    name: str, numpy: Rule, slopes: Rule | None, cxx: str = "", **more: Any
) -> Elementwise:
    """A function of two operands."""
    return Elementwise(
        name=name, arity=2, numpy=numpy, torch=f"torch.{name}({{0}}, {{1}})",
        cxx=f"{cxx or name}({{0}}, {{1}})", slopes=slopes, **more,
    )  # fmt: skip


def _compare(name: str, sign: str, numpy: Rule) -> Elementwise:
    spelled = f"{{0}} {sign} {{1}}"
    return Elementwise(
        name=name, arity=2, numpy=numpy, torch=spelled, cxx=spelled, text=spelled,
        is_condition=True,
    )  # fmt: skip


def _logical(name: str, arity: int, cxx: str, text: str) -> Elementwise:
    return Elementwise(
        name=name, arity=arity, numpy=getattr(np, f"logical_{name}"),
        torch=f"torch.logical_{name}({', '.join(f'{{{i}}}' for i in range(arity))})",
        cxx=cxx, text=text, is_condition=True, takes_conditions=tuple(range(arity)),
    )  # fmt: skip


# sums


def _simplify_add(g: Any, a: Any, b: Any) -> Any:
    if a.is_constant(0.0):
        return b
    if b.is_constant(0.0):
        return a
    if a is b:
        return g.emit("mul", 2.0, a)
    if b.op == "neg":
        return g.emit("sub", a, b.args[0])
    if a.op == "neg":
        return g.emit("sub", b, a.args[0])
    return None


def _simplify_sub(g: Any, a: Any, b: Any) -> Any:
    if b.is_constant(0.0):
        return a
    if a.is_constant(0.0):
        return g.emit("neg", b)
    if b.op == "neg":
        return g.emit("add", a, b.args[0])
    if a.op == "neg":
        return g.emit("neg", g.emit("add", a.args[0], b))
    return None


def _simplify_neg(g: Any, a: Any) -> Any:
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub":
        return g.emit("sub", a.args[1], a.args[0])
    if a.op == "mul" and a.args[0].is_number:
        return g.emit("mul", g.emit("neg", a.args[0]), a.args[1])
    return None


# products


def _simplify_mul(g: Any, a: Any, b: Any) -> Any:
    if b.is_number and not a.is_number:
        a, b = b, a
    if a.op == "const":
        if a.attr == 1.0:
            return b
        if a.attr == -1.0:
            return g.emit("neg", b)
        if b.op == "neg":
            return g.emit("mul", -a.attr, b.args[0])
    if a.is_number and b.op == "mul" and b.args[0].is_number:
        both = g.emit("mul", a, b.args[0])
        # a product of constants that over- or underflows would not be the product of all three
        if both.op != "const" or 1e-290 < abs(both.attr) < 1e290:
            return g.emit("mul", both, b.args[1])
    if a.op == "neg" and b.op == "neg":
        return g.emit("mul", a.args[0], b.args[0])
    if a.op == "neg":
        return g.emit("neg", g.emit("mul", a.args[0], b))
    if b.op == "neg":
        return g.emit("neg", g.emit("mul", a, b.args[0]))
    return None


def _zero_product(g: Any, a: Any, b: Any) -> Any:
    return g.zero if a.is_constant(0.0) or b.is_constant(0.0) else None


def _simplify_div(g: Any, a: Any, b: Any) -> Any:
    # one reciprocal serves every quotient by `b`, and its slope
    if not a.is_constant(1.0):
        return g.emit("mul", a, g.emit("div", 1.0, b))
    return None


def _slopes_div(g: Any, y: Any, a: Any, b: Any) -> Any:
    inverse = g.emit("div", 1.0, b)
    return inverse, g.emit("neg", g.emit("mul", y, inverse))


def _bound_mul(node: Any, below: list[float]) -> float:
    if node.args[0] is node.args[1]:
        return max(below[0], 0.0) ** 2
    return below[0] * below[1] if min(below) >= 0.0 else -math.inf


# powers


MAX_SQUARED_POWER = 6
"""Up to which power products are right to 4 ulp: they are off by 3.3 at 6, by 22 at 31."""


def _simplify_pow(g: Any, a: Any, b: Any) -> Any:
    if b.op != "const" or a.is_number:
        return None
    n = b.attr
    if n == 0.0:
        return g.one
    if n == 0.5:
        return g.emit("sqrt", a)
    if n == -1.0:
        return g.emit("div", 1.0, a)
    if n.is_integer() and 0 < n <= MAX_SQUARED_POWER:
        return multiply_out(lambda x, y: g.emit("mul", x, y), a, int(n))
    return None


def multiply_out(times: Callable[[Any, Any], Any], a: Any, n: int) -> Any:
    """A whole power by repeated squaring, given how values are multiplied."""
    result = None
    square = a
    while n:
        if n & 1:
            result = square if result is None else times(result, square)
        n >>= 1
        if n:
            square = times(square, square)
    return result


def _slopes_pow(g: Any, y: Any, a: Any, b: Any) -> Any:
    if g.is_positive(a):
        by_base = g.emit("div", g.emit("mul", b, y), a)
    else:
        # a zeroth power is flat, also where the base is zero
        less = g.emit("where", g.emit("eq", b, 0.0), 1.0, g.emit("sub", b, 1.0))
        by_base = g.emit("mul", b, g.emit("pow", a, less))
    if b.is_number:
        return by_base, None
    zero = g.emit("eq", a, 0.0)
    safe = g.emit("where", zero, 1.0, a)
    return by_base, g.emit("where", zero, 0.0, g.emit("mul", y, g.emit("log", safe)))


# conditions


def _simplify_where(g: Any, c: Any, a: Any, b: Any) -> Any:
    if c.op == "const":
        return a if c.attr else b
    return a if a is b else None


def _inverse_root(g: Any, a: Any) -> Any:
    return g.emit("div", 1.0, g.emit("sqrt", g.emit("sub", 1.0, g.emit("mul", a, a))))


def _slopes_chosen(g: Any, condition: Any) -> tuple[Any, Any]:
    return g.emit("where", condition, 1.0, 0.0), g.emit("where", condition, 0.0, 1.0)


def _extreme(name: str, numpy: Rule, op: str) -> Elementwise:
    """The one of two that is less or greater than the other; a tie has the slope of the second."""
    return _function(
        name, numpy, lambda g, y, a, b: _slopes_chosen(g, g.emit(op, a, b)), name[:3],
        chooses=lambda g, a, b: (g.emit(op, a, b), a, b),
    )  # fmt: skip


def _slopes_atan2(g: Any, y: Any, a: Any, b: Any) -> Any:
    square = g.emit("add", g.emit("mul", a, a), g.emit("mul", b, b))
    return g.emit("div", b, square), g.emit("neg", g.emit("div", a, square))


def _slope_of_root(g: Any, a: Any, sign: str) -> Any:
    """Of asinh and acosh."""
    return g.emit("div", 1.0, g.emit("sqrt", g.emit(sign, g.emit("mul", a, a), 1.0)))


def _bound_root(node: Any, below: list[float]) -> float:
    return math.sqrt(below[0]) if below[0] >= 0.0 else -math.inf


_ROWS = (
    Elementwise(
        name="add", arity=2, numpy=np.add, torch="{0} + {1}", cxx="{0} + {1}", text="{0} + {1}",
        slopes=lambda g, y, a, b: (g.one, g.one), simplify=_simplify_add, commutes=True,
        is_linear=True,
        bound=lambda node, below: below[0] + below[1],
        fused=("fma({x}, {y}, {1})", "fma({x}, {y}, {0})"),
    ),
    Elementwise(
        name="sub", arity=2, numpy=np.subtract, torch="{0} - {1}", cxx="{0} - {1}",
        text="{0} - {1}", slopes=lambda g, y, a, b: (g.one, g.const(-1.0)),
        simplify=_simplify_sub, simplify_zeros=lambda g, a, b: g.zero if a is b else None,
        fused=("fma({x}, {y}, -{1})", "fma(-{x}, {y}, {0})"), is_linear=True,
    ),
    Elementwise(
        name="mul", arity=2, numpy=np.multiply, torch="{0} * {1}", cxx="{0} * {1}",
        text="{0} * {1}", slopes=lambda g, y, a, b: (b, a), simplify=_simplify_mul,
        simplify_zeros=_zero_product, bound=_bound_mul, commutes=True, is_product=True,
    ),
    Elementwise(
        name="div", arity=2, numpy=np.divide, torch="{0} / {1}", cxx="{0} / {1}",
        cxx_one="inverse({1})",
        text="{0} / {1}", slopes=_slopes_div, simplify=_simplify_div,
        simplify_zeros=lambda g, a, b: g.zero if a.is_constant(0.0) else None,
    ),
    Elementwise(
        name="neg", arity=1, numpy=np.negative, torch="-{0}", cxx="-{0}", text="-{0}",
        slopes=lambda g, y, a: (g.const(-1.0),), simplify=_simplify_neg, is_linear=True,
    ),
    Elementwise(
        name="pow", arity=2, numpy=np.power, torch="torch.pow({0}, {1})", cxx="pow({0}, {1})",
        cxx_whole="pown<{n}>({0})",
        slopes=_slopes_pow, simplify=_simplify_pow,
    ),
    Elementwise(
        name="where", arity=3, numpy=np.where, torch="torch.where({0}, {1}, {2})",
        cxx="select({0}, {1}, {2})", simplify=_simplify_where, takes_conditions=(0,),
        slopes=lambda g, y, c, a, b: (None, *_slopes_chosen(g, c)),
        chooses=lambda g, c, a, b: (c, a, b),
        bound=lambda node, below: min(below[1:]),
    ),
    _unary("abs", lambda g, y, a: g.emit("sign", a), bound=lambda node, x: max(x[0], 0.0)),
    # NumPy's sign of NaN is NaN, torch's is zero
    _unary("sign", None, lambda a: np.sign(np.nan_to_num(a, nan=0.0, posinf=1.0, neginf=-1.0))),
    _unary("sqrt", lambda g, y, a: g.emit("div", 0.5, y), bound=_bound_root),
    _unary("exp", lambda g, y, a: y, bound=lambda node, below: 0.0),
    _unary("log", lambda g, y, a: g.emit("div", 1.0, a)),
    _unary("log10", lambda g, y, a: g.emit("div", 0.4342944819032518, a)),
    _unary("sin", lambda g, y, a: g.emit("cos", a)),
    _unary("cos", lambda g, y, a: g.emit("neg", g.emit("sin", a))),
    _unary("tan", lambda g, y, a: g.emit("add", 1.0, g.emit("mul", y, y))),
    _unary("asin", lambda g, y, a: _inverse_root(g, a), np.arcsin),
    _unary("acos", lambda g, y, a: g.emit("neg", _inverse_root(g, a)), np.arccos),
    _unary(
        "atan", lambda g, y, a: g.emit("div", 1.0, g.emit("add", 1.0, g.emit("mul", a, a))),
        np.arctan,
    ),
    _unary("sinh", lambda g, y, a: g.emit("cosh", a)),
    _unary("cosh", lambda g, y, a: g.emit("sinh", a), bound=lambda node, below: 1.0),
    _unary("tanh", lambda g, y, a: g.emit("sub", 1.0, g.emit("mul", y, y))),
    _unary("log1p", lambda g, y, a: g.emit("div", 1.0, g.emit("add", 1.0, a))),
    _unary("expm1", lambda g, y, a: g.emit("add", y, 1.0)),
    _unary("log2", lambda g, y, a: g.emit("div", 1.4426950408889634, a)),
    _unary("asinh", lambda g, y, a: _slope_of_root(g, a, "add"), np.arcsinh),
    _unary("acosh", lambda g, y, a: _slope_of_root(g, a, "sub"), np.arccosh),
    _unary(
        "atanh", lambda g, y, a: g.emit("div", 1.0, g.emit("sub", 1.0, g.emit("mul", a, a))),
        np.arctanh,
    ),
    _unary("floor", None),
    _unary("ceil", None),
    _unary("trunc", None),
    _unary("round", None, np.rint),
    _extreme("minimum", np.minimum, "lt"),
    _extreme("maximum", np.maximum, "gt"),
    _function("atan2", np.arctan2, _slopes_atan2),
    _function(
        "hypot", np.hypot, lambda g, y, a, b: (g.emit("div", a, y), g.emit("div", b, y))
    ),
    _function("remainder", np.remainder, lambda g, y, a, b: (g.one, None)),
    _compare("lt", "<", np.less),
    _compare("le", "<=", np.less_equal),
    _compare("gt", ">", np.greater),
    _compare("ge", ">=", np.greater_equal),
    _compare("eq", "==", np.equal),
    _compare("ne", "!=", np.not_equal),
    _logical("and", 2, "{0} & {1}", "{0} and {1}"),
    _logical("or", 2, "{0} | {1}", "{0} or {1}"),
    _logical("not", 1, "no({0})", "not {0}"),
)  # fmt: skip
