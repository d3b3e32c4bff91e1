"""A function of tensors -> the graph of what it computes, without writes, on ATen."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.graph import CodeGen

from ingot.graphs import torch_private
from ingot.graphs.sizes import Open
from ingot.train.random import DRAWS

__all__ = ["decompositions", "graph_of"]


def graph_of(
    function: Callable[..., Any], shapes: Open, *groups: Sequence[Tensor], table: dict[Any, Any]
) -> GraphModule:
    """The graph of a function of lists of tensors, which wraps them itself; flat, on ATen."""
    noted = torch_private.note_writes(shapes.mode)
    free = torch_private.free_convolutions()
    learns = any(t.requires_grad for group in groups for t in group)
    written = torch_private.write_recurrences(learns)
    # a cast that autocast kept from an earlier call would be a constant of the graph
    uncached = replace(torch_private.Modes.now(), cached=False).entered()
    with uncached, torch_private.keep_lines(), noted, free, written:
        module = torch_private.trace_values(function, [list(g) for g in groups], table)
    torch_private.take_out_tokens(module.graph)
    module.graph.set_codegen(CodeGen())
    module.recompile()
    return module


@cache
def decompositions() -> dict[Any, Any]:
    """Inductor's, except that random numbers stay operations of their own, drawn as eager does, and
    that none asks how large an open size is: small products of matrices are sums to it, and the
    sizes of the example would be bounds of every call.
    """
    aten = torch.ops.aten
    # eager draws for negative values alone, its decomposition for all
    by_value = ("aten.rrelu.default", "aten.rrelu_with_noise_functional.default")
    apart = {*DRAWS, *by_value}
    kept = {k: v for k, v in torch_private.inductor_table().items() if str(k) not in apart}
    asking = {op: _unless_open(kept[op]) for op in (aten.mm.default, aten.addmm.default)}
    own = {aten.native_dropout.default: _dropout, aten.bernoulli.default: _bernoulli}
    return {**kept, **asking, **own}


def _unless_open(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that leaves an operation on the CPU as it is where a size of its operands is open."""

    @wraps(rule)
    def decompose(*values: Any, **options: Any) -> Any:
        tensors = [x for x in values if isinstance(x, Tensor) and x.device.type == "cpu"]
        if any(isinstance(n, torch.SymInt) for x in tensors for n in x.shape):
            return NotImplemented
        return rule(*values, **options)

    return decompose


def _bernoulli(probability: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    if generator is not None:
        return NotImplemented
    # as torch does, which draws double numbers for double ones only
    double = probability.dtype == torch.float64
    dtype = torch.float64 if double else torch.float32
    drawn = torch.rand(probability.shape, dtype=dtype, device=probability.device)
    return (drawn < probability).to(probability.dtype)


def _dropout(value: Tensor, probability: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or probability == 0:
        return value.clone(), torch.ones_like(value, dtype=torch.bool)
    if probability == 1:  # torch draws none then
        return value * 0, torch.zeros_like(value, dtype=torch.bool)
    # as torch does: numbers are drawn in the order in which the tensor lies
    kept = torch.ops.aten.bernoulli.p(torch.empty_like(value), 1 - probability)
    return value * (kept / (1 - probability)), kept.to(torch.bool)
