"""A function or module and an example of its arguments -> Call: Dynamo's graph, flat and named."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.fx import Interpreter

from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.graphs.capture import Captured, capture, find_tensors
from ingot.graphs.layout import blank, order_of
from ingot.graphs.sizes import Dynamic, Open, evaluated
from ingot.graphs.spans import find_use
from ingot.graphs.torch_private import (
    Modes,
    autocast_now,
    buffers_of,
    parameters_of,
    uncompiled,
    without_storage,
)
from ingot.graphs.tree import PLAIN, Tree, flatten
from ingot.train.signature import Argument, Held, Shaped, Signature

__all__ = [
    "Call",
    "autocast_now",
    "describe_tensor",
    "held_tensors",
    "plain_tensor",
    "prepare",
    "renew",
    "split_example",
]


@dataclass(frozen=True, slots=True)
class Call:
    """A captured graph that is run with flat tensors, and fakes of these, in symbols of `open`.

    Primals are what the module holds, plain attributes and constants included, then the arguments.
    """

    captured: Captured
    held: tuple[Held, ...]
    tensors: tuple[Tensor, ...]
    arguments: tuple[Argument, ...]
    names: tuple[str, ...]
    positional: tuple[str, ...]
    defaults: dict[str, Any]
    tree: Tree
    open: Open
    axes: dict[str, tuple[int, int]]
    primals: tuple[Tensor, ...]
    places: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the function or of the module's class."""
        return self.captured.name

    def sign(self, **traced: Any) -> Signature:
        """What a call takes, with what tracing it has told."""
        captured = self.captured
        return Signature(
            name=self.name, training=captured.training, held=self.held, arguments=self.arguments,
            names=self.names, positional=self.positional, defaults=self.defaults,
            tree_in=self.tree, tree_out=captured.tree, sizes=self.axes, autocast=captured.autocast,
            constants={c.name: repr(c.value) for c in captured.constants}, places=self.places,
            modes=self.modes, unnamed=captured.unnamed, **traced,
        )  # fmt: skip

    def run(self, primals: Sequence[Tensor]) -> list[Any]:
        """The leaves of the result; attributes that are bound anew are written to instead."""
        captured = self.captured
        held = {name: t for h, t in zip(self.held, primals, strict=False) for name in h.names}
        rest = iter(primals[len(self.held) :])
        given = [next(rest) if a.tensor else a.value for a in self.arguments]
        values = {
            "held": lambda i: held[i.name], "constant": lambda i: held[i.name],
            "argument": lambda i: given[i.index],
            "size": lambda i: evaluated(i.value, self.open.symbols),
        }  # fmt: skip
        interpreter, modes = Interpreter(captured.graph), Modes.now()
        try:
            outputs = interpreter.run(*(values[i.kind](i) for i in captured.inputs))
        except BaseException:
            modes.restore(reversed(interpreter.env.values()))
            raise
        for name, index, where in captured.written:
            _write(name, held[name], outputs[index], where)
        leaves = {
            "output": lambda x: outputs[x.index], "argument": lambda x: given[x.index],
            "held": lambda x: held[x.name], "value": lambda x: x.value,
        }  # fmt: skip
        return [leaves[leaf.kind](leaf) for leaf in captured.leaves]


def prepare(
    function: Callable[..., Any],
    example: Any,
    dynamic: Dynamic = None,
    *,
    one_of_several: bool = False,
) -> Call:
    """Capture a call; open sizes become symbols.

    Where it is one of several examples, `dynamic` may name arguments that it does not have, and its
    open sizes of 0 and 1 are fixed.
    """
    source: Callable[..., Any] = uncompiled(function)
    positional, keyword = split_example(example)
    parameters, defaults, named = _parameters(source, len(positional))
    names = (*parameters[: len(positional)], *keyword)
    absent = {name: value for name, value in defaults.items() if name not in names}
    nested = [*positional, *keyword.values()]
    raise_if(
        problem
        for name, value in zip(names, nested, strict=True)
        for path, leaf in flatten(value)[0]
        for problem in _refused(name + path, leaf)
    )
    module = source if isinstance(source, nn.Module) else None
    held, values = held_tensors(module)
    unnamed = [n for n in keyword if named is not None and n not in named]
    captured = capture(source, positional, keyword, dynamic, names, one_of_several, unnamed)
    found = {name for h in held for name in h.names}
    others = {i.name: i.value for i in captured.inputs if i.kind in ("held", "constant")}
    returned = [leaf.name for leaf in captured.leaves if leaf.kind == "held"]
    for name in (*returned, *(name for name, *_ in captured.written)):
        others.setdefault(name, attrgetter(name)(source))
    extra = {name: value for name, value in others.items() if name not in found}
    raise_if(_hidden(extra, captured))
    held += tuple(Held((n,), describe_tensor(n, v), False, False) for n, v in extra.items())
    call = _prepared(captured, names, (parameters, absent), held, [*values, *extra.values()])
    return call if module is None else replace(call, **_describe_modules(module))


