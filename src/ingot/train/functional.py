"""A function of tensors -> the graph of what it computes, without writes, on ATen."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.graph import CodeGen

from ingot.graphs import torch_private
from ingot.graphs.sizes import Open
from ingot.train.random import DRAWS

__all__ = ["decompositions", "graph_of"]


@contextmanager
def _without_kept_casts() -> Iterator[None]:
    """A cast that autocast kept from an earlier call would be a constant of the graph."""
    cached = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(cached)


def graph_of(
    function: Callable[..., Any], shapes: Open, *groups: Sequence[Tensor], table: dict[Any, Any]
) -> GraphModule:
    """The graph of a function of lists of tensors, which wraps them itself; flat, on ATen."""
    noted = torch_private.note_writes(shapes.mode)
    free = torch_private.free_convolutions()
    learns = any(t.requires_grad for group in groups for t in group)
    written = torch_private.write_recurrences() if learns else nullcontext()
    with _without_kept_casts(), torch_private.keep_lines(), noted, free, written:
        module = torch_private.trace_values(function, [list(g) for g in groups], table)
    torch_private.take_out_tokens(module.graph)
    module.graph.set_codegen(CodeGen())
    module.recompile()
    return module


@cache
def decompositions() -> dict[Any, Any]:
    """Inductor's, except that random numbers stay operations of their own, drawn as eager does."""
    kept = {k: v for k, v in torch_private.inductor_table().items() if str(k) not in DRAWS}
    return {**kept, torch.ops.aten.native_dropout.default: _dropout}


def _dropout(value: Tensor, probability: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or probability == 0:
        return value.clone(), torch.ones_like(value, dtype=torch.bool)
    # as torch does: numbers are drawn in the order in which the tensor lies
    kept = torch.ops.aten.bernoulli.p(torch.empty_like(value), 1 - probability)
    scale = 0.0 if probability == 1 else 1 / (1 - probability)
    return value * (kept * scale), kept.to(torch.bool)
