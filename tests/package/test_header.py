"""The C functions of a package: a C program with no other dependency gets Python's numbers."""

import os
import subprocess
from pathlib import Path

import numpy as np
import torch

from tests.packages import Made, decay, elastic, inputs_of, plastic

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include "NAME.h"
static double* numbers(int64_t n) { return (double*)malloc((n + 1) * sizeof(double)); }
int main(int argc, char** argv) {
  const int64_t points = atoll(argv[1]);
  const int in[] = {INPUTS}, out[] = {OUTPUTS}, sizes[] = {BLOCKS};
  const double* inputs[NAME_inputs + 1];
  double *outputs[NAME_outputs + 1], *blocks[NAME_blocks + 1];
  for (int i = 0; i < NAME_inputs; ++i) {
    double* x = numbers(points * in[i]);
    for (int64_t k = 0; k < points * in[i]; ++k) if (scanf("%lf", x + k) != 1) return 3;
    inputs[i] = x;
  }
  for (int i = 0; i < NAME_outputs; ++i) outputs[i] = numbers(points * out[i]);
  for (int i = 0; i < NAME_blocks; ++i) blocks[i] = numbers(points * sizes[i]);
  NAME_status* status = (NAME_status*)malloc((NAME_solves * points + 1) * sizeof(NAME_status));
  int64_t failed = NAME_forward(points, inputs, NULL, outputs, NULL);
  printf("%lld\n", (long long)failed);
  if (failed < 0) return 0;
  for (int i = 0; i < NAME_outputs; ++i)
    for (int64_t k = 0; k < points * out[i]; ++k) { printf("%.17g ", outputs[i][k]); outputs[i][k] = -1; }
  failed = NAME_jacobian(points, inputs, NULL, outputs, blocks, status);
  printf("\n%lld\n", (long long)failed);
  for (int i = 0; i < NAME_outputs; ++i)
    for (int64_t k = 0; k < points * out[i]; ++k) printf("%.17g ", outputs[i][k]);
  printf("\n");
  for (int i = 0; i < NAME_blocks; ++i)
    for (int64_t k = 0; k < points * sizes[i]; ++k) printf("%.17g ", blocks[i][k]);
  printf("\n");
  for (int64_t k = 0; k < NAME_solves * points; ++k)
    printf("%d %d ", status[k].reason, status[k].iterations);
  printf("\n");
  return 0;
}
"""  # noqa: E501


def run(one: Made, folder: Path, inputs: dict[str, torch.Tensor], points: int) -> list[list[float]]:
    """The lines that the C program prints, as numbers."""
    meta = one.package.metadata
    sizes = {v.name: v.size for v in (*meta.inputs, *meta.outputs)}
    sizes |= {p.variable.name: p.variable.size for p in meta.parameters}
    text = MAIN.replace("NAME", meta.name)
    for word, values in (
        ("INPUTS", [v.size for v in meta.inputs]),
        ("OUTPUTS", [v.size for v in meta.outputs]),
        ("BLOCKS", [sizes[b.output] * sizes[b.input] for b in meta.derivatives]),
    ):
        text = text.replace(f"{{{word}}}", f"{{{', '.join(map(str, values))}}}")
    (folder / "main.c").write_text(text)
    assert meta.kernel is not None
    library = next(iter(meta.kernel.libraries.values()))
    command = ["gcc", "-std=c99", "-Wall", "-Werror", "-pedantic", "main.c", f"-I{one.folder}"]
    command += [str(one.folder / library), "-o", "main", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    given = " ".join(repr(float(x)) for v in meta.inputs for x in inputs[v.name].flatten())
    done = subprocess.run(
        ["./main", str(points)], cwd=folder, input=given, capture_output=True, text=True,
        check=True, env={**os.environ, "LD_LIBRARY_PATH": str(one.folder)},
    )  # fmt: skip
    return [[float(x) for x in row.split()] for row in done.stdout.splitlines()]


def check(one: Made, folder: Path, inputs: dict[str, torch.Tensor], failures: int) -> None:
    """C's numbers are Python's."""
    artifact = one.artifact()
    with torch.no_grad():
        values = [x.flatten() for x in artifact(inputs).values()]
    jacobian, slopes = artifact.jacobian(inputs), artifact.param_jacobian(inputs)
    blocks = []
    for y, x in one.pairs:
        block = jacobian[y][x] if x in jacobian[y] else slopes[y][x]
        free = next(b for b in artifact.metadata.derivatives if (b.output, b.input) == (y, x))
        blocks.append(
            (block.expand(5, *block.shape) if free.batch_independent else block).flatten()
        )
    first, plain, second, beside, found, status = run(one, folder, inputs, 5)
    assert first == second == [failures]
    np.testing.assert_array_equal(plain, torch.cat(values).numpy())
    np.testing.assert_array_equal(beside, torch.cat(values).numpy())
    np.testing.assert_array_equal(found, torch.cat(blocks).numpy())
    (report,) = artifact.status
    assert status[::2] == report.reason.tolist()
    assert status[1::2] == report.iterations.tolist()


def test_c_program_gets_the_numbers_of_python(tmp_path: Path) -> None:
    check(decay(), tmp_path, inputs_of(decay(), 5), 0)


def test_c_program_gets_the_plastic_numbers_of_python(tmp_path: Path) -> None:
    check(plastic(), tmp_path, inputs_of(plastic(), 5), 0)


def test_c_program_is_told_how_many_points_failed(tmp_path: Path) -> None:
    inputs = inputs_of(decay(), 5)
    inputs["T"][1] = inputs["T"][4] = 0.0
    inputs["t"][1] = inputs["t"][4] = torch.inf
    found = decay().artifact()(inputs)["alpha"].detach()
    assert found.isnan().tolist() == [False, True, False, False, True]
    first, plain, *_ = run(decay(), tmp_path, inputs, 5)
    assert first == [2]
    assert np.isnan(plain[:5]).tolist() == found.isnan().tolist()


def test_wrong_number_of_points_of_a_stored_batch_is_minus_one(tmp_path: Path) -> None:
    one = elastic()
    assert run(one, tmp_path, inputs_of(one, 3), 3) == [[-1.0]]
    inputs = inputs_of(one, 5)
    first, plain, *_ = run(one, tmp_path, inputs, 5)
    assert first == [0]
    stress = one.artifact()(inputs)["stress"].detach()
    np.testing.assert_array_equal(plain, stress.flatten().numpy())


def test_header_lists_names_in_order() -> None:
    text = (decay().folder / "decay.h").read_text()
    names = [v.name for v in decay().package.metadata.inputs]
    places = [text.index(f"{i}  {n}: Scalar, 1 numbers") for i, n in enumerate(names)]
    assert places == sorted(places)
    assert "decay_blocks = 14" in text and "decay_solves = 1" in text
