"""Nodes of a captured graph: what they are and cost, and those at a point as lines of a program.

A complex number is two lines, its real and its imaginary part. Operations not listed run as they
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.fx import Node as Call

from ingot.graphs.torch_private import OpOverload
from ingot.program import Builder, Node
from ingot.types.elementwise import ELEMENTWISE, multiply_out

__all__ = ["CHEAP", "CONSTANTS", "OPERATIONS", "THROUGH", "Kind", "Value", "cast", "costs",
           "kind_of", "literal", "lower", "name_of", "placeholder", "seen", "sizes_of"]  # fmt: skip

FREE = ("view", "reshape", "select", "slice", "unsqueeze", "squeeze", "permute", "transpose",
        "expand", "alias", "detach", "t", "unbind", "split", "view_as_real", "view_as_complex",
        "getitem", "sym_size", "lift_fresh_copy", "diagonal", "movedim", "as_strided")  # fmt: skip
"""Calls that touch no values."""

THROUGH = frozenset(("expand.default", "alias.default", "detach.default", "lift_fresh_copy.default",
                     "lift.default", "lift_fresh.default"))  # fmt: skip
"""Operations that leave values as they are."""


Kind = Literal["V", "C", "M"]
"""Numbers, complex numbers, truth values, by their types in C++."""

Value = Node | tuple[Node, Node]
"""A number or a truth value; or the two parts of a complex number."""

MAX_WRITTEN_POWER = 16
"""Up to which whole power is written out as products, which take a tenth of the time of pow."""


def name_of(node: Call) -> str:
    """The name of a node's operation, torch's own without their room."""
    if isinstance(node.target, OpOverload):
        return str(node.target).removeprefix("aten.")
    return getattr(node.target, "__name__", "") if node.op == "call_function" else node.op


def sizes_of(node: Call) -> tuple[int, ...]:
    """The sizes of a node's value while it was captured."""
    return tuple(int(getattr(getattr(n, "node", None), "hint", n)) for n in node.meta["val"].shape)


def seen(node: Call) -> Call:
    """The node whose values this one has, axes aside."""
    while name_of(node) in THROUGH:
        node = node.all_input_nodes[0]
    return node


def costs(node: Call) -> bool:
    """Whether a node passes over values."""
    return node.op == "call_function" and (
        isinstance(node.meta.get("val"), Tensor | tuple | list)
        and name_of(node).split(".")[0] not in FREE
    )


def kind_of(call: Call, real: torch.dtype) -> Kind:
    """What a block of a node's values is; a size is a number."""
    value = call.meta["val"]
    if not isinstance(value, Tensor):
        return "V"
    if value.dtype == torch.bool:
        return "M"
    if value.dtype not in (real, real.to_complex()):
        raise KeyError(str(value.dtype))
    return "C" if value.dtype.is_complex else "V"


def placeholder(b: Builder, kind: Kind, *role: Any) -> Value:
    """A value that is given."""
    if kind == "C":
        return b.node("input", (), (*role, "re")), b.node("input", (), (*role, "im"))
    return b.node("flag" if kind == "M" else "input", (), role)


def lower(b: Builder, call: Call, value_of: Callable[[Call], Value], real: torch.dtype) -> Value:
    """The lines of a node of a graph; KeyError where there are none."""

    def argument(given: Any) -> Any:
        if isinstance(given, Call):
            return value_of(given)
        return literal(b, given) if isinstance(given, bool | int | float | complex) else given

    named = OPERATIONS[name_of(call)]
    rule: Any = partial(emit, op=named) if isinstance(named, str) else named
    return cast(b, rule(b, *map(argument, call.args), **call.kwargs), kind_of(call, real))


def literal(b: Builder, value: complex | bool) -> Value:
    """A number as it stands in the code."""
    if isinstance(value, bool):
        return emit(b, b.const(value), b.zero, op="ne")
    return (
        (b.const(value.real), b.const(value.imag)) if isinstance(value, complex) else b.const(value)
    )


def cast(b: Builder, x: Value, kind: Kind) -> Value:
    """A value as another kind, true being 1; KeyError where that would lose a part of it."""
    return parts(b, x) if kind == "C" else single(b, x, kind)


def parts(b: Builder, x: Value) -> tuple[Node, Node]:
    """A number as a complex one."""
    return x if isinstance(x, tuple) else (single(b, x, "V"), b.zero)


