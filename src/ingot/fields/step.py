"""Step: one pure function of whole grids, with where its arguments come from and what it gives.

In: steps and a State. Out: the buffers they give. An executor runs a sequence of steps; the one
here calls them one by one, `ingot.fields.jit` compiles runs of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args, get_type_hints
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ingot.errors import Problem, Span
from ingot.fields.calls import CHECKS, Refused, call, close, gives_spectra, is_ours, misfit, told_of
from ingot.fields.spaces import Grid, Space, Spectrum

__all__ = [
    "Ambient",
    "Buffer",
    "Constant",
    "Eager",
    "Iteration",
    "Old",
    "Quirk",
    "Source",
    "State",
    "Step",
    "StepExecutor",
    "Weight",
    "WholeFields",
    "evaluate",
    "flat",
    "looked_up",
    "perform",
]


COMPARED: WeakKeyDictionary[object, int] = WeakKeyDictionary()
"""How many calls of a step on parts of a box gave what it gives on the whole."""


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
    """What every step may ask for: the space, the time, the solver's step, the time at its end."""

    name: Literal["space", "time", "dt", "end"]


@dataclass(frozen=True, slots=True)
class Weight:
    """What a multistep solver multiplies the rate at an age with, in the present substep."""

    age: int


Source = Buffer | Old | Constant | Ambient | Weight
"""Where an argument that changes from call to call comes from."""


Quirk = Callable[[tuple[int, ...], Mapping[str, Any]], str]
"""Sizes of a grid, a step's arguments and options -> what it does otherwise, or nothing."""


class Iteration(Protocol):
    """Sequences of steps that run again and again until they converge."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps that it runs."""
        ...

    def begin(self, state: State) -> None:
        """Fill buffers with what they hold before the first solve."""
        ...

    def solve(self, state: State, executor: StepExecutor) -> None:
        """Run them by an executor and leave what they give in the state."""
        ...


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Step:
    """A pure function bound to buffers: `function(**arguments, **options)` gives the buffers.

    `arguments` change from call to call, `options` are fixed and part of the code. A step with
    `once` runs at its first turn only. `reason` says why a step stays out of compiled sequences.
    `starts` are buffers that are read before anything writes them, with their components' sizes:
    they hold zeros at first, or what the buffer holds that they follow (`follows`). `iteration` is
    what a step does that runs sequences of other steps until they converge, in place of calling
    its function. `quirk` says what it does on a grid of some sizes as the reference does, where
    that is not what the mathematics says.
    """

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Source | tuple[Source, ...]]
    gives: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    once: bool = False
    reason: str = ""
    span: Span | None = None
    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)
    iteration: Iteration | None = None
    quirk: Quirk | None = None

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
    arguments = looked_up(step.function, step.arguments, look_up)
    result = call(step.function, arguments, step.options, step)
    results = tuple(flat(result)) if isinstance(result, tuple | list) else (result,)
    if not is_ours(step.function):
        problem = misfit(step, results, look_up(Ambient("space")))
        if problem is not None:
            raise Refused([problem])
    return dict(zip(step.gives, results, strict=True))


def looked_up(
    function: Callable[..., Any],
    arguments: Mapping[str, Source | tuple[Source, ...]],
    look_up: Callable[[Source], Any],
) -> dict[str, Any]:
    """The arguments of a function; a Grid or a Spectrum has all of its cells."""
    kinds, found = whole_arguments(function), {}
    for name, source in arguments.items():
        take = look_up
        if name in kinds:
            space: Space = look_up(Ambient("space"))
            shape = space.shape if kinds[name] == Grid else space.spectrum_shape
            take = functools.partial(taken_whole, look_up, space, shape)
        found[name] = tuple(map(take, source)) if isinstance(source, tuple) else take(source)
    return found


def taken_whole(
    look_up: Callable[[Source], Any], space: Space, shape: tuple[int, ...], source: Source
) -> Tensor:
    return space.whole(look_up(source), shape)


