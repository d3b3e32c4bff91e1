"""Gradients, tangents and transforms that compiled code would lose without a word: refused."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs.torch_private import forward_mode, transformed, transforms

__all__ = ["find_lost_gradients", "find_lost_tangents", "refuse_transforms"]


def find_lost_gradients(values: Mapping[str, Tensor], what: str = "a transient") -> list[Problem]:
    """Values that require a gradient where none is passed on, unless gradients are off."""
    lost = [n for n, x in values.items() if x.requires_grad]
    if not lost or not torch.is_grad_enabled():
        return []
    fix = "call it under torch.no_grad(), or give detached tensors"
    told = f"requires a gradient, which {what} does not pass on"
    return [Problem("no-gradient", f"'{n}' {told}", None, fix) for n in lost]


def find_lost_tangents(
    values: Mapping[str, object], fix: str, who: str = "compiled code"
) -> list[Problem]:
    """Values that belong to a transform of torch.func, or carry a tangent of forward mode."""
    if not (transforms() or forward_mode()):
        return []
    tensors = {n: x for n, x in values.items() if isinstance(x, Tensor)}
    given = [n for n, x in tensors.items() if transformed(x)]
    dual = [
        n for n, x in tensors.items()
        if n not in given and forward_mode() and unpack_dual(x).tangent is not None
    ]  # fmt: skip
    by = f"by a transform of torch.func, which {who} cannot see"
    along = "a tangent of forward-mode differentiation, which would be lost"
    found = ((given, ("is given", "are given"), by), (dual, ("carries", "carry"), along))
    return [
        Problem("no-gradient", f"{_quote(names)} {verbs[len(names) > 1]} {what}", None, fix)
        for names, verbs, what in found if names
    ]  # fmt: skip


def _quote(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def refuse_transforms(name: str, given: Mapping[str, object]) -> None:
    """Refuse a call by a transform of torch.func, or with tensors that carry tangents."""
    fix = "differentiate what it was made from, or call backward() of its result"
    raise_if(find_lost_tangents(given, fix))
    if transforms():
        told = f"'{name}' is called by a transform of torch.func, which it cannot take part in"
        raise IngotError([Problem("no-gradient", told, None, fix)])
