"""A module -> a key that is equal for modules that run the same code on other numbers.

Classes, code, closures, attributes and child structure count; tensors by shape, never by value.
"""

import enum
import functools
import types
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ingot.graphs.torch_private import (
    DERIVED,
    HOOKS,
    MACHINERY,
    buffers_of,
    children_of,
    parameters_of,
)

__all__ = [
    "Held", "TensorKey", "derived", "held_tensors", "structure",
    "tensor_key", "value_key",
]  # fmt: skip

PLAIN = (
    str, bytes, bool, int, complex, type(None), type(...), torch.dtype, torch.device,
    torch.memory_format, torch.layout, enum.Enum, range, slice,
)  # fmt: skip

SHOWN = (types.FunctionType, staticmethod, classmethod, property)
UNREAD = frozenset({"__doc__", "__module__", "__qualname__", "__firstlineno__"})

TensorKey = tuple[Hashable, ...]


class Same:
    """An object that is equal to itself only; keeps it alive, so that its id is not used again."""

    __slots__ = ("what",)

    def __init__(self, what: object) -> None:
        self.what = what

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.what is self.what

    def __hash__(self) -> int:
        return id(self.what)


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor of a module: where it is kept, and whether as parameter, buffer or attribute."""

    name: str
    table: dict[str, Any]
    key: str
    kind: str

    @property
    def tensor(self) -> Tensor:
        """The tensor that is there now."""
        return self.table[self.key]


def held_tensors(module: nn.Module) -> Iterator[Held]:
    """All places below a module that hold a tensor; a tied tensor comes once for each place."""
    for path, part in module.named_modules():
        lead = f"{path}." if path else ""
        tables = (("parameter", parameters_of(part)), ("buffer", buffers_of(part)))
        for kind, table in (*tables, ("attribute", vars(part))):
            for key, value in table.items():
                if isinstance(value, Tensor):
                    yield Held(lead + key, table, key, kind)


def derived(module: nn.Module) -> frozenset[str]:
    """The attributes of a module that follow from its parameters."""
    return DERIVED if isinstance(module, nn.RNNBase) else frozenset()


def tensor_key(tensor: Tensor) -> TensorKey:
    """What compiled code takes for granted of a tensor that it is given."""
    kind = type(tensor) if type(tensor) is not nn.Parameter else Tensor
    if tensor.layout != torch.strided:
        return (kind, tensor.layout, tensor.dtype, tensor.device, tuple(tensor.shape))
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    return (kind, tensor.layout, tensor.dtype, tensor.device, shape, stride)


def structure(module: nn.Module) -> Hashable:
    """The key of a module; equal keys trace to equal graphs."""
    return _Keys().module(module)


def value_key(value: object) -> Hashable:
    """The key of any other value: by what it holds where that can be seen, else by identity."""
    return _Keys().value(value)


class _Keys:
    """One walk; what is met again is named by the place where it was met first."""

    def __init__(self) -> None:
        self.met: dict[int, int] = {}
        self.kept: list[object] = []

    def again(self, what: object) -> int | None:
        """The number of something met before; else None, and it is numbered."""
        number = self.met.setdefault(id(what), len(self.met))
        if number < len(self.kept):
            return number
        self.kept.append(what)
        return None

    def module(self, module: nn.Module) -> Hashable:
        number = self.again(module)
        if number is not None:
            return ("module", number)
        unread = MACHINERY | derived(module)
        own = {k: v for k, v in vars(module).items() if k not in unread}
        return (
            self.kind(_written_class(module)),
            self.entries(own),
            self.entries(parameters_of(module)),
            self.entries(buffers_of(module)),
            self.entries({name: getattr(module, name) for name in HOOKS}),
            tuple((k, child and self.module(child)) for k, child in children_of(module).items()),
        )

    def entries(self, table: Mapping[Any, object]) -> Hashable:
        return tuple((self.value(k), self.value(v)) for k, v in table.items())

    def tensor(self, tensor: Tensor) -> Hashable:
        number = self.again(tensor)
        return (*tensor_key(tensor), tensor.requires_grad, number)

    def value(self, value: object) -> Hashable:
        if isinstance(value, float):
            return ("float", value.hex())
        if isinstance(value, PLAIN):
            return (type(value), repr(value) if isinstance(value, (complex, slice)) else value)
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, nn.Module):
            return self.module(value)
        if isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
            return Same(value)
        number = self.again(value)
        return ("met", number) if number is not None else self.opened(value)

    def opened(self, value: Any) -> Hashable:
        """What a container, a function or an object holds."""
        if isinstance(value, (list, tuple)):
            return (type(value), tuple(map(self.value, value)))
        if isinstance(value, Mapping):
            return (type(value), self.entries(value))
        if isinstance(value, (set, frozenset)):
            return (type(value), frozenset(map(value_key, value)))
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.MethodType):
            return ("method", self.value(value.__func__), self.value(value.__self__))
        if isinstance(value, functools.partial):
            return ("partial", *map(self.value, (value.func, value.args, value.keywords)))
        if isinstance(value, (staticmethod, classmethod)):
            return (type(value), self.value(value.__func__))
        if isinstance(value, property):
            return ("property", *map(self.value, (value.fget, value.fset)))
        if isinstance(value, type):
            return self.kind(value)
        if hasattr(value, "__dict__") and not callable(value):
            return (self.kind(type(value)), self.entries(vars(value)))
        return Same(value)

    def function(self, function: types.FunctionType) -> Hashable:
        code = function.__code__
        cells = [_content(cell) for cell in function.__closure__ or ()]
        reads = {n: function.__globals__[n] for n in code.co_names if n in function.__globals__}
        plain = {n: v for n, v in reads.items() if isinstance(v, (float, *PLAIN))}
        others = tuple((n, Same(v)) for n, v in reads.items() if n not in plain)
        return (
            code, self.value(function.__defaults__), self.value(function.__kwdefaults__),
            tuple(map(self.value, cells)), self.entries(plain), others,
        )  # fmt: skip

    def kind(self, kind: type) -> Hashable:
        """A class with the code it has now; one written inside a function is not known by itself,
        since each call of that function writes it anew.
        """
        if kind.__module__.split(".")[0] in ("torch", "builtins"):
            return Same(kind)
        number = self.again(kind)
        if number is not None:
            return ("class", number)
        shown = {k: v for k, v in vars(kind).items() if isinstance(v, (*SHOWN, float, *PLAIN))}
        own = self.entries({k: v for k, v in shown.items() if k not in UNREAD})
        itself = kind.__qualname__ if "<locals>" in kind.__qualname__ else Same(kind)
        return (itself, tuple(map(self.kind, kind.__bases__)), own)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _written_class(module: nn.Module) -> type:
    """The class that a person wrote: a parametrised module has one made for it alone."""
    kind = type(module)
    return kind.__bases__[0] if parametrize.is_parametrized(module) else kind
