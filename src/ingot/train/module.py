"""A compiled joint as a module: calls are checked, writes copied back, views made again."""

import copy
from collections.abc import Sequence
from typing import Any

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
from ingot.train.ready import Code
from ingot.train.signature import Held, Signature

__all__ = ["Joint", "unite"]


class Joint(nn.Module):
    """A function with its gradient, compiled; parameters and buffers keep their names.

    `codes` are the signatures that it may be called with; the first that fits a call is run.
    """

    def __init__(self, codes: Sequence[Code], tensors: Sequence[Tensor]) -> None:
        super().__init__()
        self.codes = tuple(codes)
        self.states = unite([code.signature for code in codes])
        self._places = [_placed(self, h, t) for h, t in zip(self.states, tensors, strict=True)]
        self._tied = [i for i, h in enumerate(self.states) if len(h.names) > 1]
        index = {held: i for i, held in enumerate(self.states)}
        reads = [[index[h] for h in code.signature.held] for code in codes]
        every = [*range(len(self.states))]
        # which of the states each reads; None for all of them in their order
        self._ways = [(c, None if r == every else r) for c, r in zip(codes, reads, strict=True)]
        if self.signature.training is not None:
            super().train(self.signature.training)

    @property
    def signature(self) -> Signature:
        """The first, or only, signature."""
        return self.codes[0].signature

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
        """The parameters and buffers in the order of `states`."""
        found = [places[0][0][places[0][1]] for places in self._places]
        for index in self._tied:
            if any(place[leaf] is not found[index] for place, leaf in self._places[index]):
                names = "' and '".join(self.states[index].names)
                told = f"'{names}' were one tensor when they were traced, and no longer are"
                fix = "replace it under all its names, or write to it in place"
                raise IngotError([Problem("untied-parameter", told, None, fix)])
        return found

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives."""
        held = self.held()
        if transforms() or forward_mode():
            refuse_transforms(self.signature.name, (held, arguments, named))
        if not any_autocast():
            for code, reads in self._ways:
                part = held if reads is None else [held[i] for i in reads]
                ready, primals = code.find_ready(part, arguments, named)
                if ready is not None:
                    return ready(primals)
        refusals: list[IngotError] = []
        for code, reads in self._ways:
            part = held if reads is None else [held[i] for i in reads]
            try:
                ready, primals = code.lay_out(part, arguments, named)
            except IngotError as error:
                refusals.append(error)
            else:
                return ready.checked(primals)
        raise refusals[0] if len(refusals) == 1 else _fits_none(self.codes, refusals)

    def save(self, folder: Any) -> None:
        """Write a package that loads in a process without the source."""
        from ingot.train.package import save

        save(self, folder)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Joint":
        return Joint(self.codes, [copy.deepcopy(tensor, memo) for tensor in self.held()])

    def __reduce_ex__(self, _: Any) -> Any:
        from ingot.train.package import from_bytes, to_bytes

        return from_bytes, (to_bytes(self),)

    def extra_repr(self) -> str:
        """The signatures, a line each, and how they were partitioned."""
        return "\n".join(f"{c.signature.head}, partition={c.strategy}" for c in self.codes)


def unite(signatures: Sequence[Signature]) -> tuple[Held, ...]:
    """The parameters and buffers of several signatures, each once."""
    return tuple(dict.fromkeys(held for one in signatures for held in one.held))


def _fits_none(codes: Sequence[Code], refusals: Sequence[IngotError]) -> IngotError:
    name = codes[0].signature.name
    told = [f"this call fits none of the {len(codes)} signatures of '{name}':"]
    for code, error in zip(codes, refusals, strict=True):
        told += [f"  {code.signature.head}", *(f"    {p.message}" for p in error.problems)]
    fix = "pass what one of them takes, or trace with an example like this call"
    return IngotError([Problem("no-signature", "\n".join(told), None, fix)])


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
