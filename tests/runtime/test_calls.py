"""A call that looks odd is refused, or gives what the interpreter gives; nothing crashes."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from ingot import IngotError, types
from tests import packages
from tests.calls import odd, plain
from tests.packages import inputs_of

KINDS = ("plastic-kernel", "decay-kernel", "decay-inductor", "diffusion-kernel")


def compared(found: Any, wanted: dict[str, torch.Tensor], constant: set[str]) -> None:
    """Every output, or block, is the interpreter's.

    constant: blocks that are the same for all points; they have no batch in which points that
    failed are NaN.
    """
    for name, value in found.items():
        mine = torch.as_tensor(value).detach()
        scale = max([1.0, *wanted[name].nan_to_num().abs().flatten().tolist()])
        mine, other = torch.broadcast_tensors(mine, wanted[name])
        if name in constant:
            assert bool(mine.isfinite().all())
            other = torch.where(other.isnan(), mine, other)
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-9 * scale, equal_nan=True)


@pytest.mark.parametrize(
    "count", [60, pytest.param(1000, marks=pytest.mark.exhaustive)], ids=["few", "many"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_odd_calls_are_refused_or_right(kind: str, count: int) -> None:
    name, backend = kind.split("-")
    one = getattr(packages, name)()
    artifact = one.artifact(backend)
    derivatives = artifact.metadata.derivatives
    constant = {f"{b.output}:{b.input}" for b in derivatives if b.batch_independent}
    dice = random.Random(kind)
    tally = {"right": 0, "refused": 0}
    for number in range(count):
        batch = dice.choice([(), (1,), (3,), (2, 3)])
        inputs: dict[str, Any] = dict(inputs_of(one, *batch, seed=number))
        with torch.no_grad():
            artifact(inputs)  # what follows looks like the last call, or not
        for chosen in dice.sample(list(inputs), dice.randint(1, 2)):
            inputs[chosen] = odd(inputs[chosen], dice)
        if dice.random() < 0.1:
            inputs[dice.choice(["x", "T~9", "", "strain"])] = next(iter(inputs.values()))
        blocks = dice.random() < 0.3
        values = {n: plain(x) for n, x in inputs.items()}
        try:
            if blocks:
                rows = artifact.jacobian(inputs)
                found = {f"{y}:{x}": b for y, row in rows.items() for x, b in row.items()}
            else:
                found = artifact(inputs)
        except IngotError:
            tally["refused"] += 1
            continue
        assert all(x is not None for x in values.values()), (number, inputs)
        arrays = all(isinstance(x, np.ndarray) for x in inputs.values()) and not blocks
        assert all(isinstance(x, np.ndarray) == arrays for x in found.values())
        asked = any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs.values())
        promoted = any(p.requires_grad for _, p in artifact.named_parameters())
        if not arrays and not blocks:
            assert all(x.requires_grad == (asked or promoted) for x in found.values())
        wanted = one.interpreted({n: x for n, x in values.items() if x is not None})
        compared(found, wanted, constant)
        tally["right"] += 1
    assert min(tally.values()) > count // 10, tally


@pytest.mark.parametrize("name", ["elastic", "diffusion"])
def test_kinds_give_kinds(name: str) -> None:
    one = getattr(packages, name)()
    artifact = one.artifact("kernel")
    plain_inputs = inputs_of(one, 5)

    def wrapped(x: torch.Tensor, info: Any) -> Any:
        return types.KINDS[info.kind](x, sub_batch_ndim=len(info.sub_batch))

    kinds = {n: wrapped(x, artifact.inputs[n]) for n, x in plain_inputs.items()}
    found, expected = artifact(kinds), artifact(plain_inputs)
    for output, value in expected.items():
        info = artifact.outputs[output]
        assert type(found[output]) is types.KINDS[info.kind]
        assert found[output].sub == len(info.sub_batch)
        assert torch.equal(found[output].data, value)
    first = next(iter(kinds))
    mixed = artifact({**plain_inputs, first: kinds[first]})
    assert len(kinds) == 1 or all(torch.equal(mixed[n], x) for n, x in expected.items())


def test_another_kind_is_refused_by_name() -> None:
    one = packages.elastic()
    inputs: dict[str, Any] = dict(inputs_of(one, 3))
    artifact = one.artifact("kernel")
    name = next(n for n, v in artifact.inputs.items() if v.kind == "SR2")
    inputs[name] = types.Vec.zeros(3)
    with pytest.raises(IngotError, match=f"'{name}' is a Vec, not a SR2"):
        artifact(inputs)
