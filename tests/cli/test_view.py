"""`ingot view` makes a page that a browser plays, and PNG files."""

import base64
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ingot.cli.main import status
from tests.cli.browser import probe

Captured = pytest.CaptureFixture[str]
Run = Callable[..., Path]

INPUT = """
[Domain]
  dim = 2
  nx = 6
  ny = 4
  xmax = 3
  ymax = 2
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ParsedCompute
      buffer = u
      extra_symbols = true
      expand = REAL
      expression = 'x + 10*y'
    []
    [rate]
      type = ConstantTensor
      buffer = rate
      real = 1
    []
  []
  [Solve]
    [half]
      type = ParsedCompute
      buffer = half
      inputs = u
      expression = 'u/2'
    []
  []
[]
[TensorSolver]
  type = RealSpaceForwardEuler
  buffer = u
  time_derivative = rate
[]
[TensorOutputs]
  [fields]
    type = XDMFTensorOutput
    buffer = 'u half'
    enable_hdf5 = true
  []
[]
[Executioner]
  type = Transient
  num_steps = 4
  dt = 0.5
[]
"""


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Run:
    """Run the input with other values; the folder with its files."""

    def run(*overrides: str) -> Path:
        monkeypatch.chdir(tmp_path)
        Path("ramp.i").write_text(INPUT)
        assert status(["run", "ramp.i", *overrides, "--eager"]) == 0
        capsys.readouterr()
        return tmp_path

    return run


def data_of(page: Path) -> dict:
    """What a page holds."""
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def numbers(field: dict, frame: int) -> np.ndarray:
    """The array that a page shows, rows upwards."""
    levels = np.frombuffer(base64.b64decode(field["frames"][frame]), "<u2")
    low, high = field["range"]
    return (low + (high - low) * levels / 65534).reshape(field["rows"], field["columns"])


