"""A transient steps through what is prescribed, and keeps what the save format asks for."""

from pathlib import Path
from typing import get_args

import pytest
import torch

from ingot import compile_model
from ingot.cli.run import summary
from ingot.drivers import TransientDriver, build_driver
from ingot.drivers.diagnosis import diagnose
from ingot.drivers.result import Result
from ingot.drivers.transient import transient_driver
from ingot.errors import IngotError
from ingot.execute import Backend
from ingot.hit import read, read_text
from ingot.model import Factory
from ingot.package.target import Target
from ingot.runtime.stub import AOTIModel
from tests import packages

DECAY = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 5))'
  []
  [start]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, 2.0, 3.0]))'
  []
[]
[Models]
  [rate]
    type = ScalarLinearCombination
    from = 'x'
    to = 'x_rate'
    weights = '-2'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [residual]
    type = ComposedModel
    models = 'rate integrate'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x'
  []
  [decay]
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
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'decay'
    prescribed_time = 'times'
    ic_Scalar_names = 'x'
    ic_Scalar_values = 'start'
  []
[]
"""


def driver_of(*overrides: str) -> TransientDriver:
    return transient_driver(Factory(read_text(DECAY, "decay.i", overrides)), "driver")


def test_steps_follow_backward_euler(backend: Backend) -> None:
    result = driver_of().run(backend)
    exact = torch.tensor([1.0, 2.0, 3.0]) * (1 / 1.5) ** torch.arange(5.0)[:, None]
    torch.testing.assert_close(result.outputs["x"], exact.double())
    assert (result.steps, result.batch, result.points, result.failed) == (5, (3,), 3, 0)


def test_one_time_is_a_run_of_the_initial_step(backend: Backend) -> None:
    driver = driver_of("Tensors/times/expr:='Scalar(torch.zeros(1))'")
    result = driver.run(backend)
    assert torch.equal(result.flat["output.0.x"], torch.tensor([1.0, 2.0, 3.0]).double())
    assert result.steps == 1 and "output.1.x" not in result.flat
    for told in summary(driver, result, backend)["solves"].values():
        assert (told["mean_iterations"], told["most_iterations"]) == (0, 0)
    assert all(solve.is_easy for solve in diagnose(driver, backend).solves)


def test_no_time_is_told_where_it_is_named() -> None:
    with pytest.raises(IngotError, match="'times' holds no time") as error:
        driver_of("Tensors/times/expr:='Scalar(torch.zeros(0))'")
    (problem,) = error.value.problems
    assert problem.code == "shapes-differ" and problem.span is not None and problem.fix


def test_a_run_does_not_look_through_the_program_again(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = driver_of()
    first = driver.run("interpret").outputs["x"]
    monkeypatch.setattr("ingot.drivers.transient.find_opaque", lambda program: 1 / 0)
    assert torch.equal(driver.run("interpret").outputs["x"], first)


def test_every_step_keeps_what_was_given_and_computed() -> None:
    flat = driver_of().run("interpret").flat
    assert [key for key in flat if ".0." in key] == ["input.0.t", "output.0.x"]
    assert {key for key in flat if ".1." in key} == {
        "input.1.t", "input.1.t~1", "input.1.x~1", "output.1.x"
    }  # fmt: skip
    assert len(flat) == 2 + 4 * 4
    assert torch.equal(flat["input.3.x~1"], flat["output.2.x"])
    assert torch.equal(flat["input.1.x~1"], flat["output.0.x"])


@pytest.mark.parametrize(
    "key", ["output.0.t", "output.5.x", "input.1.x", "x", "output.one.x", "other.1.x", "output.1.y"]
)
def test_other_keys_do_not_exist(key: str) -> None:
    assert key not in driver_of().run("interpret").flat


def test_a_history_is_there_once_its_variable_was() -> None:
    driver = driver_of("Tensors/start/expr:='Scalar(0.5)'", "Drivers/driver/ic_Scalar_names:=''",
                       "Drivers/driver/ic_Scalar_values:=''")  # fmt: skip
    flat = driver.run("interpret").flat
    assert "output.0.x" not in flat and "input.1.x~1" not in flat
    assert "input.2.x~1" in flat


def test_step_zero_keeps_its_own_shape() -> None:
    flat = driver_of("Drivers/driver/ic_Scalar_values:=4").run("interpret").flat
    assert flat["output.0.x"].shape == ()
    assert flat["output.1.x"].shape == ()


def test_a_number_is_an_initial_value(backend: Backend) -> None:
    result = driver_of("Drivers/driver/ic_Scalar_values:=4").run(backend)
    assert result.batch == ()
    assert float(result.outputs["x"][1]) == pytest.approx(4 / 1.5)


def test_a_saved_result_is_read_again(tmp_path: Path) -> None:
    result = driver_of().run("interpret")
    result.save(tmp_path / "result.pt")
    loaded = torch.load(tmp_path / "result.pt", weights_only=True)
    assert loaded.keys() == result.flat.keys()
    assert all(torch.equal(loaded[key], value) for key, value in result.flat.items())


def test_save_as_writes_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    driver_of("Drivers/driver/save_as:=result.pt").run("interpret")
    assert (tmp_path / "result.pt").is_file()


def test_the_model_is_prepared_once(backend: Backend) -> None:
    driver = driver_of()
    assert driver.prepare(backend) is driver.prepare(backend)
    assert driver.prepare_seconds[backend] > 0


def test_a_declared_extent_spreads_an_initial_value(backend: Backend) -> None:
    declared = "Settings/example_batch_shape/x='(2; 4)'"
    result = driver_of(declared, "Drivers/driver/ic_Scalar_values:=4").run(backend)
    assert result.outputs["x"].shape == (5, 4)
    assert result.flat["output.0.x"].shape == ()


def test_marked_and_declared_extents_agree(backend: Backend) -> None:
    marked = "Tensors/start/expr:='Scalar(torch.tensor([1.0, 2.0, 3.0]), sub_batch_ndim=1)'"
    plain, sub = driver_of().run(backend), driver_of(marked).run(backend)
    assert (plain.batch, sub.batch) == ((3,), ())
    torch.testing.assert_close(plain.outputs["x"], sub.outputs["x"])


def test_a_prescribed_value_may_have_another_start() -> None:
    text = """
