"""A material with internal variables runs inside one compiled sequence."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotWarning
from ingot.execute import executor
from ingot.fields.jit import Jit, plan
from ingot.fields.jit.material import MODELS, material
from ingot.fields.spaces import Space, space
from ingot.fields.step import Ambient, Buffer, State, Step
from ingot.hit import read_text
from ingot.model import build
from ingot.program import trace

from .conftest import Both, copied, largest_difference

MODEL = """
[Models]
  [mandel]
    type = IsotropicMandelStress
    cauchy_stress = 'stress'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'mandel_stress'
    invariant = 'effective_stress'
  []
  [hardening]
    type = VoceIsotropicHardening
    saturated_hardening = 80
    saturation_rate = 1.5
  []
  [yield]
    type = YieldFunction
    yield_stress = 20
    isotropic_hardening = 'isotropic_hardening'
  []
  [flow]
    type = ComposedModel
    models = 'vonmises yield'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'mandel_stress isotropic_hardening'
    to = 'flow_direction isotropic_hardening_direction'
  []
  [rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 300
    exponent = 4
  []
  [plastic]
    type = AssociativePlasticFlow
  []
  [equivalent]
    type = AssociativeIsotropicPlasticHardening
  []
  [total]
    type = SR2VariableRate
    variable = 'E'
  []
  [elastic]
    type = SR2LinearCombination
    from = 'E_rate plastic_strain_rate'
    to = 'strain_rate'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '100000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    rate_form = true
  []
  [stress]
    type = SR2BackwardEulerTimeIntegration
    variable = 'stress'
  []
  [ep]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
  [all]
    type = ComposedModel
    models = 'mandel vonmises hardening yield normality rate plastic equivalent total elastic
              elasticity stress ep'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'all'
    unknowns = 'stress equivalent_plastic_strain'
  []
[]
[Solvers]
  [newton]
    type = Newton
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
[Models]
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'stress'
    unknowns_Scalar = 'equivalent_plastic_strain'
  []
  [model]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
"""
INPUTS = ("E", "E~1", "t", "t~1", "stress~1", "equivalent_plastic_strain~1")
OUTPUTS = ("stress", "equivalent_plastic_strain")


def strain(space: Space, time: Tensor) -> Tensor:
    """A shear that waves over the box and grows with time."""
    wave = torch.sin(2 * space.axes[0]) * torch.cos(3 * space.axes[1]) + space.axes[2]
    direction = torch.tensor([1.0, -0.5, -0.5, 0.2, 0.0, 0.1]).to(wave)
    return (1e-3 * time * wave)[..., None] * direction


def energy(stress: Tensor, strain: Tensor) -> Tensor:
    return 0.5 * (stress * strain).sum(-1)


def sequence() -> tuple[Step, ...]:
    model = material("viscoplastic", trace(build(read_text(MODEL), "model")), INPUTS, OUTPUTS)

    def update(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return model(inputs)

    where = {"space": Ambient("space"), "time": Ambient("time")}
    read = ("E", "E_old", "t", "t_old", "s_old", "p_old")
    return (
        Step("strain", strain, where, ("E",)),
        Step("material", update, {"inputs": tuple(map(Buffer, read))}, ("s", "p")),
        Step("energy", energy, {"stress": Buffer("s"), "strain": Buffer("E")}, ("energy",)),
    )


def state_of_material(sizes: tuple[int, int, int], device: str = "cpu") -> State:
    state = State(space(sizes, device=device), time=2.0)
    zero = torch.zeros(*sizes, 6, dtype=torch.float64, device=device)
    state.buffers = {
        "E_old": zero, "s_old": zero, "p_old": zero[..., 0], "t_old": zero[..., 0],
        "t": zero[..., 0] + 2.0,
    }  # fmt: skip
    return state


def moved(state: State) -> None:
    """One step later in time."""
    state.time += 1.0
    for old, new in (("E_old", "E"), ("s_old", "s"), ("p_old", "p"), ("t_old", "t")):
        state.buffers[old] = state.buffers[new]
    state.buffers["t"] = state.buffers["t"] + 1.0


def test_a_material_is_part_of_one_sequence_at_any_size(both: Both) -> None:
    steps = sequence()
    assert str(plan(steps)) == "strain material energy"
    made = both(steps, state_of_material((8, 6, 5)), state_of_material((5, 7, 4)))
    assert made.counts["captured"] == 1
    assert made.statistics.fallbacks == 0
    assert made.statistics.sequences == 1


def test_a_material_in_a_sequence_gives_what_its_model_gives(tmp_path: Path) -> None:
    steps, state = sequence(), state_of_material((4, 4, 4))
    Jit(folder=tmp_path).run(steps, state)
    program = MODELS["viscoplastic"].program
    given = [state.buffers[name] for name in ("E", "E_old", "t", "t_old", "s_old", "p_old")]
    plain, _ = executor(program, "interpret")(dict(zip(INPUTS, given, strict=True)))
    assert float(state.buffers["p"].max()) > 1e-4  # it flows
    assert torch.allclose(state.buffers["s"], plain["stress"], rtol=1e-8, atol=1e-8)


def test_a_material_keeps_its_name_in_another_process(tmp_path: Path) -> None:
    from ingot.fields.jit.fingerprint import stable

    model = material("named", MODELS["viscoplastic"].program, INPUTS, OUTPUTS)
    assert stable(model) == "ingot.fields.jit.material.Material('named')"


def test_fields_of_a_material_may_lack_axes(both: Both) -> None:
    state = state_of_material((5, 6, 4))
    state.buffers["t"] = torch.full((1, 1, 1), 2.0, dtype=torch.float64)
    other = copied(state)
    made = both(sequence(), state, turns=1)
    assert made.statistics.fallbacks == 0
    made.run(sequence()[:1], other)
    assert largest_difference(state, other, "E") == 0


def test_a_sequence_with_a_material_copies_nothing(tmp_path: Path) -> None:
    steps, state, jit = sequence(), state_of_material((16, 16, 16)), Jit(folder=tmp_path)
    for _ in range(3):
        jit.run(steps, state)
    with torch.profiler.profile(profile_memory=True) as profile:
        jit.run(steps, state)
    made = sum(max(event.self_cpu_memory_usage, 0) for event in profile.events() or ())
    given = sum(8 * state.buffers[name].numel() for name in ("E", "s", "p", "energy"))
    reports = (8 + 4 + 4 + 1 + 1) * 16**3
    assert given + reports <= made < given + reports + 1024


def test_components_of_a_material_lie_outermost(tmp_path: Path) -> None:
    state = state_of_material((5, 6, 4))
    Jit(folder=tmp_path).run(sequence(), state)
    assert all(state.buffers[name].movedim(-1, 0).is_contiguous() for name in ("E", "s"))


def test_other_fields_with_components_are_right_beside_a_material(both: Both) -> None:
    matrix = torch.arange(9, dtype=torch.float64).reshape(3, 3)

    def others(space: Space, p: Tensor) -> tuple[Tensor, ...]:
        wave = torch.exp(space.axes[0] * space.axes[1] * space.axes[2])
        vector = wave[..., None] * matrix[0]
        mixed = (p + wave * space.axes[0])[..., None] - matrix[1]
        return vector, wave[..., None, None] * matrix, vector[..., None] + matrix, mixed

    given = {"space": Ambient("space"), "p": Buffer("p_old")}
    steps = (*sequence(), Step("others", others, given, ("v", "m", "w", "q")))
    state = state_of_material((5, 6, 4))
    assert both(steps, state, turns=1).statistics.fallbacks == 0
    assert state.buffers["m"].movedim((-2, -1), (0, 1)).is_contiguous()
    assert state.buffers["w"].is_contiguous()


def test_components_lie_innermost_where_a_call_reads_them_so(both: Both) -> None:
    def mixed(strain: Tensor) -> Tensor:
        return strain @ torch.ones(6, 6, dtype=strain.dtype)

    steps = (*sequence(), Step("mixed", mixed, {"strain": Buffer("E")}, ("F",)))
    state = state_of_material((5, 6, 4))
    assert both(steps, state, turns=1).statistics.fallbacks == 0
    assert state.buffers["E"].is_contiguous()


def test_points_that_fail_are_told_once(tmp_path: Path) -> None:
    steps, state = sequence(), state_of_material((4, 3, 3))
    state.time = 1e300
    with pytest.warns(IngotWarning, match="of 36 points did not converge") as told:
        for _ in range(3):
            Jit(folder=tmp_path).run(steps, state)
    assert len(told) == 1
