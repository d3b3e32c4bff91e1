"""[Executioner] -> how time goes on: the bounds of a run, and the size of each step."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.fields.blocks.bind import Binder
from ingot.fields.blocks.functions import Function, at_origin
from ingot.fields.blocks.options import Reader, place
from ingot.fields.blocks.problem import MOOSE_ONLY
from ingot.fields.declare import FunctionName
from ingot.hit import Block
from ingot.options import Factor, NotNegative, NotNegativeCount, Positive, Share

__all__ = [
    "SAME_SIZE", "STEPPERS", "Executioner", "Progress", "Stepper", "read_executioner",
    "read_stepper", "shortened", "wrong_stepper",
]  # fmt: skip

SAME_SIZE = 1e-6
"""Relative difference up to which two step sizes are one: the time, a sum of many steps, is rounded
by more than a bit, and neither a sliver of a step at the end nor a lost history must come of it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the size of the next step may depend on."""

    step: int
    time: float
    dt: float
    iterations: int | None = None
    failed: bool = False
    values: Mapping[str, float] | None = None


class Stepper(Protocol):
    """Chooses the size of each step."""

    adapts: ClassVar[bool]
    """Whether steps that fail are part of how it finds their size."""

    def first(self) -> float:
        """The size of the first step."""
        ...

    def next(self, progress: Progress) -> float:
        """The size of the step after the one that just ended."""
        ...

    def retry(self, progress: Progress) -> float:
        """The size to try a failed step again with."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Executioner:
    """A run through time.

    num_steps: the most steps to take; as many as the time allows unless given
    dt: the size of a step
    start_time: the time at the start
    end_time: the time to stop at; the last step is shortened to hit it
    dtmin: the smallest step
    dtmax: the largest step
    """

    num_steps: NotNegativeCount | None = None
    dt: Positive = 1.0
    start_time: float = 0.0
    end_time: float = 1e30
    dtmin: Positive = 1e-12
    dtmax: Positive = 1e30


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantDT:
    """Steps of one size; after one that failed they grow back to it.

    dt: the size, the executioner's unless given
    growth_factor: how much longer a step is than the last one, where that was cut
    cutback_factor_at_failure: how much shorter a failed step is tried again
    """

    adapts: ClassVar[bool] = False

    dt: Positive | None = None
    growth_factor: Factor = 2.0
    cutback_factor_at_failure: Share = 0.5

    def first(self) -> float:
        """The size."""
        assert self.dt is not None, "a simulation gives it"
        return self.dt

    def next(self, progress: Progress) -> float:
        """The same again, or as close to it as growth allows."""
        return min(self.first(), progress.dt * self.growth_factor)

    def retry(self, progress: Progress) -> float:
        """The failed size, cut."""
        return progress.dt * self.cutback_factor_at_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationAdaptiveDT:
    """Steps that grow by a factor; there are no nonlinear iterations to shrink them.

    dt: the size of the first step
    growth_factor: how much longer each step is than the last
    cutback_factor: accepted, without effect: there are no nonlinear iterations
    cutback_factor_at_failure: how much shorter a failed step is tried again
    optimal_iterations: accepted, without effect: there are no nonlinear iterations
    iteration_window: accepted, without effect
    """

    adapts: ClassVar[bool] = True

    dt: Positive
    growth_factor: Factor = 2.0
    cutback_factor: Share = 0.5
    cutback_factor_at_failure: Share = 0.5
    optimal_iterations: NotNegativeCount | None = None
    iteration_window: NotNegativeCount | None = None

    def first(self) -> float:
        """The size of the first step."""
        return self.dt

    def next(self, progress: Progress) -> float:
        """The last size, grown."""
        return progress.dt * self.growth_factor

    def retry(self, progress: Progress) -> float:
        """The failed size, cut."""
        return progress.dt * self.cutback_factor_at_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSolveIterationAdaptiveDT:
    """Steps that grow and shrink with the iterations of an implicit solver.

    dt: the size of the first step
    min_iterations: below this many iterations steps grow
    max_iterations: above this many iterations steps shrink
    growth_factor: how much longer a step becomes
    cutback_factor: how much shorter a step becomes
    cutback_factor_at_failure: how much shorter a failed step is tried again
    timestep_limiting_postprocessor: postprocessors that no step may exceed
    """

    adapts: ClassVar[bool] = True

    dt: Positive
    min_iterations: NotNegativeCount
    max_iterations: NotNegativeCount
    growth_factor: Factor = 2.0
    cutback_factor: Share = 0.5
    cutback_factor_at_failure: Share = 0.5
    timestep_limiting_postprocessor: tuple[str, ...] = ()

    def first(self) -> float:
        """The size of the first step."""
        return self.dt

    def next(self, progress: Progress) -> float:
        """The last size, grown or cut by the iterations it took."""
        size, iterations = progress.dt, progress.iterations or 0
        if iterations < self.min_iterations and not progress.failed:
            size *= self.growth_factor
        elif iterations > self.max_iterations:
            size *= self.cutback_factor
        values = progress.values or {}
        return min([size, *(values[name] for name in self.timestep_limiting_postprocessor)])

    def retry(self, progress: Progress) -> float:
        """The failed size, cut."""
        return progress.dt * self.cutback_factor_at_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDT:
    """Steps whose size is a function of time.

    function: its name in [Functions]
    min_dt: the smallest step
    """

    adapts: ClassVar[bool] = False

    function: FunctionName
    min_dt: NotNegative = 0.0

    def first(self) -> float:
        """The size at time zero."""
        return self.at(0.0)

    def next(self, progress: Progress) -> float:
        """The size at the time reached."""
        return self.at(progress.time)

    def retry(self, progress: Progress) -> float:
        """Half of it."""
        return progress.dt / 2

    def at(self, time: float) -> float:
        """The size at a time."""
        function: Function = self.function
        return max(at_origin(function, time), self.min_dt)


