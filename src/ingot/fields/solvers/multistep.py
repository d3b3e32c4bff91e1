"""The explicit and semi-implicit solvers: options in, steps over spectra out."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from torch import Tensor

from ingot.fields.solvers.exponential import ETDRK4Solver, stage_rate
from ingot.fields.solvers.solve import SolverOptions, SplitOptions, Substep, kept, olds, update
from ingot.fields.spaces import Grid, Space, Spectrum
from ingot.fields.step import Buffer, Step, Weight
from ingot.options import Meta, NotNegativeCount

__all__ = [
    "AdamsBashforthMoulton", "ForwardEulerSolver", "RealSpaceForwardEuler",
]  # fmt: skip


@functools.lru_cache(maxsize=256)
def adams_weights(nodes: tuple[float, ...]) -> tuple[float, ...]:
    r"""Weights of rates at `nodes` in their mean over the coming step, $\int_0^1 \ell_k(s)\,ds$.

    Nodes are times in units of the step, 0 where it begins: (0, -1, -2) are those of an
    Adams-Bashforth rule of third order, (1, 0, -1) of Adams-Moulton. Steps may have any sizes.
    """
    # In fractions: those of equal steps are the published ones, rounded once.
    exact, weights = [Fraction(node) for node in nodes], []
    for k, node in enumerate(exact):
        basis = [Fraction(1)]  # coefficients of the Lagrange polynomial of this node
        for other in exact[:k] + exact[k + 1 :]:
            shifted, scaled = [Fraction(0), *basis], [other * each for each in basis]
            basis = [
                (a - b) / (node - other)
                for a, b in itertools.zip_longest(shifted, scaled, fillvalue=Fraction(0))
            ]
        weights.append(float(sum(each / (power + 1) for power, each in enumerate(basis))))
    return tuple(weights)


def past_nodes(sizes: Sequence[float], size: float) -> tuple[float, ...]:
    """The beginnings of the present substep and of those before it, in units of its size."""
    return tuple(itertools.accumulate((each / size for each in sizes), operator.sub, initial=0.0))


def euler(spectrum: Spectrum, rate: Spectrum, space: Space, dt: Tensor) -> Grid:
    """A field one explicit step later."""
    return space.inverse(spectrum + dt * rate)


def real_euler(field: Grid, rate: Grid, space: Space, dt: Tensor) -> Grid:
    """A field one explicit step later, without a spectrum."""
    return field + dt * rate


def right_side(
    spectrum: Spectrum, rates: tuple[Spectrum, ...], dt: Tensor, weights: tuple[Tensor, ...]
) -> Spectrum:
    """A spectrum and a weighted sum of rates."""
    total = weights[0] * rates[0]
    for weight, rate in zip(weights[1:], rates[1:], strict=True):
        total = total + weight * rate
    return spectrum + dt * total


def semi_implicit(
    spectrum: Spectrum,
    rates: tuple[Spectrum, ...],
    weights: tuple[Tensor, ...],
    space: Space,
    dt: Tensor,
    linear: Spectrum | None = None,
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


Order = Annotated[int, Meta(ge=1, le=5)]
"""The orders of the reference."""


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
        """Without correctors, and where it need not be started by another method."""
        return self.corrector_steps == 0 and self.depth < ORDER_OF_EULER_START

    def find_idle(self) -> tuple[str, ...]:
        """Options that change nothing beside the others."""
        return () if self.corrector_steps else ("corrector_order",)

    @property
    def depth(self) -> int:
        """How many old rates are read; a corrector has the predicted one besides."""
        return max(
            self.predictor_order - 1, self.corrector_order - 2 if self.corrector_steps else 0
        )

    def histories(self) -> dict[str, int]:
        """Old rates, one fewer than the order."""
        return dict.fromkeys(self.nonlinear_reciprocal, self.depth) if self.depth > 0 else {}

    def quirks(self, *, clocked: bool, changes_size: bool) -> Iterator[str]:
        """Orders that history does not give, and correctors that do not correct."""
        yield from SolverOptions.quirks(self, clocked=clocked, changes_size=changes_size)
        if self.starts_by_euler:
            yield "the first substeps are Euler's, so that the run is of second order"
        if changes_size and self.depth:
            yield "where steps change their size, the first substeps are of first order"
        if self.corrector_steps and self.corrector_order == 1:
            yield "a corrector of first order changes nothing"
        if self.corrector_steps and self.depth:
            yield "old rates are those of predicted fields, not of corrected ones"

    @property
    def starts_by_euler(self) -> bool:
        """Whether an order beyond the second begins with what is none, as the reference does.

        A single Euler step has an error of second order, which a whole run of higher order shows.
        An implicit linear part is of first order anyway.
        """
        explicit = all(linear is None for _, _, linear, _ in self.rows())
        return explicit and self.depth >= ORDER_OF_EULER_START

    def substep(self, solve: Substep) -> None:
        """Predict, then correct; start by a one-step method where old rates are missing."""
        if self.is_starting(solve):
            start(self, solve)
            return
        weigh(self, solve, self.predictor_order, (0.0,))
        solve.evaluate(*prediction(self))
        if self.corrector_steps:
            correct(self, solve, correction)

    def is_starting(self, solve: Substep) -> bool:
        """Whether an order beyond the second lacks old rates, and is not to start by Euler's."""
        few = self.past(solve) < self.depth
        return not solve.compatible and few and self.starts_by_euler

    def past(self, solve: Substep) -> int:
        """How many old rates there are."""
        return min(solve.state.age(name) for name in self.nonlinear_reciprocal)


