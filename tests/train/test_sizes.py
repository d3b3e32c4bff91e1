"""Open sizes: named, tied, and written as expressions that a call evaluates."""

import pytest
import torch
from torch import Tensor

import ingot.train as train
from ingot.errors import IngotError
from ingot.graphs.sizes import evaluated
from tests.train.models import eager


def both(x: Tensor, y: Tensor) -> Tensor:
    return x.sum(1)[:, None] * y.sum()


X, Y = torch.ones(4, 3), torch.ones(4)


@pytest.mark.parametrize(
    ("dynamic", "told"),
    [
        ({"z": {0: "n"}}, "wrong-argument.*'z', which is no tensor"),
        ({"x": {2: "n"}}, "wrong-argument.*'x' has 2 axes"),
        ({"x": {0: "a b"}}, "wrong-argument"),
        ({"x": {0: "n", 1: "n"}}, "wrong-argument.*'n' is 4 and, in axis 1 of 'x', 3"),
    ],
)
def test_wrong_names_are_told(dynamic: dict[str, dict[int, str]], told: str) -> None:
    with pytest.raises(IngotError, match=told):
        train.prepare(both, (X, Y), dynamic)


def test_an_example_of_one_is_told() -> None:
    with pytest.raises(IngotError, match=r"fixed-size.*axis 0 of 'x'.*size 1\n.*size 2 or more"):
        train.prepare(both, (X[:1], Y), {"x": {0: "n"}})


def test_sizes_of_one_name_are_equal_and_others_are_not() -> None:
    free = eager(both, (X, Y), dynamic={"x": {0: "n", -1: "m"}, "y": {0: "k"}})
    assert free(torch.ones(2, 5), torch.ones(7)).shape == (2, 1)
    tied = eager(both, (X, Y), dynamic={"x": {0: "n"}, "y": {0: "n"}})
    with pytest.raises(IngotError, match=r"wrong-shape.*'y' has shape \(7,\).*\(n,\) with n = 2"):
        tied(torch.ones(2, 3), torch.ones(7))


def test_expressions_become_numbers() -> None:
    assert evaluated(3, {}) == 3
    assert evaluated("n", {"n": 4}) == 4
    assert evaluated("2*n + max(n, 7)//2", {"n": 4}) == 11
    with pytest.raises(ValueError):
        evaluated("open('x')", {})
