"""Packages for GPUs called from C++ through CUDA's driver give what Python gives."""

import subprocess
from pathlib import Path

import pytest
import torch

from ingot import compile_model, load, read
from ingot.package.target import Target
from tests.cpp.host import build, needs_compiler

pytestmark = [
    needs_compiler, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]  # fmt: skip
J2 = Path(__file__).parents[2] / "cpp" / "examples" / "j2.i"


def test_a_gpu_gives_what_a_cpu_gives(tmp_path: Path) -> None:
    target = Target(output_dir=tmp_path, device=("cpu", "cuda"), derivative=("stress:strain",))
    compile_model(read(J2), "j2", target)
    told = subprocess.run(
        [str(build("gpu.cpp")), str(tmp_path / "j2")], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr[-2000:]
    failed, *errors = told.stdout.splitlines()[0].split()
    assert failed == "0" and all(float(x) < 1e-9 for x in errors)
    assert told.stdout.splitlines()[1] == "wrong-device"
    assert load(tmp_path / "j2", device="cuda").device.type == "cuda"
