"""What regions work around in torch is still so: where one fails, a way around may go."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from ingot.regions import torch_facts


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return 2 * grad


def without(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x * 1.0


@pytest.mark.parametrize("function", [Doubled.apply, without], ids=["own", "none"])
def test_trace_of_values_loses_derivatives(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.ones(3, requires_grad=True)
    graph = make_fx(lambda x: function(x))(x)
    (found,) = torch.autograd.grad(graph(x).sum(), [x])
    assert found.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("function", [Doubled.apply, without], ids=["own", "none"])
def test_what_would_be_lost_is_seen(function: Callable[[Tensor], Tensor]) -> None:
    told: list[str] = []
    with torch_facts.seeing(told.append):
        function(torch.ones(3, requires_grad=True))
    assert told in (["torch.no_grad()"], ["the autograd function 'Doubled'"])


def test_size_is_fixed_without_a_word_but_can_be_asked_for() -> None:
    sizes = torch_facts.Sizes({"batch": 4, "length": 5})
    x = sizes.tensor(("batch", "length"), torch.float32, "cpu", grad=False)
    assert sizes.guards() == () and sizes.fixed() == {}
    assert x.shape[0] < 10
    assert sizes.guards() == ("batch < 10",)
    assert x.shape[1] == 5
    assert sizes.fixed() == {"length": "5"}


def test_tensors_are_compared_with_what_they_were() -> None:
    weight = nn.Parameter(torch.randn(3, 4))
    same = torch_facts.same_tensors([weight])
    weight.data.mul_(2)
    assert same(weight)
    for change in (torch.Tensor.double, torch.Tensor.t, lambda t: t[:2]):
        before = weight.data
        weight.data = change(before)
        assert not same(weight)
        weight.data = before
        assert same(weight)


def test_compiled_code_asks_no_guards_and_reads_garbage() -> None:
    """Why every call is checked: nothing below the edge would notice."""
    guards = torch._C._dynamo.guards.TensorGuards
    assert hasattr(guards, "check")
    assert torch.ops.ingot.region.default is torch_facts.region
