"""SecantSolver and BroydenSolver: implicit Euler on spectra, iterated to a small residual."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from ingot.fields.solvers.solve import SplitOptions, Substep, kept
from ingot.fields.spaces import Grid, Space, Spectrum
from ingot.fields.step import Ambient, Buffer, Step
from ingot.options import Count, NotNegative, Positive

__all__ = ["BroydenSolver", "SecantSolver"]

AMBIENT = {"space": Ambient("space"), "dt": Ambient("dt")}


@dataclass(frozen=True, slots=True, kw_only=True)
class IterativeOptions(SplitOptions):
    """What both have.

    max_iterations: the most iterations of a substep
    relative_tolerance: how small the residual must become against the first
    absolute_tolerance: how small the residual must become
    dt_epsilon: the explicit step that makes the first guess
    verbose: whether to log the residuals
    """

    max_iterations: Count = 30
    relative_tolerance: NotNegative = 1e-9
    absolute_tolerance: NotNegative = 1e-9
    dt_epsilon: Positive = 1e-4
    verbose: bool = False

    @property
    def can_fail(self) -> bool:
        """Iterations may not converge."""
        return True

    def limit(self, space: Space, first: float, *spectra: Tensor) -> float:
        """How small a residual must become; in single precision, no smaller than rounding."""
        limit = max(self.absolute_tolerance, self.relative_tolerance * first)
        if spectra[0].dtype != torch.complex64:
            return limit
        size = first + sum(float(space.norm(each)) for each in spectra)
        return max(limit, 4 * torch.finfo(torch.float32).eps * size)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecantSolver(IterativeOptions):
    """Implicit Euler by a secant at each wavenumber.

    damping: the share of each correction that is taken
    """

    damping: Positive = 1.0

    def substep(self, solve: Substep) -> None:
        """Iterate until every field's residual is small."""
        spectra, state = self.reciprocal_buffer, solve.state
        solve.evaluate(*starts(self))
        solve.keep(*spectra)
        firsts = zip(norms(self, solve), spectra, strict=True)
        limits = [self.limit(state.space, first, state.buffers[kept(s)]) for first, s in firsts]
        for iteration in range(self.max_iterations):
            solve.evaluate(*secants(self))
            solve.iterations = iteration
            now = norms(self, solve)
            if self.verbose:
                logging.getLogger("ingot").info("secant %d: residuals %s", iteration, now)
            if any(norm != norm for norm in now):
                break
            if all(size < limit for size, limit in zip(now, limits, strict=True)):
                return
        solve.converged = False
        for u, s in zip(self.buffer, spectra, strict=True):
            state.buffers[u] = state.space.inverse(state.buffers[kept(s)])


def norms(solver: IterativeOptions, solve: Substep) -> list[float]:
    """The size of each field's residual."""
    return [float(solve.state.buffers[f"{u}#norm"]) for u in solver.buffer]


def start(
    spectrum: Spectrum, rate: Spectrum, space: Space, dt: Tensor, linear: Tensor | None = None,
    *, epsilon: float,
) -> tuple[Grid, Spectrum, Spectrum, Tensor]:  # fmt: skip
    """A first guess by a tiny step, the residual before it, its spectrum, its norm."""
    operator = torch.zeros_like(dt) if linear is None else linear
    residual = dt * (rate + operator * spectrum)
    guess = (spectrum + epsilon * rate) / (1 - epsilon * operator)
    return space.inverse(guess), residual, spectrum, space.norm(residual)


def secant(
    spectrum: Spectrum, rate: Spectrum, before: Spectrum, last: Spectrum, last_residual: Spectrum,
    space: Space, dt: Tensor, linear: Tensor | None = None, *, damping: float,
) -> tuple[Grid, Spectrum, Spectrum, Tensor]:  # fmt: skip
    """The next guess, and the residual, spectrum and norm of this one."""
    operator = torch.zeros_like(dt) if linear is None else linear
    residual = dt * (rate + operator * spectrum) + before - spectrum
    below = residual - last_residual
    flat = below == 0
    safe = torch.where(flat, torch.ones_like(below), below)
    change = torch.where(flat, torch.zeros_like(below), -residual * (spectrum - last) / safe)
    return space.inverse(spectrum + damping * change), residual, spectrum, space.norm(residual)


def gives(name: str) -> tuple[str, ...]:
    """What an iteration leaves behind."""
    return name, f"{name}#residual", f"{name}#last", f"{name}#norm"


@functools.cache
def starts(solver: SecantSolver) -> tuple[Step, ...]:
    """The first guesses."""
    return tuple(
        Step(
            f"{u}#start", start,
            AMBIENT | {"spectrum": Buffer(s), "rate": Buffer(n)} | maybe(linear),
            gives(u), {"epsilon": solver.dt_epsilon},
        )
        for u, s, linear, n in solver.rows()
    )  # fmt: skip


@functools.cache
def secants(solver: SecantSolver) -> tuple[Step, ...]:
    """One iteration."""
    return tuple(
        Step(
            f"{u}#secant", secant,
            AMBIENT | maybe(linear) | {
                "spectrum": Buffer(s), "rate": Buffer(n), "before": Buffer(kept(s)),
                "last": Buffer(f"{u}#last"), "last_residual": Buffer(f"{u}#residual"),
            },
            gives(u), {"damping": solver.damping},
        )
        for u, s, linear, n in solver.rows()
    )  # fmt: skip


def maybe(linear: Buffer | None) -> dict[str, Buffer]:
    """The linear operator as an argument, where there is one."""
    return {} if linear is None else {"linear": linear}


