"""An artifact runs its own bytes, whatever becomes of its folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ingot.hit import read
from ingot.package import compile_model
from ingot.package.target import Target
from ingot.runtime import load
from tests import packages
from tests.packages import ELASTIC, inputs_of, written


def recompile(home: Path, ratio: float) -> Path:
    """Compile elasticity with a value of its own into one and the same place."""
    text = ELASTIC.replace("0.3'", f"{ratio}'")
    target = Target(output_dir=home / "out", stub=False)
    return compile_model(read(written(text, home)), "elastic", target, command="").folder


def test_a_package_compiled_again_runs_the_new_code(tmp_path: Path) -> None:
    inputs = inputs_of(packages.elastic(), 5)
    found = []
    for ratio in (0.3, 0.1):
        artifact = load(recompile(tmp_path, ratio))
        wanted = packages.elastic().artifact()
        dict(wanted.named_parameters())["nu"].data.fill_(ratio)
        assert torch.allclose(artifact(inputs)["stress"], wanted(inputs)["stress"], rtol=1e-12)
        found.append((artifact, artifact(inputs)["stress"]))
    assert not torch.allclose(found[0][1], found[1][1])
    for artifact, stress in found:
        assert torch.equal(artifact(inputs)["stress"], stress)


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(b"")


def overwrite(folder: Path) -> None:
    for file in folder.iterdir():
        with file.open("r+b") as stream:
            stream.write(bytes(file.stat().st_size))


@pytest.mark.parametrize("ruin", [empty, overwrite, shutil.rmtree])
@pytest.mark.parametrize("backend", ["kernel", "inductor"])
def test_a_loaded_package_outlives_its_folder(
    tmp_path: Path, ruin: Callable[[Path], Any], backend: Any
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(packages.elastic().folder, folder)
    inputs = inputs_of(packages.elastic(), 5)
    wanted = packages.elastic().artifact(backend)(inputs)["stress"]
    artifact = load(folder, backend=backend)
    ruin(folder)
    for given in (inputs, inputs_of(packages.elastic(), 3, 5)):
        artifact(given)
    assert torch.equal(artifact(inputs)["stress"], wanted)
    assert artifact.jacobian(inputs)
