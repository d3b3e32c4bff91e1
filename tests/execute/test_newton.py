"""Newton's method ends alike on all executors; in single precision where rounding ends it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot import IngotError
from ingot.execute import Backend, Criterion, Reason, Status, executor
from ingot.execute.newton import find_confirmed, find_ended, measure_updates, run_newton
from ingot.hit import read_text
from ingot.model import build
from ingot.options import Newton
from ingot.program import Variable, along_direction, prepared, with_jacobian
from ingot.types import Scalar
from tests.systems import Array, implicit, plasticity

LAWS = ("FBComplementarity", "MinMapComplementarity")


def steps(law: str, backend: str, dtype: torch.dtype) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Ten steps of plastic flow of a batch that begins elastic: outputs, reasons, iterations."""
    text = plasticity(law, isotropic=True, kinematic=False)
    program = prepared(build(read_text(text), "update"))
    run = executor(program, "kernel" if backend == "kernel" else "interpret", dtype)
    given = {v.name: v for v in program.inputs}
    last = {n: torch.zeros(8, *v.kind.base, dtype=dtype) for n, v in given.items()}
    direction = torch.tensor([1, -0.5, -0.5, 0.1, 0, 0], dtype=dtype)
    sizes = torch.logspace(-5, -3, 8, dtype=dtype)[:, None]
    reasons, iterations = [], []
    for k in range(1, 11):
        last["E"] = k * sizes * direction
        last["t~1"], last["t"] = last["t"], torch.full((8,), float(k), dtype=dtype)
        found, (status,) = run(last)
        last |= {f"{n}~1": x for n, x in found.items() if f"{n}~1" in last}
        reasons.append(status.reason)
        iterations.append(status.iterations)
    return found, torch.stack(reasons), torch.stack(iterations)


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
@pytest.mark.parametrize("law", LAWS)
def test_tolerances_of_double_precision_do_not_stop_single(law: str, backend: str) -> None:
    exact, _, _ = steps(law, backend, torch.float64)
    found, reasons, iterations = steps(law, backend, torch.float32)
    assert not reasons.any() and int(iterations.max()) < 20
    assert float(exact["plastic_strain"].abs().max()) > 1e-3
    for name, x in exact.items():
        assert found[name].dtype == torch.float32
        scale = float(x.abs().max())
        torch.testing.assert_close(found[name].double(), x, rtol=0, atol=2e-4 * scale)


def test_double_precision_follows_the_tolerances_alone() -> None:
    root = torch.full((1, 1), 1 / 3, dtype=torch.float64)
    # Rounding keeps the residual at 1e-9 of the first, which single precision would accept.
    stuck = {torch.float32: Reason.CONVERGED, torch.float64: Reason.OUT_OF_STEPS}
    for dtype, reason in stuck.items():
        rows = iter([1.0, 1e-9, *[1e-9] * 30])

        def rhs(u: Tensor, rows: Iterator[float] = rows) -> Tensor:
            return torch.full_like(u, next(rows))

        rules = Newton(abs_tol=0.0, rel_tol=1e-12)
        _, status = run_newton("s", root.to(dtype), rhs, lambda u, r, a: (u, rhs(u)), rules, [1])
        assert status.reason.tolist() == [reason]


def test_points_settle_only_where_no_update_helps() -> None:
    before = torch.tensor([1e-6, 1e-6, 1e-3, 1e-3, 1.0, 1.0, 1e-6, 1.0, 1.0, 1.0, 1e30])
    now = torch.tensor([1e-6, 1e-7, 1e-3, 1e-3, 1.0, 1.0, torch.nan, 0.1, 0.1, 0.9, 1e30])
    change = torch.tensor([1.0, 1.0, 1e-5, 1e-2, 1e-7, 1e-2, 1.0, 1.0, 1e-7, 1.0, 1e-7])
    one = torch.ones(11)
    met = (one.cumsum(0) >= 8) & (one.cumsum(0) <= 10)
    assert find_ended(before, now, one, (change, change), met).tolist() == [
        True, False, True, False, True, False, True, False, True, True, False,
    ]  # fmt: skip


