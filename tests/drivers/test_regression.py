"""A reference is compared value by value, and a spoiled one fails."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.drivers import Verdict, build_driver
from ingot.errors import IngotError
from ingot.hit import read

TEXT = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 4))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.linspace(0, 1, 4).reshape(4, 1, 1) * torch.arange(12.0).reshape(2, 6))'
  []
[]
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '100 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'elasticity'
    prescribed_time = 'times'
    prescribed_SR2_names = 'strain'
    prescribed_SR2_values = 'strains'
  []
  [regression]
    type = TransientRegression
    driver = 'driver'
    reference = 'result.pt'
  []
[]
"""
Values = dict[str, Tensor]
KEY = "output.2.stress"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An input file beside the reference that it made itself."""
    path = tmp_path / "model.i"
    path.write_text(TEXT)
    build_driver(read(path), "driver").run("interpret").save(tmp_path / "result.pt")
    return path


def judged(file: Path, change: Callable[[Values], object] = lambda values: None) -> Verdict:
    """The verdict after a change of the reference."""
    reference = file.parent / "result.pt"
    values = torch.load(reference, weights_only=True)
    change(values)
    torch.save(values, reference)
    return build_driver(read(file), "regression").run("interpret")


def test_own_result_agrees(file: Path) -> None:
    verdict = judged(file)
    assert verdict.passed
    assert verdict.checks == 4 + 3


SPOILED: dict[str, Callable[[Values], object]] = {
    "a number is off": lambda values: values[KEY].add_(1.0),
    "a number is lost": lambda values: values[KEY].fill_(float("nan")),
    "a value is too many": lambda values: values.update({"output.9.stress": values[KEY]}),
    "a variable is unknown": lambda values: values.update({"output.2.other": values[KEY]}),
    "the precision is another": lambda values: values.update({KEY: values[KEY].float()}),
    "the components are others": lambda values: values.update({KEY: values[KEY][..., :1]}),
    "the batch is another": lambda values: values.update({KEY: values[KEY].repeat(2, 1)[:3]}),
    "an axis is too many": lambda values: values.update({KEY: values[KEY][None]}),
    "the batch is one point": lambda values: values.update(
        {"input.0.strain": values["input.0.strain"][:1]}
    ),
    "nothing is left": lambda values: values.clear(),
}


@pytest.mark.parametrize("change", SPOILED.values(), ids=SPOILED.keys())
def test_spoiled_reference_fails(change: Callable[[Values], object], file: Path) -> None:
    assert not judged(file, change).passed


def test_a_reference_without_the_batch_axis_agrees(file: Path) -> None:
    assert judged(
        file, lambda values: values.update({"input.0.strain": torch.zeros(6).double()})
    ).passed


def test_at_most_ten_mismatches_are_listed(file: Path) -> None:
    def change(values: Values) -> None:
        values.update({f"output.1.other{i}": torch.zeros(()) for i in range(12)})

    (problem,) = judged(file, change).problems
    rows = problem.message.splitlines()
    assert rows[0] == "12 of 19 values differ from 'result.pt'"
    assert len(rows) == 12 and rows[-1].strip() == "and 2 more"


def test_a_mismatch_tells_the_largest_errors(file: Path) -> None:
    (problem,) = judged(file, lambda values: values[KEY].mul_(2.0)).problems
    assert "output.2.stress: max abs error" in problem.message
    assert "max rel error 5.0e-01" in problem.message


@pytest.mark.parametrize("content", [b"", b"not a pickle"], ids=["empty", "text"])
def test_an_unreadable_reference_is_an_error(content: bytes, file: Path) -> None:
    (file.parent / "result.pt").write_bytes(content)
    with pytest.raises(IngotError, match="unreadable-reference"):
        build_driver(read(file), "regression").run("interpret")


def test_a_reference_must_hold_tensors(file: Path) -> None:
    torch.save({"output.1.stress": 1.0}, file.parent / "result.pt")
    with pytest.raises(IngotError, match="dictionary of tensors"):
        build_driver(read(file), "regression").run("interpret")


def test_an_older_reference_in_a_module_is_read(file: Path) -> None:
    class Holder(torch.nn.Module):
        def forward(self) -> None:
            return None

    values = torch.load(file.parent / "result.pt", weights_only=True)
    root = Holder()
    for key, value in values.items():
        side, step, name = key.split(".")
        for part in (side, f"{side}.{step}"):
            holder, _, last = part.rpartition(".")
            if not hasattr(root.get_submodule(holder), last):
                root.get_submodule(holder).add_module(last, Holder())
        root.get_submodule(f"{side}.{step}").register_buffer(name, value)
    torch.jit.script(root).save(file.parent / "result.pt")
    assert build_driver(read(file), "regression").run("interpret").passed


LOOSE = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 3, dtype=torch.float64).unsqueeze(-1).expand(3, 2))'
  []
  [ends]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, 900.0], dtype=torch.float64))'
  []
[]
[Models]
  [decay]
    type = PerzynaPlasticFlowRate
    yield_function = 'x'
    flow_rate = 'loss'
    reference_stress = 1
    exponent = 2
  []
  [rate]
    type = ScalarLinearCombination
    from = 'loss'
    to = 'x_rate'
    weights = '-1'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [residual]
    type = ComposedModel
    models = 'decay rate integrate'
  []
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
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
    rel_tol = 1e-2
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'update'
    prescribed_time = 'times'
    ic_Scalar_names = 'x'
    ic_Scalar_values = 'ends'
  []
  [regression]
    type = TransientRegression
    driver = 'driver'
    reference = 'result.pt'
  []
[]
"""


@pytest.mark.parametrize("made", ["point", "batch"])
def test_a_reference_may_come_from_points_that_stop_together(tmp_path: Path, made: str) -> None:
    path = tmp_path / "model.i"
    path.write_text(LOOSE)
    rule = f"Solvers/newton/stop:={made}"
    build_driver(read(path, [rule]), "driver").run("interpret").save(tmp_path / "result.pt")
    assert build_driver(read(path), "regression").run("interpret").passed
    assert build_driver(read(path, [rule]), "regression").run("interpret").passed
    other = "Solvers/newton/stop:=" + ("point" if made == "batch" else "batch")
    assert not build_driver(read(path, [other]), "regression").run("interpret").passed
