"""A value at one point: a small array of known base shape, on torch tensors or on program atoms.

Laws compute with values. On tensors they run as plain torch; on atoms the same body is traced.
"""

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

import torch
from torch import Tensor

from ingot.types.elementwise import ELEMENTWISE
from ingot.types.refuse import refuse

if TYPE_CHECKING:
    from ingot.types.regions import Region

__all__ = ["Atom", "Axed", "Flag", "Scalar", "Value", "apply", "assemble", "atoms_of",
           "on_atoms", "where"]  # fmt: skip


class Atom(Protocol):
    """One number of a value while a law is traced; `program/` implements it."""

    def emit(self, op: str, *operands: "Atom | float", **static: object) -> "Atom":
        """The atom for `op` of the operands; floats become constants."""
        ...

    def number(self, x: float) -> "Atom":
        """A constant atom."""
        ...

    def repeat(
        self, count: int, body: "Callable[[tuple[Atom, ...]], Sequence[Atom]]",
        carry: "Sequence[Atom]",
    ) -> "tuple[Atom, ...]":  # fmt: skip
        """What is carried after a number of steps of the body."""
        ...

    def constants(self, value: "Value") -> "tuple[Atom, ...]":
        """Constant atoms, one a component, for a value that holds tensors."""
        ...


def _is_atoms(data: Any) -> bool:
    return isinstance(data, tuple) and len(data) > 0 and hasattr(data[0], "emit")


class Axed:
    """A kind that names its own trailing axes: `Scalar["slip"]`."""

    def __init__(self, kind: "type[Value]", axes: tuple[str, ...]) -> None:
        self.kind = kind
        self.axes = axes


