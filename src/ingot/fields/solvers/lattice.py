"""LBMStream: one step of a lattice: distributions move on, faces answer, computes look at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ingot.fields.solvers.solve import SolverOptions, Substep

__all__ = ["LBMStream"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LBMStream(SolverOptions):
    """Moves distributions along their directions, by a cell in each step of the lattice.

    buffer: the distributions that arrive
    f_old: the distributions that leave, after their collision
    """

    buffer: tuple[str, ...] = ()
    f_old: tuple[str, ...] = ()

    @property
    def evaluates_once(self) -> bool:
        """Always."""
        return True

    def histories(self) -> dict[str, int]:
        """What left is what was there at the end of the last step."""
        return dict.fromkeys(self.f_old, 1)

    def quirks(self, *, clocked: bool, changes_size: bool) -> Iterator[str]:
        """None: those of a lattice are its computes' and its problem's."""
        yield from ()

    def lists(self) -> dict[str, tuple[str, ...]]:
        """What arrives and what leaves go together."""
        return {"buffer": self.buffer, "f_old": self.f_old}

    def substep(self, solve: Substep) -> None:
        """Stream, answer at boundaries, compute: all of it is the root's."""
        solve.evaluate()
