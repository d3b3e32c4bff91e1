"""A module and an example -> the graph it runs, in which every block is one call.

The module runs once on tensors without numbers; what its Python decides then stays decided.
"""

import threading
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn

from ingot.errors import IngotError, Problem, Span
from ingot.graphs import torch_private
from ingot.graphs.torch_private import pytree
from ingot.regions import operation
from ingot.regions.mark import CAPTURES
from ingot.regions.plan import Bound, StateInfo, TensorInfo
from ingot.regions.sizes import Sizes
from ingot.regions.state import Changed, State, lifted, state_infos, state_of
from ingot.regions.structure import structure, value_key

__all__ = ["LOCK", "Call", "Captured", "Example", "captured", "translated"]

LOCK = threading.RLock()
"""Held while a module's tensors are replaced by others."""

Constant = tuple[int, bool | int | float | str | None]


@dataclass(frozen=True, slots=True)
class Example:
    """What a module is called with: tensors, the other values, and how all of it is nested."""

    tensors: tuple[Tensor, ...]
    constants: tuple[tuple[int, Any], ...]
    tree: pytree.TreeSpec
    infos: tuple[TensorInfo, ...]
    hints: Mapping[str, int]

    @property
    def sizes(self) -> tuple[Bound, ...]:
        """Where each named size is seen first."""
        return bounds(self.infos)