class Value:
    """What every kind shares: arithmetic over components, named axes left to the implementer."""

    __slots__ = ("data", "sub")
    base: ClassVar[tuple[int, ...]] = ()

    def __init__(self, data: Any, *, sub_batch_ndim: int | None = None) -> None:
        if sub_batch_ndim is not None and (type(sub_batch_ndim) is not int or sub_batch_ndim < 0):
            raise TypeError(f"sub_batch_ndim is a number of axes, not {sub_batch_ndim!r}")
        if isinstance(data, Value):
            if type(data) is not type(self):
                raise TypeError(f"{type(self).__name__}(...) was given a {type(data).__name__}")
            if sub_batch_ndim not in (None, data.sub):
                raise ValueError(f"the value has {data.sub} sub-batch axes, not {sub_batch_ndim}")
            data, sub_batch_ndim = data.data, data.sub
        elif not isinstance(data, Tensor) and not _is_atoms(data):
            data = torch.as_tensor(data, dtype=torch.float64)
        if isinstance(data, Tensor):
            rank = data.ndim - len(self.base)
            if rank < 0 or tuple(data.shape[rank:]) != self.base:
                raise ValueError(
                    f"{type(self).__name__} needs a trailing shape {self.base},"
                    f" got {tuple(data.shape)}"
                )
            if rank < (sub_batch_ndim or 0):
                raise ValueError(
                    f"a {type(self).__name__} of shape {tuple(data.shape)}"
                    f" has no {sub_batch_ndim} sub-batch axes"
                )
        self.data: Any = data
        self.sub: int = sub_batch_ndim or 0

    def __class_getitem__(cls, axes: str | tuple[str, ...]) -> Any:
        return Axed(cls, (axes,) if isinstance(axes, str) else axes)

    # arithmetic

    def __add__(self, other: Any) -> Self:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Self:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Self:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> Self:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> Self:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> Self:
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> Self:
        return apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Self:
        return apply("div", other, self)

    def __pow__(self, other: Any) -> Self:
        return apply("pow", self, other)

    def __rpow__(self, other: Any) -> Self:
        return apply("pow", other, self)

    def __neg__(self) -> Self:
        return apply("neg", self)

    def __abs__(self) -> Self:
        return apply("abs", self)

    def __lt__(self, other: Any) -> "Flag":
        return apply("lt", self, other)

    def __le__(self, other: Any) -> "Flag":
        return apply("le", self, other)

    def __gt__(self, other: Any) -> "Flag":
        return apply("gt", self, other)

    def __ge__(self, other: Any) -> "Flag":
        return apply("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return apply("eq", self, other) if _comparable(other) else NotImplemented

    def __ne__(self, other: Any) -> Any:
        return apply("not", self == other) if _comparable(other) else NotImplemented

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **kwargs: Any) -> Any:
        """NumPy numbers on the left of an operator; NumPy's own functions are refused."""
        op = _UFUNCS.get(ufunc.__name__)
        if op is None or method != "__call__" or kwargs:
            if on_atoms(*operands) is None:
                return NotImplemented
            raise refuse(f"uses numpy.{ufunc.__name__}", "use the functions of ingot.types")
        return apply(op, *operands)

    def __matmul__(self, other: Any) -> "Value":
        from ingot.types.algebra import matmul

        return matmul(self, other)

    # components

    def __getitem__(self, index: int | tuple[int, ...]) -> "Scalar":
        place = (index,) if isinstance(index, int) else index
        if not isinstance(place, tuple) or not all(isinstance(i, int) for i in place):
            self._untraceable(
                "indexes by a value or a mask", "index by numbers, and choose by where(...)"
            )
            raise TypeError(f"a {type(self).__name__} is indexed by whole numbers")
        if len(place) != len(self.base):
            raise IndexError(f"{type(self).__name__} has components {self.base}, not {place}")
        if isinstance(self.data, tuple):
            flat = 0
            for i, n in zip(place, self.base, strict=True):
                if not -n <= i < n:
                    raise IndexError(f"component {place} of {type(self).__name__}{self.base}")
                flat = flat * n + i % n
            return Scalar((self.data[flat],))
        return Scalar(self.data[(..., *place)], sub_batch_ndim=self.sub)

    def __len__(self) -> int:
        if not self.base:
            raise TypeError(f"a {type(self).__name__} is one number, not several")
        return self.base[0]

    def __iter__(self) -> "Iterator[Scalar]":
        return iter([self[i] for i in range(len(self))])

    @property
    def components(self) -> "tuple[Scalar, ...]":
        """All components, row-major."""
        return tuple(self[place] for place in places(self.base))

    # what a trace refuses

    def __bool__(self) -> bool:
        self._untraceable(
            "reads whether a value is true (`if`, `and`, `bool`)",
            "use where(condition, a, b) instead",
        )
        return bool(self.data)

    def __float__(self) -> float:
        self._untraceable("reads a value (`float`)", "compute with the value itself")
        return float(self.data)

    def __int__(self) -> int:
        self._untraceable("reads a value (`int`)", "compute with the value itself")
        return int(self.data)

    def __index__(self) -> int:
        self._untraceable("indexes by a value", "index by numbers, and choose by where(...)")
        return int(self.data)

    def __setitem__(self, index: object, value: object) -> None:
        self._untraceable("writes into a value", "build a new one, for example SR2.of(a, b, ...)")
        raise TypeError(f"a {type(self).__name__} cannot be written into: build a new one")

    def _untraceable(self, what: str, fix: str) -> None:
        if isinstance(self.data, tuple):
            raise refuse(what, fix)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        from ingot.types.torch_names import call

        return call(func, args, kwargs or {})

    # construction

    @classmethod
    def full(cls, *batch: int, fill_value: float) -> Self:
        """One number in every component, over a batch shape."""
        return cls(torch.full((*batch, *cls.base), fill_value, dtype=torch.float64))

    @classmethod
    def zeros(cls, *batch: int) -> Self:
        """Zero in every component, over a batch shape."""
        return cls.full(*batch, fill_value=0.0)

    @classmethod
    def ones(cls, *batch: int) -> Self:
        """One in every component, over a batch shape."""
        return cls.full(*batch, fill_value=1.0)

    @classmethod
    def empty(cls, *batch: int) -> Self:
        """Components without a value yet, which are zero, over a batch shape."""
        return cls.zeros(*batch)

    @classmethod
    def zeros_like(cls, other: "Value") -> Self:
        """Zeros of another value's shape and axes."""
        return cls(torch.zeros_like(other.data), sub_batch_ndim=other.sub)

    @classmethod
    def fill(cls, *components: Any) -> Self:
        """The value with these components, row-major."""
        return assemble(cls, components)

    @classmethod
    def of(cls, *components: "Scalar | float") -> Self:
        """The value with these components, row-major."""
        return assemble(cls, components)

    # batch regions, for tensors of input files

    @property
    def sub_batch_ndim(self) -> int:
        """How many of the batch axes are structural."""
        return self.sub

    @property
    def dynamic_batch(self) -> "Region":
        """The leading axes, free at every call."""
        from ingot.types.regions import Region

        return Region(self, "dynamic")

    @property
    def sub_batch(self) -> "Region":
        """The structural axes between the dynamic ones and the components."""
        from ingot.types.regions import Region

        return Region(self, "sub")

    def with_sub_batch_ndim(self, count: int) -> Self:
        """The same data with the last `count` batch axes declared structural."""
        return type(self)(self.data, sub_batch_ndim=count)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The value in another precision or on another device, as torch's `to` takes them."""
        return type(self)(self.data.to(*args, **kwargs), sub_batch_ndim=self.sub)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data!r})"


