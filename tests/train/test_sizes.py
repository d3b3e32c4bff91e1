"""Open sizes: named, tied, and written as expressions that a call evaluates."""

import copy
import random
from typing import Any

import pytest
import torch
from torch import Tensor

import ingot.train as train
from ingot.errors import IngotError
from ingot.graphs.sizes import evaluated
from tests.train.models import cnn, eager


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


@pytest.mark.parametrize("_", range(12))
def test_products_of_small_matrices_take_any_batch(_: int) -> None:
    sizes = [random.choice((1, 2, 5, 16)) for _ in range(3)]
    net = torch.nn.Sequential(
        torch.nn.Linear(sizes[0], sizes[1]), torch.nn.Tanh(), torch.nn.Linear(sizes[1], sizes[2])
    ).double()
    rows = random.choice((2, 3, 8, 20))
    example = torch.randn(rows, sizes[0], dtype=torch.float64, requires_grad=True)
    joint = eager(net, (example,), dynamic="batch")
    for batch in (1, 2, 7, 16, 40, 1000):
        x = torch.randn(batch, sizes[0], dtype=torch.float64)
        found, wanted = (x.clone().requires_grad_() for _ in range(2))
        joint(found).square().sum().backward()
        net(wanted).square().sum().backward()
        torch.testing.assert_close(found.grad, wanted.grad, rtol=1e-12, atol=1e-14)


def test_convolutions_take_any_batch() -> None:
    model = cnn().float()  # doubles go one way only
    example = torch.zeros(6, 1, 6, 6, requires_grad=True)
    joint = eager(copy.deepcopy(model), example, dynamic="batch")
    assert not any("16" in rule for rule in joint.signature.constraints)
    for batch in (2, 15, 16, 40):
        x = torch.randn(batch, 1, 6, 6, requires_grad=True)
        found = []
        for run in (model, joint):
            torch.manual_seed(0)
            y = run(x)
            found.append([y, *torch.autograd.grad(y.square().sum(), (x, *run.parameters()))])
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-3)


def branch(empty: bool, x: Tensor) -> Tensor:
    return x.sum() + 1 if empty else x.sum() + 2


def pad(x: Tensor) -> Tensor:
    return x.sum() / max(x.shape[0], 1) + min(x.shape[0], 1) + x[1:].shape[0]


@pytest.mark.parametrize(
    ("ask", "refused"),
    [
        (pad, ()),
        (lambda x: branch(x.shape[0] == 0, x), (0,)),
        (lambda x: branch(x.shape[0] < 1, x), (0,)),
        (lambda x: branch(x.shape[0] >= 1, x), (0,)),
        (lambda x: branch(x.shape[0] - 1 < 0, x), (0,)),
        (lambda x: branch(x.numel() == 0, x), (0,)),
        (lambda x: branch(not len(x), x), (0,)),
        (lambda x: x.sum() + (x.shape[0] or 5), (0,)),
        (lambda x: x.sum() + (x.shape[0] and 5), (0,)),
        (lambda x: x.sum() + 10 // x.shape[0], (0,)),
        (lambda x: x.sum() + 10 // (x.shape[0] - 1), (1,)),
        (lambda x: x.sum() + x.shape[0] % 2, ()),
        (lambda x: branch(x.shape[0] % 2 == 0, x), (0, 2)),
        (lambda x: len(x.chunk(2)) + x.sum(), (0, 1, 2)),
    ],
)
def test_a_decision_about_nothing_is_checked(ask: Any, refused: tuple[int, ...]) -> None:
    joint = eager(ask, torch.randn(3, 4), dynamic={0: ("batch", 0, 64)})
    for size in range(4):
        x = torch.randn(size, 4)
        if size in refused:
            with pytest.raises(IngotError, match="wrong-shape"):
                joint(x)
        else:
            torch.testing.assert_close(joint(x), ask(x))
