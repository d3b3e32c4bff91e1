"""Streaming: an LBMStream -> a step for each distribution, which moves it by one cell."""

from __future__ import annotations

from ingot.errors import Span
from ingot.fields.lbm.operators import clear, join, shift
from ingot.fields.lbm.stencils import Stencil
from ingot.fields.solvers.lattice import LBMStream
from ingot.fields.spaces import Grid, Space
from ingot.fields.step import Ambient, Buffer, Old, Source, Step

__all__ = ["stream", "streams"]


def stream(f_old: Grid, space: Space, solid: Grid | None = None, *, stencil: Stencil) -> Grid:
    """A distribution, each direction of it one cell on, and nothing in solid cells."""
    ways = enumerate(stencil.directions)
    parts = [shift(f_old.select(-1, i), e[: stencil.dim], space) for i, e in ways]
    return clear(join(parts), solid)


def streams(
    solver: LBMStream, stencil: Stencil, solid: str | None, span: Span | None
) -> tuple[Step, ...]:
    """A step for each distribution that moves."""
    more: dict[str, Source] = {"space": Ambient("space")}
    more |= {} if solid is None else {"solid": Buffer(solid)}
    return tuple(
        Step(
            f"stream {name}", stream, {"f_old": Old(old), **more}, (name,), {"stencil": stencil},
            span=span,
        )
        for name, old in zip(solver.buffer, solver.f_old, strict=True)
    )  # fmt: skip
