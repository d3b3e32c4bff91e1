"""Blocks that Dynamo meets again: what it traced of one instance is replayed for others alike.

Alike are instances in all that the trace read of the first, by the sources that Dynamo notes. A
replay adds the same nodes on the instance's own tensors, and every guard of the first on the
instance's own attributes. What is not known to be alike is traced anew. Torch 2.11 notes no
sources: there, every instance is traced.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node, Proxy
from torch.fx.node import map_arg
from torch.fx.traceback import current_meta

from ingot.graphs.torch_private import (
    Modes,
    fake_like,
    forward_mode,
    is_apart,
    is_mode_switch,
    pytree,
    transforms,
    without_saved_hooks,
    writes_of,
)

__all__ = ["PLAIN", "replay_blocks"]

MAX_TRACES = 8
"""How many unlike calls of a class are noted in one graph: noting one looks at all guards."""

PLAIN = (str, bytes, bool, int, type(None), type(...), torch.dtype, torch.device,
         torch.memory_format, torch.layout)  # fmt: skip
"""What is told by its value in a key; other objects by their identity."""

IsBlock = Callable[[nn.Module], bool]


class _Local(threading.local):
    """Which modules are blocks in what a thread traces, and the traces of one graph by class."""

    find_blocks: Callable[[], IsBlock] | None = None
    output: Any = None
    is_block: IsBlock | None = None
    traces: dict[type, list["_Trace"]]


_LOCAL = _Local()
_COUNT = itertools.count()


@contextmanager
def replay_blocks(find_blocks: Callable[[], IsBlock]) -> Iterator[None]:
    """Let Dynamo replay the calls of blocks in what this thread traces inside.

    find_blocks: called once for each graph; tells which modules are blocks.
    """
    _hook_into_tracer()
    before, _LOCAL.find_blocks = _LOCAL.find_blocks, find_blocks
    try:
        yield
    finally:
        _LOCAL.find_blocks = before
        _LOCAL.output, _LOCAL.traces = None, {}


@cache
def _hook_into_tracer() -> None:
    from torch._dynamo.variables.functions import UserFunctionVariable

    inline = UserFunctionVariable.call_function

    def call_function(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        if _LOCAL.find_blocks is None or self.fn.__name__ != "forward":
            return inline(self, tx, args, kwargs)
        if _LOCAL.output is not tx.output:
            _LOCAL.output, _LOCAL.traces, _LOCAL.is_block = tx.output, {}, _LOCAL.find_blocks()
        call = _find_call(self, tx, [*self.self_args(), *args], kwargs)
        if call is None:
            return inline(self, tx, args, kwargs)
        traces = _LOCAL.traces.setdefault(call.kind, [])
        for trace in traces:
            found = trace.call.key == call.key and _Replay(trace, call)
            if found and found.matches():
                return found.run()
        last = next(iter(reversed(tx.output.graph.nodes)), None)
        writes = _count_writes(call)
        result = inline(self, tx, args, kwargs)
        if len(traces) < MAX_TRACES and _LOCAL.output is tx.output:
            with suppress(Exception):  # whatever it is that cannot be read: it is not replayed
                traces.append(_note(call, last, writes, result))
        return result

    UserFunctionVariable.call_function = call_function


class _Unlike(Exception):
    """What a trace holds, or reads, is not known to be the same for another instance."""


def _require(holds: object) -> None:
    if not holds:
        raise _Unlike


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a block that Dynamo traces: the block's source, and the tensors it is given.

    key: the code that runs, how its arguments are nested and laid out, and the modes.
    """

    tx: Any
    kind: type[nn.Module]
    source: Any
    tensors: tuple[Any, ...]
    key: Hashable
    modes: Modes
    stack: dict[str, Any]

    def value_of(self, source: Any, values: dict[Any, Any]) -> Any:
        """What a source stands for in the frame that is traced."""
        root = self.tx.output.root_tx
        return source.get_value({"G": root.f_globals, "L": root.f_locals}, {}, values)


def _find_call(function: Any, tx: Any, given: Sequence[Any], kwargs: Any) -> _Call | None:
    from torch._dynamo.variables.nn_module import UnspecializedNNModuleVariable

    block: Any = given[0].realize() if given else None
    if (
        not issubclass(type(block), UnspecializedNNModuleVariable)
        or block.source is None
        or function.fn is not getattr(type(block.value), "forward", None)
        or not tx.output.is_root_tracer()
        or not hasattr(tx.output.current_tracer, "traced_sources")
        or not (_LOCAL.is_block and _LOCAL.is_block(block.value))
        or transforms()
        or forward_mode()
        or tx.symbolic_torch_function_state.in_torch_function_mode()
        or _any_effect(tx)
    ):
        return None
    tensors: list[Any] = []
    try:
        told = [_describe_variable(v, tensors) for v in given[1:]]
        told += [(k, _describe_variable(v, tensors)) for k, v in kwargs.items()]
    except _Unlike:
        return None
    modes, kind = Modes.now(), type(block.value)
    settings = torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
    notes = repr(current_meta.get("custom"))  # such as the stream that nodes run on
    key = function.fn, tuple(told), modes, settings, notes
    return _Call(tx, kind, block.source, tuple(tensors), key, modes, dict(tx.nn_module_stack))