class Scalar(Value):
    """One number."""

    __slots__ = ()

    @classmethod
    def arange(cls, *bounds: float) -> Self:
        """Numbers one apart, or a step that is the third bound."""
        return cls(torch.arange(*bounds, dtype=torch.float64))

    @classmethod
    def from_value(cls, number: Any, *, like: Value) -> Self:
        """A number in the precision of another value."""
        return cls(torch.as_tensor(number, dtype=like.data.dtype, device=like.data.device))


class Flag(Value):
    """A truth value, for `where`."""

    __slots__ = ()

    def __and__(self, other: "Flag") -> "Flag":
        return apply("and", self, other)

    def __or__(self, other: "Flag") -> "Flag":
        return apply("or", self, other)

    def __invert__(self) -> "Flag":
        return apply("not", self)


def places(base: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All component indices of a base shape, row-major."""
    found: list[tuple[int, ...]] = [()]
    for n in base:
        found = [(*place, i) for place in found for i in range(n)]
    return found


def on_atoms(*values: object) -> Atom | None:
    """An atom of the first traced value, or None where all are tensors or numbers."""
    for value in values:
        if isinstance(value, Value) and isinstance(value.data, tuple):
            return cast(Atom, value.data[0])
    return None


_UFUNCS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
}  # fmt: skip


def _comparable(x: Any) -> bool:
    return isinstance(x, (Value, Tensor, numbers.Number)) or hasattr(x, "dtype")


def apply(op: str, *operands: Any) -> Any:
    """An elementwise operation; scalars and numbers spread over the components of the others.

    Of numbers alone it is a Scalar of float64.
    """
    if not any(isinstance(x, Value) for x in operands):
        operands = tuple(Scalar(exact(x)) for x in operands)
    kind = _kind(op, operands)
    atom = on_atoms(*operands)
    if atom is None:
        return _on_tensors(op, kind, operands)
    columns = [_spread(atoms_of(atom, x), math.prod(kind.base)) for x in operands]
    data = tuple(atom.emit(op, *row) for row in zip(*columns, strict=True))
    return _result_kind(op, kind)(data)


def where(condition: Flag, then: Any, otherwise: Any) -> Any:
    """`then` where the condition holds, else `otherwise`; slopes come from the chosen side only."""
    return apply("where", condition, then, otherwise)


def assemble(kind: type[Any], components: Sequence[Any]) -> Any:
    """A value of `kind` from scalars or numbers, row-major."""
    if len(components) != math.prod(kind.base):
        raise ValueError(f"{kind.__name__} has {math.prod(kind.base)} components")
    components = [where(x, 1.0, 0.0) if isinstance(x, Flag) else x for x in components]
    atom = on_atoms(*components)
    if atom is not None:
        return kind(tuple(atoms_of(atom, x)[0] for x in components))
    scalars = [x if isinstance(x, Value) else Scalar(x) for x in components]
    sub = max(x.sub for x in scalars)
    parts = torch.broadcast_tensors(*(padded(x, sub) for x in scalars))
    stacked = torch.stack(parts, dim=-1)
    return kind(stacked.reshape((*stacked.shape[:-1], *kind.base)), sub_batch_ndim=sub)


def _kind(op: str, operands: Sequence[Any]) -> type[Value]:
    kinds = {type(x) for x in operands if isinstance(x, Value)} - {Scalar, Flag}
    if len(kinds) > 1:
        names = " and ".join(sorted(k.__name__ for k in kinds))
        raise TypeError(f"'{op}' of {names}: the kinds differ")
    return kinds.pop() if kinds else Scalar


def _spread(atoms: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    return atoms * size if len(atoms) == 1 else atoms


def atoms_of(atom: Atom, x: Any) -> tuple[Any, ...]:
    """The components of a value or number as atoms."""
    if isinstance(x, Value):
        return x.data if isinstance(x.data, tuple) else constants(atom, x)
    return (atom.number(exact(x)),)


LEARNED = "declare it as a Parameter of the law, or the law itself with @model(opaque=True)"
"""The remedy for a weight of a torch module."""


def constants(atom: Atom, value: Value) -> tuple[Atom, ...]:
    """Constant atoms of a value that holds tensors, refused where it is not a constant."""
    data: Tensor = value.data
    if data.requires_grad:
        raise refuse("uses an nn.Parameter", LEARNED)
    if data.dtype not in (torch.float64, torch.bool):
        raise refuse(f"uses a constant of {data.dtype}", "write constants in float64")
    return atom.constants(value)


def exact(x: Any) -> float:
    """The number as float64, refused where that would change it or where it is not a constant."""
    if isinstance(x, Tensor):
        if isinstance(x, torch.nn.Parameter):
            raise refuse("uses an nn.Parameter", LEARNED)
        raise refuse("uses an undeclared tensor", "declare it as a Parameter of the law")
    if getattr(x, "ndim", 0):
        raise refuse("uses a NumPy array", "declare it as a Parameter of the law")
    if getattr(x, "dtype", None) in ("float64", "bool") or _is_float(x):
        return float(x)
    raise refuse(f"uses the constant {x!r}", "write constants as Python floats (float64)")


def _is_float(x: Any) -> bool:
    """Whether a plain number is some float64."""
    if not isinstance(x, numbers.Real) or hasattr(x, "dtype"):
        return False
    try:
        return float(x) == x or x != x
    except OverflowError:
        return False


def padded(x: Value, sub: int) -> Tensor:
    """The data with size-1 axes put in front of its sub-batch axes until there are `sub`."""
    data: Tensor = x.data
    at = data.ndim - len(x.base) - x.sub
    for _ in range(sub - x.sub):
        data = data.unsqueeze(at)
    return data


def _on_tensors(op: str, kind: type[Value], operands: Sequence[Any]) -> Any:
    sub = max(x.sub for x in operands if isinstance(x, Value))
    raw: list[Any] = []
    for x in operands:
        if isinstance(x, Value):
            data = padded(x, sub)
            for _ in range(len(kind.base) - len(x.base)):
                data = data.unsqueeze(-1)
            raw.append(data)
        else:
            raw.append(x)
    row = ELEMENTWISE[op]
    if row.torch.startswith("torch."):  # unlike operators, functions of torch take tensors alone
        dtypes = [x.dtype for x in raw if isinstance(x, Tensor) and x.dtype != torch.bool]
        dtype = dtypes[0] if dtypes else torch.float64
        raw = [x if isinstance(x, Tensor) else torch.as_tensor(x, dtype=dtype) for x in raw]
    if op == "where":
        raw[0] = raw[0].bool()
    return _result_kind(op, kind)(row.function(*raw), sub_batch_ndim=sub)


def _result_kind(op: str, kind: type[Value]) -> type[Value]:
    return Flag if ELEMENTWISE[op].is_condition and kind is Scalar else kind
