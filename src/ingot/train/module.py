"""A compiled joint as a module: calls are checked, writes copied back, views made again."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem
from ingot.execute.autograd_guard import refuse_transforms
from ingot.graphs.torch_private import (
    any_autocast,
    buffers_of,
    children_of,
    forward_mode,
    non_persistent,
    parameters_of,
    transforms,
)
from ingot.train.call import autocast_now
from ingot.train.check import arranged, looks, sizes_of
from ingot.train.compile import Half
from ingot.train.partitioner import Halves
from ingot.train.ready import Code, Ready
from ingot.train.signature import Held, Saved, Signature

__all__ = ["Joint"]

REMEMBERED = 256
"""How many ways to call are remembered as fitting."""

READY = 4
"""How many calls are kept laid out; each is asked in turn whether the next looks like it."""


class Joint(nn.Module):
    """A function with its gradient, compiled; parameters and buffers keep their names.

    `halves` is there where the joint was traced in this process.
    """

    def __init__(
        self, signature: Signature, saved: Saved, forward: Half, backward: Half | None,
        tensors: Sequence[Tensor], *, halves: Halves | None = None, strategy: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.signature = signature
        self.saved = saved
        self.halves = halves
        self.strategy = strategy
        self.forward_half = forward
        self.backward_half = backward
        self._places = [_placed(self, h, t) for h, t in zip(signature.held, tensors, strict=True)]
        self._tied = [i for i, h in enumerate(signature.held) if len(h.names) > 1]
        self._tensors = [i for i, a in enumerate(signature.arguments) if a.tensor is not None]
        self._values = [(i, a.value) for i, a in enumerate(signature.arguments) if not a.tensor]
        self._count = len(signature.names)
        self._flat = signature.names == tuple(a.name for a in signature.arguments)
        self._code = Code(signature, saved, forward, backward)
        self._known: dict[Any, dict[str, int]] = {}
        self._ready: tuple[Ready, ...] = ()
        if signature.training is not None:
            super().train(signature.training)

    def train(self, mode: bool = True) -> "Joint":
        """Keep the mode in which the module was traced; another needs another trace."""
        traced = self.signature.training
        if traced is not None and mode != traced:
            name = "training" if traced else "evaluation"
            call = "train()" if mode else "eval()"
            raise IngotError([Problem(
                "wrong-mode", f"'{self.signature.name}' was traced in {name} mode", None,
                f"call {call} on the source module and trace it once more",
            )])  # fmt: skip
        return super().train(mode)

    def held(self) -> list[Tensor]:
        """The parameters and buffers in the order of the signature."""
        found = [places[0][0][places[0][1]] for places in self._places]
        for index in self._tied:
            if any(place[leaf] is not found[index] for place, leaf in self._places[index]):
                names = "' and '".join(self.signature.held[index].names)
                told = f"'{names}' were one tensor when they were traced, and no longer are"
                fix = "replace it under all its names, or write to it in place"
                raise IngotError([Problem("untied-parameter", told, None, fix)])
        return found

    def with_tensors(self, tensors: Sequence[Tensor]) -> "Joint":
        """The same compiled code with other parameters and buffers, in the signature's order."""
        return Joint(
            self.signature, self.saved, self.forward_half, self.backward_half, tensors,
            halves=self.halves, strategy=self.strategy,
        )  # fmt: skip

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives."""
        return self.call_with(self.held(), *arguments, **named)

    def call_with(self, held: Sequence[Tensor], *arguments: Any, **named: Any) -> Any:
        """What the function gives with these parameters and buffers."""
        leaves: Sequence[Any] = arguments
        if transforms() or forward_mode():
            refuse_transforms(self.signature.name, (held, arguments, named))
        if named or len(arguments) != self._count or not self._flat:
            leaves = arranged(self.signature, arguments, named)
        primals = [*held, *leaves]
        if self._values:
            primals = [*held, *(leaves[i] for i in self._tensors)]
        if len(held) == len(self._places) and (not self._values or self._same_values(leaves)):
            mode = torch.is_grad_enabled()
            for ready in self._ready:
                if ready.mode is mode and ready.same(*primals) and not any_autocast():
                    return ready(primals)
        if leaves is arguments:
            arranged(self.signature, arguments, named)
        ready = Ready(self._code, primals, self._sizes(held, leaves))
        found = ready.checked(primals)
        if ready.lasting:
            self._ready = (ready, *self._ready[: READY - 1])
        return found

    def settled(self, *leaves: Tensor) -> Callable[..., Any]:
        """A call for flat tensors that lie as these; whoever makes it answers for that."""
        assert not self._places and not self._values
        ready = Ready(self._code, leaves, self._sizes((), leaves))
        return lambda *given: ready([*given])

    def _same_values(self, leaves: Sequence[Any]) -> bool:
        return all(type(leaves[i]) is type(v) and leaves[i] == v for i, v in self._values)

    def _sizes(self, held: Sequence[Tensor], leaves: Sequence[Any]) -> dict[str, int]:
        """The open sizes of a call that fits; what looks alike is checked once."""
        state = torch.is_grad_enabled(), *autocast_now().items()
        try:
            key = (state, *map(looks, leaves), *map(looks, held))
            known = self._known.get(key)
        except (RuntimeError, TypeError):
            key, known = None, None
        if known is None:
            known = sizes_of(self.signature, leaves, held)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            if key is not None:
                self._known[key] = known
        return known

    def save(self, folder: Any) -> None:
        """Write a package that loads in a process without the source."""
        from ingot.train.package import save

        save(self, folder)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Joint":
        return self.with_tensors([copy.deepcopy(tensor, memo) for tensor in self.held()])

    def __reduce_ex__(self, _: Any) -> Any:
        from ingot.train.package import from_bytes, to_bytes

        return from_bytes, (to_bytes(self),)

    def extra_repr(self) -> str:
        """The signature's first line, and how it was partitioned."""
        return f"{str(self.signature).splitlines()[0]}, partition={self.strategy}"


def _placed(joint: nn.Module, held: Held, tensor: Tensor) -> list[tuple[dict[str, Any], str]]:
    """Register a tensor under all its names, whatever they are; where to find it again."""
    places = []
    for name in held.names:
        *path, leaf = name.split(".")
        owner = joint
        for word in path:
            owner = children_of(owner).setdefault(word, nn.Module())
            assert owner is not None
        place: dict[str, Any] = parameters_of(owner) if held.parameter else buffers_of(owner)
        place[leaf] = tensor
        if not held.persistent:
            non_persistent(owner).add(leaf)
        places.append((place, leaf))
    return places
