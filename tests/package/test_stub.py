"""The stub: an input file in which the package stands for the model, and drivers run unchanged."""

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from ingot import IngotError
from ingot.drivers import transient_driver
from ingot.execute import Status
from ingot.execute.interpret import Interpreter
from ingot.hit import read, read_text
from ingot.model import Factory, build
from ingot.options import INT32, Newton, knobs_of
from ingot.package.stages import advance, load
from ingot.package.stub import write_stub
from ingot.package.target import Target
from ingot.program import prepared
from ingot.program.solvers import read_newton
from ingot.runtime import load as load_package
from ingot.runtime.stub import under_rules
from tests.packages import (
    DECAY,
    RATE,
    TWO_INPUTS,
    TWO_UPDATES,
    decay,
    inputs_of,
    plastic,
    two_updates,
    written,
)  # fmt: skip

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
    max_its = 25
    stop = point
    substep_del_tol = 1e-06
  []
[]
[Models]
  [decay]
    type = AOTIModel
    artifact_path = decay
    program = PROGRAM
    solvers = 'update:newton'
  []
[]
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The stub of a copy of everything: source, data, package."""
    home = tmp_path / "copy"
    shutil.copytree(decay().file.parent, home)
    return home / "out" / "decay_aoti.i"


def text_of(
    file: Path, *, driver: str | None = None, place: str = "out/decay_aoti.i", **target: Any
) -> str:
    """The stub of a file, nothing compiled."""
    loaded = load(read(file), "decay", Target(**target), driver=driver, command="again")
    return write_stub(advance(loaded, "shape"), file.parent / place)


def sections(text: str) -> list[str]:
    """The names of top-level blocks."""
    return [row[1:-1] for row in text.splitlines() if row.startswith("[") and row != "[]"]


def test_stub_reads_as_designed() -> None:
    file = decay().package.stub
    assert file is not None and file.name == "decay_aoti.i"
    program = decay().package.metadata.origin.program
    assert (
        len(program) == 64
        and file.read_text().rstrip().replace(program, "PROGRAM") == GOLD.rstrip()
    )


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
    found = write_stub(advance(load(read(file), "sum", Target()), "shape"), tmp_path / "sum_aoti.i")
    assert "solver" not in found and "Solvers" not in sections(found)


def test_overrides_are_written_into_the_stub(tmp_path: Path) -> None:
    file = written(DECAY, tmp_path)
    loaded = load(read(file, ["Solvers/newton/abs_tol:=1e-7"]), "decay", Target())
    assert "abs_tol = 1e-7" in write_stub(advance(loaded, "shape"), tmp_path / "decay_aoti.i")


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
    copy.write_text(copy.read_text().replace("max_its = 25", "max_its = 1"))
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
    text = copy.read_text().replace("= decay\n", f"= {copy.parent}/decay\n")
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
        f"error[which-model]: {copy} is no stub, and which of its models is meant is not said\n"
        f"  fix: {'give name=, one of: m0, m1' if count else 'give a file with [Models]'}"
    )
    if count:
        assert load_package(copy, name="m1").input_spec == decay().artifact().input_spec


def test_source_without_a_driver_has_a_stub_that_loads() -> None:
    one = plastic()
    assert one.package.stub is not None
    inputs = inputs_of(one, 3)
    found = load_package(one.package.stub)(inputs)
    assert torch.equal(found["flow_rate"], one.artifact()(inputs)["flow_rate"])


@pytest.mark.exhaustive
def test_every_rule_of_every_solver_is_written_out() -> None:
    stub_file = two_updates().package.stub
    assert stub_file is not None
    tree = read(stub_file)
    assert tree.names("Solvers") == ("tight", "loose")
    for name in tree.names("Solvers"):
        block = tree.require("Solvers", name)
        search = block.require("type").string() == "NewtonWithLineSearch"
        wanted = {k.option for k in knobs_of(Newton) if search or "linesearch" not in k.name}
        assert {f.name for f in block.fields} == {"type", *wanted}
    told = tree.require("Models", "both").require("solvers").words()
    assert told == ("first:tight", "second:loose", "third:tight")


def counts(statuses: tuple[Status, ...]) -> list[tuple[str, list[int], list[int]]]:
    """What became of every point of every solve."""
    return [(s.solve, s.reason.tolist(), s.iterations.tolist()) for s in statuses]


def run_live(text: str) -> tuple[dict[str, torch.Tensor], tuple[Status, ...]]:
    """The live model of a text at five points."""
    return Interpreter(prepared(build(read_text(text), "both")))(TWO_INPUTS)


@pytest.mark.parametrize("edit", [
    None, ("max_its = 4", "max_its = 6"), ("max_its = 25", "max_its = 2"),
    ("abs_tol = 1e-3", "abs_tol = 1e-13"), ("linesearch_cutback = 2.0", "linesearch_cutback = 7.5"),
    ("STRONG_WOLFE", "BACKTRACKING"),
], ids=str)  # fmt: skip
def test_each_update_follows_its_own_solver(tmp_path: Path, edit: tuple[str, str] | None) -> None:
    """Package, stub and edited stub against the live model of a file edited alike."""
    one = two_updates()
    assert one.package.stub is not None
    stub_text = one.package.stub.read_text().replace("= both\n", f"= {one.folder.parent}\n")
    source = TWO_UPDATES
    if edit is not None:
        assert stub_text.count(edit[0]) == 1
        stub_text = stub_text.replace(*edit)
        assert source.count(edit[0]) == 1
        source = source.replace(*edit)
    file = tmp_path / "edited.i"
    file.write_text(stub_text)
    found, told = run_live(source)
    artifacts = [load_package(file), load_package(file, backend="inductor")]
    artifacts += [one.artifact()] if edit is None else []
    for artifact in artifacts:
        outputs = artifact(TWO_INPUTS)
        assert counts(artifact.status) == counts(told)
        for name, value in found.items():
            torch.testing.assert_close(outputs[name], value, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_old_value_that_starts_a_solve_is_told_as_a_first_guess() -> None:
    one = two_updates()
    names = [v.name for v in one.artifact().metadata.inputs]
    assert "z~1" in names and "z" not in names
    header = next(one.folder.glob("*.h")).read_text()
    (told,) = (row for row in header.splitlines() if "z~1:" in row)
    assert "both_out_z of the step before" in told and "only where a solve starts" in told


def test_one_solver_for_all_updates_is_still_read(tmp_path: Path) -> None:
    one = two_updates()
    assert one.package.stub is not None
    text = one.package.stub.read_text().replace("= both\n", f"= {one.folder.parent}\n")
    whose = "solvers = 'first:tight second:loose third:tight'"
    assert whose in text
    file = tmp_path / "one.i"
    file.write_text(text.replace(whose, "solver = loose"))
    rules = {s.name: s.max_its for s in load_package(file).metadata.solvers}
    assert rules == {"first": 4, "second": 4, "third": 4}
    file.write_text(text.replace(whose, "solvers = 'third:loose'"))
    rules = {s.name: s.max_its for s in load_package(file).metadata.solvers}
    assert rules == {"first": 25, "second": 4, "third": 4}


def test_names_with_any_letters_are_told_apart() -> None:
    """Updates and solvers whose names hold colons, and of which one begins like another."""
    meta = two_updates().artifact().metadata
    names = ("a", "a:b", "up-date.1")
    renamed = zip(meta.solvers, names, strict=True)
    meta = msgspec.structs.replace(
        meta, solvers=tuple(msgspec.structs.replace(s, name=n) for s, n in renamed)
    )
    blocks = "".join(
        f"  [{name}]\n    type = Newton\n    max_its = {its}\n  []\n"
        for name, its in (("n", 11), ("n-2.x", 12), ("b:c", 13))
    )
    text = (
        f"[Solvers]\n{blocks}[]\n[Models]\n  [m]\n    type = AOTIModel\n    artifact_path = m\n"
        "    solvers = 'a:b:n a:n-2.x up-date.1:b:c'\n  []\n[]"
    )
    tree = read_text(text)
    found = under_rules(meta, tree.require("Models", "m"), Factory(tree))
    assert {s.name: s.max_its for s in found.solvers} == {"a:b": 11, "a": 12, "up-date.1": 13}


@pytest.mark.parametrize(("written", "message"), [
    ("solvers = 'frst:tight'", "no update 'frst'"),
    ("solvers = 'first:tigt'", "[Solvers] has no block 'tigt'"),
    ("solvers = 'first'", "'solvers' should be pairs such as update:newton"),
    ("solvers = 'first:'", "'solvers' should be pairs such as update:newton"),
    ("solvers = 'first:tight first:loose'", "names two solvers for 'first'"),
    ("solvers = 'first:tight'\n    solver = loose", "'solver' is for all updates"),
    ("solvers = 'first:tight; second:loose'", "should be a flat list"),
])  # fmt: skip
def test_wrong_list_of_solvers_is_told(tmp_path: Path, written: str, message: str) -> None:
    one = two_updates()
    assert one.package.stub is not None
    text = one.package.stub.read_text().replace("= both\n", f"= {one.folder.parent}\n")
    file = tmp_path / "wrong.i"
    file.write_text(text.replace("solvers = 'first:tight second:loose third:tight'", written))
    with pytest.raises(IngotError) as refused:
        load_package(file)
    assert message in str(refused.value) and "wrong.i" in str(refused.value)


CHECKS = """
  [check]
    type = Verification
    driver = driver
    Scalar_names = 'input.T output.total'
    Scalar_values = 'heat heat'
  []
  [other]
    type = TransientDriver
    model = sum
    prescribed_time = 'times'
    prescribed_Scalar_names = 'T'
    prescribed_Scalar_values = 'heat'
  []