def test_points_are_confirmed_only_where_an_update_stays() -> None:
    reach = torch.tensor([1e-6, 1e-3, 1e-3, 1e-3, 1.0, 1.0, torch.nan, 2e-5, 1e-6, 1e-6, 1e-5])
    change = torch.tensor([1e-3, 1e-3, 1e-5, 1e-2, 1e-7, 1e-5, 1e-3, 1e-3, 1.0, 1.0, 1.0])
    one = torch.ones(11)
    others = torch.where(one.cumsum(0) >= 10, 1e-7, 1e-3)  # where one variable alone changes
    strict, loose = Newton(abs_tol=0.0, rel_tol=0.0), Newton(abs_tol=5e-3, rel_tol=0.0)
    assert find_confirmed(1e-6 * one, reach, one, (change, others), strict).tolist() == [
        True, False, True, False, True, False, False, False, False, True, False,
    ]  # fmt: skip
    assert find_confirmed(1e-6 * one, reach, one, (change, others), loose).tolist() == [
        True, True, True, True, True, False, False, True, False, True, False,
    ]  # fmt: skip


def test_updates_are_measured_in_parts_of_the_variable_they_change() -> None:
    unknowns = torch.tensor([[100.0, 0.0], [0.0, 50.0], [1e-6, 0.0]])
    update = torch.tensor([[1e-4, 0.0], [1e-3, 0.0], [5e-7, 0.0]])
    apart, together = (
        measure_updates(update, unknowns, [2, 1]),
        measure_updates(update, unknowns, [3]),
    )
    assert [x.tolist() for x in apart] == [pytest.approx([0.5, 0.0]), pytest.approx([1e-5, 0.0])]
    assert [x.tolist() for x in together] == [pytest.approx([1e-5, 0.0])] * 2


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_what_rounding_accepted_is_told_as_such(backend: str) -> None:
    text = plasticity("FBComplementarity", isotropic=True, kinematic=False)
    program = prepared(build(read_text(text), "update"))
    run = executor(program, "kernel" if backend == "kernel" else "interpret", torch.float32)
    inputs = {v.name: torch.zeros(8, *v.kind.base) for v in program.inputs}
    inputs["E"] = 1e-2 * torch.rand(8, 6, generator=torch.Generator().manual_seed(1))
    inputs["t"] = torch.ones(8)
    _, (status,) = run(inputs)
    (rules,) = (s.newton for s in program.solves)
    assert bool(status.converged.all()) and bool((status.residual > rules.abs_tol).any())
    rounded = status.accepted == Criterion.ROUNDING
    assert bool(rounded.any()) and bool((status.residual[rounded] >= rules.abs_tol).all())


# residuals of any size


