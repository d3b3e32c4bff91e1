"""What torch does not promise: private names, settings that matter, faults.

All of it is so in torch 2.11, 2.12, 2.13, 2.14 and 2.15, except where a line names versions: tests
in tests/graphs/test_torch_private.py fail once it is not. Importing this imports no compiler.
"""

import importlib
import itertools
import logging
import operator
import re
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from ingot.codegen.library import private_file

__all__ = [
    "BUILD",
    "CHILD_ENVIRONMENT",
    "FOLDER",
    "HOOKS",
    "OPTIONS",
    "VERSION",
    "Change",
    "Frame",
    "InductorCode",
    "Lowering",
    "Modes",
    "OpOverload",
    "Scheduled",
    "abandon_capture",
    "ambient",
    "any_autocast",
    "any_dispatch",
    "any_size",
    "apply_of",
    "autocast_now",
    "base_of",
    "break_of",
    "buffers_of",
    "children_of",
    "compilation_now",
    "compile_ahead",
    "compile_by_inductor",
    "compile_calls",
    "equal_sizes",
    "expression_of",
    "fake_inputs",
    "fake_like",
    "fake_mode",
    "fake_tensor",
    "follow_gradients",
    "forward_mode",
    "frames_of",
    "free_convolutions",
    "fresh_cache",
    "guards_of",
    "has_global_hooks",
    "has_hooks",
    "hint_of",
    "hint_open",
    "inductor_table",
    "is_apart",
    "is_mode_switch",
    "is_open",
    "is_transform",
    "keep_calls",
    "keep_lines",
    "load_graph",
    "mark_open",
    "memory_of",
    "merge_equal_lines",
    "non_persistent",
    "note_writes",
    "open_sizes",
    "parameters_of",
    "partition_by_torch",
    "plain",
    "print_expression",
    "pytree",
    "raw_stream",
    "reads_values",
    "refuses_generator",
    "register_operations",
    "register_value",
    "run_as_written",
    "run_operations",
    "same_layout",
    "schema_of",
    "simplify_expression",
    "sources_of_sizes",
    "stack_of_error",
    "stacks_of_sizes",
    "substitute_sizes",
    "take_out_tokens",
    "trace_frame",
    "trace_values",
    "traced_mode",
    "tracing_context",
    "transformed",
    "transforms",
    "uncompiled",
    "use_count",
    "view_memory",
    "was_written",
    "watch_calls",
    "watch_lowering",
    "without_storage",
    "wrap_inductor_code",
    "wrapped",
    "write_archive",
]  # fmt: skip

BUILD: str = torch.__version__
"""The version of torch here with the name of its build, as in 2.13.0+cpu."""

VERSION = BUILD.split("+")[0]

FOLDER = Path(torch.__file__).parent

OpOverload = torch._ops.OpOverload


def schema_of(operation: Any) -> Any:
    """The arguments and results of an operation, and which of them share memory; None of others."""
    return getattr(operation, "_schema", None)


def base_of(tensor: Tensor) -> Tensor | None:
    """What a tensor is a view of."""
    return tensor._base


HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
"""The tables of a module whose entries run beside its code."""

parameters_of: Callable[[nn.Module], dict[str, Any]] = operator.attrgetter("_parameters")
buffers_of: Callable[[nn.Module], dict[str, Any]] = operator.attrgetter("_buffers")
children_of: Callable[[nn.Module], dict[str, Any]] = operator.attrgetter("_modules")
non_persistent: Callable[[nn.Module], set[str]] = operator.attrgetter("_non_persistent_buffers_set")


def register_value(kind: type) -> None:
    """Let torch see the tensor inside a value: an object with `data` and a static `sub`.

    Torch puts anything in the place of a tensor (a number of an axis, None), so none is checked.
    """

    def rebuild(leaves: Iterable[Any], sub: int) -> Any:
        made = object.__new__(kind)
        (made.data,), made.sub = leaves, sub
        return made

    def keyed(value: Any) -> tuple[list[tuple[Any, Any]], int]:
        return [(pytree.GetAttrKey("data"), value.data)], value.sub

    pytree.register_pytree_node(
        kind, lambda value: ([value.data], value.sub), rebuild, flatten_with_keys_fn=keyed,
        serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
    )  # fmt: skip


def autocast_now() -> dict[str, str]:
    """The devices for which autocast is on, and the type it casts to."""
    return {
        device: str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    }


