"""First guesses: extrapolations by hand, descent on a coupled rate law, condensed return paths."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.execute import executor
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import Model, build
from ingot.program import prepared, with_jacobian

F64 = torch.float64
EPS = torch.finfo(F64).eps
every_executor = pytest.mark.parametrize("backend", ["interpret", "kernel"])

EXTRAPOLATION = """
[Models]
  [guess]
    type = {type}
    unknowns_Scalar = 'p'
    unknowns_SR2 = 'e'
    {more}
  []
[]
"""


def guess(type: str, more: str = "") -> Model:
    return build(read_text(EXTRAPOLATION.format(type=type, more=more)), "guess")


def draw(model: Model, batch: int = 6) -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(3)
    found = {
        name: torch.rand(batch, *kind.base, generator=source, dtype=F64)
        for name, kind in model.inputs.items()
    }
    if "t~2" in found:
        found["t~2"][::2] = found["t~1"][::2]  # no history there
    return found


def extrapolated(x: dict[str, Tensor], name: str, cold: str | None, *, linear: bool) -> Tensor:
    """By hand, point by point."""
    rows = []
    for i in range(len(x["t"])):
        step = float(x["t~1"][i] - x["t~2"][i])
        old = x[f"{name}~1"][i]
        if abs(step) <= EPS:
            rows.append(x[cold][i] if cold else old)
        elif linear:
            share = float(x["t"][i] - x["t~1"][i]) / step
            rows.append(old + (old - x[f"{name}~2"][i]) * share)
        else:
            rows.append(old)
    return torch.stack(rows)


@every_executor
@pytest.mark.parametrize("linear", [False, True])
def test_a_guess_goes_on_as_it_went_or_starts_cold(backend: Any, linear: bool) -> None:
    type = "LinearExtrapolationPredictor" if linear else "ConstantExtrapolationPredictor"
    model = guess(type, "cold = 'e:trial'")
    x = draw(model)
    found, _ = executor(prepared(model), backend)(x)
    torch.testing.assert_close(found["p"], extrapolated(x, "p", None, linear=linear))
    torch.testing.assert_close(found["e"], extrapolated(x, "e", "trial", linear=linear))


def test_a_guess_without_cold_entries_reads_what_it_needs() -> None:
    assert list(guess("ConstantExtrapolationPredictor").inputs) == ["e~1", "p~1"]
    linear = guess("LinearExtrapolationPredictor", "time = 's'")
    assert set(linear.inputs) == {"e~1", "p~1", "s", "s~1", "s~2", "e~2", "p~2"}


@pytest.mark.parametrize(
    ("cold", "told"),
    [
        ("e", "is no pair"),
        ("e:a:b", "is no pair"),
        ("f:a", "is none of the unknowns"),
        ("e:a e:b", "is named twice"),
    ],
)
def test_cold_entries_that_mean_nothing_are_refused(cold: str, told: str) -> None:
    with pytest.raises(IngotError, match=told):
        guess("LinearExtrapolationPredictor", f"cold = '{cold}'")


DESCENT = """
[Models]
  [slip_rule]
    type = PowerLawSlipRule
    gamma0 = 0.02
    n = 4.0
  []
  [descent]
    type = CoordinateDescentPredictor
    rate_law = 'slip_rule'
    driving_force_input = 'resolved_shears'
    rate = 'g'
    {more}
  []
