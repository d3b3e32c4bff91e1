"""`--load FILE.py` of every command that builds models, and packages that outlive the file."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import ingot
from ingot.catalog import CATALOG, laws_of
from ingot.cli.main import app, status

EXAMPLES = Path(__file__).parents[2] / "examples" / "laws"
Captured = pytest.CaptureFixture[str]
COMMANDS = {
    "run": ["run", "polynomial.i", "--backend", "interpret"],
    "show": ["show", "polynomial.i", "yield_stress", "--driver", "curve", "--stage", "program"],
    "show of a stage": ["show", "polynomial.i", "yield_stress", "--stage", "lower"],
    "inspect": ["inspect", "polynomial.i", "--driver", "curve"],
    "test": ["test", "judged.i", "--backend", "interpret"],
    "diagnose": ["diagnose", "polynomial.i", "--backend", "interpret"],
    "syntax": ["syntax", "TabulatedPolynomial"],
}
JUDGE = """
[Tensors]
  [expected]
    type = Python
    expr = 'Scalar(torch.tensor([210.0, 165.0, 90.0]) * (torch.arange(11)[:, None] > 0))'
  []
[]
[Drivers]
  [judge]
    type = Verification
    driver = 'curve'
    Scalar_names = 'output.yield_stress'
    Scalar_values = 'expected'
  []
[]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The examples in a working folder of their own."""
    monkeypatch.chdir(tmp_path)
    for name in ("network", "polynomial"):
        for ending in ("i", "py"):
            shutil.copy(EXAMPLES / f"{name}.{ending}", tmp_path)
    text = Path("polynomial.i").read_text().replace("0, 0.5, 11", "0, 0, 11")
    Path("judged.i").write_text(text + JUDGE)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_every_command_takes_laws_for_itself_alone(command: list[str], capsys: Captured) -> None:
    assert status(command) == 1
    said = capsys.readouterr()
    told = said.out + said.err
    assert "unknown-type" in told
    assert status([*command, "--load", "polynomial.py"]) == 0, capsys.readouterr()
    assert status([*command, "--load", "network.py", "--load", "polynomial.py"]) == 0
    assert "TabulatedPolynomial" not in CATALOG


@pytest.mark.exhaustive
def test_workers_know_the_laws(capsys: Captured) -> None:
    command = [*COMMANDS["test"], "judged.i", "-j", "2", "--load", "polynomial.py"]
    assert status(command) == 0, capsys.readouterr()


def test_every_command_that_reads_an_input_takes_the_flag() -> None:
    def flags(name: str) -> set[str]:
        found = app[name].assemble_argument_collection(default_parameter=app.default_parameter)
        return {flag for argument in found for flag in argument.names}

    names = [name for name in app if not name.startswith("-") and app[name].default_command]
    assert {name for name in names if "--load" in flags(name)} >= {
        name for name in names if "--untrusted" in flags(name)
    }


@pytest.mark.parametrize("name", [n for n in COMMANDS if n != "syntax"])
def test_code_of_the_flag_is_refused_where_none_is_trusted(name: str, capsys: Captured) -> None:
    Path("polynomial.py").write_text("open('ran', 'w')\n")
    assert status([*COMMANDS[name], "--load", "polynomial.py", "--untrusted"]) == 1
    assert "'polynomial.py' of --load is Python, which is not run" in capsys.readouterr().err
    assert not Path("ran").exists()


def test_an_unknown_type_leads_to_the_flag(capsys: Captured) -> None:
    assert status(["run", "polynomial.i"]) == 1
    assert "a law of your own comes with --load FILE.py" in capsys.readouterr().err


def test_what_a_file_raises_is_told_without_our_traceback(capsys: Captured) -> None:
    Path("polynomial.py").write_text("x = 1\nx.nowhere()\n")
    assert status(["run", "polynomial.i", "--load", "polynomial.py"]) == 1
    told = capsys.readouterr().err
    assert "polynomial.py:2" in told
    assert "Traceback" not in told


def test_a_package_outlives_the_file_of_its_law(capsys: Captured) -> None:
    words = ["--model", "creep", "-p", "residual.rate.weights", "-d", "creep_strain:stress"]
    assert status(["compile", "network.i", *words, "--train", "--load", "network.py"]) == 0
    assert status(["inspect", "aoti/creep_aoti.i"]) == 0
    assert "network.i is what was compiled" in capsys.readouterr().out
    Path("network.py").write_text(Path("network.py").read_text() + "\n")
    assert status(["inspect", "aoti/creep_aoti.i", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["origin"]["laws"]) == ["network.py"]
    assert report["source"] == {"file": "network.py", "state": "changed"}
    assert status(["inspect", "aoti/creep_aoti.i", "--load", "network.py"]) == 2
    Path("network.py").rename("elsewhere")

    draw = torch.Generator().manual_seed(2)
    inputs = {
        name: torch.rand(5, generator=draw, dtype=torch.float64)
        for name in ("stress", "temperature", "creep_strain", "creep_strain~1", "t", "t~1")
    }
    shutil.copy("elsewhere", "network.py")
    with laws_of(["network.py"]):
        live = ingot.build(ingot.read("network.i"), "creep")
        program = ingot.prepared(live)
    Path("network.py").unlink()
    want, _ = ingot.executor(program, "interpret")(inputs)
    for place in ("aoti/creep_aoti.i", "aoti/creep"):
        artifact = ingot.load(place)
        found = artifact.forward(inputs)["creep_strain"]
        torch.testing.assert_close(found, want["creep_strain"], rtol=1e-9, atol=1e-9)
    step, weights = (
        1e-6,
        dict(artifact.named_parameters())["residual.rate.weights"].detach().clone(),
    )
    by_weights = artifact.param_vjp(inputs, {"creep_strain": torch.ones(5).double()})
    values = []
    for side in (1, -1):
        moved = weights.clone()
        moved[1, 2] += side * step
        artifact.set_parameter("residual.rate.weights", moved)
        values.append(artifact.forward(inputs)["creep_strain"].sum())
    slope = (values[0] - values[1]) / (2 * step)
    torch.testing.assert_close(
        by_weights["residual.rate.weights"][1, 2], slope, rtol=1e-5, atol=1e-8
    )


def test_a_law_that_changes_under_its_name_is_compiled_anew(capsys: Captured) -> None:
    values = []
    for factor in ("1.0", "2.0"):
        text = (EXAMPLES / "polynomial.py").read_text().replace("Scalar(0.0)", f"Scalar({factor})")
        Path("polynomial.py").write_text(text)
        assert status(["run", "polynomial.i", "--load", "polynomial.py", "--save", "out.csv"]) == 0
        values.append(Path("out.csv").read_text())
    assert values[0] != values[1]


def test_a_point_that_fails_is_run_again_with_the_law_that_it_needs(capsys: Captured) -> None:
    words = ["run", "network.i", "Solvers/newton/max_its=2", "--backend", "interpret"]
    assert status([*words, "--load", "network.py"]) == 1
    told = capsys.readouterr().err
    assert "why: ingot diagnose failed/creep.i --load network.py" in told
    again = ["diagnose", "failed/creep.i", "--load", "network.py", "--backend", "interpret"]
    assert status(again) == 1
    assert "[creep] 1 of 1 points failed" in capsys.readouterr().out
