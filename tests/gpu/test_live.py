"""A live model on a GPU gives what it gives on a CPU: values, status and gradients."""

import copy

import pytest
import torch
from torch import Tensor

from ingot import IngotError, Model
from tests.runtime.test_live import TEXTS, given, made

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def evaluate(model: Model, inputs: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[Tensor]]:
    """Outputs, and the gradients of the sum of their squares by inputs and parameters."""
    leaves = {n: x.detach().clone().requires_grad_() for n, x in inputs.items()}
    found = model(leaves)
    by = [*leaves.values(), *model.parameters()]
    loss = sum((y**2).sum() for y in found.values())
    return found, list(torch.autograd.grad(loss, by, allow_unused=True, materialize_grads=True))


@pytest.mark.parametrize("name", TEXTS)
def test_a_model_that_was_moved_gives_the_same(name: str) -> None:
    model = made(name)
    inputs = given(model, 7)
    wanted, slopes = evaluate(model, inputs)
    moved = copy.deepcopy(model).to("cuda")
    found, moved_slopes = evaluate(moved, {n: x.cuda() for n, x in inputs.items()})
    assert all(s.converged.all() for s in moved.status)
    for n, y in wanted.items():
        assert found[n].is_cuda
        torch.testing.assert_close(found[n].cpu(), y, rtol=1e-10, atol=1e-12)
    for ours, theirs in zip(moved_slopes, slopes, strict=True):
        assert ours.is_cuda
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-8, atol=1e-10)


def test_inputs_elsewhere_than_the_model_are_refused() -> None:
    model = made("decay")
    with pytest.raises(IngotError, match="cuda"):
        model({n: x.cuda() for n, x in given(model, 3).items()})