[]
"""


def law(force: Tensor, strength: Tensor) -> Tensor:
    ratio = force / strength
    return 0.02 * ratio.abs() ** 3 * ratio


def coupled(size: int, *batch: int) -> dict[str, Tensor]:
    """A positive definite coupling, forces of either sign, and strengths."""
    source = torch.Generator().manual_seed(size)
    half = torch.randn(*batch, size, size, generator=source, dtype=F64)
    coupling = half @ half.mT + size * torch.eye(size, dtype=F64)
    trial = torch.randn(*batch, size, generator=source, dtype=F64) * 20
    strengths = 1 + torch.rand(*batch, size, generator=source, dtype=F64)
    return {"coupling": coupling, "trial_driving_force": trial, "slip_strengths": strengths}


@every_executor
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_descent_solves_the_coupled_rate_law(backend: Any, batch: tuple[int, ...]) -> None:
    x = coupled(5, *batch)
    shapes = {"coupling": (5, 5), "trial_driving_force": (5,), "slip_strengths": (5,)}
    program = prepared(build(read_text(DESCENT.format(more="sweeps = 40")), "descent"), shapes)
    found, _ = executor(program, backend)(x)
    rate = found["g"]
    force = x["trial_driving_force"] - (x["coupling"] @ rate[..., None])[..., 0]
    assert rate.shape == x["trial_driving_force"].shape
    torch.testing.assert_close(rate, law(force, x["slip_strengths"]), rtol=1e-8, atol=1e-10)
    assert float(rate.abs().min()) > 0


def sweep(x: dict[str, Tensor], sweeps: int, bisections: int, polish: int) -> Tensor:
    """One point by hand: coordinates in turn, halving, then Newton's method."""
    coupling, trial, strengths = (x[n] for n in ("coupling", "trial_driving_force",
                                                 "slip_strengths"))  # fmt: skip
    rates = torch.zeros_like(trial)
    for _ in range(sweeps):
        for i in range(len(trial)):
            left = trial[i] - (coupling[i] @ rates - coupling[i, i] * rates[i])
            side = -1.0 if left < 0 else 1.0
            low, high = 0.0, 1.0
            for _ in range(bisections):
                middle = (low + high) / 2
                force = middle * left
                residual = force + coupling[i, i] * law(force, strengths[i]) - left
                low, high = (middle, high) if side * residual < 0 else (low, middle)
            force = (low + high) / 2 * left
            for _ in range(polish):
                rate = law(force, strengths[i])
                slope = 4 * 0.02 * (force / strengths[i]).abs() ** 3 / strengths[i]
                residual = force + coupling[i, i] * rate - left
                force = force - residual / (1 + coupling[i, i] * slope)
            rates[i] = law(force, strengths[i])
    return rates


@every_executor
@pytest.mark.parametrize("counts", [(1, 0, 0), (1, 3, 0), (2, 2, 1), (3, 5, 2)], ids=str)
def test_every_sweep_halving_and_step_is_the_one_by_hand(backend: Any, counts: Any) -> None:
    keys = zip(("sweeps", "bisections", "polish"), counts, strict=True)
    more = "\n".join(f"{k} = {n}" for k, n in keys)
    shapes = {"coupling": (4, 4), "trial_driving_force": (4,), "slip_strengths": (4,)}
    program = prepared(build(read_text(DESCENT.format(more=more)), "descent"), shapes)
    x = coupled(4, 3)
    found, _ = executor(program, backend)(x)
    expected = [sweep({n: v[i] for n, v in x.items()}, *counts) for i in range(3)]
    torch.testing.assert_close(found["g"], torch.stack(expected), rtol=1e-10, atol=1e-14)


@every_executor
def test_descent_of_a_plain_rate_is_one_equation(backend: Any) -> None:
    program = prepared(build(read_text(DESCENT.format(more="sweeps = 1")), "descent"))
    x = {n: v[..., 0, 0] if v.ndim == 3 else v[..., 0] for n, v in coupled(2, 7).items()}
    found, _ = executor(program, backend)(x)
    force = x["trial_driving_force"] - x["coupling"] * found["g"]
    torch.testing.assert_close(found["g"], law(force, x["slip_strengths"]), rtol=1e-8, atol=1e-10)


def test_descent_of_many_grains_is_that_of_each() -> None:
    x = coupled(4, 3, 2)
    shapes = {"coupling": (2, 4, 4), "trial_driving_force": (2, 4), "slip_strengths": (2, 4)}
    model = build(read_text(DESCENT.format(more="sweeps = 2")), "descent")
    together, _ = executor(prepared(model, shapes))(x)
    each, _ = executor(prepared(model, {n: s[1:] for n, s in shapes.items()}))(x)
    torch.testing.assert_close(together["g"], each["g"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("driving_force_input = 'resolved_shears'", "driving_force_input = 'tau'"), "no input"),
        (("rate = 'g'", "rate = 'g'\n sweeps = 0"), "sweeps"),
        (("rate_law = 'slip_rule'", "rate_law = 'missing'"), "missing"),
    ],
)
def test_a_descent_that_means_nothing_is_refused(change: tuple[str, str], told: str) -> None:
    with pytest.raises(IngotError, match=told):
        build(read_text(DESCENT.format(more="").replace(*change)), "descent")


