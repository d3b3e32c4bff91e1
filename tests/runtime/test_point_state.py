"""A state at a host's points: what is committed, rolled back, remembered, and refused."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import ingot
from ingot import Artifact, IngotError, IngotWarning, laws
from ingot.catalog import CATALOG, model
from ingot.execute.transient import Transient
from ingot.hosts import Increments, State
from ingot.types import Scalar


@model(gives="x_rate")
def GrowthBySquare(x: Scalar, load: Scalar) -> Scalar:
    r"""Growth that runs away, $\dot x = x^2 + l$: a long step has no end."""
    return x * x + load


DECLARED = CATALOG.pop("GrowthBySquare")  # other tests speak of every law of the library


@cache
def grows(dtype: torch.dtype = torch.float64) -> Artifact:
    """Remembers x and the time two steps back, and the load, an input, one step."""
    CATALOG["GrowthBySquare"] = DECLARED
    try:
        update = ingot.implicit(
            laws.of(GrowthBySquare)(name="growth"),
            laws.ScalarBackwardEulerTimeIntegration(variable="x"),
            unknowns=["x"],
            predictor=laws.LinearExtrapolationPredictor(unknowns_Scalar=["x"]),
            solver=ingot.Newton(abs_tol=1e-12 if dtype == torch.float64 else 1e-5, rel_tol=0.0),
            name="update",
        )
        rate = laws.ScalarVariableRate(variable="load")
        made = ingot.compose(update, rate, name="grows")
        return ingot.compile(made, derivative=("x:load",), dtype=dtype)
    finally:
        del CATALOG["GrowthBySquare"]


@cache
def steel() -> Artifact:
    text = """[Models]
      [steel]
        type = J2Plasticity
        E = 200e3
        nu = 0.3
        yield_stress = 250
        isotropic_hardening = linear
        hardening_modulus = 1000
      []
    []"""
    found = ingot.from_hit(text, "steel")
    return ingot.compile(found, derivative=("stress:strain",))


def solve_exactly(old: np.ndarray, load: np.ndarray, dt: float) -> np.ndarray:
    """The smaller root of x - old = dt (x^2 + load); NaN where there is none."""
    with np.errstate(invalid="ignore"):
        return (1 - np.sqrt(1 - 4 * dt * (old + dt * load))) / (2 * dt)


@pytest.mark.parametrize("points", [(), (1,), (7,), (2, 3), (0,), (3, 0)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_is_that_of_a_plain_dictionary(points: tuple[int, ...], seed: int) -> None:
    """Updates, some of which fail at some points, commits and rollbacks in any order."""
    draw = np.random.default_rng(seed)
    begin = draw.uniform(0, 0.2, size=points)
    state = State(grows(), points, initial={"x": begin})
    known = {"x~1": begin, "x~2": begin, "t~1": np.zeros(points), "t~2": np.zeros(points),
             "load~1": np.zeros(points)}  # fmt: skip
    trial: dict[str, Any] | None = None
    failed = False
    commits = 0
    for _ in range(60):
        word = draw.choice(["update", "update", "update", "commit", "commit", "rollback"])
        if word == "update":
            now = float(known["t~1"].max(initial=0)) + 0.1
            wrong = draw.random(points) < draw.choice([0, 0, 0.3])
            load = np.where(wrong, 1e3, draw.uniform(-0.5, 0.1, size=points))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IngotWarning)
                given = load if draw.random() < 0.5 else torch.tensor(load)
                update = state.update({"load": given, "t": now}, tangent=bool(draw.random() < 0.5))
            failed = bool(wrong.any())
            assert np.array_equal(np.asarray(update.failed), wrong)
            assert update.has_failed == failed
            expected = solve_exactly(known["x~1"], load, 0.1)
            np.testing.assert_allclose(np.asarray(update["x"]), expected, atol=1e-11)
            trial = {"x~1": np.asarray(update["x"]).copy(), "x~2": known["x~1"],
                     "t~1": np.full(points, now), "t~2": known["t~1"],
                     "load~1": load.copy()}  # fmt: skip
            if isinstance(given, np.ndarray):
                given[...] = 77.0  # a host may use its arrays again
        elif word == "rollback":
            state.rollback()
            trial = None
        elif trial is None or failed:
            with pytest.raises(IngotError, match="no-trial" if trial is None else "not-converged"):
                state.commit()
        else:
            state.commit()
            known, trial, commits = trial, None, commits + 1
        assert state.has_trial == (trial is not None)
        values = state.values()
        assert values.keys() == known.keys()
        assert all(np.array_equal(values[n].numpy(), x) for n, x in known.items())
        assert np.array_equal(state["x"].numpy(), known["x~1"])
    assert commits > 1


def test_an_update_starts_from_the_last_commit() -> None:
    state = State(steel(), 3)
    strain = np.zeros((3, 6))
    strain[:, 0] = [0.0005, 0.002, 0.004]
    first = state.update({"strain": strain, "t": 1.0})
    state.update({"strain": 3 * strain, "t": 1.0})
    again = state.update({"strain": strain, "t": 1.0})
    assert np.array_equal(first["stress"], again["stress"])
    state.commit()
    assert (state["equivalent_plastic_strain"][1:] > 0).all()
    assert state["equivalent_plastic_strain"][0] == 0


def test_a_state_is_the_transient_of_its_model() -> None:
    """Committed steps give the bits of a driver's."""
    strain = torch.linspace(0, 0.01, 6, dtype=torch.float64)[:, None, None].repeat(1, 4, 6)
    strain = strain * torch.linspace(-1, 1, 4, dtype=torch.float64)[:, None]
    strain = strain * torch.tensor([1, -0.4, -0.4, 0.3, 0, 0.2], dtype=torch.float64)
    state, stresses = State(steel(), 4), []
    for k in range(1, 6):
        stresses.append(state.update({"strain": strain[k], "t": float(k)})["stress"])
        state.commit()
    from ingot.execute.transient import Transient

    times = torch.arange(6, dtype=torch.float64)[:, None]
    history = steel().transient(Transient(6, {"strain": strain, "t": times}, {}))
    assert torch.equal(torch.stack(stresses), history.outputs["stress"][1:])


