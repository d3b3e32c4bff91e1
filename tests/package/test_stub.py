"""The stub: an input file in which the package stands for the model, and drivers run unchanged."""

import shutil
from pathlib import Path

import pytest
import torch

from ingot import IngotError
from ingot.drivers import transient_driver
from ingot.hit import read
from ingot.model import Factory
from ingot.package.stages import freeze, load, partition, route, select, shape
from ingot.package.stub import stub
from ingot.package.target import Target
from ingot.runtime import load as load_package
from tests.packages import DECAY, RATE, decay, inputs_of, plastic, written

GOLD = """\
# Generated from model.i by Ingot.
# Drop-in for [Models/decay].
# Do not edit; regenerate with: ingot compile model.i --model decay
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0.0, 2.0, 5, dtype=torch.float64).reshape(5, 1))'
  []
  [heat]
    type = CSVScalar
    csv_file = ../data/heat.csv
    column_names = heat
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = decay
    prescribed_time = times
    prescribed_Scalar_names = 'T extra'
    prescribed_Scalar_values = 'heat times'
    ic_Scalar_names = alpha
    ic_Scalar_values = 0.05
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-10
    rel_tol = 1e-12
  []
[]
[Models]
  [decay]
    type = AOTIModel
    artifact_path = decay
    solver = newton
  []
[]
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The stub of a copy of everything: source, data, package."""
    home = tmp_path / "copy"
    shutil.copytree(decay().file.parent, home)
    return home / "out" / "decay_aoti.i"


def text_of(file: Path, *, driver: str | None = None, place: str = "out/decay_aoti.i") -> str:
    """The stub of a file, nothing compiled."""
    stage = load(read(file), "decay", Target(), driver)
    parted = partition(shape(freeze(route(select(stage))), {}))
    return stub(parted, "decay", file.parent / place, "again")


def sections(text: str) -> list[str]:
    """The names of top-level blocks."""
    return [row[1:-1] for row in text.splitlines() if row.startswith("[") and row != "[]"]


def test_stub_reads_as_designed() -> None:
    file = decay().package.stub
    assert file is not None and file.name == "decay_aoti.i"
    assert file.read_text().rstrip() == GOLD.rstrip()


def test_drivers_are_kept_only_where_one_was_asked_for(tmp_path: Path) -> None:
    file = written(DECAY, tmp_path)
    assert sections(text_of(file)) == ["Tensors", "Solvers", "Models"]
    assert sections(text_of(file, driver="driver")) == ["Tensors", "Drivers", "Solvers", "Models"]


def test_settings_stay_and_knobs_that_act_at_load_stay(tmp_path: Path) -> None:
    knobs = "max_its = 7\n    linesearch_type = 'BACKTRACKING'\n    max_linesearch_iterations = 4"
    text = DECAY.replace("abs_tol = 1e-10", f"abs_tol = 1e-10\n    {knobs}")
    settings = "[Settings]\n  example_batch_shape = '(3)'\n[]\n"
    text = text.replace("type = Newton", "type = NewtonWithLineSearch")
    found = text_of(written(settings + text, tmp_path))
    assert sections(found) == ["Settings", "Tensors", "Solvers", "Models"]
    for word in ("max_its = 7", "linesearch_type = BACKTRACKING", "max_linesearch_iterations = 4"):
        assert word in found
    for word in ("linear_solver", "DenseLU", "[EquationSystems]", "[Data]", "ImplicitUpdate"):
        assert word not in found


def test_keys_of_older_files_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = "[Settings]\n  aoti_mode = 'on'\n  aoti_device = 'cpu'\n  dynamic_batch = true\n[]\n"
    found = text_of(written(settings + DECAY, tmp_path))
    assert "aoti_mode" not in found and "aoti_device" not in found
    assert "dynamic_batch = true" in found
    assert "model.i:2:3 in [Settings]: 'aoti_mode' has no effect" in caplog.text


def test_explicit_model_has_no_solver(tmp_path: Path) -> None:
    file = written(DECAY, tmp_path)
    stage = partition(shape(freeze(route(select(load(read(file), "sum", Target())))), {}))
    found = stub(stage, "sum", tmp_path / "sum_aoti.i", "again")
    assert "solver" not in found and "Solvers" not in sections(found)