@functools.lru_cache(maxsize=4096)
def whole_arguments(function: Callable[..., Any]) -> dict[str, Any]:
    """The arguments that are annotated Grid or Spectrum, or as several or none of them."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}  # a function without annotations that can be read takes what is stored
    kinds = {
        name: [kind for kind in (Grid, Spectrum) if kind in (hint, *get_args(hint))]
        for name, hint in hints.items()
    }
    return {name: found[0] for name, found in kinds.items() if len(found) == 1}


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
    A buffer that nobody has written holds zeros, over wavenumbers if it is one of the `spectra`.
    """

    space: Space
    constants: Mapping[str, float] = field(default_factory=dict)
    depths: Mapping[str, int] = field(default_factory=dict)
    spectra: frozenset[str] = frozenset()
    buffers: dict[str, Tensor] = field(default_factory=dict)
    old: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    time: float = 0.0
    dt: float = 0.0
    sizes: tuple[float, ...] = ()
    """The sizes of the last substeps, the newest first."""
    weights: tuple[float, ...] = ()
    """Of the rates in a multistep solver's present update, by age."""
    ahead: float = 0.0
    """How far the end of a solve's substep lies ahead of the time; 0 outside."""
    scalars: dict[float, Tensor] = field(default_factory=dict)
    whole: Space | None = None
    """The whole box, where this process holds a part of it."""

    def scalar(self, value: float) -> Tensor:
        """A number as a tensor of no axes, of the run's type; the last few are kept."""
        if value not in self.scalars:
            if len(self.scalars) >= 64:
                self.scalars.clear()
            like = self.space.k2
            # torch.tensor copies from the CPU, and waits for all that the GPU has to do
            self.scalars[value] = torch.full((), value, dtype=like.dtype, device=like.device)
        return self.scalars[value]

    def look_up(self, source: Source) -> Any:
        """The present value of a source."""
        match source:
            case Buffer(name):
                return self.buffers[name] if name in self.buffers else self.zeros(name)
            case Old(name, age):
                past = self.old.get(name, ())
                return past[age - 1] if age <= len(past) else self.zeros(name)
            case Constant(name):
                return self.scalar(self.constants[name])
            case Ambient("space"):
                return self.space
            case Ambient("time"):
                return self.scalar(self.time)
            case Ambient("dt"):
                return self.scalar(self.dt)
            case Weight(age):
                return self.scalar(self.weights[age])
            case Ambient("end"):
                return self.scalar(self.time + self.ahead)
            case _:
                raise AssertionError(source)

    def zeros(self, name: str, sizes: tuple[int, ...] = ()) -> Tensor:
        """What a buffer holds before it is written; `sizes` are those of its components."""
        like, spectral = self.space.k2, name in self.spectra
        shape = self.space.spectrum_shape if spectral else self.space.shape
        kind = like.dtype.to_complex() if spectral else like.dtype
        return like.new_zeros((*shape, *sizes), dtype=kind)

    def described(self, name: str) -> str:
        """A buffer in a message: its sizes, what it holds, and whether anybody has written it."""
        value = self.look_up(Buffer(name))
        whole, half = self.space.shape, self.space.spectrum_shape
        spectral = value.is_complex() or whole != tuple(value.shape) == half
        kind = "a spectrum" if spectral else "a field"
        sizes = " x ".join(map(str, value.shape)) or "one number"
        unwritten = "" if name in self.buffers else ", not written yet"
        return f"{kind} of {sizes}{unwritten}"

    def perform(self, step: Step, executor: StepExecutor) -> None:
        """Run one step by itself and store what it gives; sequences inside go to the executor."""
        with told_of(step.name, step.span, self, step.reads):
            if step.iteration is not None:
                step.iteration.solve(self, executor)
                return
            found = perform(step, self.look_up)
            if self.whole is not None and not is_ours(step.function):
                self.compare_parts(step, found)
            self.buffers |= found

    def compare_parts(self, step: Step, found: Mapping[str, Tensor]) -> None:
        """Refuse a user's function that gives a part of the box something else than the whole.

        A mean or a maximum of what a rank holds is not that of the field. Compared like writes.
        """
        compared, share = COMPARED.get(step, 0), self.space.share
        if compared >= CHECKS or share is None:
            return
        assert self.whole is not None
        expected = perform(step, self.over(self.whole).look_up)
        spectral = gives_spectra(step.function)
        same = all(
            close(value, share.own(expected[name], spectral=spectral))
            for name, value in found.items()
        )
        if not all(share.agree(same)):
            message = (
                f"{step.function.__name__} gives a part of the box other numbers than the whole"
            )
            fix = "use space.mean, space.sum and space.largest, and shift by space.roll"
            raise Refused([Problem("not-by-parts", message, step.span, fix)])
        COMPARED[step] = compared + 1

    def age(self, name: str) -> int:
        """How many old states of a buffer there are."""
        return len(self.old.get(name, ()))

    def advance(self) -> None:
        """Make the present content of every buffer with a history its newest old state."""
        for name, depth in self.depths.items():
            present = self.look_up(Buffer(name))
            self.old[name] = (present, *self.old.get(name, ()))[:depth]

    def gather(self, name: str, value: Tensor) -> Tensor:
        """The whole of what a buffer holds, of which this rank has a part."""
        assert self.space.share is not None
        return self.space.share.gather(value, spectral=name in self.spectra or value.is_complex())

    def over(self, space: Space) -> State:
        """The same on the whole box, fields gathered where they are looked up."""
        fields: Any = (WholeFields(self, self.buffers), WholeFields(self, self.old))
        return replace(self, space=space, buffers=fields[0], old=fields[1], whole=None)

    def note_size(self) -> None:
        """Remember the size of the substep that has just been taken."""
        self.sizes = (self.dt, *self.sizes)[: max(self.depths.values(), default=0)]


class WholeFields(Mapping[str, Any]):
    """The fields of a state over the whole box, gathered from all ranks when they are asked for.

    Every rank must ask for the same ones in the same order; each is gathered once.
    """

    def __init__(self, state: State, fields: Mapping[str, Any]) -> None:
        self.state, self.fields = state, fields
        self.gathered: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.gathered:
            found = self.fields[name]
            many = isinstance(found, tuple)
            whole = tuple(self.state.gather(name, each) for each in (found if many else (found,)))
            self.gathered[name] = whole if many else whole[0]
        return self.gathered[name]

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


class StepExecutor(Protocol):
    """What runs a sequence of steps on a state.

    compiles: whether it joins operations, so that computing again may be faster than reading
    """

    compiles: bool

    def run(self, steps: tuple[Step, ...], state: State) -> None:
        """Run the steps in order and store what they give."""
        ...


class Eager:
    """Calls step after step."""

    compiles = False

    def run(self, steps: tuple[Step, ...], state: State) -> None:
        """Run the steps in order and store what they give."""
        with torch.no_grad():
            for step in due(steps, state):
                state.perform(step, self)


def due(steps: tuple[Step, ...], state: State) -> tuple[Step, ...]:
    """The steps to run now: those that run once are left out from their second turn on."""
    if not any(step.once for step in steps):
        return steps
    now = tuple(step for step in steps if not (step.once and step.name in state.done))
    state.done |= {step.name for step in now if step.once}
    return now
