"""What texts mean, and where they are wrong."""

import itertools
import math
import re

import pytest

from ingot.fields.expressions.exact import LINES, is_number, write
from ingot.fields.expressions.parse import (
    FUNCTIONS,
    INSTEAD,
    OPERATORS,
    ExpressionError,
    parse,
    variable,
)

NAMES = {name: variable(name) for name in ("a", "b", "c")} | {"pi": LINES.number(math.pi)}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a+b*c", "(a + (b * c))"),
        ("a-b-c", "((a - b) - c)"),
        ("-a^2", "(-(a ^ 2))"),
        ("a^b^c", "(a ^ (b ^ c))"),
        ("a*b/c%2", "(((a * b) / c) % 2)"),
        ("a | b & c", "((a | b) & c)"),
        ("a+1 < b*2", "((a + 1) < (b * 2))"),
        ("!a & b", "((!a) & b)"),
        ("--a", "a"),
        ("if(a<b, a, b)", "if((a < b), a, b)"),
        ("pow(a, 3)", "(a ^ 3)"),
        ("x := a+b; y := x*x; y - x", "(((a + b) * (a + b)) - (a + b))"),
        ("a := 2; a*b", "(2 * b)"),
        ("1e-3*a", "(0.001 * a)"),
        ("  a\n  + b ", "(a + b)"),
    ],
)
def test_a_text_means_what_the_grammar_says(text: str, meaning: str) -> None:
    assert write(parse(text, NAMES)) == meaning


@pytest.mark.parametrize(
    ("text", "value"),
    [("2^3^2", 512), ("sqrt(2)*sqrt(2)", 2), ("sin(pi/6)", 0.5), ("7 % 4", 3), ("min(2,3)", 2),
     ("if(1<2, 5, 6)", 5), ("round(2.5)", 2), ("atan2(1,1)", math.pi / 4), ("-2^2", -4)],
)  # fmt: skip
def test_numbers_are_folded(text: str, value: float) -> None:
    found = parse(text, NAMES)
    assert is_number(found)
    assert found.attr[1] == pytest.approx(value)


def test_complex_numbers_are_folded_where_the_text_has_them() -> None:
    names = NAMES | {"i": LINES.number(1j)}
    assert parse("exp(i*pi)", names).attr[1] == pytest.approx(-1)
    assert parse("sqrt(i)^2", names).attr[1] == pytest.approx(1j)
    with pytest.raises(ExpressionError, match=r"floor\(0\+1j\) has no value"):
        parse("floor(i)", names)
    root = parse("(-1)^0.5", names).attr[1]
    assert isinstance(root, float) and math.isnan(root)


@pytest.mark.parametrize(
    ("text", "simple"),
    [("a-0", "a"), ("1*a", "a"), ("a/1", "a"), ("a^1", "a"), ("a^0", "1"), ("-1*a", "(-a)"),
     ("if(1, a, b)", "a"), ("a*0", "(a * 0)"), ("0/a", "(0 / a)"), ("a+0", "(a + 0)")],
)  # fmt: skip
def test_zero_and_one_disappear_where_that_holds_for_all_numbers(text: str, simple: str) -> None:
    assert write(parse(text, NAMES)) == simple


def test_equal_parts_are_one_object() -> None:
    found = parse("(a+b)*(a+b)", NAMES)
    assert found.args[0] is found.args[1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a+*b", r"line 1, column 3: a value was expected, but here is '\*'"),
        ("a+", "a value was expected, but here is the end"),
        ("(a+b", r"'\)' was expected, but here is the end"),
        ("a b", "line 1, column 3: 'b' was not expected"),
        ("a\n+ d", "line 2, column 3: there is no 'd' here; known are: a, b, c, pi"),
        (
            "zeta(a)",
            "there is no function 'zeta'; known are: sin, cos, .*, pow, .*, if, FFT, iFFT$",
        ),
        ("sinn(a)", "there is no function 'sinn'; did you mean 'sin'"),
        ("a = b", "column 3: '=' is not understood; '==' compares, and 'name := ...;' names a"),
        ("a**2", r"here is '\*'; powers are written \^$"),
        ("a + *b", r"here is '\*'$"),
        ("a && b", "'and' is written &$"),
        ("a || b", r"'or' is written \|$"),
        ("min(a)", "min takes 2 arguments, not 1"),
        ("a $ b", r"'\$' is not understood"),
        ("x := a x", "';' was expected, but here is 'x'"),
    ],
)
def test_a_wrong_text_is_told_by_place(text: str, told: str) -> None:
    with pytest.raises(ExpressionError, match=told):
        parse(text, NAMES)


