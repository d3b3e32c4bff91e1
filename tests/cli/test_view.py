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
    """The array that a page shows, x last."""
    stored = np.frombuffer(base64.b64decode(field["frames"][frame]), "<f4").astype(np.float64)
    return (field["offsets"][frame] + field["scale"] * stored).reshape(field["counts"][::-1])


def places(field: dict, axis: int) -> np.ndarray:
    """Where the points of a field lie along an axis."""
    return field["first"][axis] + field["steps"][axis] * np.arange(field["counts"][axis])


def shown_by_name(page: Path) -> dict[str, dict]:
    """The fields of a page by their names."""
    return {field["name"]: field for field in data_of(page)["fields"]}


def test_a_page_holds_every_field_and_frame_with_one_range(ran: Run, capsys: Captured) -> None:
    folder = ran()
    assert status(["view", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "u: 2.75 to 22.25 in 5 frames" in said and "wrote" in said
    data, fields = data_of(folder / "ramp.html"), shown_by_name(folder / "ramp.html")
    assert set(fields) == {"u", "half"}
    assert data["times"] == [0, 0.5, 1, 1.5, 2]
    assert (data["lower"], data["upper"], data["axes"]) == ([0, 0], [3, 2], ["x", "y"])
    u = fields["u"]
    x, y = np.arange(6) * 0.5 + 0.25, np.arange(4) * 0.5 + 0.25
    assert np.allclose(places(u, 0), x) and np.allclose(places(u, 1), y)
    for frame, time in enumerate(data["times"]):
        expected = x[None, :] + 10 * y[:, None] + time
        assert np.array_equal(numbers(u, frame), expected)
    assert u["range"] == [2.75, 22.25] and u["positive"] == 2.75


def test_a_page_needs_nothing_else(ran: Run) -> None:
    folder = ran()
    assert status(["view", str(folder / "ramp.h5"), "-f", "u", "-o", "page/only.html"]) == 0
    text = (folder / "page" / "only.html").read_text()
    assert not re.search(r"https?:|\bsrc=|<link|@import|url\(|import\(|fetch\(", text)
    assert [field["name"] for field in data_of(folder / "page" / "only.html")["fields"]] == ["u"]
    assert len(text) < 40_000


def test_frames_and_points_are_thinned_and_that_is_said(ran: Run, capsys: Captured) -> None:
    folder = ran()
    words = ["--frames", "3", "--points", "3", "--json", "--field", "u"]
    assert status(["view", str(folder), *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["shown"] == "3 of 5 frames, one of 2 points along each axis"
    data = data_of(folder / "ramp.html")
    assert data["times"] == [0, 1, 2] and data["notes"] == report["shown"].split(", ")
    (u,) = data["fields"]
    assert u["counts"] == [3, 2]
    assert places(u, 0).tolist() == [0.25, 1.25, 2.25] and places(u, 1).tolist() == [0.25, 1.25]
    assert numbers(u, 0)[1, 2] == 2.25 + 12.5


BOX = ("Domain/dim=3", "Domain/nz=3", "TensorComputes/Initialize/u/expression='x + 10*y+z'")


@pytest.mark.parametrize(
    ("plane", "axes", "counts", "note"),
    [("z", ["x", "y"], [6, 4], "z = 0.833"), ("y=3", ["x", "z"], [6, 3], "y = 1.75")],
)
def test_a_plane_is_cut_out_of_a_box(
    ran: Run, plane: str, axes: list, counts: list, note: str
) -> None:
    folder = ran(*BOX, "Domain/zmax=1" if plane == "y=3" else "Domain/zmax=1.6666")
    assert status(["view", str(folder), "--slice", plane]) == 0
    data, u = data_of(folder / "ramp.html"), shown_by_name(folder / "ramp.html")["u"]
    assert data["axes"] == axes and data["notes"][0].startswith(note[:8])
    assert u["counts"] == counts
    rises = numbers(u, 0)[1, 0] - numbers(u, 0)[0, 0]
    assert rises == pytest.approx(5 if plane == "z" else 1 / 3, abs=1e-6)


def test_a_box_is_shown_whole(ran: Run) -> None:
    folder = ran(*BOX, "Domain/zmax=1")
    assert status(["view", str(folder)]) == 0
    data, u = data_of(folder / "ramp.html"), shown_by_name(folder / "ramp.html")["u"]
    assert data["axes"] == ["x", "y", "z"] and data["upper"] == pytest.approx([3, 2, 1])
    z, y, x = np.meshgrid(*(places(u, axis) for axis in (2, 1, 0)), indexing="ij")
    assert np.abs(numbers(u, 4) - (x + 10 * y + z + 2)).max() < 1e-5


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
    assert data_of(folder / "ramp.html")["axes"] == ["x"]
    assert data_of(folder / "ramp.html")["fields"][0]["counts"] == [6]


def test_numbers_that_are_none_are_left_out_of_the_range(ran: Run) -> None:
    folder = ran("TensorComputes/Initialize/u/expression='if(x < 1, log(x-1), x)'")
    assert status(["view", str(folder), "-f", "u"]) == 0
    field = data_of(folder / "ramp.html")["fields"][0]
    assert field["range"] == [1.25, 4.75]
    assert np.isnan(numbers(field, 0)[:, :2]).all() and np.isfinite(numbers(field, 0)[:, 2:]).all()


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
        (["ramp.i"], "fix: run it first: ingot run ramp.i, then ingot view ."),
        (["ramp.xmf", "--csv", "ramp.i"], "ramp.i is no table of numbers over time"),
        (["ramp.xmf", "--csv", "none.csv"], "error[file-not-found]: none.csv is not there"),
        (["ramp.xmf", "--slice", "z"], "the fields have 2 axes and are shown whole"),
        (["broken.e"], "'broken.e' is no netCDF file"),
        (["broken.vti"], "broken.vti is no image data as VTITensorOutput writes it"),
        (["broken.pvd"], "broken.pvd is no list of images"),
        (["broken.xmf"], "broken.xmf is no XDMF file"),
        (["empty"], "empty holds no fields\n  fix: add an XDMFTensorOutput"),
        (["two"], "name one: a.xmf, b.xmf"),
        (["alone"], "refers to ramp.h5:/half.0, which cannot be read there"),
        (["ramp.xmf", "--field", "uu"], "has no field 'uu'"),
        (["ramp.xmf", "--slice", "w"], "'w' is no plane of a box"),
        (["ramp.xmf", "--frames", "0"], "0 frames, 512 points and 64 megabytes show nothing"),
    ],
)
def test_what_cannot_be_shown_is_told(
    ran: Run, capsys: Captured, words: list[str], said: str
) -> None:
    folder = ran("Executioner/num_steps=0")
    for name in ("empty", "two", "alone"):
        (folder / name).mkdir()
    for ending in ("e", "vti", "pvd", "xmf"):
        (folder / f"broken.{ending}").write_text("<not")
    for name in ("two/a.xmf", "two/b.xmf", "alone/a.xmf"):
        shutil.copy("ramp.xmf", name)
    assert status(["view", *words]) == 1
    assert said in capsys.readouterr().err