def bounds(infos: Sequence[TensorInfo]) -> tuple[Bound, ...]:
    """Where each named size is seen first."""
    found: dict[str, Bound] = {}
    for i, info in enumerate(infos):
        for axis, size in enumerate(info.shape):
            if isinstance(size, str):
                found.setdefault(size, Bound(size, i, axis))
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a block or of a marked function.

    key: equal for calls that one compilation serves, up to the shapes of tensors.
    """

    place: str
    name: str
    key: Hashable
    target: Callable[..., Any]
    state: tuple[State, ...]
    constants: tuple[tuple[int, Any], ...]
    tree: pytree.TreeSpec
    outputs: int

    def run(self, *flat: Tensor) -> tuple[Tensor, ...]:
        """The target on other state and on tensors; its tensors only."""
        count = len(self.state)
        args, kwargs = nested(flat[count:], self.constants, self.tree)
        if not isinstance(self.target, nn.Module):
            result = self.target(*args, **kwargs)
        else:
            with lifted(self.target, self.state, flat[:count]):
                result = self.target(*args, **kwargs)
        return tuple(x for x in pytree.tree_leaves(result) if isinstance(x, Tensor))


@dataclass(frozen=True, slots=True)
class Captured:
    """The graph of a module: its state, then its inputs; block calls are numbered."""

    graph: fx.GraphModule
    state: tuple[State, ...]
    infos: tuple[StateInfo, ...]
    sizes: Sizes
    calls: tuple[Call, ...]
    returned: tuple[Constant, ...]
    output_tree: pytree.TreeSpec


def nested(
    tensors: Sequence[Any], constants: Sequence[tuple[int, Any]], tree: pytree.TreeSpec
) -> Any:
    """Tensors and other values put back in their places."""
    leaves: list[Any] = list(tensors)
    for index, value in constants:
        leaves.insert(index, value)
    return pytree.tree_unflatten(leaves, tree)


def captured(
    module: nn.Module, example: Example, blocks: Mapping[str, nn.Module], *, grad: bool
) -> Captured:
    """Run a module once on tensors without numbers, and record it."""
    state = state_of(module)
    sizes = Sizes(example.hints)
    fakes = [sizes.state(s.tensor, grad=grad and s.tensor.requires_grad) for s in state]
    inputs = [
        sizes.tensor(i.shape, t.dtype, i.device, grad=False)
        for i, t in zip(example.infos, example.tensors, strict=True)
    ]
    recorder = _Recorder({p: _Block(b, structure(b), state_of(b)) for p, b in blocks.items()})
    found: list[Any] = []

    def run(*flat: Tensor) -> tuple[Tensor, ...]:
        args, kwargs = nested(flat[len(state) :], example.constants, example.tree)
        with lifted(module, state, flat[: len(state)]), recorder.watching(grad=grad):
            leaves, tree = pytree.tree_flatten(module(*args, **kwargs))
        found[:] = leaves, tree
        return tuple(x for x in leaves if isinstance(x, Tensor))

    with LOCK, torch.set_grad_enabled(grad), translated(type(module).__qualname__), sizes.mode:
        graph = torch_private.trace_values(run, [*fakes, *inputs])
    leaves, tree = found
    others = tuple((i, x) for i, x in enumerate(leaves) if not isinstance(x, Tensor))
    _check_returned(others)
    infos = state_infos(module, state)
    return Captured(graph, state, infos, sizes, tuple(recorder.calls), others, tree)


def _check_returned(others: Sequence[tuple[int, Any]]) -> None:
    odd = [x for _, x in others if not isinstance(x, (bool, int, float, str, type(None)))]
    if odd:
        raise IngotError([Problem(
            "region-output", f"the module returns a '{type(odd[0]).__qualname__}'", None,
            "return tensors, numbers, words or None, nested in tuples, lists and dictionaries",
        )])  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Block:
    module: nn.Module
    key: Hashable
    state: tuple[State, ...]


@dataclass(slots=True)
class _Recorder:
    """Takes the calls of blocks while a module runs."""

    blocks: Mapping[str, _Block]
    calls: list[Call] = field(default_factory=list)
    known: dict[Hashable, tuple[Any, ...]] = field(default_factory=dict)
    busy: bool = False

    @contextmanager
    def watching(self, *, grad: bool) -> Iterator[None]:
        """Stand in front of blocks, and of marked functions; see what a trace would lose."""
        own = {place: vars(block.module).get("forward") for place, block in self.blocks.items()}

        def stand(place: str, block: _Block) -> None:
            def forward(*args: Any, **kwargs: Any) -> Any:
                leave(place, block)
                try:
                    return self.take(place, block.module, block.key, block.state, args, kwargs)
                finally:
                    stand(place, block)

            vars(block.module)["forward"] = forward

        def leave(place: str, block: _Block) -> None:
            del vars(block.module)["forward"]
            if own[place] is not None:
                vars(block.module)["forward"] = own[place]

        for place, block in self.blocks.items():
            stand(place, block)
        CAPTURES.append(self.function)
        try:
            with torch_private.see_lost_gradients(self.lost) if grad else nullcontext():
                yield
        finally:
            CAPTURES.pop()
            for place, block in self.blocks.items():
                leave(place, block)

    def lost(self, what: str) -> None:
        """Refuse what changes gradients outside of blocks: the trace there holds values only."""
        if not self.busy:
            raise IngotError([Problem(
                "region-gradient", f"{what} is used between the blocks, where its effect on"
                " gradients would be lost", None,
                "make the module that uses it a block, mark a function that does with"
                " @ingot.regions.noinline, or compile under torch.no_grad()",
            )])  # fmt: skip

    def function(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A call of a marked function."""
        name = getattr(function, "__qualname__", "function")
        return self.take(name, function, value_key(function), (), args, kwargs)

    def take(
        self, place: str, target: Callable[..., Any], key: Hashable, state: tuple[State, ...],
        args: Any, kwargs: Any,
    ) -> Any:  # fmt: skip
        """Record a call, and give tensors like those that it gives."""
        if self.busy:
            return target(*args, **kwargs)
        leaves, tree = pytree.tree_flatten((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        constants = tuple((i, x) for i, x in enumerate(leaves) if not isinstance(x, Tensor))
        _check_constants(place, constants)
        whole = (key, str(tree), value_key(constants))
        shapes = tuple((str(t.dtype), str(t.device), str(tuple(t.shape))) for t in tensors)
        if (whole, shapes) not in self.known:
            self.known[whole, shapes] = self.tried(target, args, kwargs)
        gives, others, output_tree = self.known[whole, shapes]
        name = type(target).__qualname__ if isinstance(target, nn.Module) else place
        call = Call(place, name, whole, target, state, constants, tree, len(gives))
        self.calls.append(call)
        return nested(operation.called(tensors, len(self.calls) - 1, gives), others, output_tree)

    def tried(self, target: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
        """The sizes, strides, precisions and devices of what a target gives, unrecorded."""
        self.busy = True
        try:
            with torch_private.hide_from_trace():
                leaves, tree = pytree.tree_flatten(target(*args, **kwargs))
        finally:
            self.busy = False
        gives = [(x.shape, x.stride(), x.dtype, x.device) for x in leaves if isinstance(x, Tensor)]
        others = tuple((i, x) for i, x in enumerate(leaves) if not isinstance(x, Tensor))
        return gives, others, tree


def _check_constants(place: str, constants: Sequence[tuple[int, Any]]) -> None:
    for _, value in constants:
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise IngotError([Problem(
                "region-argument", f"the block '{place}' is called with a size that may vary",
                None, "let the block read it from the shape of a tensor that it is given",
            )])  # fmt: skip


@contextmanager
def translated(name: str) -> Iterator[None]:
    """What torch says of code that cannot be captured, with the user's line."""
    try:
        yield
    except IngotError:
        raise
    except Changed as error:
        raise IngotError([Problem(
            "region-sets-state", f"a call of '{name}' sets {error}, which compiled code would not",
            None, "change a buffer in place (copy_, add_), or return the value",
        )]) from error  # fmt: skip
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise IngotError([Problem(
            "region-untraceable", f"'{name}' cannot be captured: {said}", _place(error),
            "decide on shapes and attributes, not on values of tensors; register tensors as"
            " buffers; or leave what does this out of the compiled module",
        )]) from error  # fmt: skip


def _place(error: BaseException) -> Span | None:
    """The last line of the user's that an error passed through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_theirs(f.filename)]
    if not frames:
        return None
    last = frames[-1]
    return Span(last.filename, last.lineno or 0, block=last.name, text=last.line or "")


_OURS = (str(torch_private.FOLDER), str(Path(__file__).parents[1]))


def _is_theirs(file: str) -> bool:
    return file.endswith(".py") and not file.startswith(_OURS)
