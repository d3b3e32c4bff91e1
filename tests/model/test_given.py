"""Python values are bound to a law as values: none goes through text, none changes on the way."""

# annotations are read by @model
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportGeneralTypeIssues=false

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
import torch

from ingot import executor
from ingot.catalog import CATALOG, Fixed, Many, Parameter
from ingot.errors import IngotError
from ingot.model import Model, bind
from ingot.program import prepared
from ingot.types import R2, SR2, Scalar, Vec, inner, tr
from tests.program.declared import declared


def Given(
    x: Scalar,
    y: SR2,
    *,
    q: Parameter[Scalar],
    s: Parameter[SR2] = 0,
    many: Many[Parameter[Scalar]] = 1,
    fixed: Fixed[Scalar] = 1,
    r: Parameter[R2] = 0,
    flag: bool = False,
    count: int = 1,
    size: float = 1.0,
    side: Literal["left", "right"] = "left",
) -> Scalar:
    """All that a law may take."""
    sides = {"left": 1.0, "right": -1.0}[side]
    total = q * x + inner(s, y) * size + count * fixed + sides * tr(r)
    for each in many:
        total = total + each * x
    return -total if flag else total


@pytest.fixture(autouse=True, scope="module")
def law() -> Iterator[None]:
    with declared(Given, gives="out"):
        yield


def bound(**values: Any) -> Model:
    return bind(CATALOG["Given"], values, None)


def refused(**values: Any) -> str:
    with pytest.raises(IngotError) as caught:
        bound(**{"q": 1.0, **values})
    return str(caught.value)


TWO = [
    2, 2.0, np.float64(2), np.float32(2), np.int64(2), np.uint8(2), np.float16(2), np.longdouble(2),
    np.array(2.0), np.array(2.0, dtype=">f8"), np.array(2, dtype=">i4"), Fraction(2),
    torch.tensor(2.0), torch.tensor(2), torch.tensor(2.0, dtype=torch.bfloat16),
    torch.tensor(2.0, dtype=torch.float64), torch.tensor(2, dtype=torch.uint64),
    torch.nn.Parameter(torch.tensor(2.0), requires_grad=False),
    Scalar(torch.tensor(2.0)), Scalar(2.0),
]  # fmt: skip


@pytest.mark.parametrize("value", TWO, ids=repr)
def test_number_of_any_make_is_its_float64(value: Any) -> None:
    model = bound(q=value)
    data = model.values["q"].data
    assert data.dtype == torch.float64
    assert data.shape == ()
    assert float(data) == 2.0
    assert set(model.inputs) == {"x", "y"}


WIDTHS = ["<f2", "<f4", ">f4", "<f8", ">f8", "<i4", ">i2", "u1", "<i8"]


@pytest.mark.parametrize("width", WIDTHS)
def test_batches_are_kept_exactly_and_copied(width: str) -> None:
    draw = np.random.default_rng(1).uniform(-100, 100, (4, 5)).astype(width)
    kept = bound(q=draw[::2]).values["q"].data
    np.testing.assert_array_equal(kept.numpy(), draw[::2].astype(np.float64))
    native = torch.from_numpy(draw.astype(np.dtype(width).newbyteorder("=")))
    again = bound(q=native.T).values["q"].data
    np.testing.assert_array_equal(again.numpy(), draw.T.astype(np.float64))
    before = again.clone()
    native.zero_()
    draw.fill(0)
    assert torch.equal(again, before)