def _describe_modules(module: nn.Module) -> dict[str, tuple[str, ...]]:
    """The names of all tensors in the order of the modules, and the modules of another mode."""
    parts = [*module.named_modules(remove_duplicate=False)]
    return {
        "places": tuple(
            f"{path}.{name}".lstrip(".")
            for path, part in parts
            for name in (*parameters_of(part), *buffers_of(part))
        ),
        "modes": tuple(path for path, part in parts if part.training != module.training),
    }


def _prepared(
    captured: Captured, names: tuple[str, ...],
    parameters: tuple[tuple[str, ...], dict[str, Any]],
    held: tuple[Held, ...], values: list[Tensor],
) -> Call:  # fmt: skip
    shapes = Open(captured.open)
    tensors = [
        (n, x, axes)
        for (n, x), axes in zip(captured.arguments, captured.axes, strict=True)
        if isinstance(x, Tensor)
    ]
    fakes = [_fake(shapes, value, {}) for value in values]
    fakes += [_fake(shapes, x, axes) for _, x, axes in tensors]
    inputs = iter(fakes[len(values) :])
    return Call(
        captured=captured,
        held=held,
        tensors=tuple(values),
        arguments=tuple(
            Argument(n, describe_tensor(n, next(inputs), shapes))
            if isinstance(x, Tensor)
            else Argument(n, None, x)
            for n, x in captured.arguments
        ),
        names=names,
        positional=parameters[0],
        defaults=parameters[1],
        tree=Tree(
            "tuple", tuple(child for half in captured.takes.children for child in half.children)
        ),
        open=shapes,
        axes={
            size: (i, axis)
            for i, (_, _, chosen) in reversed(list(enumerate(tensors)))
            for axis, size in chosen.items()
        },
        primals=tuple(fakes),
    )


