"""A function or module and examples -> Joint: all stages, from tracing to something to call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs.child import TIME_LIMIT
from ingot.graphs.sizes import Dynamic, find_unknown
from ingot.graphs.torch_private import OpOverload, list_global_hooks
from ingot.keywords import check_keywords
from ingot.train.call import Call, prepare
from ingot.train.compile import Compiler, compile_half, find_no_compiler
from ingot.train.describe import write_graph
from ingot.train.module import Joint
from ingot.train.partitioner import Halves, Partition
from ingot.train.partitioner import partition as partitioned
from ingot.train.ready import Code
from ingot.train.tracer import trace

__all__ = ["assembled", "joint"]

DECOMPOSITION = "write {torch.ops.aten.gelu.default: function}"


@check_keywords
def joint(
    function: Callable[..., Any],
    example: Any = None,
    *,
    examples: Sequence[Any] = (),
    dynamic: Dynamic | Sequence[Dynamic] = None,
    partition: Partition = "min-cut",
    compile_forward: Compiler = "inductor",
    compile_backward: Compiler = "inductor",
    decompositions: Mapping[Any, Any] | None = None,
    time_limit: float = TIME_LIMIT,
) -> Joint:
    """Compile a function or module together with its gradient.

    `example` holds the arguments: a tuple, or a dict of named ones; those that are to get
    gradients have `requires_grad`. `dynamic` says which sizes stay open:
    "batch" (the first axis of every tensor), or `{"x": {0: "batch", 1: ("time", 1, 64)}}`, the
    latter with bounds. `decompositions` replace operations of ATen before Inductor's own do.
    `examples` are several in the place of one: a call is run by the first whose structure, types
    and sizes it has. An open size that is 0 or 1 in one of them is fixed there; `dynamic` may also
    be a list, one for each. Inductor works in a child process, for at most `time_limit` seconds
    a graph.
    """
    raise_if(_find_wrong(examples, decompositions, time_limit))
    for name, how in (("compile_forward", compile_forward), ("compile_backward", compile_backward)):
        raise_if(find_no_compiler(name, how))
    calls = _prepare(function, example, examples, dynamic)
    traces = [trace(call, decompositions) for call in calls]
    halves = [partitioned(each, partition) for each in traces]
    return assembled(halves, compile_forward, compile_backward, time_limit)


def _find_wrong(examples: object, decompositions: object, time_limit: object) -> Iterator[Problem]:
    """Options that are not of their kind."""
    if not isinstance(examples, list | tuple):
        told = f"'examples' is a {type(examples).__name__}, not a list of several"
        yield Problem("wrong-argument", told, None, "joint(function, example), or examples=[...]")
    table = {} if decompositions is None else decompositions
    if not isinstance(table, Mapping):
        told = f"'decompositions' is a {type(table).__name__}, not a dictionary"
        yield Problem("wrong-argument", told, None, DECOMPOSITION)
    for key, value in table.items() if isinstance(table, Mapping) else ():
        if not isinstance(key, OpOverload) or not callable(value):
            told = f"{{{key}: {value}}} in 'decompositions' replaces no operation by a function"
            yield Problem("wrong-argument", told, None, DECOMPOSITION)
    if not isinstance(time_limit, int | float) or not time_limit > 0:
        told = f"'time_limit' is {time_limit!r}, and a graph takes time to compile"
        yield Problem("wrong-argument", told, None, f"give seconds: {TIME_LIMIT} by default")


def assembled(
    halves: Halves | Sequence[Halves],
    compile_forward: Compiler = "inductor",
    compile_backward: Compiler = "inductor",
    time_limit: float = TIME_LIMIT,
    settings: Mapping[str, Any] = {},
) -> Joint:
    """Compile the halves of each signature and join them; what they hold they share."""
    every = [halves] if isinstance(halves, Halves) else [*halves]
    tensors: dict[Any, Tensor] = {}
    for each in every:
        call = each.traced.call
        for held, tensor in zip(call.held, call.tensors, strict=True):
            tensors.setdefault(held, tensor)
    ways = compile_forward, compile_backward
    codes = [_compile(each, *ways, limit=time_limit, settings=settings) for each in every]
    return Joint(codes, [*tensors.values()], list_global_hooks())


def _compile(
    halves: Halves, compile_forward: Compiler, compile_backward: Compiler, **options: Any
) -> Code:
    shapes = halves.traced.call.open
    forward = compile_half(halves.forward, compile_forward, "forward", shapes, **options)
    forward = replace(forward, text=write_graph(halves, "forward"))
    backward = None
    if halves.backward is not None:
        backward = compile_half(halves.backward, compile_backward, "backward", shapes, **options)
        backward = replace(backward, text=write_graph(halves, "backward"))
    return Code(halves.signature, halves.saved, forward, backward, halves.strategy)


def _prepare(
    function: Callable[..., Any], example: Any, examples: Sequence[Any],
    dynamic: Any,
) -> list[Call]:  # fmt: skip
    if not examples and example is None:
        told = "a joint is traced from an example of its arguments, and none is given"
        fix = "joint(function, example): a tensor, a tuple of arguments, or a dict of named ones"
        raise IngotError([Problem("wrong-argument", told, None, fix)])
    if not examples:
        return [prepare(function, example, dynamic)]
    if example is not None:
        told = "one example and several are given"
        fix = "joint(function, example), or joint(function, examples=[...])"
        raise IngotError([Problem("wrong-argument", told, None, fix)])
    if isinstance(dynamic, list | tuple):
        if len(dynamic) != len(examples):
            told = f"'dynamic' is of {len(dynamic)} examples, and there are {len(examples)}"
            fix = "give one for each, or for all"
            raise IngotError([Problem("wrong-argument", told, None, fix)])
        return [prepare(function, *pair) for pair in zip(examples, dynamic, strict=True)]
    calls = [prepare(function, each, dynamic, one_of_several=True) for each in examples]
    names = [a.name for call in calls for a in call.arguments if a.tensor]
    if isinstance(dynamic, Mapping):
        raise_if(find_unknown([n for n in dynamic if isinstance(n, str) and n not in names], names))
    return calls
