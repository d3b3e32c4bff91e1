"""The edge of a compiled module: what it is called with, checked against its plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem
from ingot.graphs.expression import expression
from ingot.graphs.torch_private import pytree, without_storage
from ingot.regions.capture import Example
from ingot.regions.plan import Bound, Plan, StateInfo, TensorInfo
from ingot.regions.state import dtype_name

__all__ = ["Dynamic", "example_of", "holds", "input_problems", "state_problem"]

Dynamic = Mapping[int, str] | Sequence[Mapping[int, str]]
"""Names of the axes that may vary, for each tensor of the example, or the same for all."""


def example_of(example: object, dynamic: Dynamic) -> Example:
    """An example: a tensor, a tuple of positional arguments, or a dictionary of keyword ones."""
    args: Any = example if isinstance(example, (tuple, list)) else (example,)
    args, kwargs = ((), dict(example)) if isinstance(example, Mapping) else (tuple(args), {})
    leaves, tree = pytree.tree_flatten((args, kwargs))
    tensors = tuple(x for x in leaves if isinstance(x, Tensor))
    constants = tuple((i, x) for i, x in enumerate(leaves) if not isinstance(x, Tensor))
    problems = [
        Problem("region-argument", f"the example holds a '{type(x).__qualname__}'", None,
                "give tensors, numbers, words or None")
        for _, x in constants if not isinstance(x, (bool, int, float, str, type(None)))
    ]  # fmt: skip
    axes = [dynamic] * len(tensors) if isinstance(dynamic, Mapping) else list(dynamic)
    if len(axes) != len(tensors):
        problems.append(Problem(
            "region-argument", f"dynamic= names the axes of {len(axes)} tensors, the example has"
            f" {len(tensors)}", None, "give one dictionary {axis: name} for each, or one for all",
        ))  # fmt: skip
        raise IngotError(problems)
    hints: dict[str, int] = {}
    infos = []
    for i, (tensor, names) in enumerate(zip(tensors, axes, strict=True)):
        shape: list[int | str] = list(tensor.shape)
        for axis, name in names.items():
            if -tensor.ndim <= axis < tensor.ndim:
                shape[axis] = name
                hints.setdefault(name, _hint(tensor.shape[axis], hints))
            elif not isinstance(dynamic, Mapping):
                problems.append(Problem(
                    "region-argument", f"dynamic= names axis {axis} of a tensor of"
                    f" {tensor.ndim}", None, "axes count from 0",
                ))  # fmt: skip
        name = f"input {i}"
        problems.extend(_odd(name, tensor))
        infos.append(TensorInfo(name, dtype_name(tensor.dtype), str(tensor.device), tuple(shape)))
    if problems:
        raise IngotError(problems)
    return Example(tensors, constants, tree, tuple(infos), hints)


def _hint(size: int, taken: Mapping[str, int]) -> int:
    """A size to trace with: no 0 or 1, which would be taken for constants, and no other's."""
    size = max(size, 2)
    while size in taken.values():
        size += 1
    return size


def _odd(name: str, tensor: Any) -> Iterator[Problem]:
    """What compiled code cannot be given at all."""
    if not isinstance(tensor, Tensor):
        said = f"{name} is a '{type(tensor).__qualname__}'"
        yield Problem("region-input", said, None, "give a torch tensor")
    elif type(tensor) not in (Tensor, nn.Parameter, nn.Buffer):
        said = f"{name} is a '{type(tensor).__qualname__}'"
        yield Problem("region-input", said, None, "give a plain torch tensor")
    elif without_storage(tensor):
        yield Problem("region-input", f"{name} lies nowhere", None, "give a copy of it: clone()")
    elif tensor.layout != torch.strided or tensor.is_nested:
        layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        said = f"{name} is {layout}"
        yield Problem("region-input", said, None, "give a dense tensor: to_dense()")


