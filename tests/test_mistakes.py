"""What a new user gets wrong in Python is told at the line that did it, with a cause and a fix."""

# mistakes are meant; an editor tells most of them before
# pyright: reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

import copy
import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ingot
from ingot import IngotError, Model, laws
from ingot.types import SR2

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
fix: give E=..., or inputs={"E": ...}"""),
    "a history of one number for a tensor": (
        lambda: ingot.transient(hooke(), time=TIME, strain=0.01 * TIME), """\
error[wrong-value]: 'strain' has shape (3,), which does not end in (6,) as a SR2 does
fix: give control='uniaxial' for a history of xx alone, or arrays (..., 6) of xx, yy, zz, yz, xz,\
 xy, or a dict of these"""),
    "six components or six steps": (
        lambda: ingot.transient(hooke(), time=np.arange(6), stress=np.arange(6)), """\
error[wrong-value]: 'stress' may be 6 components, or one number at 6 steps
fix: give control='uniaxial' for a history of xx alone, or an array (6, 6), or SR2(...) of\
 ingot.types"""),
    "components of other batches": (
        lambda: ingot.transient(
            hooke(), time=TIME, strain={"xx": np.zeros((3, 2))},
            stress={"yy": np.zeros((3, 4)), **dict.fromkeys(("zz", "yz", "xz", "xy"), 0.0)},
        ), """\
error[batches-differ]: the components of strain and stress do not go together: strain.xx (3, 2),\
 stress.yy (3, 4), stress.zz (), stress.yz (), stress.xz (), stress.xy ()
fix: give each (steps, *batch), or a number"""),
    "stresses for other steps": (
        lambda: ingot.transient(hooke(), time=TIME, stress=np.zeros((4, 6))), """\
error[shapes-differ]: 'stress' has 4 steps, but 'time' has 3
fix: give it the shape (3, ...)"""),
    "strains for other steps": (
        lambda: ingot.transient(hooke(), time=TIME, strain=np.zeros((4, 6))), """\
error[shapes-differ]: 'strain' has 4 steps, but 'time' has 3
fix: give it the shape (3, ...)"""),
    "a misspelt input under control": (
        lambda: ingot.transient(hooke(), time=TIME, strian=TIME, control="uniaxial"), """\
error[unknown-variable]: [hooke] has no input 'strian'
fix: did you mean 'strain'?"""),
    "a time that is not finite": (
        lambda: ingot.transient(hooke(), time=[0.0, np.nan, 1.0], strain=np.zeros((3, 6))), """\
error[wrong-value]: the time of step 1 is not finite
fix: give finite times"""),
    "one time": (
        lambda: ingot.transient(hooke(), time=[0.0], strain=np.zeros((1, 6))), """\
error[wrong-value]: 'time' should be the time of every step, not [0.0]
fix: give two times at least: the first is where it starts, and nothing is computed there"""),
    "initial values without names": (
        lambda: ingot.transient(hooke(), time=TIME, strain=np.zeros((3, 6)), initial=[1.0]), """\
error[wrong-value]: 'initial' should be a dict of values by name, not [1.0]
fix: write initial={"name": value}"""),
    "a law of the catalogue declared again": (lambda: laws.of(laws.YieldFunction), """\
error[unknown-type]: 'YieldFunction' is called as it is
fix: write ingot.laws.YieldFunction(...)"""),
    "a sweep of a model": (lambda: ingot.sweep(hooke(), {"E": [1.0]}, "s.parquet"), """\
error[wrong-value]: sweep should be given a driver, not the model [hooke]
fix: give what ingot.transient or ingot.build_driver returns"""),
    "a sweep over a list": (lambda: ingot.sweep(pull(), ["E"], "s.parquet"), """\
error[wrong-value]: 'over' should be a dict of values by name, not ['E']
fix: write {"name": [1.0, 2.0]}"""),
    "a back end of nothing that is compiled": (
        lambda: ingot.compile(hooke(), backend="interpret"), """\
error[wrong-value]: 'backend' is one of kernel, inductor, not 'interpret'
fix: give one of: kernel, inductor"""),
    "curves in a list": (lambda: pull().run("interpret").plot(["stress.xx"]), """\
error[wrong-value]: a curve is named by a string, not ['stress.xx']
fix: write "strain.xx:stress.xx\""""),
    "an unknown that is prescribed": (
        lambda: ingot.transient(
            ingot.implicit(decay(), unknowns=["x"], guess="old"), time=TIME, x=TIME
        ), """\
error[unknown-variable]: [ImplicitUpdate] has no input 'x'
fix: choose one of: t"""),
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


NAMELESS: dict[str, tuple[Callable[[], Any], str]] = {
    "a back end that is none": (
        lambda: pull().run("interpet"), """\
error[wrong-value]: 'backend' is one of interpret, kernel, inductor, not 'interpet'
  fix: did you mean 'interpret'?"""),
    "a variable that a result has not": (
        lambda: pull().run("interpret").stres, """\
error[unknown-name]: the result has no 'stres'
  fix: did you mean 'stress'?"""),
    "a component that a tensor has not": (
        lambda: pull().run("interpret").stress.yx, """\
error[unknown-name]: 'stress' has no component 'yx': it is a SR2
  fix: choose one of: xx, yy, zz, yz, xz, xy"""),
    "a unit of no variable": (
        lambda: dataclasses.replace(pull().run("interpret"), units={"stres": "MPa"}), """\
error[unknown-name]: the result has no 'stres'
  fix: did you mean 'stress'?"""),
    "a parameter set to text": (
        lambda: hooke().set_parameter("E", "steel"), """\
error[wrong-input]: 'E' should be numbers, not 'steel'
  fix: give a number, an array, or a value of its kind"""),
}  # fmt: skip
"""Mistakes of a call whose own traceback is the place."""


def pull() -> ingot.TransientDriver:
    return ingot.transient(hooke(), time=TIME, strain=np.zeros((3, 6)))


@pytest.mark.parametrize("mistake", NAMELESS)
def test_mistake_in_a_call_is_told_with_its_fix(mistake: str) -> None:
    make, told = NAMELESS[mistake]
    with pytest.raises(IngotError) as caught:
        make()
    assert str(caught.value) == told


def test_results_are_asked_for_attributes_as_any_object_is() -> None:
    result = pull().run("interpret")
    assert hasattr(result, "stress") and not hasattr(result, "stres")
    assert not hasattr(result.stress, "yx")
    assert (copy.deepcopy(result).stress.xx[1:] == 0).all()


def test_numbers_that_are_given_and_not_finite_are_named_at_the_line_of_the_user() -> None:
    strain = np.zeros((3, 2, 6))
    strain[1, 1, 4] = np.inf
    driver = ingot.transient(hooke(), time=TIME, strain=strain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        driver.run("interpret")
    assert "'strain' is given, and not finite at step 1" in str(caught[0].message)
    assert {each.filename for each in caught} == {__file__}


def test_six_components_at_six_steps_may_be_a_value_or_a_dict() -> None:
    time, six = np.arange(6.0), np.array([1e-3, 0, 0, 0, 0, 0])
    names = ("xx", "yy", "zz", "yz", "xz", "xy")
    for strain in (SR2(six), dict(zip(names, six, strict=True)), np.tile(six, (6, 1))):
        result = ingot.transient(hooke(), time=time, strain=strain).run("interpret")
        assert np.allclose(result.stress.xx[1:], 1e2 * 0.7 / (1.3 * 0.4))