any_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled
"""Whether autocast is on for any device; 0.1 µs, where asking for each takes 0.5."""

transforms: Callable[[], bool] = torch._C._are_functorch_transforms_active
"""Whether a transform of torch.func is under way."""

transformed: Callable[[Tensor], bool] = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore[reportAttributeAccessIssue]
"""Whether a tensor belongs to a transform of torch.func, and has no numbers of its own."""

without_storage: Callable[[Tensor], bool] = Tensor._is_zerotensor
"""Whether a tensor is zero by its kind, and lies nowhere."""


def any_dispatch() -> bool:
    """Whether operations run through a mode of torch: they are captured, or changed."""
    return torch._C._len_torch_dispatch_stack() > 0


def forward_mode() -> bool:
    """Whether tensors may carry tangents, which no layout shows."""
    return forward_ad._current_level >= 0


def apply_of(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """The step of autograd itself, where no transform of torch.func is under way.

    The public `apply` first looks at each tensor for transforms that have ended, 1 µs a tensor.
    """
    return super(torch.autograd.Function, function).apply  # pyright: ignore


def raw_stream(index: int) -> int:
    """CUDA's name for the current stream; torch.cuda.current_stream takes as long as a launch."""
    return torch._C._cuda_getCurrentRawStream(index)


use_count: Callable[[int], int] = torch._C._storage_Use_Count
"""How many tensors and objects refer to a storage, which is given by its `_cdata`."""


view_memory: Callable[[Tensor, Sequence[int], Sequence[int], int], Tensor]
view_memory = torch._C._dynamo.guards._reinterpret_tensor  # pyright: ignore[reportAttributeAccessIssue]
"""A tensor with a size, strides and an offset in the memory of another, as Inductor's code makes
its results: autograd takes it for no view."""


def abandon_capture(index: int, pool: Any) -> None:
    """Let torch forget a capture of a CUDA graph that failed.

    Its memory would be taken for in use, and in 2.11 random numbers would be refused ever after.
    """
    native: Any = torch._C
    for forget in (native._cuda_endAllocateToPool, native._cuda_releasePool):
        with suppress(RuntimeError):
            forget(index, pool)
    generator = torch.cuda.default_generators[index]
    generator.graphsafe_set_state(generator.clone_state())


class InductorCode(NamedTuple):
    """What Inductor made of a graph: it takes a list, and empties it.

    static, writes: where in the list Dynamo found parameters, and where tensors are written to.
    devices: of all that is in the graph, as in "cuda:0"; open_sizes: whether sizes may vary.
    """

    run: Callable[[list[Any]], Sequence[Any]]
    is_backward: bool
    static: frozenset[int]
    writes: frozenset[int]
    devices: frozenset[str]
    open_sizes: bool


def is_open(value: Any) -> bool:
    """Whether a size, or a size or stride of a tensor, may vary."""
    sizes = (*value.shape, *value.stride()) if isinstance(value, Tensor) else (value,)
    return any(isinstance(size, torch.SymInt) for size in sizes)


_wrapping = threading.local()


@contextmanager
def wrap_inductor_code(wrap: Callable[[InductorCode], Callable[..., Any]]) -> Iterator[None]:
    """What Inductor compiles in this thread, or finds in its caches, runs as `wrap` makes it.

    Both ways pass `CompiledFxGraph.post_compile`, whose effects are in no cache.
    """
    from torch._inductor.output_code import CompiledFxGraph

    kind: Any = CompiledFxGraph
    usual = kind.post_compile

    def post_compile(code: Any, inputs: Any, constants: Any, settings: Any) -> None:
        usual(code, inputs, constants, settings)
        wrap = getattr(_wrapping, "wrap", None)
        if wrap is not None:
            kinds = set(code.device_types)
            devices = {f"{kind}:{i}" for kind in kinds - {"cpu"} for i in code.device_idxs}
            backward = bool(settings["is_backward"])
            # torch counts all that a backward pass is given as static
            static = () if backward else settings.get("static_input_idxs", ())
            made = InductorCode(
                code.current_callable, backward, frozenset(static),
                frozenset(code.mutated_input_idxs), frozenset(devices | kinds & {"cpu"}),
                any(map(is_open, inputs)),
            )  # fmt: skip
            code.current_callable = wrap(made)

    if not hasattr(usual, "_wrapping"):
        post_compile._wrapping = True  # pyright: ignore[reportFunctionMemberAccess]
        kind.post_compile = post_compile
    before = getattr(_wrapping, "wrap", None)
    _wrapping.wrap = wrap
    try:
        yield
    finally:
        _wrapping.wrap = before


def same_layout(values: Sequence[Tensor]) -> Callable[..., bool]:
    """Whether tensors have the type, shape, strides, precision, device, and need of a gradient of
    these. What guards compiled functions takes 0.1 µs a tensor, attributes take 0.6.
    """
    native: Any = torch._C
    guards = getattr(native._dynamo.guards, "TensorGuards", None)
    if guards is None:
        facts = [_layout(x) for x in values]
        return lambda *given: [_layout(x) for x in given] == facts
    check = guards(*values, dynamic_dims_sizes=None, dynamic_dims_strides=None).check

    def same(*given: Tensor) -> bool:
        try:
            # the guards ask a nested tensor for its strides, which ends the process
            return not any(map(_is_nested, given)) and check(*given)
        except TypeError:
            return False

    return same


_nested: Any = Tensor.is_nested
_is_nested: Callable[[Tensor], bool] = _nested.__get__  # 0.1 µs a tensor


def _layout(x: Tensor) -> tuple[object, ...]:
    return type(x), x.shape, x.stride(), x.dtype, x.device, x.requires_grad, x.is_neg()


def fake_mode() -> Any:
    """A mode for tracing with fake tensors, whose `shape_env` knows their open sizes."""
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)