def draw_values(draw: np.random.Generator, batch: tuple[int, ...]) -> dict[str, Any]:
    """Options of the law in makes of every sort, and what they are in plain torch."""

    def number(*base: int) -> Any:
        shape = (*batch, *base) if draw.random() < 0.5 else base
        plain = draw.uniform(-2, 2, shape).astype(draw.choice(["f4", "f8"]))
        makes = (
            lambda x: x,
            lambda x: torch.from_numpy(x.copy()),
            lambda x: x.tolist(),
            lambda x: x.astype(">f8"),
        )
        return makes[draw.integers(4)](np.asarray(plain))

    return {
        "q": number(), "r": number(3, 3),
        "s": SR2(draw.uniform(-2, 2, 6)) if draw.random() < 0.3 else number(6),
        "many": [number() for _ in range(draw.integers(1, 4))], "fixed": number(),
        "flag": bool(draw.random() < 0.5), "count": int(draw.integers(-3, 4)),
        "size": float(draw.uniform(-1, 1)), "side": str(draw.choice(["left", "right"])),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_bound_law_is_the_function_on_plain_torch(seed: int) -> None:
    draw = np.random.default_rng(seed)
    batch = (3,)
    values = draw_values(draw, batch)
    x = torch.from_numpy(draw.uniform(-1, 1, batch))
    y = torch.from_numpy(draw.uniform(-1, 1, (*batch, 6)))
    outputs, _ = executor(prepared(bound(**values)))({"x": x, "y": y})

    def plain(value: Any) -> torch.Tensor:
        numbers = value.data if isinstance(value, SR2) else value
        numbers = numbers.numpy() if isinstance(numbers, torch.Tensor) else numbers
        return torch.from_numpy(np.array(numbers, dtype="f8"))

    q, fixed = plain(values["q"]), plain(values["fixed"])
    wanted = q * x + (plain(values["s"]) * y).sum(-1) * values["size"] + values["count"] * fixed
    sign = 1 if values["side"] == "left" else -1
    wanted = wanted + sign * plain(values["r"]).diagonal(dim1=-2, dim2=-1).sum(-1)
    wanted = wanted + sum(plain(each) for each in values["many"]) * x
    torch.testing.assert_close(outputs["out"], -wanted if values["flag"] else wanted)


def test_strings_are_names_of_variables() -> None:
    model = bound(q="modulus", x="forces/x", many=["a", 2.0], out="sum")
    assert model.inputs == {"forces/x": Scalar, "y": SR2, "modulus": Scalar, "a": Scalar}
    assert list(model.outputs) == ["sum"]
    assert set(model.values) == {"s", "many_1", "fixed", "r"}


def test_array_is_a_list_of_parameters_and_none_is_not_given() -> None:
    model = bound(q=1, many=np.array([1.0, 3.0]), side=None, s=None)
    assert [float(model.values[f"many_{i}"].data) for i in (0, 1)] == [1.0, 3.0]
    assert float(model.values["s"].data.sum()) == 0.0
    assert "Given needs the option 'q'" in refused(q=None)


WRONG = {
    "complex": ({"q": 1j}, "should be numbers, not 1j"),
    "complex tensor": ({"q": torch.tensor(1j)}, "should be real numbers"),
    "bool": ({"q": True}, "should be numbers, not True"),
    "bool tensor": ({"q": torch.tensor(True)}, "should be real numbers"),
    "bool array": ({"q": np.array([True])}, "should be numbers"),
    "history": ({"q": torch.ones((), requires_grad=True)}, r"parameter=\('q',\)"),
    "nn.Parameter": ({"q": torch.nn.Parameter(torch.ones(()))}, "requires grad"),
    "large int": ({"q": 2**53 + 1}, "should be a float64, not 9007199254740993"),
    "larger int": ({"q": 10**400}, "should be a float64"),
    "large int64": ({"q": np.int64(2**53 + 1)}, "should be a float64"),
    "large int tensor": ({"q": torch.tensor([1, 2**53 + 1])}, "should be a float64"),
    "largest int": ({"q": np.array([2**63 - 1])}, "should be a float64"),
    "fraction": ({"q": Fraction(1, 3)}, "should be a float64"),
    "longdouble": ({"q": np.longdouble(1) / 3}, "should be a float64"),
    "masked": ({"q": np.ma.array([1.0], mask=[True])}, r"give value.filled\(...\)"),
    "objects": ({"q": np.array([object()])}, "should be numbers"),
    "dates": ({"q": np.datetime64("2020-01-01")}, "should be numbers"),
    "meta": ({"q": torch.ones(2, device="meta")}, "give a dense tensor"),
    "sparse": ({"q": torch.ones(2).to_sparse()}, "give a dense tensor"),
    "nan": ({"q": float("nan")}, "should be numbers, but one is nan"),
    "nan inside": ({"s": torch.tensor([1, 2, 3, 4, 5, float("nan")])}, "one is nan"),
    "ragged": ({"q": [[1.0], [1.0, 2.0]]}, "rows of one length"),
    "empty": ({"q": []}, "should be numbers"),
    "words": ({"q": "a b"}, "the name of one variable, not 'a b'"),
    "number in quotes": ({"q": "2.0"}, "give numbers unquoted"),
    "unit in quotes": ({"q": "150MPa"}, "give numbers unquoted"),
    "nan in quotes": ({"q": "nan"}, "give numbers unquoted"),
    "strings": ({"q": ["a", "b"]}, "should be numbers, not 'a'"),
    "function": ({"q": refused}, "should be numbers, not the function refused"),
    "dict": ({"q": {}}, "should be numbers"),
    "kind": ({"s": Vec(torch.zeros(3))}, r"should be a SR2, not a Vec.*\n.*give SR2\(...\)"),
    "shape": ({"s": torch.zeros(5)}, r"has shape \(5,\)"),
    "variable for a fixed one": ({"fixed": "a"}, "'fixed' is a number, not 'a'"),
    "flag": ({"flag": 1}, "should be True or False, not 1"),
    "flag in quotes": ({"flag": "true"}, "should be True or False, not 'true'"),
    "count": ({"count": 1.5}, "should be a whole number, not 1.5"),
    "option": ({"size": "1.5"}, "should be numbers, not '1.5'"),
    "choice": ({"side": "lef"}, "is one of left, right, not 'lef'.*\n.*did you mean 'left'"),
    "choice of another make": ({"side": 1}, "should be a string, not 1"),
    "name": ({"x": 3.0}, "'x' should be a string, not 3.0"),
    "name of several": ({"x": "a b"}, "should name one variable, not 'a b'"),
    "unknown": ({"qq": 3.0}, "Given has no option 'qq'.*\n.*did you mean"),
    "type": ({"type": "Given"}, "Given has no option 'type'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_value_is_refused(case: str) -> None:
    values, words = WRONG[case]
    told = refused(**values)
    assert re.search(words, told), told
    assert "fix:" in told
    assert "<Given>" not in told


def test_output_of_another_model_stands_in_for_a_parameter() -> None:
    other = bound(q=1)
    model = bound(q=other)
    assert model.providers == {"out": other}
    assert set(model.inputs) == {"x", "y", "out"}
    assert "'fixed' is a number, not 'the model [Given]'" in refused(fixed=other)
    assert "'s' is a SR2, but 'out' a Scalar" in refused(s=other)


def test_all_problems_are_told_at_once() -> None:
    told = refused(q=1j, s=True, unknown=3, flag=3)
    assert told.count("error[") == 4


def test_values_that_are_no_mapping_are_refused() -> None:
    for values in ([("q", 1)], {1: 2.0}, 3):
        with pytest.raises(IngotError):
            bind(CATALOG["Given"], values, None)
