"""What torch makes of a function can be read at every stage, with the user's lines."""

import json
from pathlib import Path

import pytest

from ingot.cli.main import status
from ingot.errors import IngotError
from ingot.regions import stages
from ingot.regions.stages import ARTIFACTS, region_report, torch_stage

SHOWN = """
import torch

def loss(x, w):
    y = torch.tanh(x @ w)
    return (y * y).sum()

loss_example = (torch.ones(4, 3), torch.ones(3, 2, requires_grad=True))

def alone(x):
    return x

class Block(torch.nn.Linear):
    def forward(self, x):
        return torch.tanh(super().forward(x))

stack = torch.nn.Sequential(Block(3, 3), Block(3, 3), Block(3, 3))
stack_example = torch.ones(2, 3)
stack_blocks = Block
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shown")
    (place / "shown.py").write_text(SHOWN)
    return place


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, str]:
    """All stages of one run of the child."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        every = tuple(dict.fromkeys(a for names in ARTIFACTS.values() for a in names))
        records = stages._recorded("shown:loss", every)
        found = {}
        for stage, names in ARTIFACTS.items():
            own = [r for r in records if r.artifact in names]
            patch.setattr(stages, "_recorded", lambda *_, own=own: own)
            found[stage] = torch_stage("shown:loss", stage)
    return found


@pytest.mark.slow
def test_backward_operations_carry_the_lines_of_the_source(said: dict[str, str]) -> None:
    assert said["backward"].startswith("# backward: ")
    assert "shown.py:5 in loss, code: y = torch.tanh(x @ w)" in said["backward"]
    assert "tangents_1" in said["backward"] and "tangents_1" not in said["forward"]


@pytest.mark.slow
def test_stages_are_what_their_names_say(said: dict[str, str]) -> None:
    assert "primals_1" in said["joint"] and "tangents_1" in said["joint"]
    assert said["post-grad"].count("class GraphModule") == 2
    assert "op0: " in said["inductor-ir"] and "# backward: " in said["inductor-ir"]
    assert "async_compile" in said["code"]
    assert all("[__" not in text and "TRACED GRAPH" not in text for text in said.values())


@pytest.mark.slow
def test_fusion_is_counted(said: dict[str, str]) -> None:
    first = said["fused"].splitlines()[0]
    assert first == "# forward: 2 operations before fusion, 2 after"
    backward = next(line for line in said["fused"].splitlines() if line.startswith("# backward"))
    assert backward == "# backward: 3 operations before fusion, 2 after"


@pytest.mark.parametrize(
    ("target", "stage", "text"),
    [
        ("shown:loss", "fusd", "torch has no stage 'fusd'\n  fix: did you mean 'fused'?"),
        ("shown.loss", "code", "'shown.loss' is not of the form module:function"),
        ("shown:los", "code", "'shown' has no 'los'\n  fix: did you mean 'loss'?"),
        ("shown:alone", "code", "'shown' has no arguments to call 'alone' with\n  fix: write"),
    ],
)
def test_wrong_targets_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, stage: str, text: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(IngotError) as error:
        torch_stage(target, stage)
    assert text in str(error.value)


def test_what_torch_says_is_passed_on() -> None:
    said = str(stages._failed("shown:loss", "Traceback\nValueError: no such size\n"))
    assert "torch cannot compile 'shown:loss': ValueError: no such size" in said


def test_no_gradient_means_no_joint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_recorded", lambda *_: [])
    with pytest.raises(IngotError, match="nothing in it needs a gradient"):
        torch_stage("shown:loss", "joint")


@pytest.mark.slow
def test_the_report_of_a_module_has_the_whole_beside_its_blocks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert status(["show", "shown:stack", "--stage", "regions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["distinct"], found["instances"], found["compiled"]) == (1, 3, 1)
    assert 0 < found["blocks"][0]["seconds"] < found["seconds"]
    assert found["whole_seconds"] > 0


def test_only_modules_have_regions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(IngotError, match="'shown:loss' is a function"):
        region_report("shown:loss")
