"""What a page of `ingot view` holds and draws, against readers that know nothing of it."""

import base64
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingot.cli.main import status
from ingot.cli.viewer.pictures import Limits, find_vectors, fit, spread
from ingot.fields import build, run
from ingot.hit import read_text
from tests.cli.browser import probe
from tests.cli.test_view import data_of, numbers, places, shown_by_name
from tests.fields.outputs.test_vti import read_vti

h5py = pytest.importorskip("h5py", reason="HDF5 files need ingot[fields]")

Captured = pytest.CaptureFixture[str]

INPUT = """
[Domain]
  dim = {dim}
  nx = {nx}
  ny = {ny}
  nz = {nz}
  xmin = -1
  xmax = 2
  ymin = 0.5
  ymax = 2.5
  zmax = 1.5
  mesh_mode = DOMAIN
[]
[TensorComputes]
  [Initialize]
    [c]
      type = RandomTensor
      buffer = c
      seed = {seed}
      min = {low}
      max = {high}
    []
  []
  [Solve]
    [c]
      type = ParsedCompute
      buffer = c
      inputs = c
      expression = '{expression}'
    []
    [flow]
      type = GradientTensor
      buffer = flow
      input = c
    []
  []
[]
[Postprocessors]
  [mean]
    type = TensorAveragePostprocessor
    buffer = c
  []
  [a<b]
    type = TensorExtremeValuePostprocessor
    buffer = c
    value_type = MAX
  []
[]
[AuxVariables]
  [cells]
    family = MONOMIAL
    order = CONSTANT
  []
  [corners]
  []
[]
[AuxKernels]
  [cells]
    type = ProjectTensorAux
    variable = cells
    buffer = c
  []
  [corners]
    type = ProjectTensorAux
    variable = corners
    buffer = c
  []
[]
[TensorOutputs]
  [h5]
    type = XDMFTensorOutput
    buffer = 'c flow'
    enable_hdf5 = true
    {mode}
  []
  [vtk]
    type = VTITensorOutput
    buffer = 'c flow'
    output_mode = 'NODE CELL'
  []
[]
[Executioner]
  num_steps = {steps}
  dt = 0.25
[]
[Outputs]
  csv = true
  exodus = true
[]
"""


def simulate(folder: Path, *overrides: str, **values: Any) -> None:
    """Run the input with some values into a folder."""
    usual = {"dim": 2, "nx": 6, "ny": 4, "nz": 3, "seed": 1, "low": 0, "high": 1, "mode": ""}
    usual |= {"expression": "0.5*c", "steps": 3}
    text = INPUT.format(**usual | values)
    run(build(read_text(text, overrides=overrides, moose=True)), folder, jit=False)


def view(folder: Path, name: str, *words: str) -> Path:
    page = folder / "page.html"
    assert status(["view", str(folder / name), "-o", str(page), *words]) == 0
    return page


