"""`ingot show` prints every stage in the user's names."""

from pathlib import Path
from typing import get_args

import pytest

from ingot.cli.main import status
from ingot.cli.show import Pass
from ingot.hit import read
from ingot.model import build
from ingot.package import Stage as Compiling
from ingot.program import PASSES, Program, pipeline, prepared
from ingot.program.describe import describe_pass
from tests import packages
from tests.cli.counted import count_reading
from tests.packages import DECAY, DIFFUSION, ELASTIC, ORDER, RATE

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        ("tree", "  [rate]"),
        ("model", "  gives  y_rate: Scalar"),
        ("program", "given  y, y~1, t, t~1"),
    ],
)
def test_a_stage_is_printed(stage: str, line: str, file: Path, capsys: Captured) -> None:
    assert status(["show", str(file), "rate", "--stage", stage]) == 0
    assert line in capsys.readouterr().out.splitlines()


def test_stages_of_passes_are_those_that_run() -> None:
    assert get_args(Pass) == tuple(each.__name__ for each in PASSES)


def test_a_pass_is_shown_by_being_listed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(program: Program, choices: pipeline.Choices) -> Program:
        return pipeline.clean(program, choices)

    program = prepared(build(read(file), "rate"))
    monkeypatch.setattr(pipeline, "PASSES", (*PASSES, again))
    assert describe_pass(program, "again").startswith("# 4 operations before, 4 after\ngiven  ")


@pytest.mark.parametrize("stage", [*get_args(Pass), "source"])
def test_a_pass_is_printed(stage: str, file: Path, capsys: Captured) -> None:
    assert status(["show", str(file), "rate", "--stage", stage]) == 0
    assert capsys.readouterr().out.strip()


def test_overrides_are_shown(file: Path, capsys: Captured) -> None:
    words = ["Models/rate/variable:=z", "--stage", "program"]
    assert status(["show", str(file), "rate", *words]) == 0
    assert "z_rate" in capsys.readouterr().out


def test_a_driver_gives_structural_shapes(file: Path, capsys: Captured) -> None:
    text = file.read_text().replace("torch.ones(5))'", "torch.ones(5), sub_batch_ndim=1)'")
    file.write_text(text)
    assert status(["show", str(file), "rate", "--stage", "program", "--driver", "driver"]) == 0
    assert "y<axis1>" in capsys.readouterr().out


# the seven stages of compiling


@pytest.fixture
def decay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with an implicit update, parameters and a driver, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    packages.written(DECAY, tmp_path)
    return "model.i"


def told(capsys: Captured, file: str, model: str, stage: str, *flags: str) -> list[str]:
    assert status(["show", file, model, "--stage", stage, *flags]) == 0
    return capsys.readouterr().out.splitlines()


def test_load_tells_the_file_and_the_model(decay: str, capsys: Captured) -> None:
    rows = told(capsys, decay, "decay", "load", "Models/rate/order:=0.7", "--driver", "driver")
    assert rows[0].startswith("file  model.i, sha256 ")
    assert rows[1:4] == [
        "override  Models/rate/order:=0.7", "driver  driver", "ComposedModel [decay]",
    ]  # fmt: skip
    assert f"  param  {ORDER}: Scalar = 0.7" in rows


def test_select_tells_what_is_promoted(decay: str, capsys: Captured) -> None:
    rows = told(capsys, decay, "decay", "select", "-p", RATE)
    assert rows == [f"promoted  {RATE}: Scalar = 4", "5 other parameters keep their values"]
    assert told(capsys, decay, "decay", "select")[0] == "nothing is promoted"


def test_route_lists_inputs_before_parameters(decay: str, capsys: Captured) -> None:
    rows = told(capsys, decay, "decay", "route", "-p", RATE, "-d", "total:T")
    assert rows[0] == "input      T: Scalar"
    assert rows[-4:] == [
        f"parameter  {RATE}: Scalar = 4", "output     alpha: Scalar", "output     total: Scalar",
        "slope      total:T",
    ]  # fmt: skip


