"""Python of an input file, evaluated node by node: allow-listed syntax and names, all bounded.

In: the text of a `[Tensors]` expression. Out: its value, or Refused with what is not allowed.
"""

import ast
import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ingot import types
from ingot.errors import Problem, Span
from ingot.types import Value, expressions, regions

__all__ = ["Bounds", "Refused", "evaluate", "map_tensors", "untrusted_code"]

MAX_SOURCE = 200_000  # characters; a saved point of 1000 steps and 6 components has 130 000
MAX_STEPS = 1_000_000  # evaluated nodes of a file: about a second
MAX_DEPTH = 100  # of nodes within nodes and calls within calls; Python itself ends near 1000 / 6
MAX_BITS = 1024  # of an integer; more is no float64 either
MAX_TEXT = 100  # characters of a string, which is never more than the name of a mode
MAX_ITEMS = 100_000  # of a list, and of what is iterated
MAX_ELEMENTS = 10_000_000  # of one tensor: 80 MB
MAX_TOTAL = 50_000_000  # of all tensors that a file's expressions make: 400 MB
MAX_SECONDS = 20.0  # for all expressions of a file; no operation on so many elements takes one


class Refused(Exception):
    """Something that an untrusted expression may not do."""


def untrusted_code(message: str, span: Span | None) -> Problem:
    """The problem where an untrusted file names what would be executed."""
    fix = "leave --untrusted out if you trust the file and everybody who wrote it"
    return Problem("untrusted-code", message, span, fix)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TORCH = _words(
    "tensor as_tensor linspace logspace arange zeros ones full eye zeros_like ones_like full_like"
    " rand randn stack cat concatenate hstack vstack where exp log log10 sqrt sin cos tan tanh sinh"
    " cosh asin acos atan atan2 abs sign square pow clamp minimum maximum min max sum mean prod"
    " cumsum flip roll meshgrid outer diag tril triu transpose permute reshape unsqueeze squeeze"
    " broadcast_to flatten matmul cross norm heaviside floor ceil round deg2rad rad2deg"
    " Generator float64 float32 int64 int32 bool pi e inf nan"
)  # nothing that sets a global (manual_seed), or has a language of its own (einsum)
MATH = _words(
    "pi e inf nan tau sqrt exp log log10 log2 sin cos tan asin acos atan atan2 sinh cosh tanh fabs"
    " floor ceil radians degrees hypot isnan isfinite isinf copysign fmod"
)
METHODS: dict[type, frozenset[str]] = {
    Tensor: _words(
        "data shape dtype ndim T mT reshape view unsqueeze squeeze expand expand_as contiguous"
        " clone double long sum mean prod min max abs sin cos tan exp log sqrt tanh pow clamp"
        " cumsum flip transpose permute flatten repeat t item numel dim size norm sign floor"
        " ceil round diag square neg roll tril triu matmul"
    ),
    Value: _words(
        "data base sub batch dynamic_batch sub_batch fill zeros ones full identity identity_sym"
        " identity_vol identity_dev identity_C1 identity_C2 identity_C3 from_axis_angle"
        " from_axis_angle_standard from_matrix rotation_from_to"
    ),
    regions.Region: _words("shape ndim unsqueeze squeeze expand expand_at retag flatten"),
    torch.Generator: frozenset(["manual_seed"]),
}
KEYWORDS = _words(
    "dtype dim keepdim generator sub_batch_ndim steps start end base fill_value mode value indexing"
    " n m axis min max size diagonal p dims shifts step count other input"
)
BUILTINS: dict[str, Any] = {
    "float": lambda x: float(_number(x)), "int": lambda x: int(_number(x)), "len": len,
    "bool": lambda x: bool(_number(x)), "round": lambda *a: _rounded(*a),
    "min": lambda *a: min(_numbers(a)), "max": lambda *a: max(_numbers(a)),
    "range": lambda *a: _ranged(range(*a)), "tuple": lambda a: tuple(_items(a)),
    "list": lambda a: _items(a), "zip": lambda *a: list(zip(*map(_items, a), strict=False)),
    "enumerate": lambda a: list(enumerate(_items(a))), "reversed": lambda a: _items(a)[::-1],
}  # fmt: skip
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.MatMult: operator.matmul,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
PLAIN = (
    bool, int, float, str, tuple, list, slice, Tensor, torch.dtype, torch.Generator, Value,
    regions.Region, type(None), type(...),
)  # fmt: skip


