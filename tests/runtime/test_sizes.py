"""No points, one point, one step: whatever the sizes, all that runs a model agrees."""

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.execute import Transient
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.execute.status import STATUS_ROWS
from ingot.types import lag
from tests import packages
from tests.packages import Made, inputs_of

BATCHES = ((), (0,), (1,), (2,), (0, 2), (2, 0), (1, 1))
MODELS = {"decay": packages.decay, "diffusion": packages.diffusion}


def runs_of(one: Made) -> dict[str, Any]:
    """Everything that takes a model through steps, by name."""
    runs: dict[str, Any] = {"interpret": Interpreter(one.program), "kernel": Kernel(one.program)}
    for backend in ("kernel", "inductor"):
        runs[f"package by {backend}"] = one.artifact(backend).requires_grad_(False)
    return runs


def transient_of(one: Made, steps: int, batch: tuple[int, ...], draw: random.Random) -> Transient:
    """Steps of time, and other inputs at every step or at the start."""
    inputs = inputs_of(one, *batch, seed=draw.randrange(100))
    outputs = {v.name for v in one.package.metadata.outputs}
    given: dict[str, Tensor] = {}
    initial: dict[str, Tensor] = {}
    for name, value in inputs.items():
        base, back = lag(name)
        if base in outputs and back and draw.random() < 0.7:
            initial[base] = value
        elif base not in outputs and not back:
            given[base] = value.expand(steps, *value.shape).clone()
    given["t"] = torch.linspace(0, 1, steps, dtype=torch.float64).reshape(-1, *(1 for _ in batch))
    given["t"] = given["t"].expand(steps, *batch).contiguous()
    return Transient(steps, given, initial)


@pytest.mark.parametrize("name", MODELS)
def test_steps_of_any_number_at_any_points_are_the_same_by_all(name: str) -> None:
    one = MODELS[name]()
    runs = runs_of(one)
    for batch in BATCHES:
        for steps in (1, 2, 3):
            transient = transient_of(one, steps, batch, random.Random(f"{batch}{steps}"))
            histories = {run: each.arrange(transient)() for run, each in runs.items()}
            first = histories.pop("interpret")
            assert {x.shape[0] for x in first.outputs.values()} == {steps}
            for run, history in histories.items():
                what = f"{run}, {steps} steps at {batch}"
                assert history.outputs.keys() == first.outputs.keys(), what
                for output, wanted in first.outputs.items():
                    found = history.outputs[output]
                    assert found.shape == wanted.shape, f"{output} by {what}"
                    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)
                for own, status in zip(history.statuses, first.statuses, strict=True):
                    assert own.begin == status.begin == 1
                    for row in STATUS_ROWS:
                        assert getattr(own, row).shape == getattr(status, row).shape, what


@pytest.mark.parametrize("name", MODELS)
def test_values_and_slopes_at_any_points_are_the_same_by_all(name: str) -> None:
    one = MODELS[name]()
    kernel, graphs = (one.artifact(b).requires_grad_(False) for b in ("kernel", "inductor"))
    for batch in BATCHES:
        inputs = inputs_of(one, *batch)
        outputs = kernel(inputs)
        calls = {
            "values": lambda a, x=inputs: a(x),
            "blocks": lambda a, x=inputs: {
                f"{y}:{by}": block for y, row in a.jacobian(x).items() for by, block in row.items()
            },
            "jvp": lambda a, x=inputs: a.jvp(x, x),
            "vjp": lambda a, x=inputs, y=outputs: a.vjp(x, y),
        }
        for what, call in calls.items():
            own, other = call(kernel), call(graphs)
            assert own.keys() == other.keys()
            for key, value in own.items():
                assert value.shape == other[key].shape, f"{what} of {key} at {batch}"
                torch.testing.assert_close(value, other[key], rtol=1e-8, atol=1e-9)


def test_steps_of_a_number_below_one_are_refused_by_all() -> None:
    from ingot import IngotError

    for steps in (0, -1):
        with pytest.raises(IngotError, match="there is one at least"):
            Transient(steps, {}, {})