[]
[Models]
"""


def test_drivers_of_a_stub_know_the_names_that_the_package_shows(tmp_path: Path) -> None:
    file = written(DECAY.replace("[]\n[Models]\n", CHECKS.lstrip("\n"), 1), tmp_path)
    renamed = {
        "rename_input": ("T:heat", "t:clock", "t~1:clock~1", "alpha~1:a~1"),
        "rename_output": ("alpha:a", "total:sum_of_all"),
    }
    tree = read_text(text_of(file, driver="driver", **renamed))
    driver = tree.require("Drivers", "driver")
    assert driver.require("prescribed_Scalar_names").words() == ("heat", "extra")
    assert driver.require("ic_Scalar_names").words() == ("a",)
    assert driver.require("time").string() == "clock"
    assert driver.require("prescribed_Scalar_values").words() == ("heat", "times")
    names = tree.require("Drivers", "check").require("Scalar_names").words()
    assert names == ("input.heat", "output.sum_of_all")
    other = tree.require("Drivers", "other")
    assert other.require("prescribed_Scalar_names").words() == ("T",)
    assert other.field("time") is None


def test_a_stub_declares_shapes_of_the_variables_that_the_package_shows(tmp_path: Path) -> None:
    """Inner variables are gone with their models, and renamed ones have their new names."""
    shapes = "".join(f"    {name} = '(2)'\n" for name in ("alpha", "T", "alpha_rate"))
    settings = f"[Settings]\n  [example_batch_shape]\n{shapes}  []\n[]\n"
    file = written(f"{settings}{DECAY}", tmp_path)
    text = text_of(file, rename_input=("T:heat",), rename_output=("alpha:a",))
    (block,) = read_text(text).section("Settings")
    part = block.block("example_batch_shape")
    assert part is not None
    assert {f.name for f in part.fields} == {"alpha", "a", "heat"}


def test_any_rules_written_to_a_stub_are_read_back_as_they_are(tmp_path: Path) -> None:
    """Random rules, some written in the source and some not, through the text of a stub."""
    draw = random.Random(5)
    for _ in range(30):
        rules = Newton(
            abs_tol=10 ** draw.uniform(-300, 300), rel_tol=draw.choice([0.0, draw.random()]),
            max_its=draw.choice([1, draw.randint(1, INT32)]), stop=draw.choice(["point", "batch"]),
            linesearch=draw.choice(["NONE", "BACKTRACKING", "STRONG_WOLFE"]),
            max_linesearch_iterations=draw.randint(0, 99), linesearch_cutback=1 + draw.random(),
            linesearch_stopping_criteria=draw.random(),
        )  # fmt: skip
        search = rules.linesearch != "NONE"
        known = [k for k in knobs_of(Newton) if search or "linesearch" not in k.name]
        chosen = [k for k in known if k.name == "linesearch" or draw.random() < 0.7]
        options = "\n".join(f"    {k.option} = {getattr(rules, k.name)}" for k in chosen)
        kind = "NewtonWithLineSearch" if search else "Newton"
        text = DECAY.replace("    abs_tol = 1e-10\n    rel_tol = 1e-12\n", f"{options}\n")
        text = text.replace("type = Newton\n", f"type = {kind}\n")
        tree = read_text(text_of(written(text, tmp_path)), "stub.i")
        word = tree.require("Models", "decay").require("solvers")
        found = read_newton(Factory(tree), replace(word, text=word.text.partition(":")[2]))
        expected = Newton(**{k.name: getattr(rules, k.name) for k in chosen})
        assert found == expected
