"""A result is written as the ending of its file says, and read back as it was."""

import csv
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ingot.drivers import Result, TransientDriver, build_driver, read_result
from ingot.drivers.formats.choice import FORMATS
from ingot.drivers.formats.content import take_apart
from ingot.errors import IngotError
from ingot.execute.status import STATUS_ROWS
from ingot.extras import EXTRAS
from ingot.hit import read, read_text
from ingot.model import Tensors
from ingot.types import MRP, SR2, Scalar, Value, Vec
from tests.drivers.drawn_results import draw_result

TEXT = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 4))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.rand(4, 3, 6, generator=torch.Generator().manual_seed(0)))'
  []
  [moduli]
    type = Python
    expr = 'Scalar(torch.tensor([[100.0], [200.0]]))'
  []
  [start]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, 2.0]), sub_batch_ndim=1)'
  []
[]
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = 'moduli 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
  [old]
    type = ScalarLinearCombination
    from = 'x~1 t'
    weights = '1 1'
    to = 'x'
  []
  [model]
    type = ComposedModel
    models = 'elasticity old'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'model'
    prescribed_time = 'times'
    prescribed_SR2_names = 'strain'
    prescribed_SR2_values = 'strains'
    ic_Scalar_names = 'x'
    ic_Scalar_values = 'start'
  []
[]
"""


@pytest.fixture(scope="module")
def result() -> Result:
    driver = build_driver(read_text(TEXT), "driver")
    assert isinstance(driver, TransientDriver)
    return driver.run("interpret")


@pytest.mark.parametrize("name", ["result.pt", "result.pth", "RESULT.PT"])
def test_torch_reads_an_archive(result: Result, name: str, tmp_path: Path) -> None:
    result.save(tmp_path / name)
    found = torch.load(tmp_path / name, weights_only=True)
    assert found.keys() == set(result.flat)
    assert all(torch.equal(found[key], value) for key, value in result.flat.items())


def test_numpy_reads_an_archive(result: Result, tmp_path: Path) -> None:
    result.save(str(tmp_path / "result.npz"))
    with np.load(tmp_path / "result.npz") as found:
        assert np.array_equal(found["outputs/stress"], result.outputs["stress"].numpy())
        assert np.array_equal(found["inputs/strain"], result.inputs["strain"].numpy())
        assert np.array_equal(found["initial/x"], result.initial["x"].numpy())
        assert np.array_equal(found["times"], result.times.numpy())


def test_a_table_has_a_row_for_each_step_and_point_and_a_column_for_each_component(
    result: Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "result.csv")
    with (tmp_path / "result.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert result.batch == (2, 3)
    assert [(int(r["step"]), int(r["point"])) for r in rows] == [
        (step, point) for step in range(4) for point in range(6)
    ]
    assert list(rows[0])[:4] == ["step", "time", "point", "input.t"]
    axes = ("xx", "yy", "zz", "yz", "xz", "xy")
    for row in rows:
        step, point = int(row["step"]), int(row["point"])
        where = (point // 3, point % 3)
        assert float(row["time"]) == float(row["input.t"]) == pytest.approx(step / 3)
        for i, axis in enumerate(axes):
            given = result.inputs["strain"][step, where[1], i]
            assert float(row[f"input.strain_{axis}"]) == float(given)
            cell = row[f"output.stress_{axis}"]
            stress = result.outputs["stress"][(step, *where, i)]
            assert cell == "" if step == 0 else float(cell) == float(stress)
        for site in range(2):
            x = result.outputs["x"].expand(4, 2, 3, 2)[(step, *where, site)]
            assert float(row[f"output.x[{site}]"]) == float(x)


def test_a_table_is_read_back_by_a_block_of_columns(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result.csv")
    (tmp_path / "next.i").write_text(
        """
[Tensors]
  [strain]
    type = CSVSR2
    csv_file = result.csv
    variable = 'input.strain'
  []
  [time]
    type = CSVScalar
    csv_file = result.csv
    variable = time
  []
