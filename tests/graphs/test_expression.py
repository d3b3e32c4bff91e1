"""Expressions of sizes are computed as Python would; whatever else a text holds is refused."""

import math
import random

import pytest

from ingot.graphs.expression import expression, names_of


def drawn(dice: random.Random, depth: int) -> str:
    """A random expression of the sizes `a`, `b` and `c`, as torch prints them."""
    if depth == 0:
        return dice.choice(["a", "b", "c", str(dice.randint(1, 9)), "2.5"])
    x, y, z = (f"({drawn(dice, depth - 1)})" for _ in range(3))
    return dice.choice([
        f"({x}) + ({y})", f"({x}) - ({y})", f"({x})*({y})", f"({x}) // (1 + abs({y}))",
        f"({x}) % (1 + abs({y}))", f"({x}) / (1 + abs({y}))", f"max({x}, {y}, {z})",
        f"min({x}, {y})", f"({x} if {y} < {z} else {z})", f"{x} == {y} and {x} < {z}",
        f"not ({x} != {y} or {z} >= 2)", f"math.floor({x})", f"-({x})", f"1 <= {x} < {y}",
        f"math.ceil(math.sqrt(abs({x})))", f"({x}) ** 2", f"round({x})",
    ])  # fmt: skip


def test_random_expressions_are_those_of_python() -> None:
    dice = random.Random(3)
    for _ in range(2000):
        text = drawn(dice, dice.randint(0, 3))
        sizes = {n: dice.randint(1, 50) for n in "abc"}
        assert expression(text)(sizes) == eval(text, {"math": math}, dict(sizes)), text
        assert names_of(text) <= set("abc")


def test_what_torch_calls_by_names_of_its_own_is_known() -> None:
    assert expression("torch.sym_float(n) / 2")({"n": 3}) == 1.5
    assert expression("torch._sym_sqrt(n) < math.inf")({"n": 9}) is True


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "().__class__", "open('x')", "n.real", "[n]", "'text'",
        "math.__loader__", "lambda: 0", "n[0]", "(n := 3)", "f'{n}'", "n if", "", "9 ** 99",
        "2 ** n", "exec('0')", "min(n, *[])", "min(n, key=0)", "torch.load('x')", "n @ n",
        "math.factorial(99999)", "1" * 20_000, "(" * 300 + ")" * 300, "n << n", "1j", "None",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        expression(text)
