"""Tables of a file: their knots are theirs alone, and declared structural or not."""

import warnings

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError, IngotWarning
from ingot.execute import executor
from ingot.hit import read_text
from ingot.model import Factory, build
from ingot.program import prepared

TABLES = """
[Tensors]
  [times]
    type = Python
    expr = '{rows}'
  []
[]
[Models]
  [short]
    type = ScalarLinearInterpolation
    argument = 'x'
    abscissa = '{knots}'
    ordinate = '1 3 2 8'
  []
  [long]
    type = ScalarLinearInterpolation
    argument = 'short'
    abscissa = '0 1 2 3 4 5 6'
    ordinate = 'times'
  []
  [both]
    type = ComposedModel
    models = 'short long'
  []
[]
"""
KNOTS = torch.tensor([-1.0, 0.5, 1.0, 4.0], dtype=torch.float64)
VALUES = torch.tensor([1.0, 3.0, 2.0, 8.0], dtype=torch.float64)
PLAIN = "Scalar(torch.arange(7.0) ** 2)"
TAGGED = PLAIN + ".sub_batch.retag(1)"


def table(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    """By hand, with a search of its own."""
    at = torch.searchsorted(knots, x, right=True).clamp(1, len(knots) - 1)
    slope = (values[at] - values[at - 1]) / (knots[at] - knots[at - 1])
    return values[at - 1] + slope * (x - knots[at - 1])


@pytest.mark.parametrize("rows", [PLAIN, TAGGED])
@pytest.mark.parametrize("shape", [(), (5,), (5, 4), (5, 7)], ids=str)
def test_tables_of_different_lengths_follow_one_another(rows: str, shape: tuple[int, ...]) -> None:
    text = TABLES.format(rows=rows, knots="-1 0.5 1 4")
    structural = {"x": shape[1:]} if len(shape) > 1 else {}
    program = prepared(build(read_text(text), "both"), structural)
    x = torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 8 - 2
    found, _ = executor(program)({"x": x})
    squares = torch.arange(7.0, dtype=torch.float64) ** 2
    expected = table(table(x, KNOTS, VALUES), torch.arange(7.0, dtype=torch.float64), squares)
    torch.testing.assert_close(found["long"], expected)


def test_each_point_of_a_batch_may_have_a_table_of_its_own() -> None:
    rows = "Scalar(torch.stack([torch.arange(7.0) ** 2, torch.arange(7.0) * 3]))"
    program = prepared(build(read_text(TABLES.format(rows=rows, knots="-1 0.5 1 4")), "both"))
    x = torch.tensor([0.7, 0.7], dtype=torch.float64)
    found, _ = executor(program)({"x": x})
    at = table(x, KNOTS, VALUES)
    knots = torch.arange(7.0, dtype=torch.float64)
    expected = torch.stack([table(at[:1], knots, knots**2)[0], at[1] * 3])
    torch.testing.assert_close(found["long"], expected)


@pytest.mark.parametrize(
    ("knots", "told"),
    [
        ("4 1 0.5 -1", "1 follows 4"),
        ("-1 0.5 4 1", "1 follows 4"),
        ("each", "2 follows 3"),
    ],
)
def test_abscissas_that_descend_are_warned_of(knots: str, told: str) -> None:
    expr = "torch.tensor([[0.0, 1, 2, 3], [0, 3, 2, 4]])"
    each = f"[each]\n    type = Python\n    expr = '{expr}'\n  []"
    text = TABLES.format(rows=PLAIN, knots=knots).replace("[Tensors]", f"[Tensors]\n{each}")
    message = f"'abscissa' does not ascend: {told}"
    with pytest.warns(IngotWarning, match=message):
        build(read_text(text), "both")
    with pytest.raises(IngotError, match=message) as error:
        Factory(read_text(text), strict=True).model("both")
    (problem,) = error.value.problems
    assert problem.code == "not-ascending" and problem.span is not None and problem.fix


@pytest.mark.parametrize("knots", ["-1 0.5 0.5 4", "-1 0.5 1 inf"])
def test_abscissas_that_do_not_descend_are_taken_silently(knots: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(read_text(TABLES.format(rows=PLAIN, knots=knots)), "short")


def test_one_knot_is_a_table() -> None:
    text = TABLES.format(rows=PLAIN, knots="2").replace("'1 3 2 8'", "'5'")
    assert Factory(read_text(text), strict=True).model("short").values["abscissa"].data.numel() == 1
