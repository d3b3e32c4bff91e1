"""Laws without a direction of their own commute with a rotation of all they read.

An orientation matrix turns with the crystal, $Q -> R Q$, every other tensor as tensors do.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import floats, tuples
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.types import MRP, R2, SR2, WR2, Value, Vec, euler_rodrigues, rotate
from tests.laws.agreement import differences
from tests.laws.samples import Case, all_cases

OBJECTIVE = {
    "SR2Invariant", "SR2LinearCombination", "LinearIsotropicElasticity", "ThermalEigenstrain",
    "IsotropicMandelStress", "AssociativePlasticFlow", "ChabochePlasticHardening",
    "GursonCavitation", "SR2BackwardEulerTimeIntegration", "R2BackwardEulerTimeIntegration",
    "VecBackwardEulerTimeIntegration", "SR2ForwardEulerTimeIntegration",
    "R2ForwardEulerTimeIntegration", "SR2VariableRate", "R2VariableRate", "VecVariableRate",
    "CrystalPlasticityStrainPredictor", "ElasticStrainRate", "OrientationRate", "ResolvedShear",
    "PlasticDeformationRate", "PlasticVorticity", "CopySR2", "CopyR2", "CopyWR2", "CopyVec",
    "R2Multiplication", "R2Determinant", "SR2Determinant", "R2ToSR2", "R2ToWR2", "SR2ToR2",
    "ScalarToDiagonalSR2",
    "PlasticSpatialVelocityGradient",
    "AssociativeJ2FlowDirection", "AssociativeKinematicPlasticHardening",
    "FredrickArmstrongPlasticHardening", "LinearKinematicHardening",
    "PowerLawKinematicHardeningStaticRecovery", "SR2TwoStageThermalAnnealing", "LinearDashpot",
    "KelvinVoigtElement", "ZenerElement", "WiechertElement", "BurgersElement",
    "VolumeChangeEigenstrain", "PhaseTransformationEigenstrain", "GreenLagrangeStrain",
    "VolumeAdjustDeformationGradient", "CrystalPlasticityDeformationGradientPredictor",
}  # fmt: skip
TENSORS = (SR2, R2, WR2, Vec)
# an offset is added to every component, whatever its direction
CASES = [
    case
    for case in all_cases()
    if case.declared.name in OBJECTIVE and case.name != "SR2LinearCombination constant"
]
turns = tuples(*[floats(-1.0, 1.0)] * 3)


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(turn=turns)
def test_law_commutes_with_rotation(case: Case, turn: tuple[float, ...]) -> None:
    rotation = euler_rodrigues(MRP(torch.tensor(turn, dtype=torch.float64)))
    inputs = case.draw(1, 5)
    if "of_offset_0" in inputs:
        inputs["of_offset_0"] *= 0.0
    run = Interpreter(case.program())
    slots = case.slots
    moved = {
        name: turned(slots[name].kind, x, rotation, leads=slots[name].argument)
        for name, x in inputs.items()
    }
    kinds = dict(zip(case.law.outputs, case.declared.outputs, strict=True))
    expected = {n: turned(kinds[n].kind, x, rotation) for n, x in run(inputs)[0].items()}
    assert not differences(run(moved)[0], expected, 1e-12)


def turned(kind: type[Value], x: Tensor, rotation: R2, leads: str = "") -> Tensor:
    if leads == "orientation_matrix":
        return rotation.data @ x
    return rotate(kind(x), rotation).data if kind in TENSORS else x


def test_every_objective_law_is_in_the_catalogue() -> None:
    assert {case.declared.name for case in CASES} == OBJECTIVE
