"""The explicit and semi-implicit solvers: options in, steps over spectra out."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor

from ingot.fields.solvers.solve import SolverOptions, Substep, kept, olds, update
from ingot.fields.spaces import Grid, Space, Spectrum
from ingot.fields.step import Buffer, Step
from ingot.options import Meta, NotNegativeCount

__all__ = [
    "PREDICTORS", "AdamsBashforthMoulton", "ForwardEulerSolver",
    "RealSpaceForwardEuler", "SplitOptions",
]  # fmt: skip

PREDICTORS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (3 / 2, -1 / 2),
    3: (23 / 12, -16 / 12, 5 / 12),
    4: (55 / 24, -59 / 24, 37 / 24, -9 / 24),
    5: (1901 / 720, -2774 / 720, 2616 / 720, -1274 / 720, 251 / 720),
}
"""Adams-Bashforth: the weights of the present rate and of older ones."""

CORRECTORS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (1 / 2, 1 / 2),
    3: (5 / 12, 8 / 12, -1 / 12),
    4: (9 / 24, 19 / 24, -5 / 24, 1 / 24),
    5: (251 / 720, 646 / 720, -264 / 720, 106 / 720, -19 / 720),
}
"""Adams-Moulton: the weights of the predicted rate, of the present one and of older ones."""


def euler(spectrum: Spectrum, rate: Spectrum, space: Space, dt: Tensor) -> Grid:
    """A field one explicit step later."""
    return space.inverse(spectrum + dt * rate)


def real_euler(field: Grid, rate: Grid, space: Space, dt: Tensor) -> Grid:
    """A field one explicit step later, without a spectrum."""
    return field + dt * rate


def right_side(
    spectrum: Spectrum, rates: tuple[Spectrum, ...], dt: Tensor, weights: tuple[float, ...]
) -> Spectrum:
    """A spectrum and a weighted sum of rates."""
    total = weights[0] * rates[0]
    for weight, rate in zip(weights[1:], rates[1:], strict=True):
        total = total + weight * rate
    return spectrum + dt * total


def semi_implicit(
    spectrum: Spectrum,
    rates: tuple[Spectrum, ...],
    space: Space,
    dt: Tensor,
    linear: Spectrum | None = None,
    *,
    weights: tuple[float, ...],
) -> Grid:
    """A field one step later: rates explicit by a multistep rule, the linear part implicit."""
    whole = right_side(spectrum, rates, dt, weights)
    return space.inverse(whole if linear is None else whole / (1 - dt * linear))


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardEulerSolver(SolverOptions):
    """Explicit Euler on spectra.

    buffer: the fields to move
    reciprocal_buffer: their spectra
    time_derivative_reciprocal: the spectra of their rates
    """

    buffer: tuple[str, ...] = ()
    reciprocal_buffer: tuple[str, ...] = ()
    time_derivative_reciprocal: tuple[str, ...] = ()

    @property
    def evaluates_once(self) -> bool:
        """Always."""
        return True

    def histories(self) -> dict[str, int]:
        """None."""
        return {}

    def lists(self) -> dict[str, tuple[str, ...]]:
        """Field, spectrum and rate go together."""
        return {
            "buffer": self.buffer,
            "reciprocal_buffer": self.reciprocal_buffer,
            "time_derivative_reciprocal": self.time_derivative_reciprocal,
        }

    def substep(self, solve: Substep) -> None:
        """Evaluate, and step."""
        solve.evaluate(*euler_steps(self))


@functools.cache
def euler_steps(solver: ForwardEulerSolver) -> tuple[Step, ...]:
    """One update for each field."""
    rows = zip(*solver.lists().values(), strict=True)
    return tuple(update(euler, u, spectrum=Buffer(s), rate=Buffer(r)) for u, s, r in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealSpaceForwardEuler(SolverOptions):
    """Explicit Euler without transforms.

    buffer: the fields to move
    time_derivative: their rates
    """

    buffer: tuple[str, ...]
    time_derivative: tuple[str, ...]

    @property
    def evaluates_once(self) -> bool:
        """Always."""
        return True

    def histories(self) -> dict[str, int]:
        """None."""
        return {}

    def lists(self) -> dict[str, tuple[str, ...]]:
        """Field and rate go together."""
        return {"buffer": self.buffer, "time_derivative": self.time_derivative}

    def substep(self, solve: Substep) -> None:
        """Evaluate, and step."""
        solve.evaluate(*real_euler_steps(self))


@functools.cache
def real_euler_steps(solver: RealSpaceForwardEuler) -> tuple[Step, ...]:
    """One update for each field."""
    rows = zip(*solver.lists().values(), strict=True)
    return tuple(update(real_euler, u, field=Buffer(u), rate=Buffer(r)) for u, r in rows)


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


Order = Annotated[int, Meta(ge=1, le=5)]
"""The orders that there are weights for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamsBashforthMoulton(SplitOptions):
    """Multistep rates, the linear part implicit; correctors on request.

    predictor_order: the order of the predictor, 1 to 5
    corrector_order: the order of the corrector, 1 to 5
    corrector_steps: how often to correct
    """

    predictor_order: Order = 2
    corrector_order: Order = 2
    corrector_steps: NotNegativeCount = 0

    @property
    def evaluates_once(self) -> bool:
        """Without correctors."""
        return self.corrector_steps == 0

    def histories(self) -> dict[str, int]:
        """Old rates, one fewer than the order."""
        depth = max(self.predictor_order, self.corrector_order) - 1
        return dict.fromkeys(self.nonlinear_reciprocal, depth) if depth > 0 else {}

    def substep(self, solve: Substep) -> None:
        """Predict, then correct."""
        order = self.order(solve, self.predictor_order, 1)
        solve.evaluate(*prediction(self, order))
        if self.corrector_steps:
            correct(self, solve, correction)

    def order(self, solve: Substep, wanted: int, without_past: int) -> int:
        """The order that the old rates allow; a changed step size makes them worthless."""
        past = min(solve.state.age(name) for name in self.nonlinear_reciprocal)
        fresh = solve.dt_changed and solve.index < self.predictor_order - 1
        return min(wanted, without_past + (0 if fresh else past))