def cubes(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    """Two cubic equations that read each other's unknown, in units of g2 and g3."""
    return [
        g[2] * (u[0] * u[0] * u[0] + 0.25 * u[1] - g[0]),
        g[3] * (u[1] * u[1] * u[1] + 0.25 * u[0] - g[1]),
    ]


@dataclass
class Oracle:
    """Newton's method on `cubes` for one point, in numbers whose squares are numbers."""

    rules: Newton
    u: Array
    g: Array
    largest: float
    single: bool

    def __post_init__(self) -> None:
        self.r = self.residual(self.u)
        self.size = self.first = self.norm(self.r)
        self.met = bool(self.size < self.rules.abs_tol)
        is_done = self.size == 0 if self.single else self.met
        self.reason = Reason.CONVERGED if is_done else Reason.OUT_OF_STEPS
        self.iterations = 0
        self.near = False
        self.look()

    def residual(self, u: Array) -> Array:
        return self.g[2:] * (u**3 + 0.25 * u[::-1] - self.g[:2])

    def norm(self, x: Array) -> Any:
        return np.sqrt((x * x).sum())

    def look(self) -> None:
        if not self.size <= self.largest:
            self.reason = Reason.NOT_FINITE

    def update(self) -> None:
        left, right = self.g[2:]
        a, b, c, d = 3 * left * self.u[0] ** 2, left / 4, right / 4, 3 * right * self.u[1] ** 2
        step = -np.array([d * self.r[0] - b * self.r[1], a * self.r[1] - c * self.r[0]])
        step /= a * d - b * c
        u, r = self.searched(step)
        self.iterations += 1
        has_ended = self.single and self.has_ended(step, self.norm(r))
        settled = self.near or self.change(step) <= 1e-6
        if has_ended and settled and self.is_confirmed(step):
            self.reason = Reason.CONVERGED
            return
        self.near = has_ended
        now = self.norm(r)
        self.met = bool(now < self.rules.abs_tol or now < self.rules.rel_tol * self.first)
        if now == 0 if self.single else self.met:
            self.reason = Reason.CONVERGED
        self.u, self.r, self.size = u, r, now
        self.look()

    def change(self, step: Array) -> Any:
        return np.abs(step / self.u).max()

    def has_ended(self, step: Array, now: Any) -> bool:
        before, first, change = self.size, self.first, self.change(step)
        both = before <= 1e-2 * first and change <= 1e-4
        lost = change <= 1e-6
        ends = both or (np.abs(step / self.u).min() <= 1e-6 and before <= first)
        near = self.met or before <= 1e-5 * first or ends
        return bool((self.met and lost) or (near and not now < before / 2))

    def is_confirmed(self, step: Array) -> bool:
        rules, first, reach = self.rules, self.first, self.norm(self.residual(self.u + step))
        change = self.change(step)
        both = reach <= 1e-2 * first and change <= 1e-4
        down = reach <= max(1e-5, rules.rel_tol) * first or reach < rules.abs_tol
        following = np.abs(step / self.u).min()
        unseen = following <= 1e-6 and self.size <= first and reach <= 8 * self.size
        return bool(change <= 1e-6 or ((down or both) and change <= 1e-2) or unseen)

    def searched(self, step: Array) -> tuple[Array, Array]:
        rules, alpha = self.rules, 1.0
        u = self.u + step
        r = self.residual(u)
        if rules.linesearch == "NONE":
            return u, r
        promised = self.r @ self.r
        if rules.linesearch == "BACKTRACKING":
            promised = -2 * (self.r @ step)
        for _ in range(2, rules.max_linesearch_iterations):
            bound = self.r @ self.r - rules.linesearch_stopping_criteria * alpha * promised
            if r @ r <= bound or self.norm(r) <= rules.abs_tol:
                break
            alpha /= rules.linesearch_cutback
            u = self.u + alpha * step
            r = self.residual(u)
        return u, r


def by_oracle(rules: Newton, inputs: Mapping[str, Tensor]) -> list[Oracle]:
    """Every point of a batch, alone or with the whole."""
    single = inputs["u0"].dtype == torch.float32
    largest = torch.finfo(inputs["u0"].dtype).max
    columns = np.stack([x.double().numpy() for x in inputs.values()]).astype(np.longdouble)
    with np.errstate(all="ignore"):
        batch = [Oracle(rules, x[:2], x[2:], largest, single) for x in columns.T]
        for count in range(1, rules.max_its + 2 * single):
            moving = [p for p in batch if p.reason == Reason.OUT_OF_STEPS]
            if count >= rules.max_its:
                moving = [p for p in moving if p.met or p.near]
            if rules.stop == "batch" and moving and not single:
                moving = [p for p in batch if p.reason != Reason.NOT_FINITE]
            for p in moving:
                p.update()
    return batch


def draw(seed: int, dtype: torch.dtype) -> tuple[Newton, dict[str, Tensor]]:
    """Rules, and points whose residuals may be of any size, or none."""
    rng = np.random.default_rng(seed)
    most = 290 if dtype == torch.float64 else 30
    count = 21
    size = rng.uniform(-most, most, count) * rng.choice([1.0, 0.7, 0.02], count)
    units = 10.0 ** np.stack([size, size + rng.uniform(-5, 5, count)])
    units[:, rng.random(count) < 0.15] = rng.choice([np.inf, np.nan, 0.0])
    columns = np.stack([*rng.uniform(1.5, 4, (2, count)), *rng.uniform(1, 3, (2, count)), *units])
    exponent = rng.choice([rng.uniform(-most, most), -8.0, -1.3 * most])
    # After so few updates no residual is rounding yet, which would differ between executors; in
    # single precision there may be two more.
    rules = Newton(
        abs_tol=float(rng.choice([0.0, 10.0**exponent])),
        rel_tol=float(rng.choice([0.0, 1e-2, 1e-3])),
        max_its=int(rng.integers(1, 5 if dtype == torch.float64 else 4)),
        stop=rng.choice(["point", "batch"]).item(),
        linesearch=rng.choice(["NONE", "BACKTRACKING", "STRONG_WOLFE"]).item(),
        linesearch_stopping_criteria=float(rng.choice([1e-3, 0.3, 0.9])),
    )
    names = ("u0", "u1", "g0", "g1", "g2", "g3")
    return rules, {n: torch.from_numpy(x).to(dtype) for n, x in zip(names, columns, strict=True)}


def assert_judged_alike(status: Status, unknowns: Tensor, points: list[Oracle]) -> None:
    assert status.reason.tolist() == [p.reason for p in points]
    assert status.iterations.tolist() == [p.iterations for p in points]
    eps = torch.finfo(status.residual.dtype).eps
    for found, size, p in zip(unknowns, status.residual.tolist(), points, strict=True):
        assert bool(found.isnan().all()) == (p.reason != Reason.CONVERGED)
        if p.reason != Reason.NOT_FINITE:
            noise = 1e3 * eps * float(p.first)
            assert size == pytest.approx(float(p.size), rel=1e-3, abs=noise)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("seed", range(30))
def test_residuals_of_any_size_are_judged_by_their_true_norms(
    seed: int, dtype: torch.dtype, backend: Backend
) -> None:
    rules, inputs = draw(seed, dtype)
    outputs, (status,) = executor(implicit(cubes, 2, 4, rules), backend, dtype)(inputs)
    unknowns = torch.stack([outputs["u0"], outputs["u1"]], 1)
    assert_judged_alike(status, unknowns, by_oracle(rules, inputs))


def test_a_residual_of_zero_ends_single_precision_whatever_the_tolerances(
    backend: Backend,
) -> None:
    program = implicit(cubes, 2, 4, Newton(abs_tol=1e-300, rel_tol=0.0))
    _, inputs = draw(3, torch.float32)
    _, (status,) = executor(program, backend, torch.float32)(inputs)
    assert not status.reason.any() and not status.residual.all()


# tangents of points that failed


def straight(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    """A linear system: neither its Jacobian nor its right-hand sides depend on a point."""
    return [2.0 * u[0] + u[1] - g[0], u[0] + 3.0 * u[1] - g[1]]


BLOCKS = [(y, x) for y in ("u0", "u1") for x in ("g0", "g1")]


def slanted(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    """Its Jacobian depends on u, and is regular at zero."""
    return [u[0] + u[0] * u[1] - g[0], u[1] + u[0] * u[0] - g[1]]


@pytest.mark.parametrize("law", [straight, slanted])
def test_a_failed_point_has_nan_tangents(law: Any, backend: Backend) -> None:
    program = with_jacobian(implicit(law, 2, 2, Newton(max_its=1)), BLOCKS)
    inputs = {n: torch.zeros(3, dtype=torch.float64) for n in ("u0", "u1", "g0", "g1")}
    inputs["g0"] = torch.tensor([0.0, 1.0, torch.nan], dtype=torch.float64)
    outputs, (status,) = executor(program, backend)(inputs)
    assert status.reason.tolist() == [0, Reason.OUT_OF_STEPS, Reason.NOT_FINITE]
    for y, x in BLOCKS:
        assert outputs[f"{y}:{x}"].isnan().tolist() == [False, True, True]


def test_a_failed_point_has_nan_slopes_also_where_they_read_no_unknown(backend: Backend) -> None:
    program = implicit(straight, 2, 2, Newton(max_its=1))
    b = program.builder()
    k = Variable("k", Scalar, (), (b.node("input", (), ("k", 0)),))
    (u,) = program.outputs[0].nodes
    y = Variable("y", Scalar, (), (b.emit("add", u, b.emit("mul", 3.0, k.nodes[0])),))
    apart = Variable("apart", Scalar, (), (b.emit("mul", 2.0, k.nodes[0]),))
    program = replace(program, inputs=(*program.inputs, k), outputs=(*program.outputs, y, apart))
    inputs = {n: torch.zeros(3, dtype=torch.float64) for n in ("u0", "u1", "g0", "g1", "k")}
    inputs["g0"] = torch.tensor([0.0, 1.0, torch.nan], dtype=torch.float64)
    sloped = with_jacobian(program, [("y", "k"), ("apart", "k")])
    along = {f"d.{n}": torch.full_like(x, float(n == "k")) for n, x in inputs.items()}
    for made, given, name in ((sloped, {}, "{}:k"), (along_direction(program), along, "d.{}")):
        outputs, _ = executor(made, backend)({**inputs, **given})
        slopes = [outputs[name.format(v)] for v in ("y", "apart")]
        torch.testing.assert_close(slopes[0][:1], torch.full((1,), 3.0).double())
        assert slopes[0].isnan().tolist() == [False, True, True]
        assert slopes[1].tolist() == [2.0] * 3


def test_graphs_refuse_derivatives_of_a_solve_as_lines() -> None:
    program = with_jacobian(implicit(straight, 2, 2, Newton()), BLOCKS)
    with pytest.raises(IngotError, match="graphs hold no derivatives of") as raised:
        executor(program, "inductor")
    assert {p.code for p in raised.value.problems} == {"wrong-backend"}