@dataclass(frozen=True, slots=True, kw_only=True)
class BroydenSolver(IterativeOptions):
    """Implicit Euler by Broyden's updates of an inverse Jacobian at each wavenumber.

    dt_epsilon: accepted, without effect: the first guess is the field itself
    initial_jacobian_guess: the inverse Jacobian to start from
    damping: the share of each correction that is taken
    """

    max_iterations: Count = 5
    initial_jacobian_guess: float = 1.0
    damping: Positive = 0.5

    def substep(self, solve: Substep) -> None:
        """Iterate until the residual is small."""
        state = solve.state
        first_step, step = broyden_steps(self)
        solve.evaluate(first_step)
        solve.keep(*self.reciprocal_buffer)
        if "#inverse" not in state.buffers:
            residual = state.buffers["#residual"]
            eye = torch.eye(len(self.buffer), dtype=residual.dtype, device=residual.device)
            shape = (*residual.shape[:-1], *eye.shape)
            state.buffers["#inverse"] = (self.initial_jacobian_guess * eye).expand(shape)
        before = (state.buffers[kept(s)] for s in self.reciprocal_buffer)
        first = float(state.space.norm(state.buffers["#residual"]))
        limit = self.limit(state.space, first, *before)
        for iteration in range(self.max_iterations + 1):
            solve.iterations = iteration
            now = float(state.space.norm(state.buffers["#residual"]))
            if self.verbose:
                logging.getLogger("ingot").info("broyden %d: residual %g", iteration, now)
            if now < limit:
                return
            if now != now or iteration == self.max_iterations:
                solve.converged = False
                return
            solve.executor.run((broyden_move(self),), state)
            solve.evaluate(step)


def residuals(
    spectra: tuple[Spectrum, ...], rates: tuple[Spectrum, ...], dt: Tensor,
    operators: tuple[Tensor, ...], before: tuple[Spectrum, ...] = (),
) -> Tensor:  # fmt: skip
    """The residuals of all fields, stacked last."""
    found = [dt * (n + L * s) for s, n, L in zip(spectra, rates, operators, strict=True)]
    found = [r + b - s for r, b, s in zip(found, before, spectra, strict=True)] if before else found
    return torch.stack(found, -1)


def first_residual(
    spectra: tuple[Spectrum, ...], rates: tuple[Spectrum, ...], dt: Tensor,
    operators: tuple[Tensor, ...] = (), *, linear: tuple[bool, ...],
) -> Tensor:  # fmt: skip
    """The residuals before the first move."""
    return residuals(spectra, rates, dt, spread(operators, linear, dt))


def spread(
    operators: tuple[Tensor, ...], linear: tuple[bool, ...], dt: Tensor
) -> tuple[Tensor, ...]:
    """An operator for each field, zero where there is none."""
    given = iter(operators)
    return tuple(next(given) if has else torch.zeros_like(dt) for has in linear)


def move(
    spectra: tuple[Spectrum, ...],
    inverse: Tensor,
    residual: Tensor,
    space: Space,
    *,
    damping: float,
) -> tuple[Tensor, ...]:
    """The direction to move in, and the moved fields."""
    direction = -(inverse @ residual.unsqueeze(-1)).squeeze(-1)
    moved = (space.inverse(s + damping * direction[..., k]) for k, s in enumerate(spectra))
    return (direction, *moved)


def broyden(
    spectra: tuple[Spectrum, ...], rates: tuple[Spectrum, ...], before: tuple[Spectrum, ...],
    inverse: Tensor, residual: Tensor, direction: Tensor, dt: Tensor,
    operators: tuple[Tensor, ...] = (), *, linear: tuple[bool, ...],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The new residual, and the inverse Jacobian that explains it."""
    new = residuals(spectra, rates, dt, spread(operators, linear, dt), before)
    change = new - residual
    below = (direction * change).sum(-1)
    usable = below.abs() > 1e-12
    safe = torch.where(usable, below, torch.ones_like(below))
    miss = direction - (inverse @ change.unsqueeze(-1)).squeeze(-1)
    more = miss.unsqueeze(-1) * direction.unsqueeze(-2) / safe[..., None, None]
    return new, inverse + torch.where(usable[..., None, None], more, torch.zeros_like(more))


@functools.cache
def broyden_steps(solver: BroydenSolver) -> tuple[Step, Step]:
    """The first residual, and an update after each evaluation."""
    rows = solver.rows()
    spectra = tuple(Buffer(s) for _, s, _, _ in rows)
    common = {
        "spectra": spectra, "rates": tuple(Buffer(n) for *_, n in rows), "dt": Ambient("dt"),
        "operators": tuple(linear for _, _, linear, _ in rows if linear is not None),
    }  # fmt: skip
    options = {"linear": tuple(linear is not None for _, _, linear, _ in rows)}
    more = {
        "before": tuple(Buffer(kept(s)) for _, s, _, _ in rows), "inverse": Buffer("#inverse"),
        "residual": Buffer("#residual"), "direction": Buffer("#direction"),
    }  # fmt: skip
    start_step = Step("#first residual", first_residual, common, ("#residual",), options)
    gives = ("#residual", "#inverse")
    return start_step, Step("#broyden", broyden, common | more, gives, options)


@functools.cache
def broyden_move(solver: BroydenSolver) -> Step:
    """One move of all fields."""
    arguments = {
        "spectra": tuple(map(Buffer, solver.reciprocal_buffer)), "inverse": Buffer("#inverse"),
        "residual": Buffer("#residual"), "space": Ambient("space"),
    }  # fmt: skip
    gives = ("#direction", *solver.buffer)
    return Step("#move", move, arguments, gives, {"damping": solver.damping})
