"""plan: steps in order -> which of them run as compiled sequences, and which directly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ingot.fields.step import Step

__all__ = ["JitPlan", "PlanPart", "plan"]


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Steps that run as one: a compiled sequence, or one step that runs directly for a reason."""

    steps: tuple[Step, ...]
    reason: str = ""

    @property
    def compiled(self) -> bool:
        """Whether this is a sequence to compile."""
        return not self.reason

    def __str__(self) -> str:
        names = " ".join(step.name for step in self.steps)
        return names if self.compiled else f"{names}*"


@dataclass(frozen=True, slots=True)
class JitPlan:
    """The parts of a run of steps, in order."""

    parts: tuple[PlanPart, ...]

    @property
    def sequences(self) -> int:
        """How many compiled sequences there are."""
        return sum(part.compiled for part in self.parts)

    @property
    def direct(self) -> int:
        """How many steps run directly."""
        return sum(not part.compiled for part in self.parts)

    def __str__(self) -> str:
        direct = (part for part in self.parts if not part.compiled)
        reasons = (f"{part}: {part.reason}" for part in direct)
        return "\n".join([" | ".join(map(str, self.parts)), *reasons])


def plan(steps: Sequence[Step], apart: Mapping[Step, str] | None = None) -> JitPlan:
    """The longest runs of steps that may be compiled, and the others one by one.

    `apart` are steps that were found not to be, and why.
    """
    reasons = {step: (apart or {}).get(step, step.reason) for step in steps}
    return JitPlan(tuple(parts_of(steps, reasons)))


def parts_of(steps: Sequence[Step], reasons: Mapping[Step, str]) -> Iterator[PlanPart]:
    for direct, run in groupby(steps, key=lambda step: bool(reasons[step])):
        if direct:
            yield from (PlanPart((step,), reasons[step]) for step in run)
        else:
            yield PlanPart(tuple(run))
