"""Many steps of one program, with the histories of its variables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ingot.execute.status import Status
from ingot.types import lag

if TYPE_CHECKING:
    from ingot.program import Program

__all__ = ["History", "Transient", "step_through"]

Call = Callable[[Mapping[str, Tensor]], tuple[dict[str, Tensor], tuple[Status, ...]]]


@dataclass(frozen=True, slots=True)
class Transient:
    """What is known before the first step.

    prescribed: (steps, *batch, *axes, *base) of inputs given at every step; initial: step 0 of
    the others.
    """

    steps: int
    prescribed: Mapping[str, Tensor]
    initial: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class History:
    """What came out: (steps, *batch, *axes, *base) of every output, and the status of every solve.

    Step 0 is not computed: it holds the initial values, or zeros. Statuses begin at step 1.
    """

    outputs: dict[str, Tensor]
    statuses: tuple[Status, ...]


def step_through(
    call: Call, program: "Program", transient: Transient, dtype: torch.dtype
) -> History:
    """The history, one call a step."""
    steps = transient.steps
    begun = {n: x[0] for n, x in transient.prescribed.items()}
    past: list[dict[str, Tensor]] = [{**begun, **transient.initial}]
    statuses: list[tuple[Status, ...]] = []
    gives = {v.name for v in program.outputs}
    for k in range(1, steps):
        inputs = {}
        for v in program.inputs:
            base, back = lag(v.name)
            sizes = [program.graph.extent(a) for a in v.axes]
            zero = torch.zeros([*sizes, *v.kind.base], dtype=dtype)
            if base in transient.prescribed and not (back and base in gives):
                values = transient.prescribed[base]
                inputs[v.name] = values[k - back] if k >= back else torch.zeros_like(values[0])
            elif back == 0 or k < back:
                inputs[v.name] = zero
            else:
                inputs[v.name] = past[k - back].get(base, zero)
        outputs, status = call(inputs)
        past.append(outputs)
        statuses.append(status)
    histories = {}
    for v in program.outputs:
        rows = [p[v.name] for p in past[1:]]
        first = past[0].get(v.name)
        if rows:
            first = torch.zeros_like(rows[0]) if first is None else first.expand_as(rows[0])
            histories[v.name] = torch.stack([first.to(rows[0].dtype), *rows])
    return History(histories, tuple(_joined(column) for column in zip(*statuses, strict=True)))


def _joined(column: tuple[Status, ...]) -> Status:
    return Status(
        column[0].solve,
        torch.stack([s.reason for s in column]),
        torch.stack([s.iterations for s in column]),
        torch.stack([s.residual for s in column]),
        torch.stack([s.pivoted for s in column]),
        begin=1,
    )