def _any_effect(tx: Any) -> bool:
    """Whether the traced code has written to what outlives it, or drawn numbers in Python."""
    from torch._dynamo.variables.base import AttributeMutationExisting, ValueMutationExisting

    effects = tx.output.side_effects
    attributes = (v.mutation_type for v in effects.store_attr_mutations)
    values = (v.mutation_type for v in effects.id_to_variable.values())
    return bool(
        effects.tensor_hooks
        or effects.save_for_backward
        or tx.output.random_calls
        or any(isinstance(m, AttributeMutationExisting) for m in attributes)
        or any(type(m) is ValueMutationExisting and m.is_modified for m in values)
    )


# what is alike


def _describe_variable(variable: Any, tensors: list[Any]) -> Hashable:
    """An argument or a result of a block: tensors and constants, in tuples."""
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.lists import TupleVariable
    from torch._dynamo.variables.tensor import TensorVariable

    variable = variable.realize()
    if type(variable) is TensorVariable:
        tensors.append(variable)
        return variable.source, _describe_tensor(_node_of(variable).meta["example_value"])
    if type(variable) is TupleVariable:
        return (tuple, *(_describe_variable(item, tensors) for item in variable.items))
    _require(type(variable) is ConstantVariable)
    return _describe(variable.value)


def _node_of(variable: Any) -> Node:
    return variable.as_proxy().node


def _example_of(node: Node) -> Any:
    return node.meta["example_value"]


def _describe(value: Any) -> Hashable:
    """What another instance must have in a value's place: the very same object, or a like one."""
    if type(value) is float:
        return float, value.hex()
    if type(value) in PLAIN:
        return type(value), value
    if type(value) in (Tensor, nn.Parameter):
        own = (name for name in vars(value) if not name.startswith("_dynamo_"))
        return (*_describe_tensor(value), value.is_leaf and value.grad is None, *own)
    if isinstance(value, nn.Module):
        return tuple((name, type(m), *map(tuple, _names(m))) for name, m in value.named_modules())
    if type(value) is MethodType:
        return MethodType, id(value.__func__), _describe(value.__self__)
    if type(value) in (tuple, list, dict, OrderedDict):
        return (type(value), *map(_describe, value))
    return "same", id(value)


def _names(module: nn.Module) -> tuple[Any, ...]:
    own: Any = vars(module)
    return own, own["_parameters"], own["_buffers"], own["_modules"]


def _describe_tensor(tensor: Tensor) -> tuple[Hashable, ...]:
    sizes = (*tensor.shape, *tensor.stride())
    _require(tensor.layout == torch.strided and all(type(size) is int for size in sizes))
    return (
        type(tensor), tensor.dtype, tensor.device, tensor.shape, tensor.stride(),
        tensor.storage_offset(), tensor.requires_grad, tensor.is_leaf, tensor._is_view(),
        tensor.is_inference(), tensor.is_conj(), tensor.is_neg(),
    )  # fmt: skip


# the first call


@dataclass(frozen=True, slots=True)
class _Trace:
    """What Dynamo did for a call of a block.

    inputs: nodes of elsewhere that it read; sources: all that it read of the block, with their
    values, and what those must be like; outside: which of them it knew from elsewhere; tensors:
    those that are inputs of the graph; guards, ordered: what guards them all; apart: whether all
    results lie where nothing else does.
    """

    call: _Call
    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    result: Any
    sources: dict[Any, tuple[Any, Hashable]]
    outside: frozenset[Any]
    tensors: dict[Any, Node]
    guards: tuple[Any, ...]
    ordered: tuple[Any, ...]
    apart: bool


