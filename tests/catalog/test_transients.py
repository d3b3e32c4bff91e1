"""Transients of the other physics come to the numbers that NEML2 3.1.0 comes to."""

from pathlib import Path

import pytest
import torch

from ingot import build_driver, read
from ingot.drivers.result import Result
from ingot.execute import Backend
from ingot.hit import read_text

FRACTURE = Path(__file__).parent / "fracture.i"
BACKENDS: tuple[Backend, ...] = ("interpret", "kernel")


def transient(file: Path | str, backend: Backend, *overrides: str) -> Result:
    tree = read(file, overrides) if isinstance(file, Path) else read_text(file, overrides)
    return build_driver(tree, "driver").run(backend)  # type: ignore[reportReturnType]


def assert_close(ours: torch.Tensor, theirs: object) -> None:
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64), rtol=1e-9, atol=0.0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_phase_that_may_grow_cracks_in_as_many_iterations_as_the_peer(backend: Backend) -> None:
    result = transient(FRACTURE, backend, "Models/complementarity/a_inequality:=GE")
    phase, stress = result.outputs["d"].flatten(), result.outputs["S"].reshape(-1, 6)
    assert_close(phase[[499, 999]], [0.6439711792372176, 0.9958038889793348])
    assert_close(stress[999, 0], 0.006169137145895671)
    (status,) = result.statuses
    assert int(status.iterations.sum()) == 2539


@pytest.mark.exhaustive
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_phase_that_may_not_grow_stays_whole(backend: Backend) -> None:
    result = transient(FRACTURE, backend)
    assert not result.outputs["d"].any()
    expected = [350.37288135593224, -175.18644067796615, -175.18644067796612, 0.0, 0.0, 0.0]
    assert_close(result.outputs["S"].reshape(-1, 6)[-1], expected)
    (status,) = result.statuses
    assert int(status.iterations.sum()) == 0  # every step is accepted at its first guess


SOLIDIFICATION = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 100, 100).unsqueeze(-1))'
  []
  [temperatures]
    type = Python
    expr = 'Scalar(torch.linspace(1800, 1400, 100).unsqueeze(-1))'
  []
[]
[Models]
  [liquid]
    type = HermiteSmoothStep
    argument = 'T'
    value = 'cliquid'
    lower_bound = 1600
    upper_bound = 1700
  []
  [solid]
    type = HermiteSmoothStep
    argument = 'T'
    value = 'omcliquid'
    lower_bound = 1600
    upper_bound = 1700
    complement = true
  []
  [eta]
    type = SymmetricHermiteInterpolation
    argument = 'T'
    lower_bound = 1600
    upper_bound = 1700
  []
  [rate]
    type = ScalarVariableRate
    variable = 'T'
  []
  [heat]
    type = ScalarMultiplication
    from = 'eta T_rate'
    scaling = -14832
    to = 'q'
  []
  [phif_rate]
    type = ScalarConstantParameter
    value = 0
  []
  [fraction]
    type = ScalarForwardEulerTimeIntegration
    variable = 'phif'
  []
  [phif_l]
    type = ScalarMultiplication
    from = 'cliquid phif'
    to = 'phif_l'
  []
  [phif_s]
    type = ScalarMultiplication
    from = 'omcliquid phif'
    to = 'phif_s'
  []
  [model]
    type = ComposedModel
    models = 'liquid solid eta rate heat phif_rate fraction phif_l phif_s'
    additional_outputs = 'phif eta'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'model'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'T'
    prescribed_Scalar_values = 'temperatures'
    ic_Scalar_names = 'phif'
    ic_Scalar_values = '1'
  []
[]
"""


def test_solidification_sets_free_the_heat_of_the_peer() -> None:
    result = transient(SOLIDIFICATION, "interpret")
    assert_close(result.outputs["q"][49, 0], 5.6546007364741735)
    assert_close(result.outputs["eta"][49, 0], 9.531082686883651e-05)
    assert_close(result.outputs["phif_l"][49, 0], 0.0012078750982945114)
    whole = result.outputs["phif_l"] + result.outputs["phif_s"]
    torch.testing.assert_close(whole[1:], result.outputs["phif"][1:], rtol=1e-14, atol=0.0)
