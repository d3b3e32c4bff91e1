"""Calls in a graph that stand for blocks, and graphs that are one call."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

__all__ = ["called", "forget", "one_call", "region"]

_LIBRARY = torch.library.Library("ingot", "FRAGMENT")
_LIBRARY.define("region(Tensor[] values, int site) -> Tensor[]")

region = torch.ops.ingot.region.default
"""A call in a graph that stands for a block: its values, and which call it is."""

_GIVES: list[Sequence[tuple[Any, Any, torch.dtype, torch.device]]] = []


@torch.library.register_fake("ingot::region", lib=_LIBRARY)
def _region(values: list[Tensor], site: int) -> list[Tensor]:
    return [
        torch.empty_strided(size, stride, dtype=dtype, device=device)
        for size, stride, dtype, device in _GIVES[-1]
    ]


def called(
    values: list[Tensor], site: int, gives: Sequence[tuple[Any, Any, torch.dtype, torch.device]]
) -> list[Tensor]:
    """Record a block's call; its results have the sizes, strides, precisions and devices given."""
    _GIVES.append(gives)
    try:
        return region(values, site)
    finally:
        _GIVES.pop()


def one_call(function: Callable[..., Any], inputs: int, outputs: int) -> fx.GraphModule:
    """A graph whose only operation is a Python function of tensors; a compiler looks inside."""
    held = [function]

    def call(*given: Any) -> Any:
        return held[0](*given)

    call.forget = held.clear  # pyright: ignore[reportFunctionMemberAccess]
    graph = fx.Graph()
    given = tuple(graph.placeholder(f"x{i}") for i in range(inputs))
    result = graph.call_function(call, given)
    graph.output(tuple(graph.call_function(operator.getitem, (result, i)) for i in range(outputs)))
    return fx.GraphModule(nn.Module(), graph)


def forget(graph: fx.GraphModule) -> None:
    """Let go of the function of a graph of one call: torch keeps it with what it compiled."""
    for node in graph.graph.nodes:
        getattr(node.target, "forget", lambda: None)()
