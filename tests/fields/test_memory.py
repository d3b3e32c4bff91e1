"""Fields that cannot fit are refused before they are allocated, and others never."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.growth import CASES
from ingot import platform
from ingot.errors import IngotError
from ingot.fields import build, prepared, run, runs
from ingot.fields.blocks.domain import World
from ingot.fields.memory import in_units, needed_memory
from ingot.fields.step import State
from ingot.hit import read, read_text
from tests.fields.conftest import INPUTS

FILES = sorted(INPUTS.glob("*.i"))
HUGE = ["Domain/nx=1000000", "Domain/ny=1000000"]


def held(state: State) -> int:
    """The bytes of all tensors of a state, each storage once, and of the wavenumbers."""
    tensors = [*state.buffers.values(), *(old for row in state.old.values() for old in row)]
    storages = {each.untyped_storage().data_ptr(): each for each in (*tensors, state.space.k2)}
    return sum(each.untyped_storage().nbytes() for each in storages.values())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_more_is_counted_than_a_run_holds(file: Path, tmp_path: Path) -> None:
    simulation = build(read(file, ["Executioner/num_steps=4"], moose=True))
    needed = needed_memory(simulation, "cpu", jit=False)
    state = run(simulation, tmp_path, jit=False).state
    assert held(state) / 4 < needed <= held(state)
    assert needed_memory(simulation, "cpu", jit=True) <= needed


def drawn_input(draw: random.Random) -> tuple[str, list[str], bool]:
    """Computes or order parameters on a box of about half a million cells, compiled or not."""
    case, dim = draw.choice(["chain", "spectral", "grains", "pairs"]), draw.choice([2, 3])
    low, high = {2: (600, 900), 3: (70, 100)}[dim]
    sizes = [f"Domain/n{axis}={draw.randint(low, high)}" for axis in "xyz"[:dim]]
    kind = f"Domain/floating_precision={draw.choice(['SINGLE', 'DOUBLE'])}"
    return (
        CASES[case](draw.randint(2, 8), 8),
        [f"Domain/dim={dim}", kind, *sizes],
        draw.random() < 0.6,
    )


@pytest.mark.exhaustive
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux's figures")
def test_a_run_takes_no_less_than_is_counted_and_no_four_times_more() -> None:
    draw = random.Random(17)
    draws = [drawn_input(draw) for _ in range(6)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fields.peak"], input=json.dumps(draws), capture_output=True,
        text=True, check=False, cwd=Path(__file__).parents[2],
        # what is freed goes back to the system at once, so that one run does not hide another
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MKL_DISABLE_FAST_MM": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ratios = [peak / needed for needed, peak in json.loads(done.stdout)]
    assert min(ratios) >= 1 and max(ratios) < 4, ratios


def test_a_grid_that_cannot_fit_is_told_with_both_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(*_: Any) -> None:
        raise AssertionError("something was allocated")

    monkeypatch.setattr(runs, "space_of", reached)
    simulation = build(read(FILES[0], HUGE, moose=True))
    with pytest.raises(IngotError, match=r"take at least \d+(\.\d+)? TiB, and .* GiB of memory"):
        prepared(simulation, tmp_path)


def test_numbers_axes_histories_and_ranks_are_counted() -> None:
    text = """
[Domain]
  dim = 2
  nx = 100
  ny = 50
[]
[TensorBuffers]
  [u]
  []
  [v]
    type = VectorTensor
  []
  [w]
    value_dimensions = '2 2'
  []
[]
[Executioner]
  num_steps = 1
[]
"""
    cells, waves = 100 * 50, 100 * 26
    simulation = build(read_text(text, moose=True))
    assert needed_memory(simulation, "cpu", jit=True) == 8 * (cells * 8 + waves)
    half = build(read_text(text, overrides=["Domain/floating_precision=SINGLE"], moose=True))
    assert needed_memory(half, "cpu", jit=True) == 4 * (cells * 8 + waves)
    shared = needed_memory(simulation, "cpu", jit=True, world=World(0, 4))
    assert shared == 8 * (cells * 2 + waves)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_asked_too(tmp_path: Path) -> None:
    with pytest.raises(IngotError, match="of memory are free on cuda"):
        prepared(build(read(FILES[0], HUGE, moose=True)), tmp_path, device="cuda")


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 bytes"), (1000, "1000 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"),
     (1023 * 1024**3, "1023 GiB"), (2**60, "1 EiB"), (2**71, "2048 EiB")],
)  # fmt: skip
def test_bytes_are_told_in_units(count: int, told: str) -> None:
    assert in_units(count) == told


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"memory.max": "1000", "memory.current": "600",
          "memory.stat": "anon 300\ninactive_file 200\n"}, 600),
        ({"memory.max": "max", "memory.current": "600", "memory.stat": ""}, None),
        ({"memory/memory.limit_in_bytes": "500", "memory/memory.usage_in_bytes": "700",
          "memory/memory.stat": "anon 700"}, 0),
    ],
)  # fmt: skip
def test_a_bound_of_a_group_of_processes_counts(
    files: dict[str, str], free: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "_GROUP", tmp_path)
    unbound = platform.read_free_memory()
    assert unbound is None or unbound > 2**20
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = platform.read_free_memory()
    if free is not None:
        assert found == free
    elif unbound is not None:
        assert found is not None and found > 2**20