def single(b: Builder, x: Value, kind: Kind) -> Node:
    """A value as a number or as a truth value."""
    if isinstance(x, tuple):
        raise KeyError("the real part is another operation")
    if x.is_condition == (kind == "M"):
        return x
    one, zero = b.one, b.zero
    return b.node("ne", (x, zero)) if kind == "M" else b.node("where", (x, one, zero))


def emit(b: Builder, *operands: Value, op: str) -> Node:
    """An operation of the table as it is, nothing simplified: torch rounds every operation."""
    truths = ELEMENTWISE[op].takes_conditions
    kinds: list[Kind] = ["M" if i in truths else "V" for i in range(len(operands))]
    return b.node(op, tuple(single(b, x, k) for x, k in zip(operands, kinds, strict=True)))


def split(x: Value) -> tuple[Node, Node | None]:
    """The parts of a number, of which a real one has no second."""
    return x if isinstance(x, tuple) else (x, None)


def join(b: Builder, x: Value, y: Value, *, alpha: Any = 1, op: str) -> Value:
    """A sum or a difference."""
    (p, q), (r, s) = split(x), split(y if alpha == 1 else mul(b, literal(b, alpha), y))
    re = emit(b, p, r, op=op)
    if q is None or s is None:
        rest = q if s is None else s if op == "add" else emit(b, s, op="neg")
        return re if rest is None else (re, rest)
    return re, emit(b, q, s, op=op)


add, sub = partial(join, op="add"), partial(join, op="sub")
plus, minus = partial(emit, op="add"), partial(emit, op="sub")
product, quotient = partial(emit, op="mul"), partial(emit, op="div")
choose, negative = partial(emit, op="where"), partial(emit, op="neg")


def mul(b: Builder, x: Value, y: Value) -> Value:
    (p, q), (r, s) = split(x), split(y)
    re = product(b, p, r)
    if q is None:
        return re if s is None else (re, product(b, p, s))
    if s is None:
        return re, product(b, q, r)
    return minus(b, re, product(b, q, s)), plus(b, product(b, p, s), product(b, q, r))


def div(b: Builder, x: Value, y: Value) -> Value:
    """A quotient; by the larger part of a complex divisor, so that no square overflows. Where both
    parts of the divisor are zero, each part of the dividend over zero, whatever its sign, as torch.
    """
    (p, q), (r, s) = split(x), split(y)
    if s is None:
        return quotient(b, p, r) if q is None else (quotient(b, p, r), quotient(b, q, r))
    q = b.zero if q is None else q
    sizes = emit(b, r, op="abs"), emit(b, s, op="abs")
    wide, nothing = emit(b, *sizes, op="ge"), emit(b, plus(b, *sizes), b.zero, op="eq")
    ends = product(b, p, b.const(math.inf)), product(b, q, b.const(math.inf))
    large, small = choose(b, wide, r, s), choose(b, wide, s, r)
    ratio = quotient(b, small, large)
    below = plus(b, large, product(b, small, ratio))
    p, q = choose(b, wide, p, q), choose(b, wide, q, p)
    turn = minus(b, q, product(b, p, ratio))
    above = plus(b, p, product(b, q, ratio))
    turned = choose(b, wide, turn, negative(b, turn))
    quotients = quotient(b, above, below), quotient(b, turned, below)
    return choose(b, nothing, ends[0], quotients[0]), choose(b, nothing, ends[1], quotients[1])


def exp(b: Builder, x: Value) -> Value:
    size, angle = split(x)
    found = emit(b, size, op="exp")
    if angle is None:
        return found
    return product(b, found, emit(b, angle, op="cos")), product(b, found, emit(b, angle, op="sin"))


def conj(b: Builder, x: Value) -> Value:
    return (x[0], negative(b, x[1])) if isinstance(x, tuple) else x


def power(b: Builder, x: Value, exponent: Value) -> Value:
    """A power; one with a fixed whole exponent is a product."""
    n = exponent.attr if isinstance(exponent, Node) and exponent.op == "const" else None
    if n == 0:
        return b.one
    if n in (0.5, -0.5) and isinstance(x, Node):
        root = emit(b, x, op="sqrt")
        return root if n > 0 else div(b, b.one, root)
    if n is not None and n.is_integer() and 0 < abs(n) <= MAX_WRITTEN_POWER:
        found = multiply_out(partial(mul, b), x, int(abs(n)))
        return found if n > 0 else div(b, b.one, found)
    return emit(b, x, exponent, op="pow")


