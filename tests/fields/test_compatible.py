"""The compatibility switch: what the reference does, and what the mathematics says."""

from collections.abc import Callable

import pytest
import torch

from ingot.errors import IngotError
from ingot.fields import Result
from tests.fields.drawn_inputs import block, section

Simulate = Callable[..., Result]
RIGHT = "Problem/marlin_compatible=false"

GROWTH = """
[Domain]
  dim = 1
  nx = 4
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ConstantTensor
      buffer = u
      real = 1
    []
  []
  [Solve]
    [ubar]
      type = ForwardFFT
      buffer = ubar
      input = u
    []
    [rate]
      type = ParsedCompute
      buffer = rate
      inputs = ubar
      expression = 'ubar'
    []
  []
[]
[TensorSolver]
  type = AdamsBashforthMoulton
  buffer = u
  reciprocal_buffer = ubar
  linear_reciprocal = 0
  nonlinear_reciprocal = rate
  substeps = 2
[]
[Postprocessors]
  [u]
    type = TensorAveragePostprocessor
    buffer = u
  []
  [change]
    type = TensorIntegralChangePostprocessor
    buffer = u
  []
[]
[Executioner]
  type = Transient
  dt = 0.2
  num_steps = 2
[]
"""


def test_the_reference_keeps_no_history_in_its_first_step(simulate: Simulate) -> None:
    h = 0.1
    euler = (1 + h) ** 2
    assert simulate(GROWTH).values[1]["u"] == pytest.approx(euler)
    second = 1 + h + h * (1.5 * (1 + h) - 0.5)
    assert simulate(GROWTH, RIGHT).values[1]["u"] == pytest.approx(second)


def test_a_change_is_over_the_last_substep_or_over_the_step(simulate: Simulate) -> None:
    values = simulate(GROWTH).values
    assert values[1]["change"] == pytest.approx(values[1]["u"])  # nothing to compare with
    assert 0 < values[2]["change"] < 0.6 * (values[2]["u"] - values[1]["u"])
    values = simulate(GROWTH, RIGHT).values
    assert values[1]["change"] == pytest.approx(values[1]["u"] - 1)
    assert values[2]["change"] == pytest.approx(values[2]["u"] - values[1]["u"])


def test_a_corrector_of_first_order_is_skipped_by_the_reference(simulate: Simulate) -> None:
    corrected = ("TensorSolver/corrector_steps=1", "TensorSolver/corrector_order=1",
                 "TensorSolver/predictor_order=1", "TensorSolver/substeps=1")  # fmt: skip
    h = 0.2
    assert simulate(GROWTH, *corrected).values[1]["u"] == pytest.approx(1 + h)
    assert simulate(GROWTH, *corrected, RIGHT).values[1]["u"] == pytest.approx(1 + h * (1 + h))


def test_the_reference_goes_on_with_the_rate_of_the_predicted_field(simulate: Simulate) -> None:
    corrected = ("TensorSolver/corrector_steps=1", "TensorSolver/substeps=1")
    h = 0.2

    def two_steps(*, stored: str) -> float:
        u, old = 1.0, None
        for _ in range(2):
            rate = u
            predicted = u + h * (rate if old is None else 1.5 * rate - 0.5 * old)
            old = predicted if stored == "predicted" else rate
            u = u + h / 2 * (predicted + rate)
        return u

    predicted, present = two_steps(stored="predicted"), two_steps(stored="present")
    assert simulate(GROWTH, *corrected).values[2]["u"] == pytest.approx(predicted)
    assert simulate(GROWTH, *corrected, RIGHT).values[2]["u"] == pytest.approx(present)


COUPLED = "\n".join(
    (
        block("Domain", dim=1, nx=8, xmax="${fparse 2*pi}"),
        section(
            "TensorComputes",
            section(
                "Initialize",
                block(
                    "u", type="ParsedCompute", buffer="u", extra_symbols="true", expression="sin(x)"
                ),
                block(
                    "v", type="ParsedCompute", buffer="v", extra_symbols="true", expression="cos(x)"
                ),
                block("D", type="ReciprocalLaplacianFactor", buffer="D"),
                block("E", type="ReciprocalLaplacianFactor", buffer="E", factor=0.5),
                block("zero", type="ConstantReciprocalTensor", buffer="zero"),
            ),
            section(
                "Solve",
                block("ubar", type="ForwardFFT", buffer="ubar", input="u"),
                block("vbar", type="ForwardFFT", buffer="vbar", input="v"),
            ),
        ),
        block(
            "TensorSolver",
            type="AdamsBashforthMoultonCoupled",
            buffer="u v",
            reciprocal_buffer="ubar vbar",
            linear_reciprocal="D D",
            linear_offdiag_rows=0,
            linear_offdiag_cols=1,
            linear_offdiag="E",
            nonlinear_reciprocal="zero zero",
        ),
        block("Executioner", type="Transient", dt=0.1, num_steps=1),
    )
)


