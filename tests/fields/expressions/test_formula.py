"""Formulas against torch, and derivatives against autograd."""

import math
import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ingot.fields.expressions import ExpressionError, constants_of, formula
from ingot.fields.expressions.parse import FUNCTIONS

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
    assert [len(frees) for line, frees in lines if line.args] == [1, 1, 2]


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


def test_an_expression_that_is_too_deep_is_told() -> None:
    with pytest.raises(ExpressionError, match="it is nested too deeply; give parts of it names"):
        formula("(" * 3000 + "c" + ")" * 3000, ("c",), ("c",))


def test_a_long_sum_is_as_good_as_a_short_one() -> None:
    text, one = "+".join(["c"] * 5000), torch.ones(1, dtype=torch.float64)
    assert formula(text, ("c",))({"c": one}, one) == 5000
    assert formula(text, ("c",), ("c",))({"c": one}, one) == 5000


def test_a_constant_is_a_number() -> None:
    with pytest.raises(ExpressionError, match="'b' is not a number"):
        constants_of(("a", "b"), ("2", "(1 - a)^0.5"))


HOSTILE = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.5,
    -0.5,
    1e308,
    -1e308,
    1e-320,
    1000.0,
    math.inf,
    -math.inf,
    math.nan,
)
"""Numbers at which functions overflow, underflow, have poles or no value."""


def real(x: Tensor) -> Tensor:
    return x.to(torch.float64)


PLAIN: dict[str, Callable[..., Tensor]] = {
    "+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.div, "%": torch.remainder,
    "<": torch.lt, ">": torch.gt, "<=": torch.le, ">=": torch.ge, "==": torch.eq, "!=": torch.ne,
    "&": torch.logical_and, "|": torch.logical_or, "min": torch.minimum, "max": torch.maximum,
    "if": lambda c, a, b: torch.where(c != 0, a, b), "!": torch.logical_not, "neg": torch.neg,
}  # fmt: skip
"""Operations of the language as torch spells them."""


def grown(dice: random.Random, depth: int) -> tuple[str, Callable[[dict[str, Tensor]], Tensor]]:
    """A random expression: its text, and a function that evaluates it by torch alone."""
    if depth == 0 or dice.random() < 0.15:
        name = dice.choice(["c", *(f"h{k}" for k in range(len(HOSTILE)))])
        return name, lambda values: values[name]
    functions = [name for name in FUNCTIONS if name not in ("FFT", "iFFT", "pow", "if")]
    kind = dice.choice(["+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&", "|", "!",
                        "neg", "^", "if", *functions])  # fmt: skip
    count = {"!": 1, "neg": 1, "if": 3, "^": 1}.get(kind, FUNCTIONS.get(kind, 2))
    parts = [grown(dice, depth - 1) for _ in range(count)]
    texts, inner = [text for text, _ in parts], [function for _, function in parts]
    if kind == "^":
        power = dice.choice([0, 1, 2, 3, -1])
        return f"({texts[0]})^({power})", lambda values: torch.pow(inner[0](values), power)
    plain = PLAIN.get(kind) or getattr(torch, kind)
    if kind in ("!", "neg"):
        text = f"({'!' if kind == '!' else '-'}({texts[0]}))"
    else:
        infix = kind in PLAIN and not kind.isalpha()
        text = f"(({texts[0]}) {kind} ({texts[1]}))" if infix else f"{kind}({', '.join(texts)})"
    return text, lambda values: real(plain(*(each(values) for each in inner)))


@pytest.mark.parametrize("seed", range(400))
def test_folding_gives_what_torch_gives(seed: int) -> None:
    text, plain = grown(random.Random(seed), 3)
    field = torch.tensor([*HOSTILE, 0.3], dtype=torch.float64)
    constants = {f"h{k}": value for k, value in enumerate(HOSTILE)}
    tensors = {name: torch.tensor(v, dtype=torch.float64) for name, v in constants.items()}
    expected = plain({"c": field, **tensors}).expand(len(field))
    folded = formula(text, ("c",), (), tuple(constants.items()))({"c": field}, field)
    unfolded = formula(text, ("c", *constants))({"c": field, **tensors}, field)
    for found in (folded, unfolded):
        torch.testing.assert_close(
            found.expand(len(field)), expected, rtol=1e-12, atol=0, equal_nan=True, msg=text
        )


@pytest.mark.parametrize("seed", range(200))
def test_a_drawn_derivative_is_that_of_torch(seed: int) -> None:
    """Wherever torch has one; of a choice it has none where the other side has none."""
    text, plain = grown(random.Random(1000 + seed), 3)
    field = (0.3 + torch.rand(20, generator=torch.Generator().manual_seed(seed))).double()
    constants = {f"h{k}": 0.2 + 0.17 * k for k in range(len(HOSTILE))}
    tensors = {name: torch.tensor(v, dtype=torch.float64) for name, v in constants.items()}
    point = field.clone().requires_grad_()
    value = plain({"c": point, **tensors}).expand(20)
    slope = torch.zeros_like(field)
    if value.requires_grad:
        (given,) = torch.autograd.grad(value.sum(), point, allow_unused=True)
        slope = slope if given is None else given
    found = formula(text, ("c",), ("c",), tuple(constants.items()))({"c": field}, field).expand(20)
    known = slope.isfinite()
    torch.testing.assert_close(found[known], slope[known], rtol=1e-9, atol=1e-9, msg=text)


@pytest.mark.parametrize("seed", range(400))
def test_folding_leaves_derivatives_as_they_are(seed: int) -> None:
    """The rules of differentiation with constants as numbers, and as tensors."""
    text, _ = grown(random.Random(seed), 3)
    field = torch.tensor([*HOSTILE, 0.3], dtype=torch.float64)
    constants = {f"h{k}": value for k, value in enumerate(HOSTILE)}
    tensors = {name: torch.tensor(v, dtype=torch.float64) for name, v in constants.items()}
    folded = formula(text, ("c",), ("c",), tuple(constants.items()))({"c": field}, field)
    unfolded = formula(text, ("c", *constants), ("c",))({"c": field, **tensors}, field)
    torch.testing.assert_close(
        folded.expand(len(field)), unfolded.expand(len(field)),
        rtol=1e-12, atol=0, equal_nan=True, msg=text,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [("if(c < exp(1000), 1, 2)", 1.0), ("1/(-0.0)", -math.inf), ("log(0)", -math.inf),
     ("-exp(1000) < c", 1.0), ("atanh(1)", math.inf), ("min(1, exp(1000) - exp(1000))", math.nan),
     ("rsqrt(0)", math.inf), ("(0)^(-1)", math.inf), ("10^(400)", math.inf), ("5 % 0", math.nan),
     ("round(exp(1000))", math.inf), ("1e308*10", math.inf), ("sqrt(-1)", math.nan)],
)  # fmt: skip
def test_overflow_and_poles_fold_as_torch_has_them(text: str, value: float) -> None:
    like = torch.zeros((), dtype=torch.float64)
    found = float(formula(text, ("c",))({"c": like}, like))
    assert found == value or (math.isnan(found) and math.isnan(value))


@pytest.mark.parametrize(
    "text", ["floor(c)", "max(c, 1)", "c < 1", "atan2(1, c)", "c % 2", "round(c)"]
)
def test_what_takes_real_numbers_says_so_of_spectra(text: str) -> None:
    spectrum = torch.fft.rfft(torch.ones(4, dtype=torch.float64))
    found = formula(text, ("c",))
    with pytest.raises(ValueError, match="takes real numbers, and those of spectra are complex"):
        found({"c": spectrum}, spectrum.real)
