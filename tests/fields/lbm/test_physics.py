"""What a lattice must do whatever its numbers: decay, profiles, conservation, symmetry, tension."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ingot.fields import Run
from ingot.fields.lbm.hydrodynamics import equilibrium
from ingot.fields.lbm.stencils import STENCILS, Stencil
from tests.fields.lbm.cases import (
    COLLISION,
    DENSITY,
    FLOW,
    VELOCITY,
    advance,
    lattice_input,
    started,
)
from tests.fields.lbm.cases import equilibrium as equilibrium_block


@pytest.mark.parametrize("stencil", STENCILS.values(), ids=list(STENCILS))
def test_equilibrium_has_the_moments_of_a_fluid(stencil: Stencil) -> None:
    dice = torch.Generator().manual_seed(0)
    rho = 1 + 0.1 * torch.rand(7, generator=dice, dtype=torch.float64)
    u = 0.1 * torch.rand(7, stencil.dim, generator=dice, dtype=torch.float64)
    f, e = equilibrium(stencil, rho, u), torch.tensor(stencil.velocities, dtype=torch.float64)
    torch.testing.assert_close(f.sum(-1), rho)
    torch.testing.assert_close(f @ e, rho[:, None] * u)
    flux = torch.einsum("ni,ia,ib->nab", f, e, e)
    pressure = rho[:, None, None] / 3 * torch.eye(stencil.dim, dtype=torch.float64)
    torch.testing.assert_close(flux, pressure + torch.einsum("n,na,nb->nab", rho, u, u))


@pytest.mark.parametrize("stencil", STENCILS.values(), ids=list(STENCILS))
def test_weights_are_isotropic_to_fourth_order(stencil: Stencil) -> None:
    w, e = np.array(stencil.weights), np.array(stencil.velocities)
    eye = np.eye(stencil.dim)
    assert np.allclose(np.einsum("i,ia->a", w, e), 0)
    assert np.allclose(np.einsum("i,ia,ib->ab", w, e, e), eye / 3)
    assert np.allclose(np.einsum("i,ia,ib,ic->abc", w, e, e, e), 0)
    pairs = sum(np.einsum(f"{a},{b}->abcd", eye, eye) for a, b in
                (("ab", "cd"), ("ac", "bd"), ("ad", "bc")))  # fmt: skip
    assert np.allclose(np.einsum("i,ia,ib,ic,id->abcd", w, e, e, e, e), pairs / 9)


def forced(tau: float) -> dict[str, Any]:
    return {
        "rho": DENSITY,
        "u": {**VELOCITY, "enable_forces": "true", "forces": "force"},
        "feq": equilibrium_block("feq"),
        "collide": {**COLLISION, "tau0": tau},
        "push": {"type": "LBMApplyForces", "buffer": "fpc", "rho": "rho", "forces": "force",
                 "velocity": "u", "tau0": tau},
    }  # fmt: skip


def test_a_channel_converges_at_second_order(tmp_path: Path) -> None:
    tau, errors = 1.1, []
    walls = {
        face: {"type": "LBMBounceBack", "buffer": "f", "f_old": "fpc", "boundary": face}
        for face in ("top", "bottom")
    }
    nu = (tau - 0.5) / 3
    for height in (6, 12, 24):
        force = 8 * nu * 0.02 / height**2
        text = lattice_input((3, height), "D2Q9", solve=forced(tau), boundary=walls,
                             buffers={**FLOW, "force": "mv"})  # fmt: skip
        run = started(text, tmp_path, jit=True)
        run.state.buffers["force"] = torch.tensor([force, 0.0], dtype=torch.float64).expand(
            3, height, 2
        ).clone()  # fmt: skip
        advance(run, int(1.5 * height**2 / nu))
        y = np.arange(height) + 0.5
        exact = force / (2 * nu) * y * (height - y)
        found = flow(run)[1, :, 0]
        errors.append(np.abs(found - exact).max() / exact.max())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(1.9 < order < 2.2 for order in orders), (errors, orders)


def flow(run: Run) -> Any:
    """The velocity, from what left the last collision: forces have moved it by half of theirs."""
    stencil = STENCILS["D2Q9"]
    f = run.state.buffers["fpc"].numpy()
    momentum = f @ np.array(stencil.velocities)
    return (momentum - 0.5 * run.state.buffers["force"].numpy()) / f.sum(-1)[..., None]


def vortices(size: int) -> tuple[torch.Tensor, float]:
    k, speed = 2 * math.pi / size, 0.01
    at = (torch.arange(size, dtype=torch.float64) + 0.5) * k
    x, y = at[:, None], at[None, :]
    return speed * torch.stack([x.sin() * y.cos(), -x.cos() * y.sin()], -1), k


@pytest.mark.parametrize("kind", ["LBMBGKCollision", "LBMMRTCollision", "LBMSmagorinskyCollision"])
def test_vortices_decay_at_the_rate_of_their_viscosity(kind: str, tmp_path: Path) -> None:
    size, tau, steps = 24, 0.7, 150
    strength = {"Cs": 0.0} if "Smag" in kind else {}
    solve = {
        "rho": DENSITY, "u": VELOCITY, "feq": equilibrium_block("feq"),
        "collide": {**COLLISION, "type": kind, "tau0": tau, **strength},
    }  # fmt: skip
    run = started(lattice_input((size, size), "D2Q9", solve=solve), tmp_path)
    u, k = vortices(size)
    rho = torch.ones(size, size, dtype=torch.float64)
    run.state.buffers["fpc"] = equilibrium(STENCILS["D2Q9"], rho, u)
    advance(run, steps)
    first = run.state.buffers["u"].abs().max()
    mass = float(run.state.buffers["fpc"].sum())
    advance(run, steps)
    rate = math.log(first / run.state.buffers["u"].abs().max()) / steps
    assert rate == pytest.approx(2 * (tau - 0.5) / 3 * k**2, rel=0.01)
    assert float(run.state.buffers["fpc"].sum()) == pytest.approx(mass, rel=1e-13)
    assert mass == pytest.approx(size * size, rel=1e-13)


@pytest.mark.parametrize(
    "kind", ["LBMBGKCollision", "LBMMRTCollision", "LBMSmagorinskyMRTCollision"]
)
@pytest.mark.parametrize("stencil", ["D2Q9", "D3Q19", "D3Q27"])
def test_a_turned_flow_stays_turned(kind: str, stencil: str, tmp_path: Path) -> None:
    lattice = STENCILS[stencil]
    solve = {
        "rho": DENSITY, "u": VELOCITY, "feq": equilibrium_block("feq"),
        "collide": {**COLLISION, "type": kind, "tau0": 0.6},
    }  # fmt: skip
    sizes = (5,) * lattice.dim
    run = started(lattice_input(sizes, stencil, solve=solve), tmp_path)
    dice = torch.Generator().manual_seed(1)
    w = torch.tensor(lattice.weights, dtype=torch.float64)
    f = w * (1 + 0.1 * torch.rand(*sizes, lattice.q, generator=dice, dtype=torch.float64))
    at = {e: i for i, e in enumerate(lattice.directions)}
    if lattice.dim == 2:  # a quarter turn: x' = -y, y' = x
        order = [at[y, -x, 0] for x, y, _ in lattice.directions]
        turn = lambda field: field.flip(1).transpose(0, 1)[..., order]  # noqa: E731
    else:  # a third of a turn about the diagonal: x' = z, y' = x, z' = y
        order = [at[y, z, x] for x, y, z in lattice.directions]
        turn = lambda field: field.permute(2, 0, 1, 3)[..., order]  # noqa: E731
    found = []
    for start in (f, turn(f)):
        run.state.buffers["fpc"] = start.clone()
        advance(run, 3)
        found.append(run.state.buffers["fpc"])
    torch.testing.assert_close(turn(found[0]), found[1], rtol=1e-12, atol=1e-14)


def test_a_drop_has_the_pressure_of_its_tension(tmp_path: Path) -> None:
    size, radius, tension, width, tau = 48, 13.0, 0.005, 6.0, 0.8
    gradients = {
        "grad": {"type": "LBMIsotropicGradient", "buffer": "grad", "scalar_field": "phi"},
        "lap": {"type": "LBMIsotropicLaplacian", "buffer": "lap", "scalar_field": "phi"},
        "mu": {"type": "LBMComputeChemicalPotential", "buffer": "mu", "phi": "phi",
               "laplacian_phi": "lap", "thickness": width, "sigma": tension},
        "force": {"type": "LBMComputeSurfaceForces", "buffer": "force",
                  "chemical_potential": "mu", "grad_phi": "grad"},
    }  # fmt: skip
    phase = {
        "phi": {"type": "LBMComputeDensity", "buffer": "phi", "f": "h"},
        "heq": {"type": "LBMPhaseEquilibrium", "buffer": "heq", "phi": "phi", "grad_phi": "grad",
                "tau_phi": tau, "thickness": width},
        "part": {"type": "LBMBGKCollision", "buffer": "hpc", "f": "h", "feq": "heq", "tau0": tau},
    }  # fmt: skip
    kinds = {**FLOW, "force": "mv", "phi": "ms", "grad": "mv", "lap": "ms", "mu": "ms",
             "h": "df", "heq": "df", "hpc": "df"}  # fmt: skip
    text = lattice_input(
        (size, size), "D2Q9", solve={**phase, **gradients, **forced(tau)}, buffers=kinds,
        streams=("f h", "fpc hpc"),
        more="[Postprocessors]\n[mean]\ntype = TensorAveragePostprocessor\nbuffer = phi\n[]\n[]",
    )  # fmt: skip
    run = started(text, tmp_path, jit=True)
    at = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    r = (at[:, None] ** 2 + at[None, :] ** 2).sqrt()
    phi = 0.5 * (1 - torch.tanh(2 * (r - radius) / width))
    none = torch.zeros(size, size, 2, dtype=torch.float64)
    run.state.buffers["hpc"] = equilibrium(STENCILS["D2Q9"], phi, none)
    advance(run, 2500)
    rho = run.state.buffers["fpc"].sum(-1)
    jump = float(rho[size // 2, size // 2] - rho[0, 0]) / 3
    left = run.state.buffers["hpc"].sum(-1)
    assert float(left.sum()) == pytest.approx(float(phi.sum()), rel=1e-12)
    now = math.sqrt(float((left > 0.5).sum()) / math.pi)
    assert jump == pytest.approx(tension / now, rel=0.05)