def input_problems(
    infos: Sequence[TensorInfo], sizes: Iterable[Bound], guards: Sequence[str],
    tensors: Sequence[Any],
) -> list[Problem]:  # fmt: skip
    """All that is wrong with tensors that are given in the place of others."""
    problems = []
    for info, tensor in zip(infos, tensors, strict=True):
        problems.extend(_odd(info.name, tensor))
    if problems:
        return problems
    known = {
        b.name: tensors[b.input].shape[b.axis] for b in sizes if b.axis < tensors[b.input].ndim
    }
    for info, tensor in zip(infos, tensors, strict=True):
        problems.extend(_misfit(info, tensor, known))
    if not problems:
        now = ", ".join(f"{name} = {size}" for name, size in known.items())
        fix = "compile again with an example of such sizes"
        problems = [
            Problem("region-input", f"called with {now}, compiled for {guard}", None, fix)
            for guard in guards if not holds(guard, known)
        ]  # fmt: skip
    return problems


def holds(guard: str, sizes: Mapping[str, int]) -> bool:
    """Whether sizes meet what compiled code takes for granted."""
    return bool(expression(guard)(sizes))


def _misfit(info: TensorInfo, tensor: Tensor, known: Mapping[str, int]) -> Iterator[Problem]:
    if dtype_name(tensor.dtype) != info.dtype:
        said = f"{info.name} is {dtype_name(tensor.dtype)}, compiled for {info.dtype}"
        yield Problem("region-input", said, None, f"convert it: .to(torch.{info.dtype})")
    if str(tensor.device) != info.device:
        said = f"{info.name} is on {tensor.device}, compiled for {info.device}"
        yield Problem("region-input", said, None, f'move it: .to("{info.device}")')
    shape = tuple(known.get(s, s) if isinstance(s, str) else s for s in info.shape)
    if tuple(tensor.shape) != shape:
        said = f"{info.name} has shape {tuple(tensor.shape)}, compiled for {_shape(info)}"
        named = ", ".join(f"{k} = {v}" for k, v in known.items() if k in info.shape)
        yield Problem(
            "region-input", said + (f" with {named}" if named else ""), None,
            "name axes that vary with dynamic=, or compile again with this example",
        )  # fmt: skip


def _shape(info: TensorInfo) -> str:
    return f"({', '.join(map(str, info.shape))}{',' * (len(info.shape) == 1)})"


def state_problem(info: StateInfo, tensor: Any, name: str) -> Problem | None:
    """What is wrong with a tensor that takes the place of a lifted one."""
    what = f"the {info.kind} '{name}'"
    if not isinstance(tensor, Tensor):
        found = type(tensor).__qualname__
        said = f"{what} is now a '{found}', not a tensor"
        return Problem("region-parameter", said, None, "set a tensor, or compile again")
    for word, now, then in (
        ("is", dtype_name(tensor.dtype), info.dtype),
        ("is on", str(tensor.device), info.device),
        ("has shape", tuple(tensor.shape), info.shape),
        ("has layout", tensor.layout, torch.strided),
    ):
        if now != then:
            said = f"{what} {word} {now}, compiled for {then}"
            return Problem("region-parameter", said, None, "convert it back, or compile again")
    return None


def flattened(plan: Plan, tree: pytree.TreeSpec, args: Any, kwargs: Any) -> list[Any]:
    """The tensors of a call, whose other values and nesting must be those of the example."""
    leaves, found = pytree.tree_flatten((args, kwargs))
    if found != tree:
        raise IngotError([Problem(
            "region-input", f"called with {_nesting(found)}, compiled for {_nesting(tree)}", None,
            "call it as the example was given to compile",
        )])  # fmt: skip
    for index, value in plan.constants:
        now = leaves[index]
        if type(now) is not type(value) or now != value:
            raise IngotError([Problem(
                "region-input", f"called with {now!r} where it was compiled for {value!r}", None,
                "compile again with this example",
            )])  # fmt: skip
    skipped = {i for i, _ in plan.constants}
    return [x for i, x in enumerate(leaves) if i not in skipped]


def _nesting(tree: pytree.TreeSpec) -> str:
    """An argument list with a star for each value."""
    args, kwargs = pytree.tree_unflatten(["*"] * tree.num_leaves, tree)
    words = [*map(str, args), *(f"{k}={v}" for k, v in kwargs.items())]
    return f"({', '.join(words)})".replace("'", "")
