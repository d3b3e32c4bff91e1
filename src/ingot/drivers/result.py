"""What a transient gave: one array per variable, and the flat dictionary of the save format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ingot.execute import Status
from ingot.model import lag
from ingot.types import Value

__all__ = ["Flat", "Result"]


@dataclass(frozen=True, slots=True)
class Result:
    """The histories of a run, (steps, *batch, *axes, *base) each, and how every solve went.

    inputs: what was prescribed; initial: step 0 as it was given; read: the model's inputs; times:
    (steps, *batch); kinds, shapes: of the variables, their structural extents where they have any.
    """

    steps: int
    batch: tuple[int, ...]
    inputs: Mapping[str, Tensor]
    initial: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    read: tuple[str, ...]
    statuses: Sequence[Status]
    seconds: float
    times: Tensor
    kinds: Mapping[str, type[Value]]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def points(self) -> int:
        """How many points the batch holds."""
        return torch.Size(self.batch).numel()

    @property
    def failed(self) -> int:
        """How many points a solve failed for, at any step."""
        return sum(len(s.find_first_failures()) for s in self.statuses if s.has_failed)

    @property
    def microseconds(self) -> float:
        """Wall time per point and computed step."""
        return 1e6 * self.seconds / max(self.points * (self.steps - 1), 1)

    @property
    def flat(self) -> "Flat":
        """The values as `input.<step>.<variable>`, `output.<step>.<variable>`, made when read."""
        return Flat(self)

    def at(self, name: str, step: int) -> Tensor | None:
        """A variable at a step, as an output if it is one, or None where it has no value there."""
        if step == 0 and name in self.initial:
            return self.initial[name]
        if step > 0 and name in self.outputs:
            return self.outputs[name][step]
        return self.inputs[name][step] if name in self.inputs else None

    def save(self, path: str | Path) -> None:
        """Write what the ending says, in one step.

        .csv: a table, a row for each step and point; .npz, .pt and .pth: the flat dictionary, for
        `numpy.load` and for `torch.load(path, weights_only=True)`.
        """
        from ingot.drivers.save import save

        save(self, Path(path))


class Flat(Mapping[str, Tensor]):
    """The values of a result under the keys of the save format, without their step axis.

    Step 0 is not computed: it holds what was given. A history is there once its variable was.
    """

    def __init__(self, result: Result) -> None:
        self.result = result

    def __getitem__(self, key: str) -> Tensor:
        side, step, name = (*key.split(".", 2), "", "")[:3]
        if not step.isdigit() or not 0 <= int(step) < self.result.steps:
            raise KeyError(key)
        look = {"input": self.given, "output": self.gave}.get(side)
        found = look(name, int(step)) if look is not None else None
        if found is None:
            raise KeyError(key)
        return found

    def given(self, name: str, step: int) -> Tensor | None:
        """An input at a step, as far as it was recorded."""
        base, back = lag(name)
        result = self.result
        if name not in result.read:
            return None
        if back:
            return result.at(base, step - back) if step >= back else None
        if step == 0 and name in result.initial:
            return result.initial[name]
        return result.inputs[name][step] if name in result.inputs else None

    def gave(self, name: str, step: int) -> Tensor | None:
        """An output at a step; at step 0 an initial value that is no input."""
        if step > 0:
            return self.result.outputs[name][step] if name in self.result.outputs else None
        return None if name in self.result.read else self.result.initial.get(name)

    def __iter__(self) -> Iterator[str]:
        outputs = dict.fromkeys((*self.result.initial, *self.result.outputs))
        for step in range(self.result.steps):
            yield from (
                f"input.{step}.{n}" for n in self.result.read if self.given(n, step) is not None
            )
            yield from (f"output.{step}.{n}" for n in outputs if self.gave(n, step) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
