"""The arithmetic of ${fparse ...}: what MOOSE's function parser computes, and what it refuses."""

import math

import pytest

from ingot.hit import Fault, evaluate
from ingot.hit.arithmetic import FUNCTIONS, write_number

NAMES = {"w": 3.0, "L": 0.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3 - 4/2", 5),
        ("-2^2", -4),
        ("2^-1", 0.5),
        ("2^3^2", 512),
        ("(1+2)*3", 9),
        ("3 - -2", 5),
        ("7 % 4", 3),
        (".5 + 5.", 5.5),
        ("1e-3*2E2", 0.2),
        ("w*L", 1.5),
        ("2*pi - e", 2 * math.pi - math.e),
        ("1 < 2 & 2 > 1 | 0", 1),
        ("2 = 2", 1),
        ("2 != 2", 0),
        ("!1 + 1", 1),
        ("if(w > 2, 4, 1/0)", 4),
        ("a := w^2; b := a + 1; a*b", 90),
        ("int(-2.5)", -3),
        ("max(1, min(2, 3))", 2),
        ("plog(2, 0.1)", math.log(2)),
        ("plog(0.1 - 1e-9, 0.1)", math.log(0.1 - 1e-9)),
        ("sec(0.3)*cos(0.3)", 1),
    ],
)
def test_expression_has_its_value(text: str, value: float) -> None:
    assert evaluate(text, NAMES.__getitem__) == pytest.approx(value, rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_takes_its_number_of_arguments(name: str) -> None:
    count, _ = FUNCTIONS[name]
    start = "1.5" if name == "acosh" else "0.5"
    assert math.isfinite(evaluate(f"{name}({','.join([start] * count)})", NAMES.__getitem__))
    with pytest.raises(Fault, match=f"'{name}' takes {count} arguments, not {count + 1}"):
        evaluate(f"{name}({','.join([start] * (count + 1))})", NAMES.__getitem__)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "found the end instead of a number or a name"),
        ("2**3", r"found '\*' instead of a number or a name"),
        ("2 3", "found '3' instead of an operator"),
        ("(2", r"found the end instead of '\)'"),
        ("2 $ 3", r"found '\$' instead of an operator"),
        ("sqr(2)", "there is no function 'sqr'"),
        ("1/(w-3)", "divides by zero"),
        ("sqrt(-1)", "has no value"),
        ("exp(1000)", "has no value"),
        ("1e308*10", "is not finite"),
        ("a := 2 a", "found 'a' instead of"),
    ],
)
def test_expression_without_a_value_says_why(text: str, says: str) -> None:
    with pytest.raises(Fault, match=says) as raised:
        evaluate(text, NAMES.__getitem__)
    assert raised.value.fix


@pytest.mark.parametrize(
    ("value", "text"), [(4.0, "4"), (-2e15, "-2000000000000000"), (0.1, "0.1"), (1e300, "1e+300")]
)
def test_whole_numbers_are_written_without_a_point(value: float, text: str) -> None:
    assert write_number(value) == text
    assert float(text) == value
