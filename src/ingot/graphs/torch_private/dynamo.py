"""What Dynamo traces, and what it gives a backend."""

import itertools
import logging
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from ingot.graphs.torch_private.fakes import any_size
from ingot.graphs.torch_private.modules import FOLDER

__all__ = [
    "Change", "Frame", "break_of", "compilation_now", "compile_calls", "hint_open",
    "keep_calls", "mark_open", "sources_of_sizes", "stack_of_error", "stacks_of_sizes",
    "trace_frame", "uncompiled", "watch_calls",
]  # fmt: skip


def uncompiled(source: Any) -> Any:
    """What torch.compile was given, if this is what it gave."""
    inner = getattr(source, "_orig_mod", None)
    return inner or getattr(source, "_torchdynamo_orig_callable", source)


def mark_open(tensor: Tensor, axis: int) -> None:
    """Let Dynamo keep a size of a tensor open; the mark stays on the tensor."""
    from torch._dynamo import mark_dynamic

    mark_dynamic(tensor, axis)


def sources_of_sizes(mode: Any) -> dict[Any, list[str]]:
    """Where each symbol of a size was found, as Dynamo writes it: L['x'].size()[0]."""
    env = mode.shape_env
    return {s: [_source_name(x) for x in sources] for s, sources in env.var_to_sources.items()}


def stacks_of_sizes(mode: Any) -> dict[str, Any]:
    """The user's lines at which sizes were fixed, by where these were found."""
    return {_source_name(x): stack for x, stack in mode.shape_env.specialization_stacks.items()}


def _source_name(source: Any) -> str:
    # a method until 2.11
    name = source.name
    return str(name() if callable(name) else name)


@dataclass(frozen=True, slots=True)
class Change:
    """An object outside of a frame that the frame changes: where it was found, which attributes."""

    source: str
    names: tuple[str, ...]
    stack: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A Python frame as Dynamo traced it: a graph of torch's functions, and what surrounds it.

    given: what the graph takes, in this call; run: nests outputs of the graph as the frame does;
    constants: the sources whose values were guarded; evaluate: the value of a source;
    names: all globals and attributes that its code, and what it calls, may ask for;
    asks_grad: whether the user's code asked if gradients are recorded.
    """

    graph: GraphModule
    mode: Any
    given: tuple[Any, ...]
    sources: dict[Any, str]
    run: Callable[[Sequence[Any]], Any]
    changes: tuple[Change, ...]
    constants: tuple[str, ...]
    evaluate: Callable[[str], Any]
    names: frozenset[str]
    asks_grad: bool

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The nodes that the graph gives."""
        return tuple(self.graph.graph.output_node().args[0])  # pyright: ignore


def trace_frame(function: Any, arguments: tuple[Any, ...]) -> Frame:
    """Trace a call of a plain function by Dynamo, whole, without running or changing anything.

    Sizes that are marked may be 0 or 1: where Python or a check of torch's decides on that, there
    is a guard. The settings are for the whole process until 2.12; the lock is Dynamo's own.
    """
    from torch._dynamo import config, convert_frame, utils
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable
    from torch._guards import CompileContext, TracingContext, compile_context

    seen: dict[str, Any] = {}
    handlers = TorchInGraphFunctionVariable._get_handlers()
    usual, asked = handlers[torch.is_grad_enabled], set[str]()

    def note_asked(variable: Any, tx: Any) -> Any:
        asked.add(tx.f_code.co_filename)
        return usual(variable, tx)

    def note(graph: GraphModule, inputs: Any) -> GraphModule:
        effects = InstructionTranslator.current_tx().output.side_effects
        mode, given = TracingContext.get().fake_mode, tuple(inputs)
        seen.update(graph=graph, mode=mode, given=given, changes=_changes(effects))
        return graph

    frame = convert_frame._get_frame(function, arguments)
    quiet = config.patch(
        replay_side_effects=False, side_effect_replay_policy="info",
        # sizes that differ from an earlier trace of the same code would be open
        automatic_dynamic_shapes=False, assume_static_by_default=True,
        # recurrent networks are one operation of torch's, as in export
        allow_rnn=True,
    )  # fmt: skip
    with (
        convert_frame.compile_lock, quiet, any_size(),
        # the guard of this mode is always there
        mock.patch.dict(handlers, {torch.is_grad_enabled: note_asked}),
        compile_context(CompileContext(convert_frame.get_compile_id({}))),
        utils.get_metrics_context(), utils.dynamo_timed("ingot"),
    ):  # fmt: skip
        found: Any = convert_frame.compile_frame(
            frame.code, frame.globals, frame.locals, frame.builtins, frame.closure,
            compiler_fn=note, one_graph=True, restart_reasons=set(),
        )  # fmt: skip
    output = found.graph_capture_output(frame.argdefs, frame.kwdefaults)
    graph: GraphModule = seen["graph"]
    runtime = output.get_runtime_env()

    def run(outputs: Sequence[Any]) -> Any:
        wanted, give = dict(output.f_globals), lambda *_: outputs
        nest = runtime.forward_callable(graph.meta["backend_id"], give, extra_globals=wanted)
        return nest(*arguments)

    scope = {"L": frame.locals, "G": output.f_globals}
    kinds = ("CONSTANT_MATCH", "EQUALS_MATCH")
    guards = [g for g in output.output_graph.guards if g.create_fn_name() in kinds]
    places = graph.graph.find_nodes(op="placeholder")
    local = output.output_graph.export_metadata.graph_input_idx_to_local_source
    return Frame(
        graph, seen["mode"], seen["given"],
        {node: _source_name(local[i]) for i, node in enumerate(places) if i in local},
        run, seen["changes"],
        tuple(dict.fromkeys(g.name for g in guards)),
        lambda source: _evaluate(source, scope),
        frozenset(name for code in output.traced_code for name in code.co_names),
        # torch's modules choose a faster way by it
        not all(Path(file).is_relative_to(FOLDER) for file in asked),
    )  # fmt: skip


