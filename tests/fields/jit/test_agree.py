"""Comparing tells a wrong value from rounding, and looks at a corner of large boxes."""

import pytest
import torch
from torch import Tensor

from ingot.fields.jit import Jit
from ingot.fields.jit.agree import corner, differences
from ingot.fields.jit.schema import schema_of, sources_of
from ingot.fields.step import Buffer, Step, evaluate

from .cases import cahn_hilliard, parsed
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


CANCELLING = ["c*d - c*d", "(c+d)-c-d", "sin(c)^2+cos(c)^2-1", "c*c-c^2", "exp(log(c))-c",
              "1e8*(c*d)-1e8*(d*c)", "sin(x)*cos(x)-sin(2*x)/2", "sqrt(c)^2-c",
              "(c*d+1)-(c*d)-1", "t*c/3-t/3*c"]  # fmt: skip


def cancelled(c: Tensor, d: Tensor) -> Tensor:
    product = c * d
    return product - product


@pytest.mark.parametrize("sizes", [(9,), (8, 6)])
def test_what_cancels_is_compiled_all_the_same(sizes: tuple[int, ...]) -> None:
    steps = tuple(
        parsed(f"r{at}", text, "c", "d", extra_symbols=True) for at, text in enumerate(CANCELLING)
    )
    steps += (Step("twice", cancelled, {"c": Buffer("c"), "d": Buffer("d")}, ("z",)),)
    executor, state = Jit(), state_of(sizes, "c", "d")
    for _ in range(3):
        executor.run(steps, state)
    assert executor.statistics.fallbacks == 0 and executor.statistics.calls == 3


@pytest.mark.parametrize("text", CANCELLING)
def test_a_fault_in_what_cancels_is_found(text: str) -> None:
    steps, state = (parsed("r", text, "c", "d", extra_symbols=True),), state_of((8, 6), "c", "d")
    expected = evaluate(steps, state.look_up)
    scale = 1e8 if "1e8" in text else 1.0
    for fault, told in ((1e-10, True), (5e-16, False)):
        given = {"r": expected["r"] + scale * fault}
        assert bool(differences(given, steps, expected, state.look_up)) == told, fault


def test_writes_into_temporaries_are_compared_too() -> None:
    def written(c: Tensor) -> Tensor:
        mine = c.clone()
        mine[0] += 1
        return mine.mul_(2) - 2 * c

    steps = (Step("w", written, {"c": Buffer("c")}, ("r",)),)
    state = state_of((8, 6), "c")
    expected = evaluate(steps, state.look_up)
    assert differences({"r": expected["r"] + 5e-16}, steps, expected, state.look_up) == []
    assert differences({"r": expected["r"] + 1e-10}, steps, expected, state.look_up) != []