@functools.cache
def prediction(solver: AdamsBashforthMoulton, order: int) -> tuple[Step, ...]:
    """One update for each field from the present rate and `order - 1` old ones."""
    return tuple(
        update(
            semi_implicit, u, PREDICTORS[order],
            spectrum=Buffer(s), linear=linear, rates=(Buffer(n), *olds(n, order - 1)),
        )
        for u, s, linear, n in solver.rows()
    )  # fmt: skip


@functools.cache
def correction(solver: AdamsBashforthMoulton, order: int, *, compatible: bool) -> tuple[Step, ...]:
    """One update for each field from the predicted rate, the kept one and old ones."""
    if order == 1 and compatible:
        return ()  # the reference skips a corrector of first order
    return tuple(
        update(
            semi_implicit, u, CORRECTORS[order],
            spectrum=Buffer(kept(s)), linear=linear, rates=corrector_rates(n, order),
        )
        for u, s, linear, n in solver.rows()
    )  # fmt: skip


def corrector_rates(name: str, order: int) -> tuple[Any, ...]:
    """The predicted rate, the one kept from before, and older ones."""
    return (Buffer(name), Buffer(kept(name)), *olds(name, order - 2))[:order]


def correct(solver: AdamsBashforthMoulton, solve: Substep, steps: Any) -> None:
    """Correct as often as asked, with rates at the end of the substep."""
    state = solve.state
    solve.keep(*solver.reciprocal_buffer, *solver.nonlinear_reciprocal)
    order = solver.order(solve, solver.corrector_order, 2)
    state.time += state.dt
    for _ in range(solver.corrector_steps):
        solve.evaluate(*steps(solver, order, compatible=solve.compatible))
    state.time -= state.dt
    if not solve.compatible:
        # The reference goes on with the rates of the predicted field; the history is the present's.
        for name in solver.nonlinear_reciprocal:
            state.buffers[name] = state.buffers[kept(name)]