def evaluate(source: str, others: Callable[[str], Any], bounds: "Bounds") -> Any:
    """The value of an expression, or of `result` after a block; `others` finds other names."""
    if len(source) > MAX_SOURCE:
        raise Refused(f"it has {len(source)} characters, and {MAX_SOURCE} are allowed")
    try:
        try:
            tree: ast.Expression | ast.Module = ast.parse(source, mode="eval")
        except SyntaxError:
            tree = ast.parse(source)
    except (RecursionError, MemoryError, ValueError) as error:
        raise Refused(f"it cannot be parsed: {type(error).__name__}") from None
    evaluation = _Evaluation(others, bounds)
    if bounds.end is not None:  # another expression asks for this one
        return evaluation.whole(tree)
    start = time.monotonic()
    bounds.end = start + bounds.seconds
    try:
        with bounds:
            return evaluation.whole(tree)
    finally:
        bounds.end = None
        bounds.seconds -= time.monotonic() - start


class _Evaluation:
    """One expression under way, and its names."""

    def __init__(self, others: Callable[[str], Any], bounds: "Bounds") -> None:
        self.others, self.bounds = others, bounds
        self.names: dict[str, Any] = {}
        self.depth = 0

    def whole(self, tree: ast.Expression | ast.Module) -> Any:
        if isinstance(tree, ast.Expression):
            return _plain(self.value(tree.body, self.names))
        for statement in tree.body:
            if not isinstance(statement, ast.Assign):
                raise Refused(f"the statement {_word(statement)} is not allowed")
            value = self.value(statement.value, self.names)
            for target in statement.targets:
                self.assign(target, value, self.names)
        if "result" not in self.names:
            raise NameError("the block assigns no 'result'")
        return _plain(self.names["result"])

    def assign(self, target: ast.expr, value: Any, names: dict[str, Any]) -> None:
        """Give names to a value or to the items of it."""
        match target:
            case ast.Name(id=name):
                names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part, item in zip(parts, _items(value), strict=True):
                    self.assign(part, item, names)
            case _:
                raise Refused("only names can be assigned")

    def value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        """The value of a node."""
        self.bounds.step()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Refused(f"it is nested deeper than {MAX_DEPTH}")
        try:
            return self._value(node, names)
        finally:
            self.depth -= 1

    def _value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value):
                return _constant(value)
            case ast.Name(id=name):
                return self.name(name, names)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                found = self.several(parts, names)
                return found if isinstance(node, ast.List) else tuple(found)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
                return UNARY[type(op)](_number(self.value(operand, names)))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return _binary(op, self.value(left, names), self.value(right, names))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARE:
                a, b = self.value(left, names), self.value(right, names)
                return COMPARE[type(op)](_number(a), _number(b))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test, names) else orelse, names)
            case ast.Attribute(value=of, attr=name):
                return _attribute(self.value(of, names), name)
            case ast.Subscript(value=of, slice=index):
                return self.subscript(self.value(of, names), self.value(index, names))
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if e is None else self.value(e, names)
                               for e in (lower, upper, step)))  # fmt: skip
            case ast.Call():
                return self.call(node, names)
            case ast.Lambda():
                return self.function(node, names)
            case ast.ListComp(elt=element, generators=[one]):
                return self.comprehension(element, one, names)
            case _:
                raise Refused(f"the syntax {_word(node)} is not allowed")

    def several(self, parts: list[ast.expr], names: dict[str, Any]) -> list[Any]:
        """The values of parts, those with a star item by item."""
        found: list[Any] = []
        for part in parts:
            if isinstance(part, ast.Starred):
                found += _items(self.value(part.value, names))
            else:
                found.append(self.value(part, names))
        return found

    def name(self, name: str, names: dict[str, Any]) -> Any:
        for known in (names, NAMES, BUILTINS):
            if name in known:
                return known[name]
        try:
            return self.others(name)
        except KeyError:
            raise Refused(f"the name '{name}' is not allowed") from None

    def subscript(self, value: Any, index: Any) -> Any:
        if not isinstance(value, Tensor | Value | regions.Region | list | tuple):
            raise Refused(f"a {type(value).__name__} has no items that are allowed")
        return value[index]

    def call(self, node: ast.Call, names: dict[str, Any]) -> Any:
        function = self.value(node.func, names)
        if not callable(function) or isinstance(function, PLAIN):
            raise Refused(f"a {type(function).__name__} cannot be called")
        arguments = self.several(node.args, names)
        chosen: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg not in KEYWORDS:
                raise Refused(f"the argument '{keyword.arg or '**'}' is not allowed")
            chosen[keyword.arg] = self.value(keyword.value, names)
        _count(arguments, chosen.values())
        result = function(*arguments, **chosen)
        return _integer(result) if isinstance(result, int) else result

    def function(self, node: ast.Lambda, names: dict[str, Any]) -> Callable[..., Any]:
        """A function of positional arguments."""
        signature = node.args
        if signature.kwonlyargs or signature.vararg or signature.kwarg or signature.defaults:
            raise Refused("a lambda has positional arguments only")
        wanted = [each.arg for each in (*signature.posonlyargs, *signature.args)]

        def run(*arguments: Any) -> Any:
            return self.value(node.body, {**names, **dict(zip(wanted, arguments, strict=True))})

        return run

    def comprehension(
        self, element: ast.expr, loop: ast.comprehension, names: dict[str, Any]
    ) -> list[Any]:
        if loop.is_async:
            raise Refused("the syntax async is not allowed")
        inner, found = dict(names), []
        for item in _items(self.value(loop.iter, names)):
            self.assign(loop.target, item, inner)
            if all(self.value(test, inner) for test in loop.ifs):
                found.append(self.value(element, inner))
        return found


