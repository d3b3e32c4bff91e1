"""What regions use of torch that torch does not promise; seen in torch 2.13.0.

Each has a test in tests/regions/test_torch_facts.py that fails once it is no longer so.
"""

import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, fx, nn
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.overrides import TorchFunctionMode

__all__ = [
    "Sizes", "called", "compiled", "forget", "fresh_cache", "graph_of", "one_call", "quietly",
    "region", "same_tensors", "seeing",
]  # fmt: skip

_LIBRARY = torch.library.Library("ingot", "FRAGMENT")
_LIBRARY.define("region(Tensor[] values, int site) -> Tensor[]")

region = torch.ops.ingot.region.default
"""A call in a graph that stands for a block: its values, and which call it is."""

_GIVES: list[Sequence[tuple[Any, Any, torch.dtype, torch.device]]] = []


@torch.library.register_fake("ingot::region", lib=_LIBRARY)
def _region(values: list[Tensor], site: int) -> list[Tensor]:
    return [
        torch.empty_strided(size, stride, dtype=dtype, device=device)
        for size, stride, dtype, device in _GIVES[-1]
    ]


def called(
    values: list[Tensor], site: int, gives: Sequence[tuple[Any, Any, torch.dtype, torch.device]]
) -> list[Tensor]:
    """Record a block's call; its results have the sizes, strides, precisions and devices given."""
    _GIVES.append(gives)
    try:
        return region(values, site)
    finally:
        _GIVES.pop()


def quietly() -> AbstractContextManager[Any]:
    """What runs inside is not recorded by a trace that is under way."""
    return disable_proxy_modes_tracing()


def graph_of(
    function: Callable[..., Any], mode: FakeTensorMode, inputs: list[Any]
) -> fx.GraphModule:
    """The operations that a function of tensors runs on tensors without numbers.

    2.13: recurrent networks, unless they are taken apart in Python, read open sizes as numbers.
    """
    from torch._dispatch.python import enable_python_dispatcher

    with mode, enable_python_dispatcher():
        return make_fx(function, tracing_mode="real")(*inputs)


class Sizes:
    """Sizes that may vary, by their names, for one trace."""

    def __init__(self, hints: Mapping[str, int]) -> None:
        from torch._dynamo.source import ConstantSource

        self.env = ShapeEnv()
        self.of: dict[str, Any] = {}
        for name, hint in hints.items():
            source = ConstantSource(f"size_{name}")
            symbol = self.env.create_symbol(hint, source, DimDynamic.DYNAMIC)
            self.of[name] = self.env.create_symintnode(symbol, hint=hint, source=source)
        self.named = {str(size.node.expr): name for name, size in self.of.items()}
        self.mode = FakeTensorMode(shape_env=self.env)

    def tensor(
        self, shape: Sequence[int | str], dtype: torch.dtype, device: str, *, grad: bool
    ) -> Tensor:
        """A row-major tensor without numbers."""
        with self.mode:
            sizes = [self.of[s] if isinstance(s, str) else s for s in shape]
            return torch.empty(sizes, dtype=dtype, device=device).requires_grad_(grad)

    def state(self, tensor: Tensor, *, grad: bool) -> Tensor:
        """A tensor of fixed sizes without its numbers."""
        return self.mode.from_tensor(tensor.detach(), static_shapes=True).requires_grad_(grad)

    def guards(self) -> tuple[str, ...]:
        """What a trace has taken for granted of the sizes, as Python over their names."""
        import sympy
        from torch.utils._sympy.printers import PythonPrinter

        names = {s: sympy.Symbol(self.named[str(s)], integer=True, positive=True)
                 for guard in self.env.guards for s in guard.expr.free_symbols
                 if str(s) in self.named}  # fmt: skip
        said = (PythonPrinter().doprint(guard.expr.xreplace(names)) for guard in self.env.guards)
        return tuple(dict.fromkeys(said))

    def fixed(self) -> dict[str, str]:
        """The named sizes that a trace has fixed: to a number, or to another size."""
        found = {self.named[str(s)]: str(e) for s, e in self.env.replacements.items()
                 if str(s) in self.named}  # fmt: skip
        return {name: self.named.get(said, said) for name, said in found.items()}


class _Seeing(TorchFunctionMode):
    def __init__(self, lost: Callable[[str], None]) -> None:
        super().__init__()
        self.lost = lost

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch._C._set_grad_enabled and not args[0]:
            self.lost("torch.no_grad()")
        return func(*args, **(kwargs or {}))


@contextmanager
def seeing(lost: Callable[[str], None]) -> Iterator[None]:
    """Tell of what a trace of values does not hold: a derivative of one's own, or none at all.

    2.13: `make_fx` runs through both without a word.
    """
    # 2.13: all calls of `apply` ask this, also those of an `apply` that was kept under another name
    asked = torch.autograd.function._is_setup_context_defined

    def ask(setup_context: Any) -> bool:
        kind = sys._getframe(1).f_locals.get("cls")
        lost(f"the autograd function '{getattr(kind, '__qualname__', kind)}'")
        return asked(setup_context)

    with mock.patch.object(torch.autograd.function, asked.__name__, ask), _Seeing(lost):
        yield


def one_call(function: Callable[..., Any], inputs: int, outputs: int) -> fx.GraphModule:
    """A graph whose only operation is a Python function of tensors; a compiler looks inside."""
    held = [function]

    def call(*given: Any) -> Any:
        return held[0](*given)

    call.forget = held.clear  # pyright: ignore[reportFunctionMemberAccess]
    graph = fx.Graph()
    given = tuple(graph.placeholder(f"x{i}") for i in range(inputs))
    result = graph.call_function(call, given)
    graph.output(tuple(graph.call_function(operator.getitem, (result, i)) for i in range(outputs)))
    return fx.GraphModule(nn.Module(), graph)


def compiled(
    graph: fx.GraphModule, mode: FakeTensorMode, inputs: list[Tensor], *, grad: bool
) -> Callable[..., Sequence[Tensor]]:
    """A graph compiled in process, its backward too; the result checks nothing.

    2.13: unlike `torch.compile` it has no guards, and none are asked at a call.
    """
    import torch._functorch.config as functorch
    from torch._inductor.compile_fx import compile_fx

    ahead = functorch.patch(force_non_lazy_backward_lowering=True)
    with ahead, tracing(TracingContext(mode)), torch.set_grad_enabled(grad):
        return compile_fx(graph, inputs)  # pyright: ignore[reportReturnType]


def forget(graph: fx.GraphModule) -> None:
    """Let go of the function of a graph of one call: 2.13 keeps the graph with what it compiled."""
    for node in graph.graph.nodes:
        getattr(node.target, "forget", lambda: None)()


@contextmanager
def fresh_cache() -> Iterator[None]:
    """No compiled code is found from earlier."""
    from torch._inductor.utils import fresh_cache

    with fresh_cache():
        yield


def same_tensors(tensors: Sequence[Tensor]) -> Callable[..., bool]:
    """A check, in C, that tensors have the shape, stride, precision and device they have now."""
    from torch._C._dynamo.guards import TensorGuards

    fixed: Any = TensorGuards(
        *tensors,
        dynamic_dims_sizes=[list(t.shape) for t in tensors],  # pyright: ignore
        dynamic_dims_strides=[list(t.stride()) for t in tensors],  # pyright: ignore
    )
    return fixed.check
