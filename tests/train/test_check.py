"""A call that does not fit is refused before the graph runs, with what to do."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import ingot.train as train
from ingot.errors import IngotError
from tests.calls import odd, plain
from tests.train.models import eager, mlp


def function(x: Tensor, pair: tuple[Tensor, int], *, scale: float = 1.0) -> Tensor:
    return x * pair[0] * pair[1] * scale


@pytest.fixture(scope="module")
def joint() -> train.Joint:
    return eager(
        lambda x, pair, scale: function(x, pair, scale=scale),
        {"x": torch.zeros(4, 3), "pair": (torch.zeros(4, 1), 2), "scale": 0.5},
        dynamic={"x": {0: "rows"}, "pair[0]": {0: "rows"}},
    )


ONE = torch.ones(5, 1)
ROWS = torch.ones(5, 3)

WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((ROWS,), {}, r"wrong-call\]: '<lambda>' needs 'pair'\n  fix: call <lambda>\(x, pair, scale\)"),
    ((ROWS, (ONE, 2), 0.5, 1), {}, "wrong-call.*takes 3 arguments, 4 were given"),
    ((ROWS, (ONE, 2), 0.5), {"x": ROWS}, "wrong-call.*'x' is given twice"),
    ((ROWS, (ONE, 2)), {"scal": 0.5}, "wrong-call.*no argument 'scal'\n.*did you mean 'scale'"),
    ((ROWS, [ONE, 2], 0.5), {}, r"wrong-call.*\n.*x, pair\[0\], pair\[1\], scale"),
    ((ROWS, (ONE, 3), 0.5), {}, r"wrong-call.*'pair\[1\]' is 3; it was traced as 2"),
    ((ROWS, (ONE, 2.0), 0.5), {}, r"wrong-call.*'pair\[1\]' is 2.0; it was traced as 2"),
    (([1.0], (ONE, 2), 0.5), {}, "wrong-call"),
    ((1.0, (ONE, 2), 0.5), {}, "wrong-call.*'x' is 1.0, not a tensor"),
    ((ROWS.double(), (ONE, 2), 0.5), {}, r"wrong-dtype.*'x' is float64.*\n.*\.to\(torch.float32\)"),
    ((ROWS.to("meta"), (ONE, 2), 0.5), {}, "wrong-device.*'x' is on meta; it was traced on cpu"),
    ((ROWS[0], (ONE, 2), 0.5), {}, r"wrong-shape.*'x' has shape \(3,\).*traced as \(rows, 3\)"),
    ((ROWS.t(), (ONE, 2), 0.5), {}, r"wrong-shape.*'x' has shape \(3, 5\)"),
    ((ROWS, (ONE[:4], 2), 0.5), {}, r"wrong-shape.*\(rows, 1\) with rows = 5"),
    ((ROWS.clone().requires_grad_(), (ONE, 2), 0.5), {}, "no-gradient.*'x' asks for a gradient"),
]


@pytest.mark.parametrize(("arguments", "named", "told"), WRONG)
def test_a_wrong_call_is_told(
    joint: train.Joint, arguments: tuple[Any, ...], named: dict[str, Any], told: str
) -> None:
    with pytest.raises(IngotError, match=told):
        joint(*arguments, **named)


def test_all_problems_are_told_at_once(joint: train.Joint) -> None:
    with pytest.raises(IngotError) as error:
        joint(torch.ones(5, 3).double(), (torch.ones(5).int(), 3), 0.5)
    assert [p.code for p in error.value.problems] == [
        "wrong-dtype", "wrong-dtype", "wrong-shape", "wrong-call",
    ]  # fmt: skip


def test_arguments_go_by_place_or_by_name(joint: train.Joint) -> None:
    x = torch.ones(5, 3)
    expected = torch.ones(5, 3)
    assert torch.equal(joint(x, (ONE, 2), 0.5), expected)
    assert torch.equal(joint(scale=0.5, pair=(ONE, 2), x=x), expected)


def test_what_the_trace_assumed_of_sizes_is_checked() -> None:
    joint = eager(lambda x, table: x + table[: x.shape[0]], (torch.ones(3), torch.ones(8)),
                  dynamic={"x": {0: "time"}})  # fmt: skip
    assert joint(torch.ones(5), torch.ones(8)).shape == (5,)
    with pytest.raises(IngotError, match=r"wrong-shape.*was traced for .*time.*; here time = 9"):
        joint(torch.ones(9), torch.ones(8))


def test_a_parameter_of_another_type_or_shape_is_told() -> None:
    joint = eager(mlp(), torch.zeros(6, 3, dtype=torch.float64))
    joint.float()
    with pytest.raises(IngotError, match=r"wrong-dtype.*'0.weight' is float32"):
        joint(torch.zeros(6, 3, dtype=torch.float64))
    joint.double()
    joint.get_parameter("0.bias").data = torch.zeros(7, dtype=torch.float64)
    with pytest.raises(IngotError, match=r"wrong-shape.*'0.bias' has shape \(7,\).*\(8,\)"):
        joint(torch.zeros(6, 3, dtype=torch.float64))


def disturbed(x: Tensor, chance: random.Random) -> tuple[Any, bool]:
    """A tensor changed at random, and whether the call still fits."""
    ways: list[tuple[Any, bool]] = [
        (x.float(), False), (x.to(torch.int64), False), (x[..., :-1], False), (x[0], False),
        (x.unsqueeze(0), False), (x.tolist(), False), (None, False), (x.to("meta"), False),
        (x.to_sparse(), False), (x.t().contiguous(), False), (x.numpy(), False),
        (x.t().contiguous().t(), True), (x[:1].expand(4, 3), True), (x.flip(0)[::2], True),
        (x[:0], True), (x.clone(), True),
    ]  # fmt: skip
    return chance.choice(ways)


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [100, pytest.param(500, marks=pytest.mark.exhaustive)], ids=["few", "many"]
)
def test_odd_calls_are_refused_or_equal_to_eager(mlp_package: Path, count: int) -> None:
    joint, source, dice = train.load(mlp_package), mlp(), random.Random(5)
    source.load_state_dict(joint.state_dict())
    tally = {"right": 0, "refused": 0}
    for _ in range(count):
        x = torch.randn(dice.choice([1, 2, 3, 5]), 3, dtype=torch.float64)
        joint(x)
        given = odd(x, dice)
        try:
            found = joint(given)
        except IngotError:
            tally["refused"] += 1
            continue
        wanted = plain(given)
        assert wanted is not None, given
        torch.testing.assert_close(found, source(wanted), rtol=0, atol=1e-12, equal_nan=True)
        assert found.requires_grad
        tally["right"] += 1
    assert min(tally.values()) > count // 10, tally


@pytest.mark.slow
def test_two_hundred_calls_are_right_or_refused(mlp_package: Path) -> None:
    joint, source, chance = train.load(mlp_package), mlp(), random.Random(0)
    right = refused = 0
    for _ in range(200):
        rows = chance.randrange(1, 9)
        x, fits = disturbed(torch.randn(rows + (rows == 3), 3, dtype=torch.float64), chance)
        if fits:
            torch.testing.assert_close(joint(x), source(x), rtol=0, atol=1e-12)
            right += 1
        else:
            with pytest.raises(IngotError):
                joint(x)
            refused += 1
    assert right > 40 and refused > 100