def test_overrides_are_written_into_the_stub(tmp_path: Path) -> None:
    file = written(DECAY, tmp_path)
    stage = load(read(file, ["Solvers/newton/abs_tol:=1e-7"]), "decay", Target())
    parted = partition(shape(freeze(route(select(stage))), {}))
    assert "abs_tol = 1e-7" in stub(parted, "decay", tmp_path / "decay_aoti.i", "again")


def test_absolute_file_names_stay(tmp_path: Path) -> None:
    data = tmp_path / "data" / "heat.csv"
    file = written(DECAY.replace("data/heat.csv", str(data)), tmp_path)
    assert f"csv_file = {data}" in text_of(file)


def test_relative_file_names_follow_a_stub_to_any_depth(tmp_path: Path) -> None:
    file = written(DECAY, tmp_path)
    assert "csv_file = ../../data/heat.csv" in text_of(file, place="a/b/decay_aoti.i")
    assert "csv_file = data/heat.csv" in text_of(file, place="decay_aoti.i")


def test_driver_through_the_stub_gives_what_the_live_model_gives() -> None:
    one = decay()
    assert one.package.stub is not None
    live = transient_driver(Factory(read(one.file)), "driver").run("interpret")
    compiled = transient_driver(Factory(read(one.package.stub)), "driver").run()
    assert live.outputs.keys() == compiled.outputs.keys()
    for name, value in live.outputs.items():
        torch.testing.assert_close(compiled.outputs[name], value, rtol=1e-9, atol=1e-9)
    assert bool((live.outputs["alpha"][1:].diff(dim=0) > 0).all())


def test_knob_of_the_stub_acts_without_compiling_again(copy: Path) -> None:
    inputs = inputs_of(decay(), 3)
    artifact = load_package(copy)
    artifact(inputs)
    assert bool(artifact.status[0].converged.all())
    copy.write_text(copy.read_text().replace("abs_tol", "max_its = 1\n    abs_tol"))
    hurried = load_package(copy)
    found = hurried(inputs)["alpha"]
    assert not bool(hurried.status[0].converged.any()) and bool(found.isnan().all())
    result = transient_driver(Factory(read(copy)), "driver").run()
    assert bool(result.outputs["alpha"][1:].isnan().any())


def test_stub_and_folder_work_where_they_are_moved_together(copy: Path, tmp_path: Path) -> None:
    place = tmp_path / "far" / "away"
    place.mkdir(parents=True)
    shutil.move(copy, place / "decay_aoti.i")
    shutil.move(copy.with_name("decay"), place / "decay")
    inputs = inputs_of(decay(), 3)
    found = load_package(place / "decay_aoti.i")(inputs)["alpha"]
    assert torch.equal(found, decay().artifact()(inputs)["alpha"])


def test_absolute_artifact_path_is_accepted(copy: Path, tmp_path: Path) -> None:
    text = copy.read_text().replace("= decay\n    solver", f"= {copy.parent}/decay\n    solver")
    lone = tmp_path / "lone.i"
    lone.write_text(text)
    assert load_package(lone).metadata.name == "decay"


def test_stub_keeps_promoted_parameters(copy: Path) -> None:
    assert RATE in dict(load_package(copy).named_parameters())


@pytest.mark.parametrize("count", [0, 2])
def test_file_that_is_no_stub_is_told(copy: Path, count: int) -> None:
    model = "[decay]\n    type = AOTIModel\n    artifact_path = decay\n  []"
    blocks = "\n".join(model.replace("[decay]", f"[m{i}]") for i in range(count))
    copy.write_text(f"[Models]\n{blocks}\n[]\n")
    with pytest.raises(IngotError) as refused:
        load_package(copy)
    assert str(refused.value) == (
        f"error[no-stub]: {copy} is no stub: it does not hold one model of type AOTIModel alone\n"
        "  fix: name the package's folder, or the stub that was written beside it"
    )


def test_source_without_a_driver_has_a_stub_that_loads() -> None:
    one = plastic()
    assert one.package.stub is not None
    inputs = inputs_of(one, 3)
    found = load_package(one.package.stub)(inputs)
    assert torch.equal(found["flow_rate"], one.artifact()(inputs)["flow_rate"])
