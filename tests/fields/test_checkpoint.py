"""A run that is stored and goes on gives what one that was never interrupted gives."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest
import torch

from ingot.errors import IngotError
from ingot.fields import Run, build, prepared
from ingot.fields.checkpoint import every, find, restore, store
from ingot.fields.jit import Jit
from ingot.hit import read_text

INPUTS = Path(__file__).parent / "inputs"

NOISY = """
[Domain]
  dim = 2
  nx = 12
  ny = 10
  xmax = 6
  ymax = 5
  mesh_mode = DOMAIN
[]
[Problem]
  marlin_compatible = false
[]
[TensorBuffers]
  [c]
    map_to_aux_variable = c
  []
[]
[AuxVariables]
  [c]
  []
[]
[TensorComputes]
  [Initialize]
    [c]
      type = RandomTensor
      buffer = c
      min = 0.4
      max = 0.6
      seed = 3
    []
    [M]
      type = ReciprocalLaplacianFactor
      buffer = M
      factor = 0.2
    []
    [linear]
      type = ReciprocalLaplacianSquareFactor
      buffer = linear
      factor = -0.01
    []
  []
  [Solve]
    [root]
      [noise]
        type = RandomTensor
        buffer = noise
        min = -0.01
        max = 0.01
      []
      [mu]
        type = ParsedCompute
        buffer = mu
        inputs = c
        expression = '0.1*c^2*(c-1)^2'
        derivatives = c
      []
      [driven]
        type = ParsedCompute
        buffer = driven
        inputs = 'mu noise'
        expression = 'mu + noise'
      []
      [driven_bar]
        type = ForwardFFT
        buffer = driven_bar
        input = driven
      []
      [rest]
        type = ParsedCompute
        buffer = rest
        inputs = 'M driven_bar'
        expression = 'M*driven_bar'
      []
      [cbar]
        type = ForwardFFT
        buffer = cbar
        input = c
      []
    []
  []
[]
[TensorSolver]
  type = AdamsBashforthMoulton
  root_compute = root
  buffer = c
  reciprocal_buffer = cbar
  linear_reciprocal = linear
  nonlinear_reciprocal = rest
  predictor_order = 3
  substeps = 4
[]
[Postprocessors]
  [change]
    type = TensorIntegralChangePostprocessor
    buffer = c
  []
  [evaluations]
    type = ComputeGroupExecutionCount
    compute_group = root
  []
  [dt]
    type = TimestepSize
  []
  [limit]
    type = ParsedPostprocessor
    pp_names = 'change dt'
    expression = 'if(change > 0, 0.4*dt/change, 1)'
  []
[]
[VectorPostprocessors]
  [bins]
    type = TensorHistogram
    buffer = c
    min = 0
    max = 1
    bins = 4
  []
[]
[TensorOutputs]
  [fields]
    type = XDMFTensorOutput
    buffer = 'c mu'
    enable_hdf5 = true
  []
[]
[Executioner]
  type = Transient
  num_steps = 20
  [TimeStepper]
    type = TensorSolveIterationAdaptiveDT
    dt = 0.1
    min_iterations = 1
    max_iterations = 1
    growth_factor = 1.2
    timestep_limiting_postprocessor = limit
  []
[]
[Outputs]
  csv = true
  exodus = true