class Bounds(TorchFunctionMode):
    """What the expressions of one file may still use: steps, seconds, and numbers in tensors.

    An operation that would make too large a tensor is refused before: it is done on meta tensors.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps = self.total = 0
        self.seconds = MAX_SECONDS
        self.end: float | None = None

    def step(self) -> None:
        """Count one step, and look at the clock."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Refused(f"it takes more than {MAX_STEPS} steps")
        if self.end is not None and time.monotonic() > self.end:
            raise Refused(f"it takes more than {MAX_SECONDS:g} s")

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.step()
        chosen = dict(kwargs or {})
        if any(issubclass(kind, Value) for kind in types):
            with self:  # the operations that a kind makes of it are bounded in turn
                return Value.__torch_function__(func, types, args, chosen)
        name = getattr(func, "__name__", "")
        if name in ("tensor", "as_tensor") and isinstance(args[0], list | tuple):
            _count(args, tensors=True)
        if name not in UNSIZED:
            chosen_meta = {k: _meta(v) for k, v in chosen.items() if k != "generator"}
            if name in FACTORIES:
                chosen_meta["device"] = "meta"
            self.admit(_elements(func(*_meta(args), **chosen_meta)))
        return func(*args, **chosen)

    def admit(self, sizes: Iterable[int]) -> None:
        """Count the numbers of tensors that are about to be made."""
        for size in sizes:
            self.total += size
            if size > MAX_ELEMENTS:
                raise Refused(
                    f"a tensor of {size} numbers is too large; {MAX_ELEMENTS} are allowed"
                )
            if self.total > MAX_TOTAL:
                raise Refused(f"its tensors have more than {MAX_TOTAL} numbers in all")


FACTORIES = frozenset(
    ["linspace", "logspace", "arange", "zeros", "ones", "full", "eye", "rand", "randn", "empty"]
)
"""Functions that make a tensor of numbers alone, and take its device."""

UNSIZED = frozenset(
    ["tensor", "as_tensor", "item", "__bool__", "__float__", "__int__", "__index__", "__len__",
     "__get__", "dim", "size", "numel", "is_floating_point", "broadcast_shapes", "manual_seed"]
)  # fmt: skip
"""Functions that make no tensor, or one of numbers that are there and were counted."""