def fake_tensor(
    mode: Any, sizes: Sequence[int], is_open: Sequence[bool], dtype: torch.dtype, device: str
) -> Tensor:
    """A fake tensor; equal open sizes are one symbol. A size of 0 or 1 would be a constant."""
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    kinds: list[Any] = [DimDynamic.DUCK if one else DimDynamic.STATIC for one in is_open]
    context: Any = StatelessSymbolicContext(
        dynamic_sizes=kinds, constraint_sizes=[None] * len(kinds)
    )
    with FakeTensorMode():
        example = torch.empty(list(sizes), dtype=dtype, device=device)
    return mode.from_tensor(example, symbolic_context=context)


def open_sizes(mode: Any, hints: Mapping[str, int]) -> dict[str, Any]:
    """A symbol for each name; a number is known to torch for each, for choices of speed only."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    env = mode.shape_env
    found = {}
    for name, hint in hints.items():
        source = ConstantSource(f"size_{name}")
        symbol = env.create_symbol(hint, source, DimDynamic.DYNAMIC)
        found[name] = env.create_symintnode(symbol, hint=hint, source=source)
    return found


def any_size() -> AbstractContextManager[Any]:
    """Open sizes may be 0 or 1 inside, which are otherwise assumed away without a guard."""
    from torch.fx.experimental import _config

    shapes: Any = _config
    return shapes.patch(backed_size_oblivious=True)


@contextmanager
def free_convolutions() -> Iterator[None]:
    """Let no size be guarded for a way to convolve whose results lie as those of all others.

    2.11 to 2.15: on CPUs batches of 16 go another way; only tensors of five axes in channels_last
    order lie otherwise then. The lock is Dynamo's own.
    """
    from torch._dynamo.convert_frame import compile_lock

    native: Any = torch._C
    choose = native._select_conv_backend

    def select(*args: Any, **kwargs: Any) -> Any:
        x, weight = args or (kwargs["input"], kwargs["weight"])
        env = next((n.node.shape_env for n in x.shape if isinstance(n, torch.SymInt)), None)
        if env is not None and x.device.type == "cpu":
            with env.suppress_guards():
                if x.dim() < 5 or (x.is_contiguous() and weight.is_contiguous()):
                    return choose(*args, **kwargs)
        return choose(*args, **kwargs)

    with compile_lock, mock.patch.object(native, "_select_conv_backend", select):
        yield


expression_of: Callable[[Any], Any] = operator.attrgetter("node.expr")
"""A size as an expression of sympy."""

hint_of: Callable[[Any], Any] = operator.attrgetter("node.hint")
"""The number that a size had when it was traced."""


def equal_sizes(mode: Any) -> dict[Any, Any]:
    """The symbols that a trace has fixed, without a word, and what to: a number, or another."""
    return dict(mode.shape_env.replacements)


def guards_of(mode: Any) -> list[Any]:
    """The comparisons of sizes that a trace has decided, each with an `expr` of sympy."""
    return list(mode.shape_env.guards)


def simplify_expression(mode: Any, expression: Any) -> Any:
    """An expression of sizes with all that a trace knows of them."""
    return mode.shape_env.simplify(expression)


def frames_of(guard: Any) -> tuple[Any, Any]:
    """Where a comparison of sizes was made: the user's line if it is known, and torch's view."""
    return guard.sloc.maybe_user_loc, guard.sloc.framework_loc


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


def reads_values(error: BaseException) -> bool:
    """Whether torch refused to trace because Python asked for the value of a tensor."""
    name = type(error).__name__
    return "DataDependent" in name or "GuardOn" in name


def refuses_generator(error: BaseException) -> bool:
    """Whether torch refused to trace a call with a random generator; 2.11 and 2.12 do."""
    return isinstance(error, NotImplementedError) and "Generator" in str(error)


def print_expression(expression: Any) -> str:
    """An expression of sizes as Python."""
    from torch.utils._sympy.printers import PythonPrinter

    return PythonPrinter().doprint(expression)


def substitute_sizes(expression: Any, values: Mapping[Any, Any]) -> Any:
    """An expression of sizes computed again, by Python's operators, from values for its symbols."""
    from torch.utils._sympy.interp import sympy_interp
    from torch.utils._sympy.reference import PythonReferenceAnalysis

    return sympy_interp(PythonReferenceAnalysis, dict(values), expression)


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
    constants: the sources whose values were guarded; evaluate: the value of a source.
    """

    graph: GraphModule
    mode: Any
    given: tuple[Any, ...]
    sources: dict[Any, str]
    run: Callable[[Sequence[Any]], Any]
    changes: tuple[Change, ...]
    constants: tuple[str, ...]
    evaluate: Callable[[str], Any]

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
    from torch._guards import CompileContext, TracingContext, compile_context

    seen: dict[str, Any] = {}

    def note(graph: GraphModule, inputs: Any) -> GraphModule:
        effects = InstructionTranslator.current_tx().output.side_effects
        seen.update(graph=graph, mode=TracingContext.get().fake_mode, changes=_changes(effects))
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

    def run(give: Callable[..., Any]) -> Any:
        wanted = dict(output.f_globals)
        return runtime.forward_callable(graph.meta["backend_id"], give, extra_globals=wanted)(
            *arguments
        )

    given: list[Any] = []
    blank = [_Blank() for _ in graph.graph.output_node().args[0]]  # pyright: ignore

    def take(*inputs: Any) -> Any:
        given.extend(inputs)
        return blank

    run(take)
    scope = {"L": frame.locals, "G": output.f_globals}
    kinds = ("CONSTANT_MATCH", "EQUALS_MATCH")
    guards = [g for g in output.output_graph.guards if g.create_fn_name() in kinds]
    places = graph.graph.find_nodes(op="placeholder")
    local = output.output_graph.export_metadata.graph_input_idx_to_local_source
    return Frame(
        graph, seen["mode"], tuple(given),
        {node: _source_name(local[i]) for i, node in enumerate(places) if i in local},
        lambda outputs: run(lambda *_: outputs), seen["changes"],
        tuple(dict.fromkeys(g.name for g in guards)),
        lambda source: _evaluate(source, scope),
    )  # fmt: skip


class _Blank:
    """Stands for a tensor of which the bytecode may still make a subclass."""

    def as_subclass(self, _: type) -> "_Blank":
        return self


def _changes(effects: Any) -> tuple[Change, ...]:
    from torch._dynamo.source import TempLocalSource

    found = []
    for var in effects._get_modified_vars():
        if var.source is None or isinstance(var.source, TempLocalSource):
            continue
        stacks = effects.mutation_user_stacks.get(var) or [()]
        names = tuple(effects.store_attr_mutations.get(var, ()))
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
        return eval(source, {"__builtins__": {"type": type, "dict": dict}}, scope)
    except Exception:  # (a source of Dynamo's own making: nothing of the user's is behind it)
        return NotImplemented


def stack_of_error(error: BaseException) -> tuple[Any, ...]:
    """The lines of the user's code that Dynamo was tracing when it gave up, outermost first."""
    stack = getattr(error, "real_stack", None) or ()
    return tuple(stack) or tuple(traceback.extract_tb(error.__traceback__))


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