[]
"""


@pytest.fixture(autouse=True)
def same_random_numbers() -> Iterator[None]:
    torch.manual_seed(11)
    yield


def ready(folder: Path, *overrides: str, text: str = NOISY, jit: bool = False) -> Run:
    folder.mkdir(exist_ok=True)
    simulation = build(read_text(text, overrides=overrides, moose=True))
    return prepared(simulation, folder, jit=jit)


def finish(run: Run) -> Run:
    for _ in run.steps():
        pass
    return run


def stopped(folder: Path, steps: int, text: str = NOISY) -> Path:
    """Run some steps, of which the tenth is stored; where that is."""
    place = folder / "noisy.checkpoint"
    for now in ready(folder, f"Executioner/num_steps={steps}", text=text).steps():
        if now.number == 10:
            store(now, place)
    torch.manual_seed(99)
    return place


def assert_same(one: Run, other: Run) -> None:
    """Both hold the same bits."""
    assert one.times == other.times and one.rows == other.rows
    assert one.state.counts == other.state.counts and one.files.keys() != {}
    assert {p.name for p in one.files} == {p.name for p in other.files}
    assert one.state.buffers.keys() == other.state.buffers.keys()
    for name, value in one.state.buffers.items():
        assert torch.equal(value, other.state.buffers[name]), name
    for name, values in one.state.old.items():
        assert all(map(torch.equal, values, other.state.old[name])), name


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    torch.manual_seed(11)
    return finish(ready(tmp_path_factory.mktemp("whole")))


def test_ten_steps_and_ten_more_are_twenty(uninterrupted: Run, tmp_path: Path) -> None:
    assert len(set(uninterrupted.values)) == 4 and len(uninterrupted.state.old["rest"]) == 2
    sizes = {row["dt"] for row in uninterrupted.rows}
    assert len(sizes) > 10
    place = stopped(tmp_path, 10)
    run = ready(tmp_path)
    restore(run, place)
    assert run.number == 10
    assert_same(uninterrupted, finish(run))
    names = sorted(path.name for path in uninterrupted.files)
    assert {path.rpartition(".")[2] for path in names} == {"csv", "e", "h5", "xmf"}
    for name in names:
        assert (tmp_path / name).read_bytes() == (uninterrupted.folder / name).read_bytes(), name


def test_what_was_written_after_the_checkpoint_is_taken_back(
    uninterrupted: Run, tmp_path: Path
) -> None:
    place = stopped(tmp_path, 14)
    run = ready(tmp_path)
    restore(run, place)
    with h5py.File(tmp_path / "out.h5") as file:
        assert len(file) == 2 * 11
    assert (tmp_path / "out_out.csv").read_text().count("\n") == 12
    assert_same(uninterrupted, finish(run))
    for path in uninterrupted.files:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_compiled_sequences_go_on_bit_for_bit(tmp_path: Path) -> None:
    whole = finish(ready(tmp_path / "whole", jit=True))
    torch.manual_seed(11)
    half = finish(ready(tmp_path / "half", "Executioner/num_steps=10", jit=True))
    store(half, tmp_path / "half.checkpoint")
    torch.manual_seed(99)
    run = ready(tmp_path / "half", jit=True)
    restore(run, tmp_path)
    assert_same(whole, finish(run))
    assert isinstance(run.executor, Jit) and run.executor.statistics.sequences > 0


def test_an_implicit_solve_with_steps_that_adapt_goes_on(tmp_path: Path) -> None:
    text = (INPUTS / "rotating_grain.i").read_text()
    whole = finish(ready(tmp_path / "whole", text=text))
    half = finish(ready(tmp_path / "half", "Executioner/num_steps=5", text=text))
    store(half, tmp_path / "grain.checkpoint")
    run = ready(tmp_path / "half", text=text)
    restore(run, tmp_path)
    assert torch.equal(finish(run).state.buffers["psi"], whole.state.buffers["psi"])
    assert run.rows == whole.rows


def test_a_checkpoint_says_where_it_stands_and_is_replaced_whole(tmp_path: Path) -> None:
    place = stopped(tmp_path, 10)
    assert json.loads((place / "about.json").read_text())["step"] == 10
    run = ready(tmp_path)
    restore(run, place)
    run.step()
    store(run, place)
    assert json.loads((place / "about.json").read_text())["step"] == 11
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_run_that_is_over_takes_no_step(tmp_path: Path) -> None:
    place = stopped(tmp_path, 10)
    run = ready(tmp_path, "Executioner/num_steps=10")
    restore(run, place)
    assert list(run.steps()) == [] and run.number == 10


def test_another_grid_is_refused_with_all_that_differs(tmp_path: Path) -> None:
    place = stopped(tmp_path, 10)
    run = ready(tmp_path, "Domain/nx=16", "Domain/floating_precision=SINGLE")
    with pytest.raises(IngotError) as caught:
        restore(run, place)
    said = str(caught.value)
    assert "error[checkpoint-differs]: cells: the checkpoint has 12 10, the file 16 10" in said
    assert "precision: the checkpoint has float64, the file float32" in said


def test_changed_options_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = stopped(tmp_path, 10)
    with caplog.at_level(logging.WARNING, "ingot"):
        restore(ready(tmp_path, "TensorSolver/substeps=8"), place)
    assert [record.getMessage() for record in caplog.records] == [
        "TensorSolver/substeps is now 8, and was 4 when the checkpoint was stored"
    ]


def test_missing_files_are_told(tmp_path: Path) -> None:
    place = stopped(tmp_path, 10)
    with pytest.raises(IngotError) as caught:
        restore(ready(tmp_path / "elsewhere"), place)
    assert str(caught.value).count("error[checkpoint-files]") == 4


def test_a_damaged_checkpoint_is_told(tmp_path: Path) -> None:
    place = stopped(tmp_path, 10)
    whole = (place / "state.pt").read_bytes()
    (place / "state.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IngotError, match=r"error.broken-checkpoint.: the checkpoint .* cannot be"):
        restore(ready(tmp_path), place)


@pytest.mark.parametrize("name", ["out.h5", "out.xmf", "out_out.csv", "out_out.e"])
def test_a_file_of_another_run_is_told(tmp_path: Path, name: str) -> None:
    place = stopped(tmp_path, 10)
    torch.manual_seed(12)
    finish(ready(tmp_path, "TensorComputes/Initialize/c/seed=4", "Executioner/dtmax=0.2"))
    with pytest.raises(IngotError, match=rf"error.checkpoint-files.: .*{name} is not the file"):
        restore(ready(tmp_path), place)


def test_a_file_that_was_being_written_when_the_run_was_killed_is_mended(
    uninterrupted: Run, tmp_path: Path
) -> None:
    place = stopped(tmp_path, 12)
    with (tmp_path / "out.h5").open("r+b") as file:
        file.write(b"half of an index, and then the plug was pulled")
        file.seek(0, 2)
        file.write(b"some numbers")
    with pytest.raises(OSError, match="signature"):
        h5py.File(tmp_path / "out.h5")
    run = ready(tmp_path)
    restore(run, place)
    finish(run)
    assert (tmp_path / "out.h5").read_bytes() == (uninterrupted.folder / "out.h5").read_bytes()


def test_a_place_without_a_checkpoint_or_with_two_is_told(tmp_path: Path) -> None:
    with pytest.raises(IngotError, match=r"there is no checkpoint at .*nowhere"):
        find(tmp_path / "nowhere")
    place = stopped(tmp_path, 10)
    assert find(tmp_path) == find(place / "state.pt") == place
    (tmp_path / "b.checkpoint").symlink_to(place)
    with pytest.raises(IngotError, match=r"name one: b.checkpoint, noisy.checkpoint"):
        find(tmp_path)


def test_a_watcher_stores_every_so_often_and_at_the_end(tmp_path: Path) -> None:
    place, stored = tmp_path / "noisy.checkpoint", []
    watch = every(3, place)
    for now in ready(tmp_path, "Executioner/num_steps=7").steps():
        watch(now)
        about = place / "about.json"
        stored.append(json.loads(about.read_text())["step"] if about.exists() else 0)
    assert stored == [0, 0, 3, 3, 3, 6, 7]


def test_a_checkpoint_every_no_steps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IngotError, match="a checkpoint every 0 steps is none"):
        every(0, tmp_path)
