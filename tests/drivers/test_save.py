"""A result is written as the ending of its file says, and read back as it was."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from ingot.drivers import Result, TransientDriver, build_driver
from ingot.errors import IngotError
from ingot.hit import read, read_text
from ingot.model import Tensors
from ingot.types import SR2, Scalar

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
        assert set(found.files) == set(result.flat)
        assert all(np.array_equal(found[key], x.numpy()) for key, x in result.flat.items())


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
    with pytest.raises(IngotError, match=r"end it in one of: \.csv, \.npz, \.pt, \.pth"):
        result.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    line = f"    save_as = '{name}'\n    model = 'model'"
    with pytest.raises(IngotError, match="unknown-ending"):
        build_driver(read_text(TEXT.replace("    model = 'model'", line)), "driver")
