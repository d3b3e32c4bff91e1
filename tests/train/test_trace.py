"""A joint graph is functional, clean and open in its sizes; what cannot be traced is told."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import ingot.train as train
from ingot.errors import IngotError
from tests.train.models import cnn, eager

X = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
X.requires_grad_()
WEIGHT = torch.ones(3, dtype=torch.float64, requires_grad=True)


def written(x: Tensor) -> Tensor:
    x.add_(1)
    return x * 2


def turned(x: Tensor) -> Tensor:
    x.t_()
    return x * 2


def branching(x: Tensor) -> Tensor:
    return x if x.sum() > 0 else -x


def own_generator(x: Tensor) -> Tensor:
    return x * torch.rand(3, generator=torch.Generator())


class Shrinking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4, 3, dtype=torch.float64))
        self.last: Tensor

    def forward(self, x: Tensor) -> Tensor:
        self.last = x.detach()[0]
        return x * 2


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (written, "untraceable-function.*leaf Variable that requires grad"),
    (turned, r"untraceable-function.*inplace view(?s:.)*x.t_\(\)"),
    (branching, "untraceable-function.*'branching' cannot be traced"),
    (lambda x: x * x.sum().item(), "untraceable-function.*_local_scalar_dense.*depends on values"),
    (lambda x: x[x > 0], "untraceable-function.*depends on values"),
    (lambda x: x * WEIGHT, "hidden-parameter.*WEIGHT"),
    (lambda x: torch.multinomial(x.exp(), 2), "random-operation.*aten.multinomial"),
    (own_generator, r"(untraceable-function|random-operation)(?s:.)*Generator"),
    (lambda x: x + torch.ones(4, 3), "fixed-size.*works for one size only: batch = 4"),
    (lambda x: {1, 2}, "wrong-output.*result of '<lambda>' holds a set"),
    (Shrinking(), "reshaped-input.*'last' becomes another shape"),
]


@pytest.mark.parametrize(("function", "told"), REFUSED)
def test_what_cannot_be_traced_is_told(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(IngotError, match=told):
        train.trace(train.prepare(function, (X,), "batch"))


def test_a_joint_graph_writes_to_nothing_draws_nothing_and_holds_nothing_dead() -> None:
    traced = train.trace(
        train.prepare(cnn(), torch.zeros(6, 1, 6, 6, dtype=torch.float64), "batch")
    )
    for node in traced.graph.graph.nodes:
        if node.op == "call_function":
            schema = getattr(node.target, "_schema", None)
            assert schema is None or not schema.is_mutable
            assert torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ())
            assert node.users
    assert len(traced.signature.draws) == 1
    assert [i for i, _ in traced.signature.mutated] == [6, 7, 8]
    text = str(traced)
    assert "param  0.weight float64[4, 1, 3, 3]" in text
    assert "draws  aten.bernoulli.p" in text
    assert "return (addmm" in text


def test_gradients_that_do_not_exist_are_not_computed() -> None:
    other = torch.ones(2, requires_grad=True)
    traced = train.trace(train.prepare(lambda x, y: (x * 2, y.detach() * 3), (X, other)))
    assert traced.signature.gradients == (0,)
    x = X.detach().clone().requires_grad_()
    eager(lambda x, y: (x * 2, y.detach() * 3), (X, other))(x, other)[0].sum().backward()
    assert other.grad is None
    assert x.grad is not None


def test_the_source_module_is_left_as_it_was() -> None:
    model = cnn()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    identities = [id(p) for p in model.parameters()]
    train.trace(train.prepare(model, torch.zeros(6, 1, 6, 6, dtype=torch.float64)))
    assert [id(p) for p in model.parameters()] == identities
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3)).double()

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.inner, x, use_reentrant=False).square()


def test_what_is_computed_again_in_the_backward_pass_has_its_gradients() -> None:
    module = Checkpointed()
    found = eager(module, (X,), dynamic="batch")
    found(X).sum().backward()
    ours = [p.grad for p in found.parameters()]
    for p in module.parameters():
        p.grad = None
    module(X).sum().backward()
    for mine, parameter in zip(ours, module.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, rtol=1e-12, atol=1e-12)
