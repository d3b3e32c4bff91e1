"""What is saved is what the strategy says, costs what the report says, and is safe to keep."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

import ingot.train as train
from ingot.errors import IngotError
from tests.train.models import MODELS, disagreement, eager

X = torch.randn(6, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()


def smooth(x: Tensor) -> Tensor:
    return (x.sin() * x.exp()).tanh().sum(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4))


@pytest.mark.parametrize("name", MODELS)
def test_min_cut_saves_fewer_bytes_than_default(name: str) -> None:
    make, example, dynamic = MODELS[name]
    found = train.compare_partitions(make(), (example,), dynamic=dynamic)
    assert found["min-cut"].saved <= found["default"].saved
    if name != "mlp":
        assert found["min-cut"].saved < found["default"].saved
    assert found["default"].saved <= found["save-all"].saved
    assert found["save-none"].saved <= found["min-cut"].saved


def test_bytes_are_those_of_the_tensors_that_travel() -> None:
    traced = train.trace(train.prepare(model(), X, "batch"))
    for strategy in train.STRATEGIES:
        halves = train.partition(traced, strategy)
        joint = train.assembled(halves, "eager", "eager")
        output = joint(X.detach().clone()[:5].requires_grad_())
        kept = {t.data_ptr(): t for t in output.grad_fn.saved_tensors}
        given = {t.data_ptr() for t in [*joint.parameters(), output]}
        new = [t for p, t in kept.items() if p not in given and t.shape != (5, 8)]
        wide = [t for p, t in kept.items() if p not in given and t.shape == (5, 8)]
        told = train.report.described(halves, {"batch": 5})
        # of shape (5, 8) is also the input, which is kept alive and not counted
        total = sum(t.numel() * t.itemsize for t in [*new, *wide]) - 5 * 8 * 4
        assert told.saved == total


def test_a_report_is_read_by_people_and_by_machines() -> None:
    found = train.compare_partitions(smooth, X, dynamic="batch", sizes={"batch": 100})
    lines = str(found).splitlines()
    assert lines[0] == "smooth at batch = 100: bytes saved per call"
    assert [line.split()[0] for line in lines[2:]] == list(train.STRATEGIES)
    assert found["save-none"].saved == 0
    assert found["save-none"].held == 100 * 8 * 4


def test_a_callable_partitions_by_torch_s_protocol() -> None:
    from torch._functorch.partitioners import default_partition

    seen = []

    def chosen(joint: GraphModule, inputs: Any, *, num_fwd_outputs: int) -> Any:
        seen.append((len(inputs), num_fwd_outputs))
        return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)

    traced = train.trace(train.prepare(smooth, X))
    halves = train.partition(traced, chosen)
    assert seen == [(2, 1)]
    assert halves.strategy == "chosen"
    assert halves.saved == train.partition(traced, "default").saved


def test_a_callable_partitions_by_names() -> None:
    def sines(joint: GraphModule, inputs: Any, *, num_fwd_outputs: int) -> list[str]:
        return [n.name for n in joint.graph.nodes if "sin" in str(n.target)]

    joint = eager(smooth, X, partition=sines)
    assert [s.name for s in joint.codes[0].saved.extra] == ["sin"]
    assert disagreement(smooth, joint, (X,)) < 1e-5
    with pytest.raises(IngotError, match=r"wrong-partition.*saves 'nothing'"):
        eager(smooth, X, partition=lambda *_, **__: ["nothing"])
    with pytest.raises(IngotError, match=r"wrong-argument.*'mincut'\n.*did you mean 'min-cut'"):
        eager(smooth, X, partition="mincut")


def test_nothing_saved_shares_memory_with_an_output() -> None:
    def turned(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.exp()
        return y.reshape(2, -1), y.sum()

    for strategy in train.STRATEGIES:
        joint = eager(turned, X, partition=strategy)
        found, _ = joint(X.detach().clone().requires_grad_())
        with torch.no_grad():
            found.zero_()
        try:
            found.sum().backward()
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error)


def test_what_is_saved_with_strides_of_its_own_is_right() -> None:
    def attend(x: Tensor) -> Tensor:
        q = x.view(2, 5, 2, 4).transpose(1, 2)
        mixed = nn.functional.scaled_dot_product_attention(q, q, q)
        return mixed.transpose(1, 2).reshape(2, 5, 8).square()

    x = torch.randn(2, 5, 8, requires_grad=True)
    traced = train.trace(train.prepare(attend, (x,)))
    halves = train.partition(traced, "save-all")
    joint = train.assembled(halves, "eager", "eager")
    assert disagreement(attend, joint, (x,)) < 1e-6
    assert disagreement(attend, eager(attend, (x,)), (x,)) < 1e-6


def test_halves_can_be_read() -> None:
    text = str(train.partition(train.trace(train.prepare(smooth, X, "batch")), "save-none"))
    assert text.startswith("# forward, saving by save-none\ndef forward(self, primals_1):")
    assert "# backward\ndef forward(self, sizes, primals_1, tangents_1):" in text
