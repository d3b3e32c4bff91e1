"""Graphs of operations: tracing, functionalising, partitioning."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule
from torch.utils import _pytree as pytree

from ingot.graphs.torch_private.modules import schema_of

__all__ = [
    "follow_gradients", "keep_lines", "merge_equal_lines", "note_operations", "note_writes",
    "partition_by_torch", "plain", "run_operations", "take_out_tokens", "trace_values",
    "tracing_context", "was_written", "wrapped",
]  # fmt: skip


def run_operations(run: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Call `run(operation, *args, **kwargs)` for every operation of ATen, also in a trace."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Running(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            return run(func, *args, **(kwargs or {}))

    return Running()


def trace_values(
    function: Callable[..., Any], inputs: Sequence[Any], table: Mapping[Any, Any] | None = None
) -> GraphModule:
    """The operations of ATen that a function runs on its inputs, which may be fake.

    Recurrent networks, unless they are taken apart in Python, read open sizes as numbers.
    """
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.experimental.proxy_tensor import make_fx

    trace = make_fx(function, decomposition_table=None if table is None else dict(table))
    with enable_python_dispatcher():
        module = trace(*inputs)
    _keep_checks(module.graph)
    return module


def _keep_checks(graph: Graph) -> None:
    """Let no pass drop what gives nothing: it is there to raise.

    Until 2.12 the check that a matrix is not singular is taken for dead code.
    """
    from torch.fx.node import has_side_effect

    for node in graph.nodes:
        schema = schema_of(node.target)
        if node.op == "call_function" and schema is not None and not schema.returns:
            has_side_effect(node.target)


@contextmanager
def keep_lines() -> Iterator[None]:
    """Nodes of a trace hold the frames of the user's code that made them, as `stack_trace`.

    A step of autograd keeps the frames under which it was made, which `follow_gradients` gives to
    what it computes; torch has them kept for its search of faulty steps only.
    """
    from torch.fx.traceback import preserve_node_meta

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Anomaly Detection has been enabled")
        with preserve_node_meta(), torch.autograd.detect_anomaly(check_nan=False):
            yield


def follow_gradients(results: Sequence[Tensor]) -> None:
    """Let the backward of these, while it is traced, tell the lines of the forward."""
    from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks

    setup_stacktrace_preservation_hooks([r.grad_fn for r in results if r.grad_fn is not None])


@contextmanager
def tracing_context(mode: Any) -> Iterator[None]:
    """Passes of torch find the fake mode of what they are given here."""
    from torch._guards import TracingContext, tracing

    with tracing(TracingContext(mode)):
        yield


@contextmanager
def note_writes(mode: Any) -> Iterator[None]:
    """Writes to `wrapped` tensors are noted instead of performed."""
    from torch._subclasses.functional_tensor import FunctionalTensorMode

    with mode, tracing_context(mode), FunctionalTensorMode(_allow_token_discovery=True):
        yield


def wrapped(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors that note writes instead of performing them."""
    from torch._functorch._aot_autograd.functional_utils import to_fun

    return [to_fun(tensor) for tensor in tensors]


def plain(value: Any) -> Any:
    """What a tensor that notes writes has become."""
    from torch._functorch._aot_autograd.functional_utils import from_fun

    return from_fun(value)


def was_written(tensor: Tensor) -> bool:
    """Whether anything was written to a tensor that notes writes."""
    from torch._functorch._aot_autograd.functional_utils import has_data_mutation

    return has_data_mutation(tensor)


def take_out_tokens(graph: Graph) -> None:
    """Call checks, such as that of a matrix that is singular, directly.

    From 2.13 on they are chained by tokens, which would be inputs and outputs of the graph.
    """
    from torch._higher_order_ops.effects import with_effects
    from torch.fx.node import has_side_effect

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


def merge_equal_lines(graph: Graph) -> Graph:
    """A graph without common subexpressions."""
    from torch._functorch.compile_utils import fx_graph_cse

    return fx_graph_cse(graph)


def partition_by_torch(name: str) -> Callable[..., Any]:
    """Torch's own ways, `default` and `min-cut`, to cut a joint graph in two.

    They tell inputs apart by names with "tangents" in them, and nodes by `partitioner_tag`.
    """
    from torch._functorch import partitioners

    return {
        "default": partitioners.default_partition,
        "min-cut": partitioners.min_cut_rematerialization_partition,
    }[name]


def note_operations(run: Callable[[], Any]) -> list[Any]:
    """The operations of ATen that a function runs, with the types and devices of their results."""
    noted: list[Any] = []

    def note(operation: Any, *args: Any, **kwargs: Any) -> Any:
        result = operation(*args, **kwargs)
        tensors = [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
        noted.append((operation, [(x.dtype, x.device) for x in tensors]))
        return result

    with run_operations(note):
        run()
    return noted
