"""A box shared among ranks on a GPU: NCCL carries what ranks exchange; here there is one rank."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ingot.cli.ranks import find_port
from tests.fields.test_shares import SPECTRAL, THREE

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.mark.parametrize("mode", ["FFT_SLAB", "FFT_PENCIL"])
def test_one_rank_by_nccl_gives_what_one_process_gives(mode: str, tmp_path: Path) -> None:
    (tmp_path / "box.i").write_text(SPECTRAL)
    words = [*THREE, f"Domain/parallel_mode={mode}", "Executioner/num_steps=4",
             "TensorOutputs/active=''"]  # fmt: skip
    tables = []
    alone = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    world = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(find_port())}  # fmt: skip
    for name, more in (("alone", {}), ("world", world)):
        folder = tmp_path / name
        folder.mkdir()
        command = [sys.executable, "-m", "ingot", "run", "../box.i", *words, "--device", "cuda"]
        ran = subprocess.run(command, cwd=folder, env={**alone, **more}, capture_output=True)
        assert ran.returncode == 0, ran.stderr.decode()
        assert b"on cuda" in ran.stdout
        rows = (folder / "out.csv").read_text().splitlines()[1:]
        tables.append([[float(x) for x in row.split(",")] for row in rows])
    for one, other in zip(*tables, strict=True):
        assert one == pytest.approx(other, rel=1e-11, abs=1e-14)
