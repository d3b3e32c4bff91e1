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
    monkeypatch.setattr("ingot.train.compile.share_children", None)
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
    monkeypatch.setattr("ingot.train.compile._is_portable", lambda _: False)
    monkeypatch.setattr("ingot.train.compile.open_cache", lambda: Cache(tmp_path))
    told = r"compiler-failed.*the forward graph: RuntimeError: no such instruction\n.*'eager'"
    with pytest.raises(IngotError, match=told):
        train.joint(mlp(), torch.zeros(6, 3).double())


def test_a_graph_that_takes_too_long_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ingot.train.compile.open_cache", lambda: Cache(tmp_path))
    told = r"compiler-failed.*the forward graph: it took longer than 0.1 s\n.*time_limit.*'eager'"
    with pytest.raises(IngotError, match=told):
        train.joint(mlp(), torch.zeros(6, 3).double(), time_limit=0.1)


class Keys:
    """A cache that has nothing, and notes what it is asked for."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def obtain(self, kind: str, key: str, make: Any) -> bytes:
        self.seen.append(key)
        raise KeyError(kind)


def test_graphs_of_other_strides_modes_and_sizes_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = Keys()
    monkeypatch.setattr("ingot.train.compile.open_cache", lambda: keys)

    def ask(x: torch.Tensor, dynamic: Any = None) -> None:
        with pytest.raises(KeyError):
            train.joint(lambda x: x.sin() * 2, x, dynamic=dynamic)

    x = torch.ones(2, 3, 4, 4)
    ask(x)
    ask(x.clone())
    assert len(set(keys.seen)) == 1
    ask(x.to(memory_format=torch.channels_last))
    ask(x.transpose(0, 1))
    ask(x, "batch")
    ask(x.double())
    torch.use_deterministic_algorithms(True)
    try:
        ask(x)
    finally:
        torch.use_deterministic_algorithms(False)
    assert len(set(keys.seen)) == 6


@torch.library.custom_op("ingot_tests::tripled", mutates_args=())
def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@tripled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@pytest.mark.parametrize(("own", "where"), [(True, "here"), (False, "apart")])
def test_operations_of_users_are_compiled_where_they_are_known(
    own: bool, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def ends(word: str) -> Any:
        def end(*_: Any) -> None:
            raise KeyError(word)

        return end

    monkeypatch.setattr("ingot.train.compile.open_cache", lambda: Cache(tmp_path))
    monkeypatch.setattr("ingot.train.compile.compile_archive", ends("here"))
    monkeypatch.setattr("ingot.train.compile.share_children", ends("apart"))
    with pytest.raises(KeyError, match=where):
        train.joint(lambda x: (tripled(x) if own else x * 3) + 1, torch.ones(4))


def test_a_graph_is_its_source_and_its_constants() -> None:
    source = "def forward(self, x):\n    return (torch.ops.aten.mul.Tensor(x, self.a),)"
    run = from_source(source, {"a": torch.tensor(3.0)})
    assert run([torch.tensor(2.0)])[0] == 6
