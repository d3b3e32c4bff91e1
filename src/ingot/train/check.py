"""A call held against its signature: a graph does not notice a wrong size, type or device."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.errors import Problem, did_you_mean, raise_if
from ingot.graphs.calls import layouts_of
from ingot.graphs.sizes import evaluated, holds, names_told
from ingot.graphs.torch_private import autocast_now
from ingot.graphs.tree import TreeMismatch, leaves_like
from ingot.train.call import find_odd
from ingot.train.signature import Argument, Shaped, Signature

__all__ = ["bind", "is_same", "look_of", "out_of_bounds", "overlaps", "sizes_of"]

Problems = list[Problem]


def bind(
    signature: Signature, arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], Problems]:
    """The leaves of the arguments, or why they are not nested as they were when traced."""
    values, problems = _order(signature, arguments, named)
    if problems:
        return [], problems
    leaves: list[Any] = []
    for tree, value, name in zip(signature.tree_in.children, values, signature.names, strict=True):
        try:
            leaves += leaves_like(tree, value)
        except TreeMismatch as error:
            fix = f"pass what was traced: {', '.join(a.name for a in signature.arguments)}"
            told = f"'{name}{error.path}' {error.told}"
            problems.append(Problem("wrong-call", told, None, fix))
    return leaves, problems


def sizes_of(signature: Signature, leaves: Sequence[Any], held: Sequence[Tensor]) -> dict[str, int]:
    """The open sizes of a call, if all that it is given fits; all problems at once."""
    raise_if(_autocast(signature))
    problems: Problems = []
    tensors: list[Tensor] = []
    for argument, leaf in zip(signature.arguments, leaves, strict=True):
        problems += _leaf(argument, leaf)
        if argument.tensor is not None:
            tensors.append(leaf)
    for one, value in zip(signature.held, held, strict=True):
        problems += _kind(one.tensor, value) or _sizes(one.tensor, value, {})
    raise_if(problems or _lost_gradients(signature, [*held, *tensors]))
    sizes = {n: tensors[i].shape[axis] for n, (i, axis) in signature.sizes.items()}
    for shaped, value in zip(signature.tensors, tensors, strict=True):
        problems += _sizes(shaped, value, sizes)
    raise_if(problems)
    for rule in signature.constraints:
        if not holds(rule, sizes):
            cause = next((f" ({c})" for r, c in signature.causes.items() if r in rule), "")
            told = f"'{signature.name}' was traced for {rule}{cause}; here {names_told(sizes)}"
            problems.append(Problem("wrong-shape", told, None, "trace it for these sizes"))
    raise_if(problems)
    return sizes


def look_of(value: Any) -> Any:
    """All that a call asks of a leaf, to be remembered; raises TypeError if it cannot be."""
    if isinstance(value, Tensor):
        return type(value), *layouts_of([value]), value.is_conj(), value.requires_grad
    # of floats 0.0 equals -0.0, and nan not itself
    return type(value), value, repr(value) if isinstance(value, float) else ""


def _autocast(signature: Signature) -> Problems:
    now = autocast_now()
    if now == signature.autocast:
        return []
    told = f"'{signature.name}' was traced {_cast(signature.autocast)} and is called {_cast(now)}"
    fix = f"call it {_cast(signature.autocast)}, or trace it {_cast(now)}"
    return [Problem("wrong-autocast", told, None, fix)]


def _cast(state: Mapping[str, str]) -> str:
    if not state:
        return "without autocast"
    return "under " + " and ".join(f"autocast('{d}', {t})" for d, t in state.items())


def _order(
    signature: Signature, arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], Problems]:
    """The arguments in the order of the example; defaults that are given all the same go."""
    names, places, defaults = signature.names, signature.positional, signature.defaults
    problems: Problems = []
    takes = f"{signature.name}({', '.join(names)})"
    if len(arguments) > len(places):
        told = f"'{signature.name}' takes {len(places)} arguments, {len(arguments)} were given"
        problems.append(Problem("wrong-call", told, None, f"call {takes}"))
    found = dict(zip(places, arguments, strict=False))
    for name in named:
        if name in found:
            problems.append(
                Problem("wrong-call", f"'{name}' is given twice", None, f"call {takes}")
            )
    found |= named
    for name, value in found.items():
        if name in names or (name in defaults and is_same(value, defaults[name])):
            continue
        told = f"'{signature.name}' has no argument '{name}'"
        fix = did_you_mean(name, names) or f"call {takes}"
        if name in defaults or name in places:
            told = f"'{signature.name}' was traced without '{name}', which is {_short(value)}"
            fix = f"leave it out, or trace with an example that has '{name}'"
        problems.append(Problem("wrong-call", told, None, fix))
    order = tuple(name for name in named if name in signature.unnamed)
    if order != signature.unnamed and {*order} == {*signature.unnamed}:
        told = f"'{signature.name}' is given {', '.join(order)} in this order"
        fix = f"call {takes}: what **kwargs takes has an order, which was traced"
        problems.append(Problem("wrong-call", told, None, fix))
    problems += [
        Problem("wrong-call", f"'{signature.name}' needs '{name}'", None, f"call {takes}")
        for name in names
        if name not in found and len(arguments) <= len(places)
    ]
    return ([] if problems else [found[name] for name in names]), problems


def is_same(value: Any, traced: Any) -> bool:
    """Whether a plain value is the traced one; 0.0 and -0.0 are two, nan is one."""
    if type(value) is not type(traced):
        return False
    return repr(value) == repr(traced) if isinstance(value, float) else value == traced


def _leaf(argument: Argument, leaf: Any) -> Problems:
    if argument.tensor is not None:
        return _kind(argument.tensor, leaf)
    if is_same(leaf, argument.value):
        return []
    told = f"'{argument.name}' is {_short(leaf)}; it was traced as {argument.value!r}"
    return [Problem("wrong-call", told, None, "trace it with this value; only tensors may vary")]


def _kind(shaped: Shaped, value: Any) -> Problems:
    """What is wrong with a tensor whatever its size."""
    name = shaped.name
    if not isinstance(value, Tensor):
        told = f"'{name}' is {_short(value)}, not a tensor"
        return [Problem("wrong-call", told, None, f"pass a {shaped.dtype} tensor")]
    problems = find_odd(name, value)
    if problems:
        return problems
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype != shaped.dtype:
        fix = f"convert it with .to(torch.{shaped.dtype}), or trace with {dtype}"
        told = f"'{name}' is {dtype}; it was traced as {shaped.dtype}"
        problems.append(Problem("wrong-dtype", told, None, fix))
    if value.device.type != shaped.device:
        fix = f"move it with .to('{shaped.device}'), or trace on {value.device.type}"
        told = f"'{name}' is on {value.device.type}; it was traced on {shaped.device}"
        problems.append(Problem("wrong-device", told, None, fix))
    if value.dim() != len(shaped.sizes):
        told = f"'{name}' has shape {tuple(value.shape)}; it was traced as {_list(shaped)}"
        problems.append(Problem("wrong-shape", told, None, f"pass {len(shaped.sizes)} axes"))
    return problems


def _lost_gradients(signature: Signature, primals: Sequence[Tensor]) -> Problems:
    """Tensors that ask for a gradient, which the graph does not give."""
    if not torch.is_grad_enabled():
        return []
    problems: Problems = []
    shapes = [*(h.tensor for h in signature.held), *signature.tensors]
    written = {primal for primal, _ in signature.mutated}
    for i, (shaped, value) in enumerate(zip(shapes, primals, strict=True)):
        if not value.requires_grad or shaped.requires_grad:
            continue
        why = "it was traced without"
        fix = "trace with an example that has requires_grad=True, or pass a detached tensor"
        if i in written:
            why = "it is written to, which carries no gradient on"
            fix = f"write to a clone of '{shaped.name}' in the source, or detach it before the call"
        elif i < len(signature.held) and signature.held[i].parameter:
            fix = "call requires_grad_(True) on the source's and trace it once more, or False here"
        problems.append(Problem(
            "no-gradient", f"'{shaped.name}' asks for a gradient; {why}", None, fix
        ))  # fmt: skip
    return problems


def _sizes(shaped: Shaped, value: Tensor, sizes: Mapping[str, int]) -> Problems:
    for wanted, size in zip(shaped.sizes, value.shape, strict=True):
        if wanted != size and (isinstance(wanted, int) or evaluated(wanted, sizes) != size):
            known = f" with {names_told(sizes)}" if sizes else ""
            told = f"'{shaped.name}' has shape {tuple(value.shape)}; it was traced as"
            fix = "pass that shape, or name more sizes in 'dynamic'"
            return [Problem("wrong-shape", f"{told} {_list(shaped)}{known}", None, fix)]
    return []


def overlaps(signature: Signature, primals: Sequence[Tensor]) -> Problems:
    """Memory that is written to and that another tensor of the call also has."""
    if not signature.mutated:
        return []
    begins = [p.untyped_storage().data_ptr() if p.numel() else 0 for p in primals]
    named = [*(h.tensor.name for h in signature.held), *(t.name for t in signature.tensors)]
    problems: Problems = []
    for index, _ in signature.mutated:
        for other, begin in enumerate(begins):
            if other != index and begin and begin == begins[index]:
                told = f"'{named[index]}' is written to, and shares memory with '{named[other]}'"
                problems.append(Problem("shared-memory", told, None, "pass a clone of one of them"))
    return problems


def out_of_bounds(signature: Signature, status: Sequence[bool]) -> Problems:
    """The indices that led outside of what they index; the graph has read entry 0 instead."""
    fix = "pass indices within the bounds"
    return [
        Problem("wrong-index", f"'{signature.name}': out of bounds in {told}", None, fix)
        for told, fine in zip(signature.indices, status, strict=True)
        if not fine
    ]


def _list(shaped: Shaped) -> str:
    return f"({', '.join(map(str, shaped.sizes))}{',' if len(shaped.sizes) == 1 else ''})"


def _short(value: Any) -> str:
    if isinstance(value, bool | int | float | str | type(None)):
        return repr(value)
    return f"a {type(value).__name__}"