SIGNS = [re.findall(r"a([^\w\s,]+)b", written) for written, _ in OPERATORS]
"""The operators between two values, as the reference page lists them."""


def test_operators_bind_in_the_order_of_the_page() -> None:
    listed = [sign for row in SIGNS for sign in row]
    assert sorted(listed) == sorted([*"^*/%+-<>&|", "<=", ">=", "==", "!="])
    for i, tight in enumerate(SIGNS):
        for loose in SIGNS[i + 1 :]:
            for x, y in itertools.product(tight, loose):
                assert parse(f"a{y}b{x}c", NAMES) is parse(f"a{y}(b{x}c)", NAMES), (x, y)
                assert parse(f"a{x}b{y}c", NAMES) is parse(f"(a{x}b){y}c", NAMES), (x, y)


@pytest.mark.parametrize(
    ("text", "same"),
    [("a^b^c", "a^(b^c)"), ("-a^b", "-(a^b)"), ("a^-b", "a^(-b)"), ("a | b & c", "(a | b) & c"),
     ("a-b-c", "(a-b)-c"), ("a/b*c", "(a/b)*c"), ("-a*b", "(-a)*b"), ("!a<b", "(!a)<b"),
     ("a<b & b<c", "(a<b) & (b<c)"), ("pow(a, b)", "a^b")],
)  # fmt: skip
def test_what_the_page_says_of_operators_holds(text: str, same: str) -> None:
    assert parse(text, NAMES) is parse(same, NAMES)


def test_what_the_page_says_of_functions_holds() -> None:
    for name, count in FUNCTIONS.items():
        parse(f"{name}({', '.join(['a'] * count)})", NAMES)
        with pytest.raises(ExpressionError, match=f"{name} takes {count} arguments"):
            parse(f"{name}({', '.join(['a'] * (count + 1))})", NAMES)
    for text, value in (
        ("-7 % 4", 1), ("7 % -4", -1), ("round(2.5)", 2), ("round(3.5)", 4), ("trunc(-1.5)", -1),
        ("atan2(1, 0)", math.pi / 2), ("hypot(3, 4)", 5), ("rsqrt(4)", 0.5), ("exp2(3)", 8),
        ("if(2, 5, 6)", 5), ("if(0, 5, 6)", 6),
    ):  # fmt: skip
        assert parse(text, NAMES).attr[1] == pytest.approx(value), text


@pytest.mark.parametrize(
    ("name", "value"),
    [("cot", 1 / math.tan(-0.7)), ("sec", 1 / math.cos(0.7)), ("csc", 1 / math.sin(-0.7)),
     ("cbrt", -math.cbrt(0.7)), ("int", -1.0), ("sign", -1.0), ("fabs", 0.7), ("sqr", 0.49)],
)  # fmt: skip
def test_what_stands_for_a_function_that_is_not_there_gives_it(name: str, value: float) -> None:
    found = parse(INSTEAD[name], {"x": LINES.number(-0.7)})
    assert found.attr[1] == pytest.approx(value)


def test_functions_of_other_languages_are_told_with_what_to_write() -> None:
    assert not INSTEAD.keys() & FUNCTIONS.keys()
    for name, instead in INSTEAD.items():
        with pytest.raises(ExpressionError) as refused:
            parse(f"{name}(a)", NAMES)
        assert str(refused.value).endswith(f"there is no function '{name}'; write {instead}")
    with pytest.raises(ExpressionError, match="did you mean 'sqrt'"):
        parse("sqt(a)", NAMES)