ORDER_OF_EULER_START = 2
"""What remains of higher orders where the first substep is one of Euler's."""


def start(solver: AdamsBashforthMoulton, solve: Substep) -> None:
    """One step of Runge and Kutta's fourth order; the history gets the rate where it begins."""
    names = ("buffer", "reciprocal_buffer", "linear_reciprocal", "nonlinear_reciprocal")
    ETDRK4Solver(**{name: getattr(solver, name) for name in names}).substep(solve)
    for name in solver.nonlinear_reciprocal:
        solve.state.buffers[name] = solve.state.buffers[stage_rate(name, 1)]


def weigh(
    solver: AdamsBashforthMoulton, solve: Substep, wanted: int, first: tuple[float, ...]
) -> int:
    """Set the weights of rates at the times `first` and of old ones; how many rates count.

    All old rates are read, those without weight too, so that one compiled sequence serves every
    order. The reference takes steps for equal, and a changed size makes old rates worthless.
    """
    state, past = solve.state, solver.past(solve)
    if solve.compatible:
        past = 0 if solve.dt_changed and solve.index < solver.predictor_order - 1 else past
        sizes = (state.dt,) * past
    else:
        sizes = state.sizes[:past]
    nodes = (*first, *past_nodes(sizes, state.dt)[1:])[:wanted]
    missing = len(first) + solver.depth - len(nodes)
    state.weights = adams_weights(nodes) + (0.0,) * missing
    return len(nodes)


def weights_of(count: int) -> tuple[Weight, ...]:
    """Where the weights of so many rates are found."""
    return tuple(map(Weight, range(count)))


@functools.cache
def prediction(solver: AdamsBashforthMoulton) -> tuple[Step, ...]:
    """One update for each field from the present rate and old ones."""
    return tuple(
        update(
            semi_implicit, u, spectrum=Buffer(s), linear=linear,
            rates=(Buffer(n), *olds(n, solver.depth)), weights=weights_of(solver.depth + 1),
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
            semi_implicit, u, spectrum=Buffer(kept(s)), linear=linear,
            rates=corrector_rates(solver, n), weights=weights_of(solver.depth + 2),
        )
        for u, s, linear, n in solver.rows()
    )  # fmt: skip


def corrector_rates(solver: AdamsBashforthMoulton, name: str) -> tuple[Any, ...]:
    """The predicted rate, the one kept from before, and older ones."""
    return (Buffer(name), Buffer(kept(name)), *olds(name, solver.depth))


def correct(solver: AdamsBashforthMoulton, solve: Substep, steps: Any) -> None:
    """Correct as often as asked, with rates at the end of the substep."""
    state = solve.state
    solve.keep(*solver.reciprocal_buffer, *solver.nonlinear_reciprocal)
    order = weigh(solver, solve, solver.corrector_order, (1.0, 0.0))
    state.time += state.dt
    for _ in range(solver.corrector_steps):
        # the order matters where the reference treats the first apart
        solve.evaluate(*steps(solver, min(order, 2), compatible=solve.compatible))
    state.time -= state.dt
    if not solve.compatible:
        # The reference goes on with the rates of the predicted field; the history is the present's.
        for name in solver.nonlinear_reciprocal:
            state.buffers[name] = state.buffers[kept(name)]
