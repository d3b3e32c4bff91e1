"""The tensors of a module, lifted: where each is kept, and calls of the module on others."""

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ingot.errors import Problem
from ingot.graphs.torch_private import HOOKS, MACHINERY
from ingot.regions.plan import StateInfo
from ingot.regions.structure import Held, derived, held_tensors

__all__ = ["State", "dtype_name", "lifted", "state_infos", "state_of", "unliftable"]


@dataclass(frozen=True, slots=True)
class State:
    """One tensor of a module and all places that hold it."""

    tensor: Tensor
    places: tuple[Held, ...]

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.places[0].name


def state_of(module: nn.Module) -> tuple[State, ...]:
    """The distinct tensors of a module, in the order of its modules."""
    places: dict[int, list[Held]] = {}
    for held in held_tensors(module):
        places.setdefault(id(held.tensor), []).append(held)
    return tuple(State(held[0].tensor, tuple(held)) for held in places.values())


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def state_infos(module: nn.Module, state: Sequence[State]) -> tuple[StateInfo, ...]:
    """What compiled code takes for granted of lifted tensors."""
    kept = module.state_dict(keep_vars=True).keys()
    return tuple(_info(s, kept) for s in state)


def _info(state: State, kept: Container[str]) -> StateInfo:
    t = state.tensor
    kind = state.places[0].kind
    if kind == "buffer" and state.name not in kept:
        kind = "unsaved buffer"
    return StateInfo(
        tuple(p.name for p in state.places), kind, dtype_name(t.dtype),
        str(t.device), tuple(t.shape), tuple(t.stride()), t.requires_grad,
    )  # fmt: skip


def unliftable(module: nn.Module) -> Iterator[Problem]:
    """What a module holds that lifting would lose, each by its name."""
    for path, part in module.named_modules():
        kind = type(part).__qualname__
        name = f"'{path}' ({kind})" if path else f"the module ({kind})"
        if isinstance(part, torch.jit.ScriptModule):
            fix = "compile the Python module it was scripted from"
            yield Problem("region-module", f"{name} is TorchScript", None, fix)
            continue
        for table in HOOKS:
            for hook in getattr(part, table).values():
                called = getattr(hook, "__qualname__", type(hook).__qualname__)
                yield Problem(
                    "region-hook", f"{name} has a {table.strip('_')[:-1].replace('_', ' ')},"
                    f" '{called}', which compiled code would run once and never again",
                    None, _instead(hook),
                )  # fmt: skip
    for held in held_tensors(module):
        why = _unfit(held.tensor)
        if why:
            message = f"the {held.kind} '{held.name}' {why}"
            yield Problem("region-tensor", message, None, "make it an ordinary dense tensor")


def _instead(hook: object) -> str:
    old = type(hook).__name__
    if old in ("WeightNorm", "SpectralNorm"):
        name = "weight_norm" if old == "WeightNorm" else "spectral_norm"
        return f"use torch.nn.utils.parametrizations.{name}, which is compiled"
    return "remove it, call what it does in forward, or put it on the module that compile returns"


def _unfit(tensor: Tensor) -> str | None:
    if is_lazy(tensor):
        return "has no shape yet; call the module once"
    if type(tensor) not in (Tensor, nn.Parameter, nn.Buffer):
        return (
            f"is a '{type(tensor).__qualname__}', a kind of tensor that compiled code cannot take"
        )
    if tensor.layout != torch.strided:
        return f"is {str(tensor.layout).removeprefix('torch.')}"
    if tensor.is_quantized:
        return "is quantized"
    return None


@contextmanager
def lifted(module: nn.Module, state: Sequence[State], tensors: Sequence[Tensor]) -> Iterator[None]:
    """Put other tensors in the place of a module's own; refuse a call that sets any attribute."""
    before = _attributes(module)
    for s, tensor in zip(state, tensors, strict=True):
        for place in s.places:
            place.table[place.key] = tensor
    done = False
    try:
        yield
        done = True
    finally:
        changed = [
            p.name for s, tensor in zip(state, tensors, strict=True) for p in s.places
            if p.table.get(p.key) is not tensor
        ]  # fmt: skip
        for s in state:
            for place in s.places:
                place.table[place.key] = s.tensor
        changed += _restored(module, before)
        if done and changed:
            raise Changed(changed)


class Changed(Exception):
    """Attributes that a call has set."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(sorted(set(names))))


def _attributes(module: nn.Module) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    return {
        path: (vars(part), {k: v for k, v in vars(part).items() if k not in MACHINERY})
        for path, part in module.named_modules()
    }


def _restored(
    module: nn.Module, before: dict[str, tuple[dict[str, Any], dict[str, Any]]]
) -> list[str]:
    """Undo what a call has set; the names of it."""
    changed = []
    for path, (table, old) in before.items():
        follows = derived(module.get_submodule(path))
        now = {k for k in table if k not in MACHINERY}
        for key in now | old.keys():
            if key not in old:
                del table[key]
            elif key in now and table[key] is old[key]:
                continue
            else:
                table[key] = old[key]
            if key not in follows:
                changed.append(f"{path}.{key}" if path else key)
    return changed
