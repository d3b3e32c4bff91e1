"""Dynamo's graph of a function or module: what goes in and out; the source is untouched."""

import threading
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ingot.errors import IngotError
from ingot.graphs.capture import Captured, capture

GAIN = 3.0
TABLE = torch.arange(4.0)


@dataclass
class Result:
    y: Tensor
    size: int


Pair = namedtuple("Pair", "one two")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.register_buffer("mean", torch.zeros(4))
        self.cache = torch.zeros(4)
        self.scale = 2.5

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        self.mean = self.mean * 0.9 + x.mean((0, 1))
        self.cache = x.sum((0, 1))
        y = self.norm(torch.relu(self.linear(x))) * self.scale * GAIN * TABLE
        if x.shape[1] > 1:
            y = y + 1
        return Result(y, x.shape[1]), {"weight": self.linear.weight, "x": x, "three": [3]}


@pytest.fixture(scope="module")
def captured() -> Captured:
    open_sizes = {"x": {0: "batch", 1: "time"}}
    return capture(Net(), (torch.randn(3, 5, 4),), {"mask": None}, open_sizes, ["x"])


def test_every_tensor_is_an_input(captured: Captured) -> None:
    names = {(i.kind, i.name) for i in captured.inputs if i.kind in ("held", "constant")}
    assert names == {
        ("held", "mean"), ("held", "linear.weight"), ("held", "linear.bias"),
        ("held", "norm.weight"), ("held", "norm.bias"), ("constant", f"{__name__}.TABLE"),
    }  # fmt: skip
    assert [i.index for i in captured.inputs if i.kind == "argument"] == [0]
    assert {i.value for i in captured.inputs if i.kind == "size"} == {"batch", "time"}


def test_numbers_from_attributes_and_globals_are_listed(captured: Captured) -> None:
    wanted = {"scale": 2.5, f"{__name__}.GAIN": 3.0, "norm.eps": 1e-5}
    assert wanted.items() <= captured.constants.items()


def test_a_branch_on_an_open_size_is_a_guard(captured: Captured) -> None:
    assert captured.guards == ("time > 1",)
    assert captured.open == {"batch": 3, "time": 5}


def test_results_keep_their_nesting(captured: Captured) -> None:
    kinds = [leaf.kind for leaf in captured.leaves]
    assert kinds == ["output", "output", "held", "argument", "value"]
    assert captured.tree.children[0].kind == "dataclass"
    assert [c.kind for c in captured.tree.children[1].children] == ["leaf", "leaf", "list"]


def test_attributes_bound_to_other_tensors_are_outputs(captured: Captured) -> None:
    assert {name for name, *_ in captured.written} == {"mean", "cache"}
    assert all(where and Path(where.file) == Path(__file__) for *_, where in captured.written)


def test_nodes_know_their_module_and_line(captured: Captured) -> None:
    (linear,) = [n for n in captured.graph.graph.nodes if n.name == "linear"]
    assert [path for path, _ in linear.meta["nn_module_stack"].values()] == ["", "linear"]
    assert "self.linear(x)" in linear.meta["stack_trace"]


def test_the_graph_computes_what_the_module_does() -> None:
    net = Net()
    x = torch.randn(3, 5, 4)
    found = capture(net, (x,), None, {"x": {0: "batch", 1: "time"}}, ["x"])
    y = torch.randn(2, 7, 4)
    values = {"batch": 2, "time": 7}
    given = [
        y if i.kind == "argument" else values[i.value] if i.kind == "size" else i.value
        for i in found.inputs
    ]
    outputs = found.graph(*given)
    expected = net(y)[0]
    torch.testing.assert_close(outputs[found.leaves[0].index], expected.y)
    assert outputs[found.leaves[1].index] == 7
    for name, index, _ in found.written:
        torch.testing.assert_close(outputs[index], getattr(net, name))


def test_nothing_of_the_source_changes() -> None:
    net = Net()
    x = torch.randn(3, 5, 4, requires_grad=True)
    before = {**vars(net)}
    kept = [(t, t.clone(), t._version) for t in (*net.parameters(), *net.buffers(), net.cache, x)]
    state = torch.get_rng_state()
    capture(net, (x,), None, {"x": {0: "batch"}}, ["x"])
    assert vars(net) == before
    for tensor, value, version in kept:
        assert torch.equal(tensor, value)
        assert tensor._version == version
    assert not hasattr(x, "_dynamo_dynamic_indices")
    assert torch.equal(torch.get_rng_state(), state)


def test_another_thread_may_call_the_source_meanwhile() -> None:
    net, x = nn.Sequential(*(nn.Linear(4, 4) for _ in range(20))), torch.randn(3, 4)
    expected, stop, wrong = net(x), threading.Event(), []

    def call() -> None:
        while not stop.is_set():
            if not torch.equal(net(x), expected):
                wrong.append(1)

    thread = threading.Thread(target=call)
    thread.start()
    capture(net, (x,))
    stop.set()
    thread.join()
    assert not wrong


def test_hooks_are_traced() -> None:
    net = nn.Linear(4, 4)
    net.register_forward_pre_hook(lambda _, given: (given[0] * 2,))
    net.register_forward_hook(lambda _, __, out: out.cos())
    every = nn.modules.module.register_module_forward_hook(lambda _, __, out: out.exp())
    try:
        code = capture(net, (torch.randn(2, 4),)).graph.code
    finally:
        every.remove()
    assert code.index("* 2") < code.index("linear(") < code.index(".exp(") < code.index(".cos(")


def test_named_tuples_and_views_of_inputs_are_results() -> None:
    found = capture(lambda x: Pair(x.sin(), x), (torch.randn(3),))
    assert found.tree.kind == "namedtuple"
    assert [leaf.kind for leaf in found.leaves] == ["output", "argument"]


def test_python_state_is_refused_with_its_line() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.log = 0, []

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            self.log.append(self.calls)
            return x.sin()

    with pytest.raises(IngotError, match="sets 'calls'") as refusal:
        capture(Counting(), (torch.randn(3),))
    assert [p.code for p in refusal.value.problems] == ["python-state"] * 2
    assert "self.log.append" in str(refusal.value)


def test_a_branch_on_values_is_refused_with_its_line() -> None:
    def branch(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return x + 1

    with pytest.raises(IngotError, match=r"if x.sum\(\) > 0") as refusal:
        capture(branch, (torch.randn(3),))
    assert refusal.value.problems[0].code == "untraceable-function"


def test_a_size_that_the_trace_fixes_is_refused() -> None:
    with pytest.raises(IngotError, match="batch = 4") as refusal:
        capture(lambda x: x + TABLE, (torch.randn(4),), None, {"x": {0: "batch"}}, ["x"])
    assert refusal.value.problems[0].code == "fixed-size"
