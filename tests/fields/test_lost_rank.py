"""A rank that is killed ends the run with an error, and the run goes on bit for bit."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from ingot.fields.outputs.frames import read_frames
from tests.fields.test_shares import SPECTRAL

STEPS = 12
FATAL = """
import os, signal
rank, _, last = os.environ.get("FATAL", "").partition(" ")
if rank and os.environ.get("RANK") == rank:
    from ingot.fields.solvers.solve import Substep
    seen, evaluate = [0], Substep.evaluate
    def evaluate_or_end(self, *more):
        seen[0] += 1
        if seen[0] == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
        evaluate(self, *more)
    Substep.evaluate = evaluate_or_end
"""
"""Python runs it at its start: one rank ends itself before it evaluates for the last time."""


def run(folder: Path, *words: str, fatal: str = "") -> "subprocess.CompletedProcess[str]":
    folder.mkdir(exist_ok=True)
    (folder / "input.i").write_text(SPECTRAL)
    (folder / "sitecustomize.py").write_text(FATAL)
    command = [
        sys.executable, "-m", "ingot", "run", "input.i", f"Executioner/num_steps={STEPS}",
        "--ranks", "2", "--eager",
        "--checkpoint-every", "1", *words,
    ]  # fmt: skip
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, "FATAL": fatal, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return folder


DICE = random.Random(7)
KILLS = [(DICE.randrange(2), at) for at in sorted(DICE.sample(range(4, 3 * STEPS), 10))]
"""Which rank ends, and at which call: each of three substeps in a step is one."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(("rank", "call"), KILLS)
def test_a_killed_rank_is_told_and_the_run_goes_on_bit_for_bit(
    undisturbed: Path, tmp_path: Path, rank: int, call: int
) -> None:
    lost = run(tmp_path, fatal=f"{rank} {call}")
    assert lost.returncode == 1
    assert "error[rank-lost]" in lost.stderr
    assert f"rank {rank} of 2 was ended by signal 9" in lost.stderr
    (stored,) = tmp_path.glob("*.checkpoint")
    again = run(tmp_path, "--restart", stored.name)
    assert again.returncode == 0, again.stderr
    ours, theirs = ((each / "out.csv").read_bytes() for each in (tmp_path, undisturbed))
    assert ours == theirs
    frames = [read_frames(each / "parts.xmf") for each in (tmp_path, undisturbed)]
    assert frames[0].times == frames[1].times
    assert len(frames[0].times) == STEPS + 1
    for name in ("c", "slope"):
        a, b = (each.array(name, STEPS) for each in frames)
        assert (a == b).all()
