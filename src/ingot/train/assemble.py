"""A function or module and an example -> Joint: all stages, from tracing to something to call."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ingot.graphs.capture import Captured
from ingot.graphs.sizes import Dynamic
from ingot.train.call import prepare
from ingot.train.compile import Compiler, compile_half
from ingot.train.describe import write_graph
from ingot.train.module import Joint
from ingot.train.partitioner import Halves, Partition
from ingot.train.partitioner import partition as partitioned
from ingot.train.tracer import trace

__all__ = ["assembled", "joint"]


def joint(
    function: Callable[..., Any] | Captured,
    example: Any = None,
    *,
    dynamic: Dynamic = None,
    partition: Partition = "min-cut",
    compile_forward: Compiler = "inductor",
    compile_backward: Compiler = "inductor",
    decompositions: Mapping[Any, Any] | None = None,
) -> Joint:
    """Compile a function or module together with its gradient.

    `example` holds the arguments: a tuple, or a dict of named ones; those that are to get
    gradients have `requires_grad`. `dynamic` says which sizes stay open:
    "batch" (the first axis of every tensor), or `{"x": {0: "batch", 1: ("time", 1, 64)}}`, the
    latter with bounds. `decompositions` replace operations of ATen before Inductor's own do.
    """
    traced = trace(prepare(function, example, dynamic), decompositions)
    return assembled(partitioned(traced, partition), compile_forward, compile_backward)


def assembled(
    halves: Halves, compile_forward: Compiler = "inductor", compile_backward: Compiler = "inductor"
) -> Joint:
    """Compile both halves and join them."""
    shapes = halves.traced.call.open
    forward = compile_half(halves.forward, compile_forward, "forward", shapes)
    forward = replace(forward, text=write_graph(halves, "forward"))
    backward = None
    if halves.backward is not None:
        backward = compile_half(halves.backward, compile_backward, "backward", shapes)
        backward = replace(backward, text=write_graph(halves, "backward"))
    return Joint(
        halves.signature, halves.saved, forward, backward, halves.traced.call.tensors,
        halves=halves, strategy=halves.strategy,
    )  # fmt: skip
