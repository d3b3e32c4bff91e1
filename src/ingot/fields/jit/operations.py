"""What each operation of torch is on blocks of points: terms of C++ in, a term out.

In: an operation's name and the terms of its arguments. Operations not listed run as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["CHEAP", "CONSTANTS", "OPERATIONS", "THROUGH", "Kind", "Term", "literal"]

Kind = Literal["V", "C", "M"]
"""Numbers, complex numbers, truth values."""


@dataclass(frozen=True, slots=True)
class Term:
    """A piece of C++ and the kind of its value."""

    text: str
    kind: Kind


def literal(value: complex | bool) -> Term:
    """A number as it stands in the code."""
    if isinstance(value, bool):
        return Term(f"as_truth(splat({int(value)}))", "M")
    if isinstance(value, complex):
        return Term(f"C{{splat({decimal(value.real)}), splat({decimal(value.imag)})}}", "C")
    return Term(f"splat({decimal(value)})", "V")


def decimal(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return repr(float(value))


def number(term: Term) -> Term:
    """A term as a number, true being 1."""
    return Term(f"as_real({term.text})", "V") if term.kind == "M" else term


def truth(term: Term) -> Term:
    """A term as true or false, a number being true where it is not 0."""
    return term if term.kind == "M" else Term(f"as_truth({term.text})", "M")


def joined(sign: str, a: Term, b: Term) -> Term:
    a, b = number(a), number(b)
    return Term(f"({a.text} {sign} {b.text})", "C" if "C" in (a.kind, b.kind) else "V")


def times(a: Term, alpha: Any) -> Term:
    return a if alpha == 1 else joined("*", literal(alpha), a)


def add(a: Term, b: Term, *, alpha: Any = 1) -> Term:
    return joined("+", a, times(b, alpha))


def sub(a: Term, b: Term, *, alpha: Any = 1) -> Term:
    return joined("-", a, times(b, alpha))


def rsub(a: Term, b: Term, alpha: Any = 1) -> Term:
    return joined("-", b, times(a, 1 if isinstance(alpha, Term) else alpha))


def mul(a: Term, b: Term) -> Term:
    return joined("*", a, b)


def div(a: Term, b: Term) -> Term:
    return joined("/", a, b)


def neg(a: Term) -> Term:
    return Term(f"(-{number(a).text})", number(a).kind)


def reciprocal(a: Term) -> Term:
    return div(literal(1.0), a)


def same(a: Term, **_: Any) -> Term:
    return a


def called(name: str) -> Callable[[Term], Term]:
    """A function of numbers."""

    def call(a: Term) -> Term:
        if a.kind == "C":
            raise KeyError(name)
        return Term(f"{name}({number(a).text})", "V")

    return call


def exp(a: Term) -> Term:
    return Term(f"exp({number(a).text})", number(a).kind)


def absolute(a: Term) -> Term:
    return Term(f"{'length' if a.kind == 'C' else 'abs'}({a.text})", "V")


def rsqrt(a: Term) -> Term:
    return reciprocal(called("sqrt")(a))


def conj(a: Term) -> Term:
    return Term(f"conj({a.text})", "C") if a.kind == "C" else a


def part(name: str) -> Callable[[Term], Term]:
    return lambda a: Term(f"({a.text}).{name}", "V")


def complex_of(a: Term, b: Term) -> Term:
    return Term(f"C{{{a.text}, {b.text}}}", "C")


def power(base: Term, exponent: Term) -> Term:
    if "C" in (base.kind, exponent.kind):
        raise KeyError("pow")
    return Term(f"pow({number(base).text}, {number(exponent).text})", "V")


def power_of(base: Term, exponent: float) -> Term:
    """A power with a fixed exponent; whole ones are products."""
    base = number(base)
    if isinstance(exponent, complex):
        raise KeyError("pow")
    if exponent == 0.5 and base.kind == "V":
        return called("sqrt")(base)
    if exponent == -0.5 and base.kind == "V":
        return rsqrt(base)
    if float(exponent).is_integer() and 0 < abs(exponent) <= 16:
        name = "whole_power"
        found = Term(f"{name}<{int(abs(exponent))}>({base.text})", base.kind)
        return found if exponent > 0 else reciprocal(found)
    return power(base, literal(float(exponent)))


def compared(sign: str) -> Callable[[Term, Term], Term]:
    def compare(a: Term, b: Term) -> Term:
        a, b = number(a), number(b)
        if "C" in (a.kind, b.kind):
            if sign not in ("==", "!="):
                raise KeyError(sign)
            return Term(f"(complex({a.text}) {sign} complex({b.text}))", "M")
        return Term(f"({a.text} {sign} {b.text})", "M")

    return compare


def logical(sign: str) -> Callable[[Term, Term], Term]:
    return lambda a, b: Term(f"({truth(a).text} {sign} {truth(b).text})", "M")


def logical_not(a: Term) -> Term:
    return Term(f"no({truth(a).text})", "M")


def bitwise(sign: str) -> Callable[[Term, Term], Term]:
    def both(a: Term, b: Term) -> Term:
        if a.kind != "M" or b.kind != "M":
            raise KeyError(sign)
        return logical(sign)(a, b)

    return both


def where(condition: Term, a: Term, b: Term) -> Term:
    if a.kind == b.kind == "M":
        text = f"(({condition.text} & {a.text}) | (no({condition.text}) & {b.text}))"
        return Term(text, "M")
    a, b = number(a), number(b)
    if "C" in (a.kind, b.kind):
        a, b = (Term(f"complex({each.text})", "C") for each in (a, b))
    return Term(f"select({condition.text}, {a.text}, {b.text})", a.kind)


def extreme(name: str) -> Callable[[Term, Term], Term]:
    def pick(a: Term, b: Term) -> Term:
        if "C" in (a.kind, b.kind):
            raise KeyError(name)
        return Term(f"{name}({number(a).text}, {number(b).text})", "V")

    return pick


def clamp(a: Term, low: Term | None = None, high: Term | None = None, **named: Any) -> Term:
    low, high = named.get("min", low), named.get("max", high)
    for name, bound in (("max", low), ("min", high)):
        if bound is not None:
            a = extreme(name)(a, bound if isinstance(bound, Term) else literal(float(bound)))
    return a


OPERATIONS: dict[str, Callable[..., Term]] = {
    "add.Tensor": add, "add.Scalar": add, "sub.Tensor": sub, "sub.Scalar": sub,
    "rsub.Scalar": rsub, "rsub.Tensor": rsub, "mul.Tensor": mul, "mul.Scalar": mul,
    "div.Tensor": div, "div.Scalar": div, "true_divide.Tensor": div,
    "neg.default": neg, "reciprocal.default": reciprocal, "square.default": lambda a: mul(a, a),
    "pow.Tensor_Scalar": power_of, "pow.Tensor_Tensor": power, "pow.Scalar": power,
    "exp.default": exp, "abs.default": absolute, "rsqrt.default": rsqrt,
    "sign.default": called("torch_sign"), "_conj.default": conj, "conj_physical.default": conj,
    "_conj_physical.default": conj,
    "complex.default": complex_of, "clone.default": same, "_to_copy.default": same,
    "clamp.default": clamp, "clamp.Tensor": clamp,
    "clamp_min.default": extreme("max"), "clamp_max.default": extreme("min"),
    "minimum.default": extreme("min"), "maximum.default": extreme("max"),
    "where.self": where, "where.ScalarSelf": where, "where.ScalarOther": where,
    "where.Scalar": where,
    "logical_and.default": logical("&"), "logical_or.default": logical("|"),
    "logical_not.default": logical_not, "bitwise_and.Tensor": bitwise("&"),
    "bitwise_or.Tensor": bitwise("|"), "bitwise_not.default": logical_not,
    "real": part("re"), "imag": part("im"),
    **{f"{name}.default": called(name) for name in (
        "sqrt", "log", "log10", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "floor", "ceil", "trunc", "round",
    )},
    **{f"{name}.{form}": compared(sign)
       for name, sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("gt", ">"), ("le", "<="),
                          ("ge", ">="))
       for form in ("Tensor", "Scalar")},
}  # fmt: skip
"""Operations that work point by point."""

CHEAP = frozenset(
    name for name in OPERATIONS
    if name.split(".")[0] in (
        "add", "sub", "rsub", "mul", "neg", "div", "square", "_conj", "complex", "clone",
        "_to_copy", "real", "imag", "abs", "minimum", "maximum", "eq", "ne", "lt", "gt", "le",
        "ge", "logical_and", "logical_or", "logical_not", "where",
    )
)  # fmt: skip
"""Operations that are rather repeated at every point than stored for a part of the axes."""

THROUGH = frozenset(("expand.default", "alias.default", "detach.default", "lift_fresh_copy.default",
                     "lift.default", "lift_fresh.default"))  # fmt: skip
"""Operations that leave values as they are."""

CONSTANTS: dict[str, Callable[..., Any]] = {
    "full.default": lambda size, value, **_: value,
    "new_full.default": lambda like, size, value, **_: value,
    "full_like.default": lambda like, value, **_: value,
    "scalar_tensor.default": lambda value, **_: value,
    "zeros.default": lambda *_, **__: 0, "zeros_like.default": lambda *_, **__: 0,
    "new_zeros.default": lambda *_, **__: 0, "ones.default": lambda *_, **__: 1,
    "ones_like.default": lambda *_, **__: 1, "new_ones.default": lambda *_, **__: 1,
}  # fmt: skip
"""Operations that give one number everywhere."""
