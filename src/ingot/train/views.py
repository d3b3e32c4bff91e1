"""Which outputs of a graph are views, of what, and by which steps; the steps replayed at a call."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from ingot.graphs.sizes import Open, evaluated
from ingot.graphs.torch_private import OpOverload, schema_of
from ingot.train.signature import Step

__all__ = [
    "Path", "decoded", "encoded", "operation", "parent", "prepared", "replayed", "root", "steps",
]  # fmt: skip

Path = tuple[tuple[Callable[..., Any], list[Any], int | None], ...]
"""Operations to be run in turn, their arguments, and which of several results is taken."""


FIXED = {"dtype": torch.dtype, "memory_format": torch.memory_format, "layout": torch.layout}


def parent(node: Node) -> Node | None:
    """The node that a node is a view of, if it is one."""
    if node.target is operator.getitem:
        source = node.args[0]
        return source if isinstance(source, Node) and parent(source) is not None else None
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return None
    schema = schema_of(node.target)
    first = schema.arguments[0].alias_info if schema.arguments else None
    returned = any(r.alias_info is not None for r in schema.returns)
    source = node.args[0] if node.args else None
    if first is None or first.is_write or not returned or not isinstance(source, Node):
        return None
    return source


def root(node: Node, stop: Callable[[Node], bool] = lambda _: False) -> Node:
    """What a node is a view of in the end; itself if it is none."""
    while not stop(node):
        above = parent(node)
        if above is None:
            return node
        node = above
    return node


def steps(node: Node, start: Node, shapes: Open) -> tuple[Step, ...] | None:
    """The views that lead from a node to another, or None where one cannot be written down."""
    found: list[Step] = []
    pick: int | None = None
    while node is not start:
        above = parent(node)
        assert above is not None
        if node.target is operator.getitem:
            index = node.args[1]
            assert isinstance(index, int)
            pick = index
        else:
            try:
                arguments = [encoded(a, shapes) for a in node.args[1:]]
                assert not node.kwargs
            except (TypeError, AssertionError):
                return None
            found.append(Step(str(node.target), tuple(arguments), pick))
            pick = None
        node = above
    return tuple(reversed(found))


def encoded(value: Any, shapes: Open) -> Any:
    """An argument of an operation as JSON; sizes by name."""
    if isinstance(value, Node):
        value = value.meta["val"]
    if isinstance(value, torch.SymInt):
        return {"size": shapes.text(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [encoded(v, shapes) for v in value]
    if isinstance(value, torch.device):
        return {"device": str(value)}
    for kind, types in FIXED.items():
        if isinstance(value, types):
            return {kind: str(value).removeprefix("torch.")}
    raise TypeError(type(value).__name__)


def decoded(value: Any, sizes: Mapping[str, int]) -> Any:
    """An argument of an operation for the sizes of a call."""
    if isinstance(value, list | tuple):
        return [decoded(v, sizes) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, word),) = value.items()
    if kind == "size":
        return evaluated(word, sizes)
    return torch.device(word) if kind == "device" else getattr(torch, word)


def operation(name: str) -> Any:
    """An operation by its name, such as aten.view.default."""
    return operator.attrgetter(name)(torch.ops)


def prepared(path: tuple[Step, ...], sizes: Mapping[str, int]) -> Path:
    """Steps for the sizes of a call."""
    found = []
    for step in path:
        arguments = [decoded(a, sizes) for a in step.arguments]
        if step.operation in ("aten.view.default", "aten._unsafe_view.default"):
            found.append((Tensor.reshape, arguments[:1], None))
        else:
            found.append((operation(step.operation), arguments, step.pick))
    return tuple(found)


def replayed(tensor: Tensor, path: Path) -> Tensor:
    """The view that the steps make of a tensor."""
    for run, arguments, pick in path:
        result = run(tensor, *arguments)
        tensor = result if pick is None else result[pick]
    return tensor
