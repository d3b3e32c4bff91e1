"""How torch traces a function without writes: the private names of torch that this takes.

Seen in torch 2.13.0; tests/train/test_functional.py fails once one of them behaves otherwise.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.fx import GraphModule
from torch.fx.graph import CodeGen

from ingot.train.sizes import Open

__all__ = [
    "any_autocast", "applied", "changed", "decompositions", "forward_mode", "graph_of", "plain",
    "transforms", "wrapped",
]  # fmt: skip

any_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled
"""Whether autocast is on for any device; 0.1 µs, where asking for each takes 0.5."""

transforms: Callable[[], bool] = torch._C._are_functorch_transforms_active
"""Whether a transform of torch.func is under way."""


def forward_mode() -> bool:
    """Whether tensors may carry tangents, which no layout shows."""
    return forward_ad._current_level >= 0


def applied(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """The step of autograd itself, where no transform of torch.func is under way.

    2.13: `apply` first looks at each tensor for transforms that have ended, 1 µs a tensor.
    """
    return super(torch.autograd.Function, function).apply  # pyright: ignore


def wrapped(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors that note writes instead of performing them."""
    from torch._functorch._aot_autograd.functional_utils import to_fun

    return [to_fun(tensor) for tensor in tensors]


def plain(value: Any) -> Any:
    """What a tensor that notes writes has become."""
    from torch._functorch._aot_autograd.functional_utils import from_fun

    return from_fun(value)


def changed(tensor: Tensor) -> bool:
    """Whether anything was written to a tensor that notes writes."""
    from torch._functorch._aot_autograd.functional_utils import has_data_mutation

    return has_data_mutation(tensor)


@contextmanager
def _noting(shapes: Open) -> Iterator[None]:
    from torch._dispatch.python import enable_python_dispatcher
    from torch._guards import TracingContext, tracing
    from torch._subclasses.functional_tensor import FunctionalTensorMode

    mode = shapes.mode
    cached = torch.is_autocast_cache_enabled()
    # a cast kept from an earlier call would be a constant of the graph
    torch.set_autocast_cache_enabled(False)
    try:
        with (
            mode,
            tracing(TracingContext(mode)),
            enable_python_dispatcher(),
            FunctionalTensorMode(_allow_token_discovery=True),
        ):
            yield
    finally:
        torch.set_autocast_cache_enabled(cached)


def graph_of(
    function: Callable[..., Any], shapes: Open, *groups: Sequence[Tensor], table: dict[Any, Any]
) -> GraphModule:
    """The graph of a function of lists of tensors, which wraps them itself; flat, on ATen."""
    from torch.fx.experimental.proxy_tensor import make_fx

    with _noting(shapes):
        module = make_fx(function, decomposition_table=table)(*(list(g) for g in groups))
    _without_tokens(module)
    module.graph.set_codegen(CodeGen())
    module.recompile()
    return module


def _without_tokens(module: GraphModule) -> None:
    """Call checks, such as that of a matrix that is singular, directly.

    2.13: they are chained by tokens, which would be inputs and outputs of the graph.
    """
    from torch._higher_order_ops.effects import with_effects
    from torch.fx.node import has_side_effect

    graph = module.graph
    for node in reversed(list(graph.nodes)):
        if node.target is with_effects:
            operation: Any = node.args[1]
            has_side_effect(operation)
            with graph.inserting_before(node):
                graph.call_function(operation, node.args[2:], node.kwargs)
            for user in list(node.users):
                graph.erase_node(user)
            graph.erase_node(node)
        elif node.op == "placeholder" and "token" in node.name:
            graph.erase_node(node)


@cache
def decompositions() -> dict[Any, Any]:
    """Inductor's, except that random numbers stay operations of their own, drawn as eager does."""
    from torch._inductor.decomposition import select_decomp_table

    from ingot.train.random import DRAWS

    kept = {k: v for k, v in select_decomp_table().items() if str(k) not in DRAWS}
    return {**kept, torch.ops.aten.native_dropout.default: _dropout}


def _dropout(value: Tensor, probability: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or probability == 0:
        return value.clone(), torch.ones_like(value, dtype=torch.bool)
    kept = torch.ops.aten.bernoulli.p(value, 1 - probability)
    scale = 0.0 if probability == 1 else 1 / (1 - probability)
    return value * (kept * scale), kept.to(torch.bool)