def _note(call: _Call, last: Node | None, writes: dict[Node, int], result: Any) -> _Trace:
    """What was traced since the last node, if that can be replayed."""
    tx = call.tx
    _require(not _any_effect(tx) and Modes.now() == call.modes)
    placed = _find_placeholders(tx)
    nodes = _find_nodes(tx, last)
    results: list[Any] = []
    _describe_variable(result, results)
    given = {_node_of(v) for v in call.tensors}
    read = {n for node in nodes for n in node.all_input_nodes} | {_node_of(v) for v in results}
    inputs = read - given - set(nodes)
    _require(all(node.op == "placeholder" for node in inputs))
    # an inference tensor counts no writes
    _require(not any(_example_of(n).is_inference() for n in inputs | given))
    _require(all(writes_of(_example_of(n)) == writes.get(n, 0) for n in inputs | given))

    below = _Below(call.source)
    guards = []
    for guard in tx.output.guards:
        bound = _bound_to(guard)
        if below(guard.originating_source):
            if guard.create_fn_name() != "TENSOR_MATCH":  # made with the instance's inputs
                _require(all(_is_source(x) or type(x) in PLAIN for x in bound))
                guards.append(guard)
        else:
            _require(not any(_is_source(x) and below(x) for x in bound))
    known = [*tx.output.current_tracer.traced_sources, *(g.originating_source for g in guards)]
    values: dict[Any, Any] = {}
    sources: dict[Any, tuple[Any, Hashable]] = {}
    for source in dict.fromkeys(filter(below, known)):
        value = call.value_of(source, values)
        sources[source] = value, _describe(value)
    effects = tx.output.side_effects
    tracked = {s: effects[v].source for s, (v, _) in sources.items() if v in effects}
    return _Trace(
        call, nodes, tuple(n for n in inputs if not below(placed[n])), result, sources,
        frozenset(s for s, first in tracked.items() if first is None or not below(first)),
        {source: node for node, source in placed.items() if below(source)},
        tuple(guards), tuple(filter(below, tx.output.guard_on_key_order)),
        all(_node_of(v) in nodes for v in results)
        and is_apart([*map(_example_of, {_node_of(v) for v in results})],
                     [*map(_example_of, inputs | given)]),
    )  # fmt: skip


def _find_placeholders(tx: Any) -> dict[Node, Any]:
    """The inputs of the graph so far and their sources; plain tensors without open sizes."""
    placed: dict[Node, Any] = {}
    for node in tx.output.graph.find_nodes(op="placeholder"):
        argument: Any = node.meta.get("grapharg")
        _require(type(getattr(argument, "example", None)) in (Tensor, nn.Parameter))
        _require(not argument.pass_arg_as_tensor)
        _describe_tensor(node.meta["example_value"])
        placed[node] = argument.source
    return placed


def _find_nodes(tx: Any, last: Node | None) -> tuple[Node, ...]:
    """What was added to the graph after a node: operations that give tensors, nothing else."""
    nodes: list[Node] = []
    for node in reversed(tx.output.graph.nodes):
        if node is last or node.op == "placeholder":
            break
        _require(node.op in ("call_function", "call_method") and not is_mode_switch(node.target))
        values = pytree.tree_leaves(node.meta.get("example_value"))
        _require(values and all(isinstance(x, Tensor) for x in values))
        for value in values:
            _describe_tensor(value)
        nodes.insert(0, node)
    return tuple(nodes)


def _count_writes(call: _Call) -> dict[Node, int]:
    """How often what a block may read was written to, as Dynamo traces on fake tensors."""
    placed = call.tx.output.graph.find_nodes(op="placeholder")
    values = {n: n.meta.get("example_value") for n in (*placed, *map(_node_of, call.tensors))}
    tensors = {n: x for n, x in values.items() if isinstance(x, Tensor) and not x.is_inference()}
    return {n: writes_of(x) for n, x in tensors.items()}


class _Below:
    """Whether a source starts at another one."""

    def __init__(self, root: Any) -> None:
        self.known = {root: True}

    def __call__(self, source: Any) -> bool:
        if source not in self.known:
            base = getattr(source, "base", None)
            self.known[source] = base is not None and self(base)
        return self.known[source]


def _is_source(value: Any) -> bool:
    from torch._guards import Source

    return isinstance(value, Source)


def _bound_to(guard: Any) -> list[Any]:
    """What a guard is made with, beside its source."""
    made = guard.create_fn
    return [*made.args, *made.keywords.values()] if isinstance(made, partial) else []


# other calls


