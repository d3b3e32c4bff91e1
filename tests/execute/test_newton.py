"""Newton's method ends alike on all executors; in single precision where rounding ends it."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from ingot.execute import Criterion, Reason, executor
from ingot.execute.newton import run_newton, stalled_by_rounding
from ingot.hit import read_text
from ingot.model import build
from ingot.options import Newton
from ingot.program import prepared
from tests.systems import plasticity

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
        _, status = run_newton("s", root.to(dtype), rhs, lambda u, r, a: (u, rhs(u)), rules)
        assert status.reason.tolist() == [reason]


def test_points_settle_only_where_no_update_helps() -> None:
    before = torch.tensor([1e-6, 1e-6, 1e-3, 1e-3, 1.0, 1.0, 1e-6])
    now = torch.tensor([1e-6, 1e-7, 1e-3, 1e-3, 1.0, 1.0, torch.nan])
    update = torch.tensor([1.0, 1.0, 1e-5, 1e-2, 1e-7, 1e-2, 1.0])
    one = torch.ones(7)
    assert stalled_by_rounding(before, now, one, update, one).tolist() == [
        True, False, True, False, True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_what_rounding_accepted_is_told_as_such(backend: str) -> None:
    text = plasticity("FBComplementarity", isotropic=True, kinematic=False)
    program = prepared(build(read_text(text), "update"))
    run = executor(program, "kernel" if backend == "kernel" else "interpret", torch.float32)
    inputs = {v.name: torch.zeros(8, *v.kind.base) for v in program.inputs}
    inputs["E"] = 1e-2 * torch.rand(8, 6, generator=torch.Generator().manual_seed(1))
    inputs["t"] = torch.ones(8)
    _, (status,) = run(inputs)
    (rules,) = (s.newton for s in program.solves())
    assert bool(status.converged.all()) and bool((status.residual > rules.abs_tol).any())
    rounded = status.accepted == Criterion.ROUNDING
    assert bool(rounded.any()) and bool((status.residual[rounded] >= rules.abs_tol).all())