CONDENSED = """
[Models]
  [force]
    type = ScalarMultiplication
    from = 'a gap'
    to = 'driving'
  []
  [gap]
    type = ScalarLinearCombination
    from = 'b rate'
    to = 'gap'
    weights = '1 -3'
  []
  [path]
    type = ComposedModel
    models = 'force gap'
  []
  [condensed]
    type = RateCondensation
    model = 'path'
    rate = 'rate'
    driving_force = 'driving'
    coupling = 'A'
  []
[]
"""


@every_executor
def test_a_condensed_path_gives_its_force_and_slope_at_no_rate(backend: Any) -> None:
    model = build(read_text(CONDENSED), "condensed")
    assert set(model.inputs) == {"a", "b"}
    program = with_jacobian(prepared(model), [("A", "a"), ("trial_driving_force", "b")])
    a, b = torch.rand(2, 5, dtype=F64)
    found, _ = executor(program, backend)({"a": a, "b": b})
    torch.testing.assert_close(found["A"], 3 * a)
    torch.testing.assert_close(found["trial_driving_force"], a * b)
    torch.testing.assert_close(found["A:a"].expand(5), torch.full((5,), 3.0, dtype=F64))
    torch.testing.assert_close(found["trial_driving_force:b"], a)


def test_a_path_without_that_rate_is_refused() -> None:
    with pytest.raises(IngotError, match="no input 'speed'"):
        build(read_text(CONDENSED.replace("rate = 'rate'", "rate = 'speed'")), "condensed")


def test_slopes_through_a_descent_are_those_of_its_solution() -> None:
    shapes = {"coupling": (3, 3), "trial_driving_force": (3,), "slip_strengths": (3,)}
    program = prepared(build(read_text(DESCENT.format(more="sweeps = 60")), "descent"), shapes)
    x = coupled(3, 2)
    sloped = with_jacobian(program, [("g", "trial_driving_force")])
    found, _ = Interpreter(sloped)(x)
    rate, strengths = found["g"], x["slip_strengths"]
    force = x["trial_driving_force"] - (x["coupling"] @ rate[..., None])[..., 0]
    slope = 4 * 0.02 * (force / strengths).abs() ** 3 / strengths
    inner = torch.eye(3, dtype=F64) + slope[..., None] * x["coupling"]
    expected = torch.linalg.solve(inner, torch.diag_embed(slope))
    torch.testing.assert_close(found["g:trial_driving_force"], expected, rtol=1e-6, atol=1e-9)


CRYSTAL = """
[Tensors]
  [directions]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 0]))'
  []
  [planes]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 1]))'
  []
  [stiffness]
    type = Python
    expr = 'SSR4(torch.diag(torch.tensor([200.0, 200, 200, 90, 90, 90], dtype=torch.float64)))'
  []
[]
[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 1.0
    slip_directions = 'directions'
    slip_planes = 'planes'
  []
[]
[Models]
  [coupling]
    type = SlipSystemElasticInteraction
    elastic_stiffness_tensor = 'stiffness'
  []
  [trial]
    type = ResolvedShear
    resolved_shears = 'trial_driving_force'
  []
  [slip_rule]
    type = PowerLawSlipRule
    gamma0 = 0.02
    n = 4.0
  []
  [strength]
    type = SingleSlipStrengthMap
    constant_strength = 2
  []
  [descent]
    type = CoordinateDescentPredictor
    rate_law = 'slip_rule'
    driving_force_input = 'resolved_shears'
    rate = 'slip_rates'
    sweeps = 60
  []
  [sum]
    type = SumSlipRates
  []
  [all]
    type = ComposedModel
    models = 'coupling trial strength descent sum'
    additional_outputs = 'slip_rates coupling trial_driving_force'
  []
[]
"""


def test_descent_solves_for_slip_that_a_stiffness_couples() -> None:
    program = prepared(build(read_text(CRYSTAL), "all"))
    source = torch.Generator().manual_seed(1)
    drawn = {v.name: torch.randn(3, *v.kind.base, generator=source, dtype=F64)
             for v in program.inputs}  # fmt: skip
    drawn |= {"t": torch.ones(3, dtype=F64), "t~1": torch.full((3,), 0.9, dtype=F64)}
    drawn["slip_hardening"] = torch.zeros(3, dtype=F64)
    found, _ = Interpreter(program)({n: x * 5 if n == "stress" else x for n, x in drawn.items()})
    rate = found["slip_rates"]
    force = found["trial_driving_force"] - (found["coupling"] @ rate[..., None])[..., 0]
    torch.testing.assert_close(rate, law(force, torch.tensor(2.0)), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(found["sum_slip_rates"], rate.abs().sum(-1))
