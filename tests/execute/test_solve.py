"""Newton's rules hold, by the kernel and by the interpreter, and what converges is a solution."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from ingot.execute import Backend, Criterion, Reason, Status, Transient, executor
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import Newton, factor, with_jacobian
from ingot.program.eliminate import Attempt, Eliminated, Form, eliminate
from ingot.types import Scalar
from tests.systems import (
    Array,
    implicit,
    overshooting,
    plasticity,
    program_of,
    viscoplasticity,
)  # fmt: skip

POINTS = 40


def residual_at(u: Array, g: Array) -> Array:
    return np.array([
        np.arctan(3 * u[0]) - g[0], u[1] ** 3 - g[1] * u[1] + g[2] + 0.05 * u[0],
    ])  # fmt: skip


def slope_at(u: Array, g: Array) -> Array:
    return np.array([[3 / (1 + 9 * u[0] ** 2), 0.0], [0.05, 3 * u[1] ** 2 - g[1]]])


def points() -> tuple[Array, Array]:
    """Guesses and givens (2, points) and (3, points): converging, circling and diverging ones."""
    rng = np.random.default_rng(4)
    guess = np.stack([rng.uniform(-1.2, 1.2, POINTS), rng.uniform(-2, 2, POINTS)])
    given = np.stack(
        [rng.uniform(-1, 1, POINTS), rng.uniform(-3, 2, POINTS), rng.uniform(-2, 2, POINTS)]
    )
    guess[:, 3], given[:, 3] = (
        (0.02, 0.01),
        (0.02, 2.0, 2.0),
    )  # u^3 - 2 u + 2 circles between 0 and 1
    guess[:, 7], given[:, 7] = (0.0, 0.0), (0.0, -1.0, 0.0)  # at the solution
    guess[:, 11] = (5.0, 0.3)  # the arctangent's Newton diverges
    given[0, 15] = np.nan
    return guess, given


@dataclass
class Point:
    """A Newton solve of one point, by the rules of the reference, one update at a time."""

    u: Array
    g: Array
    newton: Newton
    reason: Reason = Reason.OUT_OF_STEPS
    iterations: int = 0

    def __post_init__(self) -> None:
        self.r = residual_at(self.u, self.g)
        self.first = self.size
        if self.size < self.newton.abs_tol:
            self.reason = Reason.CONVERGED
        if not math.isfinite(self.size):
            self.reason = Reason.NOT_FINITE

    @property
    def size(self) -> float:
        return math.hypot(*self.r)

    @property
    def accepted(self) -> Criterion:
        if self.reason != Reason.CONVERGED:
            return Criterion.NONE
        return Criterion.ABS_TOL if self.size < self.newton.abs_tol else Criterion.REL_TOL

    def update(self) -> None:
        with np.errstate(all="ignore"):
            slope = slope_at(self.u, self.g)  # lower triangular, and 0 far from the root
            first = -self.r[0] / slope[0, 0]
            d = np.array([first, (-self.r[1] - slope[1, 0] * first) / slope[1, 1]])
            self.u = self.searched(d)
            self.r = residual_at(self.u, self.g)
        self.iterations += 1
        if self.size < self.newton.abs_tol or self.size < self.newton.rel_tol * self.first:
            self.reason = Reason.CONVERGED
        if not math.isfinite(self.size):
            self.reason = Reason.NOT_FINITE

    def searched(self, d: Array) -> Array:
        n, alpha = self.newton, 1.0
        if n.linesearch == "NONE" or n.max_linesearch_iterations <= 1:
            return self.u + d
        for k in range(1, n.max_linesearch_iterations):
            trial = self.u + alpha * d
            now = np.float64(math.hypot(*residual_at(trial, self.g)))
            promised = 1.0
            if n.linesearch == "BACKTRACKING":
                promised = -2 * float((self.r / self.size) @ (d / self.size))
            bound = 1 - n.linesearch_stopping_criteria * alpha * promised
            enough = (now / self.size) ** 2 <= bound or now <= n.abs_tol
            if enough or k == n.max_linesearch_iterations - 1:
                return trial
            alpha /= n.linesearch_cutback
        raise AssertionError


def by_hand(newton: Newton, which: Sequence[int] = range(POINTS)) -> list[Point]:
    """Every point by the reference's rules, alone or with the whole batch."""
    guess, given = points()
    found = [Point(guess[:, i], given[:, i], newton) for i in which]
    for _ in range(1, newton.max_its):
        moving = [p for p in found if p.reason == Reason.OUT_OF_STEPS]
        if newton.stop == "batch" and moving:
            moving = [p for p in found if p.reason != Reason.NOT_FINITE]
        for p in moving:
            p.update()
    return found


