"""Formulas against torch, and derivatives against autograd."""

import pytest
import torch

from ingot.fields.expressions import ExpressionError, constants_of, formula

TEXTS = [
    "0.1*c^2*(c-1)^2", "sin(c)*cos(d)+tan(c/3)", "exp(-c^2)/sqrt(1+d^2)", "log(c)+log2(d)*log10(c)",
    "sinh(c)+cosh(d)*tanh(c*d)", "asin(c/3)+acos(d/3)+atan(c)", "asinh(c)+acosh(1+d)+atanh(c/4)",
    "if(c<d, c^3, d^2*c)", "min(c,d)*max(c,2*d)+min(c,0.9)", "c^d+pow(d,c)",
    "atan2(c,d)+hypot(c,d)", "abs(c-d)+rsqrt(c)+exp2(d)",
    "h := c^3*(6*c^2-15*c+10); h*d + (1-h)*d^2", "(c<d)*c + c%0.4",
]  # fmt: skip


def grids() -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    return {name: 0.3 + torch.rand(4, 5, dtype=torch.float64) for name in "cd"}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("by", ["c", "d"])
def test_a_derivative_is_that_of_the_value(text: str, by: str) -> None:
    values = grids()
    point = {name: value.requires_grad_() for name, value in values.items()}
    value = formula(text, ("c", "d"))(point, torch.zeros((), dtype=torch.float64))
    (slope,) = torch.autograd.grad(value.sum(), point[by], allow_unused=True, retain_graph=True)
    slope = torch.zeros(4, 5).double() if slope is None else slope
    found = formula(text, ("c", "d"), (by,))(values, values["c"]).expand(4, 5)
    torch.testing.assert_close(found, slope, rtol=1e-12, atol=1e-12)


def test_derivatives_are_taken_one_after_the_other() -> None:
    values = grids()
    found = formula("c^3*d^2", ("c", "d"), ("c", "d"))(values, values["c"])
    torch.testing.assert_close(found, 6 * values["c"] ** 2 * values["d"])


def test_a_power_of_zero_has_a_slope() -> None:
    zero = torch.zeros(3, dtype=torch.float64)
    found = formula("c^p", ("c",), ("c",), (("p", 2.0),))({"c": zero}, zero)
    assert torch.equal(found, zero)


def test_a_choice_of_two_numbers_keeps_all_digits() -> None:
    values = grids()
    found = formula("if(c<d, 0.1, 0.3)", ("c", "d"))(values, values["c"])
    assert found.dtype == torch.float64
    assert set(found.flatten().tolist()) == {0.1, 0.3}


def test_true_and_false_are_numbers_of_full_precision() -> None:
    values = grids()
    inside = values["c"] < values["d"]
    found = formula("(c<d)*0.1 + (c<d)", ("c", "d"))(values, values["c"])
    torch.testing.assert_close(found, inside.double() * 0.1 + inside.double())
    assert formula("c<d", ("c", "d"))(values, values["c"]).dtype == torch.float64
    both = formula("(c<d) & !(d<1)", ("c", "d"))(values, values["c"])
    torch.testing.assert_close(both, (inside & (values["d"] >= 1)).double())


def test_a_constant_result_has_no_axes() -> None:
    found = formula("2*c", ("c",), ("c",))(grids(), torch.zeros((), dtype=torch.float64))
    assert found.shape == ()
    assert found == 2


def test_complex_spectra_are_multiplied() -> None:
    k, u = torch.arange(4).double(), torch.full((4,), 2.0 + 1.0j, dtype=torch.complex128)
    found = formula("i*k*u", ("k", "u"), (), (("i", 1j),))({"k": k, "u": u}, k)
    torch.testing.assert_close(found, 1j * k * u)


def test_a_value_is_freed_after_its_last_use() -> None:
    lines = formula("(c+1)*(c+2)", ("c",)).lines
    assert [len(line.frees) for line in lines] == [1, 1, 2]


def test_constants_may_use_those_before_them() -> None:
    assert constants_of(("a", "b"), ("sqrt(4)", "3*a")) == {"a": 2.0, "b": 6.0}


def test_only_inputs_can_be_differentiated_by() -> None:
    with pytest.raises(ExpressionError, match="cannot differentiate by 'mu': it is not one of the"):
        formula("c^2", ("c",), ("mu",))


def test_transforms_run_along_the_last_axis() -> None:
    values = grids()
    found = formula("iFFT(FFT(c)*2)", ("c",))(values, values["c"])
    torch.testing.assert_close(found.real, 2 * values["c"])
    assert formula("FFT(c)", ("c",))(values, values["c"]).is_complex()
    with pytest.raises(ExpressionError, match="FFT cannot be differentiated"):
        formula("FFT(c)", ("c",), ("c",))


@pytest.mark.parametrize("text", ["(" * 3000 + "c" + ")" * 3000, "+".join(["c"] * 5000)])
def test_an_expression_that_is_too_deep_is_told(text: str) -> None:
    with pytest.raises(ExpressionError, match="it is nested too deeply; give parts of it names"):
        formula(text, ("c",), ("c",))


def test_a_constant_is_a_number() -> None:
    with pytest.raises(ExpressionError, match="'b' is not a number"):
        constants_of(("a", "b"), ("2", "(1 - a)^0.5"))