def _changes(effects: Any) -> tuple[Change, ...]:
    from torch._dynamo.source import TempLocalSource
    from torch._dynamo.variables import TensorVariable

    found = []
    for var in effects._get_modified_vars():
        if var.source is None or isinstance(var.source, TempLocalSource):
            continue
        stacks = effects.mutation_user_stacks.get(var) or [()]
        names = tuple(effects.store_attr_mutations.get(var, ()))
        # a view that an attribute makes, such as x.T, counts as new
        if isinstance(var, TensorVariable) and not names:
            continue
        found.append(Change(_source_name(var.source), names, tuple(stacks[-1])))
    hooked = [tensor for tensor, *_ in effects.tensor_hooks.values()]
    found += [
        Change(_source_name(tensor.source), ("register_hook",), ())
        for tensor in hooked
        if tensor.source is not None
    ]
    return tuple(found)


def _evaluate(source: str, scope: dict[str, Any]) -> Any:
    """The value at a source; NotImplemented where Python cannot ask for it."""
    try:
        return eval(source, {"__builtins__": {"type": type, "dict": dict, "list": list}}, scope)
    except Exception:  # (a source of Dynamo's own making: nothing of the user's is behind it)
        return NotImplemented


def stack_of_error(error: BaseException) -> tuple[Any, ...]:
    """The lines of the user's code that Dynamo was tracing when it gave up, outermost first."""
    stack = getattr(error, "real_stack", None) or ()
    return tuple(stack) or tuple(traceback.extract_tb(error.__traceback__))


_CALLS = itertools.count()


def keep_calls(functions: Sequence[Callable[..., None]]) -> None:
    """Let calls of functions stay in Dynamo's graphs, as they are."""
    from torch.fx.node import has_side_effect

    for function in functions:
        torch.compiler.allow_in_graph(has_side_effect(function))


def compile_calls(module: nn.Module, backend: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls a module, compiled; it shares no cache of Dynamo with another one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    # Dynamo counts what it has compiled by the code of a function, and by its name and line it
    # remembers which sizes have varied
    code = call.__code__.replace(co_name=f"call_{next(_CALLS)}")
    own = FunctionType(code, globals(), "call", None, call.__closure__)
    return torch.compile(own, backend=backend)


class _Limit(logging.Filter, threading.local):
    """Hears from Dynamo that it compiles a function no more, and tells it to one listener."""

    listener: Callable[[str], None] | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if self.listener is None or "torch._dynamo hit config." not in str(record.msg):
            return True
        arguments = record.args if isinstance(record.args, tuple) else ()
        function, reason = [*map(str, arguments[2:4]), "", ""][:2]
        why = reason.strip().splitlines()[0] if reason.strip() else "of its arguments"
        self.listener(f"{function}, compiled too often; last because {why}")
        return False


_LIMIT = _Limit()


@contextmanager
def watch_calls(listener: Callable[[str], None]) -> Iterator[None]:
    """Guard hooks of modules, and tell a listener which functions Dynamo has compiled too often."""
    import torch._dynamo.config as dynamo

    # a logger keeps one of equal filters
    logging.getLogger("torch._dynamo.convert_frame").addFilter(_LIMIT)
    before, _LIMIT.listener = _LIMIT.listener, listener
    # by default a hook that comes after the first call is not seen (torch 2.11 to 2.15)
    unguarded, dynamo.skip_nnmodule_hook_guards = dynamo.skip_nnmodule_hook_guards, False
    try:
        yield
    finally:
        _LIMIT.listener = before
        dynamo.skip_nnmodule_hook_guards = unguarded


def hint_open(tensor: Tensor, axes: Sequence[int]) -> None:
    """Let Dynamo take sizes of a tensor for open at once; where it cannot, it does not."""
    from torch._dynamo import maybe_mark_dynamic

    maybe_mark_dynamic(tensor, [axis % tensor.ndim for axis in axes])


def break_of(graph: GraphModule) -> str | None:
    """Where and why Dynamo ended a graph before its function did."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break:
        return None
    why = str(reason.reason).strip().splitlines()[0]
    if not reason.user_stack:
        return why
    frame = reason.user_stack[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {why}"


def compilation_now() -> tuple[int, int]:
    """The frame that Dynamo compiles, and for how many times already."""
    from torch._guards import CompileContext

    now = CompileContext.current_compile_id()
    if now is None or now.frame_id is None or now.frame_compile_id is None:
        return 0, 0
    return now.frame_id, now.frame_compile_id
