"""A module and what the user says of its blocks -> the modules that are compiled as units."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, cast

from torch import nn

from ingot.errors import IngotError, Problem
from ingot.regions.structure import structure

__all__ = ["CAPTURES", "Blocks", "noinline", "selected"]

Blocks = type[nn.Module] | Sequence[nn.Module | type[nn.Module]] | Literal["auto"]

MARK = "__ingot_noinline__"
WORTH = 2
"""How many childless modules a block found by itself holds at least."""

CAPTURES: list[Callable[..., Any]] = []
"""What takes the calls of marked functions while a module is captured; the last one does."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Marked = TypeVar("Marked")


def noinline(what: Marked) -> Marked:
    """Keep a module class or a function a unit wherever a whole that uses it is compiled."""
    if isinstance(what, type):
        if not issubclass(what, nn.Module):
            raise IngotError([Problem(
                "region-block", f"'{what.__qualname__}' is a class but not a module",
                None, "mark a subclass of torch.nn.Module, or a function of tensors",
            )])  # fmt: skip
        setattr(what, MARK, True)
        return cast(Marked, what)
    return cast(Marked, _marked_function(cast(Callable[..., Any], what)))


def _marked_function(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if CAPTURES:
            return CAPTURES[-1](function, *args, **kwargs)
        return function(*args, **kwargs)

    return call


def selected(module: nn.Module, blocks: Blocks) -> dict[str, nn.Module]:
    """The blocks of a module by their names, outermost only; tied ones by their first name."""
    if isinstance(blocks, str):
        if blocks != "auto":
            raise IngotError([Problem(
                "region-block", f"blocks='{blocks}' is no way to find blocks", None,
                'give a module class, a list of modules, or "auto"',
            )])  # fmt: skip
        wanted = set(map(id, discovered(module)))
    else:
        wanted = set(map(id, _named(module, blocks if isinstance(blocks, Sequence) else [blocks])))
    marked = {id(m) for m in module.modules() if getattr(type(m), MARK, False)}
    return dict(_outermost("", module, wanted | marked))


def _outermost(path: str, module: nn.Module, wanted: set[int]) -> Iterator[tuple[str, nn.Module]]:
    for name, child in module.named_children():
        place = f"{path}.{name}" if path else name
        if id(child) in wanted:
            yield place, child
        else:
            yield from _outermost(place, child, wanted)


def _named(module: nn.Module, blocks: Iterable[Any]) -> Iterator[nn.Module]:
    """The modules that a class or a list names; every entry must be found below the module."""
    below = [m for m in module.modules() if m is not module]
    problems = []
    for block in blocks:
        if isinstance(block, type):
            found = [m for m in below if isinstance(m, block)]
            said = f"no module of class '{block.__qualname__}'"
        else:
            found = [m for m in below if m is block]
            said = f"a '{type(block).__qualname__}' was given as a block; it is not"
        if not found:
            kinds = sorted({type(m).__qualname__ for m in below})
            problems.append(Problem(
                "region-block", f"{said} below '{type(module).__qualname__}'", None,
                f"below it are {', '.join(kinds) or 'no modules'}",
            ))  # fmt: skip
        yield from found
    if problems:
        raise IngotError(problems)


def discovered(module: nn.Module) -> list[nn.Module]:
    """Modules whose structure comes more than once, and that hold enough to be worth it."""
    parts = [m for m in module.modules() if m is not module]
    sizes = {id(m): sum(not any(p.children()) for p in m.modules()) for m in parts}
    worth = [m for m in parts if sizes[id(m)] >= WORTH and not isinstance(m, CONTAINERS)]
    keys: dict[int, Hashable] = {id(m): structure(m) for m in worth}
    seen = Counter(keys.values())
    return [m for m in worth if seen[keys[id(m)]] > 1]


CONTAINERS = (nn.ModuleList, nn.ModuleDict)
