# ruff: noqa: F821 - names of axes
"""Loops in laws agree with plain torch on the untraced function, in values and slopes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.types import SR2, Scalar, contract, interpolate, norm, repeat, tanh, total
from tests.program.agreement import EXECUTORS, LOOPS, agree, on_tensors
from tests.program.declared import program_of

F64 = torch.float64


def newton_steps(count: int) -> Callable[..., Scalar]:
    """The root of y + y^3 / 3 = x by some steps, and a counter that is carried along."""

    def Steps(x: Scalar, stiff: Scalar) -> Scalar:
        """Steps."""

        def step(y: Scalar, n: Scalar) -> tuple[Scalar, Scalar]:
            return y - (stiff * y + y * y * y / 3.0 - x) / (stiff + y * y), n + 1.0

        y, n = repeat(count, step, (x * 0.5, Scalar(0.0)))
        return y + n * x

    return Steps


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_a_loop_agrees_with_torch(count: int) -> None:
    law = newton_steps(count)
    draw = torch.Generator().manual_seed(count)
    point = {
        "x": torch.randn(5, generator=draw, dtype=F64),
        "stiff": 1.0 + torch.rand(5, generator=draw, dtype=F64),
    }
    agree(program_of(law), on_tensors(law, x=Scalar, stiff=Scalar), point)


def Sweep(x: Scalar["cell"], weights: Scalar["other", "cell"], rate: Scalar) -> Scalar["cell"]:
    """A body that sums over an axis, reads a matrix, and carries a scalar that becomes a field."""

    def step(u: Scalar, size: Scalar) -> tuple[Scalar, Scalar]:
        mean = total(u * rate, "cell") * 0.25
        return tanh(u + x * size) - rate * mean, size * 0.5 + norm(u) * 0.1

    u, size = repeat(4, step, (x * rate, Scalar(1.0)))
    return u * total(contract(weights, u, "cell"), "other") + size


def test_a_loop_along_axes_agrees_with_torch() -> None:
    draw = torch.Generator().manual_seed(3)
    shapes = {"x": (3,), "weights": (2, 3)}
    point = {
        "x": torch.randn(4, 3, generator=draw, dtype=F64),
        "weights": torch.randn(4, 2, 3, generator=draw, dtype=F64),
        "rate": torch.rand(4, generator=draw, dtype=F64),
    }
    agree(
        program_of(Sweep, shapes=shapes),
        on_tensors(Sweep, x=Scalar, weights=Scalar, rate=Scalar),
        point,
    )


def Inner(strain: SR2, knots: Scalar["knot"], values: Scalar["knot"]) -> SR2:
    """A loop inside a loop, tensors carried, a table read."""

    def outer(s: SR2) -> SR2:
        def inner(a: Scalar) -> Scalar:
            return a - 0.3 * (a * a + 0.1 * norm(s) - 1.0)

        found = repeat(3, inner, Scalar(0.4))
        return s * 0.5 + strain * found * interpolate(found, knots, values, "knot")

    return repeat(3, outer, strain * 0.1)


def test_a_loop_inside_a_loop_agrees_with_torch() -> None:
    draw = torch.Generator().manual_seed(4)
    point = {
        "strain": torch.randn(3, 6, generator=draw, dtype=F64),
        "knots": torch.rand(3, 5, generator=draw, dtype=F64).sort(-1).values,
        "values": torch.randn(3, 5, generator=draw, dtype=F64),
    }
    program = program_of(Inner, shapes={"knots": (5,), "values": (5,)})
    agree(program, on_tensors(Inner, strain=SR2, knots=Scalar, values=Scalar), point)
