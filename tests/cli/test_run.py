"""`ingot run` runs a driver and tells how it went."""

import json
from pathlib import Path

import pytest
import torch

from ingot.cli.main import status
from tests.cli.counted import count_reading

Captured = pytest.CaptureFixture[str]


def test_a_transient_is_summarised(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "driver", "--backend", "interpret"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["driver"] == "driver (interpret)"
    assert (rows["steps"], rows["points"]) == ("4", "5")
    assert rows["speed"].endswith("µs per point and step")


def test_a_summary_may_be_json(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "driver", "--backend", "interpret", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["steps"], report["points"], report["solves"]) == (4, 5, {})


def test_a_result_is_saved(file: Path) -> None:
    words = ["driver", "--backend", "interpret", "--save", "result.pt"]
    assert status(["run", str(file), *words]) == 0
    found = torch.load("result.pt", weights_only=True)
    assert found["output.3.y_rate"].tolist() == [2.0] * 5


def test_overrides_follow_the_driver(file: Path) -> None:
    words = ["driver", "factor:=3", "--backend", "interpret", "--save", "result.pt"]
    assert status(["run", str(file), *words]) == 0
    found = torch.load("result.pt", weights_only=True)
    assert found["output.3.y_rate"].tolist() == [3.0] * 5


@pytest.mark.parametrize("driver", ["driver", "verification"])
def test_a_misspelt_override_is_told_and_an_error_where_strict(
    file: Path, driver: str, capsys: Captured
) -> None:
    words = ["run", str(file), driver, "factr:=3", "--backend", "interpret"]
    assert status(words) == 0
    said = capsys.readouterr().err
    assert said.count("warning[unused-override]") == 1
    assert "did you mean 'factor'?" in said
    assert status([*words, "--strict"]) == 1
    assert "error[unused-override]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("show", "--stage", "tree"), ("show", "rate"), ("inspect", "--model", "rate")]
)
def test_a_misspelt_override_is_told_by_what_shows_a_file(
    file: Path, words: tuple[str, ...], capsys: Captured
) -> None:
    verb, *rest = words
    assert status([verb, str(file), *rest, "Models/rat/variable:=z"]) == 0
    assert "did you mean 'Models/rate'?" in capsys.readouterr().err


def test_the_only_driver_needs_no_name(file: Path, capsys: Captured) -> None:
    text = file.read_text()
    file.write_text(text[: text.index("  [verification]")] + "[]\n")
    assert status(["run", str(file), "factor:=3", "--backend", "interpret"]) == 0
    assert "driver (interpret)" in capsys.readouterr().out


def test_several_drivers_are_told(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "name one: driver, verification" in said.err


def test_a_verification_is_judged(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "verification", "--backend", "interpret"]) == 0
    assert capsys.readouterr().out == "verification passed: 4 values agree\n"


