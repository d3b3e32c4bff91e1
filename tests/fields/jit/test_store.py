"""Programs are found again as they were written, or not at all."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ingot.codegen.grids import GridLoop
from ingot.fields.jit.program import (
    SequenceSource,
    find_sequence,
    forget_sequence,
    keep_sequence,
)

LOOP = GridLoop(
    "kernel_0", ("V", "C"), 1, 0, 2, ["// nothing"], (["put(at[1], j, in0);"], []),
    ((0, 1), (0, 0)), (0, 1),
)  # fmt: skip
PROGRAM = SequenceSource(
    "def run(inputs):\n    return ()\n", (LOOP,), "double", 5, 2, (0, 3), {}, "cuda:0"
)


def test_a_program_is_found_again(tmp_path: Path) -> None:
    keep_sequence("name", PROGRAM, tmp_path)
    assert find_sequence("name", tmp_path) == PROGRAM
    assert find_sequence("other", tmp_path) is None
    forget_sequence("name", tmp_path)
    forget_sequence("name", tmp_path)
    assert find_sequence("name", tmp_path) is None


def test_small_tensors_are_kept_to_the_last_bit(tmp_path: Path) -> None:
    values = {"a": torch.rand(3, 2, dtype=torch.float64), "b": torch.tensor([1, 2])}
    keep_sequence("name", replace(PROGRAM, constants=values), tmp_path)
    found = find_sequence("name", tmp_path)
    assert found is not None
    assert all(torch.equal(found.constants[name], x) for name, x in values.items())
    assert found.constants["b"].dtype == torch.int64


def test_large_tensors_are_not_written(tmp_path: Path) -> None:
    keep_sequence("name", replace(PROGRAM, constants={"a": torch.zeros(5000)}), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "{}", '{"kernels": 3}', "[1]"])
def test_a_file_that_is_none_of_ours_is_no_program(tmp_path: Path, text: str) -> None:
    (tmp_path / "name.json").write_text(text)
    assert find_sequence("name", tmp_path) is None