def draw_strain(seed: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return 0.004 * torch.rand(5, 6, generator=draw, dtype=torch.float64) - 0.001


def test_the_tangent_is_that_of_differences() -> None:
    state, strain, step = State(steel(), 5), draw_strain(5), 1e-7

    def stress(change: Tensor) -> Tensor:
        return state.update({"strain": strain + change, "t": 1.0}, tangent=False)["stress"]

    block = state.update({"strain": strain, "t": 1.0}).tangent("stress", "strain")
    assert block.shape == (5, 6, 6)
    rows = [(stress(h) - stress(-h)) / (2 * step) for h in step * torch.eye(6, dtype=torch.float64)]
    assert (block - torch.stack(rows, -1)).abs().max() < 1e-6 * block.abs().max()


def test_single_precision_stays_single() -> None:
    begin = np.linspace(0, 0.2, 5)
    state = State(grows(torch.float32), 5, initial={"x": begin})
    for k in (1, 2, 3):
        load = np.linspace(-0.5, 0.1, 5)
        update = state.update({"load": load.astype(np.float32), "t": 0.1 * k})
        begin = solve_exactly(begin, load, 0.1)
        np.testing.assert_allclose(update["x"], begin, atol=1e-5)
        slope = 0.1 / (1 - 0.2 * begin)
        np.testing.assert_allclose(update.tangent("x", "load"), slope, rtol=1e-4)
        assert update["x"].dtype == update.tangent("x", "load").dtype == np.float32
        state.commit()
    assert state["x"].dtype == state["t"].dtype == torch.float32


def test_one_value_stands_for_all_points() -> None:
    state = State(steel(), (2, 3))
    strain = torch.tensor([0.003, -0.001, -0.001, 0, 0, 0], dtype=torch.float64)
    alone = state.update({"strain": strain, "t": 1.0})
    each = state.update({"strain": strain.expand(2, 3, 6), "t": torch.ones(2, 3).double()})
    assert alone["stress"].shape == (2, 3, 6)
    assert alone.tangent("stress", "strain").shape == (2, 3, 6, 6)
    assert alone.failed.shape == (2, 3)
    assert torch.equal(alone["stress"], each["stress"])
    state.commit()
    assert state["t"].shape == (2, 3)


def test_arrays_of_any_strides_are_read_right() -> None:
    strain = np.random.default_rng(0).normal(size=(6, 4)) * 1e-3
    state = State(steel(), 4)
    turned = state.update({"strain": strain.T, "t": 1.0})
    plain = state.update({"strain": strain.T.copy(), "t": 1.0})
    back = state.update({"strain": strain.T.copy()[::-1], "t": 1.0})
    assert np.array_equal(turned["stress"], plain["stress"])
    assert np.array_equal(back["stress"][::-1], plain["stress"])
    fixed = strain.T.copy()
    fixed.flags.writeable = False
    assert np.array_equal(state.update({"strain": fixed, "t": 1.0})["stress"], plain["stress"])


def test_another_state_goes_on_where_one_is() -> None:
    strain = np.random.default_rng(1).normal(size=(4, 6)) * 3e-3
    state = State(steel(), 4)
    state.update({"strain": strain, "t": 1.0})
    state.commit()
    other = State(steel(), 4, initial=state.values())
    given = {"strain": -strain, "t": 2.0}
    assert np.array_equal(state.update(given)["stress"], other.update(given)["stress"])


def test_states_of_one_model_do_not_meet() -> None:
    one, two = State(steel(), 2), State(steel(), 2)
    one.update({"strain": np.full((2, 6), 0.01), "t": 1.0})
    one.commit()
    assert (one["equivalent_plastic_strain"] > 0).all()
    assert (two["equivalent_plastic_strain"] == 0).all()


def refused(call: Any) -> str:
    with pytest.raises(IngotError) as error:
        call()
    return str(error.value)


def test_mistakes_are_told() -> None:
    state = State(steel(), (2, 3))
    strain = np.zeros((2, 3, 6))
    assert "did you mean 'plastic_strain'" in refused(
        lambda: State(steel(), 2, initial={"plastic_strin": 0.0})
    )
    assert "the state has (2,) points" in refused(
        lambda: State(steel(), 2, initial={"plastic_strain": np.zeros((3, 6))})
    )
    assert "not of a Model" in refused(
        lambda: State(ingot.from_hit(STEEL_ALONE, "steel"), 2)  # pyright: ignore[reportArgumentType]
    )
    assert "give it the shape (2, 3, 6)" in refused(
        lambda: state.update({"strain": strain.reshape(6, 6), "t": 1.0})
    )
    assert "'t~1' is remembered" in refused(
        lambda: state.update({"strain": strain, "t": 1.0, "t~1": 0.0})
    )
    assert "did you mean 'strain'" in refused(lambda: state.update({"strai": strain, "t": 1.0}))
    assert "the input 't' is missing" in refused(lambda: state.update({"strain": strain}))
    assert "float32" in refused(
        lambda: state.update({"strain": strain.astype(np.float32), "t": 1.0})
    )
    assert "is not remembered" in refused(lambda: state["stress"])
    told = "are a list, not values by name"
    assert told in refused(lambda: state.update([strain]))  # pyright: ignore[reportArgumentType]
    assert told in refused(lambda: State(steel(), 2, [1.0]))  # pyright: ignore[reportArgumentType]
    assert "the initial value of 'plastic_strain~1' is a str" in refused(
        lambda: State(steel(), 2, {"plastic_strain": "none"})
    )
    for points in (2.5, -1, "two", (3, -1), None):
        assert "is no number of points" in refused(lambda points=points: State(steel(), points))
    for times in (["a"], 3.0, None, [0.0, None]):
        assert "should be numbers" in refused(lambda times=times: Increments(times))
    assert "there is no trial" in refused(state.commit)


def test_a_tangent_that_is_not_there_is_told() -> None:
    state = State(steel(), 2)
    given = {"strain": np.zeros((2, 6)), "t": 1.0}
    update = state.update(given)
    assert update.tangent("stress", "strain").shape == (2, 6, 6)
    for pair, told in (
        (("stress", "t"), "the pair stress:t was not compiled\n  fix: compile with derivative="),
        (("stres", "strain"), "there is no output 'stres'\n  fix: did you mean 'stress'?"),
        (("stress", "strin"), "there is no input 'strin'\n  fix: did you mean 'strain'?"),
    ):
        assert told in refused(lambda pair=pair: update.tangent(*pair))
    assert "there is no output 'stres'" in refused(lambda: update["stres"])
    bare = state.update(given, tangent=False)
    assert "leave tangent=False" in refused(lambda: bare.tangent("stress", "strain"))


STEEL_ALONE = "[Models]\n[steel]\ntype = IsotropicElasticity\nE = 1\nnu = 0.3\n[]\n[]"


def test_a_model_without_history_has_nothing_to_remember() -> None:
    spring = ingot.compile(ingot.from_hit(STEEL_ALONE, "steel"), derivative=("stress:strain",))
    state = State(spring, 2)
    update = state.update({"strain": np.eye(6)[:2]})
    assert update.tangent("stress", "strain").shape == (2, 6, 6)
    assert not update.has_failed
    state.commit()
    assert state.values() == {}


def test_a_package_without_derivatives_says_what_to_compile() -> None:
    spring = ingot.compile(ingot.from_hit(STEEL_ALONE, "steel"))
    state = State(spring, 2)
    assert "derivative" in refused(lambda: state.update({"strain": np.eye(6)[:2]}))
    assert state.update({"strain": np.eye(6)[:2]}, tangent=False)["stress"].shape == (2, 6)


def test_a_step_that_single_precision_loses_is_refused() -> None:
    state = State(grows(torch.float32), 3)
    state.update({"t": 100.0, "load": 0.0})
    state.commit()
    for length in (1e-6, 1e-4):  # none at all, and off by more than a thousandth
        with pytest.raises(IngotError, match="lost-step"):
            state.update({"t": 100.0 + length, "load": 0.0})
    state.update({"t": 100.5, "load": 0.0})
    State(grows(), 3, {"t": 100.0}).update({"t": 100.0 + 1e-6, "load": 0.0})


def test_a_transient_in_single_precision_tells_the_step_that_it_loses() -> None:
    def take(times: Tensor, material: Artifact) -> Tensor:
        prescribed = {"t": times, "load": torch.zeros(len(times), dtype=torch.float64)}
        return material.transient(Transient(len(times), prescribed, {})).outputs["x"]

    long = 1e4 + torch.linspace(0, 1e-2, 11, dtype=torch.float64)
    with pytest.raises(IngotError, match=r"a step of 0.001 from 't' = 10000 is 0.000976562"):
        take(long, grows(torch.float32))
    assert take(long, grows()).isfinite().all()
    assert take(long - 1e4, grows(torch.float32)).isfinite().all()
