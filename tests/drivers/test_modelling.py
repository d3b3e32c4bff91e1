"""Transients from Python: the driver that a file's block makes, under strain, stress or both."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import ingot
from ingot import IngotError, Model, TransientDriver, laws
from ingot.errors import IngotWarning
from ingot.types import SR2

E, NU, YIELD, H = 2.0e5, 0.3, 100.0, 1.0e3
TIME = np.linspace(0.0, 4.0, 21)
CYCLE = 0.002 * np.sin(0.5 * np.pi * TIME)


def elastic() -> Model:
    return laws.LinearIsotropicElasticity(
        coefficients=[E, NU], coefficient_types=["YOUNGS_MODULUS", "POISSONS_RATIO"]
    )


@pytest.fixture(scope="module")
def j2() -> Model:
    """Rate-independent plasticity with linear hardening."""
    hooke = laws.LinearIsotropicElasticity(
        strain="elastic_strain", coefficients=[E, NU],
        coefficient_types=["YOUNGS_MODULUS", "POISSONS_RATIO"],
    )  # fmt: skip
    split = laws.SR2LinearCombination(
        from_=["strain", "plastic_strain"], weights=[1, -1], to="elastic_strain"
    )
    mises = laws.SR2Invariant(
        tensor="stress", invariant="effective_stress", invariant_type="VONMISES"
    )
    surface = laws.YieldFunction(yield_stress=YIELD, isotropic_hardening="hardening")
    harden = laws.LinearIsotropicHardening(
        hardening_modulus=H, equivalent_plastic_strain="ep", isotropic_hardening="hardening"
    )
    normal = laws.Normality(
        model=ingot.compose(mises, surface), function="yield_function",
        from_=["stress", "hardening"], to=["flow_direction", "isotropic_hardening_direction"],
    )  # fmt: skip
    flow = laws.AssociativePlasticFlow(plastic_strain_rate="plastic_strain_rate")
    rate = laws.AssociativeIsotropicPlasticHardening(equivalent_plastic_strain_rate="ep_rate")
    update = ingot.implicit(
        split, hooke, mises, surface, harden, normal, flow, rate,
        laws.SR2BackwardEulerTimeIntegration(variable="plastic_strain"),
        laws.ScalarBackwardEulerTimeIntegration(variable="ep"),
        laws.MinMapComplementarity(a="yield_function", a_inequality="LE", b="flow_rate"),
        unknowns={
            "plastic_strain": "plastic_strain_residual", "ep": "ep_residual",
            "flow_rate": "complementarity",
        },
        guess="old", name="return_map",
    )  # fmt: skip
    return ingot.compose(update, split, hooke, additional_outputs=["plastic_strain"], name="j2")


def uniaxial(strain: np.ndarray) -> np.ndarray:
    """The axial stress by a return map in one dimension: an oracle of a few lines."""
    plastic, hard, found = 0.0, 0.0, []
    for each in strain:
        trial = E * (each - plastic)
        over = max(abs(trial) - YIELD - H * hard, 0.0) / (E + H)
        plastic, hard = plastic + over * np.sign(trial), hard + over
        found.append(E * (each - plastic))
    return np.array(found)


def refused(**options: Any) -> str:
    with pytest.raises(IngotError) as caught:
        ingot.transient(options.pop("model", elastic()), **{"time": TIME, **options})
    assert all(problem.fix for problem in caught.value.problems)
    assert f"--> {__file__}" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("name", ["pull", "a pull"])
def test_driver_is_copied_and_pickled_as_its_file(again: Any, name: str) -> None:
    driver = ingot.transient(
        elastic(), time=TIME, strain=CYCLE, control="uniaxial", name=name, strict=True
    )
    wanted = driver.run("interpret")
    copied = again(driver)
    assert copied.program.digest == driver.program.digest
    assert copied.strict
    np.testing.assert_array_equal(copied.run("interpret").stress.xx, wanted.stress.xx)


def test_time_of_a_result_is_an_attribute() -> None:
    result = ingot.transient(elastic(), time=TIME, strain=np.zeros((21, 6))).run("interpret")
    np.testing.assert_array_equal(result.time.to_numpy(), TIME)
    assert "time" in dir(result)
    with pytest.raises(AttributeError, match="has no 'tme'"):
        result.tme  # noqa: B018


@pytest.mark.parametrize("name", ["model", "time", "control", "name"])
def test_input_that_is_called_as_an_argument_is_given_in_inputs(name: str) -> None:
    law = laws.ScalarLinearCombination(from_=[name], to="y", weights=[2.0])
    with pytest.raises(IngotError) as caught:
        ingot.transient(law, time=[0.0, 1.0])
    (problem,) = caught.value.problems
    assert problem.fix is not None
    assert f'inputs={{"{name}": ...}}' in problem.fix
    assert f'time_variable="{name}"' in problem.fix
    driver = ingot.transient(law, time=[0.0, 1.0], inputs={name: 3.0})
    assert driver.run("interpret")["y"].to_numpy()[1] == 6.0
    driver = ingot.transient(law, time=[0.0, 1.0], time_variable=name)
    assert driver.run("interpret")["y"].to_numpy()[1] == 2.0


def test_guess_that_is_an_input_is_told_where_control_goes_around_it() -> None:
    creep = laws.SR2LinearCombination(
        from_=["strain", "creep"], weights=[0.5, -1.0], to="creep_rate"
    )
    split = laws.SR2LinearCombination(
        from_=["strain", "creep"], weights=[1, -1], to="elastic_strain"
    )
    hooke = laws.LinearIsotropicElasticity(
        strain="elastic_strain", coefficients=[E, NU],
        coefficient_types=["YOUNGS_MODULUS", "POISSONS_RATIO"],
    )  # fmt: skip
    step = laws.SR2BackwardEulerTimeIntegration(variable="creep")

    def drive(guess: Any) -> TransientDriver:
        update = ingot.implicit(creep, step, unknowns=["creep"], guess=guess)
        relaxes = ingot.compose(update, split, hooke, name="relaxes")
        return ingot.transient(relaxes, time=TIME, strain=CYCLE, control="uniaxial")

    with pytest.raises(IngotError) as caught:
        drive(None)
    (problem,) = caught.value.problems
    assert problem.code == "circular-model"
    assert problem.fix == """let 'creep' of [relaxes] start from its last value: guess="old\""""
    result = drive("old").run("interpret")
    assert not result.failed
    assert abs(result.stress.yy[1:]).max() < 1e-7


