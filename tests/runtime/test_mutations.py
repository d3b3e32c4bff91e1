"""Metadata that was edited and sealed again is refused, or gives the same numbers; nothing crashes.

Each kind of package is copied once for a child process, which loads many mutations of it in turn.
"""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import ingot
from tests import packages
from tests.packages import inputs_of
from tests.train.models import MODELS, eager, mlp

CHILD = Path(__file__).parent / "mutated.py"


@pytest.fixture(scope="module")
def joint_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("joints") / "joint"
    eager(mlp(), MODELS["mlp"][1], dynamic="batch").save(place)
    return place


def told_by_child(
    source: Path, kind: str, name: str, given: Any, count: int, seed: int, tmp_path: Path
) -> dict[str, int]:
    """What became of so many mutations of a package, in a process of its own."""
    shutil.copytree(source, tmp_path / "package")
    torch.save(given, tmp_path / "given.pt")
    done = subprocess.run(
        [sys.executable, str(CHILD), str(tmp_path / "package"), kind, name, str(count), str(seed)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PYTHONPATH": str(Path(ingot.__file__).parents[1]), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return json.loads(done.stdout)


FEW, MANY = 60, 500


@pytest.mark.parametrize(
    "count", [FEW, pytest.param(MANY, marks=pytest.mark.exhaustive)], ids=["few", "many"]
)
@pytest.mark.parametrize("kind", ["kernel", "inductor", "joint", "regions"])
def test_edited_metadata_is_refused_or_gives_the_same_numbers(
    kind: str, count: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = random.Random(kind).randrange(2**31) + count
    if kind == "joint":
        source, name = request.getfixturevalue("joint_package"), "graphs.json"
        given: Any = torch.randn(4, 3, dtype=torch.float64)
    elif kind == "regions":
        source, name = request.getfixturevalue("regions_package"), "graphs.json"
        given = torch.randn(4, 8, dtype=torch.float64)
    else:
        one = packages.decay()
        source, name, given = one.folder, "decay_meta.json", inputs_of(one, 3)
    tally = told_by_child(source, kind, name, given, count, seed, tmp_path)
    assert tally["refused"] + tally["same"] == count and tally["refused"] > count // 2


@pytest.fixture(scope="module")
def regions_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ingot import regions
    from tests.regions.networks import Residual

    place = tmp_path_factory.mktemp("regions") / "regions"
    model = torch.nn.Sequential(Residual(8), Residual(8)).double().requires_grad_(False)
    x = torch.randn(4, 8, dtype=torch.float64)
    regions.compile(model, x, Residual, "aot", dynamic={0: "batch"}, output=place)
    return place