[]
""".replace("result.csv", "given.csv")
    )
    with (tmp_path / "result.csv").open() as stream:
        rows = list(csv.reader(stream))
    kept = [i for i, name in enumerate(rows[0]) if not name.startswith("output.")]
    with (tmp_path / "given.csv").open("w") as stream:
        csv.writer(stream).writerows([[row[i] for i in kept] for row in rows])
    found = Tensors(read(tmp_path / "next.i"))
    strain, time = found["strain"], found["time"]
    assert isinstance(strain, SR2)
    assert isinstance(time, Scalar)
    wanted = result.inputs["strain"][:, None].expand(4, 2, 3, 6).reshape(24, 6)
    assert torch.equal(strain.data, wanted)


@pytest.mark.parametrize("name", ["result", "result.txt", "result.csv.gz", ".csv"])
def test_an_ending_that_says_nothing_is_refused(result: Result, name: str, tmp_path: Path) -> None:
    with pytest.raises(IngotError, match=r"end it in one of: \.csv, \.npz, \.pt, \.pth, \.h5"):
        result.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    line = f"    save_as = '{name}'\n    model = 'model'"
    with pytest.raises(IngotError, match="unknown-ending"):
        build_driver(read_text(TEXT.replace("    model = 'model'", line)), "driver")


SLIP = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 4))'
  []
  [stresses]
    type = Python
    expr = 'SR2(torch.rand(4, 2, 6, generator=torch.Generator().manual_seed(0)))'
  []
  [lattice]
    type = Python
    expr = 'Scalar(0.3615)'
  []
  [directions]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 0]))'
  []
  [planes]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 1]))'
  []
[]
[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 'lattice'
    slip_directions = 'directions'
    slip_planes = 'planes'
  []
[]
[Models]
  [shear]
    type = ResolvedShear
    stress = 'stress'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'shear'
    prescribed_time = 'times'
    prescribed_SR2_names = 'stress'
    prescribed_SR2_values = 'stresses'
  []
[]
"""


def test_slip_systems_that_no_input_has_are_columns(tmp_path: Path) -> None:
    driver = build_driver(read_text(SLIP), "driver")
    assert isinstance(driver, TransientDriver)
    result = driver.run("interpret")
    assert result.shapes["resolved_shears"] == (12,) and result.axes["resolved_shears"] == ("slip",)
    result.save(tmp_path / "slip.csv")
    found = read_result(tmp_path / "slip.csv")
    assert torch.equal(found.outputs["resolved_shears"], result.outputs["resolved_shears"])


def describe_bits(result: Result) -> tuple[object, dict[str, Any]]:
    """All of a result, arrays as bytes."""
    content = take_apart(result)
    arrays = {key: (x.dtype, x.shape, x.tobytes()) for key, x in content.arrays.items()}
    return content.header, arrays


def skip_without(suffix: str) -> None:
    needs = FORMATS[suffix].needs
    if needs is not None:
        pytest.importorskip(needs, reason=f"{suffix} files need ingot[{EXTRAS[needs]}]")


WHOLE = [suffix for suffix in FORMATS if suffix != ".csv"]
DRAWS = [(s, seed) for s in WHOLE for seed in range(3 if s == ".zarr" else 25)]
MANY = [(s, seed) for s in WHOLE for seed in range(100, 140 if s == ".zarr" else 400)]


def check_round_trip(suffix: str, seed: int, folder: Path) -> None:
    skip_without(suffix)
    result = draw_result(seed)
    result.save(folder / f"a result{suffix}")
    assert [p.name for p in folder.iterdir()] == [f"a result{suffix}"]
    assert describe_bits(read_result(folder / f"a result{suffix}")) == describe_bits(result)


@pytest.mark.parametrize(("suffix", "seed"), DRAWS)
def test_a_result_is_read_back_bit_for_bit(suffix: str, seed: int, tmp_path: Path) -> None:
    check_round_trip(suffix, seed, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("suffix", "seed"), MANY)
def test_many_results_are_read_back_bit_for_bit(suffix: str, seed: int, tmp_path: Path) -> None:
    check_round_trip(suffix, seed, tmp_path)


@pytest.mark.parametrize("seed", range(25))
def test_a_table_gives_back_what_its_columns_hold(seed: int, tmp_path: Path) -> None:
    result = draw_result(seed)
    result.save(tmp_path / "result.csv")
    found = read_result(tmp_path / "result.csv")
    assert (found.steps, found.points) == (result.steps, result.points)
    alike: dict[type[Value], type[Value]] = {MRP: Vec}  # their components have the same names
    for side in ("inputs", "outputs"):
        wanted = getattr(result, side)
        assert list(getattr(found, side)) == list(wanted)
        for name, values in wanted.items():
            kind = result.kinds[name]
            assert found.kinds[name] is alike.get(kind, kind)
            rank = len(result.shapes.get(name, ())) + len(kind.base)
            whole = result.spread(values, rank).double()
            whole = whole.reshape(result.steps, result.points, *whole.shape[whole.ndim - rank :])
            own = getattr(found, side)[name]
            assert own.numpy().tobytes() == whole.contiguous().numpy().tobytes()
    for mine, theirs in zip(found.statuses, result.statuses, strict=True):
        assert mine.solve == theirs.solve and mine.begin == theirs.begin
        for row in STATUS_ROWS:
            a, b = getattr(mine, row).numpy(), getattr(theirs, row).numpy()
            assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=row == "residual")


