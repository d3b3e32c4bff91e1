"""AdamsBashforthMoultonCoupled: multistep rates, and a linear part that couples the fields."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ingot.errors import Problem
from ingot.fields.solvers.multistep import (
    AdamsBashforthMoulton,
    correct,
    corrector_rates,
    right_side,
    weigh,
    weights_of,
)
from ingot.fields.solvers.solve import Substep, kept, olds, update
from ingot.fields.spaces import Grid, Space, Spectrum
from ingot.fields.step import Buffer, Step
from ingot.hit import Block

__all__ = ["AdamsBashforthMoultonCoupled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamsBashforthMoultonCoupled(AdamsBashforthMoulton):
    """Multistep rates, and a linear part that couples the fields, solved at each wavenumber.

    linear_offdiag_rows: the fields whose rates the coupling enters, counted from 0
    linear_offdiag_cols: the fields that it multiplies, counted from 0
    linear_offdiag: the coupling operators
    assume_symmetric: whether each coupling also holds the other way round
    """

    linear_offdiag_rows: tuple[int, ...] = ()
    linear_offdiag_cols: tuple[int, ...] = ()
    linear_offdiag: tuple[str, ...] = ()
    assume_symmetric: bool = False

    def find_idle(self) -> tuple[str, ...]:
        """Options that change nothing beside the others."""
        alone = () if self.linear_offdiag else ("assume_symmetric",)
        return (*AdamsBashforthMoulton.find_idle(self), *alone)

    def problems(self, block: Block) -> Iterator[Problem]:
        """Orders without weights, fields without an operator, couplings of fields not there."""
        rows, columns = self.linear_offdiag_rows, self.linear_offdiag_cols
        if not len(rows) == len(columns) == len(self.linear_offdiag):
            message = (
                f"there are {len(rows)} linear_offdiag_rows, {len(columns)} linear_offdiag_cols"
                f" and {len(self.linear_offdiag)} entries of linear_offdiag"
            )
            yield Problem("wrong-value", message, block.span, "give as many of each")
        for number in (*rows, *columns):
            if not 0 <= number < len(self.buffer):
                message = f"a coupling names field {number}, but there are {len(self.buffer)}"
                yield Problem("wrong-value", message, block.span, "count fields from 0")
        if "0" in self.linear_reciprocal or len(self.linear_reciprocal) != len(self.buffer):
            message = f"{block.title} needs an operator in linear_reciprocal for every field"
            fix = "write a buffer of zeros where there is none"
            yield Problem("wrong-value", message, block.span, fix)

    def quirks(self, *, clocked: bool, changes_size: bool) -> Iterator[str]:
        """Couplings and phases besides."""
        yield from AdamsBashforthMoulton.quirks(self, clocked=clocked, changes_size=changes_size)
        pairs = self.couplings()
        if any(pairs.get((column, row)) != name for (row, column), name in pairs.items()):
            yield "couplings act the other way round"
        yield "with a real first operator, phases are dropped"

    def substep(self, solve: Substep) -> None:
        """Predict, then correct."""
        weigh(self, solve, self.predictor_order, (0.0,))
        solve.evaluate(coupled_step(self, compatible=solve.compatible))
        if self.corrector_steps:
            correct(self, solve, coupled_correction)

    def couplings(self) -> dict[tuple[int, int], str]:
        """The operator at each row and column off the diagonal."""
        places = zip(self.linear_offdiag_rows, self.linear_offdiag_cols, strict=True)
        given = dict(zip(places, self.linear_offdiag, strict=True))
        mirrored = {(c, r): name for (r, c), name in given.items()} if self.assume_symmetric else {}
        return mirrored | given


def coupled(
    spectra: tuple[Spectrum, ...],
    rates: tuple[Spectrum, ...],
    weights: tuple[Tensor, ...],
    operators: tuple[Spectrum, ...],
    space: Space,
    dt: Tensor,
    *,
    places: tuple[tuple[int, int], ...],
    compatible: bool,
) -> tuple[Grid, ...]:
    """Fields one step later, from one dense system at each wavenumber."""
    count, per = len(spectra), len(weights)
    sides = [
        right_side(s, rates[k * per : (k + 1) * per], dt, weights) if weights else s
        for k, s in enumerate(spectra)
    ]
    if compatible and not operators[0].is_complex():
        # The reference casts all to the type of the first operator.
        sides = [side.real for side in sides]
        operators = tuple(each.real if each.is_complex() else each for each in operators)
    matrix: dict[tuple[int, int], Tensor | float] = {
        (row, column): float(row == column) for row in range(count) for column in range(count)
    }
    for (row, column), operator in zip(places, operators, strict=True):
        place = (column, row) if compatible else (row, column)
        matrix[place] = matrix[place] - dt * operator
    kind = sides[0].dtype if sides[0].is_complex() else sides[0].dtype.to_complex()
    return tuple(space.inverse(each.to(kind)) for each in solved(matrix, sides))


def solved(matrix: dict[tuple[int, int], Tensor | float], sides: list[Tensor]) -> list[Tensor]:
    """The unknowns of one small system at each wavenumber; two of them by determinants."""
    count = len(sides)
    if count == 2:
        (a, b), (c, d) = ((matrix[row, 0], matrix[row, 1]) for row in range(2))
        determinant = a * d - b * c
        p, q = sides
        return [(d * p - b * q) / determinant, (a * q - c * p) / determinant]
    zero = torch.zeros_like(sides[0])
    rows = [torch.stack([zero + matrix[r, c] for c in range(count)], -1) for r in range(count)]
    right = torch.stack(sides, -1).unsqueeze(-1)
    return list(torch.linalg.solve(torch.stack(rows, -2), right).squeeze(-1).unbind(-1))


def coupled_update(
    solver: AdamsBashforthMoultonCoupled,
    spectra: tuple[Buffer, ...],
    rates: tuple[Any, ...],
    *,
    compatible: bool,
) -> Step:
    """The step that solves for all fields at once; `rates` are those of each field in turn."""
    couplings = solver.couplings()
    places = (*((k, k) for k in range(len(solver.buffer))), *couplings)
    names = (*solver.linear_reciprocal, *couplings.values())
    step = update(
        coupled, " ".join(solver.buffer), spectra=spectra, rates=rates,
        weights=weights_of(len(rates) // len(spectra)), operators=tuple(map(Buffer, names)),
    )  # fmt: skip
    options = {"places": places, "compatible": compatible}
    return Step(step.name, step.function, step.arguments, solver.buffer, options)


@functools.cache
def coupled_step(solver: AdamsBashforthMoultonCoupled, *, compatible: bool) -> Step:
    """The update from the present rates and old ones."""
    names = solver.nonlinear_reciprocal
    rates = tuple(r for n in names for r in (Buffer(n), *olds(n, solver.depth)))
    spectra = tuple(map(Buffer, solver.reciprocal_buffer))
    return coupled_update(solver, spectra, rates, compatible=compatible)


@functools.cache
def coupled_correction(
    solver: AdamsBashforthMoultonCoupled, order: int, *, compatible: bool
) -> tuple[Step, ...]:
    """The update from the predicted rates, the kept ones and old ones."""
    spectra = tuple(Buffer(kept(name)) for name in solver.reciprocal_buffer)
    # The reference leaves the rates out of a corrector of first order.
    names = () if order == 1 and compatible else solver.nonlinear_reciprocal
    rates = tuple(r for n in names for r in corrector_rates(solver, n))
    return (coupled_update(solver, spectra, rates, compatible=compatible),)
