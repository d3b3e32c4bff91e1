"""Calls that are prepared once for each layout of their arrays."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.graphs import torch_private
from ingot.runtime import Artifact
from tests import packages
from tests.packages import RATE, inputs_of


@pytest.fixture
def artifact() -> Artifact:
    """Plasticity, called once with two points."""
    made = packages.plastic().artifact()
    made(inputs_of(packages.plastic(), 2))
    return made


def moved(change: Callable[[Tensor], Tensor], batch: int = 2) -> dict[str, Tensor]:
    return {n: change(x) for n, x in inputs_of(packages.plastic(), batch).items()}


def strided(x: Tensor) -> Tensor:
    return x.t().contiguous().t() if x.ndim == 2 else torch.stack([x, x], -1)[:, 0]


def negated(x: Tensor) -> Tensor:
    """The same numbers, the sign of which lies in a flag."""
    held = torch.complex(torch.zeros_like(x), -x).conj().imag
    assert held.is_neg()
    return held


@pytest.mark.parametrize("change", [torch.clone, strided, negated, lambda x: x[:1].expand_as(x)])
def test_call_like_the_last_and_call_unlike_it_agree(
    artifact: Artifact, change: Callable[[Tensor], Tensor]
) -> None:
    inputs = moved(change)
    wanted = packages.plastic().artifact()({n: x.clone() for n, x in inputs.items()})
    for _ in range(3):
        found = artifact(inputs)
        iterations = artifact.status[0].iterations
        for n, x in wanted.items():
            assert torch.equal(found[n], x)
        assert iterations.shape == (2,)


def test_results_of_a_call_stay_when_the_next_is_made(artifact: Artifact) -> None:
    first = artifact(moved(torch.clone))
    status = artifact.status[0].residual.clone()
    kept = {n: x.clone() for n, x in first.items()}
    told = artifact.status
    artifact(moved(lambda x: 2 * x))
    assert all(torch.equal(first[n], x) for n, x in kept.items())
    assert torch.equal(told[0].residual, status)


def test_last_layout_may_change_at_every_call(artifact: Artifact) -> None:
    for batch in (1, 2, 5, 2, 3000, 2, 0, 2):
        inputs = moved(torch.clone, batch)
        found = artifact(inputs)
        fresh = packages.plastic().artifact()(inputs)
        assert all(torch.equal(found[n], x) for n, x in fresh.items())
        assert artifact.status[0].reason.shape == (batch,)


def test_arrays_after_tensors_give_arrays(artifact: Artifact) -> None:
    found = artifact({n: x.numpy() for n, x in moved(torch.clone).items()})
    assert all(isinstance(x, np.ndarray) for x in found.values())


def test_gradients_after_plain_calls_pass_through(artifact: Artifact) -> None:
    inputs = moved(torch.clone)
    artifact(inputs)
    inputs["E"].requires_grad_()
    assert artifact(inputs)["plastic_strain"].requires_grad
    with torch.no_grad():
        assert not artifact(inputs)["plastic_strain"].requires_grad
    assert artifact(inputs)["plastic_strain"].requires_grad


def test_parameter_of_another_shape_is_seen() -> None:
    artifact = packages.single().artifact()
    inputs = inputs_of(packages.single(), 2)
    before = artifact(inputs)["alpha"]
    assert artifact._calls.is_guarding
    assert torch.equal(artifact(inputs)["alpha"], before)
    artifact.set_parameter(RATE, torch.tensor([4.0, 3.0]))
    after = artifact(inputs)["alpha"]
    assert after[0] == before[0] and after[1] < before[1]
    artifact.set_parameter(RATE, [4.0, 2.0])
    assert artifact(inputs)["alpha"][1] < after[1]


def test_hooks_are_called(artifact: Artifact) -> None:
    seen: list[int] = []
    artifact.register_forward_hook(lambda *_: seen.append(1))
    inputs = moved(torch.clone)
    artifact(inputs)
    artifact(inputs)
    assert seen == [1, 1]


def test_layouts_are_compared_by_the_guards_of_torch() -> None:
    values = list(moved(torch.clone).values())
    others = [list(moved(f).values()) for f in (torch.clone, strided, negated)]
    same = torch_private.same_layout(values)
    assert [same(*x) for x in others] == [True, False, False]
    assert not same(*values[:-1], values[-1].clone().requires_grad_())
    assert not same(*values[:-1], values[-1].float())


@pytest.mark.parametrize("batch", [2, 7])
def test_tables_of_a_status_are_viewed_by_plain_tuples(
    artifact: Artifact, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch 2.15 refuses lists and `torch.Size` there, which earlier ones took."""
    kept = torch_private.view_memory

    def view(x: Tensor, shape: object, strides: object, offset: int) -> Tensor:
        assert type(shape) is tuple
        assert type(strides) is tuple
        return kept(x, shape, strides, offset)

    monkeypatch.setattr("ingot.execute.call_layout.view_memory", view)
    artifact(inputs_of(packages.plastic(), batch))
    assert artifact.status[0].iterations.shape == (batch,)
