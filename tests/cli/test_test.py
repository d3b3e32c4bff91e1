"""`ingot test` finds what judges itself, runs it, and counts."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ingot import fields
from ingot.cli.main import status
from tests.fields.lbm.cases import COLLISION, DENSITY, FLOW, VELOCITY, equilibrium, lattice_input
from tests.fields.lbm.plain import Plain

Captured = pytest.CaptureFixture[str]
INTERPRET = ["--backend", "interpret"]


def test_passed_and_failed_are_counted(file: Path, capsys: Captured) -> None:
    assert status(["test", str(file), *INTERPRET]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_both_backends_are_run_where_none_is_named(file: Path, capsys: Captured) -> None:
    assert status(["test", str(file)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_a_failure_has_a_line_with_its_reason(file: Path, capsys: Captured) -> None:
    file.write_text(file.read_text().replace("factor = 2", "factor = 3"))
    assert status(["test", str(file), *INTERPRET]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "model.i [verification] failed: interpret values-differ:"
        " 3 of 4 values differ from what is expected",
        "0 passed, 1 failed",
    ]


def test_types_that_do_not_exist_are_counted_among_the_failed(file: Path, capsys: Captured) -> None:
    Path("other.i").write_text(file.read_text().replace("ScalarVariableRate", "StrangeRate"))
    assert status(["test", ".", *INTERPRET]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("other.i [verification] failed: unknown-type: no type 'StrangeRate'")
    assert rows[1:] == ["1 passed, 1 failed", "1 unsupported: StrangeRate"]


def test_a_file_that_cannot_be_read_fails(file: Path, capsys: Captured) -> None:
    Path("broken.i").write_text("[Models]\n")
    assert status(["test", ".", *INTERPRET]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("broken.i failed: parse-error")
    assert rows[-1] == "1 passed, 1 failed"


def test_a_bug_in_one_driver_stops_no_other(
    file: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ingot.drivers.verification import Verification

    def broken(self: object, backend: str) -> None:
        raise AssertionError("lines do not match")

    monkeypatch.setattr(Verification, "run", broken)
    assert status(["test", str(file), *INTERPRET]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].endswith("failed: interpret AssertionError: lines do not match")
    assert rows[1] == "0 passed, 1 failed"


def test_a_named_file_without_a_check_is_an_error(file: Path, capsys: Captured) -> None:
    text = file.read_text()
    file.write_text(text[: text.index("  [verification]")] + "[]\n")
    assert status(["test", str(file)]) == 1
    assert "error[nothing-checked]: 'model.i' has no driver that checks itself" in (
        capsys.readouterr().err
    )


def test_a_missing_path_is_an_error(file: Path, capsys: Captured) -> None:
    assert status(["test", "nowhere", str(file)]) == 1
    assert "no file or folder 'nowhere'" in capsys.readouterr().err


def test_outcomes_may_be_json(file: Path, capsys: Captured) -> None:
    assert status(["test", str(file), "--json", *INTERPRET]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["passed"], report["failed"], report["unsupported"]) == (1, 0, 0)
    assert report["outcomes"][0]["driver"] == "verification"


INPUT = """
n = 4
[Domain]
  dim = 1
  nx = ${n}
  xmax = ${fparse 2*pi}
[]
[TensorComputes]
  [Initialize]
    [c]
      type = ParsedCompute
      buffer = c
      extra_symbols = true
      expression = '2 + 0*x'
      expand = REAL
    []
  []
[]
[Postprocessors]
  [mean]
    type = TensorAveragePostprocessor
    buffer = c
    execute_on = 'INITIAL TIMESTEP_END'
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
[Outputs]
  csv = true
[]
"""
SPECS = """
[Tests]
  [fits]
    type = CSVDiff
    input = field.i
    csvdiff = field_out.csv
  []
  [more]
    [named]
      type = CSVDiff
      input = field.i
      cli_args = 'n=6 Outputs/file_base="other"'
      csvdiff = other.csv
    []
    [stops]
      type = RunException
      input = field.i
      cli_args = 'Domain/dim=7'
      expect_err = 'dim'
    []
    [later]
      type = RunApp
      input = field.i
      skip = 'not today'
    []
  []
[]
"""


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A folder with an input of a field problem, references, and a `tests` file."""
    folder = tmp_path / "specs"
    (folder / "gold").mkdir(parents=True)
    (folder / "field.i").write_text(INPUT)
    (folder / "tests").write_text(SPECS)
    for name in ("field_out", "other"):
        (folder / "gold" / f"{name}.csv").write_text("time,mean\n0,2\n1,2\n")
    return folder