def split_example(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and the named arguments that an example stands for."""
    if isinstance(example, Mapping):
        return (), dict(example)
    if isinstance(example, tuple | list):
        return tuple(example), {}
    return (example,), {}


def _parameters(
    function: Callable[..., Any], count: int
) -> tuple[tuple[str, ...], dict[str, Any], set[str] | None]:
    """The names of positional parameters, defaults that are plain values, and all names.

    The last where `**kwargs` takes others.
    """
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        found = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        found = []
    single = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [p.name for p in found if p.kind in single]
    known += [f"argument{i}" for i in range(len(known), count)]
    defaults = {p.name: p.default for p in found if type(p.default) in PLAIN}
    more = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found)
    return tuple(known), defaults, {p.name for p in found} if more else None


def plain_tensor(value: Tensor) -> str | None:
    """Why a tensor cannot be passed to a graph, if it cannot."""
    if type(value) not in (Tensor, nn.Parameter):
        return f"a tensor subclass, {type(value).__name__}"
    if value.layout != torch.strided:
        return f"a {str(value.layout).removeprefix('torch.')} tensor"
    if value.is_nested:
        return "a nested tensor"
    if without_storage(value):
        return "a tensor without storage"
    return None


def _refused(path: str, leaf: Any) -> list[Problem]:
    if isinstance(leaf, Tensor):
        why = plain_tensor(leaf)
        if why is None:
            return []
        fix = "pass a plain strided tensor, for example x.as_subclass(torch.Tensor)"
        return [Problem("tensor-subclass", f"'{path}' is {why}", None, fix)]
    if type(leaf) in PLAIN:
        return []
    told = f"'{path}' is a {type(leaf).__name__}"
    fix = "pass tensors, numbers and strings, in tuples, lists, dicts and dataclasses"
    return [Problem("wrong-argument", told, None, fix)]


def held_tensors(module: nn.Module | None) -> tuple[tuple[Held, ...], list[Tensor]]:
    """Parameters and buffers, each once, under all their names."""
    kept = module.state_dict(keep_vars=True) if module is not None else {}
    held, problems, groups = [], [], find_tensors(module)
    for names, value in groups:
        why = plain_tensor(value)
        if why is not None:
            fix = "replace it by a plain tensor before tracing"
            problems.append(Problem("tensor-subclass", f"'{names[0]}' is {why}", None, fix))
            continue
        persistent = any(name in kept for name in names)
        parameter = isinstance(value, nn.Parameter)
        held.append(Held(names, describe_tensor(names[0], value), parameter, persistent))
    raise_if(problems)
    return tuple(held), [value for _, value in groups]


def _hidden(tensors: Mapping[str, Tensor], captured: Captured) -> Iterator[Problem]:
    places = captured.graph.graph.find_nodes(op="placeholder")
    read = {i.name: node for i, node in zip(captured.inputs, places, strict=True)}
    for name, value in tensors.items():
        if value.requires_grad:
            span = find_use(read[name]) if name in read else None
            told = f"'{name}' asks for a gradient and is no argument"
            fix = "pass it as an argument, or make it a parameter of a module"
            yield Problem("hidden-parameter", told, span or captured.place, fix)


def _fake(shapes: Open, value: Tensor, axes: Mapping[int, str]) -> Tensor:
    """The same tensor without numbers; dense, with the axes in the order they lie in memory."""
    sizes = [shapes.symbols[axes[i]] if i in axes else n for i, n in enumerate(value.shape)]
    with shapes.mode:
        return blank(sizes, order_of(value), value.dtype, value.device).requires_grad_(
            value.requires_grad
        )


def renew(call: Call, needs: Sequence[bool]) -> Call:
    """The same call in symbols of its own, with gradients of some of its primals."""
    shapes = Open(call.captured.open)
    wanted = iter(needs)

    def ask(shaped: Shaped) -> Shaped:
        return msgspec.structs.replace(shaped, requires_grad=next(wanted))

    held = tuple(msgspec.structs.replace(h, tensor=ask(h.tensor)) for h in call.held)
    arguments = tuple(
        msgspec.structs.replace(a, tensor=ask(a.tensor)) if a.tensor else a for a in call.arguments
    )
    primals = []
    for shaped in (*(h.tensor for h in held), *(a.tensor for a in arguments if a.tensor)):
        sizes = [evaluated(n, shapes.symbols) for n in shaped.sizes]
        with shapes.mode:
            fake = blank(sizes, shaped.order, getattr(torch, shaped.dtype), shaped.device)
        primals.append(fake.requires_grad_(shaped.requires_grad))
    return replace(call, held=held, arguments=arguments, open=shapes, primals=tuple(primals))


def describe_tensor(
    name: str, value: Tensor, shapes: Open | None = None, *, differ: bool | None = None
) -> Shaped:
    """A tensor without its numbers, its open sizes by their names; `differ` if it is known."""
    sizes = tuple(n if shapes is None else shapes.text(n) for n in value.shape)
    dtype = str(value.dtype).removeprefix("torch.")
    wanted = value.requires_grad if differ is None else differ
    return Shaped(name, sizes, dtype, value.device.type, wanted, order_of(value))


def _write(name: str, given: Tensor, now: Any, where: Span | None) -> None:
    """A tensor that is bound anew is as good as one that was written to."""
    if now.shape != given.shape or now.dtype != given.dtype:
        raise IngotError([Problem(
            "reshaped-input", f"'{name}' becomes another shape or type during the call",
            where, "keep shapes and types of parameters and buffers fixed",
        )])  # fmt: skip
    with torch.set_grad_enabled(now.requires_grad and not given.requires_grad):
        given.copy_(now)