class _Replay:
    """A call of another instance, and what stands in it for what the trace of the first holds."""

    def __init__(self, trace: _Trace, call: _Call) -> None:
        self.trace, self.call = trace, call
        self.renamed: dict[Any, Any] = {trace.call.source: call.source}
        self.ids: dict[int, int] = {}
        self.at: dict[Node, Any] = {}
        self.taken: dict[Node, Node] = {}

    def matches(self) -> bool:
        """Whether the call is known to run the same code; its tensors are inputs after that."""
        try:
            values = self._match_values()
            for node in self.trace.inputs:
                self._put(node, node, None)
            for first, own in zip(self.trace.call.tensors, self.call.tensors, strict=True):
                self._put(_node_of(first), _node_of(own), own)
            for source, node in self.trace.tensors.items():
                self._lift(source, node, values)
        except Exception:  # whatever an attribute raises: the call is traced, and raises it again
            return False
        return True

    def run(self) -> Any:
        """The result of the call."""
        self._guard()
        self._add_nodes()
        return self._rebuild(self.trace.result)

    def rename(self, source: Any) -> Any:
        """The source of another instance in place of the first's."""
        if source not in self.renamed:
            own: Any = source
            parts = {f.name: getattr(source, f.name) for f in fields(source)}
            bases = {k: self.rename(v) for k, v in parts.items() if _is_source(v)}
            if any(bases[k] is not parts[k] for k in bases):
                own = replace(source, **bases)
            self.renamed[source] = own
        return self.renamed[source]

    def _match_values(self) -> dict[Any, Any]:
        """All that the first trace read, of this instance; the same objects where it was one."""
        values: dict[Any, Any] = {}
        taken: dict[int, int] = {}
        for source, (first, told) in self.trace.sources.items():
            own = self.call.value_of(self.rename(source), values)
            _require(_describe(own) == told)
            _require(own is first or source not in self.trace.outside)
            if type(first) is float or type(first) in (*PLAIN, MethodType):
                continue
            _require(self.ids.setdefault(id(first), id(own)) == id(own))
            _require(taken.setdefault(id(own), id(first)) == id(first))
        return values

    def _put(self, first: Node, own: Node, variable: Any) -> None:
        """Let a node stand for one of the first trace, and for no other."""
        known = self.at.setdefault(first, (own, variable))
        _require(known[0] is own and self.taken.setdefault(own, first) is first)

    def _lift(self, source: Any, node: Node, values: dict[Any, Any]) -> None:
        from torch._dynamo.variables.builder import VariableBuilder
        from torch._dynamo.variables.tensor import TensorVariable

        own = self.rename(source)
        variable: Any = VariableBuilder(self.call.tx, own)(self.call.value_of(own, values))
        _require(type(variable) is TensorVariable)
        first, second = (n.meta["example_value"] for n in (node, _node_of(variable)))
        _require(_describe_tensor(first) == _describe_tensor(second))
        self._put(node, _node_of(variable), variable)

    def _guard(self) -> None:
        """Guard what is read of this instance as what was read of the first."""
        from torch._guards import Guard

        output = self.call.tx.output
        for guard in self.trace.guards:
            made = guard.create_fn
            if any(map(_is_source, _bound_to(guard))):
                bound = {
                    k: self.rename(v) if _is_source(v) else v for k, v in made.keywords.items()
                }
                made = partial(made.func, *made.args, **bound)
            own = Guard(self.rename(guard.originating_source), made, user_stack=guard.user_stack)
            output.guards.add(own, collect_debug_stack=False)
        output.guard_on_key_order.update(map(self.rename, self.trace.ordered))

    def _add_nodes(self) -> None:
        """The nodes of the first trace on this instance's.

        Fake tensors that nothing else can see need not be computed again.
        """
        from torch._dynamo.utils import get_fake_value

        tx, number, apart = self.call.tx, next(_COUNT), self.trace.apart
        for node in self.trace.nodes:
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: self.at[n][0])
            own = tx.output.graph.create_node(node.op, node.target, args, kwargs)
            own.meta = {**node.meta, "nn_module_stack": self._stack_of(node, number)}
            if not apart:
                del own.meta["example_value"]
                with without_saved_hooks():
                    own.meta["example_value"] = get_fake_value(own, tx)
            self.at[node] = own, None

    def _stack_of(self, node: Node, number: int) -> dict[str, Any]:
        """The modules that a node runs in, by ids as Dynamo writes them; calls are told apart."""
        stack = dict(self.call.stack)
        for key, kind in (node.meta.get("nn_module_stack") or {}).items():
            if key not in self.trace.call.stack:
                name, _, suffix = key.partition("@")
                own = self.ids.get(int(name), name) if name.isdigit() else name
                stack[f"{own}@{suffix} {number}"] = kind
        return stack

    def _rebuild(self, variable: Any) -> Any:
        from torch._dynamo.variables.builder import wrap_fx_proxy
        from torch._dynamo.variables.lists import TupleVariable
        from torch._dynamo.variables.tensor import TensorVariable

        variable = variable.realize()
        if type(variable) is TupleVariable:
            return TupleVariable([*map(self._rebuild, variable.items)])
        if type(variable) is not TensorVariable:
            return variable
        first = _node_of(variable)
        own, known = self.at[first]
        if known is None and first in self.trace.inputs:
            return variable
        if known is None:
            proxy = Proxy(own, self.call.tx.output.current_tracer)
            example = own.meta.pop("example_value")
            if self.trace.apart:
                with self.call.tx.fake_mode:
                    example = fake_like(example)
            known = wrap_fx_proxy(self.call.tx, proxy, example_value=example)
            self.at[first] = own, known
        return known
