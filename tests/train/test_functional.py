"""What joints rely on in torch and torch does not promise; a failure here explains the others."""

from typing import Any

import torch
from torch import Tensor

import ingot.train as train
from ingot.graphs.sizes import Open
from ingot.graphs.torch_private import base_of, plain, was_written, wrapped
from ingot.train import functional


def graph(function: Any, *tensors: Tensor) -> torch.fx.GraphModule:
    shapes = Open({})
    with shapes.mode:
        fakes = [torch.empty_like(t) for t in tensors]

    def noted(primals: list[Tensor]) -> list[Tensor]:
        return [plain(x) for x in function(*wrapped(primals))]

    return functional.graph_of(noted, shapes, fakes, table={})


def test_writes_are_noted_and_not_performed() -> None:
    seen = []

    def writes(x: Tensor, y: Tensor) -> list[Tensor]:
        x.add_(1)
        seen.extend([was_written(x), was_written(y)])
        return [x]

    assert "add_" not in graph(writes, torch.ones(2), torch.ones(2)).code.replace("add_1", "")
    assert seen == [True, False]


def test_placeholders_are_named_after_primals_and_tangents() -> None:
    made = graph(lambda x: [x * 2], torch.ones(2))
    assert [n.name for n in made.graph.find_nodes(op="placeholder")] == ["primals_1"]


def test_views_of_noted_tensors_know_their_base() -> None:
    seen = []

    def view(x: Tensor) -> list[Tensor]:
        y = x * 2
        seen.append(base_of(y.t()) is y)
        return [y]

    graph(view, torch.ones(2, 2))
    assert seen == [True]


def test_checks_are_called_without_tokens() -> None:
    made = graph(lambda a: [torch.linalg.inv(a)], torch.eye(2))
    code = made.code
    assert "_linalg_check_errors" in code
    assert "token" not in code


def test_the_check_of_a_matrix_stays_in_the_forward() -> None:
    traced = train.trace(train.prepare(torch.linalg.inv, torch.eye(2).requires_grad_()))
    halves = train.partition(traced)
    assert "_linalg_check_errors" in halves.forward.code
    assert halves.backward is not None
    assert "_linalg_check_errors" not in halves.backward.code


def test_dropout_draws_what_eager_draws() -> None:
    torch.manual_seed(0)
    kept = torch.ops.aten.bernoulli.p(torch.empty(100, dtype=torch.float64), 0.7)
    torch.manual_seed(0)
    dropped = torch.nn.functional.dropout(torch.ones(100, dtype=torch.float64), 0.3)
    torch.testing.assert_close(dropped, kept / 0.7)
