"""What is no file, for every command and option that takes one: told, never a traceback."""

import os
from pathlib import Path

import pytest

from ingot.cli.main import status
from tests.packages import ELASTIC

STEEL = """[Models]
  [steel]
    type = IsotropicElasticity
    E = 200e3
    nu = 0.3
  []
[]
[Drivers]
  [pull]
    type = UniaxialTest
    model = steel
    strain = 0.01
  []
[]
"""
SIMULATION = Path(__file__).parents[1] / "fields" / "inputs"
COMMANDS = {
    "run": ("run", "@"), "show": ("show", "@", "m"), "show tree": ("show", "@", "--stage", "tree"),
    "diagnose": ("diagnose", "@"),
    "compile": ("compile", "@", "--model", "m"), "inspect": ("inspect", "@"), "test": ("test", "@"),
    "package verify": ("package", "verify", "@"), "view": ("view", "@"),
    "compile --output-dir": ("compile", "elastic.i", "--model", "elastic", "--output-dir", "@/x"),
    "run --restart": ("run", "simulation.i", "--restart", "@"),
    "run --load": ("run", "elastic.i", "--load", "@"),
    "sweep -o": ("sweep", "steel.i", "pull", "--over", "E=1,2", "-o", "@/x.parquet"),
}  # fmt: skip
PLACES = (
    "folder", "pipe", "binary.i", "empty.i", "nul.i", "mark.i", "circle", "/dev/null", "/dev/zero",
    "none.i", "empty.i/inside", "x" * 300, "x/" * 3000, "/proc/ingot",
)  # fmt: skip
LAWFUL = {
    *(
        (command, p)
        for command in ("compile --output-dir", "sweep -o")
        for p in ("folder", "none.i")
    ),
    ("show tree", "empty.i"),
}
"""A package may be written there, and what is empty is shown as such."""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with something of every sort in it, to work in."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("binary.i").write_bytes(bytes(range(256)))
    Path("empty.i").write_text("")
    Path("nul.i").write_bytes(b"[Models]\n[m]\ntype = a\0b\n[]\n[]\n")
    Path("mark.i").write_bytes(b"\xef\xbb\xbf[Models]\n[]\n")
    Path("circle").symlink_to("circle")
    Path("elastic.i").write_text(ELASTIC)
    Path("steel.i").write_text(STEEL)
    Path("simulation.i").write_text(next(iter(sorted(SIMULATION.glob("*.i")))).read_text())


@pytest.mark.parametrize("place", PLACES, ids=lambda p: p[:20])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file_is_told(
    command: str, place: str, places: None, capsys: pytest.CaptureFixture[str]
) -> None:
    if (command, place) in LAWFUL:
        pytest.skip("it is lawful")
    code = status([word.replace("@", place) for word in COMMANDS[command]])
    said = capsys.readouterr()
    assert code in (1, 2), said
    assert "Traceback" not in said.err
    assert "error[" in said.err or "failed: " in said.out or "Error" in said.err, said
