"""Sizes that stay open: names become symbols for tracing, expressions become numbers at a call."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from ingot.errors import Problem, Span, did_you_mean, raise_if
from ingot.graphs import torch_private
from ingot.graphs.expression import expression, names_of
from ingot.graphs.layout import Order, blank, order_of
from ingot.graphs.torch_private import expression_of, print_expression

__all__ = [
    "Dynamic", "Open", "Size", "choose_axes", "evaluated", "find_absent", "find_fixed",
    "find_formless", "find_unknown", "holds", "open_sizes", "print_size",
]  # fmt: skip

Size = int | str
"""A fixed size, or an expression in the names of the open sizes."""

Axes = Mapping[int, Any]
Dynamic = Mapping[str, Axes] | Axes | Sequence[Axes] | Literal["batch"] | None
"""Which sizes stay open, as axis -> name: of arguments by their names, of all, or of each tensor
in turn; "batch" is the first axis of all. Equal names are equal sizes.

A size may have bounds: (name, smallest, largest), or a torch.export.Dim.
"""


class Open:
    """A mode for tracing without numbers, and the symbols and examples of its open sizes.

    traced: a mode that is there already, and the names of its symbols.
    """

    def __init__(
        self, hints: Mapping[str, int], traced: tuple[Any, Mapping[Any, str]] | None = None
    ) -> None:
        import sympy

        self.hints = dict(hints)
        self.symbols: dict[str, Any] = {}
        if traced is None:
            mode = torch_private.fake_mode()
            self.symbols = torch_private.open_sizes(mode, hints)
            traced = mode, {expression_of(size): name for name, size in self.symbols.items()}
        self.mode, names = traced
        self._names = {
            s: sympy.Symbol(name, integer=True, nonnegative=True) for s, name in names.items()
        }

    def blank_like(self, value: Tensor, order: Order | None = None) -> Tensor:
        """A fake tensor without the gaps that a tensor may have, in its order or another."""
        with self.mode:
            lies = order_of(value) if order is None else order
            return blank(value.shape, lies, value.dtype, value.device)

    def text(self, size: Any) -> Size:
        """A size as a number, or as an expression in the names of the open sizes."""
        if isinstance(size, int | float):
            return size  # pyright: ignore[reportReturnType]
        return print_size(self._renamed(expression_of(size)))

    def _renamed(self, expression: Any) -> Any:
        return torch_private.simplify_expression(self.mode, expression).xreplace(self._names)

    def known(self, size: Any) -> bool:
        """Whether a size or number follows from the open sizes."""
        if not isinstance(size, torch.SymInt | torch.SymFloat | torch.SymBool):
            return True
        expression = torch_private.simplify_expression(self.mode, expression_of(size))
        return set(expression.free_symbols) <= set(self._names)

    def tied(self) -> dict[str, Any]:
        """What the trace has fixed: open sizes that are one number, or equal to one another.

        Each with the symbol that is no more.
        """
        fixed = torch_private.equal_sizes(self.mode).items()
        equal = {s: (self._names[s], e.xreplace(self._names)) for s, e in fixed if s in self._names}
        return {f"{own} = {print_size(e)}": s for s, (own, e) in equal.items() if own != e}

    def guards(self) -> dict[str, Any]:
        """All that was decided by the open sizes, those that it fixed included, as torch has it."""
        found = {g.expr.xreplace(self._names): g for g in torch_private.guards_of(self.mode)}
        return {str(print_size(e)): g for e, g in found.items() if e.free_symbols}

    def constraints(self) -> tuple[str, ...]:
        """What the trace has assumed of the open sizes."""
        found = (self._renamed(g.expr) for g in torch_private.guards_of(self.mode))
        return tuple(dict.fromkeys(print_size(e) for e in found if e.free_symbols))


def print_size(expression: Any) -> Any:
    """An expression of sizes as a number or as Python."""
    return int(expression) if expression.is_Integer else print_expression(expression)


def evaluated(size: Size, sizes: Mapping[str, int]) -> Any:
    """The number that an expression has for the sizes of a call."""
    if isinstance(size, int):
        return size
    if size in sizes:
        return sizes[size]
    return expression(size)(sizes)


def holds(rule: str, sizes: Mapping[str, int]) -> bool:
    """Whether a guard holds for the sizes of a call; one that divides by 0 does not."""
    compute = expression(rule)
    try:
        return bool(compute(sizes))
    except (ArithmeticError, ValueError):
        return False


def open_sizes(
    dynamic: Dynamic, tensors: Sequence[tuple[str, Tensor]], one_of_several: bool = False
) -> tuple[list[dict[int, str]], dict[str, int], tuple[str, ...]]:
    """The open axes of each tensor, an example of each open size, and the bounds given.

    One of several examples need not have all tensors, and its open sizes of 0 and 1 are fixed.
    """
    raise_if(find_formless(dynamic))
    if not one_of_several:
        raise_if(find_absent(dynamic, tensors))
    bounds: dict[str, None] = {}
    chosen = choose_axes(dynamic, tensors, one_of_several)
    axes = [{axis: _named(size, bounds) for axis, size in each.items()} for each in chosen]
    if one_of_several:
        fixed = {
            name
            for (_, x), each in zip(tensors, axes, strict=True)
            for axis, name in each.items()
            if -x.dim() <= axis < x.dim() and x.shape[axis] < 2
        }
        axes = [{a: name for a, name in each.items() if name not in fixed} for each in axes]
        bounds = {b: None for b in bounds if not names_of(b) & fixed}
    hints: dict[str, int] = {}
    problems: list[Problem] = []
    for (name, tensor), chosen in zip(tensors, axes, strict=True):
        for axis, size in list(chosen.items()):
            if not -tensor.dim() <= axis < tensor.dim() or not size.isidentifier():
                told = f"'{name}' has {tensor.dim()} axes; 'dynamic' names its axis {axis} '{size}'"
                problems.append(Problem("wrong-argument", told, None, "write {axis: 'name'}"))
                continue
            if axis < 0:
                chosen[axis + tensor.dim()] = chosen.pop(axis)
            found = tensor.shape[axis]
            if hints.setdefault(size, found) != found:
                told = f"'{size}' is {hints[size]} and, in axis {axis} of '{name}', {found}"
                problems.append(Problem("wrong-argument", told, None, "give the sizes two names"))
            if found < 2:
                told = f"axis {axis} of '{name}' is to stay open, and its example has size {found}"
                fix = "trace with an example of size 2 or more; 1 is taken where nothing asks"
                problems.append(Problem("fixed-size", told, None, fix))
    raise_if(problems)
    for bound in bounds:
        if not holds(bound, hints):
            told = f"the example is to have {bound}, and has {names_told(hints)}"
            raise_if([Problem("wrong-argument", told, None, "widen the range, or pass another")])
    return axes, hints, tuple(bounds)


def find_formless(dynamic: object) -> Iterator[Problem]:
    """What is no way to say which sizes stay open."""
    every: list[Any] = [*dynamic] if isinstance(dynamic, list | tuple) else [dynamic]
    by_name = isinstance(dynamic, Mapping) and any(isinstance(key, str) for key in dynamic)
    every = [*dynamic.values()] if isinstance(dynamic, Mapping) and by_name else every
    fix = 'write {axis: "name"}, {"argument": {axis: "name"}} or "batch"'
    if dynamic is None or (isinstance(dynamic, str) and dynamic == "batch"):
        return
    for axes in every:
        if not isinstance(axes, Mapping):
            yield Problem("wrong-argument", f"{axes!r} in 'dynamic' names no sizes", None, fix)
            continue
        for axis, size in axes.items():
            if not isinstance(axis, int) or isinstance(axis, bool) or not _is_size(size):
                told = f"{{{axis!r}: {size!r}}} in 'dynamic' is no axis and the name of its size"
                yield Problem("wrong-argument", told, None, f"{fix}; ('name', 2, 64) has bounds")


def _is_size(size: Any) -> bool:
    if isinstance(size, tuple):
        limits = [n for n in size[1:] if n is not None]
        return len(size) == 3 and all(isinstance(n, int) for n in limits) and _is_size(size[0])
    return isinstance(size if isinstance(size, str) else getattr(size, "__name__", None), str)


def find_absent(dynamic: Dynamic, tensors: Sequence[tuple[str, Tensor]]) -> Iterator[Problem]:
    """Axes that are said to stay open of all tensors, and that none has."""
    if not isinstance(dynamic, Mapping) or any(isinstance(key, str) for key in dynamic):
        return
    most = max((x.dim() for _, x in tensors), default=0)
    for axis in dynamic:
        if not -most <= axis < most:  # pyright: ignore[reportOperatorIssue]
            told = f"'dynamic' names axis {axis}, and no tensor has more than {most} axes"
            yield Problem("wrong-argument", told, None, "name an axis that one of them has")


def choose_axes(
    dynamic: Dynamic, tensors: Sequence[tuple[str, Tensor]], one_of_several: bool = False
) -> list[Axes]:
    """What is said of each tensor: by its name, by its place, or the same of all."""
    if isinstance(dynamic, Mapping) and any(isinstance(key, str) for key in dynamic):
        by_name: dict[Any, Any] = dict(dynamic)
        chosen = [by_name.pop(name, {}) for name, _ in tensors]
        if not one_of_several:
            raise_if(find_unknown(by_name, [name for name, _ in tensors]))
        return chosen
    if dynamic is None or dynamic == "batch" or isinstance(dynamic, Mapping):
        every: Any = {0: "batch"} if dynamic == "batch" else dynamic or {}
        return [{a: s for a, s in every.items() if -x.dim() <= a < x.dim()} for _, x in tensors]
    if len(dynamic) != len(tensors):
        told = f"'dynamic' is of {len(dynamic)} tensors, the example has {len(tensors)}"
        fix = "give one dictionary {axis: name} for each, or one for all"
        raise_if([Problem("wrong-argument", told, None, fix)])
    return [*dynamic]


def find_fixed(name: str, tied: Mapping[str, Span | None]) -> Iterator[Problem]:
    """Refuse open sizes that a trace has fixed: equations, and the lines where."""
    fix = "leave the size out of 'dynamic', or give two equal sizes one name"
    for each, span in tied.items():
        yield Problem("fixed-size", f"'{name}' works for one size only: {each}", span, fix)


def names_told(sizes: Mapping[str, int]) -> str:
    """Sizes as a list of equations."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _named(size: Any, bounds: dict[str, None]) -> str:
    """The name of an open size; its bounds, where there are any, are noted."""
    if isinstance(size, str):
        return size
    if isinstance(size, tuple):
        name, low, high = size
    else:
        name, low, high = size.__name__, getattr(size, "min", None), getattr(size, "max", None)
    # torch.export.Dim has a number near 2**63 for no bound
    bounds |= {f"{name} >= {low}": None} if low else {}
    bounds |= {f"{name} <= {high}": None} if high is not None and high < 2**62 else {}
    return name


def find_unknown(wanted: Iterable[str], names: Sequence[str]) -> Iterator[Problem]:
    """What `dynamic` names and is no tensor among the arguments."""
    for name in wanted:
        told = f"'dynamic' names '{name}', which is no tensor among the arguments"
        fix = did_you_mean(name, names) or f"the tensors are {', '.join(names)}"
        yield Problem("wrong-argument", told, None, fix)