def inductor_table() -> dict[Any, Any]:
    """What Inductor replaces operations by before it compiles."""
    from torch._inductor.decomposition import select_decomp_table

    return dict(select_decomp_table())


# six dry compiles (15 s) ask which instructions g++ can emit; with this set none is asked
CHILD_ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}

OPTIONS: dict[str, Any] = {
    "aot_inductor.package": True,
    # pointwise operations are inlined into each of their users until there are this many of
    # them, so that the default, 30 until 2.12 and 50 since, takes time exponential in the length
    # of a chain
    "realize_opcount_threshold": 8,
    "realize_reads_threshold": 8,
    "realize_acc_reads_threshold": 10**6,
    # loops are split at 64 operations by default, and run four times slower
    "max_fusion_size": 10**6,
    "cpp.max_horizontal_fusion_size": 10**6,
    # the number of threads of the compiling process would be written into the code
    "cpp.dynamic_threads": True,
    # the last points, fewer than a vector, would have masked code of their own, on which g++
    # spends four times as long as on all else
    "cpp.enable_loop_tail_vec": False,
    # g++ spends five seconds on what surrounds the kernels of every graph, one less like this
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "aot_inductor.enable_line_tables": False,
    # indices that come from a table of ours would be checked at run time
    "assert_indirect_indexing": False,
}

