"""Fake tensors and their open sizes."""

import logging
import operator
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.fx import Node

__all__ = [
    "any_size", "equal_sizes", "expression_of", "fake_inputs", "fake_like", "fake_mode",
    "fake_tensor", "frames_of", "free_convolutions", "guards_of", "hint_of", "is_apart",
    "is_fake", "is_open", "memory_of", "open_sizes", "print_expression", "reads_values",
    "refuses_generator", "silence_fakes", "simplify_expression", "substitute_sizes",
    "traced_mode", "without_saved_hooks", "write_recurrences", "writes_of",
]  # fmt: skip


def is_open(value: Any) -> bool:
    """Whether a size, or a size or stride of a tensor, may vary."""
    sizes = (*value.shape, *value.stride()) if isinstance(value, Tensor) else (value,)
    return any(isinstance(size, torch.SymInt) for size in sizes)


def is_fake(value: Tensor) -> bool:
    """Whether a tensor has no numbers, as while a graph is captured."""
    from torch._subclasses.fake_tensor import is_fake as found

    return found(value)


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
    with any_size():
        for name, hint in hints.items():
            source = ConstantSource(f"size_{name}")
            symbol = env.create_symbol(hint, source, DimDynamic.DYNAMIC)
            found[name] = env.create_symintnode(symbol, hint=hint, source=source)
    return found


@contextmanager
def any_size() -> Iterator[None]:
    """Open sizes may be 0 or 1 inside, which are otherwise assumed away without a guard.

    2.11 to 2.15: with that setting a size may be 0, and its symbol is still positive, so that sympy
    decides `size > 0` without asking. The lock is Dynamo's own.
    """
    from torch._dynamo.convert_frame import compile_lock
    from torch.fx.experimental import _config, symbolic_shapes

    shapes: Any = _config
    symbols: Any = symbolic_shapes
    make = symbols.make_symbol

    def make_symbol(*args: Any, **kwargs: Any) -> Any:
        return make(*args, **{"nonnegative" if k == "positive" else k: kwargs[k] for k in kwargs})

    with (
        compile_lock, shapes.patch(backed_size_oblivious=True),
        mock.patch.object(symbols, "make_symbol", make_symbol),
    ):  # fmt: skip
        yield


@contextmanager
def write_recurrences(learns: bool) -> Iterator[None]:
    """Let recurrent networks be written out right. Within `free_convolutions`.

    Torch drops nothing between layers (2.11 to 2.15), and takes oneDNN's LSTM, which keeps nothing
    for a backward pass, unless the first argument wants a gradient.
    """
    from torch._decomp import decompositions

    whole: Callable[..., Any] = decompositions._rnn_helper

    def run_layers(
        x: Tensor, hidden: Any, params: Any, biases: bool, layers: int, dropout: float,
        train: bool, both: bool, turned: bool, layer: Any,
    ) -> tuple[Tensor, list[Any]]:  # fmt: skip
        if not (train and dropout):
            return whole(x, hidden, params, biases, layers, dropout, train, both, turned, layer)
        out = x.transpose(0, 1) if turned else x
        step = 2 if both else 1
        ends: list[Any] = []
        for at in range(0, layers * step, step):
            out = torch.dropout(out, dropout, True) if at else out
            own = hidden[at : at + step], params[at : at + step]
            out, end = whole(out, *own, biases, 1, 0.0, True, both, False, layer)
            ends += end
        return out.transpose(0, 1) if turned else out, ends

    one_dnn = mock.patch.object(torch._C, "_get_mkldnn_enabled", lambda: False)
    with (
        mock.patch.object(decompositions, "_rnn_helper", run_layers),
        one_dnn if learns else nullcontext(),
    ):
        yield


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


writes_of: Callable[[Tensor], int] = operator.attrgetter("_version")
"""How often a tensor was written to in place."""


def equal_sizes(mode: Any) -> dict[Any, Any]:
    """The symbols that a trace has fixed, without a word, and what to: a number, or another."""
    return dict(mode.shape_env.replacements)


def without_saved_hooks() -> AbstractContextManager[None]:
    """Let no hook of the user's see what autograd saves while fake tensors are traced."""
    from torch._dynamo.utils import _disable_saved_tensors_hooks_during_tracing

    return _disable_saved_tensors_hooks_during_tracing()


@contextmanager
def silence_fakes() -> Iterator[None]:
    """Let torch print no traceback for an operation that refuses fake tensors: we tell it."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    thread = threading.get_ident()

    def others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    log.addFilter(others)
    try:
        yield
    finally:
        log.removeFilter(others)


def guards_of(mode: Any) -> list[Any]:
    """The comparisons of sizes that a trace has decided, each with an `expr` of sympy."""
    return list(mode.shape_env.guards)


def simplify_expression(mode: Any, expression: Any) -> Any:
    """An expression of sizes with all that a trace knows of them."""
    return mode.shape_env.simplify(expression)


def frames_of(guard: Any) -> tuple[Any, Any]:
    """Where a comparison of sizes was made: the user's line if it is known, and torch's view."""
    return guard.sloc.maybe_user_loc, guard.sloc.framework_loc


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
