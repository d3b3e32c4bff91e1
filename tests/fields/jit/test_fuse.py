"""Fusion: equal operations once, dead ones never, loops as wide as the order allows."""

from collections.abc import Callable

import torch
from torch import Tensor

from ingot.fields.jit.capture import capture
from ingot.fields.jit.fuse import Fused, KernelCall, Loop, fuse
from ingot.fields.jit.operations import name_of
from ingot.fields.jit.program import write
from ingot.fields.jit.schema import schema_of, sources_of
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Step

from .cases import cahn_hilliard
from .conftest import state_of


def fused(steps: tuple[Step, ...], *wanted: str) -> Fused:
    state, sources = state_of((8, 9), "a", "b", "c"), sources_of(steps)
    inputs = [*state.space.tensors(), *(state.look_up(s) for s in sources)]
    schema = schema_of(inputs, state.space)
    assert schema is not None
    return fuse(capture(steps, sources, wanted, schema, state.space))


def of(function: Callable[..., object]) -> tuple[Step, ...]:
    arguments = {"a": Buffer("a"), "b": Buffer("b"), "space": Ambient("space")}
    return (Step("s", function, arguments, ("d", "e")),)


def kinds(made: Fused) -> list[str]:
    return ["loop" if isinstance(u, Loop) else name_of(u.node) for u in made.units]


def test_a_cahn_hilliard_step_is_two_loops_and_three_transforms() -> None:
    made = fused(cahn_hilliard(), "rate", "c")
    parts = [kind for kind in kinds(made) if "sym" not in kind]
    assert parts == ["loop", "_fft_r2c.default", "_fft_r2c.default", "loop", "_fft_c2r.default"]
    assert made.after == 5
    assert "loop [101, 45]" in str(made)


def test_results_of_transforms_are_overwritten_where_nothing_needs_them() -> None:
    text = write(fused(cahn_hilliard(), "rate", "c")).text
    assert "(_fft_r2c, _fft_r2c_1, )" in text
    assert "del _fft_r2c, _fft_r2c_1" in text


def test_equal_operations_run_once() -> None:
    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        return space.forward(a) * 2, space.forward(a) * 3

    assert kinds(fused(of(function), "d", "e")).count("_fft_r2c.default") == 1


def test_what_nothing_wants_is_not_computed() -> None:
    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        return space.forward(a), b * 2

    assert kinds(fused(of(function), "e")) == ["loop"]


def test_a_loop_is_cut_where_something_must_run_between() -> None:
    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        first = a * 2
        return first + space.inverse(space.forward(first)), b

    made = fused(of(function), "d")
    assert [kind for kind in kinds(made) if kind == "loop"] == ["loop", "loop"]


def test_loops_that_share_a_field_are_one() -> None:
    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        return a * 2 + b, torch.exp(a)

    assert kinds(fused(of(function), "d", "e")) == ["loop"]


def test_cheap_values_of_one_axis_are_part_of_the_loop_and_others_are_kept() -> None:
    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        return a * (space.axes[0] * 2 + 1), a * torch.exp(space.axes[1])

    made = fused(of(function), "d", "e")
    shapes = [unit.shape for unit in made.units if isinstance(unit, Loop)]
    assert shapes == [(1, 89), (101, 89)]


def test_constant_fields_are_numbers() -> None:
    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        return a + space.full(2.5) * torch.ones_like(a), b

    made = fused(of(function), "d")
    assert kinds(made) == ["loop"]
    assert "splat(real(2.5))" in write(made).source


def test_an_unknown_operation_stays_a_call() -> None:
    def function(a: Tensor, b: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        return torch.erf(a * 2) + 1, b

    made = fused(of(function), "d")
    assert kinds(made) == ["loop", "erf.default", "loop"]
    assert sum(isinstance(unit, KernelCall) for unit in made.units) == 1