def test_a_page_holds_every_field_and_frame_with_one_range(ran: Run, capsys: Captured) -> None:
    folder = ran()
    assert status(["view", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "u: 2.75 to 22.25 in 5 frames" in said and "wrote" in said
    data = data_of(folder / "ramp.html")
    u, half = sorted(data["fields"], key=lambda each: -len(each["name"]))[::-1]
    assert (u["name"], half["name"]) == ("u", "half")
    assert data["times"] == [0, 0.5, 1, 1.5, 2]
    assert data["box"] == [0, 3, 0, 2] and data["axes"] == ["x", "y"]
    x, y = np.arange(6) * 0.5 + 0.25, np.arange(4) * 0.5 + 0.25
    for frame, time in enumerate(data["times"]):
        expected = x[None, :] + 10 * y[:, None] + time
        assert np.abs(numbers(u, frame) - expected).max() < 19.5 / 65534


def test_a_page_needs_nothing_else(ran: Run) -> None:
    folder = ran()
    assert status(["view", str(folder / "ramp.h5"), "-f", "u", "-o", "page/only.html"]) == 0
    text = (folder / "page" / "only.html").read_text()
    assert not re.search(r"https?:|\bsrc=|<link|@import|url\(|import\(|fetch\(", text)
    assert [field["name"] for field in data_of(folder / "page" / "only.html")["fields"]] == ["u"]
    assert len(text) < 12_000


def test_frames_and_points_are_thinned_and_that_is_said(ran: Run, capsys: Captured) -> None:
    folder = ran()
    words = ["--frames", "3", "--points", "3", "--json", "--field", "u"]
    assert status(["view", str(folder), *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["shown"] == "3 of 5 frames, one of 2 points along each axis"
    data = data_of(folder / "ramp.html")
    assert data["times"] == [0, 1, 2] and data["note"] == report["shown"]
    assert (data["fields"][0]["rows"], data["fields"][0]["columns"]) == (2, 3)


@pytest.mark.parametrize(
    ("plane", "axes", "shape", "note"),
    [("z", ["x", "y"], (4, 6), "z = 0.833"), ("y=3", ["x", "z"], (3, 6), "y = 1.75")],
)
def test_a_box_is_cut(ran: Run, plane: str, axes: list, shape: tuple, note: str) -> None:
    more = ("Domain/dim=3", "Domain/nz=3", "TensorComputes/Initialize/u/expression='x + 10*y+z'")
    folder = ran(*more, "Domain/zmax=1" if plane == "y=3" else "Domain/zmax=1.6666")
    assert status(["view", str(folder), "--slice", plane]) == 0
    data = data_of(folder / "ramp.html")
    assert data["axes"] == axes and data["note"].startswith(note[:8])
    u = next(field for field in data["fields"] if field["name"] == "u")
    assert (u["rows"], u["columns"]) == shape
    rises = numbers(u, 0)[1, 0] - numbers(u, 0)[0, 0]
    assert rises == pytest.approx(5 if plane == "z" else 1 / 3, abs=1e-3)


def test_raw_files_ranks_and_lines_are_read_too(ran: Run) -> None:
    folder = ran("TensorOutputs/fields/enable_hdf5=false")
    assert status(["view", str(folder / "ramp.xmf"), "-o", "raw.html"]) == 0
    ran()
    assert status(["view", str(folder / "ramp.xmf"), "-o", "whole.html"]) == 0
    ran("Domain/parallel_mode=FFT_SLAB")
    assert status(["view", str(folder / "ramp.rank0001.h5"), "-o", "ranks.html"]) == 0
    whole = data_of(Path("whole.html"))
    assert data_of(Path("raw.html")) == whole == data_of(Path("ranks.html"))
    ran("Domain/dim=1", "TensorComputes/Initialize/u/expression='x'")
    assert status(["view", str(folder / "ramp.xmf")]) == 0
    assert data_of(folder / "ramp.html")["fields"][0]["rows"] == 1


def test_numbers_that_are_none_are_left_out_of_the_range(ran: Run) -> None:
    folder = ran("TensorComputes/Initialize/u/expression='if(x < 1, log(x-1), x)'")
    assert status(["view", str(folder), "-f", "u"]) == 0
    field = data_of(folder / "ramp.html")["fields"][0]
    assert field["range"] == [1.25, 4.75]
    levels = np.frombuffer(base64.b64decode(field["frames"][0]), "<u2").reshape(4, 6)
    assert (levels[:, :2] == 65535).all() and (levels[:, 2:] < 65535).all()


def test_frames_are_drawn_as_png_files(ran: Run, capsys: Captured) -> None:
    pytest.importorskip("matplotlib", reason="PNG files need ingot[plot]")
    folder = ran("Executioner/num_steps=1")
    assert status(["view", str(folder), "--field", "u", "--png", "frames"]) == 0
    assert "wrote 2 pictures to frames" in capsys.readouterr().out
    files = sorted((folder / "frames").iterdir())
    assert [file.name for file in files] == ["u_0000.png", "u_0001.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    assert files[0].read_bytes() != files[1].read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.xmf"], "error[file-not-found]: nowhere.xmf is not there"),
        (["rampe.xmf"], "did you mean 'ramp.xmf'?"),
        (["ramp.i"], "error[unreadable-result]: ramp.i is no XDMF file"),
        (["empty"], "empty holds no fields\n  fix: add an XDMFTensorOutput"),
        (["two"], "name one: a.xmf, b.xmf"),
        (["alone"], "refers to ramp.h5:/half.0, which cannot be read there"),
        (["ramp.xmf", "--field", "uu"], "has no field 'uu'"),
        (["ramp.xmf", "--slice", "w"], "'w' is no plane of a box"),
        (["ramp.xmf", "--frames", "0"], "0 frames are none"),
    ],
)
def test_what_cannot_be_shown_is_told(
    ran: Run, capsys: Captured, words: list[str], said: str
) -> None:
    folder = ran("Executioner/num_steps=0")
    for name in ("empty", "two", "alone"):
        (folder / name).mkdir()
    for name in ("two/a.xmf", "two/b.xmf", "alone/a.xmf"):
        shutil.copy("ramp.xmf", name)
    assert status(["view", *words]) == 1
    assert said in capsys.readouterr().err


PROBE = """
const told = {};
const pixel = (x, y) => [...at("picture").getContext("2d").getImageData(x, y, 1, 1).data].join();
function set(name, value, event) {
  at(name).value = value;
  at(name).dispatchEvent(new Event(event));
}
told.options = [...at("field").options].map(option => option.value);
told.size = [at("picture").width, at("picture").height];
set("field", "u", "change");
told.labels = [...at("labels").children].map(label => Number(label.textContent));
told.time = at("time").value;
told.first = [pixel(0, 3), pixel(5, 0)];
set("frame", 4, "input");
told.last = [pixel(0, 3), pixel(5, 0)];
told.lastTime = at("time").value;
set("colours", "gray", "change");
told.gray = pixel(5, 0);
told.legend = at("legend").style.background;
const shown = at("picture").getBoundingClientRect(), legend = at("legend").getBoundingClientRect();
told.heights = [shown.height, legend.height];
told.aspect = shown.width / shown.height;
const corner = { clientX: shown.right - 2, clientY: shown.top + 2 };
at("picture").dispatchEvent(new MouseEvent("mousemove", corner));
told.value = at("value").value;
set("frame", 0, "input");
at("play").click();
told.playing = at("play").textContent;
setTimeout(() => {
  at("play").click();
  told.played = Number(at("frame").value);
  told.paused = at("play").textContent;
  tell(told);
}, 250);
"""


def test_a_browser_draws_and_plays_the_page(ran: Run, tmp_path: Path) -> None:
    page = ran() / "ramp.html"
    assert status(["view", str(page.parent)]) == 0
    told = probe(page, PROBE, tmp_path)
    assert sorted(told["options"]) == ["half", "u"]
    assert told["size"] == [6, 4]
    assert told["labels"] == [22.25, 17.38, 12.5, 7.625, 2.75]
    assert (told["time"], told["lastTime"]) == ("time 0  (1/5)", "time 2  (5/5)")
    dark, bright = "68,1,84,255", "253,231,37,255"
    assert told["first"][0] == dark and told["first"][1] not in (dark, bright)
    assert told["last"][1] == bright and told["last"][0] not in (dark, bright)
    assert told["gray"] == "255,255,255,255"
    assert told["legend"].startswith("linear-gradient(to top, rgb(0, 0, 0), rgb(255, 255, 255)")
    assert abs(told["heights"][0] - told["heights"][1]) < 1
    assert abs(told["aspect"] - 1.5) < 0.02
    assert re.match(r"u = 22\.25 at x = 2\.9\d*, y = 1\.9\d*", told["value"])
    assert (told["playing"], told["played"], told["paused"]) == ("Pause", 2, "Play")
