"""Random numbers of a joint are those of eager for the same seed, or refused by name."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import ingot.train as train
from ingot.errors import IngotError

X = torch.randn(3, 4, dtype=torch.float64)


def attend(x: Tensor) -> Tensor:
    whole = x[None, None]
    return functional.scaled_dot_product_attention(whole, whole, whole, dropout_p=0.4)[0, 0]


DRAWN: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda x: functional.dropout(x, 0.3),
    "dropout of a transposed tensor": lambda x: functional.dropout(x.t(), 0.3).t(),
    "dropout of a strided tensor": lambda x: functional.dropout(x[:, ::2], 0.3),
    "dropout of all": lambda x: functional.dropout(x, 1.0) + torch.rand_like(x),
    "dropout of none": lambda x: functional.dropout(x, 0.0) + torch.rand_like(x),
    "dropout in place": lambda x: functional.dropout(x * 1, 0.5, inplace=True),
    "dropout of channels": lambda x: functional.dropout1d(x[None], 0.4)[0],
    "alpha dropout": lambda x: functional.alpha_dropout(x, 0.4, training=True),
    "attention": attend,
    "gumbel": functional.gumbel_softmax,
    "uniform": lambda x: x + torch.empty_like(x).uniform_(-1, 2),
    "normal": lambda x: x + torch.normal(1.0, 2.0, (4,)),
    "normal in place": lambda x: x + torch.empty_like(x).normal_(1, 2),
    "exponential": lambda x: x + torch.empty(3, 4).exponential_(2.0),
    "bernoulli": lambda x: x * torch.bernoulli(torch.sigmoid(x.detach())),
    "bernoulli in single precision": lambda x: x * torch.bernoulli(torch.sigmoid(x.float())),
    "bernoulli of a transposed tensor": lambda x: x * torch.bernoulli(x.sigmoid().t()).t(),
    "bernoulli of a strided tensor": lambda x: torch.bernoulli(x.sigmoid()[:, ::2]) * x[:, 1::2],
    "integers": lambda x: x + torch.randint(0, 5, (3, 4)),
    "permutation": lambda x: x[:, torch.randperm(4)],
}

BY_VALUE: dict[str, Callable[[Tensor], Tensor]] = {
    "rrelu": lambda x: functional.rrelu(x, training=True),
    "multinomial": lambda x: torch.multinomial(x.softmax(-1), 1),
    "poisson": lambda x: x + torch.poisson(x.abs()),
}


def assert_drawn_alike(source: Callable[..., Tensor], example: Tensor) -> None:
    """Results, gradients and the state of the generator after two calls."""
    example = example.detach().requires_grad_()
    joint = train.joint(source, example, compile_forward="eager", compile_backward="eager")
    found = []
    for run in (source, joint):
        torch.manual_seed(7)
        given = example.detach().requires_grad_()
        results = [run(given), run(given)]
        (grad,) = torch.autograd.grad([r.sum() for r in results], [given])
        found.append([*results, grad, torch.get_rng_state()])
    for mine, eagers in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(mine, eagers)


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_are_drawn_as_eager_draws_them(name: str) -> None:
    assert_drawn_alike(DRAWN[name], X)


@pytest.mark.parametrize("name", BY_VALUE)
def test_numbers_that_depend_on_values_are_refused(name: str) -> None:
    with pytest.raises(IngotError, match=r"random-operation.*depend on values"):
        assert_drawn_alike(BY_VALUE[name], X)


class Recurrent(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)[0]


@pytest.mark.parametrize("inner", [
    nn.RNN(4, 4, 3, dropout=0.3),
    nn.GRU(4, 4, 2, dropout=0.3, bidirectional=True, batch_first=True),
    nn.LSTM(4, 4, 2, dropout=0.3, batch_first=True),
    nn.LSTM(4, 4, 2, dropout=0.3, bidirectional=True).requires_grad_(False),
], ids=["simple", "gated, both ways", "long memory", "long memory, frozen"])  # fmt: skip
def test_recurrent_networks_drop_between_layers(inner: nn.Module) -> None:
    """Torch's own decomposition, which torch.export takes too, drops nothing."""
    assert_drawn_alike(Recurrent(inner), torch.randn(2, 3, 4))
