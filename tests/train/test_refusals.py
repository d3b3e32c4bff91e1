"""What a joint refuses is told by the user's words: what, where in his code, and what to write."""

import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

import ingot.train as train
from ingot import regions
from ingot.codegen.cache import Cache
from ingot.errors import IngotError, Problem
from tests.train.models import eager

HERE = Path(__file__).name


def refused(call: Callable[[], Any]) -> Problem:
    with pytest.raises(IngotError) as caught:
        call()
    return caught.value.problems[0]


def line_of(problem: Problem) -> str:
    """The line of this file that a refusal points at."""
    assert problem.span is not None and Path(problem.span.file).name == HERE
    return Path(__file__).read_text().splitlines()[problem.span.line - 1].strip()


class Odd:
    pass


def gives_an_object(x: Tensor) -> Any:
    return x * 2, Odd()


class Growing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.past = torch.zeros(0, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.past = torch.cat([self.past, x])
        return self.past.sum(0)


class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(2)

    def forward(self, x: Tensor) -> Tensor:
        self.last = x
        return x * 2


class Averaging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4, momentum=None)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) * 2


class Writing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(4, requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.scale


def gives_half_a_size(x: Tensor) -> Any:
    return x * 2, x.shape[0] / 2


HIDDEN = torch.ones(4, requires_grad=True)


def reads_a_hidden_parameter(x: Tensor) -> Tensor:
    return x * HIDDEN


def close_over(inside: Tensor) -> Callable[[Tensor], Tensor]:
    def reads_a_variable(x: Tensor) -> Tensor:
        return x * inside

    return reads_a_variable


X = torch.randn(3, 4)


def test_two_tensors_of_one_name_are_two() -> None:
    function: Any = close_over(torch.full((4,), 3.0))
    function.inside = torch.full((4,), 5.0)
    joint = eager(lambda x, f=function: f(x) + f.inside, X)
    torch.testing.assert_close(joint(X), X * 3 + 5)


def test_a_variable_of_an_outer_function_is_called_by_its_name() -> None:
    problem = refused(lambda: eager(close_over(HIDDEN), X))
    assert problem.message.startswith("'inside' asks")


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        (gives_an_object, "wrong-output", "def gives_an_object(x: Tensor) -> Any:"),
        (Growing(), "reshaped-input", "self.past = torch.cat([self.past, x])"),
        (reads_a_hidden_parameter, "hidden-parameter", "return x * HIDDEN"),
        (Keeping(), "reshaped-input", "self.last = x"),
        (Writing(), "hidden-parameter", "def forward(self, x: Tensor) -> Tensor:"),
        (gives_half_a_size, "wrong-output", "def gives_half_a_size(x: Tensor) -> Any:"),
        (Averaging(), "untraceable-function", "return self.norm(x) * 2"),
    ],
    ids=["output", "shape", "hidden", "argument", "returned", "half", "layer"],
)
def test_a_refusal_names_the_line_of_the_source(source: Any, code: str, line: str) -> None:
    problem = refused(lambda: eager(source, X, dynamic={0: "rows"}))
    assert problem.code == code
    assert line_of(problem) == line