_MODEL = "model"


def compile_ahead(
    module: GraphModule, inputs: Sequence[Tensor], scratch: Path, **settings: Any
) -> list[Any]:
    """The files of a graph compiled ahead of time; settings go before ours."""
    import torch._inductor
    from torch._inductor.utils import fresh_cache

    wanted = {**OPTIONS, **settings, "aot_inductor.output_path": str(scratch / "graph")}
    if any("index_put" in str(n.target) or "scatter" in str(n.target) for n in module.graph.nodes):
        # 2.13: sums at indices were wrong in a graph whose chains were cut below torch's default
        wanted = {name: value for name, value in wanted.items() if "realize" not in name}
    # 2.11 and 2.12 lack settings that only save time
    known = set(torch._inductor.list_options())
    options = {name: value for name, value in wanted.items() if name in known}
    # torch opens what it finds in its own cache unchecked, and gains nothing from it ahead of time
    with fresh_cache(dir=str(scratch), delete=False):
        files = torch._inductor.aot_compile(module, tuple(inputs), options=options)
    assert isinstance(files, list)
    return files


# what Dynamo gives a backend


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


def has_hooks(module: nn.Module) -> bool:
    """Whether hooks of its own run beside a module."""
    own = vars(module)
    return any(own[name] for name in HOOKS)


def has_global_hooks() -> bool:
    """Whether hooks run beside all modules, which Dynamo does not guard (torch 2.11 to 2.15)."""
    return bool(torch.nn.modules.module._has_any_global_hook())