def test_freeze_tells_values_of_constants(decay: str, capsys: Captured) -> None:
    rows = told(capsys, decay, "decay", "freeze", "-p", RATE)
    assert f"constant  {ORDER}: Scalar = 0.6" in rows
    assert not any(RATE in row for row in rows)


def test_freeze_passes_batched_values_at_every_call(tmp_path: Path, capsys: Captured) -> None:
    file = packages.written(ELASTIC, tmp_path)
    rows = told(capsys, str(file), "elastic", "freeze")
    assert rows == [
        "constant  nu: Scalar = 0.3",
        "hidden input  E: Scalar = 100000 125000 150000 175000 200000",
    ]


def test_shape_tells_structural_extents(tmp_path: Path, capsys: Captured) -> None:
    file = packages.written(DIFFUSION, tmp_path)
    rows = told(capsys, str(file), "diffusion", "shape", "--example-batch-shape", "c=(2; 5)")
    assert rows == [f"{n}  structural extents (5,), an array is (*batch, 5)" for n in ("c~1", "c")]


@pytest.mark.parametrize("stage", get_args(Compiling))
def test_a_stage_of_compiling_reads_the_file_and_builds_the_model_once(
    decay: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    counted = count_reading(monkeypatch)
    told(capsys, decay, "decay", stage, "--driver", "driver", "-d", ":")
    assert counted == {"model.i": 1, "Factory": 1, "Tensors": 1}


def test_partition_prints_the_lines_of_each_segment(decay: str, capsys: Captured) -> None:
    rows = told(capsys, decay, "decay", "partition", "-d", "total:", "--rename-input", "T:heat")
    assert rows[0].startswith("segment 0  implicit [update], ")
    assert rows[1].startswith("  given  heat, ")
    assert any("solve [update] for alpha" in row for row in rows)
    assert any(row.startswith("segment 1  forward, ") for row in rows)
    assert "slope  total:heat" in rows


def test_lower_lists_the_files_that_compile_writes(decay: str, capsys: Captured) -> None:
    one = packages.decay()
    held = [b for b in ("kernel", "inductor") if getattr(one.package.metadata, b) is not None]
    pairs = [word for y, x in one.pairs for word in ("-d", f"{y}:{x}")]
    flags = ["-p", RATE, "-p", ORDER, *pairs, "--backend", *held]
    rows = told(capsys, decay, "decay", "lower", *flags)
    names = {row.partition("  ")[0] for row in rows if not row.startswith(" ")}
    assert names == {path.name for path in one.folder.iterdir()}
    assert any(row.startswith("  values: ") for row in rows)
    assert any("solve [update]: 1 unknowns" in row for row in rows)


def test_lower_counts_the_operations_of_graphs(decay: str, capsys: Captured) -> None:
    rows = told(capsys, decay, "decay", "lower", "--backend", "inductor", "-d", ":T")
    names = [row.partition("  ")[0] for row in rows]
    assert names == [
        "decay_seg0_rhs.pt2", "decay_seg0_step.pt2", "decay_seg0_ift.pt2", "decay_seg1.pt2",
        "decay_seg1_jvp.pt2", "decay_meta.json",
    ]  # fmt: skip
    assert all(row.endswith(" operations") for row in rows[:-1])
    assert not Path("aoti").exists()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--stage", "select", "-p", "update.reaction.rate.oder"], 1, f"did you mean '{ORDER}'?"),
        (["--stage", "partition", "-d", "totl:"], 1, "did you mean 'total'?"),
        (["--stage", "clean", "-d", "total:"], 2, "--stage clean takes no flag of compiling"),
        (["--stage", "melt"], 2, "melt"),
    ],
)
def test_wrong_flags_are_told(
    decay: str, capsys: Captured, words: list[str], code: int, text: str
) -> None:
    assert status(["show", decay, "decay", *words]) == code
    assert text in capsys.readouterr().err


def test_model_must_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.i"
    file.write_text("[Models]\n  [one]\n    type = X\n  []\n[]\n")
    assert status(["show", str(file)]) == 2
    assert "which model?\n  fix: one of: one" in capsys.readouterr().err
