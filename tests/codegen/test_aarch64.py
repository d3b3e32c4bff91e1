"""Kernels for aarch64: cross-compiled from a package's own source, run under qemu-user."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import ingot
from ingot import compile_model, read
from ingot.codegen import compiler
from ingot.package.target import Target

ROOT = Path(__file__).parents[2]
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
POINTS = 7  # two lanes of a NEON register, three times, and one that is left
PROGRAM = """
#include <stdio.h>
#include "model.h"

int main() {
  enum { points = %(points)d };
  static double strain[points][6] = {%(strain)s};
  static double plastic[points][6], equivalent[points], begin[points], end[points];
  static double stress[points][6], tangent[points][36];
  for (int i = 0; i < points; ++i) end[i] = 1;
  const double* in[steel_inputs];
  double *out[steel_outputs], *blocks[steel_blocks];
  in[steel_in_strain] = strain[0];
  in[steel_in_t] = end;
  in[steel_in_t_old] = begin;
  in[steel_in_plastic_strain_old] = out[steel_out_plastic_strain] = plastic[0];
  in[steel_in_equivalent_plastic_strain_old] = equivalent;
  out[steel_out_equivalent_plastic_strain] = equivalent;
  out[steel_out_stress] = stress[0];
  blocks[steel_block_stress_by_strain] = tangent[0];
  if (steel_jacobian(points, in, NULL, NULL, out, blocks, NULL) != 0) return 1;
  for (int i = 0; i < points; ++i) {
    for (int j = 0; j < 6; ++j) printf("%%a ", stress[i][j]);
    for (int j = 0; j < 36; ++j) printf("%%a ", tangent[i][j]);
  }
  return 0;
}
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(
    shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None,
    reason=f"{COMPILER} and {EMULATOR} are not installed: g++-aarch64-linux-gnu, qemu-user",
)
def test_a_kernel_with_newton_inside_gives_the_bits_of_this_machine(tmp_path: Path) -> None:
    target = Target(derivative=("stress:strain",), c_prefix="steel", output_dir=tmp_path)
    compile_model(read(ROOT / "examples" / "viscoplastic.i"), "model", target)
    cpu = tmp_path / "model" / "cpu"
    torch.manual_seed(0)
    strain = 0.01 * torch.rand(POINTS, 6, dtype=torch.float64) - 0.004

    rows = ", ".join("{" + ", ".join(x.hex() for x in row) + "}" for row in strain.tolist())
    main = tmp_path / "main.cpp"
    main.write_text(PROGRAM % {"points": POINTS, "strain": rows})
    flags = [flag for flag in compiler.FLAGS if flag != "-shared"]
    built = subprocess.run(
        [COMPILER, *flags, *compiler.GCC_FLAGS, "-static", f"-I{cpu}", main,
         next(cpu.glob("*.cpp")), "-lm", "-o", tmp_path / "main"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-2000:]
    printed = subprocess.run(
        [EMULATOR, tmp_path / "main"], capture_output=True, text=True, check=True
    ).stdout
    numbers = torch.tensor([float.fromhex(word) for word in printed.split()], dtype=torch.float64)
    stress, tangent = numbers.reshape(POINTS, 42).split([6, 36], dim=1)

    steel, zero = ingot.load(tmp_path / "model"), torch.zeros(POINTS, dtype=torch.float64)
    step = {
        "strain": strain, "plastic_strain~1": torch.zeros_like(strain),
        "equivalent_plastic_strain~1": zero, "t": zero + 1, "t~1": zero,
    }  # fmt: skip
    here = steel(step)
    assert (here["equivalent_plastic_strain"] > 0).sum() >= 2
    assert torch.equal(stress, here["stress"])
    assert torch.equal(tangent.reshape(POINTS, 6, 6), steel.jacobian(step)["stress"]["strain"])
