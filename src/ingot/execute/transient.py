"""Many steps of one program, with the histories of its variables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ingot.errors import Problem
from ingot.execute.batch_shape import ValueShape
from ingot.execute.status import STATUS_ROWS, Status
from ingot.keywords import check_keywords
from ingot.messages import refuse
from ingot.options import Count, fits
from ingot.types import lag

__all__ = ["History", "Transient", "find_inputs", "find_lost_step", "step_calls"]

MAX_LOST = 1e-3  # of a step, to the rounding of times: rates are as wrong as that

Call = Callable[[Mapping[str, Tensor]], tuple[dict[str, Tensor], Sequence[Status]]]


@check_keywords
@dataclass(frozen=True, slots=True)
class Transient:
    """What is known before the first step.

    prescribed: (steps, *batch, *axes, *base) of inputs given at every step; initial: step 0 of
    the others.
    """

    steps: int
    prescribed: Mapping[str, Tensor]
    initial: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        if not fits(self.steps, Count):
            raise refuse("no steps", steps=self.steps)

    def to(self, device: torch.device | str) -> "Transient":
        """The same on a device."""
        moved = ({n: x.to(device) for n, x in v.items()} for v in (self.prescribed, self.initial))
        return Transient(self.steps, *moved)


@dataclass(frozen=True, slots=True)
class History:
    """What came out: (steps, *batch, *axes, *base) of every output, and the status of every solve.

    Step 0 is not computed: it holds the initial values, or zeros. Statuses begin at step 1.
    """

    outputs: dict[str, Tensor]
    statuses: Sequence[Status]

    def to(self, device: torch.device | str) -> "History":
        """The same on a device."""
        outputs = {n: x.to(device) for n, x in self.outputs.items()}
        return History(outputs, tuple(s.to(device) for s in self.statuses))


def find_lost_step(times: Tensor, dtype: torch.dtype, name: str) -> Iterator[Problem]:
    """The first step between times, (steps, *batch), that is another one in a precision."""
    if times.dtype == dtype:
        return
    exact, read = times.double().diff(dim=0), times.to(dtype).double().diff(dim=0)
    lost = (read - exact).abs() > MAX_LOST * exact.abs()
    for place in lost.nonzero()[:1].tolist():
        kind = str(dtype).removeprefix("torch.")
        begin, length, found = (float(x[tuple(place)]) for x in (times, exact, read))
        message = f"a step of {length:g} from '{name}' = {begin:g} is {found:g} in {kind}"
        fix = "compile the model with --dtype float64, or give times nearer to zero"
        yield Problem("lost-step", message, None, fix)


def step_calls(
    call: Call, given: Mapping[str, ValueShape], gives: Sequence[str], transient: Transient,
    dtype: torch.dtype,
) -> History:  # fmt: skip
    """The history of whatever is called with arrays of such shapes and gives such outputs."""
    steps = transient.steps
    if steps == 1:  # another step like it tells the shapes
        twice = {n: torch.stack([x[0], x[0]]) for n, x in transient.prescribed.items()}
        longer = replace(transient, steps=2, prescribed=twice)
        history = step_calls(call, given, gives, longer, dtype)
        none = [s.change(lambda row: row[:0]) for s in history.statuses]
        return History({n: x[:1] for n, x in history.outputs.items()}, none)
    begun = {n: x[0] for n, x in transient.prescribed.items()}
    past: list[dict[str, Tensor]] = [{**begun, **transient.initial}]
    statuses: list[Sequence[Status]] = []
    for k in range(1, steps):
        outputs, status = call(find_inputs(k, given, gives, transient, past, dtype))
        past.append(outputs)
        statuses.append(status)
    histories = {}
    for name in gives:
        rows = [p[name] for p in past[1:]]
        first = past[0].get(name)
        first = torch.zeros_like(rows[0]) if first is None else first.to(rows[0].dtype)
        # an initial value that nothing reads may be for more points than what is computed
        histories[name] = torch.stack(torch.broadcast_tensors(first, *rows))
    stacked = []
    for column in zip(*statuses, strict=True):
        rows = {n: torch.stack([getattr(s, n) for s in column]) for n in STATUS_ROWS}
        stacked.append(Status(column[0].solve, **rows, begin=1))
    return History(histories, tuple(stacked))


def find_inputs(
    step: int, given: Mapping[str, ValueShape], gives: Sequence[str], transient: Transient,
    past: Sequence[Mapping[str, Tensor]], dtype: torch.dtype,
) -> dict[str, Tensor]:  # fmt: skip
    """What is called at a step; past: the outputs of all steps before, and what was given first."""
    inputs = {}
    known = next(iter((*transient.prescribed.values(), *transient.initial.values())), None)
    place = "cpu" if known is None else known.device
    for name, v in given.items():
        base, back = lag(name)
        zero = torch.zeros([*v.sizes, *v.base], dtype=dtype, device=place)
        if base in transient.prescribed and not (back and base in gives):
            values = transient.prescribed[base]
            inputs[name] = values[step - back] if step >= back else torch.zeros_like(values[0])
        elif back == 0 or step < back:
            inputs[name] = zero
        else:
            inputs[name] = past[step - back].get(base, zero)
    return inputs