def run(
    backend: Backend, newton: Newton, which: Sequence[int] = range(POINTS)
) -> tuple[Tensor, Status]:
    """The unknowns (points, 2) and the status of the batch."""
    guess, given = (torch.from_numpy(x[:, list(which)]) for x in points())
    program = implicit(overshooting, 2, 3, newton)
    inputs = {**{f"u{i}": guess[i] for i in range(2)}, **{f"g{i}": given[i] for i in range(3)}}
    outputs, (status,) = executor(program, backend)(inputs)
    return torch.stack([outputs["u0"], outputs["u1"]], dim=1), status


# A search that finds no root wanders, and after many steps tells one rounding from another.
SEARCH = Newton(linesearch="BACKTRACKING", max_its=9)
RULES = {
    "default": Newton(),
    "no update": Newton(max_its=1),
    "one update": Newton(max_its=2),
    "four updates": Newton(max_its=5),
    "relative tolerance alone": Newton(abs_tol=0.0, rel_tol=1e-3),
    "absolute tolerance alone": Newton(abs_tol=1e-2, rel_tol=0.0),
    "loose at the guess": Newton(abs_tol=1.0),
    "backtracking": SEARCH,
    "strict backtracking": replace(SEARCH, linesearch_stopping_criteria=0.4),
    "backtracking by fours": replace(SEARCH, linesearch_cutback=4.0),
    "two trials": replace(SEARCH, max_linesearch_iterations=3),
    "one trial": replace(SEARCH, max_linesearch_iterations=2),
    "no trial": replace(SEARCH, max_linesearch_iterations=1),
    "strong Wolfe": replace(SEARCH, linesearch="STRONG_WOLFE"),
    "strict strong Wolfe": replace(
        SEARCH, linesearch="STRONG_WOLFE", linesearch_stopping_criteria=0.9
    ),
}


def assert_follows(found: Tensor, status: Status, expected: list[Point]) -> None:
    assert status.reason.tolist() == [p.reason for p in expected]
    assert status.iterations.tolist() == [p.iterations for p in expected]
    assert status.accepted.tolist() == [p.accepted for p in expected]
    for i, point in enumerate(expected):
        if point.reason == Reason.CONVERGED:
            np.testing.assert_allclose(found[i], point.u, rtol=1e-6, atol=1e-9)
        else:
            assert found[i].isnan().all()
        if point.reason != Reason.NOT_FINITE:
            np.testing.assert_allclose(status.residual[i], point.size, rtol=1e-6, atol=1e-9)
        else:
            assert not status.residual[i].isfinite()


@pytest.mark.parametrize("rule", RULES)
def test_newton_follows_the_rules_of_the_reference(rule: str, backend: Backend) -> None:
    assert_follows(*run(backend, RULES[rule]), by_hand(RULES[rule]))


def test_points_converge_circle_and_diverge() -> None:
    reasons = [p.reason for p in by_hand(Newton())]
    assert min(reasons.count(r) for r in Reason) >= 2, "the batch shows no such point"


BATCH = Newton(stop="batch", abs_tol=1e-6)
FEW = (9, 19, 30, 33)


def test_a_whole_batch_moves_until_its_last_point_has_converged(backend: Backend) -> None:
    alone = by_hand(replace(BATCH, stop="point"), FEW)
    assert len({p.iterations for p in alone}) > 1 and {p.reason for p in alone} == {0}
    found, status = run(backend, BATCH, FEW)
    assert status.iterations.tolist() == [max(p.iterations for p in alone)] * len(FEW)
    assert_follows(found, status, by_hand(BATCH, FEW))