def compare(b: Builder, x: Value, y: Value, *, op: str, both: str) -> Value:
    """Whether numbers are equal, or not; of complex ones, whether both parts, or one is not."""
    if isinstance(x, Node) and isinstance(y, Node):
        return emit(b, x, y, op=op)
    pairs = zip(parts(b, x), parts(b, y), strict=True)
    return emit(b, *(emit(b, p, q, op=op) for p, q in pairs), op=both)


def bitwise(b: Builder, *xs: Value, op: str) -> Value:
    """The same of truth values alone."""
    if not all(isinstance(x, Node) and x.is_condition for x in xs):
        raise KeyError(op)
    return emit(b, *xs, op=op)


def where(b: Builder, condition: Value, x: Value, y: Value) -> Value:
    if isinstance(x, Node) and isinstance(y, Node):
        if not (x.is_condition and y.is_condition):
            return choose(b, condition, x, y)
        otherwise = emit(b, emit(b, condition, op="not"), y, op="and")
        return emit(b, emit(b, condition, x, op="and"), otherwise, op="or")
    pairs = zip(parts(b, x), parts(b, y), strict=True)
    re, im = (choose(b, condition, *pair) for pair in pairs)
    return re, im


def clamp(b: Builder, x: Value, low: Any = None, high: Any = None, **named: Any) -> Value:
    for op, bound in (("maximum", named.get("min", low)), ("minimum", named.get("max", high))):
        if bound is not None:
            x = emit(b, x, b.const(bound) if isinstance(bound, int | float) else bound, op=op)
    return x


OPERATIONS: dict[str, str | Callable[..., Any]] = {
    **{f"{row.name}.default": row.name for row in ELEMENTWISE.values()
       if row.arity == 1 and not row.is_condition},
    **{f"{row.name}.{form}": row.name for row in ELEMENTWISE.values()
       if row.arity == 2 and row.is_condition and not row.takes_conditions
       for form in ("Tensor", "Scalar")},
    **{f"{op}.{form}": partial(compare, op=op, both=both)
       for op, both in (("eq", "and"), ("ne", "or")) for form in ("Tensor", "Scalar")},
    "add.Tensor": add, "add.Scalar": add, "sub.Tensor": sub, "sub.Scalar": sub,
    "rsub.Scalar": lambda b, x, y: sub(b, y, x), "rsub.Tensor": lambda b, x, y: sub(b, y, x),
    "mul.Tensor": mul, "mul.Scalar": mul,
    "div.Tensor": div, "div.Scalar": div, "true_divide.Tensor": div,
    "neg.default": lambda b, x: mul(b, b.const(-1.0), x),
    "reciprocal.default": lambda b, x: div(b, b.one, x),
    "square.default": lambda b, x: mul(b, x, x),
    "pow.Tensor_Scalar": power, "pow.Tensor_Tensor": power, "pow.Scalar": power,
    "exp.default": exp, "rsqrt.default": lambda b, x: power(b, x, b.const(-0.5)),
    "abs.default": lambda b, x: emit(b, *x, op="hypot") if isinstance(x, tuple)
                   else emit(b, x, op="abs"),
    "_conj.default": conj, "conj_physical.default": conj, "_conj_physical.default": conj,
    "complex.default": lambda b, x, y: (x, y),
    "clone.default": lambda b, x, **_: x, "_to_copy.default": lambda b, x, **_: x,
    "clamp.default": clamp, "clamp.Tensor": clamp,
    "clamp_min.default": "maximum", "clamp_max.default": "minimum",
    "minimum.default": "minimum", "maximum.default": "maximum",
    "atan2.default": "atan2", "hypot.default": "hypot",
    "where.self": where, "where.ScalarSelf": where, "where.ScalarOther": where,
    "where.Scalar": where,
    "logical_and.default": "and", "logical_or.default": "or", "logical_not.default": "not",
    "bitwise_and.Tensor": partial(bitwise, op="and"),
    "bitwise_or.Tensor": partial(bitwise, op="or"),
    "bitwise_not.default": partial(bitwise, op="not"),
    "real": lambda b, x: parts(b, x)[0], "imag": lambda b, x: parts(b, x)[1],
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