def test_a_coupled_solve_is_backward_euler(simulate: Simulate) -> None:
    state = simulate(COUPLED, RIGHT).state
    x, h = state.space.axes[0], 0.1
    v = torch.cos(x) / (1 + h)
    u = (torch.sin(x) - h * 0.5 * v) / (1 + h)
    torch.testing.assert_close(state.buffers["v"], v)
    torch.testing.assert_close(state.buffers["u"], u)


def test_the_reference_couples_the_other_way_round_and_drops_a_phase(simulate: Simulate) -> None:
    state = simulate(COUPLED).state
    box, h = state.space, 0.1
    sides = [box.forward(field).real for field in (torch.sin(box.axes[0]), torch.cos(box.axes[0]))]
    k2 = box.k2
    u = sides[0] / (1 + h * k2)
    v = (sides[1] - h * 0.5 * k2 * u) / (1 + h * k2)
    torch.testing.assert_close(state.buffers["u"], box.inverse(u.to(torch.complex128)))
    torch.testing.assert_close(state.buffers["v"], box.inverse(v.to(torch.complex128)))


def test_three_coupled_fields_are_solved(simulate: Simulate) -> None:
    third = (
        "TensorComputes/Initialize/w/type=ConstantTensor", "TensorComputes/Initialize/w/buffer=w",
        "TensorComputes/Initialize/w/real=1", "TensorComputes/Solve/wbar/type=ForwardFFT",
        "TensorComputes/Solve/wbar/buffer=wbar", "TensorComputes/Solve/wbar/input=w",
        "TensorSolver/buffer='u v w'", "TensorSolver/reciprocal_buffer='ubar vbar wbar'",
        "TensorSolver/linear_reciprocal='D D D'",
        "TensorSolver/nonlinear_reciprocal='zero zero zero'",
    )  # fmt: skip
    two, three = simulate(COUPLED, RIGHT).state, simulate(COUPLED, RIGHT, *third).state
    for name in ("u", "v"):
        torch.testing.assert_close(three.buffers[name], two.buffers[name])
    torch.testing.assert_close(three.buffers["w"], torch.ones(8, dtype=torch.float64))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("predictor_order=6", "'predictor_order' should be a whole number from 1 to 5, but is '6'"),
        ("corrector_order=0", "'corrector_order' should be a whole number from 1 to 5, but is '0'"),
        ("corrector_steps=-1", "'corrector_steps' should be a whole number of at least 0"),
        ("linear_offdiag_rows='0 1'", "there are 2 linear_offdiag_rows, 1 linear_offdiag_cols"),
        ("linear_offdiag_cols=2", "a coupling names field 2, but there are 2"),
        ("linear_reciprocal='D 0'", "needs an operator in linear_reciprocal for every field"),
    ],
)
def test_a_wrong_multistep_solver_is_told(override: str, message: str, simulate: Simulate) -> None:
    with pytest.raises(IngotError) as error:
        simulate(COUPLED, f"TensorSolver/{override}")
    assert message in str(error.value)


CLOCK = """
[Domain]
  dim = 1
  nx = 2
[]
[TensorComputes]
  [Solve]
    [t]
      type = ParsedCompute
      buffer = t_seen
      extra_symbols = true
      expression = 't'
      expand = REAL
    []
  []
[]
[Executioner]
  type = Transient
  dt = 0.5
  num_steps = 3
  start_time = 1
[]
"""


def test_computes_without_a_solver_see_the_time_where_a_step_begins(simulate: Simulate) -> None:
    assert simulate(CLOCK).state.buffers["t_seen"].tolist() == [2.0, 2.0]
    assert simulate(CLOCK, RIGHT).state.buffers["t_seen"].tolist() == [2.5, 2.5]