def test_law_is_driven_with_the_model_of_its_parameter() -> None:
    modulus = laws.ScalarLinearInterpolation(
        argument="temperature", abscissa=[300.0, 900.0], ordinate=[2e5, 1e5], name="modulus"
    )
    law = laws.LinearIsotropicElasticity(
        coefficients=[modulus, 0.3], coefficient_types=["YOUNGS_MODULUS", "POISSONS_RATIO"]
    )
    driver = ingot.transient(
        law, time=[0.0, 1.0], strain=[0.0, 1e-3], temperature=600.0, control="uniaxial"
    )
    found = driver.run("interpret").stress
    assert found.xx[1] == pytest.approx(150.0)
    assert abs(found.yy[1]) < 1e-8
    same = ingot.from_hit(driver.to_hit())
    assert isinstance(same, TransientDriver)
    assert same.program.digest == driver.program.digest


def test_uniaxial_cycle_is_that_of_one_dimension(j2: Model) -> None:
    result = ingot.transient(j2, time=TIME, strain=CYCLE, control="uniaxial").run("interpret")
    assert not result.failed
    np.testing.assert_allclose(result.stress.xx[1:], uniaxial(CYCLE)[1:], rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(result.stress.yy[1:], 0.0, atol=1e-5)
    np.testing.assert_allclose(result.strain.xx[1:], CYCLE[1:])
    assert np.ptp(result.strain.yy[1:]) > 0.001


def test_uniaxial_stress_and_strain_undo_each_other(j2: Model) -> None:
    load = np.linspace(0.0, 110.0, 12)
    up = ingot.transient(j2, time=load, stress=load, control="uniaxial").run("interpret")
    np.testing.assert_allclose(up.stress.xx[1:], load[1:], atol=1e-4)
    along = np.concatenate([[0.0], up.strain.xx[1:]])
    back = ingot.transient(j2, time=load, strain=along, control="uniaxial").run("interpret")
    np.testing.assert_allclose(back.stress.xx[1:], load[1:], atol=1e-4)


def test_components_of_strain_and_stress_are_prescribed_together() -> None:
    """Plane stress under shear, against Hooke's law by hand; shear is the tensor's own."""
    shear = np.linspace(0.0, 1e-3, 5)
    driver = ingot.transient(
        elastic(), time=np.arange(5.0), strain={"xx": 0.001, "yy": 0.0, "xy": shear},
        stress={"zz": 0.0, "yz": 0.0, "xz": 3.0},
    )  # fmt: skip
    result = driver.run("interpret")
    plane = E / (1 - NU**2)
    np.testing.assert_allclose(result.stress.xx[1:], plane * 0.001, rtol=1e-7)
    np.testing.assert_allclose(result.stress.yy[1:], NU * plane * 0.001, rtol=1e-7)
    np.testing.assert_allclose(result.stress.xy[1:], E / (1 + NU) * shear[1:], rtol=1e-7)
    np.testing.assert_allclose(result.strain.xz[1:], 3.0 * (1 + NU) / E, rtol=1e-7)


def test_batches_are_leading_axes_and_constants_need_no_steps(j2: Model) -> None:
    several = CYCLE[:, None] * np.array([0.1, 1.0])
    result = ingot.transient(j2, time=TIME, strain=several, control="uniaxial").run("interpret")
    assert result.batch == (2,)
    np.testing.assert_allclose(result.stress.xx[1:, 0], E * several[1:, 0], atol=1e-8)
    np.testing.assert_allclose(result.stress.xx[1:, 1], uniaxial(CYCLE)[1:], rtol=1e-6, atol=1e-4)
    tensor = SR2.fill(0.001, 0.0, 0.0)
    still = ingot.transient(elastic(), time=[0.0, 1.0, 2.0], strain=tensor).run("interpret")
    np.testing.assert_allclose(still.stress.xx[1:], still.stress.xx[1])
    assert still.steps == 3


def test_initial_values_and_inputs_are_given_by_name() -> None:
    decay = laws.ScalarLinearCombination(from_=["T", "x"], weights=[1.0, -1.0], to="x_rate")
    step = ingot.implicit(
        decay, laws.ScalarBackwardEulerTimeIntegration(variable="x"), unknowns=["x"], guess="old"
    )
    driver = ingot.transient(step, time=[0.0, 1.0, 2.0], T=3.0, initial={"x": [5.0, 7.0]})
    result = driver.run("interpret")
    assert result.batch == (2,)
    expected = [[5.0, 7.0], [4.0, 5.0], [3.5, 4.0]]
    np.testing.assert_allclose(np.asarray(result["x"]), expected)
    named = ingot.transient(step, time=[0.0, 1.0], inputs={"T": [0.0, 3.0]}, initial={"x": 5.0})
    assert named.forces["T"].value.data.tolist() == [0.0, 3.0]


def test_driver_sees_parameters_that_change() -> None:
    model = elastic()
    driver = ingot.transient(model, time=[0.0, 1.0], strain=SR2.fill(1e-3, 0.0, 0.0))
    before = driver.run("interpret").stress.xx[1]
    model.set_parameter("E", 2 * E)
    assert driver.run("interpret").stress.xx[1] == pytest.approx(2 * before)
    again = ingot.from_hit(driver.to_hit())
    assert isinstance(again, TransientDriver)
    assert again.run("interpret").stress.xx[1] == pytest.approx(2 * before)


def test_driver_is_written_and_read_as_the_same(j2: Model) -> None:
    driver = ingot.transient(j2, time=TIME[:5], strain=CYCLE[:5], control="uniaxial", name="pull")
    text = driver.to_hit()
    again = ingot.from_hit(text)
    assert isinstance(again, TransientDriver)
    assert again.block.name == "pull"
    assert again.program.digest == driver.program.digest
    assert again.to_hit() == text
    for name, rows in driver.run("interpret").outputs.items():
        assert torch.equal(rows, again.run("interpret").outputs[name])


def test_a_step_that_fails_is_written_without_a_file(
    j2: Model, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ingot.drivers import build_driver, require_converged

    monkeypatch.chdir(tmp_path)
    driver = ingot.transient(j2, time=TIME, strain=CYCLE, control="uniaxial")
    driver.forces["fixed_values"].value.data[3] = float("nan")
    with pytest.warns(IngotWarning):
        result = driver.run("interpret")
    with pytest.raises(IngotError, match=r"ingot run failed/"):
        require_converged(driver, result)
    (file, *_) = (tmp_path / "failed").iterdir()
    alone = build_driver(ingot.read(file), "driver")
    assert isinstance(alone, TransientDriver)
    assert alone.steps == 4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"strain": CYCLE[:, None] * np.ones(6), "time": TIME[::-1]}, "the time goes back"),
        ({"strain": CYCLE}, "does not end in (6,) as a SR2 does"),
        ({"strain": "0.1"}, "'strain' should be numbers, not '0.1'"),
        ({"strian": CYCLE}, "did you mean 'strain'?"),
        ({"time": 1.0, "strain": CYCLE}, "'time' should be the time of every step"),
        ({}, "nothing gives 'strain'"),
        ({"strain": np.zeros((3, 6))}, "'strain' has 3 steps, but 'time' has 21"),
        ({"strain": CYCLE[:3], "control": "uniaxial"}, "'strain.xx' has 3 steps"),
        ({"strain": {"xx": 0.0}}, "neither strain nor stress prescribes 'yy'"),
        ({"strain": {"xx": 0}, "stress": dict.fromkeys(["xx", "yy", "zz", "yz", "xz", "xy"], 0)},
         "both strain and stress prescribe 'xx'"),
        ({"strain": {"x": 0.0}}, "has no component 'x'"),
        ({"strain": CYCLE, "stress": CYCLE, "control": "uniaxial"}, "give one of the two"),
        ({"strain": CYCLE, "control": "uniaxal"}, "did you mean 'uniaxial'?"),
        ({"strain": CYCLE, "control": "uniaxial", "initial": {"Stress": 1.0}}, "'stress'"),
        ({"strain": {"xx": CYCLE[:7], "yy": CYCLE, "zz": 0, "yz": 0, "xz": 0, "xy": 0}},
         "do not go together"),
        ({"model": "elasticity"}, "should be given a model, not 'elasticity'"),
        ({"model": laws.IsotropicMandelStress(), "stress": 1.0}, "did you mean 'cauchy_stress'?"),
    ],
)  # fmt: skip
def test_mistakes_are_told_where_transient_is_called(options: dict[str, Any], told: str) -> None:
    assert told in refused(**options)