@pytest.mark.parametrize("seed", range(8))
def test_a_page_holds_what_the_files_hold(tmp_path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    dim, scale = int(draw.integers(1, 4)), 10.0 ** draw.integers(-40, 40)
    nx, ny, nz = (int(n) for n in draw.integers(1, 7, 3))
    low = float(draw.choice([-1.0, 0.0, 1e3]))
    words = ["Domain/parallel_mode=FFT_SLAB"] if dim > 1 and ny > 1 and draw.random() < 0.5 else []
    simulate(
        tmp_path, *words, dim=dim, nx=nx, ny=ny, nz=nz, seed=seed, steps=int(draw.integers(0, 4)),
        low=low * scale, high=(low + 1) * scale,
    )  # fmt: skip
    kept = data_of(view(tmp_path, "out.xmf"))
    table = list(csv.DictReader((tmp_path / "out_out.csv").open()))
    assert kept["times"] == [float(row["time"]) for row in table]
    (curves,) = kept["tables"]
    assert curves["times"] == kept["times"]
    for column in curves["columns"]:
        assert column["values"] == [float(row[column["name"]]) for row in table]
    for field in kept["fields"]:
        largest = 0.0
        for frame in range(len(kept["times"])):
            shown = numbers(field, frame)
            expected = stored_array(tmp_path, field["name"], frame)
            if expected is None:
                assert np.isnan(shown).all()  # a vector before anything is solved
                continue
            assert shown.shape == expected.shape == (nz, ny, nx)[-dim:]
            largest = max(largest, np.abs(expected).max())
            allowed = 1e-4 * np.ptp(expected), 1e-7 * np.abs(expected).max(), 1e-30 * largest
            assert np.abs(shown - expected).max() <= min(allowed[:2]) + allowed[2]
        lower, upper = np.array([-1, 0.5, 0])[:dim], np.array([2, 2.5, 1.5])[:dim]
        for axis, (low_end, high_end) in enumerate(zip(lower, upper, strict=True)):
            ends = np.linspace(low_end, high_end, (nx, ny, nz)[axis] + 1)
            assert np.allclose(places(field, axis), (ends[1:] + ends[:-1]) / 2, rtol=1e-12)
    compare_others(tmp_path, kept, dim)


def stored_array(folder: Path, name: str, frame: int) -> np.ndarray | None:
    """An array of the HDF5 file, or of those of ranks, which are slabs along y."""
    parts = []
    for file in sorted(folder.glob("out*.h5")):
        with h5py.File(file, "r") as opened:
            if f"{name}.{frame}" not in opened:
                return None
            parts.append(opened[f"{name}.{frame}"][()])
    return np.concatenate(parts, axis=-2) if len(parts) > 1 else parts[0]


def compare_others(folder: Path, kept: dict, dim: int) -> None:
    """The pages of VTK images and of Exodus files show the same fields."""
    fields = {field["name"]: field for field in kept["fields"]}
    images = view(folder, "out.pvd")
    assert data_of(images)["times"] == kept["times"]
    found, last = shown_by_name(images), len(kept["times"]) - 1
    _, arrays = read_vti(sorted(folder.glob("out.*.vti"))[last])
    nodes = arrays["PointData", "c"][..., 0].reshape(found["c"]["counts"][::-1])
    largest = float(np.abs(nodes).max())

    def near(one: np.ndarray, other: np.ndarray) -> bool:
        return np.allclose(one, other, rtol=1e-6, atol=1e-6 * largest)

    assert near(numbers(found["c"], last), nodes)
    assert places(found["c"], 0)[0] == pytest.approx(-1)
    assert places(found["c"], 0)[-1] == pytest.approx(2)
    if "flow_x" in fields and found["flow_x"]["counts"] == fields["flow_x"]["counts"]:
        assert np.array_equal(numbers(found["flow_x"], last), numbers(fields["flow_x"], last))
    mesh = shown_by_name(view(folder, "out_out.e"))
    shape = fields["c"]["counts"][::-1]
    if last > 0:
        assert near(numbers(mesh["cells"], last), numbers(fields["c"], last))
        assert near(numbers(mesh["corners"], last), nodes)
    assert numbers(mesh["cells"], last).shape == tuple(shape)


def test_exodus_files_are_read_by_coordinates_not_by_order(tmp_path: Path) -> None:
    from scipy.io import netcdf_file

    simulate(tmp_path, dim=3)
    mesh = shown_by_name(view(tmp_path, "out_out.e"))
    with netcdf_file(tmp_path / "out_out.e", mmap=False) as file:
        at = np.stack([file.variables[f"coord{axis}"][:] for axis in "xyz"], axis=1)
        values = file.variables["vals_nod_var1"][-1]
    shown = numbers(mesh["corners"], 3)
    for (x, y, z), value in zip(at, values, strict=True):
        i, j, k = (
            int(np.abs(places(mesh["corners"], axis) - place).argmin())
            for axis, place in enumerate((x, y, z))
        )
        assert shown[k, j, i] == pytest.approx(value, rel=1e-6)


def test_vectors_are_found_by_their_names() -> None:
    def found(*names: str) -> list[tuple[str, tuple[str, ...], bool]]:
        return [(v.name, v.parts, v.sure) for v in find_vectors(dict.fromkeys(names, (3, 3)))]

    assert found("c", "v_x", "v_y") == [("v", ("v_x", "v_y"), True)]
    assert found("ux", "uy", "uz") == [("u", ("ux", "uy", "uz"), False)]
    assert found("u", "v", "w", "c") == [("uvw", ("u", "v", "w"), False)]
    assert found("x", "y") == [] == found("v_y", "v_z") == found("v_x", "v_z")
    assert list(find_vectors({"v_x": (2,), "v_y": (3,)})) == []


@pytest.mark.parametrize("seed", range(30))
def test_limits_are_kept_and_frames_are_spread(seed: int) -> None:
    draw = np.random.default_rng(seed)
    dim = int(draw.integers(1, 4))
    shapes = [tuple(int(n) for n in draw.integers(1, 300, dim)) for _ in range(draw.integers(1, 6))]
    most = [int(n) for n in draw.integers(1, 600, 2)]
    limits = Limits(most[0], most[1], float(10 ** draw.uniform(-3, 2)))
    count = int(draw.integers(1, 10_000))
    frames, step = fit(shapes, count, limits)
    longest = max(-(-n // step) for shape in shapes for n in shape)
    assert 1 <= frames <= min(count, limits.frames) and longest <= limits.points
    size = 4 * frames * sum(np.prod([-(-n // step) for n in shape]) for shape in shapes)
    smallest = 4 * len(shapes)
    assert size <= max(limits.megabytes * 1e6, smallest)
    chosen = spread(count, frames)
    assert len(set(chosen)) == frames and chosen[-1] == count - 1 and chosen == sorted(chosen)


def test_thousands_of_frames_make_a_page_of_bounded_size(tmp_path: Path, capsys: Captured) -> None:
    simulate(tmp_path, nx=24, ny=16)
    lines = (tmp_path / "out.xmf").read_text().splitlines(keepends=True)
    begin = next(k for k, line in enumerate(lines) if 'Name="T3"' in line)
    end = next(k for k, line in enumerate(lines[begin:], begin) if line == "\t\t\t</Grid>\n") + 1
    (tmp_path / "out.xmf").write_text(
        "".join([*lines[:end], *(lines[begin:end] * 5000), *lines[end:]])
    )
    page = view(tmp_path, "out.xmf", "--frames", "5000", "--megabytes", "0.1", "--json")
    report = json.loads(capsys.readouterr().out)
    assert page.stat().st_size < 0.1e6 * 4 / 3 + 60_000
    assert f"{report['frames']} of 5004 frames" in report["shown"] and report["frames"] >= 10


def test_a_run_that_is_still_writing_is_shown(tmp_path: Path) -> None:
    simulate(tmp_path)
    whole = (tmp_path / "out.xmf").read_bytes()
    page = view(tmp_path, "out.xmf")
    names = [field["name"] for field in data_of(page)["fields"]]
    draw = np.random.default_rng(0)
    ends = [whole.index(b'Name="T2"'), *draw.integers(len(whole) // 2, len(whole), 10)]
    for end in ends:
        (tmp_path / "out.xmf").write_bytes(whole[:end])
        data = data_of(view(tmp_path, "out.xmf"))
        assert 1 <= len(data["times"]) <= 4
        if len(data["times"]) > 1:
            assert [field["name"] for field in data["fields"]] == names
    text = (tmp_path / "out_out.csv").read_text()
    (tmp_path / "out_out.csv").write_text(text[:-4])
    assert len(data_of(view(tmp_path, "out.pvd"))["tables"][0]["times"]) == 3
    listed = (tmp_path / "out.pvd").read_text()
    (tmp_path / "out.pvd").write_text(listed[: listed.rindex("</Coll")])
    assert data_of(view(tmp_path, "out.pvd"))["times"] == [0, 0.25, 0.5, 0.75]


READER = """
import h5py, sys, time
with h5py.File(sys.argv[1], "r") as file:
    print(len(file), flush=True)
    sys.stdin.readline()
"""


def test_a_run_goes_on_while_somebody_looks_at_its_file(tmp_path: Path) -> None:
    from ingot.fields import prepared

    text = INPUT.format(dim=2, nx=4, ny=4, nz=1, seed=1, low=0, high=1, mode="", steps=4,
                        expression="c/2")  # fmt: skip
    ready = prepared(build(read_text(text, moose=True)), tmp_path, jit=False)
    steps = ready.steps()
    next(steps).flush()
    command = [sys.executable, "-c", READER, str(tmp_path / "out.h5")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as reader:
        assert reader.stdout is not None and reader.stdin is not None
        assert int(reader.stdout.readline()) > 0
        for _ in steps:
            pass
        reader.stdin.write("\n")
        reader.stdin.close()
    assert ready.number == 4
    with h5py.File(tmp_path / "out.h5") as file:
        assert {f"c.{frame}" for frame in range(5)} <= set(file)


def test_complex_fields_are_shown_by_their_magnitude(tmp_path: Path) -> None:
    simulate(tmp_path)
    with h5py.File(tmp_path / "out.h5", "r+") as file:
        array = file["c.3"][()]
        for frame in range(4):
            del file[f"c.{frame}"]
            file[f"c.{frame}"] = array * (3 + 4j)
    page = view(tmp_path, "out.xmf", "-f", "c")
    assert np.allclose(numbers(shown_by_name(page)["c"], 3), 5 * array, rtol=1e-6)
    assert data_of(page)["notes"] == ["complex numbers by their magnitude"]


def test_tables_are_those_of_the_run_or_the_ones_named(tmp_path: Path, capsys: Captured) -> None:
    simulate(tmp_path)
    (tmp_path / "out_out.csv").rename(tmp_path / "other.csv")
    assert "curves: a<b, mean" in (view(tmp_path, "out.xmf"), capsys.readouterr().out)[1]
    (tmp_path / "third.csv").write_text("time,k\n0,nan\n1,inf\n2,3\n")
    page = view(tmp_path, "out.xmf")
    assert "no curves: 2 tables are there, name one with --csv" in capsys.readouterr().out
    assert data_of(page)["tables"] == []
    page = view(tmp_path, "out.xmf", "--csv", str(tmp_path / "third.csv"))
    (table,) = data_of(page)["tables"]
    assert table["columns"] == [{"name": "k", "values": [None, None, 3]}]


# what a browser makes of it

PROBES = Path(__file__).parent / "probes"


def script(name: str) -> str:
    """What a probe does in a page, with what all of them use before it."""
    return "".join((PROBES / f"{each}.js").read_text() for each in ("set", name))


def test_a_browser_opens_on_the_last_frame_and_plays(tmp_path: Path) -> None:
    simulate(tmp_path)
    told = probe(view(tmp_path, "out.xmf"), script("play"), tmp_path)
    rows = list(csv.DictReader((tmp_path / "out_out.csv").open()))
    assert told["frame"] == 3 and told["time"] == "time 0.75  (4/4)"
    assert told["fields"] == ["c", "flow_x", "flow_y", "flow_z", "|flow|"]
    assert {"x", "y", "time", "c", "-1", "0", "2", "0.5", "2.5"} <= set(told["texts"])
    array = stored_array(tmp_path, "c", 3)
    assert array is not None
    said, _, where = told["value"].partition(" at ")
    assert float(said.removeprefix("c = ")) == pytest.approx(array[3, 5], rel=1e-5)
    assert where == "x = 1.75, y = 2.25"
    assert told["aspect"] == pytest.approx(1.5, abs=0.01) and told["bar"]
    for row, figures in ((rows[3], told["curves"]), (rows[1], told["early"][1:])):
        for name, figure in zip(("a<b", "mean"), figures, strict=True):
            assert figure.startswith(name + " ")
            assert float(figure.split()[1]) == pytest.approx(float(row[name]), rel=1e-5)
    assert told["early"][0] == "time 0.25  (2/4)"
    assert (told["playing"], told["played"], told["paused"]) == ("Pause", 3, "Play")


def test_a_browser_colours_every_cell_of_three_planes(tmp_path: Path) -> None:
    simulate(tmp_path, dim=3, nx=5, ny=4, nz=3, seed=4)
    told = probe(view(tmp_path, "out.xmf"), script("planes"), tmp_path)
    array = stored_array(tmp_path, "c", 3)
    assert array is not None
    grey = 255 * (array - array.min()) / np.ptp(array)
    planes = [grey[0], grey[:, 2], grey[:, :, 1]]
    assert [plane["normal"] for plane in told["planes"]] == [2, 1, 0]
    cut = {0: 1, 1: 2, 2: 0}  # the layers that the lines of the other planes run through
    for found, expected, plane in zip(told["cells"], planes, told["planes"], strict=True):
        away = np.ones(expected.shape, bool)
        away[cut[plane["axes"][1]]] = away[:, cut[plane["axes"][0]]] = False
        off = np.abs(np.array(found) - expected)
        assert off[away].max() <= 1
    assert told["labels"] == ["z = 0.25", "y = 1.75", "x = -0.1"]
    assert told["picked"] == [4, 3, 0] and told["moved"] == [4, 3, 2] and told["one"] == [0]


CORNERS = {
    "nan": ("log(c - 2)", {"field": "f1"}, "no finite number"),
    "partly": ("if(c < 0.5, log(c - 2), c)", {}, None),
    "constant": ("3", {}, "3"),
    "zero": ("0", {}, "0"),
    "thin": ("c", {"nx": 1}, None),
    "cell": ("c", {"nx": 1, "ny": 1}, None),
    "line": ("c", {"dim": 1}, None),
    "box": ("c", {"dim": 3, "nz": 1}, None),
    "huge": ("c*1e200", {"low": 1e100, "high": 2e100}, None),
    "fine": ("0.5 + 1e-10*c", {}, None),
    "once": ("c", {"steps": 0}, None),
}


QUICK = ("nan", "thin", "line")


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.exhaustive) for n in CORNERS],
)
@pytest.mark.filterwarnings("ignore::ingot.errors.IngotWarning")
def test_a_browser_shows_corner_cases(tmp_path: Path, name: str) -> None:
    expression, given, text = CORNERS[name]
    shown, values = given.get("field", "f0"), {k: v for k, v in given.items() if k != "field"}
    simulate(tmp_path, expression=expression, **values)
    told = probe(view(tmp_path, "out.xmf"), script("corners").replace("FIELD", shown), tmp_path)
    assert told["hidden"] == (name == "once")
    assert text is None or text in told["texts"]
    if told["distinct"]:
        assert len(set(told["distinct"])) == len(told["distinct"])
    if told["value"]:
        assert "undefined" not in told["value"]


def test_arrows_point_along_the_field_and_streamlines_follow_it(tmp_path: Path) -> None:
    text = INPUT.replace("type = RandomTensor", "type = ParsedCompute").replace(
        "seed = {seed}\n      min = {low}\n      max = {high}",
        "extra_symbols = true\n      expand = REAL\n      expression = 'sin(2*pi*(x+1)/3)'",
    )
    values = {"dim": 2, "nx": 24, "ny": 16, "nz": 1, "mode": "", "expression": "c", "steps": 1}
    run(build(read_text(text.format(**values), moose=True)), tmp_path, jit=False)
    told = probe(view(tmp_path, "out.xmf"), script("vectors"), tmp_path)
    place = told["place"]
    assert len(told["arrows"]) > 50 and len(told["streamlines"]) > 5
    for way in ("arrows", "streamlines"):
        for line in told[way]:
            x = -1 + 3 * ((line["from"][0] + line["to"][0]) / 2 - place["left"]) / place["wide"]
            slope = np.cos(2 * np.pi * (x + 1) / 3)
            if abs(slope) > 0.2:  # nowhere across, and the way the field grows
                assert (line["to"][0] - line["from"][0]) * slope > 0
                assert abs(line["to"][1] - line["from"][1]) < 1e-6 * place["tall"] + 0.01
    assert told["hint"].startswith("longest arrow: |flow| = 2.0")


def test_names_and_titles_cannot_break_a_page(tmp_path: Path) -> None:
    simulate(tmp_path, steps=1)
    for ending in ("xmf", "h5"):
        (tmp_path / f"out.{ending}").rename(tmp_path / f"%DATA%<b>.{ending}")
    text = (tmp_path / "%DATA%<b>.xmf").read_text()
    (tmp_path / "%DATA%<b>.xmf").write_text(
        text.replace("out.h5", "%DATA%&lt;b&gt;.h5").replace(
            'Name="c"', 'Name="&lt;/script>%TITLE%"'
        )
    )
    page = view(tmp_path, "%DATA%<b>.xmf")
    told = probe(
        page, "tell({ title: document.title, field: at('field').options[0].text });", tmp_path
    )
    assert told["title"] == "%DATA%<b>" and told["field"] == "</script>%TITLE%"


def test_the_page_is_the_same_twice(tmp_path: Path) -> None:
    simulate(tmp_path)
    first = view(tmp_path, "out.xmf").read_text()
    assert first == view(tmp_path, "out.xmf").read_text()
    assert base64.b64decode(data_of(tmp_path / "page.html")["fields"][0]["frames"][0])
