"""A function or module and an example of its arguments -> Call: flat, named, without numbers."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs.sizes import Dynamic, Open, open_sizes
from ingot.graphs.torch_private import autocast_now, pytree, replace_tensors, without_storage
from ingot.train.signature import Argument, Held, Shaped

__all__ = ["Call", "autocast_now", "held_tensors", "plain_tensor", "prepare"]

VALUES = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Call:
    """How to call it with flat tensors, and those tensors without numbers, in symbols of `open`.

    holding: lets the module hold the first of some flat tensors, also after `run` has returned:
    what is computed once more during the backward pass (checkpoints) reads them then.
    """

    name: str
    run: Callable[[list[Tensor]], Any]
    holding: Callable[[list[Tensor]], AbstractContextManager[None]]
    training: bool | None
    held: tuple[Held, ...]
    tensors: tuple[Tensor, ...]
    arguments: tuple[Argument, ...]
    names: tuple[str, ...]
    tree: pytree.TreeSpec
    open: Open
    axes: dict[str, tuple[int, int]]
    primals: tuple[Tensor, ...]


def prepare(function: Callable[..., Any], example: Any, dynamic: Dynamic = None) -> Call:
    """Name and flatten what a call takes; open sizes become symbols."""
    positional, keyword = _example(example)
    names = _names(function, positional, keyword)
    values = [*positional, *keyword.values()]
    leaves, tree = pytree.tree_flatten(values)
    paths = [
        name + pytree.keystr(path)
        for name, value in zip(names, values, strict=True)
        for path, _ in pytree.tree_leaves_with_path(value)
    ]
    raise_if(_refused(paths, leaves))
    tensors = [(p, x) for p, x in zip(paths, leaves, strict=True) if isinstance(x, Tensor)]
    axes, hints = open_sizes(dynamic, tensors)
    shapes = Open(hints)
    module = function if isinstance(function, nn.Module) else None
    held, values = held_tensors(module)
    fakes = [_fake(shapes, value, {}) for value in values]
    fakes += [_fake(shapes, x, a) for (_, x), a in zip(tensors, axes, strict=True)]
    inputs = iter(fakes[len(values) :])
    arguments = tuple(
        Argument(p, _shaped(p, next(inputs), shapes))
        if isinstance(x, Tensor)
        else Argument(p, None, x)
        for p, x in zip(paths, leaves, strict=True)
    )
    return Call(
        name=type(function).__name__ if module else getattr(function, "__name__", "function"),
        run=_flat(function, held, leaves, tree, len(positional), tuple(keyword)),
        holding=lambda tensors: _holding(module, held, tensors),
        training=module.training if module else None,
        held=held,
        tensors=tuple(values),
        arguments=arguments,
        names=names,
        tree=tree,
        open=shapes,
        axes={
            size: (i, axis)
            for i, chosen in reversed(list(enumerate(axes)))
            for axis, size in chosen.items()
        },
        primals=tuple(fakes),
    )


def _example(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example, Mapping):
        return (), dict(example)
    if isinstance(example, tuple | list):
        return tuple(example), {}
    return (example,), {}


def _names(
    function: Callable[..., Any], positional: tuple[Any, ...], keyword: dict[str, Any]
) -> tuple[str, ...]:
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        found = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        found = []
    single = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [p.name for p in found if p.kind in single]
    known += [f"argument{i}" for i in range(len(known), len(positional))]
    return (*known[: len(positional)], *keyword)


def plain_tensor(value: Tensor) -> str | None:
    """Why a tensor cannot be passed to a graph, if it cannot."""
    if type(value) not in (Tensor, nn.Parameter):
        return f"a tensor subclass, {type(value).__name__}"
    if value.layout != torch.strided:
        return f"a {str(value.layout).removeprefix('torch.')} tensor"
    if value.is_nested:
        return "a nested tensor"
    if without_storage(value):
        return "a tensor without storage"
    return None


def _refused(paths: list[str], leaves: list[Any]) -> list[Problem]:
    found = []
    for path, leaf in zip(paths, leaves, strict=True):
        if isinstance(leaf, Tensor):
            why = plain_tensor(leaf)
            if why is not None:
                fix = "pass a plain strided tensor, for example x.as_subclass(torch.Tensor)"
                found.append(Problem("tensor-subclass", f"'{path}' is {why}", None, fix))
        elif not isinstance(leaf, VALUES):
            told = f"'{path}' is a {type(leaf).__name__}"
            fix = "pass tensors, numbers and strings, in tuples, lists and dicts"
            found.append(Problem("wrong-argument", told, None, fix))
    return found


def held_tensors(module: nn.Module | None) -> tuple[tuple[Held, ...], list[Tensor]]:
    """Parameters and buffers, each once, under all their names."""
    if module is None:
        return (), []
    parameters = list(module.named_parameters(remove_duplicate=False))
    buffers = list(module.named_buffers(remove_duplicate=False))
    kept = module.state_dict(keep_vars=True)
    groups: dict[int, tuple[Tensor, list[str], bool]] = {}
    for name, value in [*parameters, *buffers]:
        is_parameter = isinstance(value, nn.Parameter)
        groups.setdefault(id(value), (value, [], is_parameter))[1].append(name)
    held, problems = [], []
    for value, names, is_parameter in groups.values():
        why = plain_tensor(value)
        if why is not None:
            fix = "replace it by a plain tensor before tracing"
            problems.append(Problem("tensor-subclass", f"'{names[0]}' is {why}", None, fix))
            continue
        sizes = tuple(value.shape)
        dtype = str(value.dtype).removeprefix("torch.")
        shaped = Shaped(names[0], sizes, dtype, value.device.type, value.requires_grad)
        persistent = any(name in kept for name in names)
        held.append(Held(tuple(names), shaped, is_parameter, persistent))
    raise_if(problems)
    return tuple(held), [value for value, _, _ in groups.values()]


def _fake(shapes: Open, value: Tensor, axes: Mapping[int, str]) -> Tensor:
    """The same tensor without numbers; contiguous, whatever the example is."""
    sizes = [shapes.symbols[axes[i]] if i in axes else n for i, n in enumerate(value.shape)]
    with shapes.mode:
        return torch.empty(
            sizes, dtype=value.dtype, device=value.device, requires_grad=value.requires_grad
        )


def _shaped(name: str, fake: Tensor, shapes: Open) -> Shaped:
    sizes = tuple(shapes.text(n) for n in fake.shape)
    dtype = str(fake.dtype).removeprefix("torch.")
    return Shaped(name, sizes, dtype, fake.device.type, fake.requires_grad)


def _flat(
    function: Callable[..., Any], held: tuple[Held, ...], leaves: list[Any],
    tree: pytree.TreeSpec, positional: int, keyword: tuple[str, ...],
) -> Callable[[list[Tensor]], Any]:  # fmt: skip
    """The function of flat tensors: those held, then those among the arguments."""

    def run(primals: list[Tensor]) -> Any:
        given = iter(primals[len(held) :])
        filled = [next(given) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        values = pytree.tree_unflatten(filled, tree)
        named = dict(zip(keyword, values[positional:], strict=True))
        if not isinstance(function, nn.Module):
            return function(*values[:positional], **named)
        return _with_held(function, held, primals, values[:positional], named)

    return run


def _with_held(
    module: nn.Module, held: tuple[Held, ...], primals: list[Tensor],
    values: list[Any], named: dict[str, Any],
) -> Any:  # fmt: skip
    tensors = _named(held, primals)
    with _holding(module, held, primals):
        result = module(*values, **named)
        for name, given in tensors.items():
            owner, _, leaf = name.rpartition(".")
            now = getattr(module.get_submodule(owner), leaf)
            if now is not given:
                _reassigned(name, given, now)
    return result


@contextmanager
def _holding(
    module: nn.Module | None, held: tuple[Held, ...], primals: list[Tensor]
) -> Iterator[None]:
    if module is None:
        yield
        return
    with replace_tensors(module, _named(held, primals)):
        yield


def _named(held: tuple[Held, ...], primals: list[Tensor]) -> dict[str, Tensor]:
    return {n: t for h, t in zip(held, primals, strict=False) for n in h.names}


def _reassigned(name: str, given: Tensor, now: Any) -> None:
    """A buffer that was bound to another tensor is as good as one that was written to."""
    same = isinstance(now, Tensor) and now.shape == given.shape and now.dtype == given.dtype
    if not same:
        raise IngotError([Problem(
            "reshaped-input", f"'{name}' becomes another shape or type during the call",
            None, "keep shapes and types of parameters and buffers fixed",
        )])  # fmt: skip
    with torch.no_grad():
        given.copy_(now)
