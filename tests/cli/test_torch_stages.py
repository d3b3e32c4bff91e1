"""`ingot show MODULE:NAME`, or a package of torch graphs: the same graphs, from another process."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import Tensor

import ingot.train as train
from ingot.cli.main import status
from ingot.cli.show import Torch
from ingot.cli.torch_stages import region_report, show_module
from ingot.errors import IngotError
from ingot.train.describe import STAGES
from tests.train.models import packaged

SHOWN = """
import torch

print("said at import")

def loss(x, w):
    y = torch.tanh(x @ w)
    return (y * y).sum()

loss_example = (torch.ones(4, 3), torch.ones(3, 2, requires_grad=True))
loss_dynamic = {"x": {0: "batch"}}

def alone(x):
    return x

def broken(x):
    raise ValueError("no such size")

broken_example = torch.ones(3)

class Block(torch.nn.Linear):
    def forward(self, x):
        return torch.tanh(super().forward(x))

stack = torch.nn.Sequential(Block(3, 3), Block(3, 3), Block(3, 3))
stack_example = torch.ones(2, 3)
stack_blocks = Block
"""

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shown.py").write_text(SHOWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loss(x: Tensor, w: Tensor) -> Tensor:
    """That of the module."""
    y = torch.tanh(x @ w)
    return (y * y).sum()


def test_stages_are_those_that_the_command_line_knows() -> None:
    assert get_args(Torch) == tuple(STAGES)


def test_the_graph_shown_is_that_of_the_joint(capsys: Captured) -> None:
    example = torch.ones(4, 3), torch.ones(3, 2, requires_grad=True)
    dynamic = {"x": {0: "batch"}}
    halves = train.partition(train.trace(train.prepare(loss, example, dynamic)))
    assert halves.backward is not None
    assert status(["show", "shown:loss", "--stage", "backward", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (section,) = shown["sections"]
    assert shown["name"] == "loss" and section["name"] == "backward"
    assert section["digest"] == sha256(halves.backward.code.encode()).hexdigest()
    rows = [row for row in section["rows"] if row["kind"] == "call_function"]
    assert {Path(row["file"]).name for row in rows if "file" in row} == {"shown.py"}
    matrix = next(row for row in rows if row["operation"] == "aten.mm.default")
    assert (matrix["line"], matrix["code"]) == (7, "y = torch.tanh(x @ w)")


@pytest.mark.exhaustive
def test_a_stage_of_inductor_is_text_of_both_halves(capsys: Captured) -> None:
    assert status(["show", "shown:loss", "--stage", "fused"]) == 0
    heads = [x for x in capsys.readouterr().out.splitlines() if x.startswith(("# for", "# back"))]
    assert [head.split(":")[0] for head in heads] == [
        "# forward, decisions", "# forward, after fusion", "# backward, decisions",
        "# backward, after fusion",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("shown.loss", "'shown.loss' is not of the form module:function, and no package"),
        ("shown:los", "'shown' has no 'los'\n  fix: did you mean 'loss'?"),
        ("shown:alone", "'shown' has no arguments to call 'alone' with\n  fix: write"),
        ("shown:broken", "'broken' cannot be traced: "),
        ("nowhere:loss", "'nowhere:loss' cannot be compiled: ModuleNotFoundError"),
    ],
)
def test_wrong_targets_are_named(target: str, text: str) -> None:
    with pytest.raises(IngotError) as error:
        show_module(target, "forward")
    assert text in str(error.value)


def test_a_module_is_not_imported_untrusted(capsys: Captured) -> None:
    assert status(["show", "shown:loss", "--stage", "code", "--untrusted"]) == 1
    assert "'shown:loss' is a module, whose code is not run" in capsys.readouterr().err


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same that tests/train compiles: Ingot's cache has it."""
    return packaged("mlp", tmp_path_factory.mktemp("joints") / "mlp")


@pytest.mark.slow
def test_a_package_shows_what_it_holds(package: Path, capsys: Captured) -> None:
    assert status(["show", str(package)]) == 0
    said = capsys.readouterr().out
    assert "# Sequential\nSequential(input float64[batch, 3])" in said
    assert "  param  0.weight float64[8, 3]" in said and "  keeps  " in said
    assert " graph0.pt2\n" in said and " state.pt" in said
    assert status(["show", str(package), "--stage", "code", "--json"]) == 0
    names = [s["name"] for s in json.loads(capsys.readouterr().out)["sections"]]
    assert "Sequential, forward, wrapper.cpp" in names
    assert "Sequential, backward, kernel.cpp" in names
    assert status(["show", str(package), "--stage", "backward"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"# backward: \d+ operations, \d+ bytes kept between", said)
    assert "aten.mm.default(" in said
    assert status(["show", str(package), "--stage", "fused"]) == 1
    assert "error[stage-not-kept]: " in capsys.readouterr().err


def test_a_graph_that_runs_line_by_line_is_shown_as_it_is_kept(
    folder: Path, capsys: Captured
) -> None:
    scale = 3.0

    def scaled(x: Tensor) -> Tensor:
        return torch.tanh(x) * scale

    joint = train.joint(scaled, torch.ones(3), compile_forward="eager")
    assert joint.signature.constants
    joint.save(folder / "tanh")
    assert status(["show", "tanh", "--stage", "code"]) == 0
    assert "torch.ops.aten.tanh.default(" in capsys.readouterr().out
    train.load(folder / "tanh").save(folder / "again")
    assert status(["show", "again", "--stage", "forward"]) == 0
    assert "tanh = aten.tanh.default(" in capsys.readouterr().out
    assert status(["show", "again", "--stage", "backward"]) == 1
    assert "'again' does not hold its stage 'backward'" in capsys.readouterr().err
    assert status(["show", "again", "--stage", "constants", "--json"]) == 0
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    constants = train.load(folder / "again").signature.constants
    assert {row["name"]: row["value"] for row in section["rows"]} == constants
    (folder / "tanh" / "graphs.json").write_text("{}")
    assert status(["show", "tanh", "--stage", "code"]) == 1
    assert "error[broken-package]: " in capsys.readouterr().err


@pytest.mark.exhaustive
def test_the_report_of_a_module_has_the_whole_beside_its_blocks(capsys: Captured) -> None:
    assert status(["show", "shown:stack", "--stage", "regions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["distinct"], found["instances"], found["compiled"]) == (1, 3, 1)
    assert 0 < found["blocks"][0]["seconds"] < found["seconds"]
    assert found["whole_seconds"] > 0


def test_units_are_the_distinct_pieces_of_a_module(capsys: Captured) -> None:
    assert status(["show", "shown:stack", "--stage", "units"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# block Block: 2 operations, 3 instances\n")
    assert said.count("# ") >= 4 and said.count(" = tanh(") == 1
    assert "float32[2, 3]" in said and "float32[3, 3]" in said


def test_only_modules_have_regions() -> None:
    with pytest.raises(IngotError, match="'shown:loss' is a function"):
        region_report("shown:loss")
