"""All that is known of a joint besides its two graphs: what a call takes, gives, saves and changes.

It is the metadata of a package and what the runtime wrapper follows.
"""

from typing import Any

import msgspec

from ingot.graphs.sizes import Size
from ingot.graphs.tree import Tree

__all__ = [
    "Argument",
    "Draw",
    "Held",
    "Output",
    "Saved",
    "Shaped",
    "Signature",
    "Step",
]


class Shaped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor without its numbers; `order` is that of its axes in memory, () row-major."""

    name: str
    sizes: tuple[Size, ...]
    dtype: str
    device: str
    requires_grad: bool
    order: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{', '.join(map(str, self.sizes))}]"


class Held(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter or buffer under all its names; tied ones have several."""

    names: tuple[str, ...]
    tensor: Shaped
    parameter: bool
    persistent: bool = True


class Argument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A leaf of the arguments: a tensor, or a value that was fixed by tracing."""

    name: str
    tensor: Shaped | None
    value: bool | int | float | str | None = None

    def __str__(self) -> str:
        return str(self.tensor) if self.tensor else f"{self.name} = {self.value!r}"


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One view: an operation on the tensor before it; `pick` chooses among several results."""

    operation: str
    arguments: tuple[Any, ...]
    pick: int | None = None


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A leaf of the result: steps from a graph's result or from a primal, or a plain value.

    `source` is "result", "primal", "value" or "size"; `steps` is empty where it is the tensor.
    """

    source: str
    index: int = -1
    steps: tuple[Step, ...] = ()
    requires_grad: bool = False
    value: bool | int | float | str | None = None


class Draw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Random numbers drawn anew before each call and passed to the graph as an input."""

    operation: str
    like: Shaped
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    takes_like: bool


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What travels from forward to backward, in the order the backward takes it."""

    sizes: tuple[str, ...]
    primals: tuple[int, ...]
    results: tuple[int, ...]
    extra: tuple[Shaped, ...]


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call. Primals are the held tensors, then the tensors of the arguments, then the draws.

    positional: the parameters of the function in order, `names` those that the example gave.
    unnamed: of `names` those that `**kwargs` takes, where their order matters.
    defaults: of the others those that may be given too, as long as they say the same.
    tangents: the results that each of the gradients comes from.
    constants: what was taken from attributes and globals when it was traced, as Python writes it.
    places: the names of what is held, in the order of the source's modules.
    modes: the modules, by name, that were in another mode than the whole.
    ambient: torch's default "dtype" and "device", and whether gradients are recorded, "grad", where
    the graph depends on them.
    causes: of constraints, what decided by the size, and where.
    Where there are `indices`, the last result says of each whether it was in bounds.
    """

    name: str
    training: bool | None
    held: tuple[Held, ...]
    arguments: tuple[Argument, ...]
    names: tuple[str, ...]
    positional: tuple[str, ...]
    defaults: dict[str, bool | int | float | str | None]
    tree_in: Tree
    outputs: tuple[Output, ...]
    tree_out: Tree
    results: tuple[Shaped, ...]
    mutated: tuple[tuple[int, int], ...]
    sizes: dict[str, tuple[int, int]]
    constraints: tuple[str, ...]
    autocast: dict[str, str]
    constants: dict[str, str]
    draws: tuple[Draw, ...] = ()
    gradients: tuple[int, ...] = ()
    tangents: tuple[tuple[int, ...], ...] = ()
    indices: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    ambient: dict[str, str] = {}
    causes: dict[str, str] = {}
    unnamed: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[Shaped, ...]:
        """The tensors of the arguments."""
        return tuple(a.tensor for a in self.arguments if a.tensor is not None)

    @property
    def differentiable(self) -> tuple[int, ...]:
        """The results that pass gradients back."""
        return tuple(i for i, r in enumerate(self.results) if r.requires_grad)

    @property
    def head(self) -> str:
        """The call in one line."""
        return f"{self.name}({', '.join(map(str, self.arguments))})"

    def __str__(self) -> str:
        lines = [self.head]
        lines += [f"  {'param' if h.parameter else 'buffer'}  {h.tensor}" for h in self.held]
        lines += [f"  draws  {d.operation} {d.like}" for d in self.draws]
        lines += [f"  gives  {r}" for r in self.results]
        lines += [f"  holds for  {c}" for c in self.constraints]
        lines += [f"  taken  {name} = {value}" for name, value in self.constants.items()]
        return "\n".join(lines)