class Column:
    """What pandas gives for a column: numbers that NumPy asks for."""

    def __init__(self, numbers: list[float]) -> None:
        self.numbers = numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numbers, dtype=dtype)


def test_columns_ranges_and_results_are_histories() -> None:
    law = laws.ScalarLinearCombination(from_=["a"], to="b", weights=[2.0])
    first = ingot.transient(law, time=range(3), a=Column([1.0, 2.0, 4.0])).run("interpret")
    assert first["b"].values[1:].tolist() == [4.0, 8.0]
    second = ingot.transient(law, time=first.time, a=first["a"]).run("interpret")
    assert second["b"].values[1:].tolist() == [4.0, 8.0]
    assert [*dict(first)] == [*first] == [*first.keys()]
    with pytest.raises(IngotError, match="'a' should be numbers"):
        ingot.transient(law, time=range(3), a=Column(["x", "y", "z"]))  # type: ignore[reportArgumentType]


def test_one_word_stands_for_a_list_of_one() -> None:
    law = laws.ScalarLinearCombination(from_=["a"], to="b", weights=[2.0])
    made = ingot.compile(law, derivative="b:a", parameter="weights_0")  # type: ignore[reportArgumentType]
    assert [*dict(made.named_parameters())] == ["weights_0"]
    assert float(made.jacobian({"a": np.ones(())})["b"]["a"]) == 2.0