def map_tensors(change: Callable[[Tensor], Any], value: Any) -> Any:
    """A value with every tensor in it changed, as far as lists and tuples reach."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return type(value)([map_tensors(change, each) for each in value])
    return value


def _meta(value: Any) -> Any:
    """The same shapes without numbers."""
    return map_tensors(lambda x: x.to("meta"), value)


def _elements(value: Any) -> Iterator[int]:
    if isinstance(value, Tensor):
        yield value.numel()
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _elements(each)


def _count(*values: Any, tensors: bool = False) -> None:
    """Refuse lists in lists that hold too much, shared ones counted wherever they stand.

    tensors: their numbers count, as where they are taken one by one.
    """
    left, waiting = MAX_ITEMS, list(values)
    while waiting:
        for each in waiting.pop():
            left -= each.numel() if tensors and isinstance(each, Tensor) else 1
            if left < 0:
                raise Refused(f"its lists have more than {MAX_ITEMS} items")
            if isinstance(each, list | tuple):
                waiting.append(each)


def _items(value: Any) -> list[Any]:
    """What is iterated, as a list."""
    if not isinstance(value, list | tuple | Tensor):
        raise Refused(f"a {type(value).__name__} cannot be iterated")
    if len(value) > MAX_ITEMS:
        raise Refused(f"{len(value)} items are too many; {MAX_ITEMS} are allowed")
    return list(value)


def _ranged(numbers: range) -> list[int]:
    if len(numbers) > MAX_ITEMS:
        raise Refused(f"{len(numbers)} items are too many; {MAX_ITEMS} are allowed")
    return list(numbers)


def _constant(value: Any) -> Any:
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise Refused(f"a string of {len(value)} characters is too long")
        return value
    if value is None or value is ... or isinstance(value, bool | int | float):
        return _integer(value) if isinstance(value, int) else value
    raise Refused(f"a constant of type {type(value).__name__} is not allowed")


def _integer(value: int) -> int:
    if value.bit_length() > MAX_BITS:
        raise Refused(f"an integer of {value.bit_length()} bits is too large")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool | int | float | Tensor | Value):
        return value
    raise Refused(f"no arithmetic is allowed with a {type(value).__name__}")


def _rounded(value: Any, digits: Any = None) -> Any:
    """A number as Python rounds it; of an integer, 10**-digits is computed."""
    if not isinstance(value, int | float) or not isinstance(digits, int | None):
        raise Refused("only numbers are rounded, to so many digits")
    if digits is not None and abs(digits) > MAX_BITS:
        raise Refused(f"{digits} digits are too many")
    return round(value, digits)


def _numbers(values: Any) -> list[Any]:
    """Numbers given one by one, or as one list."""
    return [_number(each) for each in _items(values[0] if len(values) == 1 else values)]


def _binary(op: ast.operator, a: Any, b: Any) -> Any:
    """Two numbers or tensors combined; integers stay small, lists are joined or repeated."""
    if isinstance(op, ast.Add) and type(a) is type(b) and isinstance(a, list | tuple):
        _count(a, b)
        return a + b
    if isinstance(op, ast.Mult) and isinstance(a, list | tuple) and isinstance(b, int):
        if len(a) * b > MAX_ITEMS:
            raise Refused(f"{len(a) * b} items are too many; {MAX_ITEMS} are allowed")
        return a * b
    a, b = _number(a), _number(b)
    if isinstance(a, int) and isinstance(b, int):
        if isinstance(op, ast.Pow) and a.bit_length() * abs(b) > MAX_BITS:
            raise Refused(f"a power of {a.bit_length()} * {abs(b)} bits is too large")
        if isinstance(op, ast.Mult) and a.bit_length() + b.bit_length() > MAX_BITS:
            raise Refused("a product of integers is too large")
    found = BINARY[type(op)](a, b)
    return _integer(found) if isinstance(found, int) else found


def _attribute(value: Any, name: str) -> Any:
    if isinstance(value, SimpleNamespace):
        if hasattr(value, name) and not name.startswith("_"):
            return getattr(value, name)
        raise Refused(f"the name '{value.title}.{name}' is not allowed")
    kind = value if isinstance(value, type) else type(value)
    for known, names in METHODS.items():
        if issubclass(kind, known) and name in names:
            return getattr(value, name)
    raise Refused(f"'.{name}' of a {kind.__name__} is not allowed")


def _plain(value: Any) -> Any:
    if not isinstance(value, Tensor | Value | bool | int | float):
        raise Refused(f"its value is a {type(value).__name__}, not a tensor")
    return value


def _word(node: ast.AST) -> str:
    return f"'{type(node).__name__}'"


def _space(title: str, names: Iterable[str], module: Any, **more: Any) -> SimpleNamespace:
    found = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return SimpleNamespace(title=title, **found, **more)


_FUNCTIONAL = _space("torch.nn.functional", ["pad"], torch.nn.functional)
NAMES: dict[str, Any] = {
    **{name: getattr(types, name) for name in types.__all__
       if name not in ("KINDS", "Axed", "Eigen", "Flag", "Polar", "Value", "apply", "assemble",
                       "einsum", "lag", "places")},
    **{name: getattr(module, name) for module in (regions, expressions) for name in module.__all__},
    "torch": _space(
        "torch", TORCH, torch, nn=SimpleNamespace(title="torch.nn", functional=_FUNCTIONAL)
    ),
    "math": _space("math", MATH, math),
}  # fmt: skip
"""What an expression may name, beside the other tensors of its file."""
