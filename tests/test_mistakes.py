"""What a new user gets wrong in Python is told at the line that did it, with a cause and a fix."""

# mistakes are meant; an editor tells most of them before
# pyright: reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ingot
from ingot import IngotError, Model, laws

HOOKE = ["YOUNGS_MODULUS", "POISSONS_RATIO"]
TIME = np.linspace(0.0, 1.0, 3)


def hooke(nu: float = 0.3, **names: str) -> Model:
    return laws.LinearIsotropicElasticity(
        coefficients=[1e5, nu], coefficient_types=HOOKE, name="hooke", **names
    )


def decay(x: str = "x") -> Model:
    """What gives the residual of an unknown that decays."""
    rate = laws.ScalarLinearCombination(from_=[x], weights=[-1.0], to=f"{x}_rate", name="rate")
    step = laws.ScalarBackwardEulerTimeIntegration(variable=x, name="step")
    return ingot.compose(rate, step, name="decay")


def chain(a: str, b: str) -> Model:
    return laws.ScalarLinearCombination(from_=[a], to=b, name=f"{a}_to_{b}")


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown law": (lambda: laws.VoceHardening, """\
error[unknown-type]: there is no law 'VoceHardening'
fix: did you mean 'VoceIsotropicHardening'?"""),
    "unknown option": (
        lambda: laws.ScalarLinearCombination(from_=["a"], to="b", wieghts=[1.0]), """\
error[unknown-option]: ScalarLinearCombination has no option 'wieghts'
fix: did you mean 'weights'?"""),
    "missing parameter": (lambda: laws.VoceIsotropicHardening(saturated_hardening=1.0), """\
error[missing-option]: VoceIsotropicHardening needs the option 'saturation_rate'
fix: give saturation_rate=..."""),
    "text where a number belongs": (lambda: laws.YieldFunction(yield_stress="100 MPa"), """\
error[wrong-value]: 'yield_stress' should be a number, or the name of one variable, not '100 MPa'
fix: give numbers unquoted"""),
    "wrong shape": (lambda: laws.SR2ConstantParameter(value=[1.0, 2.0, 3.0]), """\
error[wrong-value]: 'value' has shape (3,), which does not end in (6,) as a SR2 does
fix: give 6 numbers"""),
    "two laws give one name": (lambda: ingot.compose(chain("a", "c"), chain("b", "c")), """\
error[two-providers]: [a_to_c] and [b_to_c] both give 'c'
fix: rename one output, or leave one model out"""),
    "a circle": (lambda: ingot.compose(chain("a", "b"), chain("b", "a")), """\
error[circular-model]: the models a_to_b, b_to_a wait for one another
fix: break the circle with an old value (`x~1`) or an ImplicitUpdate"""),
    "an unknown that nothing reads": (
        lambda: ingot.implicit(decay(), unknowns={"X": "x_residual"}), """\
error[unknown-input]: [decay] has no input 'X'
fix: did you mean 'x'?"""),
    "an unknown without a residual": (lambda: ingot.implicit(decay(), unknowns=["x", "t"]), """\
error[unknown-output]: [decay] has no output 't_residual'
fix: did you mean 'x_residual'?"""),
    "a solver that is none": (
        lambda: ingot.implicit(decay(), unknowns=["x"], solver="newton"), """\
error[wrong-value]: 'solver' should be a Newton, not 'newton'
fix: give ingot.Newton(...)"""),
    "a list that is one string": (lambda: ingot.implicit(decay(), unknowns="x y"), """\
error[wrong-value]: 'unknowns' should be a list of strings, a name each, not 'x y'
fix: write ["x", "y"]"""),
    "a law that was not called": (lambda: ingot.compose(laws.IsotropicMandelStress), """\
error[wrong-value]: argument 1 of compose should be a model, not the function IsotropicMandelStress
fix: call it: IsotropicMandelStress(...)"""),
    "models in a list": (lambda: ingot.compose([decay()]), """\
error[wrong-value]: argument 1 of compose should be a model, not a list
fix: give models one by one, or with a star: ingot.compose(*models)"""),
    "kinds that differ": (
        lambda: ingot.compose(hooke(), laws.ScalarLinearCombination(from_=["stress"], to="s")), """\
error[kinds-differ]: [ScalarLinearCombination] reads 'stress' as Scalar, which is a SR2
fix: rename one of the two"""),
    "an incompressible solid": (
        lambda: ingot.transient(hooke(0.5), time=TIME, strain=np.zeros((3, 6))).run(), """\
error[singular-law]: LinearIsotropicElasticity divides by zero with nu = 0.5
fix: change nu: no result is finite"""),
    "a time that descends": (
        lambda: ingot.transient(hooke(), time=TIME[::-1], strain=np.zeros((3, 6))), """\
error[time-descends]: the time goes back at step 1: 0.5 follows 1
fix: sort the times"""),
    "an input that nobody gives": (
        lambda: ingot.transient(hooke(strain="E"), time=TIME), """\
error[unprescribed-input]: nothing gives 'E' of [hooke]: it is zero at every step
fix: give E=..."""),
    "an output that is not there": (lambda: hooke()["strain"], """\
error[unknown-output]: [hooke] has no output 'strain'
fix: choose stress"""),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_told_with_its_cause_and_its_fix(mistake: str) -> None:
    make, told = MISTAKES[mistake]
    with pytest.raises(IngotError) as caught:
        make()
    problem = caught.value.problems[0]
    assert f"error[{problem.code}]: {problem.message}\nfix: {problem.fix}" == told
    assert problem.span is not None
    assert problem.span.file == __file__
    assert problem.span.text.strip()
