"""A run that ends at any write, or meets a full disk, goes on from its checkpoint bit for bit."""

import json
from pathlib import Path

import pytest

from tests.faults import run_script
from tests.fields.test_checkpoint import NOISY

SCRIPT = """
import json, os, shutil, sys
from pathlib import Path
import torch
from ingot.cli.main import status
from tests.faults import run_job, try_job
home, kill, most = Path(sys.argv[1]), sys.argv[2] == "kill", int(sys.argv[3]) or None
WORDS = ["run", "../noisy.i", "--eager", "--checkpoint-every", "2"]
def job(*more):
    torch.manual_seed(11)
    return status([*WORDS, *more])
def prepare():
    os.chdir(home.parent)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    os.chdir(home)
def files():
    return {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
prepare()
assert run_job(job).code == 0
whole = files()
assert {name.rpartition(".")[2] for name in whole} == {"csv", "e", "h5", "xmf"}, set(whole)
for outcome in try_job(job, prepare, kill=kill, most=most):
    stored = Path("noisy.checkpoint").exists()
    again = run_job(lambda: job(*(["--restart", "noisy.checkpoint"] if stored else [])))
    left = [path.name for path in home.rglob(".*")]
    differ = sorted(name for name, content in whole.items() if files().get(name) != content)
    told = [outcome.at, outcome.code, outcome.said, stored, again.code, again.said, differ, left]
    print(json.dumps(told))
"""


def survive(tmp_path: Path, how: str, most: int) -> None:
    (tmp_path / "noisy.i").write_text(NOISY.replace("num_steps = 20", "num_steps = 5"))
    said = run_script(SCRIPT, tmp_path / "run", tmp_path, str(tmp_path / "run"), how, str(most))
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    for at, code, text, stored, code_again, text_again, differ, left in rows:
        if how == "kill":
            assert code == -9
        else:
            assert code == 1, (at, text)
            assert text.count("error[unwritable]") == 1 and "No space left" in text, (at, text)
            # h5py itself tells, at the end, of files that it could not close
            assert "bug" not in text and ("Traceback" not in text or "h5py" in text), (at, text)
        assert (code_again, differ) == (0, []), (at, stored, text_again)
        assert not left
    assert {row[3] for row in rows} == {True, False}


@pytest.mark.parametrize(
    ("how", "most"),
    [
        ("full", 3),
        ("kill", 3),
        pytest.param("full", 0, marks=pytest.mark.exhaustive),
        pytest.param("kill", 20, marks=pytest.mark.exhaustive),
    ],
)
def test_a_run_disturbed_at_any_write_goes_on(tmp_path: Path, how: str, most: int) -> None:
    survive(tmp_path, how, most)
