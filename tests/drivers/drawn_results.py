"""Results of any shape, drawn at random: kinds, batches, axes, precision, numbers that are none."""

import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ingot.drivers import Result
from ingot.execute import Status
from ingot.types import KINDS, Scalar

NAMES = ("stress", "state/internal/ep", "a", "a/b", "F", "x.y", "größe", "n%2F", "_under", "q0")
BATCHES = ((), (1,), (3,), (0,), (2, 3), (2, 1, 2), (4, 0))


def draw_result(seed: int) -> Result:
    """A result that a driver might have given."""
    draw, numbers = random.Random(seed), torch.Generator().manual_seed(seed)
    batch = draw.choice(BATCHES)
    dtype = draw.choice((torch.float64, torch.float32))
    steps = draw.choice((1, 2, 5))
    names = draw.sample(NAMES, draw.randint(2, 6))
    kinds = {name: draw.choice(list(KINDS.values())) for name in names}
    kinds["t"] = Scalar
    shapes = {name: draw.choice(((2,), (3, 2))) for name in names if draw.random() < 0.3}
    cut = draw.randint(0, len(names))
    given, gives = ["t", *names[:cut]], names[cut:]

    def values(name: str, *lead: int) -> Tensor:
        some = draw.choice((batch, batch[draw.randint(0, len(batch)) :]))
        whole = (*lead, *some, *shapes.get(name, ()), *kinds[name].base)
        found = torch.randn(whole, generator=numbers, dtype=dtype)
        flat = found.view(-1)
        for odd in (torch.nan, torch.inf, -torch.inf, -0.0, 1e-42):
            if flat.numel() and draw.random() < 0.5:
                flat[draw.randrange(flat.numel())] = odd
        return found

    inputs = {name: values(name, steps) for name in given}
    first = {name: values(name) for name in gives if draw.random() < 0.6}
    outputs = _compute(gives, first, values, steps) if steps > 1 else {}
    read = (*given, *(f"{name}~1" for name in gives if draw.random() < 0.5))
    times = torch.rand((steps, *draw.choice(((), batch))), generator=numbers, dtype=torch.float64)
    statuses = [
        draw_status(f"solve{'/' * i}{i}", steps, batch, numbers) for i in range(draw.randint(0, 2))
    ]
    units = {names[0]: "MPa"} if draw.random() < 0.5 else {}
    axes = {name: ("grain", "slip")[2 - len(shape) :] for name, shape in shapes.items()}
    return Result(steps, batch, inputs, first, outputs, read, statuses if steps > 1 else (),
                  draw.random(), times, kinds, shapes, axes, units)  # fmt: skip


def _compute(
    gives: Sequence[str], first: Mapping[str, Tensor], values, steps: int
) -> dict[str, Tensor]:
    """Outputs, whose step 0 is what was given, or zero."""
    outputs = {}
    for name in gives:
        rows = values(name, steps - 1)
        start = first.get(name, torch.zeros_like(rows[0]))
        start, *rows = torch.broadcast_tensors(start, *rows)
        outputs[name] = torch.stack([start, *rows])
    return outputs


def draw_status(solve: str, steps: int, batch: tuple[int, ...], numbers: torch.Generator) -> Status:
    """How a solve may have gone."""
    shape = (steps - 1, torch.Size(batch).numel())

    def some(high: int, dtype: torch.dtype) -> Tensor:
        return torch.randint(0, high, shape, generator=numbers, dtype=dtype)

    residual = torch.rand(shape, generator=numbers, dtype=torch.float64)
    residual[residual > 0.8] = torch.nan
    return Status(solve, some(3, torch.int8), some(30, torch.int32), residual,
                  some(5, torch.int32), some(4, torch.int8), begin=1)  # fmt: skip
