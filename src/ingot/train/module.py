"""A compiled joint as a module: calls are checked, writes copied back, views made again."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.execute.autograd_guard import refuse_transforms
from ingot.graphs.torch_private import (
    HOOKS,
    any_autocast,
    forward_mode,
    has_global_hooks,
    has_hooks,
    list_global_hooks,
    transforms,
)
from ingot.graphs.tree import flatten
from ingot.train.parts import Part, Place, place_tensors
from ingot.train.ready import Code
from ingot.train.signature import Held, Signature

__all__ = ["Joint", "unite"]


class Joint(Part):
    """A function with its gradient, compiled; parameters and buffers keep their names.

    `codes` are the signatures that it may be called with; the first that fits a call is run.
    `hooks` are those of all modules that were traced with it.
    """

    # torch.compile sets the last
    own = Part.own | {"codes", "hooks", "states", "places", "tied", "ways", "_is_torch_compile"}

    def __init__(
        self, codes: Sequence[Code], tensors: Sequence[Tensor], hooks: tuple[int, ...] = ()
    ) -> None:
        super().__init__("", codes[0].signature)
        self.codes, self.hooks = tuple(codes), hooks
        self.states = unite([code.signature for code in codes])
        self.places = place_tensors(self, dict(zip(self.states, tensors, strict=True)))
        self.tied = [i for i, h in enumerate(self.states) if len(h.names) > 1]
        index = {held: i for i, held in enumerate(self.states)}
        reads = [[index[h] for h in code.signature.held] for code in codes]
        every = [*range(len(self.states))]
        # which of the states each reads; None for all of them in their order
        self.ways = [(c, None if r == every else r) for c, r in zip(codes, reads, strict=True)]

    @property
    def signature(self) -> Signature:
        """The first, or only, signature."""
        return self.codes[0].signature

    def held(self) -> list[Tensor]:
        """The parameters and buffers in the order of `states`."""
        try:
            found = [places[0][0][places[0][1]] for places in self.places]
        except KeyError:
            raise IngotError([*_find_lost(self.states, self.places)]) from None
        for index in self.tied:
            if any(place.get(leaf) is not found[index] for place, leaf in self.places[index]):
                names = "' and '".join(self.states[index].names)
                told = f"'{names}' were one tensor when they were traced, and no longer are"
                fix = "replace it under all its names, or write to it in place"
                raise IngotError([Problem("untied-parameter", told, None, fix)])
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives; hooks of all modules were traced with it, or are refused."""
        if self.hooks or has_global_hooks():
            self._keep_hooks()
        if has_hooks(self):
            return super().__call__(*arguments, **named)
        return self.forward(*arguments, **named)

    def _keep_hooks(self) -> None:
        if self.hooks == list_global_hooks() and not has_hooks(self):
            return
        told = f"hooks of all modules are others than when '{self.signature.name}' was traced"
        fix = "set them before it is traced, and leave them, or take them away"
        raise IngotError([Problem("traced-part", told, None, fix)])

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives."""
        held = self.held()
        if transforms() or forward_mode():
            refuse_transforms(self.signature.name, self._name_values(held, arguments, named))
        ways = [(c, held if r is None else [held[i] for i in r]) for c, r in self.ways]
        if not any_autocast():
            for code, part in ways:
                ready, primals = code.find_ready(part, arguments, named)
                if ready is not None:
                    return ready(primals)
        refusals: list[IngotError] = []
        for code, part in ways:
            try:
                ready, primals = code.lay_out(part, arguments, named)
            except IngotError as error:
                refusals.append(error)
            else:
                return ready.checked(primals)
        raise refusals[0] if len(refusals) == 1 else _fits_none(self.codes, refusals)

    def _name_values(
        self, held: Sequence[Tensor], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        """All that a call is given, by the names that the user knows."""
        given = dict(zip((h.names[0] for h in self.states), held, strict=True))
        places = self.signature.positional
        more = [f"argument{i}" for i in range(len(places), len(arguments))]
        values = dict(zip((*places, *more), arguments, strict=False)) | dict(named)
        return given | {n + path: x for n, v in values.items() for path, x in flatten(v)[0]}

    def save(self, folder: Any) -> None:
        """Write a package that loads in a process without the source."""
        from ingot.train.package import save

        save(self, folder)

    def rebuild(self, tensors: Sequence[Tensor]) -> "Joint":
        """The same with other tensors."""
        return Joint(self.codes, tensors, self.hooks)

    def list_hooks(self) -> dict[str, Any]:
        """The hooks that were set on the joint, by the tables that hold them."""
        return {name: table for name in HOOKS if (table := vars(self)[name])}

    def __copy__(self) -> "Joint":
        made = self.rebuild(self.held())
        made.__setstate__(self.list_hooks())
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> "Joint":
        made = self.rebuild([copy.deepcopy(tensor, memo) for tensor in self.held()])
        made.__setstate__(copy.deepcopy(self.list_hooks(), memo))
        return made

    def __reduce_ex__(self, _: Any) -> Any:
        from ingot.train.package import from_bytes, to_bytes

        return from_bytes, (to_bytes(self),), self.list_hooks()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, table in state.items():
            vars(self)[name].update(table)

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


def _find_lost(states: Sequence[Held], places: Sequence[Sequence[Place]]) -> Iterator[Problem]:
    for state, known in zip(states, places, strict=True):
        if any(leaf not in place for place, leaf in known):
            told = f"'{state.names[0]}' is no longer there"
            fix = "put the tensor back; what a parametrization makes of it is not traced"
            yield Problem("traced-part", told, None, fix)