def test_columns_of_two_variables_never_share_a_name(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason=".parquet files need ingot[parquet]")
    inputs = {"a": torch.rand(2, 6), "a_xx": torch.rand(2)}
    kinds = {"a": SR2, "a_xx": Scalar}
    times = torch.arange(2.0)
    result = Result(2, (), inputs, {}, {}, ("a", "a_xx"), (), 0.0, times, kinds, {})
    result.save(tmp_path / "r.parquet")
    assert describe_bits(read_result(tmp_path / "r.parquet")) == describe_bits(result)


def test_other_programs_read_the_labels(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason=".h5 files need ingot[fields]")
    parquet = pytest.importorskip("pyarrow.parquet", reason=".parquet files need ingot[parquet]")
    zarr = pytest.importorskip("zarr", reason=".zarr folders need ingot[zarr]")
    stress = torch.rand(3, 2, 6, dtype=torch.float64)
    result = Result(3, (2,), {}, {}, {"stress": stress}, (), (), 0.0, torch.arange(3.0),
                    {"stress": SR2}, {}, units={"stress": "MPa"})  # fmt: skip
    for suffix in (".h5", ".parquet", ".zarr"):
        result.save(tmp_path / f"r{suffix}")
    with h5py.File(tmp_path / "r.h5") as store:
        found = store["outputs/stress"]
        assert np.array_equal(found[()], stress.numpy())
        assert [d.label for d in found.dims] == ["step", "batch", "SR2"]
        assert (found.attrs["units"], found.attrs["components"]) == ("MPa", "xx yy zz yz xz xy")
    array = zarr.open_group(tmp_path / "r.zarr", mode="r")["outputs/stress"]
    assert array.metadata.dimension_names == ("step", "batch", "SR2")
    assert np.array_equal(array[...], stress.numpy())
    rows = parquet.read_table(tmp_path / "r.parquet")
    assert rows["output.stress_xx"].null_count == 2  # step 0 is not computed
    assert rows["output.stress_yy"].to_pylist()[2:] == stress[1:, :, 1].reshape(-1).tolist()


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_a_file_is_written_whole_or_not_at_all(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without(suffix)
    result, place = draw_result(7), tmp_path / f"r{suffix}"
    result.save(place)
    before = describe_bits(read_result(place))
    form = FORMATS[suffix]

    def fail(result: Result, file: Path) -> None:
        form.write(result, file)
        raise KeyboardInterrupt

    monkeypatch.setitem(FORMATS, suffix, replace(form, write=fail))
    with pytest.raises(KeyboardInterrupt):
        draw_result(8).save(place)
    assert [p.name for p in tmp_path.iterdir()] == [place.name]
    assert describe_bits(read_result(place)) == before


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_a_file_that_is_cut_off_or_foreign_is_told(suffix: str, tmp_path: Path) -> None:
    skip_without(suffix)
    place = tmp_path / f"r{suffix}"
    draw_result(7).save(place)
    files = [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
    for content in (b"", b"nothing", files[0].read_bytes()[: files[0].stat().st_size // 3]):
        for file in files:
            file.write_bytes(content)
        with pytest.raises(IngotError, match=r"error\[unreadable-result\].*holds no result"):
            read_result(place)
    with pytest.raises(IngotError, match=r"file-not-found.*\n.*did you mean 'r\."):
        read_result(tmp_path / f"rr{suffix}")


def test_a_reference_of_neml2_is_told_apart(tmp_path: Path) -> None:
    torch.save({"output.1.stress": torch.zeros(6)}, tmp_path / "gold.pt")
    with pytest.raises(IngotError, match="without the kinds of its variables"):
        read_result(tmp_path / "gold.pt")


def test_a_folder_that_is_no_result_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason=".zarr folders need ingot[zarr]")
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "notes.txt").write_text("keep")
    with pytest.raises(IngotError, match="foreign-files"):
        draw_result(1).save(tmp_path / "mine.zarr")
    assert (tmp_path / "mine.zarr" / "notes.txt").read_text() == "keep"


@pytest.mark.parametrize("suffix", [suffix for suffix, form in FORMATS.items() if form.needs])
def test_what_is_not_installed_is_told_before_the_run(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = FORMATS[suffix].needs
    assert needs is not None
    monkeypatch.setitem(sys.modules, needs, None)
    wanted = rf"pip install 'ingot\[{EXTRAS[needs]}\]'"
    line = f"    save_as = 'r{suffix}'\n    model = 'model'"
    with pytest.raises(IngotError, match=wanted):
        build_driver(read_text(TEXT.replace("    model = 'model'", line)), "driver")
    with pytest.raises(IngotError, match=wanted):
        draw_result(1).save(tmp_path / f"r{suffix}")
    assert list(tmp_path.iterdir()) == []
