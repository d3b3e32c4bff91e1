"""linear_equations: a solve of mechanics -> the steps of its conjugate gradients, each compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ingot.fields.computes.conjugate_gradients import (
    iterated,
    iterated_spectra,
    loaded,
    moved_by,
    moved_by_spectra,
    out_of_balance,
    restarted,
)
from ingot.fields.computes.models import NEML2TensorCompute
from ingot.fields.computes.projection import homogeneous
from ingot.fields.computes.slopes import Convention
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Source, Step

__all__ = ["ITERATES", "LinearEquations", "linear_equations", "source_of"]

ITERATES = "it iterates sequences that are compiled by themselves"


@dataclass(frozen=True, slots=True)
class LinearEquations:
    """The steps of a solve's linear equations, and the buffers that the loops around them read.

    load: the first right side, of the applied strain; balance: that of stresses out of balance;
    restart: the residual of the last correction, where the next one starts from it; iterate: one of
    conjugate gradients; move: the deformation gradient with the correction; green: the body that
    preconditions, if any; stress: that of the law alone, where it is differentiated in place of
    a tangent that is read; start: the zeros that a correction starts from; at: the deformation
    gradient where the law was evaluated
    """

    load: Step
    balance: Step
    restart: Step | None
    iterate: Step
    move: Step
    green: tuple[Step, ...]
    stress: Step | None
    start: Callable[[Space], Tensor]
    solution: tuple[str, ...]
    at: str
    squares: str
    correction: str
    size: str


def linear_equations(
    step: Step, law: tuple[Step, ...], side: int, stress: Step | None
) -> LinearEquations:
    """The steps for matrices of so many rows.

    As the reference has them, vectors are fields of matrices, which Nyquist wavenumbers make
    necessary; else they are spectra of displacements and forces, a third as many numbers.
    """
    options = step.options
    green = options["preconditioner"] == "GREEN"
    compatible = options["compatible"] and not green
    count = side * side if compatible else side

    def hidden(name: str) -> str:
        return f"{step.name}#{name}"

    def many(name: str, count: int = count) -> tuple[str, ...]:
        return tuple(f"{hidden(name)}/{k}" for k in range(count))

    convention = {"convention": convention_of(step, law)}
    slope: dict[str, Any] = {**convention, "law": None if stress is None else stress.options["law"]}
    reason = "" if step.reason in ("", ITERATES) else step.reason
    known: dict[str, Source | tuple[Source, ...]] = {
        "space": Ambient("space"), "F": Buffer(step.gives[0]), "at": Buffer(hidden("at")),
        "stress": Buffer(options["stress"]), "tangent": Buffer(options["tangent_operator"]),
        "squares": Buffer(hidden("squares")), "scale": Buffer(hidden("scale")),
        "green": tuple(map(Buffer, many("green", side * side))) if green else (),
        **{n: tuple(map(Buffer, many(n))) for n in ("search", "solution", "residual")},
    }  # fmt: skip
    if stress is not None:
        known["moduli"] = (source_of(stress, "K"), source_of(stress, "mu"))
    reads = "tangent" if stress is None else "at moduli"
    if "applied_macroscopic_strain" in step.arguments:
        known["load"] = step.arguments["applied_macroscopic_strain"]

    def made(function: Callable[..., Any], reads: str, gives: tuple[str, ...], **more: Any) -> Step:
        arguments = {name: known[name] for name in reads.split() if name in known}
        name = f"{step.name}#{function.__name__}"
        rare = "it runs once in a solve" if function is loaded else ""
        return Step(name, function, arguments, gives, more, reason=reason or rare, span=step.span)

    residual = (*many("residual"), *many("search"), hidden("squares"))
    begun = residual if compatible else (*residual, hidden("scale"))
    moved = (step.gives[0], hidden("correction"))
    vectors = f"search solution residual squares {reads} space"
    return LinearEquations(
        load=made(
            loaded, f"F load {reads} green space", (step.gives[0], hidden("size"), *begun),
            **slope, compatible=compatible,
        ),
        balance=made(
            out_of_balance, "stress green space", begun, side=side, compatible=compatible
        ),
        restart=made(restarted, f"residual solution {reads} space", residual, **slope)
        if compatible else None,
        iterate=made(
            iterated if compatible else iterated_spectra,
            vectors if compatible else f"{vectors} green scale", (*many("solution"), *residual),
            **slope,
        ),
        move=made(moved_by if compatible else moved_by_spectra, "F solution space", moved),
        green=(made(homogeneous, "tangent space", many("green", side * side), side=side,
                    **convention),) if green else (),
        stress=None if green else stress, start=zero_field if compatible else zero_spectrum,
        solution=many("solution"), squares=hidden("squares"), correction=hidden("correction"),
        size=hidden("size"), at=hidden("at"),
    )  # fmt: skip


def zero_field(space: Space) -> Tensor:
    """A field of zeros."""
    return torch.zeros(space.shape, dtype=space.k2.dtype, device=space.k2.device)


def zero_spectrum(space: Space) -> Tensor:
    """A spectrum of zeros."""
    kind = space.k2.dtype.to_complex()
    return torch.zeros(space.spectrum_shape, dtype=kind, device=space.k2.device)


def convention_of(step: Step, law: tuple[Step, ...]) -> Convention:
    """Where the entries of the tangent stand: as the file says, or as those who write it do."""
    chosen = step.options["tangent_convention"]
    if chosen is not None:
        return chosen
    name = step.options["tangent_operator"]
    makers = [each.function for each in law if name in each.gives]
    return "DERIVATIVE" if makers[-1] is NEML2TensorCompute else "TRANSPOSED"


def source_of(step: Step, name: str) -> Source:
    """The one source of an argument."""
    found = step.arguments[name]
    assert not isinstance(found, tuple)
    return found
