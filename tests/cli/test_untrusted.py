"""`--untrusted` of every command that reads a file: nothing that the file names is executed."""

from pathlib import Path

import pytest

from ingot.cli.main import status

Captured = pytest.CaptureFixture[str]
HOSTILE = """
stolen = __import__("pathlib").Path("stolen").touch()
result = Scalar(torch.arange(4.0))
"""

COMMANDS = {
    "run": ["run", "model.i", "driver", "--backend", "interpret"],
    "diagnose": ["diagnose", "model.i", "--backend", "interpret"],
    "show": ["show", "model.i", "rate", "--driver", "driver", "--stage", "program"],
    "show of a stage": ["show", "model.i", "rate", "--driver", "driver", "--stage", "shape"],
    "inspect": ["inspect", "model.i", "--driver", "driver"],
    "compile": ["compile", "model.i", "--driver", "driver"],
    "test": ["test", "model.i", "--backend", "interpret"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_hostile_code_of_a_file_is_not_run(
    command: list[str], file: Path, capsys: Captured
) -> None:
    text = file.read_text().replace("'Scalar(torch.arange(4.0))'", f"'''{HOSTILE}'''")
    assert "__import__" in text
    file.write_text(text)
    assert status([*command, "--untrusted"]) == 1
    said = capsys.readouterr()
    assert "untrusted-code" in said.err + said.out
    assert "the name '__import__' is not allowed" in said.err + said.out
    assert not Path("stolen").exists()
    if command[0] == "show":
        assert status(command) == 0
        assert Path("stolen").exists(), "the code is one that runs"


@pytest.mark.parametrize("name", ["run", "diagnose", "show", "show of a stage", "inspect", "test"])
def test_lawful_code_of_a_file_is_run(name: str, file: Path, capsys: Captured) -> None:
    assert file.exists()
    assert status([*COMMANDS[name], "--untrusted"]) == 0
    trusting = capsys.readouterr().out
    assert status(COMMANDS[name]) == 0
    if name.startswith(("show", "inspect")):
        assert capsys.readouterr().out == trusting


@pytest.mark.parametrize("name", ["show", "inspect"])
def test_what_only_looks_says_before_it_runs_code(name: str, file: Path, capsys: Captured) -> None:
    assert file.exists()
    assert status(COMMANDS[name]) == 0
    blocks = "[Tensors/times], [Tensors/values], [Tensors/rates]"
    assert f"this runs the file's Python: {blocks}" in capsys.readouterr().err
    assert status([*COMMANDS[name], "--untrusted"]) == 0
    assert capsys.readouterr().err == ""
    assert status(["show", str(file), "--stage", "tree"]) == 0
    assert capsys.readouterr().err == ""


def test_a_module_is_not_imported(file: Path, capsys: Captured) -> None:
    Path("evil.py").write_text("import pathlib\npathlib.Path('stolen').touch()\n")
    for stage in ("joint", "regions"):
        assert status(["show", "evil:f", "--stage", stage, "--untrusted"]) == 1
        assert "untrusted-code" in capsys.readouterr().err
    assert not Path("stolen").exists()
    assert file.exists()


ENERGY = """
[Domain]
  dim = 1
  nx = 4
[]
[TensorComputes]
  [Solve]
    [energy]
      type = LibtorchGibbsEnergy
      buffer = g
      phase_fractions = 'a'
      concentrations = 'c'
      domega_detas = 'da'
      chem_pots = 'dc'
      libtorch_model_file = 'evil.pt'
    []
  []
[]
[Executioner]
  type = Transient
  num_steps = 1
  dt = 1
[]
"""


def test_a_script_that_a_simulation_names_is_not_loaded(file: Path, capsys: Captured) -> None:
    file.write_text(ENERGY)
    Path("evil.pt").write_bytes(b"not even a script")
    assert status(["run", str(file), "--untrusted"]) == 1
    assert "loads code from a file, which is not run" in capsys.readouterr().err
    assert status(["run", str(file)]) == 1
    assert "not a TorchScript file" in capsys.readouterr().err