[Tensors]
  [rows]
    type = Python
    expr = 'Scalar(torch.arange(4.0))'
  []
[]
[Models]
  [rate]
    type = ScalarVariableRate
    variable = 'y'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'rate'
    prescribed_time = 'rows'
    prescribed_Scalar_names = 'y'
    prescribed_Scalar_values = 'rows'
    ic_Scalar_names = 'y'
    ic_Scalar_values = '-1'
  []
[]
"""
    driver = build_driver(read_text(text), "driver")
    assert isinstance(driver, TransientDriver)
    result = driver.run("interpret")
    assert result.outputs["y_rate"][1:].tolist() == [2.0, 1.0, 1.0]
    assert result.flat["input.0.y"] == -1


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_label_tells_what_of_a_package_runs() -> None:
    """Whatever backend is asked for: a package is not interpreted, and may hold graphs alone."""
    stub = packages.decay().package.stub
    assert stub is not None
    driver = build_driver(read(stub), "driver")
    assert isinstance(driver, TransientDriver)
    labels = {backend: driver.label(backend) for backend in get_args(Backend)}
    assert labels == {
        "interpret": "kernel package", "kernel": "kernel package", "inductor": "inductor package",
    }  # fmt: skip
    body = driver.model.body
    graphs = AOTIModel(packages.decay().artifact("inductor"), body.load)
    driver.model.body = graphs
    assert {driver.label(b) for b in get_args(Backend)} == {"inductor package"}
    assert driver.executor("kernel") is graphs.artifact
    driver.model.body = body
    by_kernel, by_graphs = driver.run("kernel"), driver.run("inductor")
    assert driver.executor("inductor").backend == "inductor"  # pyright: ignore
    for name, values in by_kernel.outputs.items():
        torch.testing.assert_close(by_graphs.outputs[name], values, rtol=1e-9, atol=1e-12)


@pytest.mark.exhaustive
def test_a_live_model_runs_as_compiled_graphs() -> None:
    driver = build_driver(read_text(DECAY), "driver")
    assert isinstance(driver, TransientDriver)
    wanted = driver.run("interpret")
    found = driver.run("inductor")
    assert driver.label("inductor") == "inductor"
    assert found.statuses[0].iterations.tolist() == wanted.statuses[0].iterations.tolist()
    for name, values in wanted.outputs.items():
        torch.testing.assert_close(found.outputs[name], values, rtol=1e-12, atol=1e-14)


def test_values_without_a_step_are_told() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tour.md").read_text()
    text = page.split("```ini\n")[1].split("```")[0]
    none = text.replace("torch.linspace(0, 1, 5)[:, None]", "torch.zeros(0)[:, None]")
    with pytest.raises(IngotError, match="'strain' has 0 steps"):
        build_driver(read_text(none), "stretch")


def test_times_that_a_package_in_single_precision_cannot_tell_apart_are_refused(
    tmp_path: Path,
) -> None:
    target = Target(output_dir=tmp_path, dtype="float32", baseline=False)
    text = "[Models]\n[rate]\ntype = ScalarVariableRate\nvariable = 'x'\n[]\n[]"
    compile_model(read_text(text), "rate", target)
    artifact = f"[Models]\n[m]\ntype = AOTIModel\nartifact_path = '{tmp_path / 'rate'}'\n[]\n[]\n"

    def run(begin: float, kind: str) -> Result:
        times = f"Scalar({begin} + torch.linspace(0, 1e-2, 11))"
        values = f"[times]\ntype = Python\nexpr = '{times}'\n[]\n"
        values += "[x]\ntype = Python\nexpr = 'Scalar(torch.linspace(0, 2, 11))'\n[]\n"
        model = artifact if kind == "package" else text.replace("rate]", "m]")
        block = "[Drivers]\n[d]\ntype = TransientDriver\nmodel = m\nprescribed_time = times\n"
        block += "prescribed_Scalar_names = x\nprescribed_Scalar_values = x\n[]\n[]\n"
        driver = build_driver(read_text(f"{model}[Tensors]\n{values}[]\n{block}"), "d")
        assert isinstance(driver, TransientDriver)
        return driver.run("interpret")

    expected = torch.full((10,), 200.0, dtype=torch.float64)
    for begin, kind in ((0.0, "package"), (1e4, "live")):
        found = run(begin, kind).outputs["x_rate"][1:].double()
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    with pytest.raises(IngotError, match=r"is 0\.000976562 in float32") as raised:
        run(1e4, "package")
    (problem,) = raised.value.problems
    assert problem.code == "lost-step"
    assert problem.span is not None and problem.span.block == "Drivers/d"