def branches(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


def says(x: Tensor) -> Tensor:
    print("here")
    return x * 2


def multiplies(x: Tensor) -> Tensor:
    return x @ x


def takes_one(x: Tensor) -> Tensor:
    return x * 2


def mistyped(x: Tensor) -> Tensor:
    return x * scales  # noqa: F821  # pyright: ignore


def writes(x: Tensor) -> Tensor:
    x.mul_(2)
    return x.sin()


UNTRACEABLE: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "branch": (branches, X, r"torch\.where"),
    "print": (says, X, r"outside of it"),
    "shapes": (multiplies, X, r"call it once without compiling"),
    "arguments": (takes_one, [X, X], r"\(x\): .*a tuple.*a dict"),
    "nested example": (takes_one, ((X,), {"x": X}), r"\(x\): .*a tuple.*a dict"),
    "name": (mistyped, X, r"call it once without compiling"),
    "layer": (Averaging(), X, r"momentum"),
    "layer of torch": (nn.Sequential(nn.BatchNorm1d(4, momentum=None)), X, r"momentum"),
    "loss": (lambda x: nn.GaussianNLLLoss()(x, x, x.exp()), X, r"leave it out.*loss\.py:\d+"),
    "write": (writes, X.clone().requires_grad_(), r"clone"),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_the_fix_is_of_what_cannot_be_traced(name: str) -> None:
    source, example, fix = UNTRACEABLE[name]
    problem = refused(lambda: eager(source, example))
    assert problem.fix is not None and re.search(fix, problem.fix), problem


def test_a_written_argument_that_asks_for_its_gradient_is_told_to_be_cloned() -> None:
    joint = eager(writes, X)
    problem = refused(lambda: joint(torch.randn(3, 4, requires_grad=True) * 1))
    assert "written to" in problem.message and "clone" in str(problem.fix)
    assert "requires_grad=True" not in str(problem.fix)


@pytest.mark.parametrize("given", [{}, {"examples": []}])
def test_a_joint_needs_an_example(given: dict[str, Any]) -> None:
    problem = refused(lambda: train.joint(takes_one, **given))
    assert "example" in problem.message
    assert eager(lambda: torch.ones(3), ())().tolist() == [1, 1, 1]


def test_frozen_parameters_are_told_how_to_learn() -> None:
    layer = nn.Linear(4, 4).requires_grad_(False)
    joint = eager(layer, X).requires_grad_(True)
    problem = refused(lambda: joint(X))
    assert "'weight'" in problem.message
    assert "requires_grad_(True) on the source" in str(problem.fix)


def test_a_transform_is_refused_by_the_name_of_the_argument() -> None:
    joint = eager(lambda x, mask=None: x * 2, {"x": X, "mask": X})
    for call in (lambda v: joint(v, X), lambda v: joint(mask=X, x=v)):
        assert "'x' is given by" in refused(lambda c=call: torch.func.vmap(c)(X[None])).message
    weights = eager(nn.Linear(4, 4), X)
    both = {n: p.detach()[None] for n, p in weights.named_parameters()}

    def call_with(parameters: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(weights, parameters, (X,))

    assert "'weight', 'bias' are given" in refused(lambda: torch.func.vmap(call_with)(both)).message


def squeezed(x: Tensor) -> Tensor:
    return x.squeeze(1) * 2


def decides(x: Tensor) -> Tensor:
    return x * 2 if x.shape[1] > 1 else x - 100


@pytest.mark.parametrize(("source", "line"), [(squeezed, "squeeze"), (decides, "")])
def test_a_size_that_is_refused_is_told_with_its_cause(source: Any, line: str) -> None:
    joint = eager(source, torch.randn(3, 5, 4), dynamic={"x": {1: "time"}})
    told = refused(lambda: joint(torch.randn(3, 1, 4))).message
    number = source.__code__.co_firstlineno + 1
    assert f"{line}" in told and f"{HERE}:{number}" in told


def test_a_softmax_over_an_open_size_prints_nothing() -> None:
    log, told = logging.getLogger("torch._subclasses.fake_tensor"), logging.Handler(logging.ERROR)
    told.emit = mock.Mock()
    log.addHandler(told)
    try:
        joint = eager(lambda x: (x @ x.mT).softmax(-1), torch.randn(2, 3, 4), dynamic={1: "time"})
        assert joint(torch.randn(2, 1, 4)).shape == (2, 1, 1)
    finally:
        log.removeHandler(told)
    told.emit.assert_not_called()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"a": X, "l": (X, 1)}, r"'o\['l'\]' is a tuple; it was traced as a list"),
        ({"a": X}, r"'o' has the entries 'a'; it was traced with 'a', 'l'"),
        ({"a": X, "l": [X]}, r"'o\['l'\]' has 1 entries; it was traced with 2"),
        (X, r"'o' is a Tensor; it was traced as a dict"),
    ],
)
def test_arguments_that_are_nested_otherwise_are_told_where(given: Any, told: str) -> None:
    joint = eager(lambda x, o: x * o["a"] + o["l"][0], (X, {"a": X, "l": [X, 1]}))
    with pytest.raises(IngotError, match=told):
        joint(X, given)


def test_a_package_is_told_its_loader(tmp_path: Path) -> None:
    eager(nn.Linear(4, 4), X).save(tmp_path / "joint")
    stack = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    regions.compile(stack, X, nn.Linear, mode="aot", output=tmp_path / "cut", backend="eager")
    problem = refused(lambda: train.load(tmp_path / "cut"))
    assert "package of regions" in problem.message and "ingot.regions.load" in str(problem.fix)
    problem = refused(lambda: regions.load(tmp_path / "joint"))
    assert "joint package" in problem.message and "ingot.train.load" in str(problem.fix)


def test_a_child_that_is_new_knows_the_operations_of_inductor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient of softmax is written by prims.fma, which only Inductor registers."""

    class Keep:
        def run(self, work: str, folder: Path, *_: Any) -> Any:
            (tmp_path / "job.pt").write_bytes((folder / "job.pt").read_bytes())
            raise KeyError(work)

    monkeypatch.setattr("ingot.train.compile.open_cache", lambda: Cache(tmp_path / "cache"))
    monkeypatch.setattr("ingot.train.compile.share_children", Keep)
    x = torch.randn(2, 5, requires_grad=True)
    with pytest.raises(KeyError, match="compile_job"):
        train.joint(lambda x: x.softmax(-1), x, compile_forward="eager")
    assert b"prims" in (tmp_path / "job.pt").read_bytes()
    code = (
        "import sys; from pathlib import Path; import ingot.train.compile as c;"
        "c.compile_archive = lambda *_: b''; c.compile_job(Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


@pytest.mark.parametrize(
    "named",
    [
        {"time_limit": -1}, {"time_limit": float("nan")}, {"time_limit": "a"},
        {"dynamic": True}, {"dynamic": "b"}, {"dynamic": {5: "b"}}, {"dynamic": {0: 3}},
        {"dynamic": {0: ("b", 2)}}, {"dynamic": [3]}, {"dynamic": {"input": "b"}},
        {"dynamic": {"input": {"a": "b"}}}, {"examples": 3}, {"examples": torch.ones(2, 4)},
        {"examples": [torch.ones(2, 4)] * 2, "dynamic": ["batch"], "example": None},
        {"compile_forward": None}, {"compile_backward": 3}, {"compile_forward": "x"},
        {"decompositions": [1]}, {"decompositions": {1: 2}}, {"partition": 3},
    ],
)  # fmt: skip
def test_options_that_say_nothing_are_refused_by_name(named: dict[str, Any]) -> None:
    given = {"compile_forward": "eager", "compile_backward": "eager", "example": torch.ones(2, 4)}
    with pytest.raises(IngotError) as caught:
        train.joint(nn.Linear(4, 4), **(given | named))
    assert [p.code for p in caught.value.problems] == ["wrong-argument"]
    assert all(p.fix for p in caught.value.problems)


@pytest.mark.parametrize("folder", [None, 3])
def test_what_is_no_folder_is_not_loaded(folder: Any) -> None:
    with pytest.raises(IngotError, match="file-not-found"):
        train.load(folder)
