"""Lines replayed with others in their place; a frozen parameter computes what a promoted one does,
for all numbers.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ingot.catalog import Parameter
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import Builder, Choices, Program, compile_passes, freeze, trace, with_jacobian
from ingot.program.rewrite import substitute
from ingot.types import Scalar, exp, maximum, where
from tests.program.declared import declared, model_of
from tests.program.oracle import evaluate_program

NUMBERS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5)


def test_substitution_replaces_a_line_everywhere() -> None:
    g = Builder()
    x, y = (g.node("input", (), (name, 0)) for name in "xy")
    product = g.emit("mul", x, g.emit("exp", x))
    (found,) = substitute(g, [product], {x.id: y})
    assert found is g.emit("mul", y, g.emit("exp", y))
    (unchanged,) = substitute(g, [product], {})
    assert unchanged is product


def product(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return p * x


def quotient(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return p / x


def inverse(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return x / p


def added(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return (p + x) - (x + p)


def powered(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return x**p


def twice(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return p * (p * x) + 2.0 * (p * (-x))


def chosen(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return where(x < p, p * exp(x), maximum(x, p))


def negated(x: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return -(0.0 - p * -x) - (-x) * 0.0


LAWS = (product, quotient, inverse, added, powered, twice, chosen, negated)
X = torch.tensor(NUMBERS, dtype=torch.float64)


def pair(law: Callable[..., Any], number: float) -> tuple[Program, Program]:
    """The law with its parameter frozen, and promoted."""
    with declared(law):
        model = model_of(law, p="1.0")
    model.values["p"] = Scalar(number)
    traced = trace(model)
    return freeze(traced, 2.0**-52), freeze(traced, 2.0**-52, keep=["p"])


def plain(law: Callable[..., Any], number: float) -> torch.Tensor:
    return law(Scalar(X), p=Scalar(torch.tensor(number, dtype=torch.float64))).data


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("law", LAWS, ids=lambda f: f.__name__)
def test_a_frozen_parameter_computes_what_a_promoted_one_does(
    law: Callable[..., Any], number: float
) -> None:
    kept = torch.ones_like(X, dtype=torch.bool)
    if law is powered and number == 0.5:
        kept = X.ne(-math.inf)  # of which torch's own root and power differ
    wanted = plain(law, number)[kept]

    def same(found: torch.Tensor) -> None:
        torch.testing.assert_close(found[kept], wanted, rtol=1e-15, atol=0, equal_nan=True)

    for program in pair(law, number):
        for each in (program, compile_passes(program)):
            same(torch.tensor(evaluate_program(each, {"x": X.numpy()})["out"]))
        same(Interpreter(program)({"x": X})[0]["out"])


@pytest.mark.parametrize("law", (product, added, chosen), ids=lambda f: f.__name__)
def test_kernels_agree_too(law: Callable[..., Any]) -> None:
    for number in (0.0, math.inf, math.nan):
        for program in pair(law, number):
            told, _ = Kernel(program)({"x": X})
            torch.testing.assert_close(
                told["out"], plain(law, number), rtol=1e-15, atol=0, equal_nan=True
            )


def test_zero_times_infinity_and_infinity_less_itself_are_nan() -> None:
    g = Builder()
    x = g.node("input", (), ("x", 0))
    assert not g.emit("mul", 0.0, x).is_constant(0.0)
    assert not g.emit("sub", x, x).is_constant(0.0)
    assert not g.emit("div", 0.0, x).is_constant(0.0)
    assert math.isnan(g.emit("mul", 0.0, math.inf).attr)
    assert math.isnan(g.emit("sub", math.inf, math.inf).attr)
    for a, b in itertools.product(NUMBERS, NUMBERS):
        for op, function in (("mul", np.multiply), ("add", np.add), ("sub", np.subtract)):
            with np.errstate(all="ignore"):
                wanted = float(function(a, b))
            found = g.emit(op, a, b).attr
            assert found == wanted or (math.isnan(found) and math.isnan(wanted)), (op, a, b)


def test_in_the_structure_of_derivatives_a_zero_is_a_zero() -> None:
    g = Builder()
    x = g.node("input", (), ("x", 0))
    for line in (
        g.slopes.emit("mul", 0.0, x), g.slopes.emit("mul", x, 0.0), g.slopes.emit("sub", x, x),
        g.slopes.emit("div", 0.0, x),
    ):  # fmt: skip
        assert line is g.zero


def apart(x: Scalar, y: Scalar, *, p: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return exp(p * x) + 0.0 * y


def test_what_does_not_depend_has_no_slope_even_at_infinity() -> None:
    """A product with a frozen zero has the slope zero, not 0 * inf; its value is still NaN."""
    with declared(apart):
        traced = trace(model_of(apart, p="0.0"))
    program = with_jacobian(freeze(traced, 2.0**-52), [("out", "x"), ("out", "y")])
    assert [v.nodes[0].is_constant(0.0) for v in program.outputs[1:]] == [True, True]
    numbers = {"x": np.array([math.inf, 1.0]), "y": np.array([1.0, math.inf])}
    for each in (program, compile_passes(program, Choices(unroll_limit=0))):
        found = evaluate_program(each, numbers)
        assert np.isnan(found["out"]).all()
        assert (found["out:x"] == 0.0).all() and (found["out:y"] == 0.0).all()
