"""Single precision: Newton's method ends where rounding ends it, at the right values."""

import pytest
import torch
from torch import Tensor

from ingot.execute import Criterion, executor
from ingot.execute.single import settled
from ingot.hit import read_text
from ingot.model import build
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
    one = torch.ones(3, dtype=torch.float64)
    assert not settled(1e-12 * one, one, one, 0 * one, one).any()


def test_points_settle_only_where_no_update_helps() -> None:
    before = torch.tensor([1e-6, 1e-6, 1e-3, 1e-3, 1.0, 1.0, 1e-6])
    now = torch.tensor([1e-6, 1e-7, 1e-3, 1e-3, 1.0, 1.0, torch.nan])
    update = torch.tensor([1.0, 1.0, 1e-5, 1e-2, 1e-7, 1e-2, 1.0])
    one = torch.ones(7)
    assert settled(before, now, one, update, one).tolist() == [
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
