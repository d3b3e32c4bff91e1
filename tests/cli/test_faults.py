"""Commands on disks that are full or not to be written: told, and what was there is kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import run_script
from tests.packages import DECAY, written

SAVE = """
import json, os, sys
from pathlib import Path
from ingot.cli.main import status
from tests.faults import run_job, try_job
home, kill, name = Path(sys.argv[1]), sys.argv[2] == "kill", sys.argv[3]
os.chdir(home.parent)
place = home / name
WORDS = ["run", "model.i", "driver", "--backend", "interpret", "--save", str(place)]
def prepare():
    place.write_bytes(b"old")
assert run_job(lambda: status(WORDS)).code == 0
new = place.read_bytes()
for outcome in try_job(lambda: status(WORDS), prepare, kill=kill):
    now = {b"old": "old", new: "new"}[place.read_bytes()]
    left = [path.name for path in home.iterdir() if path != place]
    print(json.dumps([outcome.code, outcome.said, now, left]))
assert status(WORDS) == 0 and [path.name for path in home.iterdir()] == [name]
"""


@pytest.mark.parametrize(
    ("how", "name"),
    [("full", "result.csv"), ("kill", "result.pt")],
)
@pytest.mark.exhaustive
def test_a_save_disturbed_at_any_write_keeps_the_old_file(
    tmp_path: Path, how: str, name: str
) -> None:
    written(DECAY, tmp_path)
    home = tmp_path / "results"
    home.mkdir()
    said = run_script(SAVE, home, tmp_path, str(home), how, name)
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert len(rows) >= 2
    for code, text, now, left in rows:
        assert now == "old"
        if how == "kill":
            assert code == -9
        else:
            assert (code, left) == (1, []), text
            assert "error[unwritable]" in text and "No space left on device" in text
            assert "Traceback" not in text


def ingot(home: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A command in a process of its own, which compiles what it needs."""
    command = [sys.executable, "-c", "from ingot.cli.main import main; main()", *words]
    return subprocess.run(
        command, cwd=home, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_home_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    written(DECAY, tmp_path)
    done = ingot(tmp_path, "run", "model.i", "driver", HOME="/proc/nowhere", XDG_CACHE_HOME="")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning[no-cache]") == 1
    assert "Traceback" not in done.stderr


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A disk with little room, where this user may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only who may mount can make a small disk")
    return place


def unmount(place: Path) -> None:
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.exhaustive
def test_a_compiler_without_room_for_its_files_is_no_bug(tmp_path: Path, small: Path) -> None:
    written(DECAY, tmp_path)
    try:
        for backend in ("kernel", "inductor"):
            words = ["compile", "model.i", "--model", "decay", "--backend", backend]
            done = ingot(tmp_path, *words, TMPDIR=str(small), XDG_CACHE_HOME=str(tmp_path))
            assert done.returncode == 1, done.stderr
            assert "error[unwritable]" in done.stderr, done.stderr
            assert "No space left on device" in done.stderr and str(small) in done.stderr
            assert "report this" not in done.stderr and "Traceback" not in done.stderr
            assert not list(small.glob("ingot-*"))
    finally:
        unmount(small)