def compile_by_inductor(graph: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile as `torch.compile` does, backward too, so that all guards are known at once."""
    import torch._functorch.config as functorch
    from torch._inductor.compile_fx import compile_fx

    with functorch.patch(force_non_lazy_backward_lowering=True), _keep_saved():
        return compile_fx(graph, inputs)  # pyright: ignore[reportReturnType]


def _keep_saved() -> AbstractContextManager[Any]:
    """Let no backward pass write over what was saved for it, so that it can run again.

    The setting `donated_buffer` is asked at every backward pass: switched off while compiling only,
    torch refuses `retain_graph` all the more.
    """
    from torch._functorch._aot_autograd import graph_compile

    nothing: Callable[..., list[int]] = lambda *_: []  # noqa: E731
    return mock.patch.object(graph_compile, "collect_bw_donated_buffer_idxs", nothing)


def run_as_written(graph: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile nothing."""
    return graph.forward


@cache
def _mode_switches() -> frozenset[Any]:
    from torch.amp.autocast_mode import _enter_autocast, _exit_autocast
    from torch.autograd.grad_mode import _enter_inference_mode, _exit_inference_mode

    entered = (_enter_autocast, _exit_autocast, _enter_inference_mode, _exit_inference_mode)
    return frozenset({torch._C._set_grad_enabled, *entered})


def is_mode_switch(target: Any) -> bool:
    """Whether a call in Dynamo's graph switches a mode: gradients, inference, autocast."""
    return target in _mode_switches()


def is_transform(target: Any) -> bool:
    """Whether a call in Dynamo's graph belongs to a transform of torch.func."""
    home = str(getattr(target, "__module__", None))
    return home.startswith(("torch._functorch", "torch._C._functorch"))


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes that operations run under and that may be switched inside a graph."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, bool, torch.dtype], ...]
    cached: bool

    @staticmethod
    def now() -> "Modes":
        """Those that are on."""
        kinds = ("cpu", "cuda")
        autocast = [(k, torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in kinds]
        return Modes(
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(), tuple(autocast),
            torch.is_autocast_cache_enabled(),
        )  # fmt: skip

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Switch to these inside, and back; what is inside may switch others than inference."""
        before = Modes.now()
        inference = nullcontext()
        if before.inference != self.inference:
            inference = torch.inference_mode(self.inference)
        with inference, torch.set_grad_enabled(self.grad):
            try:
                self._switch_autocast()
                yield
            finally:
                before._switch_autocast()

    def restore(self, values: Iterable[Any] = ()) -> None:
        """Switch back to these for good, and leave what is still entered of some values."""
        for value in values:
            if isinstance(value, torch._C._InferenceMode):
                value.__exit__(None, None, None)
        torch._C._set_grad_enabled(self.grad)
        self._switch_autocast()

    def _switch_autocast(self) -> None:
        for kind, on, dtype in self.autocast:
            torch.set_autocast_enabled(kind, on)
            torch.set_autocast_dtype(kind, dtype)
        torch.set_autocast_cache_enabled(self.cached)


def ambient() -> tuple[Any, ...]:
    """The modes and settings that operations run under, and that Inductor compiles for."""
    import torch._inductor.config as inductor

    return (
        Modes.now(), torch.get_default_dtype(), torch.get_default_device(),
        torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(),
        inductor.get_hash(),
    )  # fmt: skip


def traced_mode() -> Any:
    """The mode of the fake tensors of the graph that Dynamo has written."""
    from torch._guards import TracingContext

    mode = TracingContext.get().fake_mode
    assert mode is not None
    return mode


def fake_inputs(example: Sequence[Any], places: Iterable[Node]) -> list[Any] | None:
    """What a graph is given, without numbers, as it is before the graph runs.

    None where a tensor is of a class of its own, or autograd knows it and another name of it.
    """
    mode = traced_mode()
    memory = Counter(memory_of(x) for x in example if type(x) in (Tensor, nn.Parameter))
    found: list[Any] = []
    with torch.inference_mode(False), mode:
        for value, place in zip(example, places, strict=True):
            if not isinstance(value, Tensor):
                found.append(value)
                continue
            if type(value) not in (Tensor, nn.Parameter) or value.layout != torch.strided:
                return None
            if value.grad_fn is not None and memory[memory_of(value)] > 1:
                return None
            traced = place.meta.get("example_value")
            alone = memory[memory_of(value)] == 1 and isinstance(traced, Tensor)
            if alone and not is_open(traced) and _is_ordinary(value):
                made = torch.empty_strided(  # a quarter of the time
                    value.shape, value.stride(), dtype=value.dtype, device=value.device
                )
            else:
                made = mode.from_tensor(value).detach()
            made.requires_grad_(value.requires_grad)
            # what is no leaf may be written to
            found.append(made.clone() if value.grad_fn is not None else made)
    return found


def _is_ordinary(tensor: Tensor) -> bool:
    """Whether nothing is to be known of a tensor but its layout, its type and its gradient."""
    odd = tensor._is_view() or tensor.is_inference() or tensor.is_conj() or tensor.is_neg()
    plain = tensor.is_leaf and not tensor.is_quantized
    return plain and not odd and tensor.storage_offset() == 0


def is_apart(results: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether results are tensors of fixed sizes that lie where nothing else does."""
    tensors = [x for x in given if isinstance(x, Tensor)]
    if not all(isinstance(x, Tensor) and not is_open(x) and not x._is_view() for x in results):
        return False
    memory = {*map(memory_of, results), *map(memory_of, tensors)}
    apart = len(memory) == len(results) + len({*map(memory_of, tensors)})
    return apart and all(fake_like(x).stride() == x.stride() for x in results)


def fake_like(tensor: Tensor) -> Tensor:
    """A tensor without numbers that lies as another, which is a result of its own."""
    made = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    return made.requires_grad_().clone() if tensor.requires_grad else made


def memory_of(tensor: Tensor) -> int:
    """What tells the memory of tensors apart, also of those without numbers."""
    return tensor.untyped_storage()._cdata


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


@contextmanager
def fresh_cache() -> Iterator[None]:
    """No code that Inductor compiled earlier is found."""
    from torch._inductor.utils import fresh_cache

    with fresh_cache():
        yield


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A node of Inductor's scheduler: the nodes fused into it, and the lines it computes."""

    name: str
    kind: str
    text: str
    parts: tuple[str, ...]
    origins: tuple[Node, ...]


@dataclass(slots=True)
class Lowering:
    """What Inductor does to a graph up to the fusion of its loops.

    passes: subsystem, name, nodes before and after, of those that changed the graph; constants:
    its name of each tensor that it stores, and the graph's; apart: pairs that it did not fuse, why.
    """

    passes: list[tuple[str, str, int, int]] = field(default_factory=list)
    graph: GraphModule | None = None
    constants: dict[str, str] = field(default_factory=dict)
    folded: list[str] = field(default_factory=list)
    before: list[Scheduled] = field(default_factory=list)
    after: list[Scheduled] = field(default_factory=list)
    apart: dict[tuple[str, str, str], None] = field(default_factory=dict)


class _Lowered(BaseException):
    """Nothing of Inductor's may catch it."""


@contextmanager
def watch_lowering() -> Iterator[Lowering]:
    """Note what a compilation inside does, and end it before any code is written."""
    from torch._inductor.scheduler import Scheduler, WhyNoFuse
    from torch._inductor.virtualized import V
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    seen = Lowering()
    fuse, refuse = Scheduler.fuse_nodes, WhyNoFuse.__call__
    enter, leave = GraphTransformObserver.__enter__, GraphTransformObserver.__exit__
    texts: dict[int, tuple[str, int]] = {}

    def entered(self: Any) -> Any:
        texts[id(self)] = str(self.gm.graph), len(self.gm.graph.nodes)
        return enter(self)

    def left(self: Any, *error: Any) -> Any:
        text, count = texts.pop(id(self))
        if str(self.gm.graph) != text:
            row = self.subsystem or "", self.passname, count, len(self.gm.graph.nodes)
            seen.passes.append(row)
        return leave(self, *error)

    def refused(self: Any, reason: str, *args: Any) -> None:
        refuse(self, reason, *args)
        seen.apart[self.name1, self.name2, reason % args] = None

    def fused(self: Any, nodes: Any) -> Any:
        lowering: Any = V.graph
        seen.graph = lowering.module
        seen.constants = {k: str(lowering.allocated_constant_name[k]) for k in lowering.constants}
        seen.folded = [str(name) for name in lowering.folded_constants]
        seen.before = [_scheduled(node) for node in nodes]
        seen.after = [_scheduled(node) for node in fuse(self, nodes)]
        raise _Lowered

    with (
        mock.patch.object(GraphTransformObserver, "__enter__", entered),
        mock.patch.object(GraphTransformObserver, "__exit__", left),
        mock.patch.object(WhyNoFuse, "__call__", refused),
        mock.patch.object(Scheduler, "fuse_nodes", fused),
    ):
        try:
            yield seen
        except _Lowered:
            return


def _scheduled(node: Any) -> Scheduled:
    parts = node.get_nodes()
    origins = {o: None for p in parts if p.node is not None for o in p.node.get_origins()}
    names = tuple(p.get_name() for p in parts)
    return Scheduled(node.get_name(), type(node).__name__, node.debug_str(), names, tuple(origins))


def write_archive(path: Path, files: list[Any]) -> None:
    """Write one graph that was compiled ahead into an archive of torch's."""
    from torch.export.pt2_archive._package import package_pt2

    package_pt2(str(path), aoti_files={_MODEL: files})


def register_operations(code: str) -> None:
    """Import Inductor's own operations where code names one that is not there, such as prims.fma.

    2.13: its decompositions use them, as that of the gradient of softmax does.
    """
    prims: Any = torch.ops.prims
    if not all(hasattr(prims, name) for name in re.findall(r"torch\.ops\.prims\.(\w+)", code)):
        importlib.import_module("torch._inductor.inductor_prims")


def load_graph(archive: bytes) -> Any:
    """The graph of an archive. Its `boxed_run` takes a list, empties it, and checks nothing.

    The public loader imports the compiler, looks for g++ and reads JSON at every call.
    """
    native: Any = torch._C
    with private_file(archive, ".pt2") as file:
        return native._aoti.AOTIModelPackageLoader(str(file), _MODEL, False, 1, -1)
