"""A point that fails is written as an input file of its own, which fails in the same way."""

from pathlib import Path

import pytest
import torch

from ingot.drivers import TransientDriver, build_driver, require_converged
from ingot.errors import IngotError
from ingot.execute import Backend
from ingot.hit import read
from ingot.model.write import expression
from ingot.types import SR2, Scalar

TEXT = """
size = 4
[Tensors]
  [times]
    type = CSVScalar
    csv_file = 'times.csv'
    variable = 'time'
  []
  [loads]
    type = Python
    expr = 'Scalar(torch.tensor([[1.0, 1, 1], [1.1, 1, 1.3], [1.2, -0.1, 1.6], [1.3, 1, 1.9]]))'
  []
  [shifts]
    type = Python
    expr = 'Scalar(torch.tensor([0.0, 0.125, 0.0]) * one)'
  []
  [one]
    type = Python
    expr = '1.0'
  []
  [start]
    type = Python
    expr = 'Scalar(torch.tensor([[1.0], [1.25]]))'
  []
[]
[Models]
  [square]
    type = ScalarLinearCombination
    from = 'x'
    to = 'y'
    weights = 'x'
    offset = 'shifts'
  []
  [balance]
    type = ScalarLinearCombination
    from = 'y a'
    to = 'x_residual'
    weights = '1 -1'
  []
  [residual]
    type = ComposedModel
    models = 'square balance'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x'
  []
  [root]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'guess'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = Newton
    max_its = 12
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'root'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'a'
    prescribed_Scalar_values = 'loads'
    ic_Scalar_names = 'x'
    ic_Scalar_values = 'start'
    save_as = 'result.pt'
  []
[]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an input file of six points, two of which fail at step 2."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "model.i").write_text(TEXT)
    (tmp_path / "cases" / "times.csv").write_text("time\n0\n1\n2\n3\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def driver_of(file: str, *overrides: str) -> TransientDriver:
    driver = build_driver(read(file, overrides), "driver")
    assert isinstance(driver, TransientDriver)
    return driver


def test_the_saved_point_fails_alone(folder: Path, backend: Backend) -> None:
    driver = driver_of("cases/model.i")
    result = driver.run(backend)
    assert (result.batch, result.failed) == ((2, 3), 2)
    with pytest.raises(IngotError, match="2 of 6 points did not converge") as raised:
        require_converged(driver, result)
    assert "ingot run failed/root.i" in str(raised.value)

    alone = driver_of("failed/root.i")
    again = alone.run(backend)
    assert (again.batch, again.steps, again.failed) == ((), 3, 1)
    (status,), (single,) = result.statuses, again.statuses
    step, point = status.worst() or (0, 0)
    assert step == 2
    assert point in (1, 4)
    torch.testing.assert_close(single.residual[:, 0], status.residual[:2, point])
    assert torch.equal(single.iterations[:, 0], status.iterations[:2, point])


def test_the_saved_file_is_whole_and_small(folder: Path) -> None:
    driver = driver_of("cases/model.i")
    with pytest.raises(IngotError):
        require_converged(driver, driver.run("interpret"))
    (folder / "cases" / "times.csv").unlink()
    tree = read("failed/root.i")
    assert tree.names("Tensors") == ("time", "prescribed_a")
    assert tree.require("Models", "square").require("offset").number() == 0.125
    assert tree.require("Drivers", "driver").require("ic_Scalar_values").number() in (1.0, 1.25)
    assert tree.names("Drivers") == ("driver",)
    assert tree.require("Drivers", "driver").field("save_as") is None
    assert driver_of("failed/root.i").run("interpret").failed == 1


def test_numbers_of_a_table_are_written_out(folder: Path) -> None:
    driver = driver_of(
        "cases/model.i", "Tensors/table/type=CSVScalar", "Tensors/table/csv_file=times.csv",
        "Tensors/table/variable=time", "Tensors/zero/type=Python",
        "Tensors/zero/expr='Scalar(table.data[0])'", "Models/balance/offset=zero",
    )  # fmt: skip
    with pytest.raises(IngotError):
        require_converged(driver, driver.run("interpret"))
    assert read("failed/root.i").require("Models", "balance").require("offset").number() == 0.0
    (folder / "cases" / "times.csv").unlink()
    assert driver_of("failed/root.i").run("interpret").failed == 1


def test_nothing_is_raised_where_all_converge(folder: Path) -> None:
    driver = driver_of("cases/model.i")
    driver.forces["a"].value.data.clamp_(min=1.0)
    require_converged(driver, driver.run("interpret"))
    assert not Path("failed").exists()


@pytest.mark.parametrize(
    "value",
    [
        Scalar(0.1), Scalar([float("nan"), float("-inf")]), SR2(torch.rand(40, 6).double()),
        SR2(torch.zeros(2, 0, 6)), SR2(torch.zeros(0, 3, 6)), Scalar(torch.zeros(0)),
    ],
)  # fmt: skip
def test_expressions_keep_every_bit(value: Scalar) -> None:
    import math

    names = {"Scalar": Scalar, "SR2": SR2, "torch": torch, "math": math}
    again = eval(expression(type(value), value.data, value.sub), names)
    assert type(again) is type(value)
    assert torch.equal(again.data.nan_to_num(7.0), value.data.double().nan_to_num(7.0))
