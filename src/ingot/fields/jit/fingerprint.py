"""Values and functions -> a text that is equal in every process exactly if they compute the same.

The code of a function counts, and all that it reaches: globals, closures, classes, other modules.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    EllipsisType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy
import torch
from torch import Tensor

import ingot
from ingot.fields.step import Step
from ingot.graphs import torch_private

__all__ = ["Unstable", "stable", "surroundings"]

LARGE = 1024
"""Of how many numbers on a tensor is not written out."""

PLAIN = (object, torch.nn.Module)
"""Bases whose objects hold what they hold in their `__dict__`."""

UNSEEN = {
    "__import__", "environ", "eval", "exec", "fromfile", "genfromtxt", "getattr", "getenv",
    "globals", "import_module", "input", "load", "loadtxt", "locals", "memmap", "open",
    "ops", "read_bytes", "read_text", "vars",
}  # fmt: skip
"""Names by which code reaches what its text does not tell: files, settings, other names."""

SILENT = {"__annotations__", "__dict__", "__doc__", "__module__", "__weakref__", "_abc_impl",
          "__dataclass_fields__", "__dataclass_params__", "__slotnames__"}  # fmt: skip
"""What a class holds that does not compute."""


class Unstable(Exception):
    """Something that has no name which lasts longer than the process."""


def stable(value: Any) -> str:
    """The text of a value."""
    return _Reader().text(value)


class _Reader:
    """Reads values once: what is met again is named by its number, so that circles end."""

    def __init__(self) -> None:
        self.seen: dict[object, int] = {}
        self.kept: list[Any] = []

    def text(self, value: Any) -> str:
        match value:
            case enum.Enum():
                kind = type(value)
                return f"{kind.__module__}.{kind.__qualname__}.{value.name}={value.value!r}"
            case (
                None | bool() | int() | float() | complex() | str() | bytes() | range() | Path()
                | torch.dtype() | torch.device() | numpy.generic() | EllipsisType()
            ):  # fmt: skip
                return repr(value)
            case tuple() | list() | torch.Size():
                return f"({','.join(map(self.text, value))})"
            case Set():
                return f"{{{','.join(sorted(map(self.text, value)))}}}"
            case Mapping():
                pairs = (f"{self.text(k)}:{self.text(v)}" for k, v in value.items())
                return f"{{{','.join(pairs)}}}"
            case Tensor() if value.numel() <= LARGE:
                return f"{value.dtype}{value.device}{tuple(value.shape)}{value.tolist()}"
            case numpy.ndarray() if value.size <= LARGE and value.dtype != object:
                return f"{value.dtype}{value.shape}{value.tolist()}"
            case Tensor() | numpy.ndarray():
                raise Unstable(f"{type(value).__name__} has no lasting name")
            case CodeType():
                return self.code(value)
        if id(value) in self.seen:
            return f"#{self.seen[id(value)]}"
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        return self.thing(value)

    def thing(self, value: Any) -> str:
        """The text of what may hold itself."""
        match value:
            case Step():
                parts = (value.name, value.arguments, value.gives, value.options, value.function)
                return "\n".join(map(self.text, parts))
            case functools.partial():
                return f"partial{self.text((value.func, value.args, value.keywords))}"
            case ModuleType():
                return value.__name__
            case type():
                return self.kind(value)
            case staticmethod() | classmethod():
                return f"{type(value).__name__} {self.text(value.__func__)}"
            case property():
                return f"property{self.text((value.fget, value.fset))}"
            case FunctionType():
                return self.function(value)
            case MethodType():
                return f"method{self.text((value.__self__, value.__func__))}"
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None and callable(value):  # functools.cache
            return f"{type(value).__name__} {self.text(wrapped)}"
        if isinstance(value, BuiltinFunctionType):
            if not versioned(value.__module__ or "builtins"):
                raise Unstable(f"{value.__name__} is compiled code of '{value.__module__}'")
            return f"{value.__module__}.{value.__name__} {self.text(value.__self__)}"
        if hasattr(type(value), "__objclass__"):  # a descriptor of a compiled class
            return f"{value.__objclass__.__qualname__}.{value.__name__}"
        return self.instance(value)

    def instance(self, value: Any) -> str:
        """An object by its class and what it holds."""
        kind = type(value)
        if dataclasses.is_dataclass(kind):
            held = tuple(getattr(value, each.name) for each in dataclasses.fields(value))
            return f"{self.text(kind)}{self.text(held)}"
        bases = [base for base in kind.__mro__ if base not in PLAIN]
        if bases and not any(versioned(base.__module__) for base in bases):
            return f"{self.text(kind)}{self.text(object.__getstate__(value))}"
        raise Unstable(f"{kind.__name__} has no lasting name")

    def kind(self, value: type) -> str:
        """A class by its name, and by its code where that is not told by a version."""
        name = f"{value.__module__}.{value.__qualname__}"
        if versioned(value.__module__):
            return name
        if not str(getattr(sys.modules.get(value.__module__), "__file__", ".py")).endswith(".py"):
            raise Unstable(f"{name} is compiled code")
        held = {k: v for k, v in vars(value).items() if k not in SILENT}
        return f"{name}{self.text(value.__bases__)}{self.text(held)}"

    def function(self, value: Callable[..., Any]) -> str:
        """A function by its code, what it encloses, and what it reaches by name."""
        around: dict[str, Any] = value.__globals__
        place = f"{value.__module__}.{value.__qualname__}"
        enclosed = [_content(cell) for cell in value.__closure__ or ()]
        held = self.text((enclosed, value.__defaults__, value.__kwdefaults__))
        if versioned(str(around.get("__name__", ""))):
            return f"{place}:{value.__code__.co_firstlineno} {held}"
        names = {name for code in nested(value.__code__) for name in code.co_names}
        unseen = sorted(UNSEEN & names)
        if unseen:
            raise Unstable(f"{place} uses '{unseen[0]}', by which it may reach anything")
        found = {name: around[name] for name in names if name in around}
        parts = [f"{name}={self.reached(found[name], names)}" for name in sorted(found)]
        parts += [self.reached(module, names) for module in imported(value)]
        return f"{place} {self.code(value.__code__)} {held} {' '.join(parts)}"

    def reached(self, value: Any, names: set[str]) -> str:
        """What a name stands for; of a module all that is asked of it."""
        if not isinstance(value, ModuleType) or versioned(value.__name__):
            return self.text(value)
        key = (id(value), frozenset(names))
        if key in self.seen:
            return f"#{self.seen[key]}"
        self.seen[key] = len(self.seen)
        found = {name: held for name, held in vars(value).items() if name in names}
        parts = (f"{name}={self.reached(found[name], names)}" for name in sorted(found))
        return f"{value.__name__}({' '.join(parts)})"

    def code(self, code: CodeType) -> str:
        """The instructions of a function, wherever its lines stand."""
        parts = (
            code.co_code, code.co_exceptiontable, code.co_consts, code.co_names, code.co_varnames,
            code.co_freevars, code.co_cellvars, code.co_flags, code.co_argcount,
            code.co_kwonlyargcount, code.co_posonlyargcount,
        )  # fmt: skip
        return self.text(parts)


def versioned(module: str) -> bool:
    """Whether a version, which `surroundings` tells, tells the code of a module.

    A script may stand in the place of a module of Python's own.
    """
    root = module.split(".")[0]
    if root in ("ingot", "torch", "numpy"):
        return True
    file = getattr(sys.modules.get(root), "__file__", None)
    own = file is None or Path(file).parent in (STANDARD, STANDARD / root, STANDARD / "lib-dynload")
    return root in sys.stdlib_module_names and own


STANDARD = Path(sysconfig.get_path("stdlib"))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not given yet
        return None


def nested(code: CodeType) -> Iterator[CodeType]:
    """Code and that of the functions in it."""
    yield code
    for held in code.co_consts:
        if isinstance(held, CodeType):
            yield from nested(held)


def imported(function: Callable[..., Any]) -> Iterator[ModuleType]:
    """The modules that a function imports when it runs."""
    package, level = str(function.__globals__.get("__package__") or ""), 0
    for line in (line for code in nested(function.__code__) for line in dis.get_instructions(code)):
        if line.opname == "LOAD_CONST" and isinstance(line.argval, int):
            level = line.argval
        if line.opname != "IMPORT_NAME":
            continue
        name = str(line.argval)
        try:
            whole = importlib.util.resolve_name("." * level + name, package) if level else name
            yield importlib.import_module(whole)
            yield importlib.import_module(whole.split(".")[0])
        except ImportError as error:
            raise Unstable(str(error)) from error


def surroundings() -> str:
    """What code is run by: the versions of Python and of what is told by them, and this Ingot."""
    versions = sys.version, numpy.__version__, torch_private.BUILD, torch.get_default_dtype()
    return f"{own_sources()} {' '.join(map(str, versions))}"


@functools.cache
def own_sources() -> str:
    """What tells one Ingot from another."""
    root = Path(str(ingot.__file__)).parent
    files = [*sorted(root.rglob("*.py")), *sorted(root.rglob("*.h"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
