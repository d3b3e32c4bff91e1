"""A function or module and an example of its arguments -> Call: Dynamo's graph, flat and named."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.fx import Interpreter

from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.graphs.capture import Captured, Leaf, capture, find_tensors
from ingot.graphs.layout import blank, order_of
from ingot.graphs.sizes import Dynamic, Open, evaluated
from ingot.graphs.spans import find_use
from ingot.graphs.torch_private import (
    Modes,
    buffers_of,
    parameters_of,
    uncompiled,
    without_storage,
)
from ingot.graphs.tree import PLAIN, Tree, flatten
from ingot.train.signature import Argument, Held, Shaped, Signature

__all__ = [
    "Call", "blank_of", "describe_tensor", "find_odd", "held_tensors", "prepare", "renew",
    "split_example",
]  # fmt: skip


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
    primals: tuple[Tensor, ...]
    axes: dict[str, tuple[int, int]] = field(default_factory=dict)
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
            constants={n: repr(value) for n, value in captured.constants.items()},
            places=self.places, modes=self.modes, unnamed=captured.unnamed, **traced,
        )  # fmt: skip

    def run(self, primals: Sequence[Tensor]) -> list[Any]:
        """The leaves of the result; attributes that are bound anew are written to instead."""
        captured = self.captured
        interpreter, modes = Interpreter(captured.graph), Modes.now()
        try:
            outputs = interpreter.run(*map(self.look_up(primals), captured.inputs))
        except BaseException:
            modes.restore(reversed(interpreter.env.values()))
            raise
        find = self.look_up(primals, outputs)
        for name, index, where in captured.written:
            _write(name, find(Leaf("held", name)), outputs[index], where)
        return [*map(find, captured.leaves)]

    def look_up(self, primals: Sequence[Any], outputs: Sequence[Any] = ()) -> Callable[[Leaf], Any]:
        """What an input of the graph, or a leaf of the result, is among these."""
        held = {name: t for h, t in zip(self.held, primals, strict=False) for name in h.names}
        rest = iter(primals[len(self.held) :])
        given = [next(rest) if a.tensor else a.value for a in self.arguments]
        find: dict[str, Callable[[Any], Any]] = {
            "held": lambda x: held[x.name], "constant": lambda x: held[x.name],
            "argument": lambda x: given[x.index], "output": lambda x: outputs[x.index],
            "value": lambda x: x.value, "size": lambda x: evaluated(x.value, self.open.symbols),
        }  # fmt: skip
        return lambda one: find[one.kind](one)


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
    given = [*zip(captured.arguments, captured.axes, strict=True)]
    arguments = tuple(
        Argument(n, describe_tensor(n, x, axes=axes)) if isinstance(x, Tensor)
        else Argument(n, None, x)
        for (n, x), axes in given
    )  # fmt: skip
    axes = [axes for (_, x), axes in given if isinstance(x, Tensor)]
    children = (child for half in captured.takes.children for child in half.children)
    return Call(
        captured=captured, held=held, tensors=tuple(values), arguments=arguments, names=names,
        positional=parameters[0], defaults=parameters[1], tree=Tree("tuple", tuple(children)),
        open=shapes, primals=_make_primals(shapes, held, arguments),
        axes={
            size: (i, axis)
            for i, chosen in reversed([*enumerate(axes)])
            for axis, size in chosen.items()
        },
    )  # fmt: skip


def _make_primals(
    shapes: Open, held: Sequence[Held], arguments: Sequence[Argument]
) -> tuple[Tensor, ...]:
    """Fake tensors of what is held and given: dense, with the axes in the order they lie in."""
    made = []
    for shaped in (*(h.tensor for h in held), *(a.tensor for a in arguments if a.tensor)):
        with shapes.mode:
            made.append(blank_of(shaped, shapes.symbols).requires_grad_(shaped.requires_grad))
    return tuple(made)


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


def find_odd(
    name: str, value: Tensor, fix: str = "pass a plain one, for example x.as_subclass(torch.Tensor)"
) -> list[Problem]:
    """A tensor that cannot be passed to a graph."""
    what = ""
    if type(value) not in (Tensor, nn.Parameter):
        what = f"tensor subclass, {type(value).__name__}"
    elif value.layout != torch.strided:
        what = f"{str(value.layout).removeprefix('torch.')} tensor"
    elif value.is_nested or without_storage(value):
        what = "nested tensor" if value.is_nested else "tensor without storage"
    return [Problem("tensor-subclass", f"'{name}' is a {what}", None, fix)] if what else []


def _refused(path: str, leaf: Any) -> list[Problem]:
    if isinstance(leaf, Tensor):
        return find_odd(path, leaf)
    if type(leaf) in PLAIN:
        return []
    told = f"'{path}' is a {type(leaf).__name__}"
    fix = "pass tensors, numbers and strings, in tuples, lists, dicts and dataclasses"
    return [Problem("wrong-argument", told, None, fix)]


def held_tensors(module: nn.Module | None) -> tuple[tuple[Held, ...], list[Tensor]]:
    """Parameters and buffers, each once, under all their names."""
    kept = module.state_dict(keep_vars=True) if module is not None else {}
    held, groups = [], find_tensors(module)
    fix = "replace it by a plain tensor before tracing"
    raise_if(problem for names, value in groups for problem in find_odd(names[0], value, fix))
    for names, value in groups:
        persistent = any(name in kept for name in names)
        parameter = isinstance(value, nn.Parameter)
        held.append(Held(names, describe_tensor(names[0], value), parameter, persistent))
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
    primals = _make_primals(shapes, held, arguments)
    return replace(call, held=held, arguments=arguments, open=shapes, primals=primals)


def describe_tensor(
    name: str, value: Tensor, shapes: Open | None = None, *, differ: bool | None = None,
    axes: Mapping[int, str] = {},
) -> Shaped:  # fmt: skip
    """A tensor without its numbers, its open sizes by their names; `differ` if it is known.

    axes: the open sizes where they are no symbols.
    """
    known = (axes.get(i, n) for i, n in enumerate(value.shape))
    sizes = tuple(n if shapes is None else shapes.text(n) for n in known)
    dtype = str(value.dtype).removeprefix("torch.")
    wanted = value.requires_grad if differ is None else differ
    return Shaped(name, sizes, dtype, value.device.type, wanted, order_of(value))


def blank_of(shaped: Shaped, sizes: Mapping[str, Any]) -> Tensor:
    """A tensor of any numbers that lies as described."""
    shape = [evaluated(n, sizes) for n in shaped.sizes]
    return blank(shape, shaped.order, getattr(torch, shaped.dtype), shaped.device)


def _write(name: str, given: Tensor, now: Any, where: Span | None) -> None:
    """A tensor that is bound anew is as good as one that was written to."""
    if now.shape != given.shape or now.dtype != given.dtype:
        raise IngotError([Problem(
            "reshaped-input", f"'{name}' becomes another shape or type during the call",
            where, "keep shapes and types of parameters and buffers fixed",
        )])  # fmt: skip
    with torch.set_grad_enabled(now.requires_grad and not given.requires_grad):
        given.copy_(now)
