"""A verification compares rows with steps."""

import pytest

from ingot.drivers import Verdict, build_driver
from ingot.execute import Backend
from ingot.hit import read_text

TEXT = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.arange(4.0))'
  []
  [values]
    type = Python
    expr = 'Scalar(2 * torch.arange(4.0).reshape(4, 1))'
  []
  [rates]
    type = Python
    expr = 'Scalar(torch.tensor([0.0, 2.0, 2.0, 2.0]))'
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
    prescribed_time = 'times'
    prescribed_Scalar_names = 'y'
    prescribed_Scalar_values = 'values'
  []
  [verification]
    type = Verification
    driver = 'driver'
    Scalar_names = 'output.y_rate input.y'
    Scalar_values = 'rates values'
  []
[]
"""


def judged(*overrides: str, backend: Backend = "interpret") -> Verdict:
    return build_driver(read_text(TEXT, "model.i", overrides), "verification").run(backend)


def test_every_step_is_compared(backend: Backend) -> None:
    verdict = judged(backend=backend)
    assert verdict.passed, verdict.problems
    assert verdict.checks == 8


def test_a_step_without_a_value_counts_as_zero() -> None:
    (problem,) = judged("Tensors/rates/expr:='Scalar(2 * torch.ones(4))'").problems
    assert "output.0.y_rate" in problem.message


def test_a_wrong_row_fails() -> None:
    (problem,) = judged("Tensors/rates/expr:='Scalar(torch.tensor([0.0, 2, 3, 2]))'").problems
    assert "output.2.y_rate" in problem.message
    assert "1 of 8" in problem.message


def test_chosen_steps_are_compared_with_rows_in_turn() -> None:
    chosen = "Drivers/verification/time_steps='1 3'"
    values = "Drivers/verification/Scalar_names:='output.y_rate'"
    rows = "Drivers/verification/Scalar_values:='rates'"
    verdict = judged(chosen, values, rows, "Tensors/rates/expr:='Scalar(2 * torch.ones(2))'")
    assert verdict.passed, verdict.problems
    assert verdict.checks == 2


@pytest.mark.parametrize(("expected", "passed"), [("2.0", True), ("2.1", False)])
def test_one_step_is_compared_with_all_of_the_reference(expected: str, passed: bool) -> None:
    verdict = judged(
        "Drivers/verification/time_steps=3", "Drivers/verification/Scalar_names:='output.y_rate'",
        f"Drivers/verification/Scalar_values:={expected}",
    )  # fmt: skip
    assert verdict.passed == passed
