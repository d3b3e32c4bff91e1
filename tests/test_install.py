"""A wheel, installed where the repository is not, runs; so does completion of shells."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODEL = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 5))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.linspace(0, 1, 5)[:, None] * SR2.fill(0.01, -0.003, -0.003).data)'
  []
[]
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
[Drivers]
  [stretch]
    type = TransientDriver
    model = 'elasticity'
    prescribed_time = 'times'
    prescribed_SR2_names = 'strain'
    prescribed_SR2_values = 'strains'
  []
[]
"""


def run(*command: str | Path, folder: Path, **more: str) -> str:
    """What a command prints, run away from the repository and from what points to it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder, env={**kept, **more}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def find_installed() -> list[Path]:
    """The folders of site-packages that torch and the other requirements are imported from."""
    import cyclopts
    import torch

    files = (Path(module.__file__ or "") for module in (torch, cyclopts))
    return list(
        dict.fromkeys([*(f.parents[1] for f in files), Path(sysconfig.get_path("purelib"))])
    )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pip", reason="pip builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("the wheel is built by hatchling, which cannot be had here")
    assert done.returncode == 0, done.stderr[-2000:]
    (file,) = folder.glob("ingot-*.whl")
    return file


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own: Ingot from the wheel, torch and the rest from where they are.

    The folders of the rest are appended to the path as folders alone: the links to a repository
    that may stand in them (`.pth`) are not followed: Ingot is found in the wheel or nowhere.
    """
    folder = tmp_path_factory.mktemp("a place") / "environment"
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    target = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*target, "--target", str(site), str(wheel)], check=True, capture_output=True)
    (site / "rest.pth").write_text("".join(f"{place}\n" for place in find_installed()))
    script = folder / "bin" / "ingot"
    lines = (f"#!{folder}/bin/python", "from ingot.cli import main", "main()", "")
    script.write_text("\n".join(lines))
    return folder / "bin" / "python"


@pytest.mark.exhaustive
def test_a_wheel_holds_all_that_kernels_and_hosts_are_made_of(wheel: Path) -> None:
    places = {"ingot": ROOT / "src" / "ingot", "ingot/cpp": ROOT / "cpp"}
    expected = {
        f"{name}/{file.relative_to(here).as_posix()}"
        for name, here in places.items()
        for file in here.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert "ingot/cpp/include/ingot/ingot.h" in expected
    assert expected <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.exhaustive
def test_a_wheel_runs_where_the_repository_is_not(installed: Path, tmp_path: Path) -> None:
    where = run(installed, "-c", "import ingot; print(ingot.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parents[1])
    assert not Path(where.strip()).is_relative_to(ROOT)

    (tmp_path / "bar model.i").write_text(MODEL)
    ingot = (installed, installed.parent / "ingot")
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    told = run(*ingot, "run", "bar model.i", "--save", "bar.csv", folder=tmp_path, **own)
    assert "stretch (kernel)" in told
    last = (tmp_path / "bar.csv").read_text().splitlines()[-1].split(",")
    assert any(abs(float(cell) - 2000) < 1e-9 for cell in last if cell)
    assert "stretch (interpret)" in run(
        *ingot, "run", "bar model.i", "--backend", "interpret", folder=tmp_path, **own
    )
    run(*ingot, "compile", "bar model.i", "--model", "elasticity", folder=tmp_path, **own)
    run(*ingot, "package", "verify", "aoti/elasticity", folder=tmp_path, **own)
    assert "all that is needed is here" in run(*ingot, "doctor", folder=tmp_path, **own)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_the_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ingot.cli.main import status

    assert status(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("doctor", "diagnose", "--backend"))
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
