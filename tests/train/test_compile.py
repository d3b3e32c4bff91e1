"""Halves are compiled as asked; what was compiled once is not compiled again."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

import ingot.train as train
from ingot.codegen.cache import Cache
from ingot.errors import IngotError
from ingot.graphs import torch_private
from ingot.train.compile import from_source
from tests.train.models import MODELS, mlp


def test_a_callable_gets_the_graph_and_what_it_takes() -> None:
    seen: dict[str, Any] = {}

    def compiler(graph: GraphModule, inputs: list[torch.Tensor]) -> GraphModule:
        seen["sizes"] = [tuple(x.shape) for x in inputs]
        return graph

    example = torch.zeros(6, 3, dtype=torch.float64)
    joint = train.joint(mlp(), example, compile_forward=compiler, compile_backward="eager")
    assert seen["sizes"] == [(8, 3), (8,), (2, 8), (2,), (6, 3)]
    torch.testing.assert_close(joint(example), mlp()(example))


def test_an_unknown_compiler_is_told() -> None:
    with pytest.raises(IngotError, match=r"wrong-argument.*no compiler called 'llvm'"):
        train.joint(mlp(), torch.zeros(6, 3).double(), compile_forward="llvm")


@pytest.mark.slow
def test_an_equal_graph_is_not_compiled_again(
    mlp_package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_private, "compile_ahead", None)
    make, example, dynamic = MODELS["mlp"]
    other = make()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    x = torch.ones(2, 3, dtype=torch.float64)
    torch.testing.assert_close(train.joint(other, example, dynamic=dynamic)(x), other(x))


def test_a_fault_of_the_compiler_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(torch_private, "compile_ahead", fails)
    monkeypatch.setattr("ingot.train.compile.open_cache", lambda: Cache(tmp_path))
    told = r"compiler-failed.*the forward graph: RuntimeError: no such instruction\n.*'eager'"
    with pytest.raises(IngotError, match=told):
        train.joint(mlp(), torch.zeros(6, 3).double())


def test_a_graph_is_its_source_and_its_constants() -> None:
    source = "def forward(self, x):\n    return (torch.ops.aten.mul.Tensor(x, self.a),)"
    run = from_source(source, {"a": torch.tensor(3.0)})
    assert run([torch.tensor(2.0)])[0] == 6