def test_specs_are_run_away_from_their_folder(specs: Path, capsys: Captured) -> None:
    before = sorted(specs.rglob("*"))
    assert status(["test", str(specs)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows == [
        f"{specs / 'tests'} [more/later] skipped: not today",
        "3 passed, 0 failed, 1 skipped",
    ]
    assert sorted(specs.rglob("*")) == before


def test_specs_may_run_without_compiling(
    specs: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    run = fields.run

    def listening(*arguments: Any, jit: bool, **more: Any) -> Any:
        asked.append(jit)
        return run(*arguments, jit=jit, **more)

    monkeypatch.setattr(fields, "run", listening)
    assert status(["test", str(specs), "--eager"]) == 0
    assert status(["test", str(specs)]) == 0
    assert asked == [False, False, True, True]
    assert capsys.readouterr().out.count("3 passed, 0 failed, 1 skipped") == 2


def test_specs_run_on_the_device_of_the_environment(
    specs: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARLIN_TORCH_DEVICE", "nowhere")
    assert status(["test", str(specs)]) == 1
    assert "[fits] failed: no-device: 'nowhere' is no device" in capsys.readouterr().out


def test_a_tests_file_may_be_named(specs: Path, capsys: Captured) -> None:
    assert status(["test", str(specs / "tests"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [report[key] for key in ("passed", "failed", "skipped")] == [3, 0, 1]
    names = [outcome["driver"] for outcome in report["outcomes"]]
    assert names == ["fits", "more/named", "more/stops", "more/later"]


def test_a_spoiled_reference_fails_with_the_place(specs: Path, capsys: Captured) -> None:
    (specs / "gold" / "other.csv").write_text("time,mean\n0,2\n1,2.1\n")
    assert status(["test", str(specs)]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == (
        f"{specs / 'tests'} [more/named] failed: values-differ: other.csv differs from"
        " gold/other.csv: column 'mean': in row 2 (time = 1) is 2 instead of 2.1, off by 0.1"
        " (0.048 relative) (allowed: 5.5e-06 relative, 1e-10 counts as zero); 1 of 2 differ"
    )
    assert rows[-1] == "2 passed, 1 failed, 1 skipped"


def test_a_wrong_spec_fails_alone(specs: Path, capsys: Captured) -> None:
    (specs / "tests").write_text(SPECS.replace("csvdiff = other.csv", "csvdif = other.csv"))
    assert status(["test", str(specs)]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert "[more/named] failed: unknown-option: CSVDiff has no option 'csvdif'" in rows[0]
    assert rows[-1] == "2 passed, 1 failed, 1 skipped"


def test_a_tests_file_that_cannot_be_read_fails(specs: Path, capsys: Captured) -> None:
    (specs / "tests").write_text("[Tests]\n")
    assert status(["test", str(specs)]) == 1
    assert "tests failed: parse-error: this block is not closed" in capsys.readouterr().out


def test_an_input_of_a_field_problem_alone_checks_nothing(specs: Path, capsys: Captured) -> None:
    assert status(["test", str(specs / "field.i")]) == 1
    assert "error[nothing-checked]" in capsys.readouterr().err


@pytest.mark.slow
def test_several_run_at_a_time(file: Path, capsys: Captured) -> None:
    Path("other.i").write_text(file.read_text().replace("factor = 2", "factor = 3"))
    assert status(["test", ".", "-j", "2", *INTERPRET]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"


@pytest.mark.exhaustive
@pytest.mark.parametrize("folder", ["models", "regression", "verification"])
def test_published_cases_pass_as_far_as_their_types_exist(
    folder: str, cases: Path, capsys: Captured
) -> None:
    status(["test", str(cases / folder), "--json"])
    report = json.loads(capsys.readouterr().out)
    wrong = [o for o in report["outcomes"] if not o["passed"] and not o["unsupported"]]
    assert not wrong
    assert report["passed"] > 0


MARLIN = Path(__file__).parents[3] / "shared" / "cases" / "marlin"
FIELDS = [
    "cahnhilliard", "gradient", "histogram", "kks", "neml2", "postprocessors", "real_space",
    "solvers", "tensor_compute",
]  # fmt: skip


def published(folder: str, where: Path) -> Path:
    """The published specs of a folder as a `tests` file beside links to their inputs."""
    if not MARLIN.is_dir():
        pytest.skip("the published cases do not lie beside the checkout (../shared/cases)")
    place = where / folder
    place.mkdir()
    (where / "data").symlink_to(MARLIN / "data")
    for file in (MARLIN / folder).iterdir():
        (place / file.name).symlink_to(file)
    blocks: list[str] = []
    for row in (MARLIN / "SPECS.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not cells[0].startswith(f"{folder}/"):
            continue
        name, file, overrides, kind, gold, tolerance = cells
        quote = '"' if "'" in overrides else "'"
        lines = [f"type = {kind}", f"input = {Path(file).name}"]
        lines += [f"cli_args = {quote}{overrides.strip('`')}{quote}"]
        if kind == "RunException":
            lines += [f"expect_err = '{gold.removeprefix('message: ')}'"]
        else:
            lines += [f"{kind.lower()} = {Path(gold).name}"]
        if tolerance.startswith("abs "):
            lines += [f"abs_tol = {tolerance.removeprefix('abs ')}"]
        blocks.append("\n".join([f"[{name.replace('/', '_')}]", *lines, "[]"]))
    (place / "tests").write_text("\n".join(["[Tests]", *blocks, "[]", ""]))
    return place / "tests"


def test_published_specs_pass(tmp_path: Path, capsys: Captured) -> None:
    assert status(["test", str(published("postprocessors", tmp_path))]) == 0
    assert capsys.readouterr().out == "4 passed, 0 failed\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("folder", FIELDS)
def test_all_published_specs_pass(folder: str, tmp_path: Path, capsys: Captured) -> None:
    assert status(["test", str(published(folder, tmp_path)), "-j", "2"]) == 0
    assert capsys.readouterr().out.endswith(" passed, 0 failed\n")


def test_warnings_are_counted_and_fail_where_strict(file: Path, capsys: Captured) -> None:
    wrong = file.read_text().replace("variable = 'y'", "variable = 'y'\n    time = 'tt'")
    file.write_text(wrong.replace("[0.0, 2.0, 2.0, 2.0]", "[0.0, math.inf, math.inf, math.inf]"))
    assert status(["test", str(file)]) == 0
    said = capsys.readouterr().out
    assert said.count("warning[unprescribed-input]") == said.count("warning[not-finite]") == 1
    assert said.endswith("1 passed, 0 failed, 1 with warnings\n")
    assert status(["test", str(file), "--json"]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)["outcomes"]
    assert len(outcome["warnings"]) == 2
    assert status(["test", str(file), "--strict"]) == 1
    assert "unprescribed-input" in capsys.readouterr().out


SHARED = 'Domain/parallel_mode=REAL_SPACE Domain/periodic_directions="X Y"'
RANKS = f"""
[Tests]
  [shared]
    type = HDF5Diff
    input = lattice.i
    hdf5diff = lattice.h5
    abs_tol = 1e-13
    min_parallel = 3
    cli_args = '{SHARED}'
    expect_out = 'reference-quirk'
  []
  [spoiled]
    type = HDF5Diff
    hdf5diff = lattice.h5
    gold_dir = spoiled
    abs_tol = 1e-13
    should_execute = false
    prereq = shared
  []
  [untold]
    type = RunApp
    input = lattice.i
    min_parallel = 2
    cli_args = '{SHARED}'
    absent_out = 'reference-quirk'
  []
  [alone]
    type = RunException
    input = lattice.i
    min_parallel = 2
    expect_err = 'parallel_mode'
  []
[]
"""


@pytest.mark.exhaustive
def test_specs_run_on_as_many_ranks_as_they_say(tmp_path: Path, capsys: Captured) -> None:
    sizes = (7, 5)
    media = np.ones(sizes, dtype=np.int64)
    media[3, 1:3] = media[6, 4] = 0
    inlet = {"type": "LBMFixedFirstOrderBC", "buffer": "f", "f": "f", "value": 0.05,
             "boundary": "left", "perturb": "true"}  # fmt: skip
    wall = {"type": "LBMBounceBack", "buffer": "f", "f_old": "fpc", "boundary": "wall"}
    boundary = {"in": inlet, "wall": wall}
    solve = {"rho": DENSITY, "u": VELOCITY, "feq": equilibrium("feq"), "c": COLLISION}
    start = {"rho": {"type": "LBMConstantTensor", "buffer": "rho", "constants": 1},
             **{name: equilibrium(name) for name in ("f", "fpc")}}  # fmt: skip
    text = lattice_input(
        sizes, "D2Q9", initialize=start, solve=solve, boundary=boundary, compatible=True,
        buffers={**FLOW, "media": "ms"}, problem={"binary_media": "media", "substeps": 4},
        more="[TensorOutputs]\n[all]\ntype = XDMFTensorOutput\nbuffer = rho\nenable_hdf5 = true\n"
        "merged = true\n[]\n[]",
    ).replace("num_steps = '1'", "num_steps = 2")  # fmt: skip
    medium = "[media]\nfile = media.h5\nis_integer = true\n"
    (tmp_path / "lattice.i").write_text(text.replace("[media]\n", medium))
    (tmp_path / "tests").write_text(RANKS)
    w = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4]) * media[..., None]
    fields = {"f": w, "fpc": w, "feq": 0 * w, "u": np.zeros((*sizes, 2)), "rho": 1.0 * (media > 0)}
    plain = Plain("D2Q9", sizes, True, solve, boundary, (("f", "fpc"),), fields, media)
    frames = [np.ones(sizes)] * 2  # nothing clears what is started, and the first step is none
    for _ in range(4):
        plain.step()
    frames.append(plain.fields["rho"])
    for folder, change in (("gold", 0.0), ("spoiled", 1e-9)):
        (tmp_path / folder).mkdir()
        with h5py.File(tmp_path / folder / "lattice.h5", "w") as file:
            for number, frame in enumerate(frames):
                file[f"rho.{number}"] = frame.T + change * (number == 2)
    with h5py.File(tmp_path / "media.h5", "w") as file:
        file["media"] = media
    assert status(["test", str(tmp_path), "--eager"]) == 1
    rows = capsys.readouterr().out.splitlines()
    told = ["[spoiled] failed: values-differ: lattice.h5", "[untold] failed: run-differs"]
    assert len(rows) == 3 and all(map(str.__contains__, rows, told)), rows
    assert rows[-1] == "2 passed, 2 failed"
