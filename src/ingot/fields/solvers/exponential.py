"""ETDRK4Solver: exponential Runge-Kutta of fourth order for stiff linear parts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ingot.fields.solvers.solve import SplitOptions, Substep, kept
from ingot.fields.spaces import Grid, Space, Spectrum
from ingot.fields.step import Ambient, Buffer, Step

__all__ = ["ETDRK4Solver", "stage_rate"]

TERMS = 18


def phi(order: int, z: Tensor) -> Tensor:
    r"""$\varphi_n(z) = \sum_k z^k / (k+n)!$; by this series near 0, where the closed form fails."""
    near = z.abs() < 1
    small = torch.where(near, z, torch.zeros_like(z))
    series = torch.zeros_like(z)
    for k in reversed(range(TERMS)):
        series = series * small + 1 / math.factorial(k + order)
    safe = torch.where(near, torch.ones_like(z), z)
    closed = torch.exp(safe)
    for k in range(order):
        closed = (closed - 1 / math.factorial(k)) / safe
    return torch.where(near, series, closed)


def coefficients(linear: Spectrum, dt: Tensor) -> tuple[Tensor, ...]:
    """What the stages multiply spectra and rates by, after Cox and Matthews."""
    z = dt * linear
    one, two, three = (phi(order, z) for order in (1, 2, 3))
    half = dt / 2 * phi(1, z / 2)
    first = dt * (one - 3 * two + 4 * three)
    second = 2 * dt * (two - 2 * three)
    third = dt * (4 * three - two)
    return torch.exp(z), torch.exp(z / 2), half, first, second, third


def stage(
    spectrum: Spectrum, rate: Spectrum, factors: tuple[Tensor, ...], space: Space
) -> tuple[Grid, Spectrum]:
    """A field half a step later, and its spectrum."""
    _, half, weight, *_ = factors
    moved = half * spectrum + weight * rate
    return space.inverse(moved), moved


def last_stage(
    moved: Spectrum, rates: tuple[Spectrum, ...], factors: tuple[Tensor, ...], space: Space
) -> Grid:
    """A field a whole step later, from the first stage's spectrum, the first and the third rate."""
    first, third = rates
    return space.inverse(factors[1] * moved + factors[2] * (2 * third - first))


def whole(
    spectrum: Spectrum, rates: tuple[Spectrum, ...], factors: tuple[Tensor, ...], space: Space
) -> Grid:
    """A field a whole step later, from the rates of all stages."""
    n1, n2, n3, n4 = rates
    exponential, _, _, first, second, third = factors
    total = exponential * spectrum + first * n1 + second * (n2 + n3) + third * n4
    return space.inverse(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class ETDRK4Solver(SplitOptions):
    """Exponential Runge-Kutta of fourth order; the linear part is exact."""

    def quirks(self, *, clocked: bool, changes_size: bool) -> Iterator[str]:
        """Stages of one time."""
        if clocked:
            yield "all stages see the time where a substep begins"

    def substep(self, solve: Substep) -> None:
        """Four evaluations, each with the update that follows it."""
        first, second, third, fourth = stages(self)
        names = self.nonlinear_reciprocal
        state, begin = solve.state, solve.state.time
        solve.evaluate(*(factors(self) if self.stale(solve) else ()), *first)
        solve.keep(*self.reciprocal_buffer)
        for number, steps, share in ((1, second, 0.5), (2, third, 0.5), (3, fourth, 1.0)):
            for name in names:
                state.buffers[stage_rate(name, number)] = state.look_up(Buffer(name))
            # The reference evaluates all stages at the time where the substep begins.
            state.time = begin + (0.0 if solve.compatible else share * state.dt)
            solve.evaluate(*steps)
        state.time = begin

    def stale(self, solve: Substep) -> bool:
        """Whether the factors are to be computed: at first, or where what they rest on changes."""
        state = solve.state
        written = {name for step in solve.root.steps for name in step.gives}
        found = False
        for u, _, linear, _ in self.rows():
            operator = None if linear is None else state.look_up(linear)
            rests_on = (operator, state.scalar(state.dt))
            known = tuple(state.buffers.get(f"{u}#{word}") for word in ("operator", "step"))
            same = all(a is b for a, b in zip(rests_on, known, strict=True))
            found |= not same or (linear is not None and linear.name in written)
            if operator is not None:
                state.buffers[f"{u}#operator"] = operator
            state.buffers[f"{u}#step"] = rests_on[1]
        return found


def stage_rate(name: str, number: int) -> str:
    """Where the rate of a stage is kept."""
    return f"{name}#{number}"


@functools.cache
def factors(solver: ETDRK4Solver) -> tuple[Step, ...]:
    """The steps that compute what the stages need of the linear parts."""
    return tuple(
        Step(
            f"{u}#factors",
            coefficients if linear is not None else no_linear,
            {"linear": linear or Buffer(u), "dt": Ambient("dt")},
            tuple(f"{u}#factor{k}" for k in range(6)),
        )
        for u, _, linear, _ in solver.rows()
    )


def no_linear(linear: Grid, dt: Tensor) -> tuple[Tensor, ...]:
    """The factors where there is no linear part."""
    return coefficients(torch.zeros_like(dt), dt)


@functools.cache
def stages(solver: ETDRK4Solver) -> tuple[tuple[Step, ...], ...]:
    """The updates after each of the four evaluations."""
    four: tuple[list[Step], ...] = ([], [], [], [])
    for u, s, _, n in solver.rows():
        space = {"space": Ambient("space")}
        weights = {"factors": tuple(Buffer(f"{u}#factor{k}") for k in range(6))}
        present, before = {"rate": Buffer(n)}, {"spectrum": Buffer(kept(s))}
        moved = f"{u}#moved"
        two = {"rates": (Buffer(stage_rate(n, 1)), Buffer(n))}
        all_rates = {"rates": (*(Buffer(stage_rate(n, k)) for k in (1, 2, 3)), Buffer(n))}
        start = {"spectrum": Buffer(s)}
        four[0].append(Step(f"{u}#1", stage, space | weights | present | start, (u, moved)))
        four[1].append(Step(f"{u}#2", stage, space | weights | present | before, (u, f"{u}#other")))
        four[2].append(
            Step(f"{u}#3", last_stage, space | weights | two | {"moved": Buffer(moved)}, (u,))
        )
        four[3].append(Step(f"{u}#4", whole, space | weights | all_rates | before, (u,)))
    return tuple(tuple(steps) for steps in four)