def test_a_batch_beyond_one_block_moves_until_its_last_point_has_converged(
    backend: Backend,
) -> None:
    quick = [i for i, p in enumerate(by_hand(BATCH)) if p.reason == Reason.CONVERGED]
    assert_follows(*run(backend, BATCH, quick * 3), by_hand(BATCH, quick * 3))


def square(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    return [u[0] * u[0] - g[0]]


def test_a_converged_point_that_the_batch_moves_to_nowhere_has_not_converged(
    backend: Backend,
) -> None:
    """At u = 0 the first point has converged, and its next update is 0 / 0."""
    inputs = {"u0": torch.tensor([0.0, 3.0]).double(), "g0": torch.tensor([0.0, 4.0]).double()}
    outputs, (status,) = executor(implicit(square, 1, 1, BATCH), backend)(inputs)
    assert status.reason.tolist() == [Reason.NOT_FINITE, Reason.CONVERGED]
    assert outputs["u0"].isnan().tolist() == [True, False]


# pivots that vanish


def crossing(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    """Its first pivot is u0 - 3, which vanishes at no probe state."""
    near, far, up, side = u[0] - 3.0, u[1] + 9.0, u[1] + 5.0, u[0] + 7.0
    return [0.5 * near * near + 0.5 * far * far - g[0], 0.05 * side * side + 0.5 * up * up - g[1]]


def crossing_at(u0: Tensor, u1: Tensor) -> dict[str, Tensor]:
    """The givens for which u0, u1 is a solution."""
    return {
        "g0": 0.5 * (u0 - 3) ** 2 + 0.5 * (u1 + 9) ** 2,
        "g1": 0.05 * (u0 + 7) ** 2 + 0.5 * (u1 + 5) ** 2,
    }


def forced(monkeypatch: pytest.MonkeyPatch, form: Form, spoil: float = 1.0) -> None:
    """Let the compiler take this form whatever it costs, its updates multiplied by `spoil`."""

    def spoiled(found: Eliminated) -> Eliminated:
        update = tuple(found.builder.emit("mul", spoil, x) for x in found.update)
        return dataclasses.replace(found, update=update)

    def choose(attempt: Attempt) -> tuple[Eliminated, dict[str, int]]:
        return spoiled(eliminate(attempt, form)), {}

    solve_again = factor.solve_again
    monkeypatch.setattr(factor, "choose_form", choose)
    monkeypatch.setattr(
        factor, "solve_again", lambda *given, **named: spoiled(solve_again(*given, **named))
    )


FIVE = torch.linspace(0.5, 1.5, 5, dtype=torch.float64)
GUESS = {
    "u0": torch.tensor([2.0, 3.0, 4.0, 3.0 + 1e-12, 2.5], dtype=torch.float64),
    "u1": torch.tensor([1.0, 1.5, 0.5, -1.0, 2.0], dtype=torch.float64),
}
SOLUTION = crossing_at(3.7 + 0.0 * FIVE, FIVE)


@pytest.mark.parametrize("form", ("jacobian", "accumulated"))
def test_a_pivot_that_is_zero_at_run_time_is_supplied_by_the_pivoted_routine(
    form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced(monkeypatch, form)
    program = implicit(crossing, 2, 2)
    kernel = Kernel(program)
    (solve,) = kernel.compiled.solves
    newton = solve.factored.newton
    assert isinstance(newton, Eliminated)
    lines = len(newton.pivots) - 2
    assert (lines, 0) in newton.pivots, "u0 - 3 is no pivot"
    found, (status,) = kernel({**GUESS, **SOLUTION})
    expected, (reference,) = Interpreter(program)({**GUESS, **SOLUTION})
    assert status.pivoted.tolist() == [0, 1, 0, 1, 0]
    assert status.iterations.tolist() == reference.iterations.tolist()
    for name in ("u0", "u1"):
        torch.testing.assert_close(found[name], expected[name], rtol=1e-12, atol=1e-12)


def test_an_update_that_does_not_solve_its_equations_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = implicit(crossing, 2, 2)
    expected, (reference,) = Interpreter(program)({**GUESS, **SOLUTION})
    forced(monkeypatch, "extended", spoil=-3.0)
    found, (status,) = Kernel(program)({**GUESS, **SOLUTION})
    assert status.pivoted.tolist() == status.iterations.tolist() == reference.iterations.tolist()
    for name in ("u0", "u1"):
        torch.testing.assert_close(found[name], expected[name], rtol=1e-12, atol=1e-12)


BLOCKS = [(y, x) for y in ("u0", "u1") for x in ("g0", "g1")]


def assert_tangents_agree(kernel: Kernel, reference: Interpreter, offset: float) -> None:
    """At a solution whose first pivot is `offset`."""
    u0, u1 = torch.full((5,), 3.0 + offset, dtype=torch.float64), FIVE
    inputs = {"u0": u0, "u1": u1, **crossing_at(u0, u1)}
    (found, (status,)), (expected, _) = kernel(inputs), reference(inputs)
    assert not status.iterations.any()
    for y, x in BLOCKS:
        torch.testing.assert_close(found[f"{y}:{x}"], expected[f"{y}:{x}"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("form", "spoil"), (("jacobian", 1.0), ("extended", -3.0)))
def test_tangents_in_doubt_are_made_by_the_pivoted_routine(
    form: Form, spoil: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = with_jacobian(implicit(crossing, 2, 2), BLOCKS)
    forced(monkeypatch, form, spoil)
    kernel, reference = Kernel(program), Interpreter(program)
    assert_tangents_agree(kernel, reference, offset=0.0)


def test_tangents_are_accurate_at_small_pivots(monkeypatch: pytest.MonkeyPatch) -> None:
    program = with_jacobian(implicit(crossing, 2, 2), BLOCKS)
    forced(monkeypatch, "jacobian")
    kernel, reference = Kernel(program), Interpreter(program)
    for digits in range(2, 14):
        assert_tangents_agree(kernel, reference, offset=10.0**-digits)


# stiff states

STEPS = 6


def driven(points: int, seed: int) -> dict[str, Tensor]:
    """Strain paths in all directions, rates over six decades, the first step 30 times the next."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal((points, 6))
    direction *= (
        10 ** rng.uniform(-4, -2.5, (points, 1)) / np.linalg.norm(direction, axis=1)[:, None]
    )
    step = np.array([0.0, 30.0, 1.0, 1.0, 1.0, 1.0]).cumsum()
    time = step[:, None] * 10 ** rng.uniform(-3, 3, points)
    return {"E": torch.from_numpy(step[:, None, None] * direction), "t": torch.from_numpy(time)}


STIFF = {
    "viscoplastic": viscoplasticity(),
    "viscoplastic, nearly incompressible": viscoplasticity(nu=0.4999),
    "rate-independent": plasticity("MinMapComplementarity", isotropic=True, kinematic=False),
    "rate-independent, nearly incompressible": plasticity(
        "FBComplementarity", isotropic=True, kinematic=True, nu=0.4999
    ),
}


@pytest.mark.parametrize("model", STIFF)
def test_what_converged_solves_the_residual(model: str, backend: Backend) -> None:
    program = program_of(STIFF[model])
    newton = program.solves[0].newton
    prescribed = driven(32, seed=len(model))
    history = executor(program, backend).transient(Transient(STEPS, prescribed, {}))
    residual = Interpreter(program_of(STIFF[model], "residual"))
    converged = history.statuses[0].converged
    for k in range(1, STEPS):
        known = {n: x[k] for n, x in {**prescribed, **history.outputs}.items()}
        known |= {f"{n}~1": x[k - 1] for n, x in {**prescribed, **history.outputs}.items()}
        guess = {n: history.outputs[n][k - 1] for n in history.outputs}
        size, first = norm(residual, known), norm(residual, {**known, **guess})
        allowed = (newton.rel_tol * first).clamp(min=newton.abs_tol)
        print(model, k, int(converged[k - 1].sum()), (size / allowed)[converged[k - 1]].max())
        assert (size <= 1.0000001 * allowed)[converged[k - 1]].all()


def norm(residual: Interpreter, inputs: Mapping[str, Tensor]) -> Tensor:
    """The size of the residual at every point."""
    rows, _ = residual(inputs)
    flat = [x.reshape(len(x), -1) for x in rows.values()]
    return torch.linalg.vector_norm(torch.cat(flat, dim=1), dim=1)
