"""Substep: what a solver is given for one substep, and the steps that solvers share.

In: the root steps, a state, an executor. Out: the state one substep later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from ingot.fields.step import Ambient, Buffer, Old, Source, State, Step, StepExecutor
from ingot.options import Count

__all__ = [
    "Root",
    "Solver",
    "SolverOptions",
    "SplitOptions",
    "Substep",
    "forwards",
    "kept",
    "update",
]


@dataclass(frozen=True, slots=True)
class Root:
    """What a solver evaluates: steps in order, and the groups that they make up."""

    steps: tuple[Step, ...]
    groups: tuple[str, ...] = ()


@dataclass(slots=True)
class Substep:
    """One substep: of size `state.dt`, the `index`-th of its step."""

    root: Root
    state: State
    executor: StepExecutor
    index: int = 0
    dt_changed: bool = False
    compatible: bool = True
    iterations: int = 0
    converged: bool = True

    def evaluate(self, *more: Step) -> None:
        """Evaluate the root, then more steps, as one sequence."""
        self.executor.run((*self.root.steps, *more), self.state)
        for group in self.root.groups:
            self.state.counts[group] = self.state.counts.get(group, 0) + 1

    def keep(self, *names: str) -> None:
        """Remember what buffers hold now, under the names that `kept` tells."""
        for name in names:
            self.state.buffers[kept(name)] = self.state.look_up(Buffer(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverOptions:
    """What every solver has.

    root_compute: the compute to evaluate, a group as a rule; all of [Solve] unless given
    substeps: into how many parts each step is cut
    forward_buffer: buffers that take over another's content after each evaluation
    forward_buffer_new: those others
    """

    root_compute: str = ""
    substeps: Count = 1
    forward_buffer: tuple[str, ...] = ()
    forward_buffer_new: tuple[str, ...] = ()

    def histories(self) -> dict[str, int]:
        """How many old states of which buffers it needs: none, unless it says so."""
        return {}

    def quirks(self, *, clocked: bool, changes_size: bool) -> Iterator[str]:
        """What it does as the reference does, and not as the mathematics says, where it counts.

        That depends on whether computes are `clocked`, seeing the time, and steps change size.
        """
        if self.histories() and self.substeps > 1:
            yield "nothing is remembered in the first step, whose substeps are of first order"

    @property
    def can_fail(self) -> bool:
        """Whether a substep may not converge, so that the step is taken again."""
        return False

    @property
    def evaluates_once(self) -> bool:
        """Whether a substep evaluates the root once, so that it reads buffers in updates only."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOptions(SolverOptions):
    """Fields whose rate is a linear part, taken at each wavenumber, and the rest.

    buffer: the fields to move
    reciprocal_buffer: their spectra
    linear_reciprocal: the linear operators, 0 for none
    nonlinear_reciprocal: the spectra of the rest of the rates
    """

    buffer: tuple[str, ...]
    reciprocal_buffer: tuple[str, ...]
    linear_reciprocal: tuple[str, ...]
    nonlinear_reciprocal: tuple[str, ...]

    def lists(self) -> dict[str, tuple[str, ...]]:
        """Field, spectrum, linear part and the rest go together."""
        lists = {
            "buffer": self.buffer,
            "reciprocal_buffer": self.reciprocal_buffer,
            "nonlinear_reciprocal": self.nonlinear_reciprocal,
        }
        if self.linear_reciprocal:
            lists["linear_reciprocal"] = self.linear_reciprocal
        return lists

    def rows(self) -> tuple[tuple[str, str, Buffer | None, str], ...]:
        """Field, spectrum, linear operator if any, and rate of each variable."""
        linear = self.linear_reciprocal or ("0",) * len(self.buffer)
        operators = (None if name == "0" else Buffer(name) for name in linear)
        names = (self.buffer, self.reciprocal_buffer, operators, self.nonlinear_reciprocal)
        return tuple(zip(*names, strict=True))


class Solver(Protocol):
    """Moves a state over one substep."""

    def histories(self) -> dict[str, int]:
        """How many old states of which buffers it needs."""
        ...

    def lists(self) -> dict[str, tuple[str, ...]]:
        """The options that must be lists of one length."""
        ...

    def substep(self, solve: Substep) -> None:
        """Take one substep."""
        ...


def kept(name: str) -> str:
    """Where the content of a buffer is kept while others are tried."""
    return f"{name}#kept"


def same(value: Tensor) -> Tensor:
    """A value as it is."""
    return value


def forwards(targets: tuple[str, ...], sources: tuple[str, ...]) -> tuple[Step, ...]:
    """The steps that hand the content of buffers on to others."""
    return tuple(
        Step(f"{target} from {source}", same, {"value": Buffer(source)}, (target,))
        for target, source in zip(targets, sources, strict=True)
    )


def update(function: object, name: str, **sources: object) -> Step:
    """A step of a solver that gives the buffer `name`; space and step size are passed to it."""
    ambient: dict[str, Source] = {"space": Ambient("space"), "dt": Ambient("dt")}
    given = {key: source for key, source in sources.items() if source is not None}
    return Step(f"{name} by {function.__name__}", function, {**ambient, **given}, (name,))  # type: ignore[reportArgumentType, reportAttributeAccessIssue, reportCallIssue]


def olds(name: str, count: int) -> tuple[Old, ...]:
    """The newest old states of a buffer."""
    return tuple(Old(name, age) for age in range(1, count + 1))
