"""What the user says of blocks -> whether a module that Dynamo met is one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, cast

import torch
from torch import nn

from ingot.errors import IngotError, Problem, raise_if
from ingot.keywords import check_keywords

__all__ = [
    "Blocks", "Marks", "enter_block", "find_marks", "find_no_switch", "leave_block", "noinline",
]  # fmt: skip

Blocks = type[nn.Module] | Sequence[nn.Module | type[nn.Module]] | Literal["auto"]

MARK = "__ingot_noinline__"

MIN_PARTS = 2
"""How many childless modules a block that is found by itself holds at least."""

CONTAINERS = (nn.ModuleList, nn.ModuleDict)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Marked = TypeVar("Marked")


@check_keywords
def noinline(what: Marked) -> Marked:
    """Keep a module class or a function a unit wherever a whole that uses it is compiled."""
    if isinstance(what, type) and issubclass(what, nn.Module):
        setattr(what, MARK, True)
        return cast(Marked, what)
    if isinstance(what, type) or not callable(what):
        name = getattr(what, "__qualname__", repr(what))
        told = f"'{name}' is neither a module class nor a function"
        fix = "mark a subclass of torch.nn.Module, or a function of tensors"
        raise IngotError([Problem("region-block", told, None, fix)])
    return cast(Marked, _mark_function(cast(Callable[..., Any], what)))


def find_no_switch(name: str, value: object) -> Iterator[Problem]:
    """An option that is on or off, and was given something else."""
    if not isinstance(value, bool):
        told = f"{name}={value!r} is neither on nor off"
        yield Problem("region-argument", told, None, "give True or False")


def _mark_function(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    name = getattr(function, "__qualname__", "function").rsplit(".", 1)[-1]

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if not torch.compiler.is_dynamo_compiling():
            return function(*args, **kwargs)
        enter_block(name)
        found = function(*args, **kwargs)
        leave_block()
        return found

    return call


def enter_block(name: str) -> None:
    """Stands in Dynamo's graph where a marked function begins; does nothing."""


def leave_block() -> None:
    """Stands in Dynamo's graph where a marked function ends; does nothing."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Which modules are blocks: of some classes, under some names, or those that repeat."""

    kinds: tuple[type[nn.Module], ...]
    names: tuple[str, ...]
    auto: bool

    def find(self, module: nn.Module) -> Callable[[str, type], bool]:
        """Whether a module, by its id as Dynamo writes it and its class, is a block."""
        named = dict(module.named_modules(remove_duplicate=False))
        found = [named[name] for name in self.names if name in named]
        if self.auto:
            found += find_repeated(module)
        ids = {str(id(each)) for each in found}

        def is_block(key: str, kind: type) -> bool:
            marked = isinstance(kind, type) and (
                issubclass(kind, self.kinds) or getattr(kind, MARK, False)
            )
            return key in ids or marked

        return is_block


def find_marks(module: nn.Module, blocks: Blocks) -> Marks:
    """What the user says, checked: every entry must be found below the module."""
    if isinstance(blocks, str):
        if blocks == "auto":
            return Marks((), (), auto=True)
        told = f"blocks='{blocks}' is no way to find blocks"
        fix = 'give a module class, a list of modules, or "auto"'
        raise IngotError([Problem("region-block", told, None, fix)])
    wanted: Sequence[Any] = blocks if isinstance(blocks, Sequence) else [blocks]
    below = {name: m for name, m in module.named_modules() if m is not module}
    kinds = [block for block in wanted if isinstance(block, type)]
    names = [name for name, m in below.items() if any(m is block for block in wanted)]
    problems = []
    for block in wanted:
        is_class = isinstance(block, type)
        if any(isinstance(m, block) if is_class else m is block for m in below.values()):
            continue
        said = f"a '{type(block).__qualname__}' was given as a block; it is not"
        said = f"no module of class '{block.__qualname__}'" if is_class else said
        known = ", ".join(sorted({type(m).__qualname__ for m in below.values()})) or "no modules"
        told = f"{said} below '{type(module).__qualname__}'"
        problems.append(Problem("region-block", told, None, f"below it are {known}"))
    raise_if(problems)
    return Marks(tuple(kinds), tuple(names), auto=False)


def find_repeated(module: nn.Module) -> list[nn.Module]:
    """The outermost modules whose class comes more than once, and that are worth a unit."""
    parts = [m for m in module.modules() if m is not module and not isinstance(m, CONTAINERS)]
    worth = [m for m in parts if sum(not any(p.children()) for p in m.modules()) >= MIN_PARTS]
    seen = Counter(map(type, worth))
    wanted = {id(m) for m in worth if seen[type(m)] > 1}
    return list(_find_outermost(module, wanted))


def _find_outermost(module: nn.Module, wanted: set[int]) -> Iterator[nn.Module]:
    for child in module.children():
        if id(child) in wanted:
            yield child
        else:
            yield from _find_outermost(child, wanted)
