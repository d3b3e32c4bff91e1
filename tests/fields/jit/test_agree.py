"""Comparing tells a wrong value from rounding, and looks at a corner of large boxes."""

import pytest
import torch
from torch import Tensor

from ingot.fields.jit.agree import corner, differences
from ingot.fields.jit.schema import schema_of, sources_of
from ingot.fields.step import Buffer, Step, evaluate

from .cases import cahn_hilliard
from .conftest import state_of


def twice(a: Tensor) -> Tensor:
    return 2 * a


def left_over(one: Tensor, other: Tensor) -> Tensor:
    return one - other


def compared(step: Step, **given: Tensor) -> list[str]:
    state = state_of((6, 5), "a", "one")
    state.buffers["one"] *= 1e6
    state.buffers["other"] = state.buffers["one"] - 1e-3 * state.buffers["a"]
    expected = evaluate((step,), state.look_up)
    return differences(
        {n: expected[n] + x for n, x in given.items()}, (step,), expected, state.look_up
    )


STEP = Step("twice", twice, {"a": Buffer("a")}, ("b",))


@pytest.mark.parametrize(("by", "differs"), [(0.0, False), (1e-14, False), (1e-11, True)])
def test_a_difference_is_told_from_rounding(by: float, differs: bool) -> None:
    found = compared(STEP, b=torch.full((6, 5), by, dtype=torch.float64))
    assert bool(found) == differs
    if differs:
        assert found == ["'b' differs by 1e-11"]


def test_what_is_left_over_of_large_numbers_may_be_rounding() -> None:
    step = Step("left", left_over, {"one": Buffer("one"), "other": Buffer("other")}, ("b",))
    noise = 1e-10 * (2 * torch.rand(6, 5, dtype=torch.float64) - 1)
    assert compared(step, b=noise) == []
    assert compared(step, b=1e5 * noise) != []


def test_what_is_not_finite_must_be_so_in_both() -> None:
    assert compared(STEP, b=torch.full((6, 5), torch.nan, dtype=torch.float64)) != []


def test_other_types_and_shapes_differ() -> None:
    state = state_of((6, 5), "a")
    expected = evaluate((STEP,), state.look_up)
    for other in (expected["b"].float(), expected["b"][:3]):
        assert differences({"b": other}, (STEP,), expected, state.look_up) != []


@pytest.mark.parametrize("sizes", [(600, 500), (80, 70, 90)])
def test_the_corner_of_a_large_box_is_a_box(sizes: tuple[int, ...]) -> None:
    steps, state = cahn_hilliard(), state_of(sizes, "c")
    sources = sources_of(steps)
    inputs = [*state.space.tensors(), *(state.look_up(source) for source in sources)]
    schema = schema_of(inputs, state.space)
    assert schema is not None
    cut = corner(inputs, sources, schema, state.space)
    assert cut is not None
    found = evaluate(steps, cut[1])
    small = {2: 64, 3: 16}[len(sizes)]
    assert found["c"].shape == (small,) * len(sizes)
    assert bool(torch.isfinite(found["c"]).all())


def test_a_small_box_is_compared_as_a_whole() -> None:
    state = state_of((60, 50), "a")
    inputs = [*state.space.tensors(), state.buffers["a"]]
    schema = schema_of(inputs, state.space)
    assert schema is not None
    assert corner(inputs, [Buffer("a")], schema, state.space) is None
