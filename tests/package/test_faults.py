"""A full disk or a dead process leaves the old package or the new one, and a clear message."""

import json
import shutil
from pathlib import Path

import pytest

from tests.faults import run_script
from tests.packages import ELASTIC, elastic

SCRIPT = """
import json, os, shutil, sys
from pathlib import Path
import torch
from ingot.cli.main import status
from ingot.runtime import load
from tests.faults import try_job
home, kill, most = Path(sys.argv[1]), sys.argv[2] == "kill", int(sys.argv[3]) or None
os.chdir(home)
WORDS = ["compile", "model.i", "Models/elastic/coefficients:='stiffness 0.25'", "--model",
         "elastic", "-p", "nu", "--output-dir", "out"]
def prepare():
    shutil.rmtree("out")
    shutil.copytree("before", "out")
def values():
    for place in ("out/elastic", "out/elastic_aoti.i"):
        artifact = load(place)
        artifact({"strain": torch.rand(5, 6, dtype=torch.float64)})
        yield float(dict(artifact.named_parameters())["nu"].detach())
for outcome in try_job(lambda: status(WORDS), prepare, kill=kill, most=most):
    left = [path.name for path in Path("out").rglob(".*")]
    found = list(values())
    print(json.dumps([outcome.at, outcome.code, outcome.said, found, left]))
assert status(WORDS) == 0 and list(values()) == [0.25, 0.25]
assert not [path for path in Path("out").rglob(".*")]
"""


def survive(
    tmp_path: Path, how: str, most: int
) -> list[tuple[int, int, str, list[float], list[str]]]:
    home = tmp_path / "home"
    shutil.copytree(elastic().file.parent, home)
    (home / "model.i").write_text(ELASTIC)
    shutil.copytree(home / "out", home / "before")
    said = run_script(SCRIPT, home / "out", tmp_path, str(home), how, str(most))
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert all(value in (0.3, 0.25) for row in rows for value in row[3])
    return rows


def check_full(tmp_path: Path, most: int) -> None:
    rows = survive(tmp_path, "full", most)
    for at, code, said, _, left in rows:
        assert code == 1, (at, said)
        assert said.count("error[unwritable]") == 1 and "No space left on device" in said, said
        assert "Traceback" not in said and "bug" not in said
        assert not left
    assert rows[0][3] == [0.3, 0.3]


def test_a_disk_that_fills_while_compiling_is_told_and_keeps_the_old_package(
    tmp_path: Path,
) -> None:
    check_full(tmp_path, 4)


@pytest.mark.exhaustive
def test_a_disk_that_fills_at_every_write_of_a_package(tmp_path: Path) -> None:
    check_full(tmp_path, 0)


@pytest.mark.parametrize("most", [3, pytest.param(0, marks=pytest.mark.exhaustive)])
def test_a_compiler_killed_at_any_write_leaves_a_whole_package(tmp_path: Path, most: int) -> None:
    assert all(row[1] == -9 for row in survive(tmp_path, "kill", most))
