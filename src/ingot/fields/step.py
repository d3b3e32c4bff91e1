"""Step: one pure function of whole grids, with where its arguments come from and what it gives.

In: steps and a State. Out: the buffers they give. An executor runs a sequence of steps; the one
here calls them one by one, `ingot.fields.jit` compiles runs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from ingot.errors import Span
from ingot.fields.space import Space

__all__ = [
    "Ambient",
    "Buffer",
    "Constant",
    "Eager",
    "Executor",
    "Old",
    "Source",
    "State",
    "Step",
    "evaluate",
    "perform",
]


@dataclass(frozen=True, slots=True)
class Buffer:
    """The current content of a buffer."""

    name: str


@dataclass(frozen=True, slots=True)
class Old:
    """What a buffer held some advances ago; `age` counts from 1."""

    name: str
    age: int = 1


@dataclass(frozen=True, slots=True)
class Constant:
    """A named constant of the problem."""

    name: str


@dataclass(frozen=True, slots=True)
class Ambient:
    """What every step may ask for: the space, the time, the step size of the solver."""

    name: Literal["space", "time", "dt"]


Source = Buffer | Old | Constant | Ambient
"""Where an argument that changes from call to call comes from."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A pure function bound to buffers: `function(**arguments, **options)` gives the buffers.

    `arguments` change from call to call, `options` are fixed and part of the code. A step with
    `once` runs at its first turn only. `reason` says why a step stays out of compiled sequences.
    """

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Source | tuple[Source, ...]]
    gives: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    once: bool = False
    reason: str = ""
    span: Span | None = None

    @property
    def jit(self) -> bool:
        """Whether the step may be part of a compiled sequence."""
        return not self.reason

    @property
    def sources(self) -> tuple[Source, ...]:
        """All sources of the arguments, in order."""
        return tuple(flat(self.arguments.values()))

    @property
    def reads(self) -> tuple[str, ...]:
        """The buffers whose current content the step reads."""
        return tuple(dict.fromkeys(s.name for s in self.sources if isinstance(s, Buffer)))

    def __str__(self) -> str:
        mark = "" if self.jit else "*"
        return f"{self.name}{mark}: {', '.join(self.reads)} -> {', '.join(self.gives)}"


def flat(nested: Any) -> Iterator[Any]:
    """The leaves of nested tuples and lists."""
    for each in nested:
        if isinstance(each, tuple | list):
            yield from flat(each)
        else:
            yield each


def perform(step: Step, look_up: Callable[[Source], Any]) -> dict[str, Tensor]:
    """The buffers that one step gives, its arguments being looked up."""
    arguments = {
        name: tuple(map(look_up, source)) if isinstance(source, tuple) else look_up(source)
        for name, source in step.arguments.items()
    }
    result = step.function(**arguments, **step.options)
    results = flat(result) if isinstance(result, tuple | list) else (result,)
    return dict(zip(step.gives, results, strict=True))


def evaluate(steps: Sequence[Step], look_up: Callable[[Source], Any]) -> dict[str, Tensor]:
    """All buffers that the steps give, one after the other; what they read first is looked up.

    Pure: this is the function that a compiled sequence captures.
    """
    given: dict[str, Tensor] = {}

    def inner(source: Source) -> Any:
        if isinstance(source, Buffer) and source.name in given:
            return given[source.name]
        return look_up(source)

    for step in steps:
        given |= perform(step, inner)
    return given


@dataclass(slots=True)
class State:
    """All that changes in a run: buffers with their old states, and the clock.

    Buffers are replaced, never written into, so that an old state is a handle and costs nothing.
    """

    space: Space
    constants: Mapping[str, float] = field(default_factory=dict)
    depths: Mapping[str, int] = field(default_factory=dict)
    buffers: dict[str, Tensor] = field(default_factory=dict)
    old: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    time: float = 0.0
    dt: float = 0.0
    scalars: dict[float, Tensor] = field(default_factory=dict)

    def scalar(self, value: float) -> Tensor:
        """A number as a tensor of no axes, of the run's type; the last few are kept."""
        if value not in self.scalars:
            if len(self.scalars) >= 64:
                self.scalars.clear()
            like = self.space.k2
            self.scalars[value] = torch.tensor(value, dtype=like.dtype, device=like.device)
        return self.scalars[value]

    def look_up(self, source: Source) -> Any:
        """The present value of a source; a buffer that nobody has written holds zeros."""
        match source:
            case Buffer(name):
                return self.buffers[name] if name in self.buffers else self.space.full(0.0)
            case Old(name, age):
                return self.old[name][age - 1]
            case Constant(name):
                return self.scalar(self.constants[name])
            case Ambient("space"):
                return self.space
            case Ambient("time"):
                return self.scalar(self.time)
            case Ambient("dt"):
                return self.scalar(self.dt)
            case _:
                raise AssertionError(source)

    def age(self, name: str) -> int:
        """How many old states of a buffer there are."""
        return len(self.old.get(name, ()))

    def advance(self) -> None:
        """Make the present content of every buffer with a history its newest old state."""
        for name, depth in self.depths.items():
            present = self.look_up(Buffer(name))
            self.old[name] = (present, *self.old.get(name, ()))[:depth]


class Executor(Protocol):
    """What runs a sequence of steps on a state."""

    def run(self, steps: tuple[Step, ...], state: State) -> None:
        """Run the steps in order and store what they give."""
        ...


class Eager:
    """Calls step after step."""

    def run(self, steps: tuple[Step, ...], state: State) -> None:
        """Run the steps in order and store what they give."""
        with torch.no_grad():
            for step in due(steps, state):
                state.buffers |= perform(step, state.look_up)


def due(steps: tuple[Step, ...], state: State) -> tuple[Step, ...]:
    """The steps to run now: those that run once are left out from their second turn on."""
    if not any(step.once for step in steps):
        return steps
    now = tuple(step for step in steps if not (step.once and step.name in state.done))
    state.done |= {step.name for step in now if step.once}
    return now