STEPPERS = {
    "ConstantDT": ConstantDT,
    "IterationAdaptiveDT": IterationAdaptiveDT,
    "TensorSolveIterationAdaptiveDT": TensorSolveIterationAdaptiveDT,
    "FunctionDT": FunctionDT,
}


def check_executioner(executioner: Executioner, block: Block) -> Iterator[Problem]:
    """Bounds of a run that leave nothing between them."""
    for low, high in (("dtmin", "dtmax"), ("start_time", "end_time")):
        first, last = getattr(executioner, low), getattr(executioner, high)
        if not first <= last:
            message = f"{low} = {first:g} does not lie below {high} = {last:g}"
            written = low if block.field(low) is not None else high
            fix = f"give a smaller {low}, or a larger {high}"
            yield Problem("wrong-value", message, place(block, written), fix)


def shortened(executioner: Executioner, time: float, size: float) -> float:
    """A step within the executioner's bounds, which does not pass the end."""
    if math.isnan(size):
        message = f"the size of the step that begins at time {time:g} is not a number"
        fix = "check the options of [TimeStepper], and what they refer to"
        raise IngotError([Problem("wrong-value", message, fix=fix)])
    size = min(max(size, executioner.dtmin), executioner.dtmax)
    left = executioner.end_time - time
    return left if size > left or math.isclose(size, left, rel_tol=SAME_SIZE) else size


def read_executioner(block: Block | None, reader: Reader) -> Executioner:
    """The bounds of a run; without a block it takes no step."""
    if block is None:
        return Executioner(num_steps=0)
    for option in block.fields:
        if option.name in MOOSE_ONLY:
            message = "'%s' of [Executioner] has no effect: there is no finite-element solve"
            logging.getLogger("ingot").warning(message, option.name)
    reader.type_of(block, {"Transient": Executioner}, "Transient")
    made = reader.made(block, Executioner, ("type", *MOOSE_ONLY), ("TimeStepper",))
    if made is not None:
        reader.problems += check_executioner(made, block)
    return made or Executioner()


def read_stepper(block: Block | None, binder: Binder, executioner: Executioner) -> Stepper:
    """The stepper of an [Executioner], whose own size of a step counts where no other is given."""
    size = executioner.dt
    inner = None if block is None else block.block("TimeStepper")
    if inner is None:
        return ConstantDT(dt=size)
    kind = binder.reader.type_of(inner, STEPPERS)
    made = None if kind is None else binder.reader.made(inner, kind)
    name = getattr(made, "function", None)
    if made is not None and name is not None:
        function = binder.resolved(inner, FunctionName, name)
        made = dataclasses.replace(made, function=function)
    if (
        isinstance(made, TensorSolveIterationAdaptiveDT)
        and made.min_iterations > made.max_iterations
    ):
        message = f"min_iterations = {made.min_iterations} lies above max_iterations"
        span = place(inner, "min_iterations")
        fix = f"give {made.max_iterations} or fewer"
        binder.reader.problems.append(Problem("wrong-value", message, span, fix))
    if isinstance(made, ConstantDT) and made.dt is None:
        made = dataclasses.replace(made, dt=size)
    elif made is not None:
        binder.reader.tell_idle_fields(block, executioner, ("dt",))
    return made or ConstantDT(dt=size)


def wrong_stepper(stepper: Stepper, names: list[str], block: Block | None) -> Iterator[Problem]:
    """A problem for each postprocessor that a stepper does not find."""
    inner = None if block is None else block.block("TimeStepper")
    if not isinstance(stepper, TensorSolveIterationAdaptiveDT) or inner is None:
        return
    for name in stepper.timestep_limiting_postprocessor:
        if name not in names:
            message = f"[Postprocessors] has no block '{name}'"
            span = place(inner, "timestep_limiting_postprocessor")
            yield Problem("missing-block", message, span, did_you_mean(name, names))