def test_a_failed_verification_is_an_error(file: Path, capsys: Captured) -> None:
    words = ["verification", "factor:=3", "--backend", "interpret"]
    assert status(["run", str(file), *words]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "error[values-differ]: 3 of 4 values differ" in said.err
    assert status(["run", str(file), *words, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


def test_a_verdict_cannot_be_saved(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "verification", "--save", "result.pt"]) == 1
    assert "name its TransientDriver" in capsys.readouterr().err


def test_an_unknown_driver_is_an_error(file: Path, capsys: Captured) -> None:
    assert status(["run", str(file), "drivr"]) == 1
    assert "did you mean 'driver'?" in capsys.readouterr().err


DECAY = """
[Domain]
  dim = 1
  nx = 4
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ConstantTensor
      buffer = u
      real = 1
    []
  []
  [Solve]
    [rate]
      type = ParsedCompute
      buffer = rate
      inputs = u
      expression = '-u'
    []
  []
[]
[TensorSolver]
  type = RealSpaceForwardEuler
  buffer = u
  time_derivative = rate
[]
[Postprocessors]
  [mean]
    type = TensorAveragePostprocessor
    buffer = u
    execute_on = 'INITIAL TIMESTEP_END'
  []
[]
[Executioner]
  type = Transient
  dt = 0.1
  num_steps = 6
[]
[Outputs]
  csv = true
[]
"""


@pytest.fixture
def decay(file: Path) -> str:
    """A simulation in the working folder."""
    Path("decay.i").write_text(DECAY)
    return "decay.i"


def test_a_simulation_is_summarised(decay: str, capsys: Captured) -> None:
    assert status(["run", decay, "Executioner/num_steps=2", "--eager"]) == 0
    said = capsys.readouterr()
    first, *rest = said.out.splitlines()
    assert first.startswith("2 steps to time 0.2 in ")
    assert rest == ["mean = 0.81", "wrote decay_out.csv"]
    assert said.err == ""


@pytest.mark.parametrize("override", ["nx=8", "TensorComputes/Solve/nx=8", "Postprocessors/mean=8"])
def test_an_override_that_no_part_of_a_simulation_reads_is_told(
    decay: str, override: str, capsys: Captured
) -> None:
    words = ["run", decay, override, "Executioner/num_steps=1", "--eager"]
    assert status(words) == 0
    assert capsys.readouterr().err.count("warning[unused-override]") == 1
    assert status([*words, "--strict"]) == 1
    assert "error[unused-override]" in capsys.readouterr().err


def test_what_was_compiled_is_told(decay: str, capsys: Captured) -> None:
    assert status(["run", decay, "Executioner/num_steps=2"]) == 0
    assert "\nJIT: 1 sequence, " in capsys.readouterr().out
    assert status(["run", decay, "Executioner/num_steps=2", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["jit"]
    assert (counts["sequences"], counts["fallbacks"]) == (1, 0)


def test_a_simulation_goes_on_from_a_checkpoint(decay: str, capsys: Captured) -> None:
    assert status(["run", decay, "--eager"]) == 0
    whole = Path("decay_out.csv").read_bytes()
    capsys.readouterr()
    assert (
        status(["run", decay, "Executioner/num_steps=4", "--eager", "--checkpoint-every", "3"]) == 0
    )
    assert capsys.readouterr().out.splitlines()[-1] == "stored decay.checkpoint"
    words = ["--restart", ".", "--checkpoint-every", "2", "--checkpoint", "later", "--json"]
    assert status(["run", decay, "--eager", *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["steps"], report["restarted_at"], report["checkpoint"]) == (6, 4, "later")
    assert report["device"] in ("cpu", "cuda:0")
    assert report["values"]["mean"] == pytest.approx(0.9**6)
    assert Path("decay_out.csv").read_bytes() == whole
    assert json.loads(Path("later/about.json").read_text())["step"] == 6
    assert status(["run", decay, "Executioner/num_steps=8", "--eager", "--restart", "later"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("8 steps, the first 6 of them before the restart, to time 0.8 in ")


def test_a_file_may_be_named_as_marlin_has_it(
    decay: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    words = ["-i", decay, "Executioner/num_steps=1", "--eager", "--n-threads", "3"]
    assert status(["run", *words, "--compute-device", "cpu"]) == 0
    assert asked == [3]
    assert "mean = 0.9\n" in capsys.readouterr().out


def test_the_environment_may_name_a_device(
    decay: str,
    capsys: Captured,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MARLIN_TORCH_DEVICE", "nowhere")
    assert status(["run", decay, "--eager"]) == 1
    assert "'nowhere' is no device" in capsys.readouterr().err
    assert status(["run", decay, "--eager", "--compute-device", "cpu"]) == 0
    assert status(["run", decay, "--eager", "Domain/device_names=cpu"]) == 0
    assert "device_names in [Domain] says, not on nowhere" in caplog.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["decay.i", "--n-threads", "0"], "--n-threads 0 leaves no thread to run on"),
        (["decay.i", "--compute-device", "gpu"], "'gpu' is no device"),
        (["model.i", "driver", "--n-threads", "2"], "leave --n-threads out"),
        (["model.i", "driver", "--device", "cuda:9"], "there is no device 'cuda:9'"),
        (["decay.i", "--restart", "nowhere"], "there is no checkpoint at nowhere"),
        (["decay.i", "--checkpoint", "here"], "add --checkpoint-every 100"),
        (["decay.i", "--checkpoint-every", "0"], "a checkpoint every 0 steps is none"),
        (["decay.i", "--save", "x.pt"], "--save has no meaning for decay.i, which is a simulation"),
        (["model.i", "driver", "--restart", "."], "--restart has no meaning for model.i"),
        (["model.i", "driver", "--eager"], "leave --eager out"),
    ],
)
def test_flags_that_mean_nothing_are_told(
    decay: str, capsys: Captured, words: list[str], said: str
) -> None:
    code = status(["run", *words])
    found = capsys.readouterr()
    assert said in found.err and found.out == ""
    assert code == (2 if "error[wrong-usage]" in found.err else 1)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["model.i", "driver"], {"model.i": 1, "Factory": 1, "Tensors": 1}),
        (["model.i", "driver", "factor:=3"], {"model.i": 1, "Factory": 1, "Tensors": 1}),
        (["decay.i", "--eager"], {"decay.i": 1}),
    ],
)
def test_a_file_is_read_once(
    decay: str, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: dict[str, int]
) -> None:
    counted = count_reading(monkeypatch)
    assert status(["run", *words]) == 0
    assert counted == expected


def test_a_stopped_simulation_says_how_far_it_came(
    decay: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ingot.fields import Run

    step = Run.step

    def stopping(run: Run) -> None:
        if run.number == 3:
            raise KeyboardInterrupt
        step(run)

    monkeypatch.setattr(Run, "step", stopping)
    assert status(["run", decay, "--eager", "--checkpoint-every", "2"]) == 1
    assert "the run was stopped after step 3, at time 0.3" in capsys.readouterr().err
    monkeypatch.setattr(Run, "step", step)
    assert status(["run", decay, "--eager", "--restart", "decay.checkpoint"]) == 0
    assert "the first 2 of them" in capsys.readouterr().out


def test_what_nobody_gives_is_told_once_and_is_an_error_where_strict(
    file: Path, capsys: Captured
) -> None:
    file.write_text(file.read_text().replace("variable = 'y'", "variable = 'y'\n    time = 'tt'"))
    words = ["run", str(file), "driver", "--backend", "interpret"]
    assert status(words) == 0
    said = capsys.readouterr()
    assert "driver (interpret)" in said.out
    assert said.err.count("warning[unprescribed-input]: nothing gives 'tt' of [rate]") == 1
    assert "write 'time = tt' if it is the time" in said.err
    assert status([*words, "--strict"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "error[unprescribed-input]: nothing gives 'tt'" in said.err
    assert status([*words, "Settings/strict:=true"]) == 1


def test_a_result_is_saved_as_its_ending_says(file: Path, capsys: Captured) -> None:
    words = ["run", str(file), "driver", "--backend", "interpret", "--save"]
    assert status([*words, "result.csv"]) == 0
    first, *rows = Path("result.csv").read_text().splitlines()
    assert first == "step,time,point,input.t,input.y,output.y_rate"
    assert rows[0] == "0,0.0,0,0.0,0.0,"
    assert rows[5] == "1,1.0,0,1.0,2.0,2.0"
    assert len(rows) == 20
    capsys.readouterr()
    assert status([*words, "result.xls"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "error[unknown-ending]" in said.err
    assert "end it in one of: .csv, .npz, .pt, .pth" in said.err
